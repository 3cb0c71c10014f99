"""Who was asked: a preflight that fails, new weights under an old name, files that were changed."""

from __future__ import annotations

import json

import pytest

import botchat
from botchat.cli.main import main
from botchat.records import Seed
from tests.openai_server import Server

SEEDS = [Seed(f"s{n}", (f"hello from {n}", f"hi, {n}", "fine", "bye")) for n in range(3)]


def entry(name, url, *more):
    """Lines of an entry in ``botchat.toml``."""
    return "\n".join([f"[models.{name}]", f'model = "{name}-1"', f'base_url = "{url}"', *more, ""])


@pytest.fixture
def place(tmp_path, server):
    """A workspace with a set of three, and a model ``m`` at a server."""
    botchat.Workspace(tmp_path).write_seeds("small", SEEDS)
    (tmp_path / "botchat.toml").write_text(entry("m", server.url))
    return tmp_path


def did(place, *command, code=0):
    """Run a command on the workspace; its exit code is checked."""
    assert main([*map(str, command), "--dir", str(place)]) == code


def test_a_check_of_models_says_what_each_answered_and_fails_with_the_first_that_did_not(
    place, server, capsys, monkeypatch
):
    """Only configured models, with the answer beside the name; none configured checks nothing."""
    with Server(api_key="right") as strict:
        keyed = entry("keyed", strict.url, 'api_key_env = "KEY"')
        (place / "botchat.toml").write_text(entry("open", server.url) + keyed)
        monkeypatch.setenv("KEY", "wrong")
        did(place, "models", "--check", code=1)
        said = capsys.readouterr()
        assert said.err.splitlines()[-1] == "botchat: no answer from keyed: see why above"
        heading, *rows = said.out.splitlines()
        assert heading.split() == ["name", "answer", "what"]
        assert [row.split()[0] for row in rows] == ["keyed", "open"]
        assert "401" in rows[0]
        assert " ok in 0." in rows[1]
        monkeypatch.setenv("KEY", "right")
        did(place, "models", "--check", "--json")
        assert [row["ok"] for row in json.loads(capsys.readouterr().out)["rows"]] == [True, True]
        asked = strict.n_received
        did(place, "models", "--check")
        assert strict.n_received == asked + 1  # never from the ledger
    (place / "botchat.toml").write_text("")
    capsys.readouterr()
    did(place, "models", "--check", code=1)
    assert "nothing was checked" in capsys.readouterr().err
