"""`botchat evaluate`: reports on anybody's texts, verdicts on pairs, over real HTTP and offline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import botchat
from botchat.cli.main import main
from botchat.protocols.reports import ERROR_TYPES
from tests.commands import refused, said, walk
from tests.openai_server import Server, text

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "own-texts.md").read_text("utf-8")

KINDS = [english for english, _ in ERROR_TYPES.values()]
TEXTS = [
    "Kim had a cat. It slept. It slept.",
    "Rob went home. He liked <script>alert(1)</script> a lot.",
    "Ann swam up the tree | twice.\nThen she went down.",
]


def url(server: Server) -> str:
    """A judge of the server."""
    return f"{server.url}#m"


def report(story: str, *kinds: str) -> str:
    """A reply in the form that is asked for: the first sentence shows an error of each kind."""
    yes = f"Yes\n- {json.dumps(story.split('.')[0])} - I do not like it"
    lines = []
    for kind in KINDS:
        answer = yes if kind in kinds else "No"
        lines.append(f"Question: {kind}?\nAnswer: {answer}\nScore: {-(kind in kinds)}")
    return "\n".join([*lines, "", *(f"{kind}: {-(kind in kinds)}" for kind in KINDS)])


def story_of(call) -> str:
    """The text that a prompt is about."""
    prompt = call.messages[-1]["content"]
    return prompt.split("Text:\n", 1)[1].split("\n\nAnswer five", 1)[0]


def editor(call):
    """Finds a repetition in the first text, nothing in the second, says too little of the third."""
    prompt = call.messages[-1]["content"]
    if prompt.startswith("Rewrite the following"):
        return text("It is all said twice.")
    if "Text:\n" not in prompt or "watch over its quality" in prompt:
        return text("Go on.")
    story = story_of(call)
    if story.startswith("Kim"):
        return text(report(story, "Repetition", "Discontinuity"))
    if story.startswith("Rob"):
        return text(report(story))
    lines = {kind: f"Question: {kind}?\nAnswer: No\nScore: 0" for kind in KINDS}
    lines[KINDS[1]] = f"Question: {KINDS[1]}?\nAnswer: Yes\n- nobody says so\nScore: -2"
    del lines["Discontinuity"]
    return text("\n".join([*lines.values(), "I am tired."]))


@pytest.fixture
def plain_file(tmp_path) -> Path:
    """Three texts without labels."""
    path = tmp_path / "my texts.txt"
    path.write_text("\n\n".join(TEXTS))
    return path


@pytest.mark.parametrize("judge", ["single", "mateval-cot"])
def test_three_texts_without_labels_get_reports(judge, plain_file, tmp_path, capsys):
    """Q&A and running text, in md, json and html; what a reply does not say is missing."""
    w = tmp_path / "w"
    with Server(editor) as server:
        how = [url(server)] if judge == "single" else [judge, "--judge-model", url(server)]
        command = ["evaluate", plain_file, "--judge", *how, "--dir", w]
        planned = [row["calls"] for row in said(capsys, *command, "--plan")["rows"]]
        assert server.n_received == 0
        found = said(capsys, *command)
        asked = server.n_received
        assert min(planned) <= asked <= max(planned)
        assert said(capsys, *command)["rows"] == found["rows"]
        assert server.n_received == asked
    first, second, third = found["rows"]
    keys = ["_".join(kind.lower().split()) for kind in KINDS]
    assert [first[key] for key in keys] == [-1, 0, -1, 0, 0]
    assert (first["score"], second["score"], third["score"]) == (-2, 0, None)
    assert (third["verdict"], third["missing"]) == ("0 -2 ? 0 0", "Discontinuity")
    assert "lacks something (Discontinuity of 1); it is missing" in found["notes"][0]
    (row,) = found["board"]
    assert (row["model"], row["mateval_mean_2"]) == ("text", pytest.approx(-2 / 3, abs=1e-4))
    out = w / "leaderboards" / "evaluate-my-texts"
    listed = (out / "mateval-reports.txt").read_text()
    assert 'Question: Repetition?\nAnswer: Yes\n- "Kim had a cat" - I do not like it' in listed
    assert "Question: Discontinuity?\nmissing" in listed
    prose = "It is all said twice." if judge == "mateval-cot" else 'sentence 1, "Kim had a cat"'
    assert prose in listed
    names = {path.name for path in out.iterdir()}
    assert {"index.html", "mateval.csv", "mateval-cases.csv", "chunks"} <= names
    assert main(["leaderboard", "--seeds", "evaluate-my-texts", "--dir", str(w)]) == 0
    seeds = said(capsys, "seeds", "show", "evaluate-my-texts", "--dir", w)["rows"]
    assert {seed["utterances"] for seed in seeds} == {0}


def test_the_rules_judge_reports_and_decides_offline(tmp_path, capsys):
    """What it knows: what tells machines from people; the rest it does not judge."""
    w = tmp_path / "w"
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "As an AI language model, I cannot swim."}\n{"text": "I swim."}\n')
    found = said(capsys, "evaluate", path, "--judge", "rules", "--dir", w)
    machine, person = found["rows"]
    assert machine["criterion"] == "diagnosis"
    assert (machine["ai_self-identification"], machine["score"]) == (-1, -1)
    assert (person["score"], person["factual_error"], person["missing"]) == (0, None, "")
    pairs = tmp_path / "p.csv"
    pairs.write_text('question,answer_1,answer_2\nWho?,Me.,"As an AI language model, nobody."\n')
    found = said(capsys, "evaluate", pairs, "--judge", "rules", "--dir", w)
    better = [(row["criterion"], row["better"]) for row in found["rows"]]
    assert better == [("arena", "answer1")] * 2
    agreed = said(capsys, "agree", "--seeds", "evaluate-p", "--protocol", "arena", "--dir", w)
    assert agreed["judges"][0]["consistency"] == 1
    generate = ["generate", "--seeds", "evaluate-p", "--model", "bot:parrot", "--dir", str(w)]
    assert "evaluate-p has no ChatSEEDs" in refused(capsys, generate)


def scorer(call):
    """The longer answer gets more, the one shown first half a point."""
    shown = r"\[The Start of [^\n]*\n(.*?)\n\[The End"
    one, two = re.findall(shown, call.messages[-1]["content"], re.DOTALL)
    scores = (8.5, 6) if len(one) > len(two) else (6.5, 8)
    return text(f"So.\nScore of Assistant 1: {scores[0]}\nScore of Assistant 2: {scores[1]}")


def test_pairs_get_verdicts_in_both_orders(tmp_path, capsys):
    """Scores and the better answer; with people's verdicts accuracy and kappa."""
    path = tmp_path / "pairs.csv"
    lines = ["question,answer_1,answer_2,model_1,model_2,winner", "Q?,long answer,no,m,n,m"]
    path.write_text("\n".join([*lines, "P?,no,long answer,m,n,tie", "R?,a,longer,n,m,model_2"]))
    with Server(scorer) as server:
        command = ["evaluate", path, "--judge", url(server), "--dir", tmp_path / "w"]
        found = said(capsys, *command)
        assert server.n_received == 6
        assert main([str(part) for part in command]) == 0
        printed = capsys.readouterr().out
        assert server.n_received == 6
    assert [(row["id"], row["first"], row["verdict"]) for row in found["rows"]] == [
        ("1", "m", "8.5 6"), ("1", "n", "6.5 8"), ("2", "m", "6.5 8"), ("2", "n", "8.5 6"),
        ("3", "m", "8.5 6"), ("3", "n", "6.5 8"),
    ]  # fmt: skip
    assert [row["better"] for row in found["rows"]] == ["m", "m", "n", "n", "m", "m"]
    assert [row["people"] for row in found["rows"]][::2] == ["m", "tie", "m"]
    (agreed,) = found["agreement"]
    assert (agreed["accuracy"], agreed["n"]) == (pytest.approx(2 / 3, abs=1e-4), 3)
    by_model = {row["model"]: row for row in found["board"]}
    assert by_model["m"]["bt"] > by_model["n"]["bt"] if "bt" in by_model["m"] else True
    assert "FairEval: accuracy 0.67, kappa 0.50 with human labels of 3." in printed


def test_own_criteria_and_people_s_scores(tmp_path, capsys):
    """A criterion of botchat.toml by its name; a column of human scores gives correlations."""
    w = tmp_path / "w"
    w.mkdir()
    (w / "fun.txt").write_text("How funny?\n\n{{conversation}}\n\nFun: 1 to 10")
    (w / "botchat.toml").write_text(
        '[protocols.fun]\nkind = "score"\nprompt = "fun.txt"\nscores = ["Fun"]\nscale = [1, 10]\n'
    )
    people, scores = [3, 9, 4, 7, 1], [2, 8, 5, 5, 1]
    path = tmp_path / "jokes.tsv"
    rows = [f"Joke {n} is here.\t{score}" for n, score in enumerate(people)]
    path.write_text("\n".join(["text\thuman", *rows]))

    def funny(call):
        number = int(re.search(r"Joke (\d)", call.messages[-1]["content"])[1])
        return text(f"Ha.\nFun: {scores[number]}")

    with Server(funny) as server:
        command = ["evaluate", path, "--judge", url(server), "--criteria", "fun", "--dir", w]
        found = said(capsys, *command)
    assert found["board"][0]["fun_mean_1"] == pytest.approx(4.2)
    (row,) = found["agreement"]
    assert (row["number"], row["n"]) == ("Fun", 5)
    assert row["spearman"] == pytest.approx(stats.spearmanr(scores, people)[0], abs=1e-4)
    assert row["kendall"] == pytest.approx(stats.kendalltau(scores, people)[0], abs=1e-4)
    assert found["rows"][0]["reason"] == "Ha."


LABELLED = {
    "t.csv": "text,human\nOne.,-1\nTwo.,0\n",
    "p.csv": "answer_1,answer_2,winner\nx,y,1\nz,w,tie\n",
}


@pytest.mark.parametrize("name", LABELLED)
def test_a_judge_that_says_nothing_readable_is_missing_everywhere(name, tmp_path, capsys):
    """No number is made up, in tables, Markdown or page; people's labels change nothing in that."""
    path = tmp_path / name
    path.write_text(LABELLED[name])
    with Server(lambda call: text("No idea <b>at all</b>.")) as server:
        found = said(capsys, "evaluate", path, "--judge", url(server), "--dir", tmp_path / "w")
    assert any("the judge's reply lacks something (everything of" in one for one in found["notes"])
    for row in found["rows"]:
        assert row["verdict"] is None
        assert row.get("better", "missing") == "missing"
    assert "<b>at all</b>" not in (Path(found["out"]) / "index.html").read_text()


@pytest.mark.parametrize(
    ("name", "content", "flags", "message"),
    [
        ("t.txt", " \n", (), "no texts; separate them by blank lines"),
        ("t.doc", "x", (), "none of .csv, .tsv, .jsonl, .json, .txt"),
        ("t.csv", "name\nx\n", (), "t.csv row 2: no text (columns: name); expected one of"),
        ("t.csv", "text,score\nx,1\ny,bad\n", (), "t.csv row 3: column score: 'bad' is no number"),
        ("t.jsonl", '{"text": "x"}\n[1]', (), "t.jsonl row 2: [1] is not an object"),
        ("t.jsonl", '{"text": "x"}\n{"answer_1": "y"}', (), "row 2: column text: it is missing"),
        ("t.txt", "x", ("--criteria", "y"), "--criteria y: unknown; criteria: mateval, answers"),
        ("t.txt", "x", ("--criteria", "answers"), "it is not about texts"),
        ("t.txt", "x", ("--criteria", "mateval"), "the rules judge knows only what tells"),
    ],
)
def test_a_wrong_file_is_one_line_and_nothing_is_written(
    name, content, flags, message, tmp_path, capsys
):
    """Which row, which column, what was expected."""
    path = tmp_path / name
    path.write_text(content)
    command = ["evaluate", str(path), "--judge", "rules", *flags, "--dir", str(tmp_path / "w")]
    assert message in refused(capsys, command)
    assert not list((tmp_path / "w").rglob("*.jsonl"))
    assert not (tmp_path / "w" / "leaderboards").exists()


def test_the_walk_of_the_docs(tmp_path, capsys, monkeypatch):
    """Every file and command of it, in an empty folder, offline."""
    monkeypatch.chdir(tmp_path)
    assert walk(DOCS, capsys) == 5
    out = tmp_path / "leaderboards"
    board = json.loads((out / "shop" / "leaderboard.json").read_text())
    assert {row["model"]: row["complete"] for row in board["rows"]}["my-model"] == 2
    for name, cell in (("stories/diagnosis-cases", ",-1.0"), ("answers/arena-cases", '"answer1"')):
        assert cell in (out / f"evaluate-{name}.csv").read_text(), name
    # And its lines of Python, as they stand there.
    calls = re.findall(r"`(botchat\.\w+\(.*?\))`", DOCS)
    names: dict[str, Any] = {"Path": Path, "botchat": botchat}
    names["workspace"] = botchat.Workspace(tmp_path / "python")
    exec(f"imported, evaluated = {', '.join(calls)}", names)
    imported, evaluated = names["imported"], names["evaluated"]
    assert (imported.whole["dialogues"], len(evaluated.whole["rows"])) == (2, 2)
