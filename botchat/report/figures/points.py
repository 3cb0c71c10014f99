"""Contestants as points in a plane, and what changes from one occasion to another."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from botchat.records import HUMAN
from botchat.report.figures import ink
from botchat.report.figures.axes import Axis, Graph, ruler
from botchat.report.figures.lettering import LEAST, apart, fitted, widest, width_of
from botchat.report.figures.sheet import INCH, Look, Shade, Sheet, Spot

MOST_NAMED = 20
"""Points that all have a name; of more, `OF_A_CROWD`."""

OF_A_CROWD = 10
"""Points with a name in a crowd; the others are named when they are pointed at."""

_LINE = 14.4
"""Px of height that a name needs."""

_NEAR = 24.0
"""A name farther from its point than this, in px, has a line to it."""

_TICK = 30.7
"""Px that a tick of an upright axis needs."""


class Point(NamedTuple):
    """Two numbers of one contestant with the ends of their intervals; NaN where not known."""

    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float


def against(
    points: Mapping[str, Point],
    x: Axis,
    y: Axis,
    look: Look,
    *,
    hollow: Collection[str] = (),
    lines: Mapping[str, str] | None = None,
    best: str = "",
    key: Sequence[tuple[str, Shade, str]] = (),
    reach: float = 0.6,
) -> Sheet:
    """One number against another, with intervals, and names where there is room for them.

    ``hollow``: open marks; ``lines``: from a point to another; ``best``: names
    a line along those that nobody beats in both, a small x being good; ``key``: what marks mean;
    ``reach``: how far from its point a name may stand, in inches.
    """
    key = [*key, *([("dotted", ink.INK, best)] if best else [])]
    texts = dict(zip(points, fitted([*points], 0.4 * look.px, LEAST), strict=True))
    sheet = Sheet(look.px)
    head = sheet.key(2, key) if key else 8.0
    left = 40.0
    wide, tall = look.wide(left, 10.0), look.tall(270, 90)
    panel = Graph(left, head + 16, wide, tall)
    sheet.height = head + 16 + tall + 34
    order = sorted(points, key=lambda name: (-points[name].y, points[name].x))
    # The end of an interval can be near 0, which is far on a logarithmic axis.
    xs = [v for one in points.values() for v in one[: 1 if x.log else 3] if math.isfinite(v)]
    ys = [v for one in points.values() for v in one[3:] if math.isfinite(v)]
    across = ruler(x, xs, lambda ticks: sum(width_of(tick, LEAST) + 14 for tick in ticks) <= wide)
    up = ruler(y, ys, lambda ticks: len(ticks) * _TICK <= tall)
    for share, _ in across.ticks:
        sheet.line([panel.at(share, 0), panel.at(share, 1)], ink.GRID)
    panel.scales(sheet, across.ticks, up.ticks)
    sheet.say(0, head + 8, y.label, shade=ink.SOFT)
    sheet.say(look.px, sheet.height - 5, x.label, "end", shade=ink.SOFT)

    def at(right: float, high: float) -> tuple[float, float]:
        return panel.at(across.share(right), up.share(high))

    for p in (points[name] for name in order):
        sheet.line([at(p.x, p.y_low), at(p.x, p.y_high)], ink.BAR, 2.4)
        sheet.line([at(p.x_low, p.y), at(p.x_high, p.y)], ink.BAR, 2.4)
    for ends in (lines or {}).items():
        if {*ends} <= {*points}:
            sheet.line([at(points[name].x, points[name].y) for name in ends], ink.SOFT)
    unbeaten = _unbeaten({name: points[name] for name in order}) if best else []
    if unbeaten:
        steps = [at(points[name].x, points[name].y) for name in unbeaten]
        ends_of = [*(right for right, _ in steps[1:]), left + wide]
        corners = [
            spot for (a, b), end in zip(steps, ends_of, strict=True) for spot in ((a, b), (end, b))
        ]
        sheet.line(corners, ink.INK, 1, (1.5, 2.5))
    everybody = len(points) <= MOST_NAMED
    named = [*dict.fromkeys([*unbeaten, *order])][: None if everybody else OF_A_CROWD]
    far = min(INCH * reach, tall) if everybody else 0.0
    spots = {name: at(one.x, one.y) for name, one in points.items()}
    bars = [(*at(p.x, p.y_high), *at(p.x, p.y_low)) for p in points.values()]
    bars += [(*at(p.x_low, p.y), *at(p.x_high, p.y)) for p in points.values()]
    room = {name: width_of(texts[name], LEAST) for name in named}
    tags = _tags(spots, bars, room, panel, far)
    for name in order:
        (a, b), one = spots[name], points[name]
        said = f"{name}: {y.form(one.y)}, {x.label} {x.form(one.x)}"
        sheet.dot(a, b, name, 3.6, hollow=name in hollow, fill=ink.INK, whole=said)
        if name in tags:
            start, end, middle = tags[name]
            if abs(middle - b) > _NEAR:
                sheet.line([(a, b), (start if start > a else end, middle)], ink.BAR, 0.8)
            sheet.name(start, middle + 4, name, texts[name], "start", size=LEAST)
    return sheet


def _unbeaten(points: Mapping[str, Point]) -> list[str]:
    """Those that no other beats in both, the smallest x first; ``points`` are best y first."""
    found: list[str] = []
    for name, point in points.items():
        if not found or point.x < points[found[-1]].x:
            found.append(name)
    return found[::-1]


Box = tuple[float, float, float, float]
"""Left, upper, right and lower end, in px."""


def _tags(
    spots: Mapping[str, Spot],
    bars: Sequence[Box],
    widths: Mapping[str, float],
    panel: Graph,
    far: float,
) -> dict[str, tuple[float, float, float]]:
    """Where names stand beside their points: left end, right end, and middle of the height.

    ``widths``: of the names, the first before the others; ``far``: px that one may be away from its
    point where there is no room beside it.
    """
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots.values()]
    right, foot = panel.left + panel.wide, panel.top + panel.tall
    found = {}
    for name, w in widths.items():
        x, y = spots[name]

        def free(dx: float, dy: float, x: float = x, y: float = y, w: float = w) -> Box | None:
            box = (x + dx, y + dy, x + dx + w, y + dy + _LINE)
            inside = panel.left <= box[0] and box[2] <= right and panel.top <= box[1]
            if inside and box[3] <= foot and not any(_meet(box, other) for other in taken):
                return box
            return None

        h = _LINE
        near = [(8, -h / 2), (-8 - w, -h / 2), (6, -h - 4), (6, 4), (-w - 6, -h - 4), (-w - 6, 4),
                (-w / 2, -h - 9), (-w / 2, 9)]  # fmt: skip
        boxes = [box for spot in near if (box := free(*spot))]
        box = min(boxes, key=lambda box: sum(_meet(box, bar) for bar in bars), default=None)
        away = ((side, n * h * up - h / 2) for n in range(2, int(far / h)) for up in (-1, 1)
                for side in (24, -24 - w))  # fmt: skip
        if box := box or next((box for spot in away if (box := free(*spot))), None):
            taken.append(box)
            found[name] = (box[0], box[2], (box[1] + box[3]) / 2)
    return found


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


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
    wide = {title: widest([one[name].said for name in both], LEAST, bold=True)
            for title, one in columns.items()}  # fmt: skip
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

    def shade_of(name: str, weak: Shade) -> Shade:
        return ink.PEOPLE if name == HUMAN else ink.INK if name in moved else weak

    for name in sorted(both, key=lambda name: name in moved):
        shade, width = shade_of(name, ink.BAR), 2 if name in moved else 1.1
        spots = [(sides[t], columns[t][name]) for t in columns]
        sheet.line([(x, y(one.at)) for x, one in spots], shade, width, whole=name)
        for x, one in spots:
            sheet.line([(x, y(one.low)), (x, y(one.high))], shade, 4)
    for title, side in ((first, -1), (last, 1)):
        at, x, anchor = columns[title], sides[title], "end" if side < 0 else "start"
        sheet.say(x + 4 * side, 12, title, anchor, bold=True)
        order = sorted(both, key=lambda name: (-at[name].at, name))
        heights = apart([y(at[name].at) for name in order], 13.5, top, top + tall)
        for name, height in zip(order, heights, strict=True):
            parts = [at[name].said, shown[name]][: 2 if side > 0 or named else 1]
            said = " ".join(parts[::side])
            start = x + 8 * side
            if abs(height - y(at[name].at)) > 3:
                sheet.line([(x + 3 * side, y(at[name].at)), (start - side, height)], ink.PALE, 0.8)
            whole = "" if name in said or len(parts) < 2 else name
            sheet.say(start, height + 4, said, anchor, shade=shade_of(name, ink.SOFT),
                      bold=name in moved, whole=whole)  # fmt: skip
    return sheet
