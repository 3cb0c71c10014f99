"""`botchat label`: the page of blind cases, made now and served to this machine."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.requests import generate, judge
from botchat.workspace.folder import SAMPLE, Workspace
from tests.commands import refused
from tests.processes import Started


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two bots' dialogues on three seeds, judged by rules; no page."""
    found = Workspace(tmp_path_factory.mktemp("workspace"))
    generate(found, SAMPLE, ["bot:eliza", "bot:parrot"], limit=3)
    judge(found, "unieval", SAMPLE, "rules")
    return found


def test_it_makes_and_serves_the_page(workspace: Workspace) -> None:
    """No report is needed; the address says what to label and who labels."""
    asked = ["--seeds", SAMPLE, "--protocol", "unieval", "--name", " Amy", "--no-browser"]
    labelling = Started(["label", *asked, "--dir", workspace.root])
    url = labelling.stdout.readline().split()[0]
    assert url.endswith("/sample/game.html?rater=amy&protocol=unieval&label=1")
    with urllib.request.urlopen(url) as answer:
        assert b"Can you tell?" in answer.read()
    labelling.terminate()
    labelling.communicate()
    chunks = workspace.out(SAMPLE) / "chunks"
    assert sorted(path.name for path in chunks.iterdir()) == [
        "answers-0-0.js", "answers-1-0.js", "game-0-0.js", "game-1-0.js",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--protocol", "none"], "unknown protocol 'none'"),
        (["--name", "x" * 61], "1 to 60 characters"),
        (["--plan"], "make one with: botchat label plan --seeds sample"),
        (["--seeds", "other"], "no seed set 'other'"),
    ],
)
def test_what_cannot_be_labelled_is_said(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], flags: list[str], says: str
) -> None:
    """In one line, before anything is served."""
    command = ["label", "--seeds", SAMPLE, "--no-browser", "--dir", str(workspace.root)]
    assert says in refused(capsys, [*command, *flags])


@pytest.mark.parametrize("line", ['{"protocol": ', "[1]", json.dumps("x")])
def test_a_plan_that_is_none_is_named(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """With its file and line."""
    plan = Path(workspace.out(SAMPLE) / "label-plan.jsonl")
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(f"{line}\n", "utf-8")
    command = ["label", "--seeds", SAMPLE, "--no-browser", "--plan", "--dir", str(workspace.root)]
    try:
        assert main(command) == 1
    finally:
        plan.unlink()
    assert "label-plan.jsonl:1: " in capsys.readouterr().err
