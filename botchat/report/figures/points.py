"""Contestants as points in a plane, and what changes from one occasion to another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from botchat.records import HUMAN
from botchat.report.figures import ink
from botchat.report.figures.lettering import LEAST, apart, fitted, widest, width_of
from botchat.report.figures.sheet import INCH, Look, Shade, Sheet, Spot
from botchat.report.plane import Axis, Mark, Point, laid_out

MOST_NAMED = 20
"""Points that all have a name; of more, ten."""


def against(
    points: Mapping[str, Point],
    x: Axis,
    y: Axis,
    look: Look,
    *,
    hollow: Collection[str] = (),
    pale: Collection[str] = (),
    lines: Mapping[str, str] | None = None,
    best: str = "",
    key: Sequence[tuple[str, Shade, str]] = (),
    reach: float = 0.6,
) -> Sheet:
    """One number against another, with intervals, and names where there is room for them.

    ``hollow``, ``pale``: open and light marks; ``lines``: from a point to another; ``best``: names
    a line along those that nobody beats in both; ``key``: what marks mean; ``reach``: how far
    from its point a name may stand, in inches.
    """
    key = [*key, *([("dotted", ink.INK, best)] if best else [])]
    texts = dict(zip(points, fitted([*points], 0.4 * look.px, LEAST), strict=True))
    sheet = Sheet(look.px)
    head = sheet.key(2, key) if key else 8.0
    left = 40.0
    wide, tall = look.wide(left, 10.0), look.tall(270, 90)
    plane = laid_out(
        points, x, y, (wide / INCH, tall / INCH),
        lambda text: width_of(text, LEAST, bold=bool(look.highlight)) / INCH, texts,
        first=look.highlight, pareto=bool(best), everybody=len(points) <= MOST_NAMED, reach=reach,
    )  # fmt: skip
    sheet.height = head + 16 + tall + 34

    def at(right: float, up: float) -> tuple[float, float]:
        return left + wide * right, head + 16 + tall * (1 - up)

    for share, said in plane.up.ticks:
        sheet.line([at(0, share), at(1, share)], ink.GRID)
        sheet.say(left - 6, at(0, share)[1] + 4, said, "end", shade=ink.SOFT)
    for share, said in plane.across.ticks:
        sheet.line([at(share, 0), at(share, 1)], ink.GRID)
        sheet.say(at(share, 0)[0], at(0, 0)[1] + 14, said, "middle", shade=ink.SOFT)
    sheet.say(0, head + 8, y.label, shade=ink.SOFT)
    sheet.say(look.px, sheet.height - 5, x.label, "end", shade=ink.SOFT)
    spots = {one.name: one.at for one in plane.marks}
    for p in spots.values():
        sheet.line([at(p.x, p.y_low), at(p.x, p.y_high)], ink.BAR, 2.4)
        sheet.line([at(p.x_low, p.y), at(p.x_high, p.y)], ink.BAR, 2.4)
    for control, panel in (lines or {}).items():
        if {control, panel} <= {*spots}:
            sheet.line([at(*(spots[name].x, spots[name].y)) for name in (control, panel)], ink.SOFT)
    if plane.best:
        steps = [(one.at.x, one.at.y) for one in plane.best]
        ends = [*(x for x, _ in steps[1:]), 1.0]
        line = [
            spot for (x, y), end in zip(steps, ends, strict=True) for spot in ((x, y), (end, y))
        ]
        sheet.line([at(*spot) for spot in line], ink.INK, 1, (1.5, 2.5))
    for one in plane.marks:
        _mark(sheet, one, at, look, hollow=one.name in hollow, pale=one.name in pale)
    return sheet


def _mark(sheet: Sheet, one: Mark, at: Callable[[float, float], Spot], look: Look, *,
          hollow: bool, pale: bool) -> None:  # fmt: skip
    """A point, and its name where there is room; with a line to one that is far."""
    x, y = at(one.at.x, one.at.y)
    sheet.dot(x, y, one.name, 4.6 if one.name in look.highlight else 3.6, hollow=hollow,
              fill=ink.BAR if pale else ink.INK, whole=one.said)  # fmt: skip
    if (label := one.label) is None:
        return
    left, middle = x + INCH * label.dx, y - INCH * label.dy
    if label.is_far:
        end = left if label.dx > 0 else left + INCH * label.width
        sheet.line([(x, y), (end, middle)], ink.BAR, 0.8)
    sheet.name(left, middle + 4, one.name, label.text, look, "start", size=LEAST)


class Standing(NamedTuple):
    """One contestant on one occasion."""

    at: float
    """The height of its place."""
    low: float
    high: float
    """Ends of its interval."""
    said: str


def slopes(
    columns: Mapping[str, Mapping[str, Standing]], moved: Collection[str], look: Look
) -> Sheet:
    """What changes between two occasions; ``moved``: who is dark, elsewhere it can be chance."""
    (first, last) = columns
    both = [name for name in columns[last] if name in columns[first]]
    fitting = fitted(both, max(96.0, 0.3 * look.px), LEAST)
    shown = dict(zip(both, fitting, strict=True))
    wide = {t: max(widest([one[n].said for n in both], LEAST, bold=True) for one in (columns[t],))
            for t in columns}  # fmt: skip
    names = widest(fitting, LEAST, bold=True)
    left, right = names + wide[first] + 10, names + wide[last] + 10
    if named := look.px - left - right >= 24:  # else names stand at the right alone
        room = look.wide(left, right, 24.0)
    else:
        left = max(wide[first], width_of(first, LEAST, bold=True)) + 10
        room = look.wide(left, right)
    tall = look.tall(max(300.0, 13.5 * len(both)), 13.5 * len(both))
    top, sheet = 26.0, Sheet(look.px, tall + 34)
    ends = [v for one in columns.values() for name in both for v in (one[name].low, one[name].high)]
    low, high = min(ends), max(ends)

    def y(value: float) -> float:
        return top + tall * (high - value) / ((high - low) or 1)

    sides = {first: left + 2, last: left + room - 2}
    for name in sorted(both, key=lambda name: name in moved):
        strong = name in moved or name in look.highlight
        shade: Shade = (ink.PEOPLE, 1.0) if name == HUMAN else ink.INK if strong else ink.BAR
        spots = [(sides[t], columns[t][name]) for t in columns]
        sheet.line([(x, y(one.at)) for x, one in spots], shade, 2 if strong else 1.1, whole=name)
        for x, one in spots:
            sheet.line([(x, y(one.low)), (x, y(one.high))], shade, 4)
    for title, side in ((first, -1), (last, 1)):
        at, x = columns[title], sides[title]
        sheet.say(x + 4 * side, 12, title, "end" if side < 0 else "start", bold=True)
        order = sorted(both, key=lambda name: (-at[name].at, name))
        heights = apart([y(at[name].at) for name in order], 13.5, top, top + tall)
        for name, height in zip(order, heights, strict=True):
            parts = [at[name].said, shown[name]][: 2 if side > 0 or named else 1]
            said = " ".join(parts[::side])
            strong = name in moved or name in look.highlight
            start = x + 8 * side
            if abs(height - y(at[name].at)) > 3:
                sheet.line([(x + 3 * side, y(at[name].at)), (start - side, height)], ink.PALE, 0.8)
            sheet.say(start, height + 4, said, "end" if side < 0 else "start", bold=strong,
                      shade=(ink.PEOPLE, 1.0) if name == HUMAN else ink.INK if strong else ink.SOFT,
                      whole="" if name in said or len(parts) < 2 else name)  # fmt: skip
    return sheet
