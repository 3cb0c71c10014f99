"""The ratings of a full board, estimated from a part of its comparisons.

A full board compares every pair of models on every seed that both have, in both orders; its
Bradley-Terry ratings (`botchat.ratings.bradley_terry`) are what is estimated here. Only a part was
made, perhaps more of some pairs than of others. Each pair's score on the full board is what was
seen of it plus what was not, and that is predicted:

- wins, ties and losses follow Rao & Kupper (1967): it is a tie where the judge sees less of a
  difference than a threshold. The threshold is the sum of two, one of each model, and every pair
  may deviate from it. (Bradley-Terry on scores, with a tie as half a win, leaves four to nine times
  the variance about it on BotChat's published tables: models that often tie move less.)
- a pair's score is off that by a misfit of its own: a normal error on the logit scale whose spread
  is estimated from the pairs, as in a random-effects meta-analysis. So a pair is shrunk to the
  strengths the more, the less was seen of it;
- results scatter about that as wins, ties and losses do; the two orders of a seed are correlated;
- the strengths themselves have a normal prior whose spread is estimated.

Pairs draw their seeds each in an order of its own, so what the seeds share moves the full board and
the sample alike: given the board, errors of different pairs are independent. What is on the same
seed *within* a pair is clustered.

The Bradley-Terry fit of the full board is linearised about its estimate. That gives a mean and a
covariance that go to the plain fit and to 0 as the board gets full: the finite-population
correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from botchat.ratings.bradley_terry import (
    curvature,
    differences,
    laplacian,
    maximise,
    score_rate,
    tables,
)
from botchat.ratings.comparisons import TIE, Comparisons, Floats, Indices

_MISFITS = np.array([0.0, 0.04, 0.08, 0.12, 0.16, 0.22, 0.3, 0.45, 0.7])
"""Logits; standard deviations of a pair about Bradley-Terry that are weighed against each other."""
_USUAL_MISFIT = 0.15
"""Scale of the half-Cauchy prior on them: BotChat's published tables have about 0.1."""
_USUAL_SPREAD = 0.7
"""Logits; standard deviation of strengths before any comparison, worth `_PRIOR` models."""
_PRIOR = 2.0
_USUAL_AGREEMENT, _PRIOR_AUDITS = 0.3, 10.0
"""Correlation of a seed's two orders before any audit, and how many audits that is worth."""
_USUAL_TIES = 0.4
"""Share of ties before any comparison, worth one."""
_THRESHOLD_SPREAD = 0.4
"""Logits; standard deviation of the models' thresholds."""
_OF_MODELS = 20.0
"""Comparisons that the share of ties by the models is worth beside a pair's own."""
_LEAST_THRESHOLD, _MOST_TIES = 0.01, 0.98
_A_TIE = 0.05
"""Tie of every pair that the first guess of strengths is made with."""
_LONGEST_STEP = 4.0
_ROUNDS, _CLOSE = 50, 3e-3
"""Rounds at most, and logits between two of them that are close enough: half an Elo point."""


@dataclass(frozen=True, eq=False)
class FullBoard:
    """Estimate of a full board's Bradley-Terry strengths, in logits with mean 0.

    ``strength``: shape (m,). ``covariance``: of what is not known of it, shape (m, m); 0 where the
    board is full. ``misfit``: standard deviation of pairs about Bradley-Terry, in logits.
    ``agreement``: correlation of the two orders of a seed. ``next``: what is expected of the next
    comparison of each pair. ``latent``: what the pairs were predicted with.
    """

    strength: Floats
    covariance: Floats
    misfit: float
    agreement: float
    next: Next
    latent: Latent

    @property
    def variance(self) -> Floats:
        """Of the difference of every two models, shape (m, m)."""
        return differences(self.covariance)


@dataclass(frozen=True, eq=False)
class Latent:
    """Strengths and tie thresholds, shape (m,) each; ``spread`` of strengths, ``misfit`` of pairs.

    All in logits.
    """

    strength: Floats
    threshold: Floats
    spread: float
    misfit: float


@dataclass(frozen=True, eq=False)
class Next:
    """How the next result of a pair (i, j) goes with the strengths on the full board.

    ``variance``: of the result. Its covariance with the strengths is (e_i - e_j), as ``common``
    times what ``by_strength`` makes of it, plus ``own`` times what ``by_pair`` makes of it: by what
    the models have in common with other pairs, and by what is the pair's own. Shapes (m, m).
    """

    by_strength: Floats
    by_pair: Floats
    common: Floats
    own: Floats
    variance: Floats

    def gains(self, weight: Floats) -> Floats:
        """How far one comparison of each pair would lower the weighted variances of differences.

        ``weight``: of the difference of every two models, shape (m, m); symmetric, as the result.
        """
        form = laplacian(weight)
        cross = self.by_strength.T @ form @ self.by_pair
        gain = self.common**2 * differences(self.by_strength.T @ form @ self.by_strength)
        gain += self.own**2 * differences(self.by_pair.T @ form @ self.by_pair)
        gain += self.common * self.own * differences(cross + cross.T)
        return np.asarray(gain / self.variance)


def estimate(
    comparisons: Comparisons, population: Floats, start: Latent | None = None
) -> FullBoard:
    """Estimate the full board.

    Args:
        comparisons: those made and readable; ``cluster`` numbers their seeds.
        population: comparisons of every two models on the full board, shape (m, m), symmetric;
            it must connect all models.
        start: of fewer comparisons, to be sooner there.
    """
    games, score = tables(comparisons, 1.0)
    decided, _ = tables(comparisons, 0.0)
    m = len(games)
    population = np.maximum(population, games)
    seen = games > 0
    rate = np.divide(score, games, out=np.full_like(score, 0.5), where=seen)
    pair, one, other = _both_orders(comparisons)
    doubled = np.bincount(pair, minlength=m * m).reshape(m, m)
    doubled = np.asarray(doubled + doubled.T, dtype=np.float64)

    ties = games - decided
    found = start or _first_guess(games, score, ties, population)
    strength, threshold = found.strength, found.threshold
    spread, misfit = found.spread, found.misfit
    for _ in range(_ROUNDS):
        apart = strength[:, None] - strength[None, :]
        threshold = _thresholds(threshold, apart, games, ties)
        expected, slope, variance = _rates(apart, threshold, games, ties)
        around = expected.ravel()[pair]
        agreement = _agreement((one - around) * (other - around), variance.ravel()[pair])
        error = variance * (games + 2 * agreement * doubled)
        error = np.divide(error, games**2, out=np.full_like(error, np.inf), where=seen)
        residual = np.where(seen, rate - expected, 0.0)
        known, step = _step(residual, error + (misfit * slope) ** 2, slope, strength, spread)
        strength = strength + step / max(1.0, np.ptp(step) / _LONGEST_STEP)
        strength = strength - strength.mean()
        moment = float(strength @ strength + np.trace(known))
        spread = math.sqrt((moment + _PRIOR * _USUAL_SPREAD**2) / (m + _PRIOR))
        if np.ptp(step) < _CLOSE:
            break
    # Its estimate takes many inversions, and moves strengths little.
    misfit = _misfit(residual, error, slope, strength, spread)
    known, step = _step(residual, error + (misfit * slope) ** 2, slope, strength, spread)
    strength = strength + step
    latent = Latent(strength, threshold, spread, misfit)

    apart = strength[:, None] - strength[None, :]
    expected, slope, variance = _rates(apart, threshold, games, ties)
    residual = np.where(seen, rate - expected, 0.0)
    own = (misfit * slope) ** 2
    kept = own / (error + own)  # the share of a pair's residual that is no noise
    # The other order of a seed that was seen in one is known in part.
    unseen = np.maximum(population - games - agreement * (games - 2 * doubled), 0)
    filled = population * expected + (population - unseen * (1 - kept)) * residual
    strength = maximise(population[None], filled[None], strength[None])[0]
    strength = strength - strength.mean()
    flat = np.linalg.inv(curvature(population[None], strength[None], np.array([False]))[0])
    flat = flat - flat.mean(axis=0)
    common, own = (1 - kept) * slope, (1 - kept) * own
    moved = flat @ laplacian(unseen * common)
    noise = unseen**2 * own + unseen * (1 + agreement) * variance
    return FullBoard(
        strength,
        moved @ known @ moved.T + flat @ laplacian(noise) @ flat.T,
        misfit,
        agreement,
        Next(
            moved @ known,
            flat,
            common,
            unseen * own + (1 + agreement) * variance,
            common**2 * differences(known) + own + variance,
        ),
        latent,
    )


def _step(
    residual: Floats, total: Floats, slope: Floats, strength: Floats, spread: float
) -> tuple[Floats, Floats]:
    """Posterior covariance of the strengths, shape (..., m, m), and the step to their mean.

    ``total``: variance of each pair's residual, shape (..., m, m).
    """
    precision = laplacian(slope**2 / total) + np.eye(len(strength)) / spread**2
    known = np.asarray(np.linalg.inv(precision))
    pull = (slope / total * residual).sum(axis=-1) - strength / spread**2
    return known, np.asarray((known @ pull[..., None])[..., 0])


def _first_guess(games: Floats, score: Floats, ties: Floats, population: Floats) -> Latent:
    """Bradley-Terry on scores; a threshold at which equals tie as often as all did."""
    one = _A_TIE * (population > 0)
    share = (ties.sum() + _USUAL_TIES) / (games.sum() + 1)
    return Latent(
        maximise((games + 2 * one)[None], (score + one)[None])[0],
        np.full(len(games), np.arctanh(min(share, _MOST_TIES))),
        _USUAL_SPREAD,
        _USUAL_MISFIT,
    )


def _thresholds(threshold: Floats, apart: Floats, games: Floats, ties: Floats) -> Floats:
    """Thresholds of the models, shape (m,), one step of scoring nearer to the ties they had."""
    both = np.maximum(threshold[:, None] + threshold[None, :], _LEAST_THRESHOLD)
    rate = _tie_rate(apart, both)
    slope = (np.cosh(apart) * np.cosh(both) + 1) / (np.cosh(apart) + np.cosh(both)) ** 2
    weight = games * slope**2 / (rate * (1 - rate))
    pull = (slope * (ties - games * rate) / (rate * (1 - rate))).sum(axis=1)
    usual = threshold.mean()
    prior = 1 / _THRESHOLD_SPREAD**2
    precision = weight + np.diag(weight.sum(axis=1) + prior)
    step = np.linalg.solve(precision, pull - prior * (threshold - usual))
    return np.asarray(threshold + np.clip(step, -1, 1))


def _rates(
    apart: Floats, threshold: Floats, games: Floats, ties: Floats
) -> tuple[Floats, Floats, Floats]:
    """Expected score of each pair, its slope in the strengths and its variance, shape (m, m)."""
    both = np.maximum(threshold[:, None] + threshold[None, :], _LEAST_THRESHOLD)
    share = (ties + _OF_MODELS * _tie_rate(apart, both)) / (games + _OF_MODELS)
    share = np.minimum(share, _MOST_TIES)
    # The threshold at which the pair ties that often: a quadratic equation in its exponential.
    level = share * np.cosh(apart)
    own = np.log((level + np.sqrt(level**2 + 1 - share**2)) / (1 - share))
    won, lost = score_rate(apart - own), score_rate(-apart - own)
    slope = (won * (1 - won) + lost * (1 - lost)) / 2
    return TIE + (won - lost) / 2, slope, (won + lost - (won - lost) ** 2) / 4


def _tie_rate(apart: Floats, threshold: Floats) -> Floats:
    """Share of ties at a difference and a threshold in logits (Rao & Kupper 1967)."""
    return np.asarray(np.sinh(threshold) / (np.cosh(apart) + np.cosh(threshold)))


def _agreement(products: Floats, variance: Floats) -> float:
    """Correlation of the two orders of a seed, from products of residuals and their variances."""
    usual = _PRIOR_AUDITS * (float(variance.mean()) if len(variance) else 1.0)
    raw = (products.sum() + usual * _USUAL_AGREEMENT) / (variance.sum() + usual)
    return float(np.clip(raw, 0, 1))


def _misfit(
    residual: Floats, error: Floats, slope: Floats, strength: Floats, spread: float
) -> float:
    """Root of the mean square misfit, over `_MISFITS` weighed by restricted likelihood."""
    total = error + (_MISFITS[:, None, None] * slope) ** 2
    known, step = _step(residual, total, slope, strength, spread)
    left = residual - slope * (step[:, :, None] - step[:, None, :])
    seen = np.triu(np.isfinite(error), 1)
    left, total = left[:, seen], total[:, seen]
    likelihood = np.linalg.slogdet(known)[1] - ((strength + step) ** 2).sum(axis=1) / spread**2
    likelihood -= (np.log(total) + left**2 / total).sum(axis=1)
    weight = np.exp((likelihood - likelihood.max()) / 2)
    weight *= np.gradient(_MISFITS) / (1 + (_MISFITS / _USUAL_MISFIT) ** 2)
    return math.sqrt(float(weight @ _MISFITS**2 / weight.sum()))


def _both_orders(comparisons: Comparisons) -> tuple[Indices, Floats, Floats]:
    """Comparisons made on one seed in both orders: pair (low · m + high) and the two results."""
    low, high, result = comparisons.oriented()
    pair = low * len(comparisons.models) + high
    if comparisons.cluster is None:
        return pair[:0], result[:0], result[:0]
    order = np.lexsort((comparisons.cluster, pair))
    pair, seed, result = pair[order], comparisons.cluster[order], result[order]
    again = np.flatnonzero((pair[1:] == pair[:-1]) & (seed[1:] == seed[:-1]))
    return pair[again], result[again], result[again + 1]
