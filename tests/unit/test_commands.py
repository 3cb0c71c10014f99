"""`botchat/cli/commands.toml`: every command there can be called, with every flag."""

import ast
import tomllib
from dataclasses import fields
from importlib import resources

import pytest

from botchat.cli.main import main
from botchat.pipeline.adaptive import Adaptive
from botchat.pipeline.bench import Benching
from botchat.pipeline.evaluate import Evaluating
from botchat.pipeline.generate import Generating
from botchat.pipeline.inject import Injecting
from botchat.pipeline.judge import Judging
from botchat.pipeline.probe import Probing
from botchat.pipeline.probe_polarity import ProbingPolarity

FOLDER = resources.files("botchat.cli")
DECLARED = tomllib.loads(FOLDER.joinpath("commands.toml").read_text("utf-8"))


def commands(declared, before=()):
    """Every command that runs something, with the words that call it."""
    for command in declared:
        words = (*before, command["name"])
        if "commands" in command:
            yield from commands(command["commands"], words)
        else:
            yield command | {"words": words}


COMMANDS = list(commands(DECLARED["commands"]))


def flags_of(command):
    """Its flags, those of groups among them."""
    groups = DECLARED["groups"]
    entries = command.get("flags", ())
    return [f for one in entries for f in (groups[one] if isinstance(one, str) else [one])]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one["run"])
def test_help_shows_every_flag(command, capsys, monkeypatch):
    """Under its own name or, of a positional argument, its metavar."""
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit) as ended:
        main([*command["words"], "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(f"--{flag}" in shown for flag in EVERYWHERE)
    for flag in flags_of(command):
        assert flag["flag"] in shown or flag["metavar"] in shown
        assert flag.get("help", "") in shown


def test_every_group_is_used():
    """And every name of a group is one."""
    named = {entry for one in COMMANDS for entry in one.get("flags", ()) if isinstance(entry, str)}
    assert named == set(DECLARED["groups"])


FUNCTIONS = {
    f"{module}.{one.name}" if module in ("ask", "show") else one.name: one
    for module in ("ask", "show", "output")
    for one in ast.parse(FOLDER.joinpath(f"{module}.py").read_text("utf-8")).body
    if isinstance(one, ast.FunctionDef)
}


def reads(name):
    """The names that a function takes from its ``arguments``, itself or in what it calls."""
    module, _, _ = name.rpartition(".")
    found = set()
    for node in ast.walk(FUNCTIONS[name]):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "arguments":
            found.add(node.attr)
        elif isinstance(node, ast.Call) and any(ast.unparse(a) == "arguments" for a in node.args):
            called = ast.unparse(node.func)
            found |= reads(called if called in FUNCTIONS else f"{module}.{called}")
    return found


EVERYWHERE = {"dir", "json", "quiet", "wide", "columns", "format"}
READ_EVERYWHERE = EVERYWHERE - {"format"} | {"printed", "parser"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one["run"])
def test_every_flag_is_read_and_what_is_read_is_a_flag(command):
    """One that is only declared would be accepted and ignored."""
    declared = {
        flag.get("dest", flag["flag"].lstrip("-").replace("-", "_")) for flag in flags_of(command)
    }
    assert reads(command["run"]) - READ_EVERYWHERE == declared


REQUESTS = {
    one.__name__: one
    for one in (
        Generating,
        Judging,
        Adaptive,
        Probing,
        ProbingPolarity,
        Benching,
        Injecting,
        Evaluating,
    )
}


@pytest.mark.parametrize("module", ["cli/ask.py", "pipeline/api.py"])
def test_requests_are_made_of_all_their_fields(module):
    """One that is left out could not be asked for from there."""
    tree = ast.parse(resources.files("botchat").joinpath(module).read_text("utf-8"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    made = {
        ast.unparse(call.func): len(call.args) + len(call.keywords)
        for call in calls
        if ast.unparse(call.func) in REQUESTS
    }
    assert made == {name: len(fields(request)) for name, request in REQUESTS.items()}
