"""Intervals of shares and means: other people's numbers, hand-counted cases, honest extremes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, gamma, t

from botchat.measures import shares
from botchat.measures.shares import by_seed, mean, of_share, share
from botchat.measures.statistics import student_t
from botchat.ratings.bradley_terry import BradleyTerryResult, BradleyTerrySettings


@pytest.mark.parametrize("n", [1, 2, 5, 40, 100, 547])
def test_shares_of_independent_cases_are_wilsons(n: int) -> None:
    """As scipy has it, but with Poisson's end where at most two or three hit, or do not."""
    for hits in range(n + 1):
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


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 20, 100, 546])
def test_students_t_is_exact(freedom: int) -> None:
    """At every number of degrees of freedom: 12.7 at one, 4.30 at two, as the boards use it."""
    assert student_t(0.95, freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-8)
    rated = BradleyTerryResult(
        BradleyTerrySettings(), ("a",), np.zeros(1), np.eye(1), 2, freedom + 1, ""
    )
    assert rated.width == pytest.approx(t.ppf(0.975, freedom), rel=1e-8)


def test_gteval_of_40_seeds_is_as_uncertain_as_it_is() -> None:
    """25 of 40 seeds won in both orders: 62.5 % is anything from 47 to 76 %, not 62.5 to 62.5."""
    won = np.repeat(np.arange(40) < 25, 2)
    row = share(won, np.repeat(np.arange(40), 2), "win")
    assert (row["win"], row["win_low"], row["win_high"]) == pytest.approx(
        (0.625, *binomtest(25, 40).proportion_ci(method="wilson")), abs=1e-9
    )


def test_clusters_by_hand() -> None:
    """Four seeds in both orders: the ratio estimator's variance and Student's t, in Wilson's."""
    won = np.array([1, 1, 1, 0, 0, 1, 0, 0], dtype=float)
    seed = np.repeat(np.arange(4), 2)
    of_seed = won.reshape(4, 2).sum(axis=1) - 2 * 0.5
    variance = (of_seed**2).sum() / 8**2 * 5 / 3
    c = t.ppf(0.975, 3) ** 2 * variance / 0.25
    z2 = shares.Z2
    assert z2 / 8 < c
    c = min(c, z2 / 4)
    reach = math.sqrt(c * 0.25 + c * c / 4) / (1 + c)
    row = share(won, seed, "win")
    assert (row["win_low"], row["win_high"]) == pytest.approx((0.5 - reach, 0.5 + reach))


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
        hits = value[row == i].sum()
        low, high = of_share(hits, n)
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


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_means_stay_on_their_scale(scores: list[int]) -> None:
    """An interval is on the scale, holds its mean, and is never certain."""
    low, high = mean(scores, 1, 5)
    assert 1 <= low + 1e-12 <= np.mean(scores) + 1e-9 <= high + 2e-9 <= 5 + 3e-9
    assert high - low > 0.01


def test_opponents_who_count_alike() -> None:
    """Weights and centres give the mean over opponents, and its own spread."""
    value = np.array([1.0, 1, 1, 1, 0, 1])
    weight = np.array([1 / 8] * 4 + [1 / 4] * 2)
    centre = np.array([1.0] * 4 + [0.5] * 2)
    row = np.zeros(6, dtype=np.intp)
    found = by_seed(row, np.array([0, 1, 2, 3, 0, 1]), value, 1, weight, centre)
    assert found.value[0] == pytest.approx(0.75)
    assert found.low[0] < 0.75 < found.high[0]
