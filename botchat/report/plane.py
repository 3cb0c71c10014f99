"""Numbers against numbers: where points, ticks and names stand in a plane.

The figures (`botchat.report.figures.points`) and the page's first screen draw the same layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_NAMED = 10
"""Of points in a crowd; the others are named when they are pointed at."""

LINE = 0.15
"""Height of a name, in inches."""

_TICKS = 7
"""At most so many along an axis."""

_TICK = 0.32
"""Height that a tick of an upright axis needs, in inches."""

_SPAN = 0.75
"""Fewest powers of ten that a logarithmic axis shows, so that it has two numbers on it."""

_MARGIN = 0.06
"""Free at both ends of an axis, as a share of what is shown."""

_NEAR = 0.25
"""A name farther from its point than this, in inches, has a line to it."""

Interval = tuple[float, float, float]
"""A number and the ends of its interval."""

Measure = Callable[[str], float]
"""Width of a text in inches."""


class Point(NamedTuple):
    """Two numbers of one contestant with the ends of their intervals; NaN where not known."""

    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float


@dataclass(frozen=True)
class Axis:
    """What is along an axis."""

    label: str
    form: Callable[[float], str] = "{:,g}".format
    log: bool = False
    """Powers of ten; what is 0 stands apart at its beginning."""
    down: bool = False
    """Whether the least is best and on top, as of ranks; numbers are whole."""
    ends: tuple[float, float] | None = None
    """Its first and last number; ``None``: as far as the numbers go."""
    least: float = 0.0
    """Numbers less apart than this are shown close: else equals would look far apart."""


class Ruler(NamedTuple):
    """An axis with its numbers."""

    axis: Axis
    low: float
    high: float
    """Its ends, as `_bent` has them."""
    free: float
    """Where 0 stands on a logarithmic axis."""
    ticks: Sequence[tuple[float, str]]
    """Share of the axis, and what stands there."""

    def share(self, value: float) -> float:
        """Where a number stands, from 0 at the left or below to 1."""
        bent = self.free if self.axis.log and value <= 0 else _bent(self.axis, value)
        share = (bent - self.low) / (self.high - self.low)
        return 1 - share if self.axis.down else share


class NameTag(NamedTuple):
    """A name beside its point."""

    text: str
    dx: float
    dy: float
    """From the point to the left end of the text, in the middle of its height; inches."""
    width: float

    @property
    def is_far(self) -> bool:
        """Whether a line leads to it."""
        return abs(self.dy) > _NEAR


@dataclass(frozen=True)
class Mark:
    """One point: its numbers as shares of the axes."""

    name: str
    at: Point
    said: str
    """Its numbers in words."""
    label: NameTag | None


@dataclass(frozen=True)
class Plane:
    """All points, the best first."""

    across: Ruler
    up: Ruler
    marks: Sequence[Mark]
    best: Sequence[Mark]
    """Those that nobody beats in both, the smallest x first; of none where it is not asked for."""


def laid_out(
    points: Mapping[str, Point],
    x: Axis,
    y: Axis,
    room: tuple[float, float],
    measure: Measure,
    texts: Mapping[str, str],
    *,
    first: Iterable[str] = (),
    pareto: bool = False,
    everybody: bool = False,
    reach: float = 9.0,
) -> Plane:
    """The plane of some points; ``room``: its width and height in inches.

    ``texts``: name -> as it is written. ``first``: who is named before the others; ``everybody`` is
    named, with a line to a name that is far, if there is room within ``reach`` inches. ``pareto``:
    find the best, a small x being good.
    """
    wide, tall = room
    order = sorted(points, key=lambda name: (points[name].y * (1 if y.down else -1),
                                             points[name].x))  # fmt: skip
    # The end of an interval can be near 0, which is far on a logarithmic axis.
    some = [value for point in points.values() for value in point[: 1 if x.log else 3]]
    xs = [value for value in some if math.isfinite(value)]
    ys = [value for point in points.values() for value in point[3:] if math.isfinite(value)]
    across = ruler(x, xs, lambda ticks: sum(measure(tick) + 0.15 for tick in ticks) <= wide)
    up = ruler(y, ys, lambda ticks: len(ticks) * _TICK <= tall)
    places = {
        name: Point(*map(across.share, points[name][:3]), *map(up.share, points[name][3:]))
        for name in order
    }
    best = _best({name: points[name] for name in order}) if pareto else []
    named = [*dict.fromkeys([*first, *best, *order])][: None if everybody else MOST_NAMED]
    labels = _labels(places, named, room, measure, texts, min(reach, tall) if everybody else 0.0)
    marks = {}
    for name in order:
        said = f"{name}: {y.form(points[name].y)}, {x.label} {x.form(points[name].x)}"
        marks[name] = Mark(name, places[name], said, labels.get(name))
    return Plane(across, up, [*marks.values()], [marks[name] for name in best])


def _best(points: Mapping[str, Point]) -> list[str]:
    """Those that no other beats in both, the smallest x first; ``points`` are best y first."""
    found: list[str] = []
    least = math.inf
    for name, point in points.items():
        if point.x < least:
            found.append(name)
            least = point.x
    return found[::-1]


# ------------------------------------------------------------------------------------ axes


def spread(values: Iterable[float]) -> bool:
    """Whether numbers need a logarithmic axis: those above 0 differ by more than 4 times."""
    known = [value for value in values if value > 0]
    return len(known) > 1 and max(known) > 4 * min(known)


def widened(low: float, high: float, least: float, shown: float) -> tuple[float, float]:
    """A range; one of less than ``least`` in the middle of one of ``shown``."""
    if high - low >= least:
        return low, high
    return (low + high - shown) / 2, (low + high + shown) / 2


def _bent(axis: Axis, value: float) -> float:
    return math.log10(max(value, 1e-9)) if axis.log else value


def ruler(axis: Axis, values: Sequence[float], fits: Callable[[Sequence[str]], bool]) -> Ruler:
    """An axis that holds some numbers, with the most ticks that fit."""
    known = [_bent(axis, value) for value in values if value > 0 or not axis.log]
    least = (_SPAN, _SPAN) if axis.log else (axis.least, 5 * axis.least)
    low, high = axis.ends or widened(min(known), max(known), *least)
    free = low - max(0.2 * (high - low), 0.15)
    start = free if axis.log and 0 in values else low
    room = 0.0 if axis.ends else _MARGIN * (high - start) or 1.0
    room += 0.5 * axis.down
    scale = Ruler(axis, start - room, high + room, free, ())
    for ticks in _ticks(axis, low, high):
        # Of a rank the best is on top.
        shown = [low, *(tick for tick in ticks if tick > low + 1)] if axis.down else ticks
        shown = [0.0, *shown] if start < low else shown
        texts = [axis.form(tick) for tick in shown]
        if len(texts) <= _TICKS and fits(texts):
            found = [(scale.share(tick), text) for tick, text in zip(shown, texts, strict=True)]
            return scale._replace(ticks=found)
    return scale


def _ticks(axis: Axis, low: float, high: float) -> Iterator[list[float]]:
    """Round numbers between two, ever fewer of them."""
    if axis.log:
        powers = range(math.floor(low), math.ceil(high) + 1)
        ends = (low - 1e-9, high + 1e-9)
        for steps, every in (((1, 2, 5), 1), ((1, 3), 1), *(((1,), n) for n in range(1, 9))):
            some = (step * 10.0**power for power in powers[::every] for step in steps)
            yield [tick for tick in some if ends[0] <= math.log10(tick) <= ends[1]]
        return
    power = 10.0 ** math.floor(math.log10((high - low or 1.0) / 10))
    for step in (power * times for times in (1, 2, 5, 10, 20, 50, 100)):
        if step >= 1 or not axis.down:
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            yield [step * i for i in range(first, last + 1)]


# ----------------------------------------------------------------------------------- names


Box = tuple[float, float, float, float]
"""Left, low, right and high end, in inches."""


def _labels(
    places: Mapping[str, Point],
    named: Sequence[str],
    room: tuple[float, float],
    measure: Measure,
    texts: Mapping[str, str],
    reach: float,
) -> dict[str, NameTag]:
    """Names beside their points where there is room; the first of ``named`` before the others."""
    wide, tall = room
    at = {name: (wide * point.x, tall * point.y) for name, point in places.items()}
    taken: list[Box] = [(x - 0.05, y - 0.05, x + 0.05, y + 0.05) for x, y in at.values()]
    lines = [
        (wide * left, tall * min(ends), wide * right, tall * max(ends))
        for p in places.values()
        for left, right, *ends in ((p.x, p.x, p.y_low, p.y_high), (p.x_low, p.x_high, p.y, p.y))
    ]
    found: dict[str, NameTag] = {}
    for name in named:
        (x, y), width = at[name], measure(texts[name])
        free: list[tuple[int, int, Box]] = []
        for dx, dy in _spots(width, reach):
            if free and abs(dy) > _NEAR:
                break
            box = (x + dx, y + dy, x + dx + width, y + dy + LINE)
            inside = box[0] >= 0 and box[2] <= wide and box[1] >= 0 and box[3] <= tall
            if inside and not any(_meet(box, other) for other in taken):
                free.append((sum(_meet(box, line) for line in lines), len(free), box))
        if free:
            _, _, box = min(free)
            taken.append(box)
            found[name] = NameTag(texts[name], box[0] - x, (box[1] + box[3]) / 2 - y, width)
    return found


def _spots(w: float, far: float) -> Iterator[tuple[float, float]]:
    """Where a name of such a width can stand from its point, the best first; at most ``far``."""
    h = LINE
    yield from ((0.08, -h / 2), (-0.08 - w, -h / 2), (0.06, 0.04), (0.06, -h - 0.04))
    yield from ((-w - 0.06, 0.04), (-w - 0.06, -h - 0.04), (-w / 2, 0.09), (-w / 2, -h - 0.09))
    for n in range(2, int(far / h)):
        for dy in (n * h, -n * h):
            yield from ((0.25, dy - h / 2), (-0.25 - w, dy - h / 2))


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
