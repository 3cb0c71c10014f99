"""Figures of a comparison of judges: agreement over cost, agreement of pairs, judge health."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from botchat.boards import debates
from botchat.boards.judge_agreement import Findings, judges_table
from botchat.boards.which_judge import agreement, control_of
from botchat.interfaces import Row
from botchat.report.figures import Chart, cells, chart, points, rows, style
from botchat.report.figures.cells import Cells
from botchat.report.figures.points import MOST_JUDGES, Standing
from botchat.report.figures.style import BAR, DASHED, INK, MUTED, Heading, bare, sheet, tint
from botchat.report.plane import Axis, Point

_SQUARE = 2.6
"""Most height of a calibration curve, in inches."""

NAMES = (
    "cost-against-agreement", "judges-against-each-other", "judges-health", "judges-rankings",
    "judges-calibration", "debates-turns",
)  # fmt: skip
"""Of the figures."""


def draw(found: Findings) -> list[Chart]:
    """The figures that the findings have the numbers for."""
    makers = (_cost, _matrix, _health, _rankings, _calibration, _debates)
    return [one for one in (make(found) for make in makers) if one is not None]


def _health(found: Findings) -> Chart | None:
    judges = judges_table(found)
    if (
        not judges.frame[[one.key for one in rows.MEASURES if one.key in judges.frame]]
        .notna()
        .any(axis=None)
    ):
        return None
    n = sum(row["verdicts"] + row["unreadable"] for row in found.rows)
    return chart(
        "judges-health", "The judges themselves",
        "How steady and how readable each judge is, and what it prefers; lines are 95 % intervals. "
        "First shown wins: 50 is no preference.",
        f"{n:,} verdicts", found.subject, [found.signature], rows.health, judges,
    )  # fmt: skip


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


def calibration(bins: Sequence[Row], heading: Heading) -> Figure:
    """Share of right verdicts over confidence, a panel a judge; calibrated is the diagonal.

    ``bins``: of `botchat.measures.agreement.Agreement.calibration`.
    """
    judges = list(dict.fromkeys(row["judge"] for row in bins))
    columns = min(len(judges), 2 if heading.look.narrow else 4)
    across = heading.look.width / columns - 0.6
    height = min(across, _SQUARE)
    key = [
        style.mark(tint(INK), "verdicts of one confidence"),
        style.interval_key(width=1.4),
        style.line_key("calibrated", MUTED, 1, DASHED),
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
        axes.plot([0, 100], [0, 100], color=tint(MUTED), linewidth=1, linestyle=DASHED, zorder=1)
        of_judge = [row for row in bins if row["judge"] == judge]
        x, y, low, high = (
            [100 * row[key] for row in of_judge]
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


def _cost(found: Findings) -> Chart | None:
    """Agreement over cost; a judge whose every verdict is unreadable has a price and no place."""
    agreement = {row["judge"]: _agreement(found, row) for row in found.rows}
    placed = [row for row in found.rows if agreement[row["judge"]] is not None]
    cost = next((key for key in _COSTS if _known(placed, key)), None)
    if cost is None:
        return None
    prices, scale = {}, 1000 if cost == "usd" else 1
    for row in placed:
        if (known := agreement[row["judge"]]) and row.get(cost) is not None:
            ends = (100 * value for value in known)
            prices[row["judge"]] = Point(scale * row[cost], math.nan, math.nan, *ends)
    truth = _by_truth(found)
    x = Axis(_COSTS[cost], log=True)
    y = Axis("Accuracy (%)" if truth else "Agreement with the others (%)", least=4)
    n = max(row["n" if truth else "verdicts"] for row in found.rows)
    panels = {control["control"]: control["judge"] for control in found.controls}
    best = {row["judge"] for row in found.rows if row.get("may_be_best")}
    about = "; bars are 95 % intervals. Lines lead from a control to its panel."
    if crowded := len(prices) > MOST_JUDGES:
        prices = {name: at for name, at in prices.items() if control_of(name) is None}
        about = "; bars are 95 % intervals. Controls are left out."
    if best:
        about += " Shaded: the set that surely holds the best."
    return chart(
        "cost-against-agreement", "What agreement costs",
        f"Agreement with {found.truth if truth else 'the other judges'} over the cost of a verdict"
        f"{about}",
        f"{len(prices)} judges, up to {n:,} verdicts each", found.subject, [found.signature],
        points.judges, prices, {} if crowded else panels, best, x, y,
    )  # fmt: skip


def _matrix(found: Findings) -> Chart | None:
    if not found.pairs:
        return None
    parts = [Cells("Same verdict (%)", _square(found, "agreement"))]
    rankings = _square(found, "ranking_kendall")
    if rankings.notna().any(axis=None):
        low, high = (_square(found, f"ranking_kendall_{end}") for end in ("low", "high"))
        parts.append(Cells("Rankings, τ × 100", rankings, low, high, 0.0, signed=True))
    n = max(row["n"] for row in found.pairs)
    return chart(
        "judges-against-each-other", "Judges against each other",
        "How often two judges give the same verdict, and Kendall's tau of the rankings they make, "
        "bold where its 95 % interval leaves out 0.",
        f"up to {n:,} verdicts a pair", found.subject, [found.signature],
        cells.squares, parts, "row and column",
    )  # fmt: skip


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
    return chart(
        "judges-rankings", "What another judge changes",
        "Each contestant's place by its score with each judge, of the first five. A line is dark "
        "where the 95 % intervals of two scores do not overlap, otherwise the change can be "
        "chance.",
        f"up to {n:,} comparisons a contestant", found.subject, [found.signature],
        points.slopes, standing, "Numbers: score in percent, a tie is half a win.",
    )  # fmt: skip


def _debates(found: Findings) -> Chart | None:
    """How often members of panels are right before they talk and after it."""
    known = [row for row in found.debates if row.get("first_right") is not None]
    if len(known) > 2 * MOST_JUDGES:
        known = [row for row in known if row["member"] == debates.EVERYBODY]
    turns: dict[str, dict[str, Standing]] = {"First turn": {}, "Last turn": {}}
    for row in known:
        for turn, key in zip(turns.values(), ("first_right", "last_right"), strict=True):
            value, low, high = (row[f"{key}{end}"] for end in ("", "_low", "_high"))
            name = f"{row['judge']}, {row['member']}"
            turn[name] = Standing(-value, -high, -low, f"{100 * value:.0f}")
    return chart(
        "debates-turns", "What a debate changes",
        "How often each member of a panel is right before it has heard the others and at the end. "
        "A line is dark where the 95 % intervals do not overlap, otherwise the change can be "
        "chance.",
        f"up to {max(row['n'] for row in known):,} votes", found.subject, [found.signature],
        points.slopes, turns, "Numbers: right votes in percent.",
    ) if known else None  # fmt: skip


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
    beside = agreement(found, row["judge"])
    return None if beside is None else (beside,) * 3


def _square(found: Findings, key: str) -> pd.DataFrame:
    judges = [row["judge"] for row in found.rows]
    values = pd.DataFrame(math.nan, index=judges, columns=judges)
    for pair in found.pairs:
        if pair.get(key) is not None:
            a, b = pair["judge_a"], pair["judge_b"]
            values.loc[a, b] = values.loc[b, a] = pair[key]
    return values
