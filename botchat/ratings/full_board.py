"""Estimate of a full board's ratings from a part of its comparisons.

A full board compares every pair of models on every seed that both have, in both orders. Its
Bradley-Terry ratings are estimated from each pair's score: the seen part, and a prediction of the
unseen part. The fit is linearised; its covariance goes to 0 as the board fills.

- Wins, ties and losses follow Rao & Kupper (1967): a tie where the judge sees a difference below a
  threshold, the sum of one of each model. (Bradley-Terry with a tie as half a win has four to nine
  times the variance of BotChat's published results.)
- A pair's score deviates by a misfit: normal on the logit scale, its spread estimated as in a
  random-effects meta-analysis. So a pair is shrunk to the strengths more, the less of it was seen.
- The two orders of a seed are correlated; different pairs are independent given the board.
- The strengths have a normal prior whose spread is estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from botchat.ratings.bradley_terry import (
    curvature,
    differences,
    laplacian,
    maximise,
    score_rate,
    tables,
)
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import TIE, Floats, Indices

_MISFITS = np.array([0.0, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0])
"""Logits; candidate standard deviations of pairs about Bradley-Terry."""
_USUAL_MISFIT, _CAUTION = 0.2, 0.7
"""Scale of the prior on them, 0.11 and 0.23 in BotChat's published tables; the posterior's quantile
that is used: a run that takes the misfit for too small stops too early."""
_USUAL_SPREAD = 0.7
"""Logits; prior standard deviation of strengths, worth `_PRIOR` models."""
_PRIOR, _WIDE = 2.0, -1.96
"""The last step takes its posterior's .975 quantile; this is a standard normal's at .025."""
_USUAL_AGREEMENT, _PRIOR_AUDITS = 0.3, 10.0
"""Prior correlation of a seed's two orders, and how many seeds with both orders it is worth."""
_USUAL_TIES = 0.4
"""Prior share of ties, worth one comparison."""
_THRESHOLD_SPREAD = 0.4
"""Logits; standard deviation of the models' thresholds."""
_LEAST_THRESHOLD, _MOST_TIES = 0.01, 0.98
_A_TIE = 0.05
"""Weight of the tie that every pair gets in the first guess of strengths."""
_LONGEST_STEP = 4.0
_ROUNDS, _CLOSE = 50, 3e-3
"""Most iterations, and the step in logits that ends them: half an Elo point."""


@dataclass(frozen=True, eq=False)
class FullBoard:
    """Estimate of a full board's Bradley-Terry strengths, in logits with mean 0, shape (m,).

    ``covariance``: of its error, shape (m, m). ``agreement``: correlation of the two orders of a
    seed. ``next``: of the next comparison of each pair. ``latent``: what predicted the unseen part.
    """

    strength: Floats
    covariance: Floats
    agreement: float
    next: Next
    latent: Latent

    @property
    def variance(self) -> Floats:
        """Of the difference of every two models, shape (m, m)."""
        return differences(self.covariance)


class Latent(NamedTuple):
    """Strengths, tie thresholds, shape (m,), standard deviations of strengths, of pairs; logits."""

    strength: Floats
    threshold: Floats
    spread: float
    misfit: float


@dataclass(frozen=True, eq=False)
class Next:
    """How the next result of a pair (i, j) varies with the strengths on the full board.

    Its covariance with the strengths is (``common`` · ``by_strength`` + ``own`` · ``by_pair``)
    (e_i - e_j): shared with the models' other pairs, and the pair's own. All shapes (m, m).
    """

    by_strength: Floats
    by_pair: Floats
    common: Floats
    own: Floats
    variance: Floats

    def gains(self, weight: Floats) -> Floats:
        """How much one comparison of each pair would lower the weighted sum of variances.

        ``weight``: of the variance of each difference of two models, symmetric, shape (m, m).
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
    """Estimate the full board from readable comparisons, whose ``cluster`` numbers the seeds.

    ``population``: comparisons of every two models on the full board, shape (m, m), symmetric; it
    must connect all models. ``start``: the estimate from fewer comparisons, for speed.
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
    strength, threshold, spread, misfit = start or _first_guess(games, score, ties, population)
    for _ in range(_ROUNDS):
        threshold = _thresholds(threshold, strength, games, ties)
        expected, slope, variance = _rates(strength, threshold)
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
    # Estimated once: it takes many inversions and changes strengths little.
    misfit = _misfit(residual, error, slope, strength, spread)
    total = error + (misfit * slope) ** 2
    known, step = _step(residual, total, slope, strength, _cautious(spread, known))
    strength = strength + step
    latent = Latent(strength, threshold, spread, misfit)
    expected, slope, variance = _rates(strength, threshold)
    residual = np.where(seen, rate - expected, 0.0)
    own = (misfit * slope) ** 2
    kept = own / (error + own)  # share of a pair's residual that is not noise
    # The unseen order of a seed that was seen in the other is partly known.
    unseen = np.maximum(population - games - agreement * (games - 2 * doubled), 0)
    filled = population * expected + (population - unseen * (1 - kept)) * residual
    strength = maximise(population[None], filled[None], strength[None])[0]
    strength = strength - strength.mean()
    curved = curvature(population[None], strength[None], np.array([False]))[0]
    if np.linalg.eigvalsh(curved).min() < 1e-9:  # models so far apart that nothing tells how far
        curved = curved + 1e-9 * np.eye(len(curved))
    flat = np.linalg.inv(curved)
    flat = flat - flat.mean(axis=0)
    common, own = (1 - kept) * slope, (1 - kept) * own
    moved = flat @ laplacian(unseen * common)
    noise = unseen**2 * own + unseen * (1 + agreement) * variance
    return FullBoard(
        strength,
        moved @ known @ moved.T + flat @ laplacian(noise) @ flat.T,
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
    """Bradley-Terry on scores; the threshold at which equal models tie as often as all did."""
    one = _A_TIE * (population > 0)
    share = (ties.sum() + _USUAL_TIES) / (games.sum() + 1)
    return Latent(
        maximise((games + 2 * one)[None], (score + one)[None])[0],
        np.full(len(games), np.arctanh(min(share, _MOST_TIES))),
        _USUAL_SPREAD,
        _USUAL_MISFIT,
    )


def _thresholds(threshold: Floats, strength: Floats, games: Floats, ties: Floats) -> Floats:
    """Thresholds of the models, shape (m,), after one scoring step towards the ties they had."""
    apart, both, rate = _tie_rates(strength, threshold)
    slope = (np.cosh(apart) * np.cosh(both) + 1) / (np.cosh(apart) + np.cosh(both)) ** 2
    weight = games * slope**2 / (rate * (1 - rate))
    pull = (slope * (ties - games * rate) / (rate * (1 - rate))).sum(axis=1)
    usual = threshold.mean()
    prior = 1 / _THRESHOLD_SPREAD**2
    precision = weight + np.diag(weight.sum(axis=1) + prior)
    step = np.linalg.solve(precision, pull - prior * (threshold - usual))
    return np.asarray(threshold + np.clip(step, -1, 1))


def _rates(strength: Floats, threshold: Floats) -> tuple[Floats, Floats, Floats]:
    """Expected score of each pair, its slope in the strengths and its variance, shape (m, m).

    By the models' thresholds only. A pair that is further apart than its models' strengths ties
    less: were its own ties to set what is expected of it, they would explain its misfit away.
    """
    apart, both, _ = _tie_rates(strength, threshold)
    both = np.minimum(both, 2 * math.atanh(_MOST_TIES))
    won, lost = score_rate(apart - both), score_rate(-apart - both)
    slope = (won * (1 - won) + lost * (1 - lost)) / 2
    return TIE + (won - lost) / 2, slope, (won + lost - (won - lost) ** 2) / 4


def _tie_rates(strength: Floats, threshold: Floats) -> tuple[Floats, Floats, Floats]:
    """Of pairs: difference, threshold, share of ties (Rao & Kupper 1967), shape (m, m) each."""
    apart = strength[:, None] - strength[None, :]
    both = np.maximum(threshold[:, None] + threshold[None, :], _LEAST_THRESHOLD)
    return apart, both, np.asarray(np.sinh(both) / (np.cosh(apart) + np.cosh(both)))


def _agreement(products: Floats, variance: Floats) -> float:
    """Correlation of the two orders of a seed, from products of residuals and their variances."""
    usual = _PRIOR_AUDITS * (float(variance.mean()) if len(variance) else 1.0)
    raw = (products.sum() + usual * _USUAL_AGREEMENT) / (variance.sum() + usual)
    return float(np.clip(raw, 0, 1))


def _misfit(
    residual: Floats, error: Floats, slope: Floats, strength: Floats, spread: float
) -> float:
    """The `_CAUTION` quantile of `_MISFITS`, weighted by restricted likelihood and prior.

    The prior rises from 0 as Chung et al. (2013) advise, since of few comparisons the likelihood is
    often highest at no misfit at all, and falls as a half-Cauchy does.
    """
    total = error + (_MISFITS[:, None, None] * slope) ** 2
    known, step = _step(residual, total, slope, strength, spread)
    left = residual - slope * (step[:, :, None] - step[:, None, :])
    seen = np.triu(np.isfinite(error), 1)
    left, total = left[:, seen], total[:, seen]
    likelihood = np.linalg.slogdet(known)[1] - ((strength + step) ** 2).sum(axis=1) / spread**2
    likelihood -= (np.log(total) + left**2 / total).sum(axis=1)
    weight = np.exp((likelihood - likelihood.max()) / 2)
    weight *= np.gradient(_MISFITS) * _MISFITS / (1 + (_MISFITS / _USUAL_MISFIT) ** 2) ** 1.5
    # Each candidate stands for the values up to the middle to the next.
    edges = np.concatenate([[0.0], (_MISFITS[1:] + _MISFITS[:-1]) / 2, _MISFITS[-1:]])
    below = np.concatenate([[0.0], np.cumsum(weight)])
    return float(np.interp(_CAUTION, below / below[-1], edges))


def _cautious(spread: float, known: Floats) -> float:
    """The .975 quantile of the strengths' spread, which few decided results hardly tell.

    Its square is inverse chi-squared (Wilson & Hilferty 1931) with a degree of freedom for each
    model that results rather than the prior hold, and the prior's own.
    """
    a = 2 / (9 * (max(len(known) - float(np.trace(known)) / spread**2, 0.0) + _PRIOR))
    return float(spread * (1 - a + _WIDE * math.sqrt(a)) ** -1.5)


def _both_orders(comparisons: Comparisons) -> tuple[Indices, Floats, Floats]:
    """Seeds seen in both orders: pair (low · m + high) and the two results for the lower model."""
    low, high, result = comparisons.oriented()
    pair = low * len(comparisons.models) + high
    if comparisons.cluster is None:
        return pair[:0], result[:0], result[:0]
    order = np.lexsort((comparisons.cluster, pair))
    pair, seed, result = pair[order], comparisons.cluster[order], result[order]
    again = np.flatnonzero((pair[1:] == pair[:-1]) & (seed[1:] == seed[:-1]))
    return pair[again], result[again], result[again + 1]
