"""Contestants against each other, and judges, as shaded cells (BotChat Figure 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from botchat.report.figures.sheet import (
    ABOVE,
    BELOW,
    GRID,
    LEAST,
    PEOPLE,
    SOFT,
    WASH,
    Dot,
    Look,
    Shade,
    Sheet,
    fitted,
    widest,
    width_of,
)

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


def _heads(names: Sequence[str], cell: float, look: Look) -> tuple[list[str], list[str]]:
    """What stands left of rows and above columns: names at both, or numbers where they are narrow.

    Numbered columns are those whose number has room.
    """
    shown = fitted(names, max(104.0, 0.28 * look.px))
    if cell >= _ROW:
        return shown, fitted(names, 120.0)
    every = next(n for n in (1, 2, 5, 10, 20, 50) if n * cell >= width_of("100", LEAST) + 2)
    numbers = [str(i) if i == 1 or i % every == 0 else "" for i in range(1, len(names) + 1)]
    if every == 2:
        numbers[0] = ""
    return [f"{name}  {i + 1}" for i, name in enumerate(shown)], numbers


def squares(parts: Sequence[Cells], below: str, look: Look) -> Sheet:
    """Square tables in percent, each under its title; ``below``: what rows and columns are."""
    names = [str(name) for name in parts[0].values.index]
    n = len(names)
    probe = widest(fitted(names, max(104.0, 0.28 * look.px)), bold=bool(look.highlight)) + 30
    cell = min(look.wide(probe) / n, _MOST_WIDE)
    rows, heads = _heads(names, cell, look)
    left = widest(rows, bold=bool(look.highlight)) + 8
    cell = min(look.wide(left, 2) / n, _MOST_WIDE)
    tall = look.tall(max(min(cell, _MOST_TALL), _ROW), _ROW, n * len(parts))
    upright = cell >= _ROW
    head = (widest(heads, bold=bool(look.highlight)) if upright else LEAST) + 8
    sheet, y = Sheet(look.px), 0.0
    for part in parts:
        sheet.say(0, y + 13, part.title, size=13, bold=True)
        y += 20 + head
        for i, (name, said, above) in enumerate(zip(names, rows, heads, strict=True)):
            sheet.name(left - 8, y + (i + 0.5) * tall + 4, name, said, look)
            x = left + (i + 0.5) * cell
            if upright:
                sheet.name(x + 4, y - 5, name, above, look, "start", turn=-90)
            elif above:
                sheet.say(x, y - 5, above, "middle", shade=SOFT)
        _table(sheet, part, left, y, cell, tall)
        y += n * tall + 18
        sheet.say(left + n * cell, y - 5, below, "end", shade=SOFT)
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
        return WASH
    if signed:
        return (ABOVE if value > 0 else BELOW, round(min(1, abs(value)) * darkest, 2))
    return round(0.02 + value * (darkest - 0.02), 2)


def triangle(
    names: Sequence[str], score: NDArray[np.float64], told: NDArray[np.bool_], look: Look
) -> Sheet:
    """Row against column, both by place: darker the more often it wins; rings: cannot be told.

    ``score``: a win 1, a tie ½; ``told``: where its interval leaves out one half.
    """
    n = len(names)
    probe = widest(fitted(names, max(104.0, 0.28 * look.px)), bold=bool(look.highlight)) + 34
    cell = min(look.wide(probe) / n, 18.0)
    rows, heads = _heads(names, cell, look)
    left = widest(rows, bold=bool(look.highlight)) + 8
    slant = cell >= _ROW
    if slant:  # a slanted head leans out at the right
        turn = math.radians(62)
        lean = max(width_of(one) * math.cos(turn) - (n - i) * cell for i, one in enumerate(heads))
        cell = min(look.wide(left, max(0.0, lean) + 8) / n, 18.0)
    else:
        cell = look.wide(left, 2) / n
    tall = look.tall(max(cell, _ROW), _ROW, n)
    top = widest(heads) * math.sin(math.radians(62)) + 14 if slant else 20.0
    sheet = Sheet(look.px, top + n * tall + 4)
    for i, (name, said, above) in enumerate(zip(names, rows, heads, strict=True)):
        sheet.name(left - 6, top + (i + 0.5) * tall + 4, name, said, look)
        x = left + (i + 0.5) * cell
        if slant:
            sheet.name(x + 2, top - 6, name, above, look, "start", turn=-62)
        elif above:
            sheet.say(x, top - 6, above, "middle", shade=SOFT)
    cells = [(i, j) for i in range(n) for j in range(i + 1, n) if math.isfinite(score[i, j])]
    rings = []
    gap = min(1.0, cell / 6)
    shades = {pair: _beaten(float(score[pair])) if told[pair] else GRID / 2 for pair in cells}
    for i, j in sorted(cells, key=lambda pair: str(shades[pair])):
        x, y = left + j * cell, top + i * tall
        sheet.box(x, y, x + cell - gap, y + tall - gap, shades[i, j])
        if not told[i, j]:
            r = min(2.4, cell * 0.28)
            rings.append(Dot(x + cell / 2, y + tall / 2, r, GRID / 2, SOFT, min(1.2, r / 2)))
    sheet.marks += rings
    # The half that would say the same again has room for the key, if it is large enough.
    entries: list[tuple[str, Shade, str]] = [
        ("ring", SOFT, "cannot be told apart"),
        ("bar", 0.5, "row wins more often"),
    ]
    if any(told[pair] and score[pair] < 0.5 for pair in cells):
        entries.append(("bar", (PEOPLE, 0.6), "column does"))
    start = n * tall - 18 * len(entries)
    if start // tall * cell > widest([said for *_, said in entries], LEAST) + 32:
        for k, entry in enumerate(entries):
            sheet.key(top + start + 18 * k, [entry], left + 6)
    else:
        sheet.height += sheet.key(sheet.height + 2, entries)
    return sheet


def _beaten(score: float) -> Shade:
    depth = round(0.12 + 0.88 * min(1.0, abs(score - 0.5) / 0.42), 2)
    return depth if score > 0.5 else (PEOPLE, depth)
