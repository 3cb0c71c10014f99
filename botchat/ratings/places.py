"""Places that ratings leave open: intervals of all ranks that hold together.

Model i is clearly better than j where their difference is more than q standard errors of it. q is
the quantile, at the level of confidence, of the greatest of all differences, each over its own
estimated standard error, of models that are equal (max-t; Hothorn, Bretz & Westfall 2008): so on
one board in twenty at most anything is called clearly better that is not. First place: 1 + the
models clearly better; last place: all but those clearly worse (Mogstad, Romano, Shaikh & Wilhelm
2024).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from botchat.metrics.statistics import LEVEL, Z
from botchat.verdicts import Flags, Floats, Indices

EQUAL = 1e-6
"""Rating points up to which two ratings are equal: rounding in fits of identical models."""

DRAWS = 10_000
"""From the distribution of the greatest difference; the quantile is right to 1 %. The more pairs,
the less the greatest of them varies: 2,000 do for 300 models, 400 for 1,000."""
_FEWEST, _PAIRS_DRAWN = 400, 2000 * 45_000
_BATCH = 1 << 22
"""Numbers at a time."""
_MANY = 10_000
"""Degrees of freedom above which the covariance is as good as known."""


def left_open(better: Flags) -> tuple[Indices, Indices]:
    """First and last place of each model, shape (m,) each, from who is clearly better, (m, m)."""
    first, last = 1 + better.sum(axis=0), len(better) - better.sum(axis=1)
    return np.asarray(first, dtype=np.intp), np.asarray(last, dtype=np.intp)


def apart(value: Floats, low: Floats, high: Floats) -> Flags:
    """As `clearly_better`, of numbers that each have an interval of their own at 95 %.

    Clearly better is a difference above the root of both reaches' squares (MOVER; Zou & Donner
    2008), widened to hold for all pairs at once. Numbers are taken as independent: those of the
    same ChatSEEDs rise and fall together, which leaves more places open than need be.
    """
    wider = quantile(np.eye(len(value)).tobytes(), len(value), None, LEVEL) / Z
    reach = wider * np.hypot((value - low)[:, None], (high - value)[None, :]) + EQUAL
    return np.asarray(value[:, None] - value[None, :] > reach)


def clearly_better(
    rating: Floats, covariance: Floats, freedom: int | None, confidence: float = 0.95
) -> Flags:
    """Whether the model of the row is clearly better than that of the column, shape (m, m).

    ``covariance``: of the ratings, shape (m, m). ``freedom``: degrees of freedom of its estimate;
    ``None``: many.
    """
    own = np.diag(covariance)
    error = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0))
    # Identical models have no difference and no error of it, but for rounding.
    drawn = None if freedom is None or freedom > _MANY else freedom
    reach = quantile(covariance.tobytes(), len(rating), drawn, confidence) * error + EQUAL
    if freedom is not None:
        # Results are bounded and skewed; a seed's worth more keeps 20 seeds of 30 models below .05.
        reach = reach * math.sqrt((freedom + 2) / (freedom + 1))
    return np.asarray(rating[:, None] - rating[None, :] > reach)


@lru_cache(maxsize=64)
def quantile(covariance: bytes, m: int, freedom: int | None, confidence: float) -> float:
    """How many standard errors the greatest of all differences keeps to, with this confidence.

    Drawn are ratings and, where ``freedom`` is known, the estimate of their covariance: with few
    seeds the greatest of many has its error estimated too small.
    ``covariance``: the bytes of a float64 array of shape (m, m). Drawn with a fixed seed.
    """
    matrix = np.frombuffer(covariance).reshape(m, m)
    low, high = np.triu_indices(m, 1)
    own = np.diag(matrix)
    variance = own[low] + own[high] - 2 * matrix[low, high]
    kept = variance > 1e-9 * variance.max(initial=0)
    if not kept.any():
        return 0.0
    low, high = low[kept], high[kept]
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0))
    rng = np.random.default_rng(0)
    draws = max(_FEWEST, min(2000, _PAIRS_DRAWN // len(low)))
    draws = min(DRAWS, max(draws, 10 * _BATCH // len(low)))
    batch = max(1, _BATCH // max(len(low), m * m))
    greatest = []
    for begin in range(0, draws, batch):
        size = min(batch, draws - begin)
        drawn = rng.standard_normal((size, m)) @ root.T
        squares = (drawn[:, low] - drawn[:, high]) ** 2
        if freedom is None:
            squares /= variance[kept]
        else:
            moved = root @ _wishart_root(rng, size, m, freedom)
            product = moved @ moved.swapaxes(1, 2)
            own = np.diagonal(product, axis1=1, axis2=2)
            squares *= freedom / (own[:, low] + own[:, high] - 2 * product[:, low, high])
        greatest.append(np.sqrt(squares.max(axis=1)))
    found = np.concatenate(greatest)
    return float(np.quantile(found, confidence))


def _wishart_root(rng: np.random.Generator, size: int, m: int, freedom: int) -> Floats:
    """Matrices A, so that A A' is Wishart about the identity (Bartlett 1933): (size, m, k)."""
    drawn = rng.standard_normal((size, m, min(m, freedom)))
    if freedom >= m:
        drawn = np.tril(drawn, -1)
        each = np.arange(m)
        drawn[:, each, each] = np.sqrt(rng.chisquare(freedom - each, (size, m)))
    return drawn
