"""`botchat bench`: judges on benchmarks and in the papers' experiments, over real HTTP."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from botchat.cli.main import main
from botchat.protocols.reports import ERROR_TYPES
from botchat.records import Judgment
from botchat.workspace import jsonl
from tests.commands import refused, said
from tests.openai_server import Server, text
from tests.rows import rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ASPECTS = ("naturalness", "coherence", "engagingness", "groundedness")
KINDS = [english for english, _ in ERROR_TYPES.values()]
SCORES = [(8, 6), (5, 7), (6, 6), (9, 2), (3, 4), (7, 7)]
"""What the judge thinks of the first and the second answer to each question of FairEval."""
LABELS = ["CHATGPT", "VICUNA13B", "CHATGPT", "CHATGPT", "TIE", "TIE"]
RATED = [1.0, 2.3, 1.7, 3.0, 2.0, 1.3]
"""People's scores of the responses of Topical-Chat."""


def needs(*parts: str) -> Path:
    """A folder of the shared data."""
    folder = DATA.joinpath(*parts)
    if not folder.exists():
        pytest.skip(f"no folder {folder}: the benchmarks are not part of this repository")
    return folder


def faireval_files() -> dict[str, bytes]:
    """Six questions in upstream's layout, of two categories, with the label of each."""
    files = {"review/review_gpt35_vicuna-13b_human.txt": "\n".join(LABELS)}
    for name in ("question", "answer/answer_gpt35", "answer/answer_vicuna-13b"):
        lines = [{"question_id": n, "text": f"{name[-3:]} says number {n}"} for n in range(6)]
        if name == "question":
            lines = [line | {"category": "ab"[n % 2]} for n, line in enumerate(lines)]
        files[f"{name}.jsonl"] = "".join(f"{json.dumps(line)}\n" for line in lines)
    return {name: content.encode() for name, content in files.items()}


def topical_files() -> dict[str, bytes]:
    """Six responses in two conversations."""
    records = [
        {
            "source": f"one {n // 3}\ntwo\n",
            "context": f"fact {n // 3}",
            "system_id": f"system {n % 3}",
            "system_output": f"reply {n}",
            "scores": {a: score if a != "groundedness" else n % 2 for a in ASPECTS},
        }
        for n, score in enumerate(RATED)
    ]
    return {"topical_chat.json": json.dumps(records).encode()}


def story_files() -> dict[str, bytes]:
    """Five stories; story n has n errors of one kind, none or one of the others."""
    lines = ["Story,Score_new"]
    for n in range(5):
        scores = "\n".join(f"{kind}:{-n if kind == KINDS[1] else -(n % 2)}" for kind in KINDS)
        lines.append(f'"This is story {n}. Repetition: 0","{scores}"')
    return {"x_new.csv": "\n".join(lines).encode()}


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """The folder with some files in it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def faireval(tmp_path: Path) -> Path:
    """FairEval's folder, with files that are not of it or too deep in it."""
    others = {"x.json.gz": b"no gzip", "notes.txt": b"\xff", "a/b/question.jsonl": b"{"}
    return written(tmp_path / "faireval", faireval_files() | others)


def scorer(call):
    """Gives each answer its score, and the one shown first half a point more."""
    prompt = call.messages[-1]["content"]
    first, second = re.findall(r"Answer\]\n(\S+) says number", prompt)
    number = int(re.search(r"says number (\d)", prompt)[1])
    score = dict(zip(("t35", "13b"), SCORES[number], strict=True))
    return text(
        "I looked at both.\n"
        f"Score of Assistant 1: {score[first] + 0.5}\nScore of Assistant 2: {score[second]}"
    )


def url(server: Server, model: str = "m") -> str:
    """A judge of the server."""
    return f"{server.url}#{model}"


def test_a_scripted_judge_has_the_accuracy_and_kappa_worked_out_by_hand(faireval, tmp_path, capsys):
    """Both orders of six questions; calibrated, half a point for the first is gone."""
    with Server(scorer) as server:
        bench = ["bench", "faireval", "--data", faireval, "--judge", url(server)]
        found = said(capsys, *bench, "--dir", tmp_path / "w")
        assert server.n_received == found["calls"] == 12
    (row,) = found["judges"]
    verdicts = ["1", "2", "tie", "1", "2", "tie"]
    truth = ["1", "2", "1", "1", "tie", "tie"]
    assert row["accuracy"] == pytest.approx(4 / 6)
    assert row["kappa"] == pytest.approx(cohen_kappa_score(truth, verdicts))
    assert (row["n"], row["unreadable"], row["calls"]) == (6, 0, 1.0)
    # One order at a time the two ties go to whoever is shown first: one of these four is right.
    assert row["accuracy_one_order"] == pytest.approx(7 / 12)
    assert row["consistency"] == pytest.approx(4 / 6)
    assert row["first_preferred"] == pytest.approx(8 / 12)
    out = tmp_path / "w" / "leaderboards" / "bench-faireval"
    page = (out / "agreement.md").read_text()
    assert "Judges against human labels: FairEval" in page
    # Accuracy and kappa, which the paper prints, beside skill.
    assert all(f"| {key} |" in page for key in ("Accuracy", "Kappa", "Skill", "Ties"))
    assert row["skill"] == pytest.approx((2 / 3 + 1 / 1) / 2)
    assert {"judges.csv", "published.csv"} <= {path.name for path in out.iterdir()}
    by_category = pd.read_csv(out / "categories.csv", index_col="category")["accuracy"]
    assert by_category.to_dict() == {"a": 0.3333, "b": 1.0}


def test_a_benchmark_is_resumed_and_not_asked_twice(faireval, tmp_path, capsys):
    """Stopped by a limit (exit 3) and run again: the rest is sent; run again: nothing is."""
    with Server(scorer) as server:
        bench = ["bench", "faireval", "--data", str(faireval), "--judge", url(server)]
        place = ["--dir", str(tmp_path / "w")]
        assert {r["calls"] for r in said(capsys, *bench, "--plan", *place)["rows"]} == {12}
        assert server.n_received == 0
        assert main([*bench, "--max-calls", "5", *place]) == 3
        assert "Judges against human labels" in capsys.readouterr().out  # the table so far
        assert main([*bench, "--max-calls", "1", "--json", *place]) == 3
        stopped = json.loads(capsys.readouterr().out)
        assert stopped["judges"]
        assert "--max-calls" in stopped["stopped"]
        assert server.n_received == 6
        again = said(capsys, *bench, *place)
        shown = said(capsys, *bench[:4], *place)
        assert (server.n_received, server.n_repeated) == (12, 0)
        assert shown["judges"] == again["judges"]
        # Judgments of other answers are passed over and made again.
        path = faireval / "answer" / "answer_gpt35.jsonl"
        path.write_text(path.read_text().replace("number 0", "number 0 again"))
        assert said(capsys, *bench[:4], *place)["judges"][0]["n"] == 5
        assert said(capsys, *bench, *place)["judges"][0]["n"] == 6
        assert server.n_received == 12 + 2


def test_aspects_are_rated_in_the_layout_of_table_2(tmp_path, capsys):
    """Four ratings a response; correlations with people as scipy has them."""
    folder = written(tmp_path / "tc", topical_files())
    scores = [1, 2, 3, 3, 1, 1]

    def rate(call):
        prompt = call.messages[-1]["content"]
        number = int(re.search(r"reply (\d)", prompt)[1])
        aspect = re.search(r"(\w+): a number from", prompt)[1]
        if aspect == "Groundedness":
            return text("no idea" if number == 5 else f"Groundedness: {number % 2}")
        return text(f"It is so.\n{aspect}: {scores[number]}")

    with Server(rate) as server:
        bench = ["bench", "topicalchat", "--data", folder, "--judge", url(server)]
        found = said(capsys, *bench, "--dir", tmp_path / "w")
        assert main([*map(str, bench), "--dir", str(tmp_path / "w")]) == 0
        printed = capsys.readouterr().out
        assert server.n_received == 4 * 6
    by_aspect = {row["aspect"]: row for row in found["judges"]}
    assert list(by_aspect) == list(ASPECTS)
    row = by_aspect["coherence"]
    assert row["spearman"] == pytest.approx(stats.spearmanr(scores, RATED)[0])
    assert row["kendall"] == pytest.approx(stats.kendalltau(scores, RATED)[0])
    assert by_aspect["groundedness"]["unreadable"] == 1
    assert by_aspect["groundedness"]["spearman"] == pytest.approx(1.0)
    # The price is of all four questions, in the table as in sum.
    table = pd.read_csv(tmp_path / "w/leaderboards/bench-topicalchat/chateval-table-2.csv")
    paid = sum(each["tokens"] for each in found["judges"])
    assert (table["calls"][0], table["tokens"][0]) == (4.0, pytest.approx(paid, abs=1e-3))
    assert "Naturalness ρ" in printed
    assert "Average τ" in printed


def test_a_judge_rates_stories_in_the_layout_of_matevals_table(tmp_path, capsys):
    """One call a story, five scores a reply; a story cannot speak for the judge."""
    folder = written(tmp_path / "stories", story_files())

    def rate(call):
        number = int(re.search(r"story (\d)\. Repetition - 0", call.messages[-1]["content"])[1])
        scores = [0, -number, 0 if number < 3 else -1, 0, 1]
        lines = [f"{kind}: {score}" for kind, score in zip(KINDS, scores, strict=True)]
        return text("\n".join(lines if number != 4 else lines[1:]))

    with Server(rate) as server:
        bench = ["bench", "mateval", "--data", folder, "--judge", url(server)]
        found = said(capsys, *bench, "--dir", tmp_path / "w")
        assert server.n_received == 5
    table = pd.read_csv(tmp_path / "w/leaderboards/bench-mateval/mateval-table-1.csv")
    assert table["calls"][0] == 1.0, "one call has all five scores"
    by_kind = {row["error_type"]: row for row in found["judges"]}
    assert {row["judge"] for row in found["judges"]} == {url(server)}
    assert (by_kind["LINC"]["spearman"], by_kind["REP"]["spearman"]) == (1.0, None)
    # The line that story 4 lacks is missing; its other four count.
    counts = {code: (row["n"], row["unreadable"]) for code, row in by_kind.items()}
    assert counts == dict.fromkeys(ERROR_TYPES, (5, 0)) | {"REP": (4, 1)}
    (path,) = (tmp_path / "w" / "judgments" / "bench-mateval" / "stories").iterdir()
    # A deduction without its minus is one all the same.
    assert jsonl.read(path, Judgment)[0].verdict == "0 0 0 0 -1"


@pytest.mark.parametrize(("command", "message", "code"), rows("a_mistake_is_one_line"))
def test_a_mistake_is_one_line(faireval, tmp_path, capsys, command, message, code):
    """What is wrong and what to do; no judgments."""
    stories = written(tmp_path / "stories", story_files())
    words = command.format(stories=stories).split()
    data = [] if "--data" in words else ["--data", str(faireval)]
    command = ["bench", *words, *data, "--dir", str(tmp_path / "w")]
    assert message in refused(capsys, command, code)
    assert not list((tmp_path / "w").rglob("judgments/**/*.jsonl"))
