"""Which of several judges may be the best: against every way of flipping signs, and in words."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards import which_judge
from botchat.boards.judge_agreement import Findings
from botchat.boards.which_judge import JUDGES, SINGLE
from botchat.measures.agreement import compare
from botchat.measures.annotations import Annotation
from botchat.measures.best import contest, rank_apart, signs
from botchat.measures.changes import holm
from botchat.verdicts import Floats

RIGHT = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=6, max_size=6), min_size=2, max_size=4
)


def units(leads: Floats) -> float:
    """The largest sum of a column in units of its spread, in plain words."""
    return max(sum(c) / max(sum(v * v for v in c) ** 0.5, 1e-300) for c in leads.T.tolist())


@given(RIGHT)
@settings(max_examples=40, deadline=None)
def test_the_chance_to_be_the_best_is_that_of_every_way_to_flip(right):
    """Three items of two cases each, any judges."""
    values, item = np.array(right), np.array([0, 0, 1, 1, 2, 2])
    found = contest(values, item)
    for j in range(len(values)):
        others = np.delete(values, j, axis=0) - values[j]
        leads = (others[:, ::2] + others[:, 1::2]).T
        seen = units(leads)
        ways = [units(leads * np.array(way)[:, None]) for way in product([1, -1], repeat=3)]
        assert found.p[j] == pytest.approx(np.mean([way >= seen - 1e-9 for way in ways]))


def some(n: int = 60, m: int = 4, seed: int = 0) -> Floats:
    """Right and wrong of judges, each righter than the one before."""
    rng = np.random.default_rng(seed)
    return (rng.random((m, n)) < np.linspace(0.5, 0.8, m)[:, None]).astype(float)


def test_bounds_hold_the_lead_and_clones_are_never_apart():
    """Who is surely beaten is out of the set."""
    found = contest(some(), np.arange(60))
    assert (found.low <= found.lead).all()
    assert np.allclose(found.lead, -found.lead.T)
    out = (found.low > 0).any(axis=1)
    assert out.any()
    assert not found.may_be_best[out].any()
    assert (found.at_most_worse >= np.where(found.may_be_best, found.lead, 0).max(1)).all()
    values = some()
    found = contest(np.concatenate([values, values[-1:]]), np.arange(60))
    assert found.may_be_best[3]
    assert (found.p[3], found.low[3, 0]) == (found.p[4], found.low[4, 0])
    assert found.lead[3, 4] == 0
    assert 0 < -found.low[3, 4] < 0.06
    assert found.more_items(3, 4) is None


def test_judges_are_compared_on_what_both_answered():
    """Easy items that it alone answered gain a judge nothing; without a shared one all is open."""
    values, item = np.array([[1.0] * 30 + [0, 1] * 15, [1.0] * 60, [1.0] * 60]), np.arange(60)
    values[1, 30:], values[2, :30] = np.nan, np.nan
    found = contest(values, item)
    assert (found.lead[0, 1], found.lead[0, 2]) == (0.0, 0.5)
    assert np.isnan(found.lead[1, 2])
    assert found.low[1, 2] == -1
    assert found.items.tolist() == [[60, 30, 30], [30, 30, 0], [30, 0, 30]]
    assert found.may_be_best.tolist() == [False, True, True]


def test_as_many_more_items_decide():
    """The same items again, up to what is said to be needed, and the worse one leaves the set."""
    values = np.array([[1.0] * 6 + [0.0] * 11 + [1.0] * 23, [0.0] * 6 + [1.0] * 34])
    found = contest(values, np.arange(40))
    assert found.may_be_best.all()
    more = found.more_items(0, 1)
    times = -(-(more + 40) // 40)
    again = contest(np.tile(values, times), np.arange(40 * times))
    assert again.may_be_best.tolist() == [False, True]


def test_signs_are_all_of_few_items_and_a_draw_of_many():
    """The first are those seen; every way is there once."""
    assert len(np.unique(signs(5), axis=0)) == 32
    assert signs(40).shape == (5000, 40)
    assert (signs(40)[0] == 1).all()
    assert (signs(5)[0] == 1).all()


def test_rankings_differ_by_who_gets_the_points_not_by_how_many():
    """A judge that passes everybody more often ranks the same; who swaps two differs on these."""
    rng = np.random.default_rng(1)
    p, _ = rank_apart(np.ones((30, 4)) + 0.01 * rng.normal(size=(30, 4)))
    assert p > 0.05
    p, most = rank_apart(rng.normal(size=(30, 4)) + np.array([0, 0, 0, 3]))
    assert p < 0.001
    assert most == 3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_test_of_bonferroni(p):
    """The largest Bonferroni p of every set of tests that a test is in."""
    closed = [
        max(
            min(1.0, size * min(p[k] for k in group))
            for size in range(1, len(p) + 1)
            for group in combinations(range(len(p)), size)
            if i in group
        )
        for i in range(len(p))
    ]
    assert holm(p) == pytest.approx(closed)


# ------------------------------------------------------------------------------------ in words


def findings(rates: dict[str, float], prices: dict[str, float], truth: str | None = "human"):
    """Judges of 80 items who are right so often; ``prices``: dollars of one verdict."""
    rng = random.Random(4)
    said = [Annotation(str(i), "a", "b", "human", "1") for i in range(80)] if truth else []
    for i, (name, rate) in product(range(80), rates.items()):
        said.append(Annotation(str(i), "a", "b", name, "1" if rng.random() < rate else "2"))
    found = compare(said, truth, resamples=5, uncontested=(*which_judge.CONTROLS,))
    rows = [{**row, "usd": prices.get(row["judge"])} for row in found.rows]
    two = [(p["judge_a"], p["judge_b"]) for p in found.pairs]
    family = {one: JUDGES for one in two if one != ("good", "dear")} | {("dear", "good"): SINGLE}
    pairs = which_judge.in_families(found.pairs, family)
    ordered = which_judge.in_order(replace(found, rows=rows))
    return Findings(
        **vars(replace(found, rows=ordered, pairs=pairs)), subject="", truth="", signature="s"
    )


RATES = {"poor": 0.5, "good": 0.85, "dear": 0.95, "dear (control)": 0.9}
PRICES = {"poor": 0.0001, "good": 0.001, "dear": 0.0074, "dear (control)": 0.004}


def test_the_first_line_names_a_judge_its_price_and_what_more_would_buy():
    """The cheapest that may be the best; a control is in no contest; tests stand by family."""
    first, held = findings(RATES, PRICES).answer
    assert first.startswith(
        "good is the cheapest judge that is not clearly worse than the best of 3: at most "
    )
    assert "It costs 1.00 USD for 1,000 verdicts. " in first
    assert "dear at 7.4 times the money " in first
    assert "more labelled items would decide it." in first
    assert held == (
        "The set that surely holds the best: dear and good. Clearly worse than the best: poor."
    )
    found = findings(RATES, PRICES)
    assert [row["judge"] for row in found.rows] == ["dear", "dear (control)", "good", "poor"]
    frame = which_judge.tests(found, "s").frame
    assert frame["family"].tolist()[0] == SINGLE
    assert frame["judge_a"].tolist()[0] == "dear"
    assert frame["times"].tolist()[0] == pytest.approx(7.4)
    for name, part in frame.groupby("family"):
        known = [p for p in found.pairs if p["family"] == name]
        assert sorted(part["holm_p"]) == pytest.approx(
            sorted(holm([p["sign_flip_p"] for p in known]))
        )


def test_the_best_is_named_without_prices_and_who_ranks_differently_without_people():
    """A file of verdicts has no calls; without a truth it is said who likes another contestant."""
    first, _ = findings(RATES, {}).answer
    assert first.startswith("dear is the best seen of 3 judges (")
    assert "What they cost is not known." in first
    (first, _) = findings({"poor": 0.4, "good": 0.95}, PRICES).answer
    assert first == ("good is surely the best of 2 judges. It costs 1.00 USD for 1,000 verdicts.")
    prices = {"good": 0.001, "same": 0.002, "other": 0.003}
    (line,) = findings({"good": 0.8, "same": 0.8, "other": 0.2}, prices, None).answer
    assert line.startswith("good is the cheapest of 3 judges: 1.00 USD for 1,000 verdicts. ")
    assert "Others rank differently: other at 3.0 times the money (most apart on a: " in line
    assert "No difference to the ranking by good is seen in that by same at 2.0 times" in line


def test_few_items_say_nothing():
    """As everywhere in words: from twenty on."""
    said = [
        Annotation(str(i), "a", "b", who, "1") for i in range(19) for who in ("human", "j", "k")
    ]
    found = compare(said, "human", resamples=5)
    assert found.contest is None
    assert which_judge.answer(found) == []


def test_other_cases_are_said():
    """Who was asked about fewer, by how many; nothing where all had the same."""
    rows = [
        {"judge": "a", "verdicts": 80, "unreadable": 0},
        {"judge": "c", "verdicts": 39, "unreadable": 1},
    ]
    pair = {"judge_a": "a", "judge_b": "c", "n": 39}
    found = replace(
        compare([Annotation("1", "a", "b", "j", "1")], None, resamples=5), rows=rows, pairs=[pair]
    )
    (line,) = which_judge.other_cases(found)
    assert line.startswith("The judges were not asked about the same cases (c 40 of up to 80): ")
    alike = [row | {"verdicts": 80 - row["unreadable"]} for row in rows]
    assert list(which_judge.other_cases(replace(found, rows=alike, pairs=[pair | {"n": 79}]))) == []
