"""`botchat bench FILE`: reports on own texts, verdicts on own pairs, over real HTTP."""

import csv
import json
import re

import pytest

from botchat.cli.main import main
from botchat.errors import DataError
from botchat.papers.benchmarks import read_items
from tests.commands import refused, said
from tests.openai_server import Server, text
from tests.papers.test_bench import KINDS, url
from tests.rows import cases, rows

TEXTS = [
    "Kim had a cat. It slept. It slept.",
    "Rob went home. He liked <script>alert(1)</script> a lot.",
    "Ann swam up the tree | twice.\nThen she went down.",
]


def report(story: str, *kinds: str) -> str:
    """A reply in the form that is asked for: the first sentence shows an error of each kind."""
    yes = f"Yes\n- {json.dumps(story.split('.')[0])} - I do not like it"
    lines = []
    for kind in KINDS:
        answer = yes if kind in kinds else "No"
        lines.append(f"Question: {kind}?\nAnswer: {answer}\nScore: {-(kind in kinds)}")
    return "\n".join([*lines, "", *(f"{kind}: {-(kind in kinds)}" for kind in KINDS)])


def editor(call):
    """Finds a repetition in the first text, nothing in the second, says too little of the third."""
    prompt = call.messages[-1]["content"]
    if prompt.startswith("Rewrite the following"):
        return text("It is all said twice.")
    if "Text:\n" not in prompt or "watch over its quality" in prompt:
        return text("Go on.")
    story = prompt.split("Text:\n", 1)[1].split("\n\nAnswer five", 1)[0]
    if story.startswith("Kim"):
        return text(report(story, "Repetition", "Discontinuity"))
    if story.startswith("Rob"):
        return text(report(story))
    lines = {kind: f"Question: {kind}?\nAnswer: No\nScore: 0" for kind in KINDS}
    lines[KINDS[1]] = f"Question: {KINDS[1]}?\nAnswer: Yes\n- nobody says so\nScore: -2"
    del lines["Discontinuity"]
    return text("\n".join([*lines.values(), "I am tired."]))


@pytest.mark.parametrize("judge", ["single", "mateval-cot"])
def test_three_texts_without_labels_get_reports(judge, tmp_path, capsys):
    """Q&A and running text; what a reply does not say is missing; nothing is asked twice."""
    path, w = tmp_path / "my texts.txt", tmp_path / "w"
    path.write_text("\n\n".join(TEXTS))
    with Server(editor) as server:
        how = [judge, "--judge-model", url(server)]
        command = ["bench", path, "--judge", *how, "--dir", w]
        planned = [row["calls"] for row in said(capsys, *command, "--plan")["rows"]]
        assert server.n_received == 0
        found = said(capsys, *command)
        asked = server.n_received
        assert min(planned) <= asked <= max(planned)
        out = w / "leaderboards" / "bench-my-texts"
        written = {path: path.read_bytes() for path in out.iterdir()}
        said(capsys, *command)
        assert server.n_received == asked
        assert {path: path.read_bytes() for path in out.iterdir()} == written
    assert found["notes"] == ["The file has no human labels to compare judges with."]
    with (out / "cases.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if "(before" not in row["judge"]]
    first, second, third = rows
    keys = ["_".join(kind.lower().split()) for kind in KINDS]
    assert [float(first[key]) for key in keys] == [-1, 0, -1, 0, 0]
    assert (float(first["score"]), float(second["score"]), third["score"]) == (-2, 0, "")
    assert (third["logical_inconsistency"], third["discontinuity"]) == ("-2.0", "")
    assert (
        'Question: Repetition? Answer: Yes - "Kim had a cat" - I do not like it'
        in (first["reason"])
    )
    prose = "It is all said twice." if judge == "mateval-cot" else 'sentence 1, "Kim had a cat"'
    assert prose in first["report"]


def scorer(call):
    """The longer answer gets more, the one shown first half a point."""
    shown = r"\[The Start of [^\n]*\n(.*?)\n\[The End"
    one, two = re.findall(shown, call.messages[-1]["content"], re.DOTALL)
    scores = (8.5, 6) if len(one) > len(two) else (6.5, 8)
    return text(f"So.\nScore of Assistant 1: {scores[0]}\nScore of Assistant 2: {scores[1]}")


def test_pairs_get_verdicts_in_both_orders(tmp_path, capsys):
    """Scores and the better answer; with human verdicts accuracy and kappa; `rank` reads them."""
    path, w = tmp_path / "pairs.csv", tmp_path / "w"
    lines = ["question,answer_1,answer_2,model_1,model_2,winner", "Q?,long answer,no,m,n,m"]
    path.write_text("\n".join([*lines, "P?,no,long answer,m,n,tie", "R?,a,longer,n,m,model_2"]))
    with Server(scorer) as server:
        command = ["bench", path, "--judge", url(server), "--dir", w]
        found = said(capsys, *command)
        assert main([str(part) for part in command]) == 0
        assert server.n_received == 6
    cases = w / "leaderboards" / "bench-pairs" / "cases.csv"
    with cases.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["item"], row["first"], row["scores"], row["verdict"]) for row in rows] == [
        ("1", "m", "8.5 6", "1"), ("1", "n", "6.5 8", "2"), ("2", "m", "6.5 8", "2"),
        ("2", "n", "8.5 6", "1"), ("3", "n", "6.5 8", "2"), ("3", "m", "8.5 6", "1"),
    ]  # fmt: skip
    (judge,) = found["judges"]
    assert (judge["accuracy"], judge["n"]) == (pytest.approx(2 / 3, abs=1e-4), 3)
    assert judge["kappa"] == pytest.approx(0.5)
    ranked = said(capsys, "rank", cases, "--dir", w)["rows"]
    assert [row["model"] for row in ranked] == ["m", "n"]


@pytest.mark.parametrize(("models", "label", "right"), cases("labels_of_pairs", 3))
def test_labels_are_read_by_the_exact_name_first(models, label, right, tmp_path):
    """Then by plain names, then by the words that `rank` reads."""
    path = tmp_path / "p.jsonl"
    row = {"answer_1": "x", "answer_2": "y", "winner": label}
    path.write_text(json.dumps(row | {"model_1": models[0], "model_2": models[1]}))
    if not isinstance(right, str):
        (pair,) = read_items(path)
        assert pair.label == pytest.approx(right, nan_ok=True)
    else:
        with pytest.raises(DataError, match=f"row 1: column winner: .*{re.escape(right)}"):
            read_items(path)


@pytest.mark.parametrize(("name", "content", "flags", "message"), rows("wrong_files_of_texts"))
def test_a_wrong_file_is_one_line_and_nothing_is_written(
    name, content, flags, message, tmp_path, capsys
):
    """Which row, which column, what was expected."""
    path = tmp_path / name
    path.write_text(content)
    command = ["bench", str(path), "--judge", "rules", *flags, "--dir", str(tmp_path / "w")]
    assert message in refused(capsys, command, 2 if flags else 1)
    assert not list((tmp_path / "w").rglob("*.jsonl"))
    assert not (tmp_path / "w" / "leaderboards").exists()
