"""Survival curves, and names beside a plot, each with a line to its point, none over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from botchat.boards.survival import Curve
from botchat.boards.tables import labels
from botchat.records import HUMAN, N_SEED
from botchat.report.figures.charts import legend
from botchat.report.figures.style import (
    BLUE,
    GREY,
    GRID,
    INK,
    MUTED,
    ORANGE,
    Heading,
    bare,
    label_inches,
    sheet,
    styled,
)

_WIDTH, _LEAST_HEIGHT = 5.4, 3.2
"""Of the plot, in inches."""

ROW, _LINES = 0.22, 0.45
"""Least height of a name beside a plot, and room for the lines that lead there, in inches."""

_SIZE = 8.5
"""Of the names, in points."""

Dashes = str | tuple[int, tuple[float, ...]]
"""A line's style as matplotlib names it."""

_COLORS = (BLUE, "#1b9e77", "#b0408a", "#9a8412")
_DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
"""Colours times dashes tell 16 contestants apart; more than 16 are shaded by their order."""

_ORDER = LinearSegmentedColormap.from_list("order", ["#1d4f91", "#3f9fb5", "#9ccb86", "#c9b13c"])

_MOST_BANDS = 6
"""Curves with intervals that can be told apart."""


@styled()
def survival(curves: Mapping[str, Curve], heading: Heading) -> Figure:
    """Share of dialogues not accused yet, after each utterance.

    ``curves``: contestant -> curve, all of one length; the longest survival first.
    """
    names = list(curves)
    shown, banded = labels(names), len(names) <= _MOST_BANDS
    height = max(_LEAST_HEIGHT, ROW * len(names))
    figure, (axes,) = sheet(heading, [(_WIDTH, height)], left=0.75, right=room(shown), above=0.42)
    bare(axes, grid="y")
    last = max(len(curve.surviving) for curve in curves.values())
    axes.set_xlim(1, last + 0.3)
    axes.set_ylim(-3, 103)
    axes.axvspan(1, N_SEED, color=GRID, alpha=0.45, linewidth=0)
    drawn = []
    for i, (name, curve) in enumerate(curves.items()):
        color, dashes = _look(name, i, len(names))
        drawn.append((_curve(axes, curve, color, dashes, band=banded), shown[i], color))
    drawn.sort(key=lambda one: -one[0][1])
    name_points(axes, *zip(*drawn, strict=True))
    axes.set_xticks(range(2, last + 1, 2 * (1 + last // 24)))
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlabel("Utterance")
    axes.set_ylabel("Not accused so far (%)")
    tick = Line2D([], [], color="none", marker="|", markersize=6, markeredgecolor=MUTED)
    tick.set_label("dialogues end here unaccused")
    marks: list[Patch | Line2D] = [Patch(color=GRID, label="human start"), tick]
    if banded:
        marks.append(Patch(color=BLUE, alpha=0.3, label="95 % interval"))
    legend(axes, marks)
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


def room(names: Sequence[str]) -> float:
    """Inches that the names and their lines need right of the plot."""
    return _LINES + label_inches(names, _SIZE) + 0.15


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    colors: Sequence[str] | None = None,
) -> None:
    """Write names right of a plot that has its final limits; points are from the top down."""
    figure = axes.figure
    assert figure is not None
    size = np.asarray(axes.get_position().size) * np.asarray(figure.get_size_inches())  # type: ignore[union-attr]
    width, height = size.tolist()
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    levels = [(y - low) / (high - low) for _, y in points]
    places = apart(levels, ROW / height)
    lines = [
        [((x - left) / (right - left), level), (1, level), (1 + (_LINES - 0.06) / width, place)]
        for (x, _), level, place in zip(points, levels, places, strict=True)
    ]
    drawn = LineCollection(
        lines, colors=colors or GREY, linewidths=0.8, linestyles=(0, (1, 2)),
        transform=axes.transAxes, clip_on=False, zorder=1,
    )  # fmt: skip
    axes.add_collection(drawn, autolim=False)
    for place, said in zip(places, names, strict=True):
        axes.text(
            1 + _LINES / width, place, said, size=_SIZE, va="center_baseline",
            transform=axes.transAxes, color=INK,
        )  # fmt: skip


def apart(heights: Sequence[float], distance: float) -> list[float]:
    """Places from the top down, at least ``distance`` apart, near to ``heights``."""
    places: list[float] = []
    for height in heights:
        places.append(min(height, places[-1] - distance if places else 1 - distance / 2))
    least = distance / 2
    for i in reversed(range(len(places))):
        places[i] = max(places[i], least)
        least = places[i] + distance
    return places
