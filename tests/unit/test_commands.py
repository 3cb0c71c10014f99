"""`botchat/cli/commands.toml`: every command there can be called, with every flag."""

import tomllib
from importlib import resources

import pytest

from botchat.cli.main import main

DECLARED = tomllib.loads(
    resources.files("botchat.cli").joinpath("commands.toml").read_text("utf-8")
)


def leaves(commands, before=()):
    """The words that call each command, and its flags."""
    for command in commands:
        words = (*before, command["name"])
        if "commands" in command:
            yield from leaves(command["commands"], words)
            continue
        groups = DECLARED["groups"]
        entries = command.get("flags", ())
        lists = [groups[one] if isinstance(one, str) else [one] for one in entries]
        yield words, [flag for listed in lists for flag in listed]


@pytest.mark.parametrize(("words", "flags"), list(leaves(DECLARED["commands"])))
def test_help_shows_every_flag(words, flags, capsys, monkeypatch):
    """Under its own name or, of a positional argument, its metavar."""
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert "--dir" in shown
    assert "--json" in shown
    for flag in flags:
        assert flag["flag"] in shown or flag["metavar"] in shown
        assert flag.get("help", "") in shown


def test_every_group_is_used():
    """And every name of a group is one."""
    named = {
        entry
        for command in DECLARED["commands"]
        for entry in command.get("flags", ())
        if isinstance(entry, str)
    }
    assert named == set(DECLARED["groups"])
