"""Printing for every command: its result, its progress on stderr, and its cost."""

from __future__ import annotations

import gc
import inspect
import json
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from botchat.errors import BotChatError, LimitReached, UsageError
from botchat.frames import fill
from botchat.interfaces import Cells, round_floats
from botchat.records import Texts
from botchat.results import Piece, Result
from botchat.workspace.secrets import Redactor, public, secrets_in

if TYPE_CHECKING:
    from pathlib import Path

    from botchat.pipeline.spending import Meter

WIDTH = 100
"""Most columns of a line."""

# Columns of a board that are left out where they have no room; a line tells the first
_SPARE = ("same length", "n")

UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Return ``text`` with what would steer a terminal spelt out, as ``\x1b`` for escape.

    Control characters but newline and tab, marks that turn the direction of writing, and lone
    surrogates, which no stream can take.
    """
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def public_line(text: str) -> str:
    """Return a message as one printable line without logins, keys, and secrets of variables."""
    return printable(" ".join(Redactor(secrets_in(os.environ)).clean(public(text)).split()))


def complain(text: str) -> None:
    """Print one line about what went wrong, on stderr."""
    print(f"botchat: {public_line(text)}", file=sys.stderr)


def note(text: str) -> None:
    """Print one line on stderr, which keeps its columns; stdout is for the result."""
    parts = re.split(r"(^ +| {2,})", text.rstrip())
    line = "".join(part if part.isspace() else public_line(part) for part in parts)
    print(line, file=sys.stderr, flush=True)


class LogHandler(logging.Handler):
    """Prints log lines as other messages, above a bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        complain(record.getMessage())


def call(command: Callable[..., Result], bound: inspect.BoundArguments) -> Result:
    """Call a command with the arguments of its line."""
    return command(*bound.args, **bound.kwargs)


def perform(
    command: Callable[..., Result],
    bound: inspect.BoundArguments,
    folder: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Call a command and print its result; a partial result is printed before a limit raises.

    ``folder``: of the workspace, where it is named. Raises `BotChatError`, also where replies are
    missing or a gate fails.
    """
    if folder is not None:
        if folder.is_file() or re.match(r"[\w+.-]{2,}:/", str(folder)):
            raise UsageError(f"--dir {folder}: no folder; name that of a workspace")
        bound.arguments["workspace"] = folder
    gc.set_threshold(100_000, 20, 20)  # it reads much, and soon ends
    if "meter" not in bound.signature.parameters:
        _show(call(command, bound), as_json)
        return
    with _progress(quiet) as meter:
        bound.arguments["meter"] = meter
        try:
            result = call(command, bound)
        except LimitReached as limit:
            partial: Result = limit.partial_result or Result({})
            if as_json:
                print_json({**partial.data, **spent(meter), "stopped": str(limit)})
            elif partial.data:
                _show(partial, as_json)
            raise
    _show(result, as_json, meter if "spending" in bound.signature.parameters else None)
    if result.unanswered:
        why = ""
        for reason, n in meter.failures.most_common(1):
            why = f"{reason} ({n}x): "
        raise BotChatError(
            f"{why}{result.unanswered} dialogues or verdicts are missing because the endpoint gave "
            "no usable reply; the same command asks for these again"
        )


@contextmanager
def to_stdout() -> Iterator[None]:
    """Let what is printed inside end early where its reader has gone, as ``head`` does."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence()


def silence() -> None:
    """Let the rest of stdout go nowhere, what is flushed at the interpreter's exit too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show(result: Result, as_json: bool, meter: Meter | None = None) -> None:
    """Print a result: one JSON object, or for people lines and tables, and what was spent.

    Raises what is wrong with it, if anything is (``--gate``, ``--check``).
    """
    if as_json:
        costs = {} if meter is None else spent(meter)
        print_json({**result.data, **costs})
    else:
        with to_stdout():
            for part in result.pieces or [result.rows]:
                print(printable(_text(part)), flush=True)
            if meter is not None and meter.bill and not result.is_billed:
                print(meter.bill)
    if result.failure:
        raise result.failure


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that each column of a table takes, the two blanks after it included."""
    from rich.cells import cell_len

    return [max(map(cell_len, column)) + 2 for column in zip(headings, *rows, strict=True)]


def _is_wide(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a table is wider than lines are here."""
    return sum(_widths(headings, rows)) > _line_width() + 2


def _line_width() -> int:
    if sys.stdout.isatty():
        return min(shutil.get_terminal_size().columns, WIDTH)
    return 80


def _text(part: Piece) -> str:
    if isinstance(part, str):
        return _wrapped(printable(part))
    if not isinstance(part, list):
        return grid([column.heading for column in part.headline], part.cells)
    if not part:
        return "nothing yet"
    end = ""
    if _is_wide(*_cells(part)):
        end = _wrapped(fill("cli/same_length.txt", rows=part, key=_SPARE[0]))
        part = [{key: row[key] for key in row if key not in _SPARE} for row in part]
    headings, cells = _cells(part)
    if len(part) == 1 and _is_wide(headings, cells):
        return _upright(headings, cells)
    return "\n".join([grid(headings, cells), *end.splitlines()])


def _cells(rows: Sequence[Cells]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the texts of some rows."""
    headings = [
        key.removeprefix("n_").replace("cost_usd", "USD").replace("_", " ") for key in rows[0]
    ]
    return headings, [[cell(row.get(key)) for key in rows[0]] for row in rows]


def _upright(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text: a line a value, and a blank one after each row."""
    lines = []
    for row in rows:
        for heading, value in zip(headings, row, strict=True):
            lines.append(f"{heading:<16}  {printable(value)}")
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    """Return a line as wide as the terminal; the rest of a row stands under its last column."""
    indent = ""
    if text.startswith("  "):
        indent = " " * (text.rindex("  ") + 2)
    return textwrap.fill(
        text,
        _line_width(),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def grid(headings: Texts, rows: Sequence[Texts]) -> str:
    """Return a table as text: two blanks between columns, numbers at the right.

    Where a terminal is narrow long texts are folded; numbers never are: then each has a line.
    """
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    least = 0
    for i, room in enumerate(_widths(headings, rows)):
        heading = Text(headings[i])
        if all(re.fullmatch(r"[-–]|[-+$]?[\d,.]+( \(.*\))?", row[i]) for row in rows):
            drawn.add_column(heading, justify="right", no_wrap=True)
        else:
            room = min(room, 10)  # two blanks included
            drawn.add_column(heading, overflow="fold", min_width=room - 2)
        least += room
    for row in rows:
        drawn.add_row(*(Text(printable(value)) for value in row))
    width = 1_000
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    if least > width + 2:
        return _upright(headings, rows)
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def cell(value: object) -> str:
    """Return a value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return ("no", "yes")[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{n} {kind}" for kind, n in value.items()) or "–"
    if isinstance(value, float):
        if abs(value) < 1000:
            return f"{value:.4g}"
        return f"{value:,.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


@contextmanager
def _progress(quiet: bool) -> Iterator[Meter]:
    """Yield a meter that is shown on stderr, where that is a terminal: step, bar, time, dollars."""
    from botchat.pipeline.spending import Meter

    meter = Meter(quiet=quiet, tell=note)
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        yield meter
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Spent(TextColumn):
        """Dollars and failures; each look takes the meter's numbers over."""

        def render(self, task: Task) -> Text:
            progress.update(
                task.id, completed=meter.done, total=meter.total or None, description=meter.label
            )
            return Text(printable(meter.bill))

    console = Console(stderr=True)
    room = (console.width - 22) // 4  # beside the count and the time, which are never cut
    progress = Progress(
        TextColumn(
            "{task.description}", markup=False, table_column=Column(max_width=room, no_wrap=True)
        ),
        BarColumn(room),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        Spent("", table_column=Column(max_width=2 * room, no_wrap=True)),
        console=console,
        transient=True,
    )
    with progress:
        progress.add_task("", total=None)
        yield meter


def spent(meter: Meter) -> Cells:
    """Return what a run took, for ``--json``."""
    estimate = meter.budget.estimated
    return {
        "calls": meter.calls,
        "replayed": meter.replayed,
        "tokens": meter.tokens + estimate.tokens,
        "cost_usd": None if meter.unpriced else meter.cost_usd + estimate.usd,
        "estimated": {
            "calls": estimate.calls,
            "cost_usd": estimate.usd,
            "tokens": estimate.tokens,
        },
    }


def print_json(value: object) -> None:
    """Print a value as JSON on one line; paths become texts."""
    try:
        text = msgspec.json.encode(round_floats(value), enc_hook=os.fspath).decode()
    except UnicodeEncodeError:  # a lone surrogate, of a name on the command line
        text = json.dumps(value, default=os.fspath)
    # JSON spells out the first control characters itself; these are the others.
    text = UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    with to_stdout():
        sys.stdout.buffer.write(text.encode() + b"\n")
