"""Confidence intervals: Wilson's for shares, a bootstrap of sums for everything else."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, t

from botchat.metrics import statistics
from botchat.metrics.statistics import (
    ClusteredCases,
    Z,
    bootstrap,
    level_of_pairs,
    proportion,
    ratio,
    separated,
    wilson,
)


@pytest.mark.parametrize("n", [1, 2, 40, 547])
def test_shares_of_independent_cases_are_wilsons(n):
    """As scipy has them, at every share; 0 and 1 are ends of their own intervals."""
    for hits in {*range(0, n + 1, 9), *range(min(5, n)), n}:
        theirs = binomtest(hits, n).proportion_ci(method="wilson")
        assert wilson(hits / n, 1 / n) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
        share = proportion([1.0] * hits + [0.0] * (n - hits), None)
        if n > 2:
            assert (share.low, share.high) == pytest.approx(
                (theirs.low, theirs.high), abs=0.06 if n < 50 else 0.002
            )


def test_clusters_by_hand():
    """Four seeds in both orders: how alike they are, shrunk, and Student's t, in Wilson's."""
    won = np.array([1, 1, 1, 0, 0, 1, 0, 0], dtype=float)
    seed = np.repeat(np.arange(4), 2)
    of_seed = won.reshape(4, 2).sum(axis=1) - 2 * 0.5
    alike = (of_seed**2).sum() / 8**2 / 0.25 * 8 - 1
    seen = 4 * 0.5
    alike = (seen * alike + 0.25) / (seen + 0.25)
    each = min(t.ppf(0.975, 3) ** 2 / Z**2 * (1 + alike) / 8 * 4 / 3, 1 / 4)
    share = proportion(won, seed)
    low, high = wilson(0.5, each)
    assert (share.low, share.high) == pytest.approx((float(low), float(high)))
    assert proportion(won, [f"s{i}" for i in seed]) == share


CASES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.sampled_from((0.0, 0.5, 1.0))), min_size=1
)


@given(CASES)
def test_ends_hold_the_share_and_never_meet(cases):
    """Whatever was said: no less sure than the seeds, no surer than the cases, never certain."""
    row, seed, value = (np.array(column) for column in zip(*cases, strict=True))
    shares = ClusteredCases(row, seed, 3).proportions(value)
    for i in range(3):
        n = int((row == i).sum())
        if not n:
            assert math.isnan(shares.value[i])
            assert math.isnan(shares.low[i])
            continue
        assert 0 <= shares.low[i] <= shares.value[i] + 1e-12
        assert shares.value[i] - 1e-12 <= shares.high[i] <= 1
        assert shares.high[i] - shares.low[i] > 0.01
        if not {0.5} & set(value[row == i]):
            low, high = wilson(value[row == i].mean(), 1 / n)
            assert shares.high[i] - shares.low[i] >= (high - low) * (1 - 1e-9) - 0.06


@given(st.lists(st.sampled_from((0.0, 1.0)), min_size=1, max_size=60))
def test_one_case_a_seed_is_the_plain_interval(values):
    """The same whether seeds are known or not, but for Student's t, which the seeds bound."""
    known = proportion(values, np.arange(len(values)))
    plain = proportion(values, None)
    assert astuple(known) == pytest.approx(astuple(plain))


def test_means_of_scores_and_of_scores_all_alike():
    """Many scores are as Student's t has them; five fours of 1 to 5 may have hidden others."""
    many = [2.0, 3, 5, 4, 4, 3] * 50
    low, high = t.interval(0.95, 299, loc=3.5, scale=np.std(many, ddof=1) / math.sqrt(300))
    assert astuple(proportion(many, None, (1, 7))) == pytest.approx((3.5, low, high), abs=2e-3)
    unseen = binomtest(0, 5).proportion_ci(method="wilson").high
    expected = (4, 4 - 3 * unseen, 4 + unseen)
    assert astuple(proportion([4] * 5, None, (1, 5))) == pytest.approx(expected)
    assert not proportion([], None, (1, 5)).is_known


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("n", [20, 200])
def test_equal_shares_are_told_apart_once_in_twenty(share, n):
    """On a board of 14 that all pass as often."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        shares = rng.binomial(n, share, 14) / n
        ends = wilson(shares, np.full(14, 1 / n))
        wrong += bool(
            separated(
                *(2 * np.arcsin(np.sqrt(x)) for x in (shares, *ends)), level_of_pairs(14)
            ).any()
        )
    assert wrong / 400 < 0.075  # .05 and three standard errors more


def mean(sums: np.ndarray) -> list[np.ndarray]:
    """A figure of sums of values and of their numbers."""
    return [ratio(sums[:, 0], sums[:, 1])]


@pytest.mark.parametrize("n", [10, 40, 5000])
def test_a_bootstrap_of_a_mean_is_students(n, monkeypatch):
    """Also of ten clusters, and of more than are drawn one by one."""
    monkeypatch.setattr(statistics, "RESAMPLES", 3000)
    values = np.random.default_rng(n).normal(3, 2, n)
    (drawn,) = bootstrap(np.arange(n), [values, np.ones(n)], mean)
    half = t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n)
    assert drawn.value == pytest.approx(values.mean())
    assert drawn.high - drawn.low == pytest.approx(2 * half, rel=0.06)
    assert drawn.low < drawn.value < drawn.high


@pytest.mark.parametrize("values", [[], [2.0], [2.0, 2.0, 2.0]])
def test_a_figure_that_does_not_vary_has_no_ends(values):
    """Without a cluster there is no value either."""
    n = len(values)
    (drawn,) = bootstrap(np.arange(n), [np.array(values), np.ones(n)], mean)
    assert not drawn.is_bounded
    assert drawn.is_known == (n > 0)
