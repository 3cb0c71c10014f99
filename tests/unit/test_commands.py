"""Commands: few, each with one screen of help, and the same as functions of Python."""

import inspect
import json

import pytest

import botchat
from botchat.cli.main import main
from botchat.commands import app
from tests.rows import rows

COMMANDS = [name for name in app if not name.startswith("-")]
EVERYWHERE = {"--dir", "--json", "--quiet", "--help", "--version"}


def flags(command):
    """The flags of a command, without those of every command."""
    arguments = app[command].assemble_argument_collection()
    return {argument.name for argument in arguments if argument.show and "--" in argument.name}


def test_there_are_18_commands_and_40_flags():
    """A new one takes the place of another."""
    assert len(COMMANDS) == 18
    assert len(EVERYWHERE.union(*map(flags, COMMANDS))) <= 40


@pytest.mark.parametrize("words", [[], ["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_is_one_screen_with_every_flag(words, capsys, monkeypatch):
    """80 columns, 40 lines; no command at all shows the help."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    shown = "\n".join(lines)
    expected = flags(words[0]) if words[1:] else {*COMMANDS, "--version"}
    assert not [name for name in {*expected, "--dir", "--json", "--quiet"} if name not in shown]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_a_function(name):
    """With the flags as parameters, a sentence that explains it, and a `Result`."""
    function = getattr(botchat, {"import": "import_", "models": "models_"}.get(name, name))
    parameters = inspect.signature(function).parameters
    given = {flag.removeprefix("--").replace("-", "_") for flag in flags(name)}
    assert given <= {*parameters, "max_usd", "max_calls", "max_tokens", "batch", "executor", "plan"}
    assert function.__doc__.partition("\n")[0].endswith((".", "?"))
    assert function.__annotations__["return"] == "Result"


@pytest.mark.parametrize("words", rows("flags_of_every_command_may_stand_anywhere"))
def test_flags_of_every_command_may_stand_anywhere(words, tmp_path, capsys):
    """Before the command, and behind it."""
    (tmp_path / "seeds").mkdir()
    line = '{"id":"s1","utterances":["a","b","c","d"]}\n'
    (tmp_path / "seeds" / "mine.jsonl").write_text(line)
    assert main([word.format(tmp_path) for word in words]) == 0
    assert [row["set"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["sample", "mine"]


@pytest.mark.parametrize(("words", "line"), rows("a_mistake_of_usage_is_one_line"))
def test_a_mistake_of_usage_is_one_line(words, line, capsys):
    """It says what may be meant, and the exit code is 2."""
    assert main(words.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert line in error
