"""Contestants against each other, and judges, as shaded cells (BotChat Figure 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from botchat.report.figures import ink
from botchat.report.figures.lettering import LEAST, fitted, widest, width_of
from botchat.report.figures.sheet import Dot, Look, Shade, Sheet

_DARKEST, _DARKEST_BARE = 0.36, 0.92
"""Shade of 100 % where numbers stand on it, and where none do."""

_ROW = 13.5
"""Least height of a row, and width of a column, with a name."""

_MOST_WIDE, _MOST_TALL = 40.0, 18.0
"""Px of a cell with a number."""


class Cells(NamedTuple):
    """One square table of numbers from 0 to 1, or from -1 to 1."""

    title: str
    values: pd.DataFrame
    """NaN: not known."""
    told: NDArray[np.bool_] | None = None
    """Where a number says something: it is bold."""
    signed: bool = False
    """Whether numbers are below 0, too."""


class _Names(NamedTuple):
    """What stands left of rows and above columns: names, or numbers where columns are narrow."""

    names: Sequence[str]
    rows: Sequence[str]
    heads: Sequence[str]
    left: float
    cell: float
    """Px of the rows' names, and width of a column."""
    turn: float
    """Of the heads; 0: they are numbers."""

    @classmethod
    def of(cls, names: Sequence[str], look: Look, most: float, turn: float) -> _Names:
        """Of columns at most so wide; slanted heads lean out at the right."""
        n = len(names)
        shown, heads = fitted(names, max(104.0, 0.28 * look.px)), fitted(names, 120.0)
        left = widest(shown) + 8
        cell = min(look.wide(left, 2) / n, most)
        out = math.cos(math.radians(turn))
        lean = max(width_of(one) * out - (n - i - 0.3) * cell for i, one in enumerate(heads))
        cell = min(cell, look.wide(left, max(2.0, lean + 2)) / n)
        if cell >= _ROW:
            return cls(names, shown, heads, left, cell, turn)
        shown = [f"{name}  {i + 1}" for i, name in enumerate(shown)]
        left = widest(shown) + 8
        cell = look.wide(left, 2) / n
        every = next(k for k in (1, 2, 5, 10, 20, 50) if k * cell >= width_of("100", LEAST) + 2)
        heads = [
            str(i) if i % every == 0 or (i == 1 and every != 2) else "" for i in range(1, n + 1)
        ]
        return cls(names, shown, heads, left, cell, 0.0)

    @property
    def tall(self) -> float:
        """Height of the heads."""
        up = widest(self.heads, bold=True) * math.sin(math.radians(self.turn))
        return 8 + up + 6 * math.cos(math.radians(self.turn)) if self.turn else LEAST + 8

    def put(self, sheet: Sheet, top: float, tall: float) -> None:
        """Write them at a table whose rows begin at ``top``."""
        for i, name in enumerate(self.names):
            sheet.name(self.left - 8, top + (i + 0.5) * tall + 4, name, self.rows[i])
            x = self.left + (i + 0.5) * self.cell
            if self.turn:
                sheet.name(x + 4 * math.sin(math.radians(self.turn)), top - 6, name, self.heads[i],
                           "start", turn=-self.turn)  # fmt: skip
            elif self.heads[i]:
                sheet.say(x, top - 6, self.heads[i], "middle", shade=ink.SOFT)


def squares(parts: Sequence[Cells], below: str, look: Look) -> Sheet:
    """Square tables in percent, each under its title; ``below``: what rows and columns are."""
    beside = _Names.of([str(name) for name in parts[0].values.index], look, _MOST_WIDE, 90)
    n, cell = len(beside.names), beside.cell
    tall = look.tall(max(min(cell, _MOST_TALL), _ROW), _ROW, n * len(parts))
    sheet, y = Sheet(look.px), 0.0
    for part in parts:
        sheet.say(0, y + 13, part.title, size=13, bold=True)
        y += 20 + beside.tall
        beside.put(sheet, y, tall)
        _table(sheet, part, beside.left, y, cell, tall)
        y += n * tall + 18
        sheet.say(beside.left + n * cell, y - 5, below, "end", shade=ink.SOFT)
    sheet.height = y
    return sheet


def _table(sheet: Sheet, part: Cells, left: float, top: float, wide: float, tall: float) -> None:
    """A cell with its number for every two; nothing for one against itself."""
    values = part.values.to_numpy(dtype=float)
    pairs = [(i, j) for i, j in np.ndindex(values.shape) if i != j]
    said = {pair: "–" if math.isnan(v := values[pair]) else f"{100 * v:.0f}" for pair in pairs}
    room = wide >= widest(said.values(), LEAST, bold=True) + 2
    # Those of one shade are one path.
    for i, j in sorted(pairs, key=lambda pair: said[pair]):
        shade = _shade_of(float(f"{values[i, j]:.2f}"), part.signed, room)
        x, y = left + j * wide, top + i * tall
        sheet.box(x, y, x + wide - 1, y + tall - 1, shade)
    for i, j in pairs if room else ():
        bold = part.told is not None and bool(part.told[i, j])
        sheet.say(left + (j + 0.5) * wide, top + (i + 0.5) * tall + 4,
                  said[i, j].replace("-", "−"), "middle", bold=bold)  # fmt: skip


def _shade_of(value: float, signed: bool, told: bool) -> Shade:
    darkest = _DARKEST if told else _DARKEST_BARE
    if math.isnan(value):
        return ink.WASH
    if signed:
        return (ink.ABOVE if value > 0 else ink.BELOW, round(min(1, abs(value)) * darkest, 2))
    return round(0.02 + value * (darkest - 0.02), 2)


def triangle(
    names: Sequence[str], score: NDArray[np.float64], told: NDArray[np.bool_], look: Look
) -> Sheet:
    """Row against column, both by place: darker the more often it wins; rings: cannot be told.

    ``score``: a win 1, a tie ½; ``told``: where its interval leaves out one half.
    """
    beside = _Names.of(names, look, 18.0, 62)
    n, cell, left, top = len(names), beside.cell, beside.left, beside.tall
    tall = look.tall(max(cell, _ROW), _ROW, n)
    sheet = Sheet(look.px, top + n * tall + 4)
    beside.put(sheet, top, tall)
    cells = [(i, j) for i in range(n) for j in range(i + 1, n) if math.isfinite(score[i, j])]
    rings = []
    gap = min(1.0, cell / 6)
    shades = {pair: _beaten(float(score[pair])) if told[pair] else ink.GRID / 2 for pair in cells}
    for i, j in sorted(cells, key=lambda pair: str(shades[pair])):
        x, y = left + j * cell, top + i * tall
        sheet.box(x, y, x + cell - gap, y + tall - gap, shades[i, j])
        if not told[i, j]:
            r = min(2.4, cell * 0.28)
            rings.append(
                Dot(x + cell / 2, y + tall / 2, r, ink.GRID / 2, ink.SOFT, min(1.2, r / 2))
            )
    sheet.marks += rings
    # The half that would say the same again has room for the key, if it is large enough.
    entries: list[tuple[str, Shade, str]] = [
        ("ring", ink.SOFT, "cannot be told apart"),
        ("bar", 0.5, "row wins more often"),
    ]
    if any(told[pair] and score[pair] < 0.5 for pair in cells):
        entries.append(("bar", (ink.ORANGE, 0.6), "column does"))
    start = n * tall - 18 * len(entries)
    if start // tall * cell > widest([said for *_, said in entries], LEAST) + 32:
        for k, entry in enumerate(entries):
            sheet.key(top + start + 18 * k, [entry], left + 6)
    else:
        sheet.height += sheet.key(sheet.height + 2, entries)
    return sheet


def _beaten(score: float) -> Shade:
    depth = round(0.12 + 0.88 * min(1.0, abs(score - 0.5) / 0.42), 2)
    return depth if score > 0.5 else (ink.ORANGE, depth)
