"""Bradley-Terry on scores: the ranking with error bars.

Model i scores against model j at the rate 1 / (1 + 10^((r_j - r_i) / 400)); a win scores 1, a tie
½ (Bradley & Terry 1952; a tie as half a win is what BotChat's Elo does, Appendix A).

The same ChatSEEDs serve every pair of models, so comparisons are not independent: intervals come
from a sandwich whose middle adds up each seed's contributions first. On real data that widens
variances 1.2 to 3 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from botchat.errors import ConfigError
from botchat.ratings.comparisons import Comparisons, Floats, Indices, distinct
from botchat.ratings.maximum_likelihood import (
    curvature,
    has_maximum,
    maximise,
    score_rate,
    sums,
    tables,
    weights,
    why_no_maximum,
)

_BATCH = 1 << 20
"""Numbers in one batch of pair tables (8 MB); fitting them takes ten times that."""


@dataclass(frozen=True)
class BradleyTerrySettings:
    """How Bradley-Terry ratings are fitted and reported.

    ``mean``, ``scale``: of the ratings, as Elo's. ``tie_weight``: comparisons that a tie counts
    for, each scored ½: 1 is a tie as half a win, 0 drops ties, 2 gives both models a win.
    ``confidence``: of the intervals. ``resamples``, ``seed``: of the bootstrap.
    Raises `ConfigError` for values that define no rating.
    """

    mean: float = 1000.0
    scale: float = 400.0
    tie_weight: float = 1.0
    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        if not math.isfinite(self.mean):
            raise ConfigError(f"Bradley-Terry mean {self.mean}: give a finite rating such as 1000")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ConfigError(f"Bradley-Terry scale {self.scale}: give a number above 0")
        if not (math.isfinite(self.tie_weight) and self.tie_weight >= 0):
            raise ConfigError(f"tie weight {self.tie_weight}: give 0 or more")
        if not 0 < self.confidence < 1:
            raise ConfigError(f"confidence {self.confidence}: give a number between 0 and 1")
        for name, least in (("resamples", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} {getattr(self, name)}: give at least {least}")

    @property
    def elo(self) -> float:
        """Rating points in one logit."""
        return self.scale / math.log(10)


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    """Bradley-Terry ratings of m models, with the settings they were made with.

    ``rating``: shape (m,), average ``settings.mean``.
    ``covariance``: of the ratings, clustered by seed where seeds are known (``n_clusters`` is
    then set), shape (m, m). ``unclustered``: the same as if comparisons were independent.
    ``rank``: 1 + the number of models that are better with an interval of the *difference* above
    0; models of one rank are a group. Shape (m,).
    ``warning``: what these comparisons cannot tell, one line; "" where there is nothing to say.
    """

    settings: BradleyTerrySettings
    models: tuple[str, ...]
    rating: Floats
    covariance: Floats
    unclustered: Floats
    rank: Indices
    n_comparisons: int
    n_clusters: int | None
    warning: str

    @property
    def std_error(self) -> Floats:
        """Standard error of each rating, shape (m,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    @property
    def low(self) -> Floats:
        """Lower end of each rating's interval, shape (m,)."""
        return self.rating - quantile(self.settings, self.n_clusters) * self.std_error

    @property
    def high(self) -> Floats:
        """Upper end of each rating's interval, shape (m,)."""
        return self.rating + quantile(self.settings, self.n_clusters) * self.std_error


def fit(
    comparisons: Comparisons, settings: BradleyTerrySettings | None = None
) -> BradleyTerryResult:
    """Maximum-likelihood Bradley-Terry ratings with a sandwich covariance.

    Where no finite maximum exists (models never compared, directly or through others; models that
    won or lost everything) every model is given one tie with an average model, intervals come from
    the curvature alone, and ``warning`` says so.
    Raises `MissingError` if there is no comparison.
    """
    settings = settings or BradleyTerrySettings()
    comparisons.need_some()
    games, score = (table[None] for table in tables(comparisons, settings.tie_weight))
    theta = maximise(games, score)
    bread = np.linalg.inv(curvature(games, theta, ~has_maximum(score))[0])
    warning = why_no_maximum(comparisons.models, score[0])
    n_clusters = None
    if warning:
        # The scatter around a fit that explains everything is 0; that is no certainty.
        independent = clustered = _centred(bread)
    else:
        difference = theta[0, comparisons.first] - theta[0, comparisons.second]
        residual = comparisons.outcome - score_rate(difference)
        residual = residual * weights(comparisons, settings.tie_weight)
        independent = _centred(bread @ _independent(comparisons, residual) @ bread)
        clustered = independent
        if comparisons.cluster is not None:
            by_seed = scores_by_cluster(comparisons, comparisons.cluster, residual)
            if len(by_seed) > 1:
                n_clusters = len(by_seed)
                middle = by_seed.T @ by_seed * (n_clusters / (n_clusters - 1))
                clustered = _centred(bread @ middle @ bread)
            else:
                warning = "all comparisons are on one seed: intervals take them as independent"
    rating = settings.mean + settings.elo * _centred_rows(theta)[0]
    covariance = settings.elo**2 * clustered
    return BradleyTerryResult(
        settings,
        comparisons.models,
        rating,
        covariance,
        settings.elo**2 * independent,
        ranks(rating, covariance, quantile(settings, n_clusters)),
        n_comparisons=len(comparisons),
        n_clusters=n_clusters,
        warning=warning,
    )


def bootstrap(comparisons: Comparisons, settings: BradleyTerrySettings | None = None) -> Floats:
    """Ratings refitted to resampled seeds (to resampled comparisons where seeds are not known).

    Returns shape (resamples, m); its percentiles check the sandwich's intervals. Resamples without
    a finite maximum are fitted as `fit` does it. Takes 16 bytes for each seed and pair.
    Raises `MissingError` if there is no comparison.
    """
    settings = settings or BradleyTerrySettings()
    comparisons.need_some()
    games, score = tables(comparisons, settings.tie_weight)
    start = maximise(games[None], score[None])
    theta = [maximise(*batch, start) for batch in _resampled(comparisons, settings)]
    return settings.mean + settings.elo * _centred_rows(np.concatenate(theta))


def scores_by_cluster(comparisons: Comparisons, cluster: Indices, residual: Floats) -> Floats:
    """Slope of the log-likelihood that each cluster contributes, shape (clusters, m).

    ``residual``: weighted outcome minus expectation of each comparison's first model.
    """
    m = len(comparisons.models)
    labels, cluster = distinct(cluster)
    size = len(labels) * m
    gained = sums(cluster * m + comparisons.first, residual, size)
    lost = sums(cluster * m + comparisons.second, residual, size)
    return (gained - lost).reshape(len(labels), m)


def _independent(comparisons: Comparisons, residual: Floats) -> Floats:
    """Sum over comparisons of the outer product of their slopes, shape (m, m)."""
    m = len(comparisons.models)
    pair = comparisons.first * m + comparisons.second
    squares = sums(pair, residual**2, m * m).reshape(m, m)
    squares = squares + squares.T
    return np.asarray(np.diag(squares.sum(axis=1)) - squares)


def _centred_rows(theta: Floats) -> Floats:
    return np.asarray(theta - theta.mean(axis=1, keepdims=True))


def _centred(covariance: Floats) -> Floats:
    """Covariance of deviations from the mean rating."""
    return _centred_rows(covariance - covariance.mean(axis=0))


def quantile(settings: BradleyTerrySettings, n_clusters: int | None) -> float:
    """Half an interval's width in standard errors: normal, or Student's t for a number of seeds."""
    z = NormalDist().inv_cdf(0.5 + settings.confidence / 2)
    if n_clusters is None:
        return z
    # Student's t from the normal quantile (Abramowitz & Stegun 26.7.5).
    freedom = n_clusters - 1
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, 1)))


def ranks(rating: Floats, covariance: Floats, width: float) -> Indices:
    """1 + how many models are better by more than ``width`` standard errors of the difference."""
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 0))
    better = rating[None, :] - rating[:, None] > width * spread
    return np.asarray(1 + better.sum(axis=1), dtype=np.intp)


def _resampled(
    comparisons: Comparisons, settings: BradleyTerrySettings
) -> Iterator[tuple[Floats, Floats]]:
    """Batches of resampled tables: games and score, shape (batch, m, m) each."""
    m = len(comparisons.models)
    low, high, scored = comparisons.oriented()
    pairs, pair = distinct(low * m + high)
    low, high = pairs // m, pairs % m
    weight = weights(comparisons, settings.tie_weight)
    if comparisons.cluster is None:
        draw = _draw_outcomes(pair, scored, settings.tie_weight)
    else:
        draw = _draw_seeds(pair, comparisons.cluster, weight, weight * scored)
    rng = np.random.default_rng(settings.seed)
    batch = max(1, _BATCH // (m * m))
    for begin in range(0, settings.resamples, batch):
        played, won = draw(rng, min(batch, settings.resamples - begin))
        games, score = np.zeros((2, len(played), m, m))
        games[:, low, high] = games[:, high, low] = played
        score[:, low, high], score[:, high, low] = won, played - won
        yield games, score


_Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""Draws a number of resamples: weighted games and score of each pair, shape (resamples, pairs)."""


def _draw_outcomes(pair: Indices, scored: Floats, tie_weight: float) -> _Draw:
    """Resample comparisons; only the counts of a pair's losses, ties and wins matter."""
    counts = np.bincount(3 * pair + (2 * scored).astype(np.intp), minlength=3 * (pair.max() + 1))

    def draw(rng: np.random.Generator, rows: int) -> tuple[Floats, Floats]:
        drawn = rng.multinomial(len(pair), counts / len(pair), size=rows).reshape(rows, -1, 3)
        loss, tie, win = np.moveaxis(drawn, -1, 0)
        return np.asarray(loss + tie_weight * tie + win), np.asarray(tie_weight / 2 * tie + win)

    return draw


def _draw_seeds(pair: Indices, seed: Indices, weight: Floats, won: Floats) -> _Draw:
    """Resample seeds, each with all its comparisons."""
    seeds, seed = distinct(seed)
    n, n_pairs = len(seeds), pair.max() + 1
    place = seed * n_pairs + pair
    games, score = (sums(place, values, n * n_pairs).reshape(n, -1) for values in (weight, won))

    def draw(rng: np.random.Generator, rows: int) -> tuple[Floats, Floats]:
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=rows).astype(np.float64)
        return drawn @ games, drawn @ score

    return draw
