"""The ratings of a full board, estimated from a part of its comparisons.

A full board compares every pair of models on every seed that both have, in both orders; its
Bradley-Terry ratings (`botchat.ratings.bradley_terry`) are what is estimated here. Only a part was
made, perhaps more of some pairs than of others. Each pair's score on the full board is what was
seen of it plus what was not, and that is predicted:

- a pair's expected score is Bradley-Terry's at the models' strengths, drawn towards ½ by the root
  of the share of comparisons that are no ties. (Not drawn at all it would be Bradley-Terry on
  scores, drawn by the whole share a model in which ties fall anywhere; the root leaves a half to a
  fifth of the variance that pairs have about Bradley-Terry on BotChat's published tables.) The
  share is estimated for each pair, shrunk to that of its models;
- a pair is off that by a misfit of its own: a normal error on the logit scale whose spread is
  estimated from the pairs, as in a random-effects meta-analysis. So a pair is shrunk to the
  strengths the more, the less was seen of it;
- outcomes scatter as wins, ties and losses at that score and share do; the two orders of one seed
  are correlated;
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

from botchat.ratings.comparisons import TIE, Comparisons, Floats, Indices
from botchat.ratings.maximum_likelihood import curvature, maximise, score_rate, tables

_MISFITS = np.array([0.0, 0.04, 0.08, 0.12, 0.16, 0.22, 0.3, 0.45, 0.7])
"""Logits; standard deviations of a pair about Bradley-Terry that are weighed against each other."""
_USUAL_MISFIT = 0.15
"""Scale of the half-Cauchy prior on them: BotChat's published tables have about 0.1."""
_USUAL_SPREAD = 0.7
"""Logits; standard deviation of strengths before any comparison, worth `_PRIOR` models."""
_PRIOR = 2.0
_USUAL_AGREEMENT, _PRIOR_AUDITS = 0.3, 10.0
"""Correlation of a seed's two orders before any audit, and how many audits that is worth."""
_OF_ALL, _OF_MODELS = 10.0, 20.0
"""Comparisons that the share decided of all is worth beside a model's own, and that of its models
beside a pair's own."""
_LEAST_DECIDED = 0.02
_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class FullBoard:
    """Estimate of a full board's Bradley-Terry strengths, in logits with mean 0.

    ``strength``: shape (m,). ``covariance``: of what is not known of it, shape (m, m); 0 where the
    board is full. ``misfit``: standard deviation of pairs about Bradley-Terry, in logits.
    ``agreement``: correlation of the two orders of a seed. ``next``: what is expected of the next
    comparison of each pair.
    """

    strength: Floats
    covariance: Floats
    misfit: float
    agreement: float
    next: Next

    @property
    def variance(self) -> Floats:
        """Of the difference of every two models, shape (m, m)."""
        return _differences(self.covariance)


@dataclass(frozen=True, eq=False)
class Next:
    """How the next outcome of a pair (i, j) goes with the strengths on the full board.

    ``variance``: of the outcome. Its covariance with the strengths is (e_i - e_j), as ``common``
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
        form = _laplacian(weight)
        cross = self.by_strength.T @ form @ self.by_pair
        gain = self.common**2 * _differences(self.by_strength.T @ form @ self.by_strength)
        gain += self.own**2 * _differences(self.by_pair.T @ form @ self.by_pair)
        gain += self.common * self.own * _differences(cross + cross.T)
        return np.asarray(gain / self.variance)


def estimate(comparisons: Comparisons, population: Floats) -> FullBoard:
    """Estimate the full board.

    Args:
        comparisons: those made and readable; ``cluster`` numbers their seeds.
        population: comparisons of every two models on the full board, shape (m, m), symmetric;
            it must connect all models.
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

    share = _decided(games, decided)
    strength, spread = np.zeros(m), _USUAL_SPREAD
    for _ in range(_ROUNDS):
        expected, slope, variance = _rates(strength, share)
        around = expected.ravel()[pair]
        agreement = _agreement((one - around) * (other - around), variance.ravel()[pair])
        error = variance * (games + 2 * agreement * doubled)
        error = np.divide(error, games**2, out=np.full_like(error, np.inf), where=seen)
        residual = np.where(seen, rate - expected, 0.0)
        misfit = _misfit(residual, error, slope, strength, spread)
        total = error + (misfit * slope) ** 2
        known, step = _step(residual, total, slope, strength, spread)
        strength = strength + step / max(1.0, np.ptp(step))
        strength = strength - strength.mean()
        moment = float(strength @ strength + np.trace(known))
        spread = math.sqrt((moment + _PRIOR * _USUAL_SPREAD**2) / (m + _PRIOR))

    expected, slope, variance = _rates(strength, share)
    residual = np.where(seen, rate - expected, 0.0)
    own = (misfit * slope) ** 2
    kept = own / (error + own)  # the share of a pair's residual that is no noise
    # The other order of a seed that was seen in one is known in part.
    unseen = np.maximum(population - games - agreement * (games - 2 * doubled), 0)
    filled = population * expected + (population - unseen * (1 - kept)) * residual
    strength = maximise(population[None], filled[None])[0]
    strength = strength - strength.mean()
    flat = np.linalg.inv(curvature(population[None], strength[None], np.array([False]))[0])
    flat = flat - flat.mean(axis=0)
    common, own = (1 - kept) * slope, (1 - kept) * own
    moved = flat @ _laplacian(unseen * common)
    noise = unseen**2 * own + unseen * (1 + agreement) * variance
    return FullBoard(
        strength,
        moved @ known @ moved.T + flat @ _laplacian(noise) @ flat.T,
        misfit,
        agreement,
        Next(
            moved @ known,
            flat,
            common,
            unseen * own + (1 + agreement) * variance,
            common**2 * _differences(known) + own + variance,
        ),
    )


def _laplacian(weight: Floats) -> Floats:
    """Sum over pairs of weight · (e_i - e_j)(e_i - e_j)', of symmetric tables (..., m, m)."""
    return np.asarray(weight.sum(axis=-1)[..., None] * np.eye(weight.shape[-1]) - weight)


def _differences(form: Floats) -> Floats:
    """(e_i - e_j)' form (e_i - e_j) of every two models, shape (m, m)."""
    own = np.diag(form)
    return np.asarray(own[:, None] + own[None, :] - 2 * form)


def _step(
    residual: Floats, total: Floats, slope: Floats, strength: Floats, spread: float
) -> tuple[Floats, Floats]:
    """Posterior covariance of the strengths, shape (..., m, m), and the step to their mean.

    ``total``: variance of each pair's residual, shape (..., m, m).
    """
    precision = _laplacian(slope**2 / total) + np.eye(len(strength)) / spread**2
    known = np.asarray(np.linalg.inv(precision))
    pull = (slope / total * residual).sum(axis=-1) - strength / spread**2
    return known, np.asarray((known @ pull[..., None])[..., 0])


def _decided(games: Floats, decided: Floats) -> Floats:
    """Share of comparisons that are no ties, of each pair, shape (m, m).

    A pair's is shrunk to the product of what its models have in all their pairs.
    """
    of_all = (decided.sum() + 1) / (games.sum() + 1)
    of_model = decided.sum(axis=1) + _OF_ALL * of_all
    of_model /= games.sum(axis=1) + _OF_ALL
    of_models = of_model[:, None] * of_model[None, :] / of_all
    share = (decided + _OF_MODELS * of_models) / (games + _OF_MODELS)
    return np.asarray(np.clip(share, _LEAST_DECIDED, 1))


def _rates(strength: Floats, share: Floats) -> tuple[Floats, Floats, Floats]:
    """Expected score, its slope in the strengths' difference and its variance, shape (m, m)."""
    rate = score_rate(strength[:, None] - strength[None, :])
    root = np.sqrt(share)
    slope = rate * (1 - rate)
    return TIE + root * (rate - TIE), root * slope, share * slope


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
    """Comparisons made on one seed in both orders: pair (low · m + high) and the two outcomes."""
    low, high, outcome = comparisons.oriented()
    pair = low * len(comparisons.models) + high
    if comparisons.cluster is None:
        return pair[:0], outcome[:0], outcome[:0]
    order = np.lexsort((comparisons.cluster, pair))
    pair, seed, outcome = pair[order], comparisons.cluster[order], outcome[order]
    again = np.flatnonzero((pair[1:] == pair[:-1]) & (seed[1:] == seed[:-1]))
    return pair[again], outcome[again], outcome[again + 1]
