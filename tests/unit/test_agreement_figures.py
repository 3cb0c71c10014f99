"""Figures and tables of a comparison of judges: everything inside, nothing over anything else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from botchat.boards import judge_agreement
from botchat.boards.judge_agreement import Findings
from botchat.metrics.agreement import compare
from botchat.metrics.annotations import Annotation, Opinions
from botchat.report.figures.agreement import NAMES, draw
from botchat.report.figures.axes import Axis
from botchat.report.figures.points import Point, against
from botchat.report.figures.sheet import WIDE, Look
from tests.unit.test_plots import SCRIPTS, assert_readable

LONG = ("an-organisation/judge-with-quite-a-long-name-{:02d}",)


def findings(
    n_judges: int,
    cost: str = "usd",
    prefix: str | None = "human",
    named: Sequence[str] = LONG,
) -> Findings:
    """A comparison of judges that cost more and know more, the first of them for nothing."""
    rng = random.Random(n_judges)
    names = [named[n % len(named)].format(n) for n in range(n_judges)]
    said = []
    for item in range(12):
        said.append(Annotation(str(item), "a", "b", "human", "12"[item % 2]))
        for n, name in enumerate(names):
            right = rng.random() < 0.5 + n / (2 * n_judges)
            for pair in (("a", "b"), ("b", "a")):
                swapped = pair == ("b", "a")
                verdict = "12"[(item % 2) ^ swapped ^ (not right)]
                said.append(Annotation(str(item), *pair, name, verdict))
    found = compare(said, prefix, resamples=20)
    priced = [
        {**row, "calls": 2.0 * n, "tokens": None, "usd": None, cost: 10.0 ** (n / 4) * (n > 0)}
        for n, row in enumerate(found.rows)
    ]
    return Findings(
        subject="arena-n8 on a set",
        truth="people" if prefix else "",
        rows=priced,
        annotators=found.annotators,
        pairs=found.pairs,
        groups=found.groups,
        rankings=found.rankings,
        signature="botchat:0.1.0|agree|set:a-set",
    )


@pytest.mark.parametrize(
    ("n", "cost", "named"),
    [(2, "usd", LONG), (7, "calls", SCRIPTS), (11, "tokens", LONG)],
)
def test_figures_of_few_judges_and_of_many(n, cost, named):
    """What costs least is taken where money is not known; nothing is cut, nothing overlaps."""
    price, matrix = draw(findings(n, cost, named=named))
    assert {price.name, matrix.name} <= set(NAMES)
    for chart in (price, matrix):
        assert_readable(chart.sheet(), chart.name)
        assert_readable(chart.sheet(Look(WIDE)), chart.name)
        assert "botchat:0.1.0|" in chart.svg
    shown = {"usd": "USD", "tokens": "Tokens", "calls": "Calls"}[cost]
    assert any(text.said.startswith(shown) for text in price.sheet().texts)


def test_a_judge_without_a_readable_verdict_has_a_price_and_no_place():
    """If all others are free there is no figure of costs; a single judge has none at all."""
    assert draw(findings(1)) == []
    found = findings(2)
    free, paid = found.rows
    unreadable = paid | dict.fromkeys(("accuracy", "accuracy_low", "accuracy_high"))
    drawn = draw(replace(found, rows=[free, unreadable]))
    assert [chart.name for chart in drawn] == ["judges-against-each-other"]


def test_equal_judges_at_equal_cost_still_have_a_name_each():
    """Points that lie on each other, a control and its panel, nothing but one cost."""
    names = [*(f"judge {n}" for n in range(14)), "judge 1 (before talk)"]
    prices = dict.fromkeys(names, Point(3.0, np.nan, np.nan, 50.0, 40.0, 60.0))
    axes = Axis("USD for 1000 verdicts", log=True), Axis("Agreement (%)", least=4)
    panel = {"judge 1 (before talk)": "judge 1"}
    sheet = against(prices, *axes, Look(WIDE), lines=panel, best="none better for less", reach=9)
    assert_readable(sheet, "judges")
    said = {text.said for text in sheet.texts}
    assert {*names, "none better for less"} <= said


def test_a_judges_leaderboard_rates_contestants_by_its_verdicts():
    """Who wins always stands above, in both orders; people together under their prefix."""
    said = [
        Annotation("1", "a", "b", "human-1", "1"),
        Annotation("1", "a", "b", "j", "2"),
        Annotation("1", "b", "a", "j", "1"),
        Annotation("2", "b", "c", "j", "1"),
        Annotation("2", "c", "b", "j", "tie"),
    ]
    rated = judge_agreement.ratings(Opinions.of(said, "human"), "human")
    assert rated["human", "a"] > rated["human", "b"]
    assert rated["j", "b"] > rated["j", "a"]
    assert ("human", "c") not in rated
    assert (
        judge_agreement.ratings(Opinions.of([Annotation("1", "a", "", "j", "1")], None), None) == {}
    )
