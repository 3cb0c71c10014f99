"""What every command does with its flags and its result."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from botchat.errors import BotChatError, LimitReached
from botchat.interfaces import Row
from botchat.workspace.secrets import Redactor, public, secrets_in

if TYPE_CHECKING:
    from rich.live import Live

    from botchat.pipeline.run import Meter
    from botchat.workspace.folder import Workspace


_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""``text`` for a terminal: what would steer it is spelt out, as ``\x1b`` for escape.

    Control characters but newline and tab, marks that turn the direction of writing, and lone
    surrogates, which no stream can take.
    """
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


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

    return Workspace(arguments.dir)


@contextmanager
def progress(arguments: argparse.Namespace, *, by_steps: bool = False) -> Iterator[Meter]:
    """A meter for a long step, shown as a line on stderr while that is a terminal.

    Where a limit stops the run, print what it spent or found so far. ``by_steps``: draw the line
    only when the meter is told of a step, and not from a thread of its own, beside which no process
    is forked (`botchat.parallel`).
    """
    from botchat.pipeline.run import Meter

    meter = Meter()
    with _display(meter, by_steps) if sys.stderr.isatty() else nullcontext():
        try:
            yield meter
        except LimitReached as limit:
            so_far = limit.so_far
            if arguments.json:
                found = getattr(so_far, "whole", {})
                print_json({**found, **spent(meter), "stopped": str(limit)})
            else:
                if so_far is not None:
                    say(arguments, {}, *getattr(so_far, "shown", ()))
                for line in meter.notes.values():
                    show(line)
            raise


def spent(meter: Meter) -> Row:
    """What a run took, for ``--json``."""
    return {
        "calls": meter.calls,
        "replayed": meter.replayed,
        "tokens": meter.tokens,
        "cost_usd": None if meter.unpriced else meter.cost_usd,
        "estimated": {
            "calls": meter.estimates.total(),
            "cost_usd": meter.estimated_usd,
            "tokens": meter.estimated_tokens,
            "why": dict(meter.estimates),
        },
    }


def unanswered(n: int, what: str, meter: Meter) -> None:
    """End with an error where an endpoint left something unanswered, with the commonest reason."""
    if n:
        why = "".join(f" ({n}x {reason})" for reason, n in meter.failures.most_common(1))
        raise BotChatError(
            f"{n} {what} are missing because the endpoint gave no usable reply{why}; run the same "
            "command again to try these"
        )


def say(
    arguments: argparse.Namespace,
    whole: Mapping[str, Any],
    *shown: str | Sequence[Mapping[str, Any]],
    meter: Meter | None = None,
) -> None:
    """Print a result: one JSON object, or for people lines and tables, and what was spent.

    ``shown``: by default the table of the rows in ``whole``, or of ``whole`` as its only row.
    """
    if arguments.json:
        print_json({**whole, **(spent(meter) if meter else {})})
        return
    for part in shown or [whole.get("rows", [whole])]:
        if isinstance(part, str):
            show(part)
        else:
            print_table(part)
    if meter is not None and (line := spent_line(meter)):
        show(line)


def _display(meter: Meter, by_steps: bool) -> Live:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    live = Live(
        get_renderable=lambda: Text(
            printable(progress_text(meter)), overflow="ellipsis", no_wrap=True
        ),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=not by_steps,
        refresh_per_second=4,
    )
    if by_steps:
        meter.watch = live.refresh
    return live


def progress_text(meter: Meter) -> str:
    """`progress_line`, and below it what the step has found so far."""
    return "\n".join([progress_line(meter), *meter.notes.values()])


def progress_line(meter: Meter, now: float | None = None) -> str:
    """Label, done/total, rate, calls, tokens, cost and time left, in one line."""
    elapsed = (time.monotonic() if now is None else now) - meter.started
    parts = [meter.label]
    if meter.total:
        parts.append(f"{meter.done}/{meter.total} ({100 * meter.done // meter.total} %)")
    elif meter.done:
        parts.append(str(meter.done))
    if meter.done and elapsed > 0:
        rate = meter.done / elapsed
        parts.append(f"{rate:.1f}/s")
        if meter.total:
            parts.append(f"{_duration((meter.total - meter.done) / rate)} left")
    if spent := spent_line(meter):
        parts.append(spent)
    if meter.batches:
        done, total = map(sum, zip(*meter.batches.values(), strict=True))
        parts.append(f"waiting for {len(meter.batches)} batches ({done}/{total} requests)")
    return " · ".join(parts)


def spent_line(meter: Meter) -> str:
    """Calls, tokens and money of a run in words; empty if no model was asked."""
    parts = []
    if meter.calls:
        parts.append(f"{meter.calls} calls")
    if meter.replayed:
        parts.append(f"{meter.replayed} from the ledger")
    if meter.tokens:
        parts.append(f"{meter.tokens:,} tokens")
        unpriced = f" + {meter.unpriced} calls of unknown cost" if meter.unpriced else ""
        parts.append(f"${meter.cost_usd:.4f}{unpriced}")
    if meter.estimates:
        why = ", ".join(f"{n}x {reason}" for reason, n in meter.estimates.most_common())
        counted = f"${meter.estimated_usd:.4f} and " if meter.estimated_usd else ""
        parts.append(
            f"{meter.estimates.total()} calls are estimates, counted at "
            f"{counted}{meter.estimated_tokens:,} tokens ({why})"
        )
    return ", ".join(parts)


def print_json(value: object) -> None:
    """Print a value as JSON on one line; paths become texts."""
    try:
        text = msgspec.json.encode(value, enc_hook=os.fspath).decode()
    except UnicodeEncodeError:  # a lone surrogate, of a name on the command line
        text = json.dumps(value, default=os.fspath)
    # JSON spells out the first control characters itself; these are the others.
    text = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.flush()


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with equal keys as a table; whole cells also where stdout is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        show("nothing yet")
        return
    columns = list(rows[0])
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        number = all(_NUMBER.fullmatch(_cell(row.get(column))) for row in rows)
        table.add_column(
            Text(printable(column)), justify="right" if number else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    width = None if sys.stdout.isatty() else 400
    # A pipe gets no padding to the full width.
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


_NUMBER = re.compile(r"[-\u2013]|[-+]?[\d,]+(\.\d+)?(e[-+]?\d+)?")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return printable(", ".join(f"{n} {what}" for what, n in value.items())) or "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    return printable(str(value))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
