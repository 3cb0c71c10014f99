"""Where one number a model does not do: pairs that break the ranking, places that rest on ties."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from botchat.ratings.bradley_terry import (
    BradleyTerryResult,
    BradleyTerrySettings,
    fit,
    scores_by_cluster,
)
from botchat.ratings.comparisons import Comparisons, Flags, Floats, Indices, distinct
from botchat.ratings.maximum_likelihood import (
    curvature,
    has_maximum,
    score_rate,
    sums,
    tables,
    weights,
)


@dataclass(frozen=True, eq=False)
class TieSensitivity:
    """The ranking under three readings of a tie: half a win, dropped, a win for both."""

    half: BradleyTerryResult
    dropped: BradleyTerryResult
    win: BradleyTerryResult

    @property
    def places(self) -> Indices:
        """Places 1..m by rating under half, dropped and win, shape (3, m)."""
        ratings = np.stack([self.half.rating, self.dropped.rating, self.win.rating])
        return np.argsort(np.argsort(-ratings, axis=1, kind="stable"), axis=1) + 1

    @property
    def moved(self) -> Flags:
        """Whether a model's place depends on how ties are read, shape (m,)."""
        places = self.places
        return np.asarray((places != places[0]).any(axis=0))


@dataclass(frozen=True, eq=False)
class PairFit:
    """How well one number a model explains each pair that was compared; all shapes (pairs,).

    ``first`` < ``second``: indices of models. ``games``: weighted comparisons. ``observed``,
    ``expected``: score rate of ``first``. ``residual``: observed - expected in its standard errors
    (clustered as the ratings are); beyond ±3 a pair does not follow the ratings. 0 where the
    ratings follow the pair whatever it says.
    ``misfit``: mean square of the residuals, about 1 where Bradley-Terry holds; nan without any.
    """

    first: Indices
    second: Indices
    games: Floats
    observed: Floats
    expected: Floats
    residual: Floats
    misfit: float


def tie_sensitivity(
    comparisons: Comparisons, settings: BradleyTerrySettings | None = None
) -> TieSensitivity:
    """Fit with a tie as half a win, dropped, and as a win for both."""
    settings = settings or BradleyTerrySettings()
    return TieSensitivity(
        *(fit(comparisons, replace(settings, tie_weight=weight)) for weight in (1.0, 0.0, 2.0))
    )


def pair_fit(comparisons: Comparisons, result: BradleyTerryResult) -> PairFit:
    """Compare each pair's score rate with what ``result``, fitted to the same data, expects.

    A pair's residual varies less than its verdicts, for the fit follows them. To first order a
    cluster moves the residual of pair (i, j) by its own sum of residuals there, less the pair's
    information times what the cluster moves in the fitted t_i - t_j.
    """
    m = len(comparisons.models)
    theta = (result.rating - result.settings.mean) / result.settings.elo
    low, high, scored = comparisons.oriented()
    weight = weights(comparisons, result.settings.tie_weight)
    residual = weight * (scored - score_rate(theta[low] - theta[high]))
    pairs, pair = distinct(low * m + high)
    low, high = pairs // m, pairs % m
    games, total = sums(pair, weight), sums(pair, residual)
    expected = score_rate(theta[low] - theta[high])
    information = games * expected * (1 - expected)

    counted, score = (table[None] for table in tables(comparisons, result.settings.tie_weight))
    bread = np.linalg.inv(curvature(counted, theta[None], ~has_maximum(score))[0])
    if result.n_clusters is None or comparisons.cluster is None:
        own = sums(pair, residual**2)
        shared = own * _of_difference(bread, low, high)
        spread = result.unclustered
    else:
        seed = distinct(comparisons.cluster)[1]
        cells, cell = distinct(seed * len(pairs) + pair)
        in_cell, of_pair = sums(cell, residual), cells % len(pairs)
        signed = np.where(comparisons.first < comparisons.second, residual, -residual)
        moves = scores_by_cluster(comparisons, seed, signed) @ bread
        moved = moves[cells // len(pairs), low[of_pair]] - moves[cells // len(pairs), high[of_pair]]
        correction = result.n_clusters / (result.n_clusters - 1)
        own = sums(of_pair, in_cell**2) * correction
        shared = sums(of_pair, in_cell * moved) * correction
        spread = result.covariance
    spread = spread / result.settings.elo**2
    variance = own - 2 * information * shared + information**2 * _of_difference(spread, low, high)
    free = variance > 1e-9 * own
    z = np.divide(total, np.sqrt(np.maximum(variance, 0)), out=np.zeros_like(total), where=free)
    return PairFit(
        low,
        high,
        games,
        np.divide(sums(pair, weight * scored), games, out=expected.copy(), where=games > 0),
        expected,
        z,
        float(np.mean(z[free] ** 2)) if free.any() else math.nan,
    )


def _of_difference(covariance: Floats, first: Indices, second: Indices) -> Floats:
    """Variance of the difference of each pair, shape (pairs,)."""
    variance = np.diag(covariance)
    return np.asarray(variance[first] + variance[second] - 2 * covariance[first, second])
