"""Names beside a plot, each with a line to its point, none over another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from botchat.report.figures.style import GREY, INK, label_inches

ROW = 0.22
"""Least height of a name, in inches."""

_LINES = 0.45
"""Room for the lines from points to names, in inches."""

_SIZE = 8.5
"""Of the names."""


def room(names: Sequence[str]) -> float:
    """Inches that the names and their lines need right of the plot."""
    return _LINES + label_inches(names, _SIZE) + 0.15


def name(
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
