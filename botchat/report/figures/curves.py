"""Survival curves, with names beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from botchat.boards.survival import Curve
from botchat.records import HUMAN, N_SEED
from botchat.report.figures import ink
from botchat.report.figures.axes import Graph
from botchat.report.figures.lettering import SIZE, apart, fitted, widest
from botchat.report.figures.sheet import Look, Shade, Sheet, Spot

DASHES: Sequence[tuple[float, ...]] = ((), (5, 2), (1.5, 2), (5, 2, 1.5, 2), (9, 3))

MOST_NAMED = 10
"""Lines with a name; the others are grey and named when they are pointed at."""


def line_look(i: int) -> tuple[Shade, tuple[float, ...]]:
    """Shade and dashes of the line number ``i``."""
    return (1.0, 0.55)[i % 2], DASHES[i // 2 % len(DASHES)]


def longest_first(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """The same, the longest survival first: by the curve from its end to its start."""

    def order(name: str) -> list[float]:
        return [-x if np.isfinite(x) else 1.0 for x in curves[name].surviving[::-1].tolist()]

    return {name: curves[name] for name in sorted(sorted(curves), key=order)}


def survival(curves: Mapping[str, Curve], look: Look) -> Sheet:
    """Share of chats not accused yet, after each line.

    ``curves``: contestant -> curve, all of one length; the longest survival first.
    """
    order = sorted(curves, key=lambda name: name != HUMAN)
    named = [name for name in curves if name in order[:MOST_NAMED]]
    shown = dict(zip(named, fitted(named, 0.3 * look.px), strict=True))
    last = max(len(curve.surviving) for curve in curves.values())
    right = 34 + widest(shown.values())
    wide, tall = look.wide(30, right), look.tall(270, max(120.0, 15.0 * len(named)))
    panel = Graph(30, 30, wide, tall, (1, max(2, last)), (0, 100))
    left, top, sheet = panel.left, panel.top, Sheet(look.px, tall + 66)

    def at(line: float, share: float) -> Spot:
        return panel.at(line, 100 * share)

    sheet.box(*at(1, 1), *at(N_SEED, 0), ink.GRID)
    step = 2 * max(1, round(last * 12 / wide))
    panel.scales(sheet, range(2, last + 1, step), (0, 25, 50, 75, 100), "line of the chat")
    others = [("line", ink.PALE, "others")] if len(named) < len(curves) else []
    sheet.key(2, [("bar", ink.GRID, "people's start"), *others])
    ends = []
    for i, name in enumerate(sorted(curves, key=lambda name: name in named)):
        curve, kind = curves[name], named.index(name) if name in named else i
        known = np.flatnonzero(~np.isnan(curve.surviving)).tolist()
        points = [at(k + 1, float(curve.surviving[k])) for k in known]
        shade, dashes = line_look(kind) if name != HUMAN else (ink.PEOPLE, ())
        if name not in named:
            sheet.line(points, ink.PALE, 1.1, whole=name)
            continue
        sheet.line(points, shade, 1.7, dashes, whole=name)
        ends.append((points[-1], name))
    ends.sort(key=lambda end: (end[0][1], end[1]))
    heights = apart([y for (_, y), _ in ends], SIZE + 3, top, top + tall)
    for ((x, y), name), height in zip(ends, heights, strict=True):
        sheet.line([(x, y), (left + wide + 4, y), (left + wide + 22, height)], ink.PALE, 0.8)
        sheet.name(left + wide + 26, height + 4, name, shown[name], "start")
    return sheet
