"""The picture of the first screen: every model's number against what it takes.

Laid out here for the narrowest screen, across in percent and down in pixels: on a wider one marks
move apart and text stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from botchat.boards.names import elided, is_floor_bot

HEIGHT = 300
"""Of the plot, in pixels, axis and all."""

NARROW = 330
"""Width in pixels that labels must fit at."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 13.0, 97.0, 14.0, 262.0
"""Edges of the field: percent of the width, and pixels."""

_FREE = 17.0
"""Where on the cost axis stands what costs nothing."""

_LETTER, _LINE = 6.3, 14
"""Width and height of the 11 px labels, in pixels."""

_LABELS, _LABEL = 10, 22
"""At most so many names of so many letters."""

_TICKS = 4
"""At most so many along each axis."""

Interval = tuple[float, float, float]
"""A number and the ends of its interval."""


@dataclass(frozen=True)
class Mark:
    """One model."""

    name: str
    x: float
    y: float
    top: float
    bottom: float
    """Of its interval."""
    is_floor: bool
    said: str
    label: str = ""
    label_x: float = 0
    label_y: float = 0
    flush: str = "left"
    """Which side of the label ``label_x`` is."""


@dataclass(frozen=True)
class Tick:
    """A number on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Plot:
    """Numbers against one thing."""

    key: str
    title: str
    unit: str
    marks: Sequence[Mark]
    across: Sequence[Tick]
    up: Sequence[Tick]
    best: str
    """Points of the line through those that nothing cheaper beats; x in percent."""
    people: tuple[float, float, float] | None
    """Where people are, top and bottom of their interval."""


@dataclass(frozen=True)
class Axis:
    """What models are set against: contestant -> number, where it is known."""

    key: str
    title: str
    unit: str
    values: Mapping[str, float]

    @property
    def has_logarithm(self) -> bool:
        """Whether what is more than nothing differs by more than 4 times."""
        some = [value for value in self.values.values() if value > 0]
        return self.key != "flags" and len(some) > 1 and max(some) > 4 * min(some)


def plots(
    numbers: Mapping[str, Interval],
    axes: Sequence[Axis],
    people: Interval | None,
    in_percent: bool,
) -> list[Plot]:
    """A plot for each axis that tells at least two models apart.

    ``numbers``: contestant -> what it is rated by, best first; shares if ``in_percent``.
    """
    found = []
    for axis in axes:
        there = {name: axis.values[name] for name in numbers if name in axis.values}
        if len(set(there.values())) > 1:
            found.append(_plot(numbers, axis, there, people, in_percent))
    return found


def _plot(
    numbers: Mapping[str, Interval],
    axis: Axis,
    there: Mapping[str, float],
    people: Interval | None,
    in_percent: bool,
) -> Plot:
    ends = [end for name in there for end in numbers[name]] + list(people or ())
    low, high = (0.0, 1.0) if in_percent else _apart(min(ends), max(ends))

    def y(value: float) -> float:
        return round(_TOP + (high - value) / (high - low) * (_BOTTOM - _TOP), 1)

    x, across = _across(axis, there)
    marks, taken = [], []
    for name, value in there.items():
        rated = numbers[name]
        said = f"{100 * rated[0]:.0f} %" if in_percent else f"{rated[0]:.0f}"
        told = f"{name}: {said}, {axis.title} {_number(axis, value)}"
        floor = is_floor_bot(name)
        mark = Mark(name, x(value), y(rated[0]), y(rated[2]), y(rated[1]), floor, told)
        marks.append(mark)
        at = mark.x / 100 * NARROW
        taken += [(at - 5, mark.y - 5, at + 5, mark.y + 5)]
    line = _best(axis, there, numbers)
    inside = {name for name, _ in line}
    placed = _labelled(sorted(marks, key=lambda mark: (mark.name not in inside, mark.y)), taken)
    best = ""
    if len(line) > 1:
        corners: list[tuple[float, float]] = []
        for name, value in line:
            corner = x(value), y(numbers[name][0])
            corners += [(corner[0], corners[-1][1]), corner] if corners else [corner]
        corners.append((_RIGHT, corners[-1][1]))
        best = " ".join(f"{px:g},{py:g}" for px, py in corners)
    up = [Tick(y(v), f"{100 * v:.0f} %" if in_percent else f"{v:.0f}") for v in _round(low, high)]
    band = (y(people[0]), y(people[2]), y(people[1])) if people else None
    return Plot(axis.key, axis.title, axis.unit, placed, across, up, best, band)


def _apart(low: float, high: float) -> tuple[float, float]:
    """A range of ratings with some room; equals stay in the middle of 200 points."""
    if high - low < 40:
        return (low + high) / 2 - 100, (low + high) / 2 + 100
    return low - (high - low) * 0.05, high + (high - low) * 0.05


def _across(axis: Axis, there: Mapping[str, float]) -> tuple[Callable[[float], float], list[Tick]]:
    """Where a number stands across, in percent, and the ticks."""
    some = [value for value in there.values() if value > 0]
    free = axis.key == "cost" and len(some) < len(there)
    left = _FREE + 8 if free else _LEFT + 4
    low, high = (0.0, 1.0) if axis.key == "flags" else (min(some), max(some))
    logarithm = axis.has_logarithm

    def bent(value: float) -> float:
        return math.log(value) if logarithm else value

    start, end = bent(low), bent(high)
    if axis.key != "flags":
        room = (end - start or 1.0) * 0.06
        start, end = start - room, end + room

    def x(value: float) -> float:
        if free and value <= 0:
            return _FREE
        return round(left + (bent(value) - start) / (end - start) * (_RIGHT - left), 2)

    decades = (m * 10.0**e for e in range(-7, 5) for m in (1, 2, 5))
    values = [v for v in decades if start <= bent(v) <= end] if logarithm else _round(start, end)
    every = math.ceil(len(values) / _TICKS)
    ticks = [Tick(x(v), _number(axis, v)) for v in values[::every]]
    return x, [Tick(_FREE, "free"), *ticks] if free else ticks


def _round(low: float, high: float) -> list[float]:
    """A few round numbers between two."""
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if (high - low) / s <= _TICKS + 1)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _number(axis: Axis, value: float) -> str:
    if axis.key == "cost":
        return f"${value:.2g}" if value > 0 else "free"
    return f"{100 * value:.0f} %" if axis.key == "flags" else f"{value:.3g}"


def _best(
    axis: Axis, there: Mapping[str, float], numbers: Mapping[str, Interval]
) -> list[tuple[str, float]]:
    """Those that nothing cheaper is as good as, the cheapest first; of cost alone."""
    if axis.key != "cost":
        return []
    found: list[tuple[str, float]] = []
    for name, value in sorted(there.items(), key=lambda one: (one[1], -numbers[one[0]][0])):
        if not found or numbers[name][0] > numbers[found[-1][0]][0]:
            found.append((name, value))
    return found


def _labelled(marks: Sequence[Mark], taken: list[tuple[float, float, float, float]]) -> list[Mark]:
    """The marks with names where they fit, the first of them first; ``taken``: boxes in pixels."""
    found, left = [], _LABELS
    for mark in marks:
        text = elided(mark.name, _LABEL)
        width = _LETTER * sum(2 if ord(char) > 0x2E80 else 1 for char in text) + 4
        at = mark.x / 100 * NARROW
        spots = [
            (at + 8, mark.y - _LINE / 2, "left"),
            (at - 8 - width, mark.y - _LINE / 2, "right"),
            (at + 5, mark.y - _LINE - 2, "left"),
            (at + 5, mark.y + 3, "left"),
            (at - 5 - width, mark.y - _LINE - 2, "right"),
        ]
        for x, y, flush in spots:
            box = (x, y, x + width, y + _LINE)
            inside = x > _LEFT / 100 * NARROW and box[2] < NARROW and 0 < y < _BOTTOM - _LINE
            if left and inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                left -= 1
                gap = (x - at) if flush == "left" else (at - box[2])
                found.append(_with_label(mark, text, gap, y, flush))
                break
        else:
            found.append(mark)
    return found


def _with_label(mark: Mark, text: str, gap: float, y: float, flush: str) -> Mark:
    return Mark(
        mark.name, mark.x, mark.y, mark.top, mark.bottom, mark.is_floor, mark.said, text,
        round(gap, 1), round(y, 1), flush,
    )  # fmt: skip


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and a[2] > b[0] and a[1] < b[3] and a[3] > b[1]
