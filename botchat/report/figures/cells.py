"""Tables of rates as shaded cells: models against each other (BotChat Figure 5), failure types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.path import Path
from numpy.typing import NDArray

from botchat.report.figures.rows import written
from botchat.report.figures.style import (
    GRID,
    INK,
    LEAST,
    MUTED,
    NAMES,
    ROW,
    Heading,
    Look,
    bare,
    fitted,
    label_x,
    mixed,
    name_rows,
    of_name,
    sheet,
    tint,
    widest,
)

_DARKEST, _DARKEST_BARE = 0.36, 0.92
"""Shade of 100 % where numbers stand on it, and where none do."""

_SIGNED = ("#762a83", "#1b7837")
"""Below and above 0 (PRGn: told apart with every common colour blindness)."""

_SHEET = 7.0
"""Height of the tables of a figure in a paper, in inches."""

_COLUMN = 0.165
"""Least width of a column with a name, in inches."""


class Cells(NamedTuple):
    """One table of numbers from 0 to 1, or from -1 to 1."""

    title: str
    values: pd.DataFrame
    """NaN: not known."""
    low: pd.DataFrame | None = None
    high: pd.DataFrame | None = None
    """Ends of the intervals."""
    even: float | None = None
    """What a number must differ from to say something: it is bold where its interval does."""
    signed: bool = False
    """Whether numbers are below 0, too."""


def squares(parts: Sequence[Cells], below: str, heading: Heading) -> Figure:
    """Square tables in percent, each under its title; ``below``: label of the horizontal axes."""
    look = heading.look
    models = list(parts[0].values.index)
    n = len(models)
    below_each_other = len(parts) * n * min(_across(models, look, 1) / n, 0.5)
    too_high = look.bare and below_each_other > _SHEET
    beside = len(parts) if too_high or _across(models, look, len(parts)) >= 0.3 * n else 1
    across = _across(models, look, beside)
    cell = min(across / n, 0.5)
    every = math.ceil(_COLUMN / cell)
    columns = models if every == 1 else [str(i + 1) for i in range(n)]
    shown, above = _names(models, look), fitted(columns, max(0.95, 0.18 * look.width))
    if every > 1:
        shown = [f"{name}  {i + 1}" for i, name in enumerate(shown)]
    tall = widest(above, bold=True)
    left = widest(shown, bold=True) + 0.24
    figure, panels = sheet(
        heading,
        [n * max(cell, ROW)] * len(parts),
        left=left,
        right=0.12 + beside * (across - n * cell),
        above=tall + 0.45,
        below=0.4,
        columns=beside,
        least=n * ROW,
    )
    for i, (axes, part) in enumerate(zip(panels, parts, strict=True)):
        first = i % beside == 0
        _table(axes, part, cell)
        _name_columns(axes, models, above, every, look)
        name_rows(axes, models if first else [], shown if first else [], look)
        axes.annotate(
            part.title, (0, 1), (0, (tall + 0.2) * 72), xycoords="axes fraction",
            textcoords="offset points", weight="bold", size=9.5,
        )  # fmt: skip
        label_x(axes, below)
    return figure


def failures(rates: Cells, heading: Heading) -> Figure:
    """How often each contestant fails in each way: rows contestants, columns kinds of failure."""
    look = heading.look
    models, kinds = list(rates.values.index), list(rates.values.columns)
    shown = _names(models, look)
    left = widest(shown, bold=True) + 0.24
    across = look.width - left - 0.12
    cell = min(across / len(kinds), 0.6)
    figure, (axes,) = sheet(
        heading,
        [0.25 * len(models)],
        left=left,
        right=0.12 + across - cell * len(kinds),
        above=widest(kinds) + 0.3,
        below=0.2,
        least=ROW * len(models),
    )
    _table(axes, rates, cell)
    _name_columns(axes, kinds, kinds, 1, look)
    name_rows(axes, models, shown, look)
    return figure


def _across(models: Sequence[str], look: Look, beside: int) -> float:
    """Width of each of so many tables side by side."""
    left = widest(_names(models, look), bold=True) + 0.44
    return (look.width - left - 0.12 - 0.3 * (beside - 1)) / beside


def _names(names: Sequence[str], look: Look) -> list[str]:
    return fitted(names, max(NAMES, 0.3 * look.width - 0.2))


def _name_columns(
    axes: Axes, names: Sequence[str], shown: Sequence[str], every: int, look: Look
) -> None:
    """Names above a plot, read upwards; every so many, if there is no room for all."""
    axes.set_xticks([])
    place, va, ha = axes.get_xaxis_text2_transform(5)
    for column in range(0, len(names), every):
        style = of_name(names[column], shown[column], look)
        said = shown[column]
        axes.text(column, 1, said, transform=place, va=va, ha=ha, rotation=90, **style)


def _table(axes: Axes, part: Cells, wide: float) -> None:
    """A cell with its value for every pair; nothing for a model against itself.

    ``wide``: width of a cell, in inches; numbers are left out where they do not fit.
    """
    values = part.values.to_numpy(dtype=float)
    rows, columns = values.shape
    bare(axes)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    square = list(part.values.index) == list(part.values.columns)
    pairs = [(i, j) for i, j in np.ndindex(values.shape) if not square or i != j]
    said = {(i, j): written(float(100 * values[i, j]), "{:.0f}") for i, j in pairs}
    told = wide >= widest(said.values(), LEAST, bold=True) + 0.03
    _shade(axes, pairs, values, told, part.signed)
    if not told:
        return
    sure = _sure(part)
    for i, j in pairs:
        axes.text(
            j, i, said[i, j].replace("-", "−"), size=LEAST, ha="center", va="center_baseline",
            weight="bold" if sure[i, j] else "normal",
            color=tint(INK if math.isfinite(values[i, j]) else MUTED),
        )  # fmt: skip


def _sure(part: Cells) -> NDArray[np.bool_]:
    """Where the interval is all on one side of what is even."""
    if part.even is None or part.low is None or part.high is None:
        return np.zeros(part.values.shape, dtype=bool)
    low, high = part.low.to_numpy(dtype=float), part.high.to_numpy(dtype=float)
    return np.asarray((low > part.even) | (high < part.even))


def _shade(
    axes: Axes,
    pairs: Sequence[tuple[int, int]],
    values: NDArray[np.float64],
    told: bool,
    signed: bool,
) -> None:
    given = np.array([values[pair] for pair in pairs]).reshape(-1)
    corners = 0.47 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
    outlines = np.reshape(pairs, (-1, 1, 2))[..., ::-1] + corners
    outline = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    # There can be thousands of cells: all of the same colour are one path.
    found, which = np.unique(given.round(2), return_inverse=True)
    same = [outlines[which == i] for i in range(len(found))]
    paths = [Path(one.reshape(-1, 2), np.tile(outline, len(one))) for one in same]
    colors = [_shade_of(value, _DARKEST if told else _DARKEST_BARE, signed) for value in found]
    drawn = PathCollection(paths, facecolors=colors, edgecolors="none", snap=True)
    axes.add_collection(drawn, autolim=False)


def _shade_of(value: float, darkest: float, signed: bool) -> str:
    if math.isnan(value):
        return tint(GRID / 2)
    if signed:
        return mixed(_SIGNED[int(value > 0)], tint(0), min(1, abs(value)) * darkest)
    return tint(0.02 + value * (darkest - 0.02))
