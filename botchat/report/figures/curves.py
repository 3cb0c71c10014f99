"""Survival of dialogues until the first accused utterance, a curve a contestant.

Points are joined by straight lines, not by steps, because the steps of many contestants overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from botchat.boards.survival import Curve
from botchat.boards.tables import labels
from botchat.records import HUMAN, N_SEED
from botchat.report.figures import leaders
from botchat.report.figures.charts import legend
from botchat.report.figures.style import BLUE, GRID, MUTED, ORANGE, Heading, bare, sheet, styled

_WIDTH, _LEAST_HEIGHT = 5.4, 3.2
"""Of the plot, in inches."""

Dashes = str | tuple[int, tuple[float, ...]]
"""A line's style as matplotlib names it."""

_COLORS = (BLUE, "#1b9e77", "#b0408a", "#9a8412")
_DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
"""Colours times dashes tell 16 contestants apart; more than 16 are shaded by their order."""

_ORDER = LinearSegmentedColormap.from_list("order", ["#1d4f91", "#3f9fb5", "#9ccb86", "#c9b13c"])

_MOST_BANDS = 6
"""Curves with intervals that can be told apart."""


def survival(curves: Mapping[str, Curve], heading: Heading) -> Figure:
    """Share of dialogues not accused yet, after each utterance.

    ``curves``: contestant -> curve, all of one length; the longest survival first.
    """
    names = list(curves)
    shown = labels(names)
    height = max(_LEAST_HEIGHT, leaders.ROW * len(names))
    with styled():
        figure, (axes,) = sheet(
            heading, [(_WIDTH, height)], left=0.75, right=leaders.room(shown), above=0.42
        )
        bare(axes, grid="y")
        last = max(len(curve.surviving) for curve in curves.values())
        axes.set_xlim(1, last + 0.3)
        axes.set_ylim(-3, 103)
        axes.axvspan(1, N_SEED, color=GRID, alpha=0.45, linewidth=0)
        ends, colors = [], []
        for i, (name, curve) in enumerate(curves.items()):
            color, dashes = _look(name, i, len(names))
            ends.append(_curve(axes, curve, color, dashes, band=len(names) <= _MOST_BANDS))
            colors.append(color)
        order = sorted(range(len(names)), key=lambda i: (-ends[i][1], i))
        leaders.name(
            axes, [ends[i] for i in order], [shown[i] for i in order], [colors[i] for i in order]
        )
        axes.set_xticks(range(2, last + 1, 2 * (1 + last // 24)))
        axes.set_yticks(range(0, 101, 20))
        axes.set_xlabel("Utterance")
        axes.set_ylabel("Not accused so far (%)")
        legend(axes, _marks(len(names)))
    return figure


def _curve(
    axes: Axes, curve: Curve, color: str, dashes: Dashes, *, band: bool
) -> tuple[float, float]:
    """Draw a curve; its last point."""
    known = np.flatnonzero(~np.isnan(curve.surviving))
    at, share = known + 1, 100 * curve.surviving[known]
    if band:
        low, high = (
            100 * np.where(np.isnan(ends), curve.surviving, ends)[known]
            for ends in (curve.low, curve.high)
        )
        axes.fill_between(at, low, high, color=color, alpha=0.14, linewidth=0)
    axes.plot(at, share, color=color, linestyle=dashes, linewidth=1.8, clip_on=False, zorder=3)
    leaving = curve.at_risk - curve.accused - np.append(curve.at_risk[1:], 0)
    early = [i for i in known if leaving[i] > 0 and i + 1 < len(curve.surviving)]
    axes.scatter(
        [i + 1 for i in early], [100 * curve.surviving[i] for i in early], marker="|", s=26,
        color=color, linewidth=1, zorder=3,
    )  # fmt: skip
    return float(at[-1]), float(share[-1])


def _look(name: str, i: int, n: int) -> tuple[str, Dashes]:
    if name == HUMAN:
        return ORANGE, "-"
    if n > len(_COLORS) * len(_DASHES):
        return to_hex(_ORDER(i / (n - 1))), "-"
    return _COLORS[i % len(_COLORS)], _DASHES[i // len(_COLORS)]


def _marks(n: int) -> list[Patch | Line2D]:
    said = "dialogues end here unaccused"
    tick = Line2D([], [], color="none", marker="|", markersize=6, markeredgecolor=MUTED, label=said)
    marks: list[Patch | Line2D] = [Patch(color=GRID, label="human start"), tick]
    if n <= _MOST_BANDS:
        marks.append(Patch(color=BLUE, alpha=0.3, label="95 % interval"))
    return marks
