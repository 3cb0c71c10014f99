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
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from botchat.errors import ConfigError
from botchat.ratings.comparisons import TIE, Comparisons, Flags, Floats, Indices, distinct

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
        residual = comparisons.result - score_rate(difference)
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

    ``residual``: weighted result minus expectation of each comparison's first model.
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
        draw = _draw_results(pair, scored, settings.tie_weight)
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


def _draw_results(pair: Indices, scored: Floats, tie_weight: float) -> _Draw:
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


_MAX_STEPS = 100
_STEP_TOLERANCE = 1e-10
"""Logits; 2e-8 Elo."""


def weights(comparisons: Comparisons, tie_weight: float) -> Floats:
    """What each comparison counts for: ``tie_weight`` for a tie, else 1. Shape (n,)."""
    return np.where(comparisons.result == TIE, tie_weight, 1.0)


def sums(place: Indices, values: Floats, size: int = 0) -> Floats:
    """Sum of the values at each place 0..size-1, or of as many places as there are."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), dtype=np.float64)


def tables(comparisons: Comparisons, tie_weight: float) -> tuple[Floats, Floats]:
    """Weighted ``games`` and ``score`` of each pair of models, shape (m, m) each."""
    m = len(comparisons.models)
    pair = comparisons.first * m + comparisons.second
    weight = weights(comparisons, tie_weight)
    games = sums(pair, weight, m * m).reshape(m, m)
    won = sums(pair, weight * comparisons.result, m * m).reshape(m, m)
    return games + games.T, won + (games - won).T


def score_rate(difference: Floats) -> Floats:
    """Expected score at a difference in logits, any shape."""
    return 0.5 + 0.5 * np.tanh(0.5 * difference)


def maximise(games: Floats, score: Floats, start: Floats | None = None) -> Floats:
    """Logits of greatest likelihood for a batch of tables, shape (batch, m).

    A table without a finite maximum (`has_maximum`) gets one tie of each model with an average
    one. ``start``: logits to begin with, shape (1, m).
    Newton's steps are damped as for generalised self-concordant functions (Sun & Tran-Dinh 2019):
    one that would change differences by up to d is taken log(1 + d) / d of the way, which always
    ascends.
    """
    batch, m = games.shape[:2]
    ties = ~has_maximum(score)
    theta = np.zeros((batch, m)) if start is None else np.repeat(start, batch, axis=0)
    for _ in range(_MAX_STEPS):
        rate = score_rate(theta[:, :, None] - theta[:, None, :])
        slope = (score - games * rate).sum(axis=2) - ties[:, None] * (score_rate(theta) - 0.5)
        step = np.linalg.solve(curvature(games, theta, ties), slope[:, :, None])[:, :, 0]
        change = np.ptp(step, axis=1)
        theta += (np.log1p(change) / np.maximum(change, 1e-300))[:, None] * step
        if bool((change < _STEP_TOLERANCE).all()):
            break
    return theta


def curvature(games: Floats, theta: Floats, ties: Flags) -> Floats:
    """Minus the Hessian of the log-likelihood, made invertible, shape (batch, m, m).

    ``ties``: tables with the tie that makes a maximum, shape (batch,).
    Logits are free up to a constant: a constant is added that fixes that direction and touches no
    other. The tiny ridge keeps pairs that are all but decided from being singular; it can slow a
    step of Newton's but cannot move where the steps lead.
    """
    m = theta.shape[1]
    rate = score_rate(theta[:, :, None] - theta[:, None, :])
    weight = games * rate * (1 - rate)
    own = score_rate(theta)
    diagonal = weight.sum(axis=2) + ties[:, None] * own * (1 - own)
    level = diagonal.mean(axis=1, keepdims=True)
    matrix = level[:, :, None] / m - weight
    each = np.arange(m)
    matrix[:, each, each] += diagonal + 1e-11 * level
    return np.asarray(matrix)


def has_maximum(score: Floats) -> Flags:
    """Whether each table of a batch has a finite maximum of likelihood, shape (batch,).

    It has one exactly if every model took a point from every other, directly or through a chain
    of models (Ford 1957).
    """
    took = score > 0
    return np.asarray(_reached(took).all(axis=1) & _reached(took.swapaxes(1, 2)).all(axis=1))


def why_no_maximum(models: tuple[str, ...], score: Floats) -> str:
    """One line on why a table, shape (m, m), has no finite maximum, or "" where it has one."""
    if has_maximum(score[None])[0]:
        return ""
    took = score > 0
    kept = "; one tie of each with an average model was added to keep ratings finite"
    group = _reached((took | took.T)[None])[0]
    if not group.all():
        return (
            f"{_named(models, group)} and {_named(models, ~group)} were never compared with each"
            f" other, not even through other models: their ratings do not compare{kept}"
        )
    reach = np.stack([_reached(took[None], model)[0] for model in range(len(models))])
    said = []
    for reaches, what in ((reach, "won"), (reach.T, "lost")):
        # One that reaches all who reach it: nobody outside its circle took a point from it.
        apart = np.flatnonzero((reaches >= reaches.T).all(axis=1))[0]
        group = reach[apart] & reach[:, apart]
        said.append(f"{_named(models, group)} {what} every comparison with the others")
    return f"{' and '.join(said)}: how far apart they are is not known{kept}"


def _reached(edges: Flags, start: int = 0) -> Flags:
    """Which models a chain of edges from ``start`` leads to, shape (batch, m)."""
    reached = np.zeros(edges.shape[:2], dtype=bool)
    reached[:, start] = True
    while True:
        more = reached | (edges & reached[:, :, None]).any(axis=1)
        if (more == reached).all():
            return reached
        reached = more


def _named(models: tuple[str, ...], chosen: Flags, most: int = 5) -> str:
    names = [models[i] for i in np.flatnonzero(chosen)]
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


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
