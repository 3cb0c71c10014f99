"""The command line: flags -> one pipeline call. Heavy imports stay inside the commands.

The commands and their flags are in ``commands.toml``. stdout has the results (tables, or one JSON
object with ``--json``), stderr has progress and errors. Exit codes: 0 done, 1 expected error,
2 usage, 3 stopped by a limit (the same command goes on), 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import Any, NoReturn

from botchat.cli.output import LogFormatter, complain, public_line
from botchat.errors import BotChatError
from botchat.records import VERSION


def entry() -> NoReturn:
    """Console script: `main`, with its result as exit code."""
    code = main()
    # The system takes all memory back at once; looking through it for garbage takes longer.
    gc.freeze()
    gc.disable()
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = _parser().parse_args(argv)
    # Matrices here are small: more threads of numpy's library only wait for each other, busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("botchat: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # asyncio would report tasks that a second Ctrl-C leaves unfinished.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    # A background job of a script starts with SIGINT ignored; SIGTERM below becomes a SIGINT.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # SIGTERM ends a run as Ctrl-C does: replies in flight are stored first.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        arguments.command(arguments)
    except BotChatError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted; everything received is stored, run the same command to go on")
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away; silence the flush at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    """Its errors repeat the command line, which may hold anything."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, in one line, and exit."""
        super().error(public_line(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="botchat",
        description="Can this model hold a human conversation over many turns, who is best, "
        "and can the judge be trusted?",
    )
    parser.add_argument("--version", action="version", version=f"botchat {VERSION}")
    text = resources.files(__package__).joinpath("commands.toml").read_text("utf-8")
    declared = tomllib.loads(text)
    _add_commands(parser, declared["commands"], declared["groups"])
    return parser


def _add_commands(
    parser: argparse.ArgumentParser, commands: list[dict[str, Any]], groups: dict[str, Any]
) -> None:
    """Add commands of ``commands.toml``, with their own commands or with their flags."""
    added = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        name, what = command["name"], command["help"]
        if "commands" in command:
            _add_commands(added.add_parser(name, help=what), command["commands"], groups)
            continue
        one = added.add_parser(name, help=what, description=what)
        one.add_argument("--dir", type=Path, default=Path(), help="the workspace (this folder)")
        one.add_argument("--json", action="store_true", help="print one JSON object")
        one.set_defaults(command=_function(command["run"]))
        if "dir" in command:
            one.set_defaults(dir=Path(command["dir"]))
        for entry in command.get("flags", ()):
            for flag in groups[entry] if isinstance(entry, str) else [entry]:
                settings = {key: value for key, value in flag.items() if key != "flag"}
                if "type" in settings:
                    settings["type"] = _TYPES[settings["type"]]
                one.add_argument(flag["flag"], **settings)
        if name == "judge":
            _list_protocols(one)


_TYPES = {"int": int, "float": float, "path": Path}


def _function(place: str) -> Callable[[argparse.Namespace], None]:
    module, name = place.split(".")
    command: Callable[[argparse.Namespace], None] = getattr(
        import_module(f"botchat.cli.{module}"), name
    )
    return command


def _list_protocols(parser: argparse.ArgumentParser) -> None:
    """Let ``--help`` end with what can be asked; the catalogue is not imported before."""
    plain = parser.format_help

    def format_help() -> str:
        from botchat.protocols.catalogue import Catalogue

        listed = "; ".join(f"{one.name}: {one.question}" for one in Catalogue())
        parser.epilog = f"Protocols. {listed}; or one of your own (docs/criteria.md)."
        return plain()

    parser.format_help = format_help  # type: ignore[method-assign]
