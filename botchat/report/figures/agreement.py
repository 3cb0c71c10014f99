"""Figures of a comparison of judges: agreement over cost, agreement of pairs, judge health."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from botchat.boards.judge_agreement import Findings
from botchat.boards.which_judge import agreement, control_of
from botchat.report.figures import cells, ink, points
from botchat.report.figures.axes import Axis
from botchat.report.figures.cells import Cells
from botchat.report.figures.chart import Chart, chart
from botchat.report.figures.points import MOST_NAMED, Point

NAMES = ("cost-against-agreement", "judges-against-each-other")
"""Of the figures."""


def draw(found: Findings) -> list[Chart]:
    """The figures that the findings have the numbers for."""
    makers = (_cost, _matrix)
    return [one for one in (make(found) for make in makers) if one is not None]


_COSTS = {
    "usd": "USD for 1000 verdicts",
    "tokens": "Tokens for one verdict",
    "calls": "Calls for one verdict",
}


def _cost(found: Findings) -> Chart | None:
    """Agreement over cost; a judge whose every verdict is unreadable has a price and no place."""
    truth = any(row.get("accuracy") is not None for row in found.rows)
    placed = []
    for row in found.rows:
        beside = None if truth else agreement(found, row["judge"])
        known = [row.get(f"accuracy{end}") for end in ("", "_low", "_high")] if truth else [beside]
        numbers = [100 * value for value in known if value is not None]
        if len(numbers) == len(known):
            placed.append((row, (numbers * 3)[:3]))
    costs = {key: [row.get(key) for row, _ in placed if row.get("calls") is not None]
             for key in _COSTS}  # fmt: skip
    # One that is known of every judge that has calls at all, and of one there are some.
    cost = next((key for key, some in costs.items() if None not in some and any(some)), None)
    if cost is None:
        return None
    scale = 1000 if cost == "usd" else 1
    prices = {row["judge"]: Point(scale * row[cost], math.nan, math.nan, *ends)
              for row, ends in placed if row.get(cost) is not None}  # fmt: skip
    n = max(row["n" if truth else "verdicts"] for row in found.rows)
    panels = {control["control"]: control["judge"] for control in found.controls}
    about = "; bars are 95 % intervals. Lines lead from a control to its panel."
    if crowded := len(prices) > MOST_NAMED:
        prices = {name: at for name, at in prices.items() if control_of(name) is None}
        about = "; bars are 95 % intervals. Controls are left out."
    hollow = [name for name in prices if name in panels]
    key = [("dot", ink.INK, "judge")]
    key += [("ring", ink.INK, "its control")] if hollow else []
    drawn = partial(points.against, hollow=hollow, best="none better for less", key=key,
                    lines={} if crowded else panels, reach=9.0)  # fmt: skip
    return chart(
        "cost-against-agreement", "What agreement costs",
        f"Agreement with {found.truth if truth else 'the other judges'} over the cost of a verdict"
        f"{about}",
        f"{len(prices)} judges, up to {n:,} verdicts each", found.subject, [found.signature],
        drawn, prices, Axis(_COSTS[cost], log=True),
        Axis("Accuracy (%)" if truth else "Agreement with the others (%)", least=4),
    )  # fmt: skip


def _matrix(found: Findings) -> Chart | None:
    if not found.pairs:
        return None
    parts = [Cells("Same verdict (%)", _square(found, "agreement"))]
    rankings = _square(found, "ranking_kendall")
    if rankings.notna().any(axis=None):
        low, high = (_square(found, f"ranking_kendall_{end}") for end in ("low", "high"))
        told = ((low > 0) | (high < 0)).to_numpy()
        parts.append(Cells("Rankings, τ × 100", rankings, told, signed=True))
    n = max(row["n"] for row in found.pairs)
    return chart(
        "judges-against-each-other", "Judges against each other",
        "How often two judges give the same verdict, and Kendall's tau of the rankings they make, "
        "bold where its 95 % interval leaves out 0.",
        f"up to {n:,} verdicts a pair", found.subject, [found.signature],
        cells.squares, parts, "row and column",
    )  # fmt: skip


def _square(found: Findings, key: str) -> pd.DataFrame:
    judges = [row["judge"] for row in found.rows]
    values = pd.DataFrame(math.nan, index=judges, columns=judges)
    for pair in found.pairs:
        if pair.get(key) is not None:
            a, b = pair["judge_a"], pair["judge_b"]
            values.loc[a, b] = values.loc[b, a] = pair[key]
    return values
