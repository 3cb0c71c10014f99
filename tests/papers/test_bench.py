"""`botchat bench`: judges on benchmarks and in the papers' experiments, over real HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from botchat.cli.main import main
from botchat.records import Judgment
from botchat.workspace import jsonl
from tests.openai_server import Server, text
from tests.rows import rows

pytestmark = pytest.mark.usefixtures("quick")

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def said(capsys, *command) -> dict:
    """What a command prints with --json."""
    capsys.readouterr()
    assert main([*map(str, command), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def needs(*parts: str) -> Path:
    """A folder of the shared data."""
    folder = DATA.joinpath(*parts)
    if not folder.exists():
        pytest.skip(f"no folder {folder}: the benchmarks are not part of this repository")
    return folder


# --------------------------------------------------------------------------------- FairEval

SCORES = [(8, 6), (5, 7), (6, 6), (9, 2), (3, 4), (7, 7)]
"""What the judge thinks of the first and the second answer to each question."""
LABELS = ["CHATGPT", "VICUNA13B", "CHATGPT", "CHATGPT", "TIE", "TIE"]


@pytest.fixture
def faireval(tmp_path) -> Path:
    """Six questions in upstream's layout, with the label of each."""
    folder = tmp_path / "faireval"
    for name in ("question", "answer/answer_gpt35", "answer/answer_vicuna-13b"):
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        who = name[-3:]
        lines = [{"question_id": n, "text": f"{who} says number {n}"} for n in range(6)]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    review = folder / "review" / "review_gpt35_vicuna-13b_human.txt"
    review.parent.mkdir()
    review.write_text("\n".join(LABELS))
    return folder


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
    (row,) = found["rows"]
    verdicts = ["1", "2", "tie", "1", "2", "tie"]
    truth = ["1", "2", "1", "1", "tie", "tie"]
    assert row["accuracy"] == pytest.approx(4 / 6)
    assert row["kappa"] == pytest.approx(cohen_kappa_score(truth, verdicts))
    assert (row["n"], row["unreadable"], row["calls"]) == (6, 0, 1.0)
    # One order at a time the two ties go to whoever is shown first: one of these four is right.
    assert row["accuracy_one_order"] == pytest.approx(7 / 12)
    assert row["consistency"] == pytest.approx(4 / 6)
    assert row["first_preferred"] == pytest.approx(8 / 12)
    assert (row["evaluator"], row["method"]) == (url(server), "single")
    out = tmp_path / "w" / "leaderboards" / "bench-faireval"
    assert "| Evaluator" in (out / "agreement.md").read_text()
    assert (out / "chateval-table-1.csv").exists()
    assert (out / "cost-against-agreement.png").exists()


def test_a_benchmark_is_resumed_and_not_asked_twice(faireval, tmp_path, capsys):
    """Stopped by a limit (exit 3) and run again: the rest is sent; run again: nothing is."""
    with Server(scorer) as server:
        bench = ["bench", "faireval", "--data", str(faireval), "--judge", url(server)]
        place = ["--dir", str(tmp_path / "w")]
        planned = said(capsys, *bench, "--plan", *place)["rows"]
        assert {r["calls"] for r in planned} == {12}
        assert server.n_received == 0
        assert main([*bench, "--max-calls", "5", *place]) == 3
        assert "Which answer is better" in capsys.readouterr().out  # the table so far
        assert main([*bench, "--max-calls", "1", "--json", *place]) == 3
        stopped = json.loads(capsys.readouterr().out)
        assert stopped["rows"]
        assert "--max-calls" in stopped["stopped"]
        assert server.n_received == 6
        assert main([*bench, *place]) == 0
        assert server.n_received == 12
        again = said(capsys, *bench, *place)
        shown = said(capsys, "bench", "faireval", "--data", faireval, *place)
        assert server.n_received == 12
        assert server.n_repeated == 0
    assert shown["rows"] == again["rows"]


def debater(call):
    """Two referees: of question 0 and 1 they think the opposite before they have talked."""
    prompt = call.messages[-1]["content"]
    answer = scorer(call)
    number = int(re.search(r"says number (\d)", prompt)[1])
    if "There are a few other referees" in prompt and "[Critic]:" not in prompt and number < 2:
        first = re.search(r"Answer\]\n(\S+) says", prompt)[1] == "t35"
        liked = (SCORES[number][0] > SCORES[number][1]) != first
        return text(f"Score of Assistant 1: {2 + 6 * liked}\nScore of Assistant 2: {8 - 6 * liked}")
    return answer


def test_a_debate_on_faireval_stands_beside_its_controls(faireval, tmp_path, capsys):
    """Calls of the preset, votes before the talk, and what the talk flipped."""
    folder = tmp_path / "w"
    folder.mkdir()
    with Server(debater) as server:
        (folder / "botchat.toml").write_text(
            '[panels.pair]\nstrategy = "simultaneous-talk"\nagents = ["general-public", "critic"]\n'
        )
        bench = ["bench", "faireval", "--data", faireval, "--dir", folder]
        model = ["--judge-model", url(server)]
        said(capsys, *bench, "--judge", "pair", *model)
        found = said(capsys, *bench, "--judge", "control:pair", *model)
        # 12 cases: 2 members × 2 turns, and as many samples of the bare question.
        assert server.n_received == 12 * 4 * 2
        named = f"pair@{url(server)}"
    rows = {row["judge"]: row for row in found["rows"]}
    ends = ("", " (before talk)", " (control)")
    assert set(rows) == {f"{named}{end}" for end in ends}
    assert rows[named]["accuracy"] == pytest.approx(4 / 6)
    assert rows[f"{named} (before talk)"]["accuracy"] == pytest.approx(2 / 6)
    methods = [(row["evaluator"], row["method"]) for row in found["rows"]]
    assert methods == [(url(server), f"pair{end}") for end in ends]
    assert found["talk"][0].startswith(f"What the talk of {named} adds in accuracy: +33.3 points")
    talk = next(c for c in found["controls"] if c["control"].endswith("(before talk)"))
    assert (talk["wrong_to_right"], talk["right_to_wrong"]) == (2, 0)
    assert talk["changed"] == pytest.approx(2 / 6)


def test_answers_that_have_changed_are_asked_about_again(faireval, tmp_path, capsys):
    """Judgments of other answers are passed over and made again."""
    with Server(scorer) as server:
        bench = ["bench", "faireval", "--data", faireval, "--dir", tmp_path / "w"]
        said(capsys, *bench, "--judge", url(server))
        path = faireval / "answer" / "answer_gpt35.jsonl"
        path.write_text(path.read_text().replace("number 0", "number 0 again"))
        assert said(capsys, *bench)["rows"][0]["n"] == 5
        assert said(capsys, *bench, "--judge", url(server))["rows"][0]["n"] == 6
        assert server.n_received == 12 + 2


# ------------------------------------------------------------------------------ Topical-Chat

ASPECTS = ("naturalness", "coherence", "engagingness", "groundedness")


def test_aspects_are_rated_in_the_layout_of_table_2(tmp_path, capsys):
    """Four ratings a response; correlations with people as scipy has them."""
    folder = tmp_path / "tc"
    folder.mkdir()
    people = [1.0, 2.3, 1.7, 3.0, 2.0, 1.3]
    records = [
        {
            "source": f"one {n // 3}\ntwo\n",
            "context": f"fact {n // 3}",
            "system_id": f"system {n % 3}",
            "system_output": f"reply {n}",
            "scores": {a: score if a != "groundedness" else n % 2 for a in ASPECTS},
        }
        for n, score in enumerate(people)
    ]
    (folder / "topical_chat.json").write_text(json.dumps(records))
    given = [1, 2, 3, 3, 1, 1]

    def rate(call):
        prompt = call.messages[-1]["content"]
        number = int(re.search(r"reply (\d)", prompt)[1])
        aspect = re.search(r"(\w+): a number from", prompt)[1]
        if aspect == "Groundedness":
            return text("no idea" if number == 5 else f"Groundedness: {number % 2}")
        return text(f"It is so.\n{aspect}: {given[number]}")

    with Server(rate) as server:
        bench = ["bench", "topicalchat", "--data", folder, "--judge", url(server)]
        found = said(capsys, *bench, "--dir", tmp_path / "w")
        assert server.n_received == 4 * 6
        assert main([*map(str, bench), "--dir", str(tmp_path / "w")]) == 0
        printed = capsys.readouterr().out
        assert server.n_received == 4 * 6
    rows = {row["aspect"]: row for row in found["rows"]}
    assert list(rows) == list(ASPECTS)
    assert rows["coherence"]["spearman"] == pytest.approx(stats.spearmanr(given, people)[0])
    assert rows["coherence"]["kendall"] == pytest.approx(stats.kendalltau(given, people)[0])
    assert rows["groundedness"]["unreadable"] == 1
    assert rows["groundedness"]["spearman"] == pytest.approx(1.0)
    assert "Naturalness ρ" in printed
    assert "Average τ" in printed


# ----------------------------------------------------------------------------------- MATEval

KINDS = (
    "Repetition",
    "Logical Inconsistency",
    "Discontinuity",
    "Inappropriate Lexical Choice",
    "Factual Error",
)


@pytest.fixture
def stories(tmp_path) -> Path:
    """Five stories in upstream's layout; story n has n errors of one kind, none of the others."""
    folder = tmp_path / "stories"
    folder.mkdir()
    lines = ["Story,Score_new"]
    for n in range(5):
        scores = "\n".join(f"{kind}:{-n if kind == KINDS[1] else -(n % 2)}" for kind in KINDS)
        lines.append(f'"This is story {n}. Repetition: 0","{scores}"')
    (folder / "x_new.csv").write_text("\n".join(lines))
    return folder


def test_a_judge_rates_stories_in_the_layout_of_matevals_table(stories, tmp_path, capsys):
    """One call a story, five scores a reply; a story cannot speak for the judge."""

    def rate(call):
        number = int(re.search(r"story (\d)\. Repetition - 0", call.messages[-1]["content"])[1])
        scores = [0, -number, 0 if number < 3 else -1, 0, 1]
        lines = [f"{kind}: {score}" for kind, score in zip(KINDS, scores, strict=True)]
        return text("\n".join(lines if number != 4 else lines[1:]))

    with Server(rate) as server:
        bench = ["bench", "mateval", "--data", stories, "--judge", url(server)]
        found = said(capsys, *bench, "--dir", tmp_path / "w")
        assert server.n_received == 5
    rows = {row["error_type"]: row for row in found["rows"]}
    assert {row["strategy"] for row in found["rows"]} == {url(server)}
    assert (rows["LINC"]["spearman"], rows["LINC"]["n"], rows["LINC"]["unreadable"]) == (1.0, 5, 0)
    assert rows["REP"]["spearman"] is None
    # The line that story 4 lacks is missing; its other four count.
    assert (rows["REP"]["n"], rows["REP"]["unreadable"]) == (4, 1)
    assert (rows["DCONT"]["n"], rows["DCONT"]["unreadable"]) == (5, 0)
    (path,) = (tmp_path / "w" / "judgments" / "bench-mateval" / "stories").iterdir()
    # A deduction without its minus is one all the same.
    assert jsonl.read(path, Judgment)[0].verdict == "0 0 0 0 -1"


# ------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize(("command", "message"), rows("a_mistake_is_one_line"))
def test_a_mistake_is_one_line(faireval, stories, tmp_path, capsys, command, message):
    """What is wrong and what to do; exit code 1; no judgments."""
    said = command.format(stories=stories).split()
    given = [] if "--data" in said else ["--data", str(faireval)]
    assert main(["bench", *said, *given, "--dir", str(tmp_path / "w")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list((tmp_path / "w").rglob("judgments/**/*.jsonl"))
