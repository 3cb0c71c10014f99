"""Contestants as points in a plane, and their order at several occasions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from botchat.records import HUMAN
from botchat.report.figures.style import (
    BAR,
    DOTTED,
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
    interval_key,
    label_x,
    line_key,
    mark,
    marks,
    of_name,
    people,
    sheet,
    size_of,
    tint,
    titled,
    widest,
)
from botchat.report.plane import Axis, Mark, Point, laid_out

MOST_JUDGES = 20
"""Judges that all have a name; of more, ten."""

MOST_COLUMNS = 5
"""Occasions beside each other; a telephone has room for three."""

_HEIGHT = 3.4


def against(
    points: Mapping[str, Point], x: Axis, y: Axis, heading: Heading, *, pareto: str = ""
) -> Figure:
    """Contestants' numbers, one against another; ten are named.

    ``pareto``: names a line that leads along those that nobody beats in both.
    """
    key = [*marks(points), *([line_key(pareto, dashes=DOTTED)] if pareto else [])]
    return scatter(points, x, y, heading, key, pareto=bool(pareto))


def judges(
    points: Mapping[str, Point],
    panels: Mapping[str, str],
    best: Collection[str],
    x: Axis,
    y: Axis,
    heading: Heading,
) -> Figure:
    """Judges' numbers, one against another, all named unless they are a crowd.

    ``panels``: control -> its panel. ``best``: who is shaded; all where it is empty.
    """
    controls = {name: panel for name, panel in panels.items() if {name, panel} <= {*points}}
    hollow = [name for name in points if name in panels]
    pale = [name for name in points if best and name not in best]
    key = [mark(tint(INK), "may be the best" if best else "judge")]
    key += [mark(tint(BAR), "is not")] if {*pale} - {*hollow} else []
    key += [mark("none", "its control")] if hollow else []
    key += [interval_key()] if any(one.y_low < one.y_high for one in points.values()) else []
    key += [line_key("none better for less", dashes=DOTTED)]
    everybody = len(points) <= MOST_JUDGES
    return scatter(
        points, x, y, heading, key,
        hollow=hollow, pale=pale, lines=controls, pareto=True, everybody=everybody,
    )  # fmt: skip


def scatter(
    points: Mapping[str, Point],
    x: Axis,
    y: Axis,
    heading: Heading,
    key: Sequence[Line2D],
    *,
    hollow: Collection[str] = (),
    pale: Collection[str] = (),
    lines: Mapping[str, str] | None = None,
    pareto: bool = False,
    everybody: bool = False,
) -> Figure:
    """One number against another, with intervals and names beside the points.

    ``hollow``, ``pale``: open and light marks; ``lines``: from a point to another; the rest as of
    `laid_out`.
    """
    look = heading.look
    figure, (axes,) = sheet(heading, [_HEIGHT], left=0.65, right=0.25, key=key)
    bare(axes, grid="both")
    room = size_of(axes)
    texts = dict(zip(points, fitted([*points], 0.4 * room[0]), strict=True))
    plane = laid_out(
        points, x, y, room, lambda text: inches(text, SIZE, bold=bool(look.highlight)), texts,
        first=look.highlight, pareto=pareto, everybody=everybody,
    )  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks(*zip(*plane.across.ticks, strict=True))
    axes.set_yticks(*zip(*plane.up.ticks, strict=True))
    bars = [((p.x, p.y_low), (p.x, p.y_high)) for p in (one.at for one in plane.marks)]
    bars += [((p.x_low, p.y), (p.x_high, p.y)) for p in (one.at for one in plane.marks)]
    known = [bar for bar in bars if all(map(math.isfinite, (*bar[0], *bar[1])))]
    axes.add_collection(LineCollection(known, colors=tint(BAR), linewidths=1.3), autolim=False)
    at = {one.name: one.at for one in plane.marks}
    for control, panel in (lines or {}).items():
        (x0, y0), (x1, y1) = ((at[name].x, at[name].y) for name in (control, panel))
        axes.plot([x0, x1], [y0, y1], color=tint(MUTED), linewidth=1.2, zorder=2)
    if plane.best:
        xs, ys = zip(*((one.at.x, one.at.y) for one in plane.best), strict=True)
        axes.step([*xs, 1], [*ys, ys[-1]], where="post", color=tint(INK), linestyle=DOTTED,
                  linewidth=1, zorder=2)  # fmt: skip
    fill, edge = faces(at)
    shades = dict.fromkeys(pale, tint(BAR)) | dict.fromkeys(hollow, tint(0))
    for one, face, outline in zip(plane.marks, fill, edge, strict=True):
        axes.plot(
            [one.at.x], [one.at.y], marker="o", markersize=8 if one.name in look.highlight else 6,
            color=shades.get(one.name, face), markeredgecolor=outline,
            markeredgewidth=1.3, zorder=3, linestyle="none", gid=titled(one.name),
        )  # fmt: skip
        _name(axes, one, heading)
    label_x(axes, x.label)
    axes.set_ylabel(y.label, size=SIZE, color=tint(MUTED))
    return figure


def _name(axes: Axes, one: Mark, heading: Heading) -> None:
    """The name of a point, if there is room for it; with a line to it where it is far."""
    if (label := one.label) is None:
        return
    wide, tall = size_of(axes)
    left, middle = one.at.x + label.dx / wide, one.at.y + label.dy / tall
    if label.is_far:
        end = left if label.dx > 0 else left + label.width / wide
        axes.plot([one.at.x, end], [one.at.y, middle], color=tint(BAR), linewidth=0.8,
                  linestyle=DOTTED, zorder=1)  # fmt: skip
    axes.text(
        left, middle, label.text, va="center_baseline", zorder=4,
        **of_name(one.name, label.text, heading.look),
        bbox={"facecolor": tint(0), "alpha": 0.75, "edgecolor": "none", "pad": 0.4},
    )  # fmt: skip


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
        title: {name: row for row, name in enumerate(sorted(one, key=lambda n: (one[n].place, n)))}
        for title, one in columns.items()
    }
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
    key = [line_key("intervals do not overlap", width=1.6), line_key("may be chance", BAR / 2, 1.6)]
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
    style = of_name(name, name if name in said else "", heading.look)
    axes.annotate(
        said, (x, row), (9 if right else -9, 0), textcoords="offset points",
        ha="left" if right else "right", va="center_baseline", annotation_clip=False, **style,
    )  # fmt: skip
