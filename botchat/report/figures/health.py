"""Judge health: how steady judges are, how readable, and what they prefer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from botchat.boards.tables import Table, labels
from botchat.report.figures.style import (
    BLUE,
    INK,
    MUTED,
    Heading,
    bare,
    bars,
    label_inches,
    name_rows,
    right_of,
    sheet,
    styled,
)

_WIDTH, _ROW = 1.22, 0.3
"""Of a panel, and of a row in it, in inches."""

_NUMBER = 0.42
"""Room for the number right of a panel, in inches."""


@dataclass(frozen=True)
class Measure:
    """One column of the figure."""

    key: str
    title: str
    """In one line that is not much wider than the panel."""
    of: str
    """What the bar is a share of."""
    neutral: float = 0.0
    """What bars begin at: 0.5 where that is no preference."""
    low: float = 0.0
    high: float = 1.0


def health(judges: Table, measures: Sequence[Measure], heading: Heading) -> Figure:
    """Bars for every measure, side by side; a dash where it is not known.

    ``judges``: one row a protocol or judge, named by its first column. Measures that no row has are
    left out; those with an interval have a line.
    """
    rows = judges.frame
    there = [one for one in measures if one.key in rows and rows[one.key].notna().any()]
    shown = labels(rows[judges.columns[0].key].tolist())
    with styled():
        figure, panels = sheet(
            heading,
            [(_WIDTH, _ROW * len(rows))] * len(there),
            left=label_inches(shown, 9) + 0.3,
            right=_NUMBER + 0.1,
            above=0.36,
            gap=_NUMBER + 0.12,
            below=0.42,
        )
        for i, (axes, measure) in enumerate(zip(panels, there, strict=True)):
            bare(axes, grid="x")
            name_rows(axes, shown if i == 0 else [], 9)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            axes.set_xlim(100 * measure.low, 100 * measure.high)
            middle = (measure.low + measure.high) / 2
            ticks = [100 * at for at in (measure.low, middle, measure.high)]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], size=7.5)
            axes.set_title(measure.title, loc="left", size=8.5, weight="bold", pad=6)
            axes.set_xlabel(measure.of, size=7.5, color=MUTED)
            if measure.low < measure.neutral:
                axes.axvline(100 * measure.neutral, color=MUTED, linewidth=0.9)
            _bars(axes, judges, measure)
    return figure


def _bars(axes: Axes, judges: Table, measure: Measure) -> None:
    values = 100 * judges.frame[measure.key].to_numpy(dtype=float)
    bars(axes, range(len(values)), 100 * measure.neutral, values, height=0.6, color=BLUE)
    if ends := judges.ends(measure.key):
        low, high = (100 * judges.frame[end.key].to_numpy(dtype=float) for end in ends)
        known = np.flatnonzero(~np.isnan(values + low + high))
        axes.hlines(known, low[known], high[known], color=INK, linewidth=1.1)
    place = right_of(axes, axes.get_yaxis_transform(), 4)
    for row, value in enumerate(values):
        said = "–" if math.isnan(value) else f"{value:.1f}"
        axes.text(1, row, said, transform=place, va="center_baseline", size=8.5)
