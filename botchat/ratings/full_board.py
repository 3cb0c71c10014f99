"""Estimate of a full board's ratings from a part of its comparisons.

A full board compares every pair of models on every seed that both have, in both orders. Its
Bradley-Terry ratings are estimated from each pair's score: the seen part, and a prediction of the
unseen part. The fit is linearised; its covariance goes to 0 as the board fills.

- Wins, ties and losses follow Rao & Kupper (1967): a tie where the judge sees a difference below a
  threshold, the sum of one of each model.
- A pair's score deviates by a misfit: normal on the logit scale, its spread estimated as in a
  random-effects meta-analysis. So a pair is shrunk to the strengths more, the less of it was seen.
- The two orders of a seed are correlated; different pairs are independent given the board.
- The strengths have a normal prior whose spread is estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from botchat.ratings.bradley_terry import (
    curvature,
    differences,
    laplacian,
    maximise,
    score_rate,
    sums,
    tables,
)
from botchat.ratings.comparisons import Comparisons, distinct
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
_MOST_WAYS, _EXACT = 2, 1e-30
"""Directions that a system of m equations is searched in; the square of what is left then."""
_WEIGHTLESS = 100.0
"""Of a candidate's doubled log-likelihood below the best: its weight adds nothing."""
_ROUNDS, _CLOSE = 50, 3e-3
"""Most iterations, and the step in logits that ends them: half an Elo point."""
_ENOUGH = 1e-5
"""The step in logits that ends the fit of the full board: it leaves an error of 1e-10."""


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

    Its covariance with the strengths is (``common`` · ``flat`` · ``shared`` + ``own`` · ``flat``)
    (e_i - e_j): shared with the models' other pairs, and the pair's own. All shapes (m, m).
    """

    flat: Floats
    shared: Floats
    common: Floats
    own: Floats
    variance: Floats

    def gains(self, weight: Floats) -> Floats:
        """How much one comparison of each pair would lower the weighted sum of variances.

        ``weight``: of the variance of each difference of two models, symmetric, shape (m, m).
        """
        form = self.flat.T @ laplacian(weight) @ self.flat
        cross = self.shared.T @ form
        gain = self.own**2 * differences(form)
        del form
        gain += self.common**2 * differences(cross @ self.shared)
        gain += self.common * self.own * differences(cross + cross.T)
        return np.asarray(gain / self.variance)


class SeenPairs(NamedTuple):
    """Pairs that were compared, ``low`` < ``high``, shape (pairs,) each.

    ``games``: how often. ``rate``: the score of ``low``. ``ties``: their number. ``doubled``: seeds
    in both orders.
    """

    low: Indices
    high: Indices
    games: Floats
    rate: Floats
    ties: Floats
    doubled: Floats

    def table(self, values: Floats, m: int) -> Floats:
        """Values of the pairs as a symmetric table, shape (m, m), 0 elsewhere."""
        filled = np.zeros((m, m))
        filled[self.low, self.high] = filled[self.high, self.low] = values
        return filled

    def sums(self, values: Floats, m: int, sign: float = 1.0) -> Floats:
        """Of each model's pairs, shape (m,); ``sign``: of those in which it is ``high``."""
        return sums(self.low, values, m) + sign * sums(self.high, values, m)


def estimate(
    comparisons: Comparisons, population: Floats, start: Latent | None = None
) -> FullBoard:
    """Estimate the full board from readable comparisons, whose ``cluster`` numbers the seeds.

    ``population``: comparisons of every two models on the full board, shape (m, m), symmetric; it
    must connect all models. ``start``: the estimate from fewer comparisons, for speed.
    """
    m, (first, second, won) = len(comparisons.models), comparisons.oriented()
    pairs, place = distinct(first * m + second)
    low, high = pairs // m, pairs % m
    pair, one, other = _both_orders(comparisons)
    pair = np.searchsorted(pairs, pair)
    n, ties = sums(place, np.ones(len(place))), sums(place, won == TIE)
    doubled = sums(pair, np.ones(len(pair)), len(n))
    seen = SeenPairs(low, high, n, sums(place, won) / n, ties, doubled)
    games = seen.table(n, m)
    population = np.maximum(population, games)

    strength, threshold, spread, misfit = start or _first_guess(
        games, tables(comparisons, 1.0)[1], seen, population
    )
    for _ in range(_ROUNDS):
        threshold = _thresholds(threshold, strength, seen)
        expected, slope, variance = _rates(*_apart(strength, threshold, low, high))
        around = expected[pair]
        agreement = _agreement((one - around) * (other - around), variance[pair])
        error = variance * (n + 2 * agreement * seen.doubled) / n**2
        residual = seen.rate - expected
        root, step = _step(residual, error + (misfit * slope) ** 2, slope, strength, spread, seen)
        strength = strength + step / max(1.0, np.ptp(step) / _LONGEST_STEP)
        strength = strength - strength.mean()
        moment = float(strength @ strength + (root**2).sum())
        spread = math.sqrt((moment + _PRIOR * _USUAL_SPREAD**2) / (m + _PRIOR))
        if np.ptp(step) < _CLOSE:
            break
    # Estimated once: it takes many factors of matrices and changes strengths little.
    misfit = _misfit(residual, error, slope, strength, spread, seen)
    total = error + (misfit * slope) ** 2
    root, step = _step(
        residual, total, slope, strength, _cautious(spread, float((root**2).sum()), m), seen
    )
    strength = strength + step
    latent = Latent(strength, threshold, spread, misfit)
    return _whole(population, games, root.T @ root, agreement, error, latent, seen)


def _whole(
    population: Floats,
    games: Floats,
    known: Floats,
    agreement: float,
    error: Floats,
    latent: Latent,
    seen: SeenPairs,
) -> FullBoard:
    """The full board of what is ``known``, the strengths' covariance; ``error``: of seen pairs."""
    m, (low, high) = len(games), seen[:2]
    strength, threshold, _, misfit = latent
    expected, slope, variance = _rates(*_apart(strength, threshold, np.s_[:, None], np.s_[None]))
    residual = seen.rate - expected[low, high]
    own = (misfit * slope) ** 2
    # Share of a pair's residual that is noise.
    noise = seen.table(-own[low, high] / (error + own[low, high]), m) + 1
    # The unseen order of a seed that was seen in the other is partly known.
    unseen = population - games - agreement * (games - 2 * seen.table(seen.doubled, m))
    unseen = np.maximum(unseen, 0)
    filled = population * expected
    residual *= (population - unseen * noise)[low, high]
    filled[low, high] += residual
    filled[high, low] -= residual
    strength = maximise(population[None], filled[None], strength[None], enough=_ENOUGH)[0]
    strength = strength - strength.mean()
    curved = curvature(population[None], strength[None], np.array([False]))[0]
    del expected, filled, residual
    try:
        np.linalg.cholesky(curved - 1e-9 * np.eye(m))
    except np.linalg.LinAlgError:  # models so far apart that nothing tells how far
        curved = curved + 1e-9 * np.eye(m)
    root = _root(curved)
    flat = root.T @ root
    common, own = noise * slope, noise * own
    moved = laplacian(unseen * common)
    shared = moved @ known
    more = unseen * own + (1 + agreement) * variance
    within = shared @ moved + laplacian(unseen * more)
    covariance = flat @ within @ flat.T
    del moved, noise, slope, curved, root, within
    once = common**2 * differences(known) + own + variance
    return FullBoard(
        strength, covariance, agreement, Next(flat, shared, common, more, once), latent
    )


def by_other_seeds(board: FullBoard, comparisons: Comparisons, population: Floats) -> Floats:
    """Covariance of the full board's own strengths about those on other seeds, shape (m, m).

    How much of a model's dialogue on a seed all of its comparisons there share is seen from the
    products of residuals of its different pairs; what a pair has of its own, from its variance and
    the agreement of its two orders. Added to `FullBoard.covariance` it is the error of the estimate
    on other seeds. Arguments as of `estimate`.
    """
    m, (low, high, won) = len(comparisons.models), comparisons.oriented()
    threshold = board.latent.threshold
    rates = _rates(*_apart(board.latent.strength, threshold, np.s_[:, None], np.s_[None]))
    expected, slope, variance = rates
    assert comparisons.cluster is not None
    n = int(comparisons.cluster.max(initial=0)) + 1
    pairs, pair = distinct((low * m + high) * n + comparisons.cluster)
    residual, bend = sums(pair, won - expected[low, high]), sums(pair, slope[low, high])
    of_low, of_high = (side * n + pairs % n for side in (pairs // n // m, pairs // n % m))
    products = []
    for one, sign in ((residual, -1.0), (bend, 1.0)):
        of_model = sums(of_low, one, m * n) + sign * sums(of_high, one, m * n)
        products.append(float(of_model @ of_model) - 2 * float(one @ one))
    shared = max(products[0] / products[1], 0.0) if products[1] > 0 else 0.0
    seeds = np.maximum(population.max(axis=1) / 2, 1)
    flat, agreement = board.next.flat, board.agreement
    own = np.maximum(variance * (1 + agreement) / 2 - 2 * slope**2 * shared,
                     variance * (1 - agreement) / 2)  # fmt: skip
    moved = flat @ laplacian(population * slope) * np.sqrt(shared / seeds)
    return np.asarray(moved @ moved.T + flat @ laplacian(2 * population * own) @ flat.T)


def _step(
    residual: Floats, total: Floats, slope: Floats, strength: Floats, spread: float, seen: SeenPairs
) -> tuple[Floats, Floats]:
    """Root of the strengths' posterior covariance (root' · root), and the step to their mean.

    ``total``: variance of each pair's residual.
    """
    precision, pull = _posterior(residual, total, slope, strength, spread, seen)
    root = _root(precision)
    return root, root.T @ (root @ pull)


def _posterior(
    residual: Floats, total: Floats, slope: Floats, strength: Floats, spread: float, seen: SeenPairs
) -> tuple[Floats, Floats]:
    """Precision of the strengths, shape (m, m), and what pulls at them, shape (m,)."""
    m, weight = len(strength), slope**2 / total
    precision = seen.table(-weight, m)
    np.fill_diagonal(precision, seen.sums(weight, m) + 1 / spread**2)
    pull = seen.sums(slope / total * residual, m, -1.0) - strength / spread**2
    return precision, pull


def _root(matrix: Floats) -> Floats:
    """Lower triangular root of the inverse (root' · root) of a positive definite one."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(matrix)))


def _first_guess(games: Floats, score: Floats, seen: SeenPairs, population: Floats) -> Latent:
    """Bradley-Terry on scores; the threshold at which equal models tie as often as all did."""
    one = _A_TIE * (population > 0)
    share = (2 * seen.ties.sum() + _USUAL_TIES) / (2 * seen.games.sum() + 1)
    return Latent(
        maximise((games + 2 * one)[None], (score + one)[None])[0],
        np.full(len(games), np.arctanh(min(share, _MOST_TIES))),
        _USUAL_SPREAD,
        _USUAL_MISFIT,
    )


def _thresholds(threshold: Floats, strength: Floats, seen: SeenPairs) -> Floats:
    """Thresholds of the models, shape (m,), after one scoring step towards the ties they had."""
    m, (apart, both) = len(strength), _apart(strength, threshold, seen.low, seen.high)
    rate = np.sinh(both) / (np.cosh(apart) + np.cosh(both))
    slope = (np.cosh(apart) * np.cosh(both) + 1) / (np.cosh(apart) + np.cosh(both)) ** 2
    weight = seen.games * slope**2 / (rate * (1 - rate))
    pull = seen.sums(slope * (seen.ties - seen.games * rate) / (rate * (1 - rate)), m)
    usual = threshold.mean()
    prior = 1 / _THRESHOLD_SPREAD**2
    step = _solved(seen, weight, seen.sums(weight, m) + prior, pull - prior * (threshold - usual))
    return np.asarray(threshold + np.clip(step, -1, 1))


def _solved(seen: SeenPairs, weight: Floats, own: Floats, wanted: Floats) -> Floats:
    """Solution of a system with ``own`` on its diagonal and each pair's ``weight`` beside it.

    By conjugate gradients (Hestenes & Stiefel 1952): few of many pairs were compared.
    """
    m, found, left = len(own), np.zeros_like(wanted), wanted
    way = near = wanted / own
    size = start = float(left @ near)
    for _ in range(_MOST_WAYS * m):
        if size <= start * _EXACT:
            break
        moved = own * way + sums(seen.low, weight * way[seen.high], m)
        moved += sums(seen.high, weight * way[seen.low], m)
        length = size / float(way @ moved)
        found, left = found + length * way, left - length * moved
        near, before = left / own, size
        size = float(left @ near)
        way = near + size / before * way
    return found


def _apart(strength: Floats, threshold: Floats, one: Any, other: Any) -> tuple[Floats, Floats]:
    """Of pairs, as two indices: differences of strength, and thresholds (Rao & Kupper 1967)."""
    both = np.maximum(threshold[one] + threshold[other], _LEAST_THRESHOLD)
    return strength[one] - strength[other], both


def _rates(apart: Floats, both: Floats) -> tuple[Floats, Floats, Floats]:
    """Expected score of pairs, its slope in the strengths and its variance, any shape.

    By the models' thresholds only. A pair that is further apart than its models' strengths ties
    less: were its own ties to set what is expected of it, they would explain its misfit away.
    """
    both = np.minimum(both, 2 * math.atanh(_MOST_TIES))
    won, lost = score_rate(apart - both), score_rate(-apart - both)
    slope = (won * (1 - won) + lost * (1 - lost)) / 2
    return TIE + (won - lost) / 2, slope, (won + lost - (won - lost) ** 2) / 4


def _agreement(products: Floats, variance: Floats) -> float:
    """Correlation of the two orders of a seed, from products of residuals and their variances."""
    usual = _PRIOR_AUDITS * (float(variance.mean()) if len(variance) else 1.0)
    raw = (products.sum() + usual * _USUAL_AGREEMENT) / (variance.sum() + usual)
    return float(np.clip(raw, 0, 1))


def _misfit(
    residual: Floats, error: Floats, slope: Floats, strength: Floats, spread: float, seen: SeenPairs
) -> float:
    """The `_CAUTION` quantile of `_MISFITS`, weighted by restricted likelihood and prior.

    The prior rises from 0 as Chung et al. (2013) advise, since of few comparisons the likelihood is
    often highest at no misfit at all, and falls as a half-Cauchy does.
    """
    likelihood, m = np.full(len(_MISFITS), -np.inf), len(strength)
    for k, misfit in enumerate(_MISFITS[1:], 1):  # the prior of 0 is 0
        total = error + (misfit * slope) ** 2
        precision, pull = _posterior(residual, total, slope, strength, spread, seen)
        squares = (residual**2 / total).sum() + strength @ strength / spread**2
        # The last row of the factor is the root of what the best step takes off the squares.
        bordered = np.block([[precision, pull[:, None]], [pull[None], np.array([[squares + 1]])]])
        factor = np.linalg.cholesky(bordered)
        left = squares - factor[m, :m] @ factor[m, :m]
        determinant = 2 * np.log(np.diag(factor)[:m]).sum()
        likelihood[k] = -determinant - np.log(total).sum() - left
        if likelihood[k] < likelihood.max() - _WEIGHTLESS:
            break
    weight = np.exp((likelihood - likelihood.max()) / 2)
    weight *= np.gradient(_MISFITS) * _MISFITS / (1 + (_MISFITS / _USUAL_MISFIT) ** 2) ** 1.5
    # Each candidate stands for the values up to the middle to the next.
    edges = np.concatenate([[0.0], (_MISFITS[1:] + _MISFITS[:-1]) / 2, _MISFITS[-1:]])
    below = np.concatenate([[0.0], np.cumsum(weight)])
    return float(np.interp(_CAUTION, below / below[-1], edges))


def _cautious(spread: float, trace: float, m: int) -> float:
    """The .975 quantile of the strengths' spread, which few decided results hardly tell.

    Its square is inverse chi-squared (Wilson & Hilferty 1931) with a degree of freedom for each of
    m models that results rather than the prior hold, and the prior's own. ``trace``: of the
    covariance of the strengths.
    """
    a = 2 / (9 * (max(m - trace / spread**2, 0.0) + _PRIOR))
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
