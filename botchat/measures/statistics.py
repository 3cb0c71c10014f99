"""Statistics of agreement and rank, on arrays, for many bootstrap resamples at once.

Every function works along the last axes and keeps the ones before: row 0 of `item_weights` is the
sample itself, the others are resamples, so one call gives a figure and what its interval needs.
A figure that is not defined (nothing to divide by, a rating without any variation) is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.interfaces import Row

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]

LEVEL = 0.95
"""Coverage of every interval."""


def item_weights(n_items: int, resamples: int, seed: int) -> Floats:
    """How often each item counts: ones in row 0, then drawn with replacement.

    Items are drawn, not rows: all that is said about one item stands or falls together. Two judges
    weighted by the same array are compared on the same items, so their difference is paired.

    Returns:
        Shape (resamples + 1, n_items); every row sums to ``n_items``.
    """
    drawn = np.random.default_rng(seed).multinomial(
        n_items, np.full(n_items, 1 / max(n_items, 1)), size=resamples
    )
    return np.vstack([np.ones(n_items), drawn]).astype(np.float64)


def interval(values: Floats) -> tuple[float, float]:
    """Percentile bootstrap interval at `LEVEL` of a figure, shape (resamples + 1,).

    Resamples in which the figure is not defined are left out; NaN where it is defined in none.
    """
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn):
        return math.nan, math.nan
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def figure(name: str, values: Floats) -> Row:
    """The entries ``name``, ``name_low`` and ``name_high`` of a figure, shape (resamples + 1,)."""
    if not math.isfinite(values[0]):
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    low, high = (None if math.isnan(end) else end for end in interval(values))
    return {name: float(values[0]), f"{name}_low": low, f"{name}_high": high}


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """``part / whole``, NaN where the whole is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            np.equal(whole, 0), np.nan, np.divide(np.asarray(part, np.float64), whole)
        ).astype(np.float64)


def accuracy(confusion: Floats) -> Floats:
    """Share of the diagonal in tables of counts, shape (..., k, k) -> (...)."""
    return ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum((-2, -1)))


def cohen_kappa(confusion: Floats) -> Floats:
    """Cohen's kappa of tables of counts, shape (..., k, k) -> (...); Cohen 1960.

    Each rater keeps its own distribution of labels.
    """
    n = confusion.sum((-2, -1))
    by_chance = ratio((confusion.sum(-1) * confusion.sum(-2)).sum(-1), n * n)
    return _beyond_chance(accuracy(confusion), by_chance)


def fleiss_kappa(agreement: npt.ArrayLike, labels: Floats) -> Floats:
    """Fleiss' kappa; Fleiss 1971. All raters share one distribution of labels.

    Args:
        agreement: mean over the units of the share of agreeing pairs of raters, shape (...).
        labels: how often each label was given in all, shape (..., k).
    """
    shares = ratio(labels, labels.sum(-1)[..., None])
    return _beyond_chance(np.asarray(agreement, np.float64), (shares**2).sum(-1))


def fleiss_kappa_of_two(confusion: Floats) -> Floats:
    """Fleiss' kappa of two raters, from tables of counts, shape (..., k, k) -> (...)."""
    return fleiss_kappa(accuracy(confusion), confusion.sum(-1) + confusion.sum(-2))


def agreeing_pairs(counts: Floats) -> Floats:
    """Share of agreeing pairs of raters in each unit, NaN where fewer than two rated it.

    Args:
        counts: how many raters gave each label, shape (units, k).
    """
    raters = counts.sum(-1)
    return ratio((counts * (counts - 1)).sum(-1), raters * (raters - 1))


def coincidences(counts: Floats) -> Floats:
    """Krippendorff's coincidence matrix of each unit, shape (units, k) -> (units, k, k).

    Add them up over the units for `krippendorff_alpha`. A unit that fewer than two raters rated
    adds nothing.
    """
    pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(counts.shape[1]))
    return ratio(pairs, np.maximum(counts.sum(-1) - 1, 1)[:, None, None])


def krippendorff_alpha(coincidence: Floats) -> Floats:
    """Krippendorff's alpha for nominal labels, shape (..., k, k) -> (...); Krippendorff 2004, 11.3.

    Raters may be any number and may leave units out.
    """
    labels = coincidence.sum(-1)
    n = labels.sum(-1)
    apart = n - np.trace(coincidence, axis1=-2, axis2=-1)
    by_chance = ratio(n * n - (labels**2).sum(-1), n - 1)
    return 1 - ratio(apart, by_chance)


def spearman(x: Floats, y: Floats, weights: Floats | None = None) -> Floats:
    """Spearman's rank correlation, ties at their mean rank.

    Args:
        x: one rating, shape (..., n).
        y: the other, the same.
        weights: how often each entry counts, shape (..., n); once where not given.
    """
    w = np.ones_like(x) if weights is None else weights
    # The sum of signs is twice the distance of a rank from the mean rank.
    of_x, of_y = _against_all(w, _signs(x)), _against_all(w, _signs(y))
    return ratio(
        (w * of_x * of_y).sum(-1),
        np.sqrt((w * of_x * of_x).sum(-1) * (w * of_y * of_y).sum(-1)),
    )


def kendall(x: Floats, y: Floats, weights: Floats | None = None) -> Floats:
    """Kendall's tau-b; arguments as of `spearman`."""
    w = np.ones_like(x) if weights is None else weights
    signs_x, signs_y = _signs(x), _signs(y)

    def pairs(matrix: Floats) -> Any:
        return (_against_all(w, matrix) * w).sum(-1)

    return ratio(pairs(signs_x * signs_y), np.sqrt(pairs(np.abs(signs_x)) * pairs(np.abs(signs_y))))


def correlation(both: Floats, first: Floats, second: Floats, n: Floats) -> Floats:
    """Pearson's correlation of two yes-or-no marks, from counts of any shape.

    Args:
        both: cases with both marks.
        first: cases with the first mark.
        second: cases with the second.
        n: all cases.
    """
    spread = np.sqrt(first * (n - first) * (second * (n - second)))
    return ratio(n * both - first * second, spread)


def effective_votes(raters: int, correlation: Floats) -> Floats:
    """How many independent voters ``raters`` correlated ones are worth: k / (1 + (k - 1) r).

    Kish's design effect; ``correlation`` is the mean correlation of their errors. Between 1 and
    ``raters`` where that is not negative.
    """
    return ratio(raters, 1 + (raters - 1) * correlation)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's exact test, from the cases that only one of two judges got right.

    It takes cases for independent; where one item gives several, the interval of the difference by
    item is the safer answer. 1.0 where the judges never differ.
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    term, tail = 1, 1
    for i in range(1, fewer + 1):
        term = term * (n - i + 1) // i
        tail += term
    return min(1.0, 2 * tail / (1 << n))


def _beyond_chance(observed: Floats, by_chance: Floats) -> Floats:
    return ratio(observed - by_chance, 1 - by_chance)


def _signs(x: Floats) -> Floats:
    return np.sign(x[..., :, None] - x[..., None, :])


def _against_all(w: Floats, signs: Floats) -> Floats:
    if signs.ndim == 2:
        return np.asarray(w @ signs, np.float64)
    return np.asarray((w[..., None, :] @ signs)[..., 0, :], np.float64)


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a share, by default at 95 % (Wilson 1927); ``n`` at least 1."""
    share = hits / n
    middle = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    whole = 1 + z * z / n
    # At 0 and n hits one end is exact, and not so in floating point.
    low = 0.0 if hits == 0 else (middle - reach) / whole
    return low, 1.0 if hits == n else (middle + reach) / whole


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Interval at `LEVEL` of a mean of independent values, by Student's t; NaN of fewer than 2."""
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    mean = math.fsum(values) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    reach = student_t(LEVEL, n - 1) * error
    return mean - reach, mean + reach


@cache
def student_t(level: float, df: int) -> float:
    """Half the width, in standard errors, of a two-sided interval with ``df`` degrees of freedom.

    The distribution function is exact for whole ``df`` (Abramowitz & Stegun 26.7.3, 26.7.4).
    """

    def inside(t: float) -> float:
        angle = math.atan(t / math.sqrt(df))
        sine, cosine = math.sin(angle), math.cos(angle)
        odd = df % 2
        term = total = (cosine if df > 1 else 0.0) if odd else 1.0
        for i in range(2 + odd, df - 1, 2):
            term *= cosine * cosine * (i - 1) / i
            total += term
        return 2 / math.pi * (angle + sine * total) if odd else sine * total

    low, high = 0.0, 1e6
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < level else (low, middle)
    return high
