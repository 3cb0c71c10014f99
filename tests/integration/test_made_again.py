"""What a run makes again, at what cost, and what it counts as new."""

import re
import sqlite3
from contextlib import closing

import pytest

import botchat
from botchat.cli.main import main
from tests.commands import said
from tests.integration.test_runs import stage_files, workspace
from tests.openai_server import Server, converse, faults, text

GENERATE = ("generate", "--seeds", "small", "--turns", "6", "--model", "alpha")
JUDGE = ("judge", "unieval", "--seeds", "small", "--judge", "umpire", "--turns", "2")


def silent(call):
    """A model and a judge that show nothing about one seed."""
    if any("talk 1" in message["content"] for message in call.messages):
        return text("")
    return converse(call)


def forget_empty(folder):
    """Let the ledger lose the replies that show nothing, as a model with more room would."""
    with closing(sqlite3.connect(folder / ".botchat" / "ledger.sqlite3")) as ledger:
        ledger.execute("DELETE FROM calls WHERE outcome = 'empty'")
        ledger.commit()


@pytest.mark.parametrize("command", [GENERATE, JUDGE], ids=["generate", "judge"])
def test_a_reply_that_showed_nothing_is_looked_up_again(tmp_path, capsys, command):
    """From the ledger, at no cost, byte for byte; asked again where the ledger has no answer."""
    with Server(silent) as server:
        folder = workspace(tmp_path / "w", server, 3)
        said(capsys, *GENERATE, "--dir", folder)
        (row,) = said(capsys, *command, "--dir", folder)["rows"]
        before, n_sent = stage_files(folder), server.n_received
        assert said(capsys, *command, "--plan", "--dir", folder)["rows"][-1]["calls"] == 0
        again = said(capsys, *command, "--dir", folder)
        assert again["rows"] == [{**row, "new": 0}]
        assert (again["calls"], server.n_received, stage_files(folder)) == (0, n_sent, before)
        assert again["replayed"] > 0
        forget_empty(folder)
        server.play(converse)
        (row,) = said(capsys, *command, "--dir", folder)["rows"]
        assert row["new"] >= 1
        assert row.get("unreadable", 0) == len(row.get("stopped", ())) == 0
        assert server.n_received > n_sent


@pytest.mark.parametrize("reply", [text(""), text(None, refusal="I would rather not.")])
def test_dialogues_without_an_utterance_are_made_with_other_settings(tmp_path, capsys, reply):
    """After max_tokens was raised the same command goes on: nothing would be overwritten."""
    with Server(reply) as server:
        folder = workspace(tmp_path / "w", server, 3, max_tokens=16)
        (row,) = said(capsys, *GENERATE, "--dir", folder)["rows"]
        assert (row["complete"], row["new"]) == (0, 3)
        server.play(converse)
        workspace(folder, server, 3, max_tokens=1024)
        (row,) = said(capsys, *GENERATE, "--dir", folder)["rows"]
        assert (row["complete"], row["new"]) == (3, 3)
        workspace(folder, server, 3, max_tokens=16)
        assert main([*GENERATE, "--dir", str(folder)]) == 1
        assert "3 dialogues on small made with other settings" in capsys.readouterr().err


THOUGHTS = text("", reasoning_content="Hm, well.", finish_reason="length")


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (faults.refused(), "stopped, refused: refusal"),
        (faults.content_filtered(), "stopped, filtered: finish_reason content_filter"),
        (faults.context_overflow(), "stopped, overflow: HTTP 400: This model's maximum"),
        (text(""), "stopped, empty: no text (finish_reason stop)"),
        (THOUGHTS, None),
        (faults.unauthorized(), None),
        (text("Fine, thanks."), None),
    ],
)
def test_why_a_dialogue_stops_is_told_once(tmp_path, caplog, reply, line):
    """While the run goes on; what the model is told of already is not told twice."""
    with Server(reply) as server:
        folder = workspace(tmp_path / "w", server, 3)
        main([*GENERATE, "--dir", str(folder)])
    told = [record.getMessage() for record in caplog.records]
    stops = [each for each in told if "stopped" in each]
    assert len(stops) == (line is not None)
    if line:
        assert re.match(rf"alpha on s\d: {re.escape(line)}", stops[0])
    assert sum("no visible text" in each for each in told) == (reply is THOUGHTS)


def test_each_kind_of_stop_is_told_of_each_contestant(tmp_path, caplog):
    """One line a kind and contestant, cross-play too."""

    def ends(call):
        if "talk 1" in call.messages[-1]["content"]:
            return faults.refused()
        return faults.content_filtered()

    with Server(ends) as server:
        folder = workspace(tmp_path / "w", server, 4)
        main([*GENERATE, "--dir", str(folder)])
        main([*GENERATE, "--partner", "beta", "--dir", str(folder)])
    told = [re.sub(r" on s\d: | ?refusal$", " ", r.getMessage()) for r in caplog.records]
    kinds = [line.rpartition(": ")[0] for line in told if "stopped" in line]
    assert sorted(kinds) == [
        "alpha + beta stopped, filtered",
        "alpha + beta stopped, refused",
        "alpha stopped, filtered",
        "alpha stopped, refused",
    ]


def test_a_dialogue_that_no_model_made_is_not_new(tmp_path):
    """A model whose key is wrong has made none, and stays out of what has changed."""

    def one_is_dead(call):
        return faults.unauthorized() if call.model == "beta" else converse(call)

    with Server(one_is_dead) as server:
        folder = workspace(tmp_path / "w", server, 3)
        made = botchat.run(
            workspace=folder, seeds="small", model=["alpha", "beta"], judge="rules", limit=2
        )
    assert {row["model"]: row["new"] for row in made.data["generated"]} == {"alpha": 2, "beta": 0}
