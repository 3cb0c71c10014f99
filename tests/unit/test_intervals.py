"""Intervals of figures of judges, and the test between two judges."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest, gamma, t

from botchat.importers import vote_files
from botchat.metrics import statistics
from botchat.metrics.agreement import compare
from botchat.metrics.annotations import Annotation
from botchat.metrics.intervals import (
    Items,
    Statistic,
    by_seed,
    figures,
    mean,
    of_share,
    share,
)
from botchat.metrics.statistics import Z, student_t
from botchat.ratings.bradley_terry import BradleyTerryResult, BradleyTerrySettings

PRD = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "prd" / "verdicts.csv"


def shared(hits, items=None):
    """The share of some verdicts, by default one an item."""
    hit = np.array(hits, bool)
    item = np.arange(len(hit)) if items is None else np.array(items)
    return Items(int(item.max()) + 1, item).share(hit, np.ones_like(hit))


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


def test_a_figure_without_a_value_has_no_ends_and_full_agreement_is_not_certain():
    """None, as JSON has it; kappa of raters who always agree ends at 1 and begins near Wilson's."""
    found = figures(
        {"a": Statistic(np.array([np.nan, 1.0])), "b": Statistic(np.array([0.5, np.nan]), 1)}
    )
    assert (found["a"], found["a_low"]) == (None, None)
    assert found["b_low"] < 0.5 < found["b_high"]
    said = [
        Annotation(str(i), "a", "b", judge, "1" if i % 2 else "2")
        for i in range(10)
        for judge in ("human", "j")
    ]
    (row,) = compare(said, resamples=5).rows
    assert (row["kappa"], row["kappa_high"]) == (1.0, 1.0)
    assert 0.2 < row["kappa_low"] < 2 * row["accuracy_low"] - 1 + 1e-9


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


def test_sign_flips_of_thousands_of_items_are_still_numbers():
    """No overflow."""
    many = np.array([1.0] * 4_700 + [-1.0] * 5_300)
    assert statistics.sign_flip(many) == pytest.approx(stats.binomtest(4_700, 10_000).pvalue)
    more = np.repeat([1.0, -1.0], [60_300, 59_700])
    assert statistics.sign_flip(more) == pytest.approx(stats.binomtest(60_300, 120_000).pvalue)
    twos = np.repeat([2.0, -2.0, 1.0, -1.0], [9_050, 8_950, 10_000, 9_900])
    normal = stats.norm.sf(abs(twos.sum()) / np.sqrt(twos @ twos)) * 2
    assert statistics.sign_flip(twos) == pytest.approx(normal, abs=0.01)


@pytest.mark.skipif(not PRD.exists(), reason="the verdicts of PRD are not part of this repository")
def test_verdicts_on_one_question_are_not_twenty_independent_ones():
    """PRD's gpt4 and gpt35, 20 verdicts on each of 80 questions: McNemar said .091."""
    votes = vote_files.read_votes(PRD.read_bytes(), "prd.csv").votes
    found = compare(votes.annotations(once=True)[0], resamples=10)
    (pair,) = [p for p in found.pairs if (p["judge_a"], p["judge_b"]) == ("gpt4", "gpt35")]
    assert pair["sign_flip_p"] == pytest.approx(0.1622, abs=1e-4)


@pytest.mark.parametrize("n", [2, 40, 547])
def test_shares_of_independent_cases_are_wilsons(n: int) -> None:
    """As scipy has it, but with Poisson's end where at most two or three hit, or do not."""
    for hits in sorted({*range(0, n + 1, 9), *range(min(5, n)), *range(max(0, n - 5), n + 1)}):
        theirs = binomtest(hits, n).proportion_ci(method="wilson")
        low, high = of_share(hits, n)
        few = 2 if n <= 50 else 3
        if 0 < hits <= few and hits < n / 2:
            assert low == pytest.approx(gamma.ppf(0.05, hits) / n, abs=1e-9)
        else:
            assert low == pytest.approx(theirs.low, abs=1e-9)
        if 0 < n - hits <= few and n - hits < n / 2:
            assert high == pytest.approx(1 - gamma.ppf(0.05, n - hits) / n, abs=1e-9)
        else:
            assert high == pytest.approx(theirs.high, abs=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 20, 546])
def test_students_t_is_exact(freedom: int) -> None:
    """At every number of degrees of freedom: 12.7 at one, 4.30 at two, as the boards use it."""
    assert student_t(0.95, freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-10)
    rated = BradleyTerryResult(
        BradleyTerrySettings(), ("a",), np.zeros(1), np.eye(1), 2, freedom + 1, ""
    )
    assert rated.width == pytest.approx(t.ppf(0.975, freedom), rel=1e-10)


def test_clusters_by_hand() -> None:
    """Four seeds in both orders: how alike they are, shrunk, and Student's t, in Wilson's."""
    won = np.array([1, 1, 1, 0, 0, 1, 0, 0], dtype=float)
    seed = np.repeat(np.arange(4), 2)
    of_seed = won.reshape(4, 2).sum(axis=1) - 2 * 0.5
    alike = (of_seed**2).sum() / 8**2 / 0.25 * 8 - 1
    seen = 4 * 0.5
    alike = (seen * alike + 0.25) / (seen + 0.25)
    each = min(t.ppf(0.975, 3) ** 2 / Z**2 * (1 + alike) / 8 * 4 / 3, 1 / 4)
    theirs = of_share(0.5 / each, 1 / each)
    row = share(won, seed, "win")
    assert (row["win_low"], row["win_high"]) == pytest.approx(theirs)


CASES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.sampled_from((0.0, 0.5, 1.0))), min_size=1
)


@given(CASES)
def test_ends_hold_the_share_and_never_meet(cases: list[tuple[int, int, float]]) -> None:
    """Whatever was said: no less sure than the seeds, no surer than the cases, never certain."""
    row, seed, value = (np.array(column) for column in zip(*cases, strict=True))
    found = by_seed(row, seed, value, 3)
    for i in range(3):
        n = int((row == i).sum())
        if not n:
            assert math.isnan(found.value[i])
            assert math.isnan(found.low[i])
            continue
        assert 0 <= found.low[i] <= found.value[i] + 1e-12
        assert found.value[i] - 1e-12 <= found.high[i] <= 1
        if not {0.5} & set(value[row == i]):
            low, high = of_share(value[row == i].sum(), n)
            assert found.high[i] - found.low[i] >= (high - low) * (1 - 1e-9) - 0.06


@given(st.lists(st.sampled_from((0.0, 1.0)), min_size=1, max_size=60))
def test_one_case_a_seed_is_the_plain_interval(values: list[float]) -> None:
    """The same whether seeds are known or not, but for Student's t, which the seeds bound."""
    known = share(values, np.arange(len(values)), "x")
    plain = share(values, None, "x")
    assert list(known.values()) == pytest.approx(list(plain.values()))


def test_means_of_scores_and_of_scores_all_alike() -> None:
    """Many scores are as Student's t has them; five fours of 1 to 5 may have hidden others."""
    many = [2.0, 3, 5, 4, 4, 3] * 50
    theirs = t.interval(0.95, 299, loc=3.5, scale=np.std(many, ddof=1) / math.sqrt(300))
    assert mean(many, 1, 7) == pytest.approx(theirs, abs=2e-3)
    unseen = binomtest(0, 5).proportion_ci(method="wilson").high
    assert mean([4] * 5, 1, 5) == pytest.approx((4 - 3 * unseen, 4 + unseen))
    assert math.isnan(mean([], 1, 5)[0])


def test_opponents_who_count_alike() -> None:
    """Weights and centres give the mean over opponents, and its own spread."""
    value = np.array([1.0, 1, 1, 1, 0, 1])
    weight = np.array([1 / 8] * 4 + [1 / 4] * 2)
    centre = np.array([1.0] * 4 + [0.5] * 2)
    row = np.zeros(6, dtype=np.intp)
    found = by_seed(row, np.array([0, 1, 2, 3, 0, 1]), value, 1, weight, centre)
    assert found.value[0] == pytest.approx(0.75)
    assert found.low[0] < 0.75 < found.high[0]
