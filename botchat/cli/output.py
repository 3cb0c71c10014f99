"""What every command does with its flags and its result."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from botchat.cli import layout
from botchat.cli.layout import UNPRINTABLE, printable
from botchat.errors import BotChatError, ConfigError, LimitReached
from botchat.requests.arguments import Asking, Request, flags_of, groups_of
from botchat.workspace.secrets import Redactor, public, secrets_in

if TYPE_CHECKING:
    from botchat.boards.tables import Table
    from botchat.interfaces import Row
    from botchat.requests.meter import Meter
    from botchat.workspace.folder import Workspace


def public_line(text: str) -> str:
    """A message as one printable line, without logins and keys, also those of the environment."""
    return printable(" ".join(Redactor(secrets_in(os.environ)).clean(public(text)).split()))


def show(text: str = "") -> None:
    """Print lines of a result. Everything that is printed for people goes through here."""
    print(printable(text), flush=True)


def complain(text: str) -> None:
    """Print one line about what went wrong, on stderr."""
    print(f"botchat: {public_line(text)}", file=sys.stderr)


def note(text: str) -> None:
    """Print one line beside the result, on stderr."""
    print(public_line(text), file=sys.stderr, flush=True)


class LogFormatter(logging.Formatter):
    """Log lines as the other messages."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        return public_line(super().format(record))


def workspace_of(arguments: argparse.Namespace) -> Workspace:
    """The workspace that ``--dir`` names."""
    from botchat.workspace.folder import Workspace

    if re.match(r"[\w+.-]{2,}:/", str(arguments.dir)):
        raise ConfigError(f"--dir {arguments.dir}: no folder")
    if arguments.dir.is_file():
        raise ConfigError(f"--dir {arguments.dir} is a file; name the folder of a workspace")
    return Workspace(arguments.dir)


EVERY_S = 60.0
"""Between two lines of progress where there is no terminal."""

QUIET_S = 30.0
"""Without a reply, after which a run that goes on is said to wait."""

WINDOW_S = 10.0
"""Over which the rate is taken."""


class Window:
    """How many calls a second were done lately."""

    def __init__(self, seconds: float = WINDOW_S) -> None:
        """``seconds``: what is lately. Nothing is done yet."""
        self.seconds = seconds
        self._counts = deque([(time.monotonic(), 0)])

    def rate(self, counted: int, now: float) -> float | None:
        """The rate, at a reading of the clock; ``None``: too early. ``counted``: calls so far."""
        self._counts.append((now, counted))
        while self._counts[0][0] < now - self.seconds:
            self._counts.popleft()
        began, before = self._counts[0]
        return (counted - before) / (now - began) if now - began >= 0.5 else None


@contextmanager
def progress(arguments: argparse.Namespace) -> Iterator[Meter]:
    """A meter for a long step; where a limit stops it, what it spent or found is printed."""
    from botchat.requests.meter import Meter

    meter = Meter()
    with nullcontext() if arguments.quiet else _shown(meter):
        try:
            yield meter
        except LimitReached as limit:
            partial_result = limit.partial_result
            if arguments.json:
                found = getattr(partial_result, "whole", {})
                print_json({**found, **spent(meter), "stopped": str(limit)})
            elif partial_result is not None:
                say(arguments, {}, *getattr(partial_result, "shown", ()))
            raise


def perform(arguments: argparse.Namespace) -> None:
    """Make the request that the flags say, do it or plan it, and print what comes of it."""
    request, workspace = _made(arguments), workspace_of(arguments)
    if isinstance(request, Asking) and arguments.plan:
        planned = request.plan(workspace)
        say(arguments, planned.whole, *planned.shown)
        return
    if request.metered or isinstance(request, Asking):
        gc.set_threshold(100_000, 20, 20)  # it reads much, and soon ends
    with progress(arguments) as meter:
        meter.tell = note
        result = request.run(workspace, meter=meter)
    asks = isinstance(request, Asking)
    say(arguments, result.whole, *result.shown, meter=meter if asks else None)
    if asks and (n := getattr(result, "unanswered", 0)):
        why = [f"{reason} ({n}x): " for reason, n in meter.failures.most_common(1)]
        raise BotChatError(
            f"{''.join(why)}{n} {result.missing} are missing because the "
            "endpoint gave no usable reply; run the same command again to try these"
        )
    if getattr(request, "gate", False):
        result.gate()


def _made(arguments: argparse.Namespace) -> Request[Any]:
    """The request with everything that was given."""
    kind: type[Request[Any]] = arguments.request
    given = vars(arguments)
    fields = {
        flag.field.name: given[flag.field.name]
        for flag in flags_of(kind)
        if flag.field.name in given
    }
    for name, group in groups_of(kind).items():
        known = [flag.field.name for flag in flags_of(group)]
        fields[name] = group(**{key: given[key] for key in known if key in given})
    return kind(**fields)


def spent(meter: Meter) -> Row:
    """What a run took, for ``--json``."""
    n_calls, usd, tokens = meter.budget.estimated
    return {
        "calls": meter.calls,
        "replayed": meter.replayed,
        "tokens": meter.tokens + tokens,
        "cost_usd": None if meter.unpriced else meter.cost_usd + usd,
        "estimated": {"calls": n_calls, "cost_usd": usd, "tokens": tokens},
    }


def say(
    arguments: argparse.Namespace,
    whole: Mapping[str, Any],
    *shown: str | Table | list[Row],
    meter: Meter | None = None,
) -> None:
    """Print a result: one JSON object, or for people lines and tables, and what was spent.

    ``shown``: by default the table of the rows in ``whole``, or of ``whole`` as its only row.
    """
    if arguments.json:
        print_json({**whole, **(spent(meter) if meter else {})})
        return
    _print([_grid(part) for part in shown or [whole.get("rows", [whole])]])
    if meter is not None and (line := spent_line(meter)):
        show(line)


def _grid(part: str | Table | list[Row]) -> str | layout.Grid:
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return layout.of_rows(part) if part else "nothing yet"
    return layout.of_table(part)


def _print(parts: Sequence[str | layout.Grid]) -> None:
    """Lines and tables; tables whole where stdout is no terminal."""
    width = terminal_columns()
    for part in parts:
        if isinstance(part, str):
            show(layout.wrapped(part, width))
        else:
            print(part.drawn(width, bold=may_steer(sys.stdout)))


def terminal_columns() -> int:
    """Width of the terminal; unlimited where stdout is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else layout.UNLIMITED


def may_steer(stream: TextIO) -> bool:
    """Whether a stream is a terminal that takes escapes: see no-color.org."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return stream.isatty() and not plain


def _shown(meter: Meter) -> AbstractContextManager[Any]:
    """Show how far a step is, while it is under way."""
    if not may_steer(sys.stderr):
        return _lines(meter)
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    window = Window()

    def drawn() -> Text:
        return Text(
            printable(progress_line(meter, window=window)), overflow="ellipsis", no_wrap=True
        )

    there = Console(stderr=True)
    return Live(get_renderable=drawn, console=there, transient=True, refresh_per_second=4)


@contextmanager
def _lines(meter: Meter) -> Iterator[None]:
    """Print a line every `EVERY_S`, of the rate since the one before."""
    window, ended = Window(1.5 * EVERY_S), threading.Event()

    def wait() -> None:
        while not ended.wait(EVERY_S):
            print(public_line(progress_line(meter, window=window)), file=sys.stderr, flush=True)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def progress_line(meter: Meter, now: float | None = None, window: Window | None = None) -> str:
    """Label, calls done and planned, silence, money, time left, rate, in flight, failures, a line.

    What is first is what a narrow terminal shows. Where no calls are made: dialogues, verdicts or
    whatever the step goes through.
    ``window``: over which the rate is taken, default all.
    """
    now = time.monotonic() if now is None else now
    steps = [*meter.steps]
    done, unit = sum(step.calls for step in steps), " calls"
    rest = [step.left for step in steps]
    left = None if None in rest else sum(n or 0 for n in rest)
    by_calls = bool(steps) and (done > 0 or left != 0)
    if not by_calls:
        done, unit, left = meter.done, "", meter.total - meter.done if meter.total else None
    elapsed = now - meter.started
    rate = window.rate(done, now) if window else done / elapsed if elapsed > 0 else None
    parts = [meter.label]
    if left is not None and done + left:
        parts.append(f"{done}/{done + left}{unit} ({100 * done // (done + left)} %)")
    elif done:
        parts.append(f"{done}{unit}")
    if by_calls and left and (quiet := now - meter.heard) > QUIET_S:
        parts.append(f"no reply for {duration(quiet)}")
    n_estimated, estimated_usd, _ = meter.budget.estimated
    if meter.calls or n_estimated:
        parts.append(money(meter.cost_usd + estimated_usd, meter.unpriced))
    if rate:
        if left is not None:
            parts.append(f"{duration(left / rate)} left")
        parts.append(f"{rate:.1f}/s")
    if n := meter.in_flight():
        parts.append(f"{n} in flight")
    if n := sum(step.failed for step in steps):
        parts.append(f"{n} failed")
    if meter.replayed:
        parts.append(f"{meter.replayed} from the ledger")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """``1 h 05 min``, ``2 min 03 s``, ``7 s``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def money(usd: float, unpriced: int = 0) -> str:
    """Dollars as people read them."""
    shown = f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:,.4f}"
    return shown + (f" + {unpriced:,} calls of unknown price" if unpriced else "")


def spent_line(meter: Meter) -> str:
    """Calls, tokens and money of a run in words; empty if no model was asked."""
    parts = []
    if meter.calls:
        parts.append(f"{meter.calls} calls")
    if meter.replayed:
        parts.append(f"{meter.replayed} from the ledger")
    n_calls, estimated_usd, estimated_tokens = meter.budget.estimated
    usd, tokens = meter.cost_usd + estimated_usd, meter.tokens + estimated_tokens
    if tokens:
        parts.append(f"{tokens:,} tokens")
        unknown = meter.unpriced - (n_calls if estimated_usd else 0)
        known = [f"${usd:.4f}"] if usd or unknown <= 0 else []
        unpriced = [f"{unknown} calls of unknown cost"] if unknown > 0 else []
        parts.append(" + ".join(known + unpriced))
    if n_calls:
        dollars = f"${estimated_usd:.4f} and " if estimated_usd else ""
        estimated = f"{estimated_tokens:,} tokens estimated ({n_calls} calls did not say)"
        parts.append(f"of which {dollars}{estimated}")
    return ", ".join(parts)


def print_json(value: object) -> None:
    """Print a value as JSON on one line; paths become texts."""
    try:
        import msgspec

        from botchat.interfaces import round_floats

        text = msgspec.json.encode(round_floats(value), enc_hook=os.fspath).decode()
    except UnicodeEncodeError:  # a lone surrogate, of a name on the command line
        text = json.dumps(value, default=os.fspath)
    # JSON spells out the first control characters itself; these are the others.
    text = UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.flush()
