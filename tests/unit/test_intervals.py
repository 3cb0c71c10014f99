"""Intervals of figures of judges, and the test between two judges."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from botchat.measures import statistics
from botchat.measures.agreement import compare
from botchat.measures.annotations import Annotation, read_csv
from botchat.measures.intervals import Figure, Items, figures

PRD = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "prd" / "verdicts.csv"


def shared(hits, items=None):
    """The share of some verdicts, by default one an item."""
    hit = np.array(hits, bool)
    item = np.arange(len(hit)) if items is None else np.array(items)
    return Items(int(item.max()) + 1, item).share(hit, np.ones_like(hit))


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_share_of_independent_items_has_wilsons_interval(hits):
    """As scipy's, at 0 and at all too."""
    found = stats.binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
    assert shared(hits).interval == pytest.approx((found.low, found.high), abs=1e-6)


def test_five_of_five_are_not_certain():
    """And neither are twenty right verdicts on five items more certain than five."""
    low, high = shared([True] * 5).interval
    assert (low, high) == (pytest.approx(0.5655, abs=1e-4), 1.0)
    assert shared([True] * 20, np.repeat(range(5), 4)).interval[0] < low


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30)
)
def test_no_interval_is_certain_or_leaves_its_figure_out(rows):
    """Whatever the verdicts are, of shares and of differences of shares."""
    items, one, other = map(np.array, zip(*rows, strict=True))
    of = Items(5, items)
    every = np.ones(len(rows), bool)
    a, b = of.share(one, every), of.share(other, every)
    for figure, least in ((a, 0), (b, 0), (a.less(b), -1)):
        low, high = figure.interval
        assert least <= low <= figure.values[0] + 1e-12
        assert figure.values[0] - 1e-12 <= high <= 1
        assert high - low > 0.01


def test_a_difference_of_paired_shares_is_that_of_bonett_and_price():
    """24 pairs, of which 3 and 9 are discordant; with Student's t in place of the normal."""
    one = np.array([True] * 3 + [False] * 9 + [True] * 12)
    other = np.array([False] * 3 + [True] * 9 + [True] * 12)
    of, every = Items(24, np.arange(24)), np.ones(24, bool)
    figure = of.share(one, every).less(of.share(other, every))
    by_hand = of.difference(one.astype(float) - other, every)
    p, q, n = 4 / 26, 10 / 26, 26
    half = stats.t.ppf(0.975, 25) * ((p + q - (p - q) ** 2) / n) ** 0.5
    assert by_hand.interval == pytest.approx((p - q - half, p - q + half))
    # Of two shares the independent verdicts are taken from the shares.
    assert figure.interval == pytest.approx(by_hand.interval, abs=1e-9)


def test_a_figure_without_a_value_has_no_ends():
    """None, as JSON has it; items that a figure cannot do without move it nothing."""
    found = figures({"a": Figure(np.array([np.nan, 1.0])), "b": Figure(np.array([0.5, np.nan]), 1)})
    assert (found["a"], found["a_low"]) == (None, None)
    assert found["b_low"] < 0.5 < found["b_high"]


@given(st.integers(0, 300), st.integers(0, 300))
def test_of_items_with_one_verdict_sign_flips_are_mcnemars_exact_test(only_a, only_b):
    """Two-sided, with half the discordant cases expected on each side; level ones count nothing."""
    n = only_a + only_b
    sums = np.array([1.0] * only_a + [-1.0] * only_b + [0.0] * 7)
    expected = stats.binomtest(only_a, n).pvalue if n else 1.0
    assert statistics.sign_flip(sums) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_sign_flips_of_items_with_several_verdicts_are_enumerated(sums):
    """Against all 2ⁿ sign patterns; the random flips agree."""
    values = np.array(sums, float)
    flips = np.array(list(product([1, -1], repeat=len(sums)))) @ values
    expected = np.mean(np.abs(flips) >= abs(values.sum()))
    assert statistics.sign_flip(values) == pytest.approx(expected)
    assert statistics.sign_flip(values, largest=-1, draws=999) == pytest.approx(expected, abs=0.08)


def test_sign_flips_of_thousands_of_items_and_of_scores_are_still_numbers():
    """No overflow; sums that are not whole are flipped at random, the same each time."""
    many = np.array([1.0] * 4_700 + [-1.0] * 5_300)
    assert statistics.sign_flip(many) == pytest.approx(stats.binomtest(4_700, 10_000).pvalue)
    more = np.repeat([1.0, -1.0], [60_300, 59_700])
    assert statistics.sign_flip(more) == pytest.approx(stats.binomtest(60_300, 120_000).pvalue)
    twos = np.repeat([2.0, -2.0, 1.0, -1.0], [9_050, 8_950, 10_000, 9_900])
    normal = stats.norm.sf(abs(twos.sum()) / np.sqrt(twos @ twos)) * 2
    assert statistics.sign_flip(twos) == pytest.approx(normal, abs=0.01)
    scores = np.random.default_rng(0).normal(0.3, 1, 40)
    p = statistics.sign_flip(scores)
    assert p == statistics.sign_flip(scores)
    assert p == pytest.approx(stats.ttest_1samp(scores, 0).pvalue, abs=0.02)


@pytest.mark.skipif(not PRD.exists(), reason="the verdicts of PRD are not part of this repository")
def test_verdicts_on_one_question_are_not_twenty_independent_ones():
    """PRD's gpt4 and gpt35, 20 verdicts on each of 80 questions: McNemar said .091."""
    found = compare(read_csv(PRD.read_text(), "prd"), resamples=10)
    (pair,) = [p for p in found.pairs if (p["judge_a"], p["judge_b"]) == ("gpt4", "gpt35")]
    assert pair["sign_flip_p"] == pytest.approx(0.1622, abs=1e-4)


def test_kappa_of_raters_who_always_agree_is_not_certain():
    """Ten items, five of each label: the interval ends at 1 and begins where Wilson's does."""
    said = [
        Annotation(str(i), "a", "b", judge, "1" if i % 2 else "2")
        for i in range(10)
        for judge in ("human", "j")
    ]
    (row,) = compare(said, resamples=5).rows
    assert (row["kappa"], row["kappa_high"]) == (1.0, 1.0)
    assert 0.2 < row["kappa_low"] < 2 * row["accuracy_low"] - 1 + 1e-9


def test_brier_and_calibration_of_a_judge_whose_probabilities_are_known():
    """A judge that says 0.9 and is right 60 of 80 times, and 0.6 where it is right 30 of 80."""
    said = []
    for i in range(160):
        sure, right = i < 80, i % 80 < (60 if i < 80 else 30)
        said.append(Annotation(str(i), "a", "b", "human", "1"))
        verdict = "1" if right else "2"
        said.append(Annotation(str(i), "a", "b", "j", verdict, 0.9 if sure else 0.6))
    found = compare(said, resamples=5)
    (row,) = found.rows
    expected = (60 * 0.01 + 20 * 0.81 + 30 * 0.16 + 50 * 0.36) / 160
    assert row["brier"] == pytest.approx(expected)
    assert row["brier_low"] < expected < row["brier_high"]
    assert [one["n"] for one in found.calibration] == [20] * 8
    assert [one["confidence"] for one in found.calibration] == pytest.approx([0.6] * 4 + [0.9] * 4)
    assert sum(one["n"] * one["right"] for one in found.calibration) == pytest.approx(90)
    assert all(one["right_low"] < one["right"] or not one["right"] for one in found.calibration)
