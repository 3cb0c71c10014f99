"""Statistics of agreement and rank, for many samples at once.

Functions work along the last axes and keep the others. An undefined figure (division by zero, a
rating without variation) is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from botchat.verdicts import Floats, Indices

LEVEL = 0.95  # coverage of every interval
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)  # half its width in standard errors where these are known
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_MANY = 1 << 15


def distinct(labels: Indices) -> tuple[Indices, Indices]:
    """Distinct labels, ascending, and the position of each label among them, shape (n,).

    Like ``numpy.unique``, but without sorting if the labels, which start at 0, are small numbers.
    """
    if labels.max(initial=0) > 4 * len(labels):
        values, position = np.unique(labels, return_inverse=True)
        return values, position
    present = np.bincount(labels) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[labels]


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """``part / whole``, NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.divide(np.asarray(part, np.float64), whole)
    return np.where(np.equal(whole, 0), np.nan, quotient).astype(np.float64)


def cohen_kappa(confusion: Floats) -> Floats:
    """Cohen's kappa of tables of counts, shape (..., k, k) -> (...) (Cohen 1960)."""
    n = confusion.sum((-2, -1))
    agreement = ratio(np.trace(confusion, axis1=-2, axis2=-1), n)
    chance = ratio((confusion.sum(-1) * confusion.sum(-2)).sum(-1), n * n)
    return ratio(agreement - chance, 1 - chance)


def fleiss_kappa(agreement: Floats, labels: Floats) -> Floats:
    """Fleiss' kappa (Fleiss 1971), shape (...), from the mean over the units of `agreeing_pairs`.

    ``labels``: how often each label was given in all units, shape (..., k).
    """
    chance = (ratio(labels, labels.sum(-1)[..., None]) ** 2).sum(-1)
    return ratio(agreement - chance, 1 - chance)


def agreeing_pairs(counts: Floats) -> Floats:
    """Share of agreeing pairs in each unit, from the raters of each label, shape (units, k)."""
    raters = counts.sum(-1)
    return ratio((counts * (counts - 1)).sum(-1), raters * (raters - 1))


def spearman(x: Floats, y: Floats, weights: Floats | None = None) -> Floats:
    """Spearman's rank correlation of two ratings, ties at their mean rank.

    ``weights``: how often each entry counts, by default once. All have shape (..., n).
    """
    w = np.ones_like(x) if weights is None else weights
    # The signed sum against all others is twice the distance of a rank from the mean rank.
    of_x, of_y = _against_all(w, _signs(x)), _against_all(w, _signs(y))
    return ratio(
        (w * of_x * of_y).sum(-1), np.sqrt((w * of_x * of_x).sum(-1) * (w * of_y * of_y).sum(-1))
    )


def kendall(x: Floats, y: Floats, weights: Floats | None = None) -> Floats:
    """Kendall's tau-b; arguments as of `spearman`."""
    w = np.ones_like(x) if weights is None else weights
    signs_x, signs_y = _signs(x), _signs(y)

    def pairs(matrix: Floats) -> Any:
        return (_against_all(w, matrix) * w).sum(-1)

    return ratio(pairs(signs_x * signs_y), np.sqrt(pairs(np.abs(signs_x)) * pairs(np.abs(signs_y))))


def sign_flip(sums: Floats) -> float:
    """Two-sided p of the hypothesis that each item's sum might as well have the other sign.

    Exact for whole sums, by convolution (Fisher 1935, §21): with sums of 1 and -1 McNemar's exact
    test. Sums of several sizes, more than `_MANY` together, are taken as normal.
    """
    size_of, count = np.unique(np.abs(sums[sums != 0]).astype(np.intp), return_counts=True)
    total, seen = int(size_of @ count), abs(float(sums.sum()))
    if total > _MANY and len(count) > 1:
        return 2 * NormalDist().cdf(-seen / math.sqrt(sums @ sums))
    chance = np.ones(1)
    for size, n in zip(size_of.tolist(), count.tolist(), strict=True):
        logs = np.concatenate([np.zeros(1), np.cumsum(np.log(np.arange(1, n + 1)))])
        flipped = np.zeros(size * n + 1)
        flipped[::size] = np.exp(logs[-1] - logs - logs[::-1] - n * math.log(2))
        chance = np.convolve(chance, flipped)
    # With j of the total flipped, the sum is total - 2 j.
    beyond = np.abs(total - 2 * np.arange(len(chance))) >= seen
    return min(1.0, float(chance[beyond].sum()))


def _signs(x: Floats) -> Floats:
    return np.sign(x[..., :, None] - x[..., None, :])


def _against_all(weights: Floats, signs: Floats) -> Floats:
    return np.asarray((weights[..., None, :] @ signs)[..., 0, :], np.float64)


@cache
def student_t(level: float, df: int) -> float:
    """Half a two-sided interval's width in standard errors, of Student's t.

    With t = tan(angle) times the root of ``df``, the density of the angle is proportional to
    cos(angle) ** (df - 1); Gauss-Legendre quadrature integrates it to 1e-12.
    """

    def inside(angle: float) -> float:
        sine = np.sin(angle * (_NODES + 1) / 2)
        return float(angle * (_WEIGHTS @ np.exp((df - 1) / 2 * np.log1p(-sine * sine))))

    low, high = 0.0, min(math.pi / 2, 20 / math.sqrt(df))
    wanted = level * inside(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < wanted else (low, middle)
    return math.sqrt(df) * math.tan(low)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p of several tests, so that all together are wrong as rarely (Holm 1979)."""
    order, adjusted = np.argsort(p, kind="stable"), np.empty(len(p))
    each = np.minimum(1.0, np.arange(len(p), 0, -1) * np.asarray(p, np.float64)[order])
    adjusted[order] = np.maximum.accumulate(each)
    return adjusted.tolist()
