"""What every command does with its flags and its result."""

from __future__ import annotations

import argparse
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

if TYPE_CHECKING:
    from botchat.judges.cascade import Escalations
    from botchat.pipeline.agree import Compared
    from botchat.pipeline.plan import Planned
    from botchat.pipeline.run import Meter
    from botchat.pipeline.session import Spending
    from botchat.workspace.folder import Workspace


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
                    print(line)
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
        print(line)
    for line in lines:
        print(line)


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
        get_renderable=lambda: Text(progress_text(meter), overflow="ellipsis", no_wrap=True),
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
    sys.stdout.buffer.write(msgspec.json.encode(value, enc_hook=os.fspath) + b"\n")
    sys.stdout.flush()


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with equal keys as a table; whole cells also where stdout is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        print("nothing yet")
        return
    columns = list(rows[0])
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        number = all(_NUMBER.fullmatch(_cell(row.get(column))) for row in rows)
        table.add_column(Text(column), justify="right" if number else "left", overflow="fold")
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
        return ", ".join(f"{n} {what}" for what, n in value.items()) or "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    return str(value)


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
        print(f"{part.title}\n")
        print_table(part.rows_for_people)
        print(f"\n{part.note}\n" if part.note else "")
    for line in found.lines:
        print(line)
    if meter is not None and (line := spent_line(meter)):
        print(line)
