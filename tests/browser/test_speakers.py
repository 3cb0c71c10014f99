"""People label by speaker: who of them are machines, and which one is."""

from __future__ import annotations

from pathlib import Path

from botchat.cli.main import main
from botchat.pipeline.label import game_path
from botchat.pipeline.view import Server as View
from botchat.records import Judgment
from botchat.workspace import files
from botchat.workspace.folder import Workspace
from tests.browser.conftest import Browser
from tests.browser.test_game import click
from tests.view_door import running

CHAT = (
    '{"id": "c", "turns": [["x", "Hi."], ["y", "Hello."], ["y", "Well?"], ["z", "As an AI, no."]],'
    ' "who": {"x": "human", "y": "human", "z": "gpt"}}'
)


def test_a_person_says_of_each_speaker_and_names_one(browser: Browser, tmp_path: Path) -> None:
    """Letters of those who speak, several utterances in a row; saved as judges' verdicts are."""
    (tmp_path / "x.jsonl").write_text(CHAT)
    place = ["--dir", str(tmp_path / "w")]
    assert main(["dialogues", "import", str(tmp_path / "x.jsonl"), "--set", "s", *place]) == 0
    workspace = Workspace(tmp_path / "w")
    for protocol, answers, verdict in (
        ("speakers", ["person", "cannot tell", "machine"], "No Undecided Yes"),
        ("which", ["Speaker C"], "3"),
    ):
        assert main(["judge", protocol, "--judge", "rules", "--seeds", "s", *place]) == 0
        with running(View(workspace, "s")) as view:
            path = game_path(workspace, "s", protocol=protocol, name="amy")
            browser.driver.get(view.root.rstrip("/") + path)
            click(browser, "Start")
            browser.text(".play h1")
            shown = [one.text for one in browser.driver.find_elements("css selector", ".number")]
            assert shown == ["A 1", "B 2", "B 3", "C 4"]
            if protocol == "which":
                click(browser, answers[0])
            else:
                buttons = browser.driver.find_elements("css selector", ".answers button")
                for at, word in enumerate(answers):
                    words = ["person", "machine", "cannot tell"]
                    buttons[3 * at + words.index(word)].click()
            label = workspace.judgments_path("s", protocol, "human:amy")
            browser.until(label.exists)
            browser.driver.get("about:blank")
        assert [one.verdict for one in files.read(label, Judgment)] == [verdict]
