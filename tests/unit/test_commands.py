"""Requests: each is a command with its flags, a function with its arguments, and pickles."""

import ast
import inspect
import pickle
from importlib import import_module

import pytest

import botchat
import botchat.requests
from botchat.cli.main import main
from botchat.papers import botchat_figures
from botchat.pipeline import reading
from botchat.requests import arguments, requests
from botchat.requests.arguments import Asking, flags_of, groups_of

REQUESTS = requests()
COMMANDS = pytest.mark.parametrize("words", REQUESTS)


def flags(request):
    """All of a command, those of its groups among them."""
    return [
        *flags_of(request),
        *(f for group in groups_of(request).values() for f in flags_of(group)),
    ]


@COMMANDS
def test_help_shows_every_flag(words, capsys, monkeypatch):
    """Under its own name or, of a word, its metavar; nothing is declared twice."""
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit) as ended:
        main([*words.split(), "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert len(REQUESTS[words].__doc__.partition("\n")[0]) <= 90  # one sentence
    assert all(f"--{flag}" in shown for flag in ("dir", "json", "quiet"))
    assert "--plan" in shown or not issubclass(REQUESTS[words], Asking)
    names = [flag.name for flag in flags(REQUESTS[words])]
    assert len({*names}) == len(names)
    shown = " ".join(shown.split())
    for flag in flags(REQUESTS[words]):
        assert (flag.arg.metavar or flag.name) in shown
        assert flag.arg.help in shown


def test_there_are_few_commands_and_flags():
    """A new one takes the place of another."""
    assert len(REQUESTS) <= 24
    said = {f.name for one in REQUESTS.values() for f in flags(one) if not f.arg.word}
    assert len(said) <= 55


SAID = {"judge", "browser", "gate"}
"""Read by `vars`, or by who shows the result."""


@COMMANDS
def test_every_flag_is_read(words):
    """One that is only declared would be accepted and ignored."""
    request = REQUESTS[words]
    does = import_module(f"botchat.{request.does.partition(':')[0]}")
    read = set()
    for of in (does, arguments, botchat_figures, reading):
        nodes = ast.walk(ast.parse(inspect.getsource(of)))
        read |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert {flag.field.name for flag in flags_of(request)} - SAID <= read


VERBS = [
    getattr(botchat, name)
    for name, one in vars(botchat.requests).items()
    if hasattr(one, "request")
]


@pytest.mark.parametrize("function", VERBS, ids=lambda one: one.__name__)
def test_the_function_explains_every_parameter(function):
    """``help(botchat.run)``; positions are those of the class."""
    first, *others = inspect.signature(function).parameters
    assert (first, others) == ("workspace", list(inspect.signature(function.request).parameters))
    for flag in flags_of(function.request):
        assert f"{flag.field.name}: {flag.arg.help}" in function.__doc__


@pytest.mark.parametrize("words", [w for w in REQUESTS if issubclass(REQUESTS[w], Asking)])
def test_a_worker_gets_it(words):
    """It pickles; lists from Python are as good as tuples."""
    kind = REQUESTS[words]
    needed = {one.field.name: one for one in flags_of(kind) if one.is_needed}
    made = kind(**{name: ["a"] if one.values is None else "a" for name, one in needed.items()})
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 (our own)
    assert list not in {type(value) for value in vars(made).values()}
