"""The command line: what every command takes, what it prints, and how it ends.

The commands and their flags are in `botchat.commands`. stdout has the results (tables, or one JSON
object with ``--json``), stderr has progress and errors. Exit codes: 0 done, 1 expected error,
2 usage, 3 stopped by a limit (the same command goes on), 4 a gate, 130 interrupted. Signals, and a
terminal that goes away, end a run from outside.
"""

import argparse
import codecs
import errno
import gc
import io
import logging
import math
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from cyclopts import CycloptsError

from botchat.cli.output import LogHandler, call, complain, perform, silence, to_stdout
from botchat.commands import app
from botchat.errors import BotChatError
from botchat.frames import Tables, package_toml
from botchat.records import Texts

# Signals that come so soon after another are of one end
_AT_ONCE_S = 0.1

_ENDS = [signal.SIGINT, signal.SIGTERM]
if sys.platform != "win32":
    _ENDS.append(signal.SIGHUP)

# Flags of every command, which may stand anywhere; a meta app of cyclopts parses each line twice.
_SHARED = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
_SHARED.add_argument("--dir", type=Path)
_SHARED.add_argument("--json", action="store_true")
_SHARED.add_argument("--quiet", action="store_true")

# Errors of an output whose terminal is gone, or that is full, and of a folder that may not be read
_LOST = (errno.EIO, errno.ENOSPC, errno.EACCES)

# En dash and minus sign, which few code pages have
_DASHES = ("\u2013", "\u2212")


def _take_signals() -> None:
    """Let SIGTERM, and SIGHUP unless it is ignored (nohup), end a run as Ctrl-C does.

    Replies in flight are stored first; a second Ctrl-C or SIGTERM drops them. A hang-up never does:
    a terminal that closes sends several, and the end of a login session sends both kinds at once.
    """
    # A background job of a script starts with SIGINT ignored; the others become a SIGINT.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    acted_at = -math.inf
    ours = os.getpid()

    def end(kind: int = signal.SIGTERM, *_: object) -> None:
        nonlocal acted_at
        if os.getpid() != ours:  # a process that was forked to help has nothing to store
            signal.signal(kind, signal.SIG_DFL)
            signal.raise_signal(kind)
        if time.monotonic() - acted_at > _AT_ONCE_S:
            acted_at = time.monotonic()
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, end)
    if sys.platform != "win32":

        def hang_up(*_: object) -> None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if not _ending():
                end()

        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, hang_up)


def _ending() -> bool:
    """Whether a run has been interrupted already and stores what is in flight."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and any(task.cancelling() for task in asyncio.all_tasks())
    except (RuntimeError, AttributeError):  # nothing is under way, or it is being imported
        return False


class _Lasting(io.FileIO):
    """A file that swallows what it cannot write."""

    def write(self, data: Any) -> int:
        """Write, or pretend to."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _take_streams() -> None:
    """Make the standard streams take whatever is printed.

    A stream that is closed leads nowhere: a file that is opened would get its number. Characters
    that a terminal does not have are substituted; stderr may go away without ending the run.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("botchat", _substitute)
        sys.stdout.reconfigure(errors="botchat")
    encoding = "utf-8"
    if sys.stderr is not None:
        encoding = sys.stderr.encoding
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Lasting(2, "w", closefd=False)),
        encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def _substitute(error: UnicodeError) -> tuple[str, int]:
    """Return what is printed for characters that an encoding does not have, and where they end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join("-" if char in _DASHES else "?" for char in missing), error.end


def entry() -> NoReturn:
    """Run `main` as the console script, with its result as exit code."""
    _take_streams()
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:  # before a command began, or when it was done
        code = 130
    for ends in _ENDS:  # nothing is left to be stored
        signal.signal(ends, signal.SIG_IGN)
    # The system takes all memory back at once; looking through it for garbage takes longer.
    gc.freeze()
    gc.disable()
    sys.exit(code)


def main(words: Texts) -> int:
    """Run one command and return its exit code."""
    # Matrices here are small: more threads of numpy's library only wait for each other, busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The hub's client would tell each of its tries.
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    logging.basicConfig(level=logging.WARNING, handlers=[LogHandler(logging.WARNING)])
    # They would report tasks that a second Ctrl-C leaves unfinished, and a home without a cache.
    for name in ("asyncio", "matplotlib"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _take_signals()
    for word in words:
        if not _is_text(word):
            complain(f"{word[:80]!r} is not UTF-8 text without NUL")
            return 2
    try:
        _run(words)
    except (CycloptsError, argparse.ArgumentError) as error:
        complain(_usage(error, words))
        return 2
    except BotChatError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted; everything received is stored, run the same command to go on")
        return 130
    except OSError as error:
        if error.errno not in _LOST:
            raise
        if error.errno != errno.EIO:
            complain(f"cannot use {error.filename or 'the output'}: {error.strerror}")
        silence()
        return 1
    return 0


def _run(words: Texts) -> None:
    """Run one command, or print what ``--help`` and ``--version`` print."""
    shared, rest = _SHARED.parse_known_args(words)
    command, bound, hidden = app.parse_args(
        rest or ["--help"], exit_on_error=False, print_error=False
    )
    if "workspace" in hidden:
        perform(command, bound, shared.dir, shared.json, shared.quiet)
    else:
        with to_stdout(), suppress(SystemExit):  # rich ends a program whose reader has gone
            call(command, bound)


def _is_text(word: str) -> bool:
    """Return whether a word can be a name, or the path of a file."""
    is_utf_8 = not re.search("[\ud800-\udfff]", word)
    return "\0" not in word and (is_utf_8 or ("/" in word and Path(word).parent.is_dir()))


def _usage(error: Exception, words: Texts) -> str:
    """Return what is wrong with a command line, in one line."""
    from difflib import get_close_matches  # at an error only

    text = re.sub(r"\s+", " ", str(error)).strip().removesuffix(".")
    for pattern, words_for in package_toml("cli/usage.toml", Tables).items():
        text = re.sub(pattern, words_for, text)
    # cyclopts does not know the flags of every command.
    option = re.match(r"Unknown option: (--[^ .=]+)", text)
    if option:
        for flag in get_close_matches(option[1], ("--dir", "--json", "--quiet"), 1, 0.8):
            text = f"{option[0]}. Did you mean {flag}?"
    # Not any word that names a command: a folder may be called demo.
    chain = "".join(
        f"{word} " for word in app.parse_commands(_SHARED.parse_known_args(words)[1])[0]
    )
    return f"{text} (see botchat {chain}--help)"
