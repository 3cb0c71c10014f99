"""`leaderboard` says whether its judge can be trusted; a page may have several judges."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from botchat.boards import judge_verdict
from botchat.cli.main import main
from botchat.pipeline.ledger import conversation_costs
from botchat.records import HUMAN, Judgment
from botchat.report import figures
from botchat.report.figures import agreement
from botchat.requests import generate, judge
from botchat.workspace.folder import SAMPLE, Workspace

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two bots on three seeds, judged by the rules, by one who never accuses, and by a person."""
    found = Workspace(tmp_path_factory.mktemp("workspace"))
    generate(found, SAMPLE, ["bot:parrot", "bot:verbose"], limit=3)
    for protocol in ("unieval", "gteval"):
        judge(found, protocol, SAMPLE, "rules")
        (path,) = (found.root / "judgments" / SAMPLE / protocol).glob("*.jsonl")
        said = [msgspec.json.decode(line, type=Judgment) for line in path.read_bytes().splitlines()]
        innocent = "No" if protocol == "unieval" else "neither"
        for name, verdict in (("never", innocent), ("human:amy", None)):
            lines = [
                msgspec.json.encode(
                    msgspec.structs.replace(one, judge=name, verdict=verdict or one.verdict)
                )
                for one in said
            ]
            slug = name.replace(":", "-")
            path.with_name(f"{slug}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return found


@pytest.fixture
def workspace(made: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it, whose figures are not drawn: they take most of the time."""
    for module in (figures, agreement):
        monkeypatch.setattr(module, "draw", lambda *_: [])
    return Workspace(Path(shutil.copytree(made.root, tmp_path / "copy")))


def ranked(workspace: Workspace, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """What `leaderboard` prints."""
    where = ["--seeds", SAMPLE, "--dir", str(workspace.root)]
    assert main(["leaderboard", *where, *flags]) == 0
    return capsys.readouterr().out


def test_a_verdict_does_not_depend_on_who_is_on_the_page(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels that lie there count at once, and not only after a page of everybody was made."""
    monkeypatch.setattr(judge_verdict, "LEAST", 3)
    (workspace.root / "judgments" / SAMPLE / "unieval" / "never.jsonl").unlink()
    (workspace.root / "judgments" / SAMPLE / "gteval" / "never.jsonl").unlink()
    board = workspace.out(SAMPLE) / "leaderboard.json"
    ranked(workspace, capsys)
    told = json.loads(board.read_bytes())["judge"]
    assert told["name"] == "rules", "who labels is no judge of a plain leaderboard"
    (agrees,) = (check for check in told["checks"] if check["key"] == "people_agree")
    assert agrees["value"] == 1
    ranked(workspace, capsys, "--judge", "rules", "--judge", "human:amy")
    assert json.loads(board.read_bytes())["judge"] == told


def test_tables_are_of_the_judge_who_was_asked(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are made for the page only, and change no number."""
    ranked(workspace, capsys, "--judge", "rules")
    folder = workspace.out(SAMPLE)
    alone = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    assert alone
    ranked(workspace, capsys, "--judge", "rules", "--judge", "never")
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == alone
    assert '"judges":["rules","never"]' in (folder / "index.html").read_text("utf-8")


def test_the_terminal_ends_with_the_verdict(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line of at most 80 columns; ``--json`` and leaderboard.json have it whole."""
    last = ranked(workspace, capsys, "--judge", "never").splitlines()[-1]
    assert last.startswith("judge never: do not trust – finds the machine beside a person never")
    assert len(last) <= 80
    printed = json.loads(ranked(workspace, capsys, "--judge", "never", "--json"))
    written = json.loads((workspace.out(SAMPLE) / "leaderboard.json").read_text("utf-8"))
    for found in (printed, written):
        assert found["judge"]["name"] == "never"
        assert found["judge"]["verdict"] == "do not trust"
        assert found["judge"]["reasons"][1] == "It catches 0 % of scripts (0–56 %)."
        assert {"key", "state", "number", "low", "high"} <= found["judge"]["checks"][0].keys()
    text = (workspace.out(SAMPLE) / "leaderboard.md").read_text("utf-8")
    assert "Judge never: do not trust. Beside a person it never picks" in text


def test_a_conversation_costs_what_its_calls_cost(workspace: Workspace) -> None:
    """Bots are free; who has no call in the ledger is not known, and people are no model."""
    dialogues = workspace.all_dialogues(SAMPLE)
    assert conversation_costs(workspace, dialogues) == {"bot:verbose": 0.0, "bot:parrot": 0.0}
    some = dict(dialogues["bot:verbose"])
    for seed_id, one in some.items():
        facts = tuple(msgspec.structs.replace(fact, call="0" * 64) for fact in one.facts)
        some[seed_id] = msgspec.structs.replace(one, facts=facts)
        break
    strange = {"bot:verbose": some, "bot:parrot": dialogues["bot:parrot"], HUMAN: {}}
    assert conversation_costs(workspace, strange) == {"bot:parrot": 0.0}
    workspace.ledger_path.unlink()
    assert conversation_costs(workspace, dialogues) == {}
