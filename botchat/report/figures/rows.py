"""Figures with a row a contestant, best first, so that long names, and 100 of them, can be read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from botchat.records import HUMAN, MIN_HUMAN
from botchat.report.figures import ink
from botchat.report.figures.axes import Axis, Ruler, ruler
from botchat.report.figures.lettering import LEAST, fitted, widest, width_of
from botchat.report.figures.sheet import Look, Sheet

PERCENT = [(n / 100, str(n)) for n in (0, 25, 50, 75, 100)]
"""Ticks of an axis of shares."""

_FEW = 20
"""Rows that have room; more are closer."""

_LEAST_ROW = 13.5


class Rows(NamedTuple):
    """A plot with a row a name, and a scale from 0 to 1 along it."""

    sheet: Sheet
    left: float
    wide: float
    top: float
    each: float
    scale: Ruler | None = None
    """Of numbers, where it has one."""

    def at(self, value: float) -> float:
        """Where a number stands."""
        assert self.scale is not None
        return self.x(self.scale.share(value)) if math.isfinite(value) else math.nan

    def x(self, share: float) -> float:
        """Where a share of the scale stands."""
        return self.left + self.wide * share

    def y(self, row: float) -> float:
        """The middle of a row."""
        return self.top + (row + 0.5) * self.each

    def number(self, row: float, said: str, x: float | None = None, *, bold: bool = False) -> None:
        """A number at the right of a row, or of a column that ends at ``x``."""
        x = self.sheet.width if x is None else x
        self.sheet.say(
            x, self.y(row) + 4, said, "end", bold=bold, shade=ink.INK if bold else ink.SOFT
        )


def rows(
    names: Sequence[str],
    look: Look,
    *,
    right: float = 8.0,
    top: float = 18.0,
    below: float = 20.0,
    ticks: Sequence[tuple[float, str]] = (),
    label: str = "",
    numbers: tuple[Axis, Sequence[float]] | None = None,
    each: float | None = None,
) -> Rows:
    """Names at the left, first on top; ``right``, ``top``, ``below``: px for what stands there.

    ``ticks``: shares of the scale and what they say, or ``numbers`` that it is of; ``label``: names
    it.
    """
    shown, n = fitted(names, max(104.0, 0.34 * look.px)), max(1, len(names))
    left = widest(shown) + 8
    each = look.tall(each or (22 if n <= _FEW else 16), _LEAST_ROW, n)
    wide = look.wide(left, right)
    scale = None
    if numbers is not None:
        axis, values = numbers
        known = [value for value in values if math.isfinite(value)] or [0.0]
        scale = ruler(axis, known, lambda said: sum(width_of(s, LEAST) + 14 for s in said) <= wide)
        ticks = scale.ticks
    foot = top + n * each
    sheet = Sheet(look.px, foot + below + (14 if label else 0))
    made = Rows(sheet, left, wide, top, each, scale)
    for at, said in ticks:
        sheet.line([(made.x(at), top), (made.x(at), foot)], ink.GRID)
        sheet.say(made.x(at), foot + 13, said, "middle", shade=ink.SOFT)
    if label:
        sheet.say(look.px, foot + 28, label, "end", shade=ink.SOFT)
    for row, (name, said) in enumerate(zip(names, shown, strict=True)):
        sheet.name(left - 8, made.y(row) + 4, name, said)
    return made


def _written(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value).replace("-", "−")


def series(
    values: Mapping[str, pd.DataFrame], label: str, form: str, look: Look, *, ordered: bool = True
) -> Sheet:
    """Numbers with their intervals, of one or several series, in the order of the first.

    ``values``: series -> index model; columns the number, ``low``, ``high`` and, of one series,
    words that stand beside it under the column's name.
    """
    first = next(iter(values.values()))
    if ordered:
        first = first.sort_values(first.columns[0], ascending=False, kind="stable")
    names = [*dict.fromkeys(name for one in (first, *values.values()) for name in one.index)]
    tables = [one.reindex(names) for one in values.values()]
    beside = [(title, [_written(v, form) for v in one.iloc[:, 0]])
              for title, one in zip(values, tables, strict=True)]  # fmt: skip
    beside = beside[: 1 if look.px < 500 else None]
    beside += [(key, tables[0][key].fillna("–").tolist()) for key in first.columns[3:]]
    room = [10 + widest([title, *said], LEAST, bold=True) for title, said in beside]
    several, percent = len(tables) > 1, "%" in label
    axis = Axis(label, "{:,.6g}".format, ends=(0.0, 100.0) if percent else None)
    numbers = np.concatenate([one.iloc[:, :3].to_numpy(dtype=float).ravel() for one in tables])
    drawn = rows(
        names, look, right=sum(room) + 8, top=40.0 if several else 18.0, label=label,
        numbers=(axis, numbers.tolist()),
        each=max(22.0, 9.0 * len(tables) + 8) if several else None,
    )  # fmt: skip
    sheet = drawn.sheet
    fills = [ink.INK if i < 2 else ink.BAR for i in range(len(tables))]
    if several:
        dots = ["dot", *["ring"] * (len(tables) - 1)]
        sheet.key(0, zip(dots, fills, values, strict=True))
    x = look.px - sum(room)
    for i, ((title, said), wide) in enumerate(zip(beside, room, strict=True)):
        x += wide
        sheet.say(x, drawn.top - 6, title, "end", shade=ink.SOFT)
        for row, text in enumerate(said):
            drawn.number(row, text, x, bold=i == 0)
    for i, one in enumerate(tables):
        down = (i - (len(tables) - 1) / 2) * 9 / drawn.each
        for row, (value, low, high) in enumerate(one.iloc[:, :3].to_numpy(dtype=float)):
            y = drawn.y(row + down)
            sheet.line([(drawn.at(v), y) for v in (low, high)], ink.BAR, 2 if i else 3)
            sheet.dot(drawn.at(value), y, names[row], 3 if i else 3.6, hollow=i > 0, fill=fills[i])
    return sheet


def lost(values: pd.DataFrame, first: int, last: int, look: Look) -> Sheet:
    """What passes after ``first`` lines (open) and after ``last`` (filled), and what was lost.

    ``values``: index model; ``short_at``, ``short_low``, ``short_high``, ``long_at`` …, 0 to 1.
    """
    drawn = rows([*values.index], look, right=30, top=20, ticks=PERCENT)
    sheet = drawn.sheet
    sheet.key(0, [("ring", ink.INK, f"{first} lines"), ("dot", ink.INK, str(last))], drawn.left)
    sheet.say(look.px, 12, "lost", "end", shade=ink.SOFT)
    for row, (name, one) in enumerate(values.iterrows()):
        y, (before, after) = drawn.y(row), one[["short_at", "long_at"]]
        sheet.line([(drawn.x(after), y), (drawn.x(before), y)], ink.BAR, 1.5)
        for key, shade in (("short", ink.GRID * 1.5), ("long", ink.BAR)):
            sheet.box(drawn.x(one[f"{key}_low"]), y - 4, drawn.x(one[f"{key}_high"]), y + 4, shade)
        sheet.dot(drawn.x(before), y, str(name), 3.4, hollow=True)
        sheet.dot(drawn.x(after), y, str(name), 3.4)
        if math.isfinite(gone := 100 * (before - after)):
            drawn.number(row, f"−{gone:.0f}" if gone >= 0.5 else "0")
    return sheet


def wings(rates: pd.DataFrame, look: Look) -> Sheet:
    """Beside a real chat: found, cannot tell, fooled; centred on what cannot be told.

    ``rates``: index model; columns ``win``, ``tie``, ``lose``, 0 to 1.
    """
    left = float((rates["lose"] + rates["tie"] / 2).max())
    whole = left + float((rates["win"] + rates["tie"] / 2).max())
    drawn = rows([*rates.index], look, right=2, top=22, below=18)
    sheet, middle = drawn.sheet, drawn.x(left / whole)
    unit = drawn.wide / whole
    foot = drawn.top + len(rates) * drawn.each
    kinds = ((ink.GRID, "finds it"), (ink.BAR, "cannot tell"), (ink.INK, "fooled"))
    sheet.key(0, [("bar", *kind) for kind in kinds], min(drawn.left, look.px - 214))
    sheet.line([(middle, drawn.top - 3), (middle, foot)], ink.PEOPLE, 1.4)
    for row, (win, tie, lose) in enumerate(rates[["win", "tie", "lose"]].to_numpy(dtype=float)):
        top, low = drawn.y(row) - 7, drawn.y(row) + 7
        x = middle - unit * (lose + tie / 2)
        for share, shade, text in ((lose, ink.GRID, 1), (tie, ink.BAR, 1), (win, ink.INK, 0)):
            if share > 0:
                sheet.box(x, top, x + unit * share, low, shade)
                said = f"{100 * share:.0f}"
                if unit * share > width_of(said, LEAST) + 4:
                    sheet.say(x + unit * share / 2, low - 3, said, "middle", shade=text)
                x += unit * share
    said = "equal wings: level with people"
    half = width_of(said, LEAST) / 2
    sheet.say(min(max(middle, half), look.px - half), foot + 13, said, "middle", shade=ink.PEOPLE)
    return sheet


def human_lengths(utterances: Sequence[int], look: Look) -> Sheet:
    """How many people's chats have how many lines (BotChat Figure 2)."""
    found = Counter(utterances)
    lines, most = range(min(found), max(found) + 1), max(found.values())
    kinds = ((ink.PALE, f"below {MIN_HUMAN}: alone only"), (ink.PEOPLE, "more: compared, too"))
    drawn = rows([f"{n} lines" for n in lines], look, right=48, top=22, below=4, each=16)
    drawn.sheet.key(0, [("bar", *kind) for kind in kinds])
    for row, n in enumerate(lines):
        y, x = drawn.y(row), drawn.x(found[n] / most)
        drawn.sheet.box(drawn.left, y - 5, x, y + 5, ink.PEOPLE if n >= MIN_HUMAN else ink.PALE)
        drawn.sheet.say(x + 5, y + 4, f"{found[n]:,}")
    return drawn.sheet


def violins(lengths: Mapping[str, NDArray[np.int64]], unit: str, look: Look) -> Sheet:
    """Utterance lengths, the shortest mean first, with quartiles (BotChat Figure 3)."""
    spoken = {name: values for name, values in lengths.items() if len(values)}
    names = sorted(spoken, key=lambda name: (float(spoken[name].mean()), name))
    logs = {name: np.log10(np.maximum(spoken[name], 1)) for name in names}
    low, high = (float(end(np.concatenate([*logs.values()]))) for end in (np.min, np.max))
    high = max(high, low + 0.5)
    ticks = [((math.log10(v * 10**e) - low) / (high - low), f"{v * 10**e:,}")
             for e in range(6) for v in (1, 3) if low <= math.log10(v * 10**e) <= high]  # fmt: skip
    means = [f"{spoken[name].mean():,.0f}" for name in names]
    room = 10 + widest(["mean", *means], LEAST, bold=True)
    drawn = rows(names, look, right=room, ticks=ticks, label=f"{unit} a line, log scale")
    sheet = drawn.sheet
    sheet.say(look.px, 12, "mean", "end", shade=ink.SOFT)
    grid = np.linspace(low, high, 80)
    for row, name in enumerate(names):
        values, y = logs[name], drawn.y(row)
        spread = max(float(values.std()) * len(values) ** -0.2, 0.02)
        some = values if len(values) < 400 else np.quantile(values, (np.arange(400) + 0.5) / 400)
        density = np.exp(-(((grid[:, None] - some) / spread) ** 2) / 2).sum(axis=1)
        half = 0.45 * drawn.each * density / density.max()
        x = [drawn.x(float(at)) for at in (grid - low) / (high - low)]
        outline = [*zip(x, y - half, strict=True), *zip(x[::-1], (y + half)[::-1], strict=True)]
        fill = ink.PEOPLE if name == HUMAN else ink.BAR
        sheet.area([(a, float(b)) for a, b in outline], fill, 0.55)
        start, middle, end = ((np.percentile(values, (25, 50, 75)) - low) / (high - low)).tolist()
        sheet.line([(drawn.x(start), y), (drawn.x(end), y)], ink.INK, 2)
        sheet.dot(drawn.x(middle), y, r=2.6, hollow=True)
        drawn.number(row, means[row], bold=True)
    return sheet
