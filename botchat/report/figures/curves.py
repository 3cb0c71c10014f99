"""Survival curves, and names beside a plot, each with a line to its point, none over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from botchat.boards.survival import Curve
from botchat.records import HUMAN, N_SEED
from botchat.report.figures.style import (
    BAR,
    DOTTED,
    INK,
    LEAST,
    MUTED,
    SIZE,
    WASH,
    Dashes,
    Heading,
    Look,
    bare,
    fitted,
    label_x,
    line_key,
    mark,
    of_name,
    people,
    sheet,
    size_of,
    tint,
    titled,
    widest,
)

_HEIGHT = 2.8
"""Of the plot, in inches."""

ROW, _LINES = 0.18, 0.35
"""Least height of a name beside a plot, and room for the lines that lead there, in inches."""

_LOOKS: tuple[tuple[float, Dashes], ...] = tuple(
    (shade, dashes)
    for dashes in ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (9, 2)))
    for shade in (1.0, 0.6)
)
"""Shades and dashes that tell the named lines apart, beside the lines that lead to their names."""

MOST_NAMED = 10
"""Lines with a name; the others are grey and named when they are pointed at."""

_MOST_BANDS = 4
"""Curves with bands that can be told apart; more have bars at some utterances."""


def survival(curves: Mapping[str, Curve], heading: Heading) -> Figure:
    """Share of dialogues not accused yet, after each utterance; below, how many are at risk.

    ``curves``: contestant -> curve, all of one length; the longest survival first.
    """
    look = heading.look
    named = _named(list(curves), look)
    shown = dict(zip(named, fitted(named, 0.28 * look.width), strict=True))
    last = max(len(curve.surviving) for curve in curves.values())
    banded = len(named) <= _MOST_BANDS
    key: list[Patch | Line2D] = [Patch(color=tint(2 * WASH), label="human start")]
    if banded:
        key.append(Patch(color=tint(BAR), alpha=0.3, label="95 % interval"))
    else:
        key.append(line_key("95 % intervals", width=0.6))
    key.append(mark(tint(MUTED), "dialogues end here unaccused", "|", tint(MUTED)))
    if len(named) < len(curves):
        key.append(line_key("others", 0.22))
    under = 0.16 * (len(named) + 1) + 0.1
    figure, (axes,) = sheet(
        heading, [_HEIGHT], left=0.62, right=_LINES + widest(shown.values(), bold=True) + 0.15,
        below=0.5 + under, key=key, least=max(1.5, ROW * len(named)),
    )  # fmt: skip
    bare(axes, grid="y")
    axes.set_xlim(1, last + 0.3)
    axes.set_ylim(-3, 103)
    axes.axvspan(1, N_SEED, color=tint(2 * WASH), linewidth=0, zorder=0)
    ends = []
    for name, curve in curves.items():
        if name not in shown:
            known = np.flatnonzero(~np.isnan(curve.surviving))
            axes.plot(known + 1, 100 * curve.surviving[known], color=tint(0.22), linewidth=1.1,
                      clip_on=False, zorder=2, gid=titled(name))  # fmt: skip
    for i, name in enumerate(named):
        color, dashes = _look(name, i)
        width = 2.4 if name in look.highlight else 1.7
        ends.append((_curve(axes, curves[name], name, color, dashes, i, banded, width), name))
    ends.sort(key=lambda one: -one[0][1])
    points, names = zip(*ends, strict=True)
    name_points(axes, points, names, [shown[name] for name in names], look)
    step = 2 * (1 + int(last * 0.13 / size_of(axes)[0]))
    ticks = range(2, last + 1, step)
    axes.set_xticks(ticks)
    axes.set_yticks(range(0, 101, 20))
    label_x(axes, "Utterance")
    axes.set_ylabel("Not accused so far (%)", size=SIZE, color=tint(MUTED))
    _at_risk(axes, {name: curves[name] for name in names}, shown, ticks, look)
    return figure


def _named(names: Sequence[str], look: Look) -> list[str]:
    """Those that get a name, in the figure's order: chosen ones and people, then the first."""
    first = sorted(names, key=lambda name: (name not in look.highlight, name != HUMAN))
    chosen = {*first[:MOST_NAMED]}
    return [name for name in names if name in chosen]


def _curve(
    axes: Axes,
    curve: Curve,
    name: str,
    color: str,
    dashes: Dashes,
    i: int,
    band: bool,
    width: float,
) -> tuple[float, float]:
    """Draw a curve; its last point."""
    known = np.flatnonzero(~np.isnan(curve.surviving))
    at, share = known + 1, 100 * curve.surviving[known]
    low, high = (
        100 * np.where(np.isnan(ends), curve.surviving, ends)[known]
        for ends in (curve.low, curve.high)
    )
    if band:
        axes.fill_between(at, low, high, color=color, alpha=0.12, linewidth=0)
    else:
        some = (at + i) % 4 == 0  # at another utterance than the next curve's
        axes.vlines(at[some], low[some], high[some], color=color, linewidth=0.6, zorder=2)
    axes.plot(at, share, color=color, linestyle=dashes, linewidth=width, clip_on=False, zorder=3,
              gid=titled(name))  # fmt: skip
    leaving = curve.at_risk - curve.accused - np.append(curve.at_risk[1:], 0)
    early = [i for i in known if leaving[i] > 0 and i + 1 < len(curve.surviving)]
    axes.scatter(
        [i + 1 for i in early], [100 * curve.surviving[i] for i in early], marker="|", s=26,
        color=color, linewidth=1, zorder=3,
    )  # fmt: skip
    return float(at[-1]), float(share[-1])


def _look(name: str, i: int) -> tuple[str, Dashes]:
    return (people(), "-") if name == HUMAN else line_look(i)


def line_look(i: int) -> tuple[str, Any]:
    """Shade and dashes of the line number ``i``."""
    shade, dashes = _LOOKS[i % len(_LOOKS)]
    return tint(shade), dashes


def _at_risk(
    axes: Axes,
    curves: Mapping[str, Curve],
    shown: Mapping[str, str],
    ticks: Sequence[int],
    look: Look,
) -> None:
    """Under the plot, of each named contestant, the dialogues that reach some utterances."""
    (left, right), tall = axes.get_xlim(), size_of(axes)[1]
    wide = size_of(axes)[0]
    row = 0.16 / tall
    top = -(0.5 + 0.04) / tall
    place = axes.transAxes
    axes.text(0, top, "At risk: dialogues that reach it unaccused", size=LEAST, color=tint(MUTED),
              transform=place, va="center_baseline", ha="left")  # fmt: skip
    for i, (name, curve) in enumerate(curves.items(), 1):
        y = top - i * row
        for tick in ticks:
            axes.text(
                (tick - left) / (right - left), y, f"{curve.at_risk[tick - 1]}", size=LEAST,
                transform=place, va="center_baseline", ha="center",
            )  # fmt: skip
        style = of_name(name, shown[name], look)
        axes.text(1 + _LINES / wide, y, shown[name], transform=place, va="center_baseline", **style)


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    shown: Sequence[str],
    look: Look,
) -> None:
    """Write names right of a plot that has its final limits; points are from the top down."""
    width, height = size_of(axes)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    levels = [(y - low) / (high - low) for _, y in points]
    places = apart(levels, ROW / height)
    lines = [
        [((x - left) / (right - left), level), (1, level), (1 + (_LINES - 0.06) / width, place)]
        for (x, _), level, place in zip(points, levels, places, strict=True)
    ]
    drawn = LineCollection(
        lines, colors=tint(BAR), linewidths=0.8, linestyles=DOTTED,
        transform=axes.transAxes, clip_on=False, zorder=1,
    )  # fmt: skip
    axes.add_collection(drawn, autolim=False)
    for place, name, said in zip(places, names, shown, strict=True):
        axes.text(
            1 + _LINES / width, place, said, va="center_baseline",
            transform=axes.transAxes, **{"color": tint(INK), **of_name(name, said, look)},
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
