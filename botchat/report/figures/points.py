"""Contestants as points in a plane, and their order at several occasions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from botchat.records import HUMAN
from botchat.report.figures.charts import marks
from botchat.report.figures.style import (
    BAR,
    INK,
    LEAST,
    MUTED,
    ROW,
    SIZE,
    Heading,
    bare,
    faces,
    fitted,
    inches,
    label_x,
    of_name,
    people,
    sheet,
    size_of,
    tint,
    titled,
    widest,
)

MOST_NAMED = 10
"""Of contestants in a crowd; the others are named when they are pointed at."""

MOST_COLUMNS = 5
"""Occasions beside each other; a telephone has room for three."""

_HEIGHT = 3.4
_SPAN = 0.75
"""Fewest powers of ten that a logarithmic axis shows, so that it has two numbers on it."""

_DOTTED = (0, (1, 2))


class Axis(NamedTuple):
    """What is along an axis."""

    label: str
    log: bool = False
    down: bool = False
    """Whether the least is best and on top, as of ranks."""


def against(
    points: pd.DataFrame, x: Axis, y: Axis, heading: Heading, *, pareto: str = ""
) -> Figure:
    """One number against another, with intervals.

    ``points``: index contestant; columns ``x``, ``x_low``, ``x_high``, ``y``, ``y_low``,
    ``y_high``, ends NaN where not known. ``pareto``: names a line that leads along those that
    nobody beats in both, a small x being good.
    """
    look = heading.look
    points = points.dropna(subset=["x", "y"]).sort_values(["y", "x"], ascending=[y.down, True])
    names = list(points.index)
    best = _best(points) if pareto else []
    key = marks(names)
    if pareto:
        key.append(Line2D([], [], color=tint(INK), linestyle=_DOTTED, label=pareto))
    figure, (axes,) = sheet(heading, [_HEIGHT], left=0.65, right=0.25, key=key)
    bare(axes, grid="both")
    values = [float(value) for value in points["x"]]
    place = logarithmic(axes, values) if x.log else dict(zip(values, values, strict=True))
    low = float(np.nanmin(points[["y", "y_low"]].to_numpy(dtype=float)))
    high = float(np.nanmax(points[["y", "y_high"]].to_numpy(dtype=float)))
    margin = 0.06 * (high - low) or 1
    if y.down:
        axes.set_ylim(high + 0.5 + margin, low - 0.5 - margin)
        ticks = MaxNLocator(7, integer=True).tick_values(low, high)
        axes.set_yticks(
            sorted({int(low), *(int(tick) for tick in ticks if low + 1 < tick <= high)})
        )
    else:
        axes.set_ylim(low - margin, high + margin)
    numbers = points[["x", "x_low", "x_high", "y", "y_low", "y_high"]].to_numpy(dtype=float)
    at = {name: (place[row[0]], row[3]) for name, row in zip(names, numbers.tolist(), strict=True)}
    fill, edge = faces(names)
    for i, (name, row) in enumerate(zip(names, numbers.tolist(), strict=True)):
        (x_at, y_at), (_, x_low, x_high, _, y_low, y_high) = at[name], row
        if math.isfinite(y_low + y_high):
            axes.plot([x_at] * 2, [y_low, y_high], color=tint(BAR), linewidth=1.3)
        if x_low < x_high:  # false where not known
            reach = [math.log10(max(end, 1e-9)) if x.log else end for end in (x_low, x_high)]
            axes.plot(reach, [y_at] * 2, color=tint(BAR), linewidth=1.3)
        axes.plot(
            [x_at], [y_at], marker="o", markersize=8 if name in look.highlight else 6,
            color=fill[i], markeredgecolor=edge[i], markeredgewidth=1.3, zorder=3,
            linestyle="none", gid=titled(name),
        )  # fmt: skip
    if not x.log:
        axes.margins(x=0.08)
        axes.xaxis.set_major_locator(MaxNLocator(4 if look.narrow else 7))
    if pareto:
        _lead(axes, [at[name] for name in best])
    chosen = dict.fromkeys([*(n for n in names if n in look.highlight), *best, *names])
    name_beside(axes, at, list(chosen)[:MOST_NAMED], heading)
    label_x(axes, x.label)
    axes.set_ylabel(y.label, size=SIZE, color=tint(MUTED))
    return figure


def _best(points: pd.DataFrame) -> list[str]:
    """Those that no other beats in both, the smallest x first; ``points`` are best y first."""
    found: list[str] = []
    least = math.inf
    for name, row in points.iterrows():
        if row["x"] < least:
            found.append(str(name))
            least = row["x"]
    return found[::-1]


def _lead(axes: Axes, best: Sequence[tuple[float, float]]) -> None:
    """Steps from one to the next, and on to the right."""
    end = axes.get_xlim()[1]
    axes.set_xlim(axes.get_xlim())
    xs, ys = (list(values) for values in zip(*best, strict=True))
    axes.step([*xs, end], [*ys, ys[-1]], where="post", color=tint(INK), linestyle=_DOTTED,
              linewidth=1, zorder=2)  # fmt: skip


def name_beside(
    axes: Axes,
    at: Mapping[str, tuple[float, float]],
    chosen: Sequence[str],
    heading: Heading,
) -> None:
    """Names beside their points where there is room; the first of ``chosen`` before the others.

    The plot has its limits.
    """
    look = heading.look
    wide, tall = size_of(axes)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    place = {
        name: (wide * (x - left) / (right - left), tall * (y - low) / (high - low))
        for name, (x, y) in at.items()
    }
    dots = [(x - 0.05, y - 0.05, x + 0.05, y + 0.05) for x, y in place.values()]
    lines: list[Box] = []
    for line in axes.lines:
        xs = wide * (np.asarray(line.get_xdata(), dtype=float) - left) / (right - left)
        ys = tall * (np.asarray(line.get_ydata(), dtype=float) - low) / (high - low)
        lines.append((float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())))
    taken: list[Box] = []
    h = 0.15
    for name, said in zip(chosen, fitted(chosen, 0.4 * wide), strict=True):
        x, y = place[name]
        w = inches(said, SIZE, bold=name in look.highlight)
        free: list[tuple[int, int, Box]] = []
        for dx, dy in ((0.08, -h / 2), (-0.08 - w, -h / 2), (0.06, 0.04), (0.06, -h - 0.04),
                       (-w - 0.06, 0.04), (-w - 0.06, -h - 0.04), (-w / 2, 0.09),
                       (-w / 2, -h - 0.09)):  # fmt: skip
            box = (x + dx, y + dy, x + dx + w, y + dy + h)
            inside = box[0] >= 0 and box[2] <= wide and box[1] >= 0 and box[3] <= tall
            if inside and not any(_meet(box, other) for other in (*taken, *dots)):
                free.append((sum(_meet(box, line) for line in lines), len(free), box))
        if free:
            _, _, box = min(free)
            taken.append(box)
            axes.text(
                box[0] / wide, (box[1] + h / 2) / tall, said, va="center_baseline", zorder=4,
                transform=axes.transAxes, **of_name(name, said, look),
                bbox={"facecolor": tint(0), "alpha": 0.75, "edgecolor": "none", "pad": 0.4},
            )  # fmt: skip


Box = tuple[float, float, float, float]
"""Left, low, right and high end."""


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


class Standing(NamedTuple):
    """One contestant's place on one occasion."""

    place: float
    low: float
    high: float
    """Ends of what is known of it."""
    said: str
    """As people read it."""


def slopes(columns: Mapping[str, Mapping[str, Standing]], beside: str, heading: Heading) -> Figure:
    """How an order changes from one occasion to the next.

    ``columns``: occasion -> contestant -> place. ``beside``: what the numbers beside names are.
    Lines are dark where intervals do not overlap: elsewhere the change can be chance.
    """
    look = heading.look
    columns = dict(list(columns.items())[: 3 if look.narrow else MOST_COLUMNS])
    orders = {
        title: {
            name: row
            for row, name in enumerate(look.ordered(sorted(one, key=lambda n: (one[n].place, n))))
        }
        for title, one in columns.items()
    }
    if look.order:  # rows are as chosen; only the numbers differ
        orders = {title: {n: i for i, n in enumerate(one)} for title, one in orders.items()}
    n = max(map(len, orders.values()))
    first, *_, last = columns
    names = list(dict.fromkeys(name for one in orders.values() for name in one))
    shown = dict(zip(names, fitted(names, (0.24 if look.narrow else 0.26) * look.width),
                     strict=True))  # fmt: skip
    right = widest([f"{columns[last][x].said}  {shown[x]}" for x in orders[last]], bold=True) + 0.3
    ends = [
        columns[first][x].said if look.narrow else f"{shown[x]}  {columns[first][x].said}"
        for x in orders[first]
    ]
    left = widest(ends, bold=True) + 0.3
    key = [
        Line2D([], [], color=tint(INK), linewidth=1.6, label="intervals do not overlap"),
        Line2D([], [], color=tint(BAR / 2), linewidth=1.6, label="may be chance"),
    ]
    figure, (axes,) = sheet(
        heading, [n * 0.2], left=left, right=right, above=0.32, below=0.3, key=key,
        least=n * ROW,
    )  # fmt: skip
    bare(axes)
    axes.set(xlim=(0, len(columns) - 1), ylim=(n - 0.5, -0.5), yticks=[])
    room = size_of(axes)[0] / (len(columns) - 1)
    outer = min(left, right) - 0.1
    for i, (title, said) in enumerate(
        zip(columns, fitted(list(columns), min(room, 2 * outer) - 0.08), strict=True)
    ):
        axes.annotate(
            said, (i, 1), (0, 8), xycoords=axes.get_xaxis_transform(), size=SIZE, ha="center",
            textcoords="offset points", weight="bold", annotation_clip=False,
            gid=None if said == title else titled(title),
        )  # fmt: skip
    axes.set_xticks([])
    for name in names:
        _slope(axes, name, columns, orders, look.highlight)
    for row, name in _by_row(orders[first]):
        said = columns[first][name].said if look.narrow else ""
        said = said or f"{shown[name]}  {columns[first][name].said}"
        _at_end(axes, 0, row, said, name, heading, right=False)
    for row, name in _by_row(orders[last]):
        said = f"{columns[last][name].said}  {shown[name]}"
        _at_end(axes, len(columns) - 1, row, said, name, heading, right=True)
    axes.set_xlabel(beside, size=LEAST, color=tint(MUTED), labelpad=2)
    return figure


def _by_row(order: Mapping[str, int]) -> list[tuple[int, str]]:
    return sorted((row, name) for name, row in order.items())


def _slope(
    axes: Axes,
    name: str,
    columns: Mapping[str, Mapping[str, Standing]],
    orders: Mapping[str, Mapping[str, int]],
    highlight: Sequence[str],
) -> None:
    """The line of one contestant, in pieces."""
    titles = list(columns)
    for i, (a, b) in enumerate(pairwise(titles)):
        if name in columns[a] and name in columns[b]:
            one, two = columns[a][name], columns[b][name]
            apart = one.high < two.low or two.high < one.low
            strong = apart or name in highlight
            ink = tint(INK if strong else BAR / 2)
            axes.plot(
                [i, i + 1], [orders[a][name], orders[b][name]], zorder=3 if strong else 2,
                color=people() if name == HUMAN else ink, clip_on=False, gid=titled(name),
                linewidth=2.4 if name in highlight else 1.4, marker="o", markersize=4,
            )  # fmt: skip


def _at_end(
    axes: Axes, x: float, row: int, said: str, name: str, heading: Heading, *, right: bool
) -> None:
    style: dict[str, Any] = of_name(name, name if name in said else "", heading.look)
    axes.annotate(
        said, (x, row), (9 if right else -9, 0), textcoords="offset points",
        ha="left" if right else "right", va="center_baseline", annotation_clip=False, **style,
    )  # fmt: skip


def logarithmic(axes: Axes, values: Sequence[float]) -> dict[float, float]:
    """Set a horizontal axis up, 0 apart at its left; value -> place on it."""
    logs = [math.log10(value) for value in values if value > 0]
    middle = (min(logs) + max(logs)) / 2
    first = min(*logs, middle - _SPAN / 2)
    last = max(*logs, middle + _SPAN / 2)
    free = first - max(0.2 * (last - first), 0.15)
    room = size_of(axes)[0]
    decades = last - first
    steps = (1, 2, 5) if room / decades > 1.3 else (1,)
    ticks = [
        step * 10.0**power
        for power in range(math.floor(first) - 1, math.ceil(last) + 1)
        for step in steps
        if first - 1e-9 <= math.log10(step * 10.0**power) <= last + 1e-9
    ]
    at = [math.log10(tick) for tick in ticks]
    names = [f"{tick:,g}" if tick < 1e6 else f"{tick:.0e}" for tick in ticks]
    while len(at) > 2 and len(at) * (widest(names) + 0.1) > room:
        at, names = at[::2], names[::2]
    start = first
    if 0 in values:
        at, names, start = [free, *at], ["0", *names], free
    axes.set_xticks(at, names)
    margin = 0.06 * (last - start)
    axes.set_xlim(start - margin, last + margin)
    return {value: math.log10(value) if value > 0 else free for value in values}


def spread(values: Sequence[float]) -> bool:
    """Whether numbers need a logarithmic axis."""
    known = np.array([value for value in values if value > 0])
    return bool(len(known)) and float(known.max() / known.min()) > 8
