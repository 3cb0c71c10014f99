"""Statistics of agreement and rank against other people's, and the sign-flip test."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from botchat.metrics import statistics
from botchat.metrics.statistics import holm, sign_flip, student_t

FLEISS_1971 = """
    0 0 0 0 14   0 2 6 4 2   0 0 3 5 6   0 3 9 2 0   2 2 8 1 1
    7 7 0 0 0    3 2 6 3 0   2 5 3 2 2   6 5 2 1 0   0 2 2 3 7
"""


def test_fleiss_kappa_of_the_textbook():
    """Ten subjects by fourteen raters: 0.210."""
    counts = np.array(FLEISS_1971.split(), float).reshape(10, 5)
    agreement = statistics.agreeing_pairs(counts).mean()
    assert statistics.fleiss_kappa(np.array([agreement, 1, *counts.sum(0)])) == pytest.approx(
        0.20993, abs=1e-5
    )


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 2])] * 2), min_size=2, max_size=40))
def test_cohen_kappa_equals_scikit_learn(labels):
    """For any labels of two raters; not defined where both always give the same one."""
    x, y = zip(*labels, strict=True)
    confusion = np.zeros((3, 3))
    np.add.at(confusion, (x, y), 1)
    expected = np.nan if len({*x, *y}) == 1 else cohen_kappa_score(x, y)
    assert statistics.cohen_kappa(confusion) == pytest.approx(expected, nan_ok=True)


ENTRIES = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 3))


@given(st.lists(ENTRIES, min_size=2, max_size=25))
def test_rank_correlations_equal_scipy(entries):
    """Ties at their mean rank; a weight is the same as repeating the entry; NaN if constant."""
    x, y, w = np.array(entries, float).T
    repeated = np.repeat(x, w.astype(int)), np.repeat(y, w.astype(int))
    weights = np.stack([np.ones_like(w), w])
    both = statistics.rank_correlations(x, y, weights)
    for ours, theirs in zip(both, (stats.spearmanr, stats.kendalltau), strict=True):
        for value, (a, b) in zip(ours, [(x, y), repeated], strict=True):
            constant = len(set(a)) < 2 or len(set(b)) < 2
            expected = np.nan if constant else theirs(a, b)[0]
            assert value == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(st.integers(0, 300), st.integers(0, 300))
def test_sign_flips_of_items_with_one_verdict_are_mcnemars_test(only_a, only_b):
    """Exact and two-sided; level items count nothing."""
    n = only_a + only_b
    sums = np.array([1.0] * only_a + [-1.0] * only_b + [0.0] * 7)
    expected = stats.binomtest(only_a, n).pvalue if n else 1.0
    assert sign_flip(sums) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_sign_flips_of_items_with_several_verdicts_are_enumerated(sums):
    """Against all 2ⁿ sign patterns."""
    values = np.array(sums, float)
    flips = np.array(list(product([1, -1], repeat=len(sums)))) @ values
    expected = np.mean(np.abs(flips) >= abs(values.sum()))
    assert sign_flip(values) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sums", "rel"),
    [
        ({1.0: 4_700, -1.0: 5_300}, 1e-6),
        ({1.0: 60_300, -1.0: 59_700}, 1e-6),
        ({2.0: 9_050, -2.0: 8_950, 1.0: 10_000, -1.0: 9_900}, 0.03),
    ],
)
def test_sign_flips_of_thousands_of_items_are_still_numbers(sums, rel):
    """No overflow; those of two sizes as of the normal distribution."""
    values = np.repeat([*sums], [*sums.values()])
    expected = stats.norm.sf(abs(values.sum()) / np.sqrt(values @ values)) * 2
    if len(sums) == 2:
        expected = stats.binomtest(sums[1.0], len(values)).pvalue
    assert sign_flip(values) == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize("df", [1, 2, 3, 20, 546, 1000, 1001, 10**6])
def test_students_t_is_scipys(df):
    """At every number of degrees of freedom, and every level."""
    for level in (0.5, 0.95, 0.9999):
        expected = stats.t.ppf(0.5 + level / 2, df)
        assert student_t(level, df) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_the_closed_test_of_bonferroni(p):
    """A test's adjusted p is the largest of n · smallest p over the sets that hold it."""
    adjusted = holm(p)
    for i in range(len(p)):
        sets = [s for s in product([False, True], repeat=len(p)) if s[i]]
        bonferroni = (sum(s) * min(q for q, held in zip(p, s, strict=True) if held) for s in sets)
        assert adjusted[i] == pytest.approx(min(1, max(bonferroni)))
