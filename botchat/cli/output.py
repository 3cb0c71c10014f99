"""What every command does with its flags and its result."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from botchat.errors import BotChatError, LimitReached
from botchat.interfaces import Row
from botchat.workspace.secrets import Redactor, public, secrets_in

if TYPE_CHECKING:
    from botchat.judges.cascade import Escalations
    from botchat.pipeline.agree import Compared
    from botchat.pipeline.plan import Planned
    from botchat.pipeline.run import Meter
    from botchat.pipeline.session import Spending
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


class LogFormatter(logging.Formatter):
    """Log lines as the other messages."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        return public_line(super().format(record))


def workspace_of(arguments: argparse.Namespace) -> Workspace:
    """The workspace that ``--dir`` names."""
    from botchat.workspace.folder import Workspace

    return Workspace(arguments.dir)


def spending_of(arguments: argparse.Namespace) -> Spending:
    """What the run may cost, and how its calls are sent."""
    from botchat.pipeline.session import Limits, Spending

    limits = Limits(arguments.max_usd, arguments.max_calls, arguments.max_tokens)
    return Spending(limits, arguments.batch)


@contextmanager
def progress(arguments: argparse.Namespace, *, by_steps: bool = False) -> Iterator[Meter]:
    """`show_progress`; where a limit stops the run, print what it spent or found so far."""
    with show_progress(by_steps=by_steps) as meter:
        try:
            yield meter
        except LimitReached as limit:
            if arguments.json:
                print_json({**spent(meter), "stopped": str(limit)})
            else:
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
    }


def escalated(account: Escalations) -> str:
    """What a cascade did, in words."""
    parts = [f"{account.accepted} of {account.n} verdicts are the cheap judge's"]
    parts += [f"{n} went on ({cause})" for cause, n in account.causes.items()]
    if account.checked:
        parts.append(f"of {account.checked} checked the strong judge agreed on {account.agreed}")
    return "; ".join(parts)


def say_plan(arguments: argparse.Namespace, planned: Sequence[Planned]) -> None:
    """Print one row for each model and level."""
    rows = [asdict(one) for one in planned]
    costs = [
        "unknown price" if one.cost_usd is None else f"${one.cost_usd:,.4f}" for one in planned
    ]
    shown = [row | {"cost_usd": cost} for row, cost in zip(rows, costs, strict=True)]
    say(arguments, {"rows": rows}, shown)


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
    rows: Sequence[Mapping[str, Any]] | None = None,
    meter: Meter | None = None,
    lines: Iterable[str] = (),
) -> None:
    """Print a result: one JSON object, or for people a table, what was spent, and lines.

    The table is of ``rows``; by default of those in ``whole``, or of ``whole`` as its only row.
    """
    if arguments.json:
        print_json({**whole, **(spent(meter) if meter else {})})
        return
    print_table(whole.get("rows", [whole]) if rows is None else rows)
    if meter is not None and (line := spent_line(meter)):
        show(line)
    for line in lines:
        show(line)


@contextmanager
def show_progress(*, by_steps: bool = False) -> Iterator[Meter]:
    """A meter for a long step, shown as a line on stderr while that is a terminal.

    ``by_steps``: draw the line only when the meter is told of a step. Otherwise a thread draws it
    all the time, beside which no process is forked (`botchat.parallel`).
    """
    from botchat.pipeline.run import Meter

    meter = Meter()
    if not sys.stderr.isatty():
        yield meter
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    with Live(
        get_renderable=lambda: Text(
            printable(progress_text(meter)), overflow="ellipsis", no_wrap=True
        ),
        console=console,
        transient=True,
        auto_refresh=not by_steps,
        refresh_per_second=4,
    ) as live:
        if by_steps:
            meter.watch = live.refresh
        yield meter


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
        unpriced = f" + {meter.unpriced} calls of unknown price" if meter.unpriced else ""
        parts.append(f"${meter.cost_usd:.4f}{unpriced}")
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


def say_compared(
    arguments: argparse.Namespace, found: Compared, meter: Meter | None = None
) -> None:
    """Print a comparison of judges."""
    if arguments.json:
        say(arguments, found.whole, meter=meter)
        return
    for part in found.tables:
        show(f"{part.title}\n")
        print_table(part.rows_for_people)
        show(f"\n{part.note}\n" if part.note else "")
    for line in found.lines:
        show(line)
    if meter is not None and (line := spent_line(meter)):
        show(line)
