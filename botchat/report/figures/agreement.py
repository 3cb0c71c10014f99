"""Figures of a comparison of judges: agreement over cost, agreement of pairs, judge health."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from botchat.boards.judge_agreement import Findings, judges_table
from botchat.boards.tables import labels
from botchat.interfaces import Row
from botchat.report.figures import BESIDE, Chart, chart, charts, curves, measures
from botchat.report.figures.charts import health
from botchat.report.figures.style import GREY, ORANGE, SHADES, Heading, bare, sheet, styled

_WIDTH, _LEAST_HEIGHT = 5.2, 2.8
"""Of the plot, in inches."""

_SQUARE = 3.6
"""Side of the calibration curve, in inches."""

_SPAN = 0.75
"""Fewest powers of ten that a logarithmic axis shows, so that it has two numbers on it."""


@dataclass(frozen=True)
class Price:
    """One judge in the figure of costs."""

    judge: str
    cost: float
    """Of one verdict, 0 or more."""
    value: float
    """Agreement, 0 to 1."""
    low: float
    high: float
    beside: str | None = None
    """The panel whose control this is."""


NAMES = tuple(texts["name"] for texts in BESIDE.values())
"""Of the figures."""


def _chart(
    found: Findings, key: str, draw: Callable[..., Figure], *data: Any, **facts: Any
) -> Chart:
    """The figure ``draw(*data, heading)`` with the texts under ``key`` in `BESIDE`."""
    signed = [found.signature]
    return chart(found.subject, None, key, signed, draw, *data, texts=BESIDE, **facts)


def draw(found: Findings) -> list[Chart]:
    """The figures that the findings have the numbers for."""
    drawn = []
    # A judge whose every verdict is unreadable has a price, and no place beside it.
    placed = [row for row in found.rows if _agreement(found, row) is not None]
    costs = [key for key in _COSTS if _known(placed, key)]
    if costs:
        drawn.append(_cost(found, costs[0]))
    if found.pairs:
        drawn.append(_matrix(found))
    judges = judges_table(found)
    shown = measures("judges-health")
    if judges.frame[[one.key for one in shown]].notna().any(axis=None):
        n = sum(row["verdicts"] + row["unreadable"] for row in found.rows)
        drawn.append(_chart(found, "judges-health", health, judges, shown, n=n))
    if bins := found.calibration:
        n = sum(row["n"] for row in bins)
        drawn.append(_chart(found, "judges-calibration", calibration, bins, n=n))
    return drawn


def calibration(bins: Sequence[Row], heading: Heading) -> Figure:
    """Share of right verdicts over confidence, a line a judge; calibrated is the diagonal.

    ``bins``: of `botchat.measures.agreement.Agreement.calibration`.
    """
    judges = list(dict.fromkeys(row["judge"] for row in bins))
    shown = labels(judges)
    height = max(_SQUARE, curves.ROW * len(judges))
    with styled():
        figure, (axes,) = sheet(
            heading, [(_SQUARE, height)], left=0.75, right=curves.room(shown), above=0.42
        )
        bare(axes, grid="both")
        axes.plot([0, 100], [0, 100], color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        last = []
        for i, judge in enumerate(judges):
            color = SHADES[i % len(SHADES)]
            rows = [row for row in bins if row["judge"] == judge]
            x, y, low, high = (
                [100 * row[key] for row in rows]
                for key in ("confidence", "right", "right_low", "right_high")
            )
            axes.vlines(x, low, high, color=GREY, linewidth=1.2, zorder=2)
            axes.plot(x, y, color=color, linewidth=1.4, marker="o", markersize=4, zorder=3)
            last.append((x[-1], y[-1]))
        curves.name_points(axes, last, shown)
        axes.set_xlim(0, 103)
        axes.set_ylim(-3, 103)
        axes.set_xlabel("Confidence (%)")
        axes.set_ylabel("Right (%)")
    return figure


def cost_against_agreement(
    prices: Sequence[Price], cost: str, agreement: str, heading: Heading
) -> Figure:
    """Agreement over cost (logarithmic); what costs nothing is drawn apart, at the left.

    At least one price is above 0. ``cost`` and ``agreement`` are the labels of the axes.
    """
    ordered = sorted(prices, key=lambda price: (-price.value, price.judge))
    shown = labels([price.judge for price in ordered])
    height = max(_LEAST_HEIGHT, curves.ROW * len(ordered))
    with styled():
        figure, (axes,) = sheet(
            heading, [(_WIDTH, height)], left=0.75, right=curves.room(shown), above=0.42
        )
        bare(axes, grid="both")
        place = _costs(axes, [price.cost for price in ordered])
        low = 100 * min(price.low for price in ordered)
        high = 100 * max(price.high for price in ordered)
        margin = max(0.06 * (high - low), 2.0)
        axes.set_ylim(low - margin, high + margin)
        at = {price.judge: (place[price.cost], 100 * price.value) for price in ordered}
        for price in ordered:
            x, y = at[price.judge]
            ends = [100 * price.low, 100 * price.high]
            axes.plot([x, x], ends, color=GREY, linewidth=1.4, zorder=2)
            if price.beside in at:
                to_x, to_y = at[price.beside]
                axes.plot([x, to_x], [y, to_y], color=ORANGE, linewidth=1.2, zorder=2)
            axes.scatter(
                x, y, s=42, zorder=3, linewidth=1.4, edgecolor=SHADES[0],
                color="white" if price.beside else SHADES[0],
            )  # fmt: skip
        curves.name_points(axes, [at[price.judge] for price in ordered], shown)
        axes.set_xlabel(cost)
        axes.set_ylabel(agreement)
        charts.legend(axes, _marks(ordered))
    return figure


def _cost(found: Findings, key: str) -> Chart:
    by_truth = _by_truth(found)
    panels = {control["control"]: control["judge"] for control in found.controls}
    scale = 1000 if key == "usd" else 1
    prices = [
        Price(row["judge"], scale * row[key], *ends, panels.get(row["judge"]))
        for row in found.rows
        if row.get(key) is not None and (ends := _agreement(found, row)) is not None
    ]
    against = f"Agreement with {found.truth}" if by_truth else "Agreement with the other judges"
    n = max(row["n" if by_truth else "verdicts"] for row in found.rows)
    axes = _COSTS[key], "Accuracy (%)" if by_truth else "Agreement with the others (%)"
    drawn = "cost-against-agreement", cost_against_agreement, prices, *axes
    return _chart(found, *drawn, judges=len(prices), n=n, against=against)


def _matrix(found: Findings) -> Chart:
    judges = [row["judge"] for row in found.rows]
    agreement, rankings = (_square(found, judges, key) for key in ("agreement", "ranking_kendall"))
    parts = {"Same verdict (%)": agreement}
    if rankings.notna().any(axis=None):
        parts["Rankings, τ × 100"] = rankings
    drawn = charts.squares, parts, "row and column"
    n = max(row["n"] for row in found.pairs)
    return _chart(found, "judges-against-each-other", *drawn, n=n)


_COSTS = {
    "usd": "USD for 1000 verdicts",
    "tokens": "Tokens for one verdict",
    "calls": "Calls for one verdict",
}


def _known(rows: Sequence[Row], key: str) -> bool:
    """Whether a cost is known of every judge that has calls at all, and one has some."""
    costs = [row.get(key) for row in rows if row.get("calls") is not None]
    return None not in costs and any(cost for cost in costs)


def _by_truth(found: Findings) -> bool:
    """Whether agreement is with the truth, not with the other judges."""
    return any(row.get("accuracy") is not None for row in found.rows)


def _agreement(found: Findings, row: Row) -> tuple[float, float, float] | None:
    """A judge's agreement and the ends of its interval."""
    if _by_truth(found):
        known = [row["accuracy"], row["accuracy_low"], row["accuracy_high"]]
        return None if None in known else (known[0], known[1], known[2])
    beside = [
        pair["agreement"]
        for pair in found.pairs
        if row["judge"] in (pair["judge_a"], pair["judge_b"]) and pair["agreement"] is not None
    ]
    return (sum(beside) / len(beside),) * 3 if beside else None


def _square(found: Findings, judges: Sequence[str], key: str) -> pd.DataFrame:
    values = pd.DataFrame(math.nan, index=list(judges), columns=list(judges))
    for pair in found.pairs:
        if pair[key] is not None:
            a, b = pair["judge_a"], pair["judge_b"]
            values.loc[a, b] = values.loc[b, a] = pair[key]
    return values


def _costs(axes: Axes, costs: Sequence[float]) -> dict[float, float]:
    """Set the horizontal axis up; cost -> place on it."""
    logs = [math.log10(cost) for cost in costs if cost > 0]
    middle = (min(logs) + max(logs)) / 2
    first = min(*logs, middle - _SPAN / 2)
    last = max(*logs, middle + _SPAN / 2)
    free = first - max(0.2 * (last - first), 0.15)
    steps = (1, 2, 5) if last - first <= 2.5 else (1,)
    ticks = [
        step * 10.0**power
        for power in range(math.floor(first) - 1, math.ceil(last) + 1)
        for step in steps
        if first - 1e-9 <= math.log10(step * 10.0**power) <= last + 1e-9
    ]
    at = [math.log10(tick) for tick in ticks]
    names = [f"{tick:,g}" if tick < 1e6 else f"{tick:.0e}" for tick in ticks]
    start = first
    if 0 in costs:
        at, names, start = [free, *at], ["0", *names], free
    axes.set_xticks(at, names)
    margin = 0.06 * (last - start)
    axes.set_xlim(start - margin, last + margin)
    return {cost: math.log10(cost) if cost > 0 else free for cost in costs}


def _marks(prices: Sequence[Price]) -> list[Line2D]:
    marks = [charts.mark(SHADES[0], "judge")]
    if any(price.beside for price in prices):
        marks.append(charts.mark("white", "its control"))
    if any(price.low < price.high for price in prices):
        marks.append(Line2D([], [], color=GREY, linewidth=1.4, label="95 % interval"))
    return marks
