"""Tables on a terminal: what fits its width, most important columns first."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botchat.boards.names import labels

if TYPE_CHECKING:
    from botchat.boards.tables import Table

UNLIMITED = 100_000
"""Columns where nothing is left out."""

_GAP = 2
_LEAST_NAME = 16
_LEAST_PROSE = 24
"""Columns below which a name, or a text that is broken into lines, is not made narrower."""

_NUMBER = re.compile(
    r"[-\u2013]|[-+]?\$?[\d,]+(\.\d+)?(e[-+]?\d+)?( %)?"
    r"(\u2013[\d.]+| \[.*\]| \([-\d.]+( to |\u2013)[\d.]+\))?"
)
"""A number, also with its interval, or a range: it is never shortened."""


_COMMAND = re.compile(r"botchat[ :](?:[^;,).]|\.(?! ))*")


def cell_len(text: str) -> int:
    """Columns of a text; rich is imported when there is something to draw."""
    from rich import cells

    return cells.cell_len(text)


@dataclass(frozen=True)
class Grid:
    """A table as texts. Columns go by place: two headings may be equal."""

    keys: tuple[str, ...]
    headings: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    """Row by row."""
    priorities: tuple[int, ...]
    """Of columns; lower ones are kept longer, equal ones in their order, empty ones never."""
    is_record: bool = False
    """One thing with its properties: where it is too wide, each gets a line of its own."""
    broken: bool = False
    """Long texts are broken into lines, not shortened."""

    def _of(self, chosen: Sequence[int]) -> Grid:
        keys, headings, *cells = (
            tuple(row[i] for i in chosen) for row in (self.keys, self.headings, *self.cells)
        )
        same = (self.is_record, self.broken)
        return Grid(keys, headings, tuple(cells), (0,) * len(chosen), *same)

    def drawn(self, columns: int = UNLIMITED, *, bold: bool = False) -> str:
        """Text of lines of at most so many columns, and one that names what did not fit."""
        natural = [max(map(cell_len, (h, *by))) for h, by in self._columns]
        if _total(natural) <= columns:
            return self._text(natural, bold)
        if self.is_record:
            wide = max(map(cell_len, self.headings))
            pairs = zip(self.headings, self.cells[0], strict=True)
            return "\n".join(f"{h}{' ' * (wide - cell_len(h))}  {cell}" for h, cell in pairs)
        least = [self._least(*column, columns) for column in self._columns]
        chosen: list[int] = []
        told = [i for i, (_, cells) in enumerate(self._columns) if set(cells) - {"–", "-"}]
        for i in sorted(told, key=lambda i: self.priorities[i]):
            if not chosen or _total([least[j] for j in (*chosen, i)]) <= columns:
                chosen.append(i)
        chosen.sort()
        widths = [least[i] for i in chosen]
        for place, i in enumerate(chosen):  # what is left over goes to what was made narrower
            room = columns - _total(widths)
            widths[place] += min(max(room, 0), natural[i] - least[i])
        text = self._of(chosen)._text(widths, bold)
        rest = [self.headings[i] for i in range(len(least)) if i not in chosen]
        if not rest:
            return text
        also = f"also: {', '.join(rest)}: a wider terminal or --json shows all"
        return "\n".join([text, *textwrap.wrap(also, columns, break_long_words=False)])

    @property
    def _columns(self) -> list[tuple[str, tuple[str, ...]]]:
        """Heading and cells of each column."""
        return [(h, tuple(row[i] for row in self.cells)) for i, h in enumerate(self.headings)]

    def _least(self, heading: str, cells: tuple[str, ...], columns: int) -> int:
        """The least width of a column: its heading on two lines, its names or texts narrower."""
        width = max(map(cell_len, cells), default=0)
        if not _numbers(cells):
            prose = self.broken and _sentences(cells)
            width = min(width, _LEAST_PROSE if prose else max(_LEAST_NAME, columns // 4))
        words = heading.split()
        halves = (
            max(cell_len(" ".join(words[:i])), cell_len(" ".join(words[i:])))
            for i in range(1, len(words) + 1)
        )
        return max(width, min(halves, default=0))

    def _text(self, widths: Sequence[int], bold: bool) -> str:
        from rich.console import Console
        from rich.table import Table as Drawn
        from rich.text import Text

        drawn = Drawn(box=None, pad_edge=False, header_style="bold")
        shown = []
        for width, (heading, cells) in zip(widths, self._columns, strict=True):
            is_number = _numbers(cells)
            prose = self.broken and _sentences(cells)
            shown.append(cells if is_number or prose else tuple(labels(cells, width)))
            drawn.add_column(Text(heading), overflow="fold", width=width)
            drawn.columns[-1].justify = "right" if is_number else "left"
        for row in zip(*shown, strict=True):
            drawn.add_row(*map(Text, row))
        console = Console(
            width=_total(widths),
            highlight=False,
            force_terminal=bold,
            color_system="standard" if bold else None,
        )
        with console.capture() as captured:
            console.print(drawn)
        # A pipe gets no padding to the full width.
        return "\n".join(line.rstrip() for line in captured.get().splitlines())


def of_table(table: Table) -> Grid:
    """A result's table, each number with its interval."""
    compact = table.compact
    shown = compact.headline
    return Grid(
        tuple(column.key for column in shown),
        tuple(
            _PLAIN.get(one.heading, printable(one.heading).replace("Success @", "Passes "))
            for one in shown
        ),
        tuple(tuple(map(printable, row)) for row in compact.cells_with_ends),
        tuple(column.priority for column in shown),
        broken=any(column.prose for column in shown),
    )


_PLAIN = {"Rank": "Place", "Mean words": "Words a line", "Mean tokens": "Tokens a line"}
"""Heading -> the words of the page; files keep theirs."""


def of_rows(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Rows with equal keys."""
    keys = tuple(rows[0])
    cells = tuple(tuple(_cell(row.get(key)) for key in keys) for row in rows)
    shown = tuple(map(_heading, keys))
    kept = tuple(0 if key.startswith("cost_usd") else 1 for key in keys)  # what a plan is read for
    return Grid(keys, shown, cells, kept, is_record=len(rows) == 1, broken=True)


def _heading(key: str) -> str:
    """A key in words."""
    words = printable(key).replace("cost_usd", "USD").replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}"


def wrapped(text: str, columns: int) -> str:
    """Lines broken between words; a command stays whole, to be copied."""

    def broken(line: str) -> str:
        kept = _COMMAND.sub(lambda found: found[0].replace(" ", "\xa0"), line)
        filled = textwrap.fill(kept, columns, break_long_words=False, break_on_hyphens=False)
        return filled.replace("\xa0", " ")

    lines = text.split("\n")
    return "\n".join(line if cell_len(line) <= columns else broken(line) for line in lines)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _numbers(cells: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells)


def _sentences(cells: Sequence[str]) -> bool:
    return any(cell.count(" ") > 2 for cell in cells)


UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""``text`` for a terminal: what would steer it is spelt out, as ``\x1b`` for escape.

    Control characters but newline and tab, marks that turn the direction of writing, and lone
    surrogates, which no stream can take.
    """
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return printable(", ".join(f"{n} {what}" for what, n in value.items())) or "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    return printable(str(value))
