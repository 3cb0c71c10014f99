"""Survival curves, with names beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from botchat.boards.survival import Curve
from botchat.records import HUMAN, N_SEED
from botchat.report.figures import ink
from botchat.report.figures.lettering import SIZE, apart, fitted, widest
from botchat.report.figures.sheet import Look, Shade, Sheet, Spot

DASHES: Sequence[tuple[float, ...]] = ((), (5, 2), (1.5, 2), (5, 2, 1.5, 2), (9, 3))

MOST_NAMED = 10
"""Lines with a name; the others are grey and named when they are pointed at."""


def line_look(i: int) -> tuple[Shade, tuple[float, ...]]:
    """Shade and dashes of the line number ``i``."""
    return (1.0, 0.55)[i % 2], DASHES[i // 2 % len(DASHES)]


class Graph(NamedTuple):
    """A plot of two scales."""

    left: float
    top: float
    wide: float
    tall: float
    x: tuple[float, float]
    y: tuple[float, float]
    """First and last number of each scale."""

    def at(self, x: float, y: float) -> Spot:
        """Where two numbers stand."""
        (x0, x1), (y0, y1) = self.x, self.y
        across, up = (x - x0) / ((x1 - x0) or 1), (y - y0) / ((y1 - y0) or 1)
        return self.left + self.wide * across, self.top + self.tall * (1 - up)

    def scales(
        self, sheet: Sheet, xs: Iterable[float], ys: Iterable[float], label: str = "", up: str = ""
    ) -> None:
        """Ticks and what is along them; of the upright one ``up`` stands above."""
        for y in ys:
            sheet.line([self.at(self.x[0], y), self.at(self.x[1], y)], ink.GRID)
            sheet.say(self.left - 6, self.at(0, y)[1] + 4, f"{y:g}", "end", shade=ink.SOFT)
        foot = self.top + self.tall
        for x in xs:
            sheet.say(self.at(x, 0)[0], foot + 14, f"{x:g}", "middle", shade=ink.SOFT)
        sheet.say(self.left + self.wide, foot + 28, label, "end", shade=ink.SOFT)
        sheet.say(self.left - 6, self.top - 8, up, shade=ink.SOFT)


def survival(curves: Mapping[str, Curve], look: Look) -> Sheet:
    """Share of chats not accused yet, after each line, with 95 % intervals.

    ``curves``: contestant -> curve, all of one length; the longest survival first.
    """
    order = sorted(curves, key=lambda name: (name not in look.highlight, name != HUMAN))
    named = [name for name in curves if name in order[:MOST_NAMED]]
    shown = dict(zip(named, fitted(named, 0.3 * look.px), strict=True))
    last = max(len(curve.surviving) for curve in curves.values())
    right = 34 + widest(shown.values(), bold=bool(look.highlight))
    wide, tall = look.wide(30, right), look.tall(270, max(120.0, 15.0 * len(named)))
    panel = Graph(30, 30, wide, tall, (1, max(2, last)), (0, 100))
    left, top, sheet = panel.left, panel.top, Sheet(look.px, tall + 66)

    def at(line: float, share: float) -> Spot:
        return panel.at(line, 100 * share)

    sheet.box(*at(1, 1), *at(N_SEED, 0), ink.GRID)
    step = 2 * max(1, round(last * 12 / wide))
    panel.scales(sheet, range(2, last + 1, step), (0, 25, 50, 75, 100), "line of the chat")
    others = [("line", ink.PALE, "others")] if len(named) < len(curves) else []
    sheet.key(2, [("bar", ink.GRID, "people's start"), ("line", ink.BAR, "95 % interval"), *others])
    ends = []
    for i, name in enumerate(sorted(curves, key=lambda name: name in named)):
        curve, kind = curves[name], named.index(name) if name in named else i
        known = np.flatnonzero(~np.isnan(curve.surviving)).tolist()
        points = [at(k + 1, float(curve.surviving[k])) for k in known]
        shade, dashes = line_look(kind) if name != HUMAN else ((ink.PEOPLE, 1.0), ())
        if name not in named:
            sheet.line(points, ink.PALE, 1.1, whole=name)
            continue
        for k in known[kind % 4 :: 4]:  # at another line than the next curve's
            sheet.line([at(k + 1, float(end[k])) for end in (curve.low, curve.high)], ink.BAR, 0.8)
        sheet.line(points, shade, 2.4 if name in look.highlight else 1.7, dashes, whole=name)
        ends.append((points[-1], name))
    ends.sort(key=lambda end: (end[0][1], end[1]))
    heights = apart([y for (_, y), _ in ends], SIZE + 3, top, top + tall)
    for ((x, y), name), height in zip(ends, heights, strict=True):
        sheet.line([(x, y), (left + wide + 4, y), (left + wide + 22, height)], ink.PALE, 0.8)
        sheet.name(left + wide + 26, height + 4, name, shown[name], look, "start")
    return sheet
