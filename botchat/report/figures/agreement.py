"""Figures of a comparison of judges: agreement over cost, agreement of pairs, judge health."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from botchat.boards.judge_agreement import Findings, judges_table
from botchat.interfaces import Row
from botchat.report.figures import (
    BESIDE,
    Chart,
    cells,
    chart,
    charts,
    curves,
    measures,
    points,
    style,
)  # fmt: skip
from botchat.report.figures.cells import Cells
from botchat.report.figures.charts import health
from botchat.report.figures.points import Standing
from botchat.report.figures.style import BAR, INK, MUTED, Heading, bare, sheet, tint

_LEAST_HEIGHT = 2.6
"""Of the plot, in inches."""

_SQUARE = 2.6
"""Most height of a calibration curve, in inches."""

_DASHED = (0, (4, 3))


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
    if ranked := _rankings(found):
        drawn.append(ranked)
    if bins := found.calibration:
        n = sum(row["n"] for row in bins)
        drawn.append(_chart(found, "judges-calibration", calibration, bins, n=n))
    return drawn


def calibration(bins: Sequence[Row], heading: Heading) -> Figure:
    """Share of right verdicts over confidence, a panel a judge; calibrated is the diagonal.

    ``bins``: of `botchat.measures.agreement.Agreement.calibration`.
    """
    judges = heading.look.ordered(dict.fromkeys(row["judge"] for row in bins))
    columns = min(len(judges), 2 if heading.look.narrow else 4)
    across = heading.look.width / columns - 0.6
    height = min(across, _SQUARE)
    key = [
        charts.mark(tint(INK), "verdicts of one confidence"),
        Line2D([], [], color=tint(BAR), linewidth=1.4, label="95 % interval"),
        Line2D([], [], color=tint(MUTED), linewidth=1, linestyle=_DASHED, label="calibrated"),
    ]
    figure, panels = sheet(
        heading, [height] * len(judges), left=0.55, right=0.2, above=0.3, gap=0.25,
        columns=columns, key=key,
    )  # fmt: skip
    room = style.size_of(panels[0])[0]
    for i, (axes, judge, said) in enumerate(
        zip(panels, judges, style.fitted(judges, room), strict=True)
    ):
        bare(axes, grid="both")
        axes.plot([0, 100], [0, 100], color=tint(MUTED), linewidth=1, linestyle=_DASHED, zorder=1)
        rows = [row for row in bins if row["judge"] == judge]
        x, y, low, high = (
            [100 * row[key] for row in rows]
            for key in ("confidence", "right", "right_low", "right_high")
        )
        axes.vlines(x, low, high, color=tint(BAR), linewidth=1.4, zorder=2)
        axes.plot(x, y, color=tint(INK), linewidth=1.2, marker="o", markersize=4, zorder=3)
        axes.set_title(
            said, loc="left", size=style.SIZE, weight="bold", pad=5, gid=style.titled(judge)
        )
        axes.set(xlim=(0, 103), ylim=(-3, 103), xticks=[0, 50, 100], yticks=[0, 50, 100])
        style.label_x(axes, "Confidence (%)")
        if i % columns == 0:
            axes.set_ylabel("Right (%)", size=style.SIZE, color=tint(MUTED))
        else:
            axes.set_yticklabels([])
    return figure


def cost_against_agreement(
    prices: Sequence[Price], cost: str, agreement: str, heading: Heading
) -> Figure:
    """Agreement over cost (logarithmic); what costs nothing is drawn apart, at the left.

    At least one price is above 0. ``cost`` and ``agreement`` are the labels of the axes.
    """
    ordered = sorted(prices, key=lambda price: (-price.value, price.judge))
    names = [price.judge for price in ordered]
    shown = style.fitted(names, 0.3 * heading.look.width)
    height = max(_LEAST_HEIGHT, curves.ROW * len(ordered))
    figure, (axes,) = sheet(
        heading, [height], left=0.65, right=curves.room(shown), key=_marks(ordered),
        least=curves.ROW * len(ordered),
    )  # fmt: skip
    bare(axes, grid="both")
    place = points.logarithmic(axes, [price.cost for price in ordered])
    low = 100 * min(price.low for price in ordered)
    high = 100 * max(price.high for price in ordered)
    margin = max(0.06 * (high - low), 2.0)
    axes.set_ylim(low - margin, high + margin)
    at = {price.judge: (place[price.cost], 100 * price.value) for price in ordered}
    for price in ordered:
        x, y = at[price.judge]
        ends = [100 * price.low, 100 * price.high]
        axes.plot([x, x], ends, color=tint(BAR), linewidth=1.4, zorder=2)
        if price.beside in at:
            to_x, to_y = at[price.beside]
            axes.plot([x, to_x], [y, to_y], color=tint(MUTED), linewidth=1.2, zorder=2)
        axes.scatter(
            x, y, s=42, zorder=3, linewidth=1.4, edgecolor=tint(INK),
            color=tint(0 if price.beside else INK), gid=style.titled(price.judge),
        )  # fmt: skip
    curves.name_points(axes, [at[name] for name in names], names, shown, heading.look)
    style.label_x(axes, cost)
    axes.set_ylabel(agreement, size=style.SIZE, color=tint(MUTED))
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
    of = partial(_square, found, judges)
    parts = [Cells("Same verdict (%)", of("agreement"))]
    rankings = of("ranking_kendall")
    if rankings.notna().any(axis=None):
        low, high = of("ranking_kendall_low"), of("ranking_kendall_high")
        parts.append(Cells("Rankings, τ × 100", rankings, low, high, 0.0, signed=True))
    n = max(row["n"] for row in found.pairs)
    drawn = cells.squares, parts, "row and column"
    return _chart(found, "judges-against-each-other", *drawn, n=n)


def _rankings(found: Findings) -> Chart | None:
    """Every contestant's place by every judge; ``None`` where fewer than two rank the same."""
    standing: dict[str, dict[str, Standing]] = {}
    for row in found.rankings:
        if row["score"] is not None and row.get("score_low") is not None:
            ends = (row["score_low"], row["score_high"])
            of_judge = standing.setdefault(row["judge"], {})
            of_judge[row["contestant"]] = Standing(-row["score"], -ends[1], -ends[0],
                                                   f"{100 * row['score']:.0f}")  # fmt: skip
    if len(standing) < 2 or max(map(len, standing.values())) < 2:
        return None
    n = max((row["n"] for row in found.rankings), default=0)
    said = "Numbers: score in percent, a tie is half a win."
    return _chart(found, "judges-rankings", points.slopes, standing, said, n=n)


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
        if pair.get(key) is not None:
            a, b = pair["judge_a"], pair["judge_b"]
            values.loc[a, b] = values.loc[b, a] = pair[key]
    return values


def _marks(prices: Sequence[Price]) -> list[Line2D]:
    marks = [charts.mark(tint(INK), "judge")]
    if any(price.beside for price in prices):
        marks.append(charts.mark("none", "its control"))
    if any(price.low < price.high for price in prices):
        marks.append(Line2D([], [], color=tint(BAR), linewidth=1.4, label="95 % interval"))
    return marks
