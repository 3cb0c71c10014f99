"""Scales: from where to where numbers are drawn, and round ones along it; and plots of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from botchat.report.figures import ink
from botchat.report.figures.sheet import Sheet, Spot

Tick = tuple[float, str]
"""Where on a scale, and what stands there."""

_TICKS = 7
"""At most so many along an axis."""

_SPAN = 0.75
"""Fewest powers of ten that a logarithmic axis shows, so that it has two numbers on it."""

_MARGIN = 0.06
"""Free at both ends of an axis, as a share of what is shown."""


@dataclass(frozen=True)
class Axis:
    """What is along an axis."""

    label: str
    form: Callable[[float], str] = "{:,g}".format
    log: bool = False
    """Powers of ten; what is 0 stands apart at its beginning."""
    ends: tuple[float, float] | None = None
    """Its first and last number; ``None``: as far as the numbers go."""
    least: float = 0.0
    """Numbers less apart than this are shown close: else equals would look far apart."""

    def bent(self, value: float) -> float:
        """A number as it is drawn."""
        return math.log10(max(value, 1e-9)) if self.log else value


class Ruler(NamedTuple):
    """An axis with its numbers."""

    axis: Axis
    low: float
    high: float
    """Its ends, as `Axis.bent` has them."""
    free: float
    """Where 0 stands on a logarithmic axis."""
    ticks: Sequence[Tick]
    """Share of the axis, and what stands there."""

    def share(self, value: float) -> float:
        """Where a number stands, from 0 at the left or below to 1."""
        bent = self.free if self.axis.log and value <= 0 else self.axis.bent(value)
        return (bent - self.low) / (self.high - self.low)


def ruler(axis: Axis, values: Sequence[float], fits: Callable[[Sequence[str]], bool]) -> Ruler:
    """An axis that holds some numbers, with the most ticks that fit."""
    known = [axis.bent(value) for value in values if value > 0 or not axis.log]
    low, high = axis.ends or (min(known), max(known))
    least, shown = (_SPAN, _SPAN) if axis.log else (axis.least, 5 * axis.least)
    if not axis.ends and high - low < least:
        low, high = (low + high - shown) / 2, (low + high + shown) / 2
    free = low - max(0.2 * (high - low), 0.15)
    start = free if axis.log and 0 in values else low
    room = 0.0 if axis.ends else _MARGIN * (high - start) or 1.0
    scale = Ruler(axis, start - room, high + room, free, ())
    for ticks in _ticks(axis, low, high):
        some = [0.0, *ticks] if start < low else ticks
        texts = [axis.form(tick) for tick in some]
        if len(texts) <= _TICKS and fits(texts):
            found = [(scale.share(tick), text) for tick, text in zip(some, texts, strict=True)]
            return scale._replace(ticks=found)
    return scale


def _ticks(axis: Axis, low: float, high: float) -> Iterator[list[float]]:
    """Round numbers between two, ever fewer of them."""
    if axis.log:
        powers = range(math.floor(low), math.ceil(high) + 1)
        for steps, every in (((1, 2, 5), 1), ((1, 3), 1), *(((1,), n) for n in range(1, 9))):
            some = (step * 10.0**power for power in powers[::every] for step in steps)
            yield [tick for tick in some if low - 1e-9 <= math.log10(tick) <= high + 1e-9]
        return
    power = 10.0 ** math.floor(math.log10((high - low or 1.0) / 10))
    for step in (power * times for times in (1, 2, 5, 10, 20, 50, 100)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        yield [step * i for i in range(first, last + 1)]


class Graph(NamedTuple):
    """A plot of two scales."""

    left: float
    top: float
    wide: float
    tall: float
    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    """First and last number of each scale."""

    def at(self, x: float, y: float) -> Spot:
        """Where two numbers stand."""
        (x0, x1), (y0, y1) = self.x, self.y
        across, up = (x - x0) / ((x1 - x0) or 1), (y - y0) / ((y1 - y0) or 1)
        return self.left + self.wide * across, self.top + self.tall * (1 - up)

    def scales(
        self,
        sheet: Sheet,
        xs: Iterable[float | Tick],
        ys: Iterable[float | Tick],
        label: str = "",
        up: str = "",
    ) -> None:
        """Ticks and what is along them; of the upright one ``up`` stands above."""
        for y, said in map(_tick, ys):
            sheet.line([self.at(self.x[0], y), self.at(self.x[1], y)], ink.GRID)
            sheet.say(self.left - 6, self.at(0, y)[1] + 4, said, "end", shade=ink.SOFT)
        foot = self.top + self.tall
        for x, said in map(_tick, xs):
            sheet.say(self.at(x, 0)[0], foot + 14, said, "middle", shade=ink.SOFT)
        sheet.say(self.left + self.wide, foot + 28, label, "end", shade=ink.SOFT)
        sheet.say(self.left - 6, self.top - 8, up, shade=ink.SOFT)


def _tick(tick: float | Tick) -> Tick:
    return tick if isinstance(tick, tuple) else (tick, f"{tick:g}")
