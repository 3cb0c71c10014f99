"""Figures of a comparison of judges: agreement over cost, agreement of pairs, judge health."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import pandas as pd

from botchat.boards import debates
from botchat.boards.judge_agreement import Findings
from botchat.boards.which_judge import agreement, control_of
from botchat.interfaces import Row
from botchat.report.figures import cells, ink, points
from botchat.report.figures.axes import Axis, Graph
from botchat.report.figures.cells import Cells
from botchat.report.figures.chart import Chart, chart
from botchat.report.figures.lettering import fitted
from botchat.report.figures.points import MOST_NAMED, Point, Standing
from botchat.report.figures.sheet import WIDE, Look, Sheet

NAMES = (
    "cost-against-agreement", "judges-against-each-other", "judges-calibration", "debates-turns",
)  # fmt: skip
"""Of the figures."""


def draw(found: Findings) -> list[Chart]:
    """The figures that the findings have the numbers for."""
    makers = (_cost, _matrix, _calibration, _debates)
    return [one for one in (make(found) for make in makers) if one is not None]


def _calibration(found: Findings) -> Chart | None:
    if not (bins := found.calibration):
        return None
    return chart(
        "judges-calibration", "How sure judges are, and how often they are right",
        "Share of right verdicts over the judge's own probability, in bins of as many verdicts; "
        "bars are 95 % intervals. The dashed line is a calibrated judge.",
        f"{sum(row['n'] for row in bins):,} verdicts", found.subject, [found.signature],
        calibration, bins,
    )  # fmt: skip


def calibration(bins: Sequence[Row], look: Look) -> Sheet:
    """Share of right verdicts over confidence, a panel a judge; calibrated is the diagonal.

    ``bins``: of `botchat.measures.agreement.Agreement.calibration`.
    """
    judges = list(dict.fromkeys(row["judge"] for row in bins))
    across = max(1, int(look.px // 150))
    wide = look.wide(0, least=130) / across
    rows = math.ceil(len(judges) / across)
    tall = look.tall(min(wide - 44, 180) + 64, 120, rows)
    sheet = Sheet(look.px)
    kinds = ("dot", ink.INK, "verdicts of one confidence"), ("line", ink.BAR, "95 % interval")
    head = sheet.key(2, [*kinds, ("dotted", ink.SOFT, "calibrated")]) + 6
    names = fitted(judges, wide - 8)
    for i, judge in enumerate(judges):
        left, top = i % across * wide, head + i // across * tall
        sheet.name(left, top + 11, judge, names[i], look, "start")
        panel = Graph(left + 30, top + 30, wide - 44, tall - 64, (0, 100), (0, 100))
        panel.scales(sheet, (0, 50, 100), (0, 50, 100), "sure (%)", "right (%)")
        sheet.line([panel.at(0, 0), panel.at(100, 100)], ink.SOFT, 1, (1.5, 2.5))
        spots = []
        for row in (row for row in bins if row["judge"] == judge):
            x, y, low, high = (
                100 * row[key] for key in ("confidence", "right", "right_low", "right_high")
            )
            sheet.line([panel.at(x, low), panel.at(x, high)], ink.BAR, 1.4)
            spots.append(panel.at(x, y))
        sheet.line(spots, ink.INK, 1.2)
        for spot in spots:
            sheet.dot(*spot, r=3)
    sheet.height = head + rows * tall
    return sheet


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
    best = {row["judge"] for row in found.rows if row.get("may_be_best")}
    about = "; bars are 95 % intervals. Lines lead from a control to its panel."
    if crowded := len(prices) > MOST_NAMED:
        prices = {name: at for name, at in prices.items() if control_of(name) is None}
        about = "; bars are 95 % intervals. Controls are left out."
    if best:
        about += " Shaded: the set that surely holds the best."
    hollow = [name for name in prices if name in panels]
    pale = [name for name in prices if best and name not in best]
    key = [("dot", ink.INK, "may be the best" if best else "judge")]
    key += [("dot", ink.BAR, "is not")] if {*pale} - {*hollow} else []
    key += [("ring", ink.INK, "its control")] if hollow else []
    drawn = partial(points.against, hollow=hollow, pale=pale, best="none better for less", key=key,
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


def _debates(found: Findings) -> Chart | None:
    """How often members of panels are right before they talk and after it."""
    known = [row for row in found.debates if row.get("first_right") is not None]
    if len(known) > 2 * MOST_NAMED:
        known = [row for row in known if row["member"] == debates.EVERYBODY]
    if not known:
        return None
    turns: dict[str, dict[str, Standing]] = {"first turn": {}, "last turn": {}}
    for row in known:
        for turn, key in zip(turns.values(), ("first_right", "last_right"), strict=True):
            value, low, high = (100 * row[f"{key}{end}"] for end in ("", "_low", "_high"))
            turn[f"{row['judge']}, {row['member']}"] = Standing(value, low, high, f"{value:.0f}")
    before, after = turns.values()
    moved = {name for name, one in before.items()
             if one.high < after[name].low or after[name].high < one.low}  # fmt: skip
    return chart(
        "debates-turns", "What a debate changes",
        "How often each member of a panel is right before it has heard the others and at the end, "
        "in percent. A line is dark where the 95 % intervals do not overlap, otherwise the change "
        "can be chance.",
        f"up to {max(row['n'] for row in known):,} votes", found.subject, [found.signature],
        points.slopes, turns, moved, width=WIDE,
    )  # fmt: skip


_COSTS = {
    "usd": "USD for 1000 verdicts",
    "tokens": "Tokens for one verdict",
    "calls": "Calls for one verdict",
}


def _square(found: Findings, key: str) -> pd.DataFrame:
    judges = [row["judge"] for row in found.rows]
    values = pd.DataFrame(math.nan, index=judges, columns=judges)
    for pair in found.pairs:
        if pair.get(key) is not None:
            a, b = pair["judge_a"], pair["judge_b"]
            values.loc[a, b] = values.loc[b, a] = pair[key]
    return values
