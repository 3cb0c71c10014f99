"""Statistics of agreement and rank, for many bootstrap resamples at once.

Functions work along the last axes and keep the others. An undefined figure (division by zero, a
rating without variation) is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
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
    """How often each item counts, shape (resamples + 1, n_items).

    Row 0 is the sample, each item once; in the others items are drawn with replacement.
    """
    drawn = np.random.default_rng(seed).multinomial(
        n_items, np.full(n_items, 1 / max(n_items, 1)), size=resamples
    )
    return np.vstack([np.ones(n_items), drawn]).astype(np.float64)


def figures(values: Mapping[str, Floats]) -> Row:
    """The entries ``name``, ``name_low``, ``name_high`` of figures, each shape (resamples + 1,).

    The ends are percentiles at `LEVEL` of the resamples in which the figure is defined; None
    without any, or where the figure itself is not defined.
    """
    row: Row = {}
    for name, figure in values.items():
        row |= {name: None, f"{name}_low": None, f"{name}_high": None}
        if math.isfinite(figure[0]):
            row[name] = float(figure[0])
            if len(drawn := figure[1:][np.isfinite(figure[1:])]):
                low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
                row |= {f"{name}_low": float(low), f"{name}_high": float(high)}
    return row


def differences(one: Mapping[str, Floats], other: Mapping[str, Floats]) -> Row:
    """The entries ``<name>_difference``, one less other, in the order of ``one``."""
    return figures({f"{name}_difference": one[name] - other[name] for name in one})


def share(part: float, whole: float) -> float:
    """``part / whole``, NaN where the whole is 0."""
    return part / whole if whole else math.nan


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """`share` of arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.divide(np.asarray(part, np.float64), whole)
    return np.where(np.equal(whole, 0), np.nan, quotient).astype(np.float64)


def accuracy(confusion: Floats) -> Floats:
    """Share of the diagonal in tables of counts, shape (..., k, k) -> (...)."""
    return ratio(np.trace(confusion, axis1=-2, axis2=-1), confusion.sum((-2, -1)))


def cohen_kappa(confusion: Floats) -> Floats:
    """Cohen's kappa of tables of counts, shape (..., k, k) -> (...) (Cohen 1960)."""
    n = confusion.sum((-2, -1))
    by_chance = ratio((confusion.sum(-1) * confusion.sum(-2)).sum(-1), n * n)
    return _beyond_chance(accuracy(confusion), by_chance)


def fleiss_kappa(agreement: npt.ArrayLike, labels: Floats) -> Floats:
    """Fleiss' kappa (Fleiss 1971), shape (...), from the mean over the units of `agreeing_pairs`.

    ``labels``: how often each label was given in all units, shape (..., k).
    """
    shares = ratio(labels, labels.sum(-1)[..., None])
    return _beyond_chance(np.asarray(agreement, np.float64), (shares**2).sum(-1))


def agreeing_pairs(counts: Floats) -> Floats:
    """Share of agreeing pairs in each unit, from the raters of each label, shape (units, k)."""
    raters = counts.sum(-1)
    return ratio((counts * (counts - 1)).sum(-1), raters * (raters - 1))


def coincidences(counts: Floats) -> Floats:
    """Krippendorff's coincidence matrix of each unit, shape (units, k) -> (units, k, k).

    `krippendorff_alpha` takes their sum. A unit that fewer than two raters rated adds nothing.
    """
    pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(counts.shape[1]))
    return ratio(pairs, np.maximum(counts.sum(-1) - 1, 1)[:, None, None])


def krippendorff_alpha(coincidence: Floats) -> Floats:
    """Krippendorff's alpha for nominal labels, (..., k, k) -> (...) (Krippendorff 2004, 11.3)."""
    labels = coincidence.sum(-1)
    n = labels.sum(-1)
    apart = n - np.trace(coincidence, axis1=-2, axis2=-1)
    by_chance = ratio(n * n - (labels**2).sum(-1), n - 1)
    return 1 - ratio(apart, by_chance)


def spearman(x: Floats, y: Floats, weights: Floats | None = None) -> Floats:
    """Spearman's rank correlation of two ratings, ties at their mean rank.

    ``weights``: how often each entry counts, by default once. All have shape (..., n).
    """
    w = np.ones_like(x) if weights is None else weights
    # The signed sum against all others is twice the distance of a rank from the mean rank.
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
    """Pearson's correlation of two yes-or-no marks, from the counts of cases that have them."""
    spread = np.sqrt(first * (n - first) * (second * (n - second)))
    return ratio(n * both - first * second, spread)


def effective_votes(raters: int, correlation: Floats) -> Floats:
    """How many independent voters are worth some whose errors correlate (Kish's design effect)."""
    return ratio(raters, 1 + (raters - 1) * correlation)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's exact test, from the cases that only one of two judges got right.

    It assumes independent cases: where an item has several, trust the bootstrap by item instead.
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    # One binomial coefficient from the other: thousands of `math.comb` would take seconds.
    terms = accumulate(range(fewer), lambda term, i: term * (n - i) // (i + 1), initial=1)
    return min(1.0, 2 * sum(terms) / (1 << n))


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
    # At 0 and n hits one end is exactly 0 or 1; floating point would miss it.
    low = 0.0 if hits == 0 else (middle - reach) / whole
    return low, 1.0 if hits == n else (middle + reach) / whole


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Interval at `LEVEL` of a mean of independent values, by Student's t; NaN of fewer than 2."""
    if (n := len(values)) < 2:
        return math.nan, math.nan
    mean = math.fsum(values) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    reach = student_t(LEVEL, n - 1) * error
    return mean - reach, mean + reach


@cache
def student_t(level: float, df: int) -> float:
    """Half a two-sided interval's width in standard errors (Abramowitz & Stegun 26.7.3, 26.7.4)."""

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
