"""From a judged set over drawn cases and people's labels to the board, on the command line."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from botchat.cli.main import main
from botchat.pipeline.label import save
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace

BOTS = ("bot:eliza", "bot:parrot", "bot:retrieval")


def run(folder: Path, *command: str, code: int = 0) -> None:
    """A command in the workspace."""
    assert main([*command, "--dir", str(folder)]) == code


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three bots on the sample, judged by rules."""
    folder = tmp_path_factory.mktemp("judged")
    models = [word for bot in BOTS for word in ("--model", bot)]
    run(folder, "generate", "--seeds", "sample", "--limit", "24", "--turns", "8", *models)
    for protocol in (["unieval"], ["gteval"], ["arena", "--turns", "8"]):
        run(folder, "judge", *protocol, "--seeds", "sample", "--judge", "rules")
    return folder


def plan(folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[dict, list[dict]]:
    """What the command says, and the lines of the file that it wrote."""
    capsys.readouterr()
    run(folder, "label", "plan", "--seeds", "sample", "--json", *flags)
    said = json.loads(capsys.readouterr().out)
    path = Path(said["path"])
    assert path == folder / "leaderboards" / "sample" / "label-plan.jsonl"
    return said, [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def label(folder: Path, protocol: str, cases: list[dict], person: str = "human:amy") -> Path:
    """Put a person's file there: what the judge said of these cases, in the order shown."""
    workspace = Workspace(folder)
    made = workspace.judgments(workspace.judgments_path("sample", protocol, "rules"))
    path = folder / "judgments" / "sample" / protocol / "from-the-page.jsonl"
    labels = [
        msgspec.structs.replace(
            made[one["seed_id"], tuple(one["contestants"])], judge=person, transcript=(), calls=()
        )
        for one in cases
    ]
    store.write_atomic(path, b"".join(msgspec.json.encode(one) + b"\n" for one in labels))
    return path


@pytest.mark.parametrize(("protocol", "n"), [("unieval", None), ("arena-n8", 8), ("gteval", None)])
def test_as_many_of_each_model_are_drawn(judged, capsys, protocol, n):
    """At random: another seed draws others, the same draws the same, a larger budget more."""
    said, lines = plan(judged, capsys, "--protocol", protocol, "--budget", "36")
    assert said["planned"] == len(lines) == 36
    assert {(one["protocol"], one["n"]) for one in lines} == {(protocol, n)}
    count = Counter(name for one in lines for name in one["contestants"])
    if protocol == "gteval":
        assert count.pop("human") == 36
    # People are drawn too where they are alone: labels have to tell them from machines.
    each = {"unieval": 9, "arena-n8": 24, "gteval": 12}[protocol]
    assert count == dict.fromkeys((*BOTS, "human")[: 4 if each == 9 else 3], each)
    cases = {(one["seed_id"], *sorted(one["contestants"])) for one in lines}
    assert len(cases) == 36
    again = plan(judged, capsys, "--protocol", protocol, "--budget", "36")
    assert again == (said, lines)
    _, more = plan(judged, capsys, "--protocol", protocol, "--budget", "48")
    assert more[:36] == lines
    _, others = plan(judged, capsys, "--protocol", protocol, "--budget", "36", "--seed", "1")
    assert {(one["seed_id"], *sorted(one["contestants"])) for one in others} != cases
    if protocol != "unieval":
        assert len({tuple(one["contestants"]) for one in lines}) > len(set(count))


def test_labels_count_towards_the_budget_and_correct_the_board(judged, capsys):
    """Plan, label, look at the board, plan on."""
    _, lines = plan(judged, capsys, "--budget", "60")
    path = label(judged, "unieval", lines[:40])
    try:
        said, rest = plan(judged, capsys, "--budget", "60")
        assert rest == lines[40:]
        assert {(row["labelled"], row["planned"]) for row in said["rows"]} == {(10, 5)}
        assert plan(judged, capsys, "--budget", "40")[1] == []
        run(judged, "leaderboard", "--seeds", "sample", "--judge", "rules", "--json")
        board = json.loads(capsys.readouterr().out)
        rows = board["tables"]["as-people-judge"]["rows"]
        told = {row["model"]: row for row in rows if row["number"] == "UniEval: success @8"}
        for bot in BOTS:
            assert told[bot]["labels"] == 10
            assert told[bot]["people_low"] < told[bot]["people_high"]
            # Labels that agree with the judge leave its rate, as far as 10 can tell.
            assert told[bot]["people_low"] <= told[bot]["judge"] <= told[bot]["people_high"]
        assert told["human"]["labels"] == 10
        folder = judged / "leaderboards" / "sample"
        assert (folder / "as-people-judge.csv").exists()
        assert "As people judge" in (folder / "index.html").read_text("utf-8")
    finally:
        path.unlink()


def test_people_agree_with_the_truth_and_judges_with_people(judged, capsys):
    """What was drawn, labelled by who knows nearly always, has a kappa above 0, with an interval.

    A plan without people's dialogues had one class only: kappa was 0.000, whoever labelled.
    """
    _, lines = plan(judged, capsys, "--budget", "64")
    workspace = Workspace(judged)
    made = workspace.judgments(workspace.judgments_path("sample", "unieval", "rules"))
    rows = [
        {
            "seed_id": one["seed_id"],
            "judge": "human:amy",
            "verdict": "No" if (one["contestants"] == ["human"]) == (i % 8 > 0) else "3",
            "case": made[one["seed_id"], tuple(one["contestants"])].case,
        }
        for i, one in enumerate(lines)
    ]
    save(workspace, {"set": "sample", "protocol": "unieval", "rows": rows})
    try:
        asked = ["agree", "--seeds", "sample", "--protocol", "unieval", "--json"]
        for flags, judge in ((["--truth", "built-in"], "human:amy"), ([], "rules")):
            capsys.readouterr()
            run(judged, *asked, *flags)
            told = json.loads(capsys.readouterr().out)
            (row,) = [one for one in told["rows"] if one["judge"] == judge]
            assert row["n"] == 64
            assert 0 < row["kappa_low"] < row["kappa"] < row["kappa_high"] < 1, row
    finally:
        workspace.judgments_path("sample", "unieval", "human:amy").unlink()


def test_floor_bots_are_not_drawn_where_there_are_models(judged, tmp_path, capsys):
    """And a colleague's file is taken, once; what it cannot be is one line."""
    folder = Path(shutil.copytree(judged, tmp_path / "copy"))
    for place in ("generations", "judgments"):
        for path in (folder / place).rglob("*.jsonl"):
            path.write_text(path.read_text("utf-8").replace('"bot:eliza"', '"eliza"'), "utf-8")
    lines = plan(folder, capsys, "--budget", "16")[1]
    assert Counter(name for one in lines for name in one["contestants"]) == {"eliza": 8, "human": 8}
    file = label(folder, "unieval", lines).rename(tmp_path / "amy.jsonl")
    take = ["label", "import", str(file), "--seeds", "sample"]
    for new in (16, 0):
        capsys.readouterr()
        run(folder, *take, "--json")
        (told,) = json.loads(capsys.readouterr().out)["rows"]
        assert (told["judge"], told["protocol"], told["labels"]) == ("human:amy", "unieval", new)
    assert plan(folder, capsys, "--budget", "16")[1] == []
    for text, why in (
        (file.read_text("utf-8").replace("human:amy", "rules"), "labels are those of human:NAME"),
        (file.read_text("utf-8").replace('"case":"', '"case":"x'), "no dialogues of now"),
        ("", "no labels in"),
        ("[]\n", "other.jsonl:1"),
    ):
        other = tmp_path / "other.jsonl"
        other.write_text(text, "utf-8")
        run(folder, "label", "import", str(other), "--seeds", "sample", code=1)
        assert why in capsys.readouterr().err


def test_a_label_of_another_dialogue_does_not_count(judged, capsys):
    """As with any judge, one of a dialogue that has changed since is stale."""
    _, lines = plan(judged, capsys, "--budget", "12")
    path = label(judged, "unieval", lines)
    try:
        text = path.read_text("utf-8")
        said = [json.loads(line) | {"case": "0" * 16} for line in text.splitlines()]
        path.write_text("".join(json.dumps(one) + "\n" for one in said), "utf-8")
        assert plan(judged, capsys, "--budget", "12")[1] == lines
    finally:
        path.unlink()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--budget", "0"), "--budget 0: at least one case has to be labelled"),
        (("--budget", "-3"), "--budget -3: at least one case has to be labelled"),
        (("--judge", "nobody"), "'nobody' has not judged sample; judges who have: rules"),
        (("--protocol", "arena"), "--protocol arena: rules judged unieval, arena-n8, gteval"),
    ],
)
def test_what_cannot_be_is_one_line(judged, capsys, flags, said):
    """Nothing is written."""
    path = judged / "leaderboards" / "sample" / "label-plan.jsonl"
    path.unlink(missing_ok=True)
    run(judged, "label", "plan", "--seeds", "sample", *flags, code=1)
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not path.exists()


def test_people_are_no_judge_to_correct(judged, capsys):
    """One line; without ``--judge`` the only judge that is no person is meant."""
    _, lines = plan(judged, capsys, "--budget", "3")
    path = label(judged, "unieval", lines)
    try:
        run(judged, "label", "plan", "--seeds", "sample", "--judge", "human:amy", code=1)
        assert "human:amy is a person" in capsys.readouterr().err
        assert plan(judged, capsys, "--budget", "3")[0]["planned"] == 0
    finally:
        path.unlink()
