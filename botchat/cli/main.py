"""The command line: flags -> one pipeline call. Heavy imports stay inside the commands.

The commands and their flags are in `botchat.requests`. stdout has the results (tables, or one
JSON object with ``--json``), stderr has progress and errors. Exit codes: 0 done, 1 expected error,
2 usage, 3 stopped by a limit (the same command goes on), 4 a gate, 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import gc
import inspect
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from botchat.cli.output import LogFormatter, complain, perform, public_line
from botchat.cli.signals import ENDS, lasting_stderr, take_signals
from botchat.errors import BotChatError, did_you_mean
from botchat.requests import HELP, requests
from botchat.requests.arguments import GROUPS, Asking, Option, Request, flags_of, groups_of


def entry() -> NoReturn:
    """Console script: `main`, with its result as exit code."""
    sys.stderr = lasting_stderr()
    try:
        code = main()
    except KeyboardInterrupt:  # before a command began, or when it was done
        code = 130
    for ends in ENDS:  # nothing is left to be stored
        signal.signal(ends, signal.SIG_IGN)
    # The system takes all memory back at once; looking through it for garbage takes longer.
    gc.freeze()
    gc.disable()
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = _read(argv)
    # Matrices here are small: more threads of numpy's library only wait for each other, busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("botchat: %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # It would report tasks that a second Ctrl-C leaves unfinished.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    take_signals()
    try:
        arguments.command(arguments)
        sys.stdout.flush()
    except BotChatError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted; everything received is stored, run the same command to go on")
        return 130
    except OSError as error:
        if error.errno not in _UNHEARD:
            raise
        if error.errno == errno.ENOSPC:
            complain(f"cannot write the output: {error.strerror}")
        # The reader (head, less, a terminal) went away; silence the flush at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


_UNHEARD = (errno.EPIPE, errno.EIO, errno.ENOSPC)
"""Errors of an output that nobody reads, or that is full."""


class _Parser(argparse.ArgumentParser):
    """Its errors repeat the command line, which may hold anything, and say what may be meant."""

    given: Sequence[str] = ()
    fill: Callable[[], object] | None = None
    """Adds its flags: those of one command of 45 are asked for."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """A flag is given whole: ``--seed`` for ``--seeds`` once sent 504 paid calls."""
        super().__init__(*args, **{**settings, "allow_abbrev": False})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As it does, keeping the words for `error`."""
        self.filled()
        self.given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(self.given, namespace)

    def filled(self) -> None:
        """Have all flags."""
        fill, self.fill = self.fill, None
        if fill is not None:
            fill()

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, in one line, and exit."""
        if wrong := _CHOICE.search(message):
            choices = [choice.strip("' ") for choice in wrong[2].split(",")]
            if wrong[1] == "help":
                message = "for help: botchat --help, or botchat COMMAND --help"
            elif message.startswith("argument COMMAND") and self.given[0][:1] == "-":
                message += f"; {self.given[0]} stands behind the command"
            elif "," in wrong[1]:
                message += "; give one, and repeat the flag for more"
            else:
                message += did_you_mean(wrong[1], choices)
        else:
            flags = [flag for action in self._actions for flag in action.option_strings]
            for word in self.given:
                name = word.partition("=")[0]
                if name in flags or not name.startswith("--"):
                    continue
                lacking = [flag for flag in flags if flag in message.replace(",", "").split()]
                hint = did_you_mean(name, lacking)
                message += f"; no flag {name}{hint or did_you_mean(name, flags)}"
        self.exit(2, f"{self.prog}: error: {public_line(message)} (see {self.prog} --help)\n")


_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)


def _read(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; what every command takes may stand anywhere in it."""
    arguments, unknown = _parser().parse_known_args(_joined(sys.argv[1:] if argv is None else argv))
    if unknown:
        of_command: argparse.ArgumentParser = arguments.parser
        of_command.error(f"unrecognized arguments: {' '.join(unknown)}")
    vars(arguments).setdefault("dir", arguments.usual_dir)
    for name in ("json", "quiet"):
        vars(arguments).setdefault(name, False)
    return arguments


def _joined(words: Sequence[str]) -> list[str]:
    """The words with the two of ``leaderboard figure`` as one: its first is a command, too."""
    known = [one.split() for one in requests() if " " in one and one.split()[0] not in HELP]
    for i, (first, then) in enumerate(pairwise(words)):
        if [first, then] in known:
            return [*words[:i], f"{first} {then}", *words[i + 2 :]]
    return [*words]


def _add_everywhere(parser: argparse.ArgumentParser) -> None:
    """Flags that every command takes; what is not given is not set, so that no parser undoes it."""

    def add(flag: str, what: str, **settings: Any) -> None:
        parser.add_argument(flag, help=what, default=argparse.SUPPRESS, **settings)

    add("--dir", "the workspace (this folder)", type=_path)
    add("--json", "print one JSON object", action="store_true")
    add("--quiet", "no progress", action="store_true")


class _Version(argparse.Action):
    """Print the version, which stands beside the records: they are not imported before."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print it and exit."""
        from botchat.records import VERSION

        print(f"botchat {VERSION}")
        parser.exit()


@cache
def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="botchat",
        description="Can this model hold a human conversation over many turns, who is best, "
        "and can the judge be trusted?",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print it, and exit")
    _add_everywhere(parser)
    _add_requests(parser.add_subparsers(title="commands", metavar="COMMAND", required=True))
    _group_commands(parser)
    return parser


def _group_commands(parser: argparse.ArgumentParser) -> None:
    """Let ``--help`` show commands in groups, in place of one list, and a line each."""
    grouped: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for words, request in requests().items():
        first = words.split()[0]
        what = HELP.get(first) or _sentence(requests().get(first, request))
        grouped[request.group][first] = what
    lines = []
    for group, commands in grouped.items():
        lines += ["", f"{group}:", *(f"  {name:<12}{what}" for name, what in commands.items())]
    plain = parser.format_help

    def format_help() -> str:
        before, title, _ = plain().partition("\ncommands:\n")
        return before + "\n".join(lines) + "\n" if title else before

    parser.format_help = format_help  # type: ignore[method-assign]


def _sentence(request: type[Request[Any]]) -> str:
    """The first of what a request says of itself."""
    return inspect.cleandoc(request.__doc__ or "").partition("\n")[0]


def _add_requests(added: Any) -> None:
    """Add a command for each request, with its flags."""
    below: dict[str, Any] = {}
    for words, request in requests().items():
        first, _, then = words.partition(" ")
        if first in HELP and first not in below:
            group = added.add_parser(first, help=HELP[first])
            _add_everywhere(group)
            below[first] = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
        name = then if first in HELP else words
        about = inspect.cleandoc(request.__doc__ or "")
        parsers = below.get(first, added)
        one = parsers.add_parser(name, help=_sentence(request), description=about)
        one.fill = partial(_fill, one, name, request)


def _fill(one: argparse.ArgumentParser, name: str, request: type[Request[Any]]) -> None:
    flags = [*flags_of(request)]
    for group in groups_of(request).values():
        flags += flags_of(group)
    _add_everywhere(one)
    usual_dir = Path(request.usual_dir)
    one.set_defaults(command=perform, parser=one, usual_dir=usual_dir, request=request)
    for flag in flags:
        _add_flag(one, flag)
    if issubclass(request, Asking):
        told = "calls, tokens and money, before anything is sent"
        one.add_argument("--plan", action="store_true", help=told)
    if name == "judge":
        _list_protocols(one)
    elif further := [of for of in requests() if of.startswith(f"{name} ")]:
        one.epilog = f"Further: {', '.join(further)}."


def _add_flag(parser: argparse.ArgumentParser, flag: Option) -> None:
    """Add one flag; what is not given is left to the request."""
    arg = flag.arg
    settings: dict[str, Any] = {"help": arg.help, "default": argparse.SUPPRESS}
    if flag.kind is bool:
        stored = "store_false" if flag.field.default is True else "store_true"
        parser.add_argument(flag.name, dest=flag.field.name, action=stored, **settings)
        return
    settings["type"] = _reader(flag)
    usual = flag.name if arg.word else flag.name.lstrip("-").replace("-", "_").upper()
    settings |= {"choices": arg.choices} if arg.choices else {"metavar": arg.metavar or usual}
    if arg.word:
        settings["nargs"] = _NARGS[flag.values is None, flag.is_needed]
    elif flag.values is None:
        settings |= {"nargs": "+"} if arg.many else {"action": "append"}
    elif flag.values > 1:
        settings["nargs"] = flag.values
    elif flag.name in ("--judge", "--model"):
        settings["action"] = _Once
    if not arg.word:
        settings |= {"dest": flag.field.name, "required": flag.is_needed}
    if arg.word and flag.is_needed and flag.values == 1:
        del settings["nargs"], settings["default"]
    parser.add_argument(flag.field.name if arg.word else flag.name, **settings)


class _Once(argparse.Action):
    """Of a flag that other commands take more than once: a second value is not dropped unsaid."""

    def __call__(self, parser: Any, namespace: Any, values: Any, flag: str | None = None) -> None:
        if getattr(namespace, self.dest, values) != values:
            parser.error(f"argument {flag}: given twice; this command takes one: run it for each")
        setattr(namespace, self.dest, values)


_NARGS = {(True, True): "+", (True, False): "*", (False, False): "?", (False, True): None}
"""Of a word: (any number of them, needed) -> as argparse says it."""


def _reader(flag: Option) -> Callable[[str], Any]:
    """What argparse reads a flag's text with; numbers beyond ``most`` either way are refused."""
    if flag.kind is Path:
        return _path
    if flag.kind is str:
        return str if flag.arg.metavar == "SOURCE" else _text  # a file may have any name
    most = int(flag.arg.most)

    def number(text: str) -> int | float:
        shown = text if len(text) <= 30 else f"{text[:30]}… ({len(text):,} characters)"
        try:
            value = int(text) if flag.kind is int else float(text)
        except ValueError:
            what = "a whole number" if flag.kind is int else "a number"
            hint = "; a decimal has a point, a list repeats the flag" if "," in text else ""
            raise argparse.ArgumentTypeError(f"{shown!r} is not {what}{hint}") from None
        if abs(value) > most:
            raise argparse.ArgumentTypeError(f"{shown} is too large; at most {most:,} is possible")
        return value

    return number


def _path(text: str) -> Path:
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} has NUL in it; no file has such a name")
    return Path(text)


def _text(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; give a value, or leave it out")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise argparse.ArgumentTypeError(f"{text!r} is not UTF-8") from None
    return text


def _list_protocols(parser: argparse.ArgumentParser) -> None:
    """Let ``--help`` end with what can be asked; the catalogue is not imported before."""
    plain = parser.format_help

    def format_help() -> str:
        from botchat.protocols.catalogue import Catalogue

        listed = "; ".join(f"{one.name}: {one.question}" for one in Catalogue())
        parser.epilog = f"Protocols. {listed}; or one of your own (docs/criteria.md)."
        return plain()

    parser.format_help = format_help  # type: ignore[method-assign]
