"""Bradley-Terry ratings with intervals.

Model i scores against model j at the rate 1 / (1 + 10^((r_j - r_i) / 400)); a win scores 1, a tie
½ (Bradley & Terry 1952; BotChat, Appendix A). Comparisons on one ChatSEED are not independent:
intervals come from a sandwich estimator clustered by seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from botchat.metrics.statistics import student_t
from botchat.ratings.comparisons import Comparisons, check, distinct
from botchat.ratings.places import clearly_better, left_open
from botchat.verdicts import TIE, Flags, Floats, Indices

UNSEEN = 4
MAX_STEPS, STEP_TOLERANCE = 100, 1e-10
"""Of Newton's method; the tolerance in logits is 2e-8 Elo."""


@dataclass(frozen=True)
class BradleyTerrySettings:
    """How Bradley-Terry ratings are fitted; `ConfigError` for values out of range.

    ``mean``, ``scale``: as Elo's. ``tie_weight``: comparisons scored ½ that a tie counts for: 1
    makes it half a win, 0 drops it, 2 gives both models a win. ``confidence``: of the intervals.
    """

    mean: float = 1000.0
    scale: float = 400.0
    tie_weight: float = 1.0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check ranges."""
        finite, confidence = math.isfinite, self.confidence
        check(
            ("Bradley-Terry mean", self.mean, finite(self.mean), "a finite rating such as 1000"),
            ("Bradley-Terry scale", self.scale, 0 < self.scale < math.inf, "a number above 0"),
            ("tie weight", self.tie_weight, 0 <= self.tie_weight < math.inf, "0 or more"),
            ("confidence", confidence, 0 < confidence < 1, "a number between 0 and 1"),
        )

    @property
    def elo(self) -> float:
        """Rating points in one logit."""
        return self.scale / math.log(10)


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    """Bradley-Terry ratings of m models.

    ``rating``: shape (m,), average ``settings.mean``. ``covariance``: shape (m, m), clustered by
    the ``n_clusters`` seeds where at least two are known. ``warning``: what these comparisons
    cannot tell, one line or "".
    """

    settings: BradleyTerrySettings
    models: tuple[str, ...]
    rating: Floats
    covariance: Floats
    n_comparisons: int
    n_clusters: int | None
    warning: str

    @property
    def logits(self) -> Floats:
        """The ratings as log-odds, with mean 0, shape (m,)."""
        return np.asarray((self.rating - self.settings.mean) / self.settings.elo)

    @property
    def std_error(self) -> Floats:
        """Standard error of each rating, shape (m,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    @property
    def width(self) -> float:
        """Half an interval's width in standard errors: normal, or Student's t with clusters."""
        if self.n_clusters is None:
            return NormalDist().inv_cdf(0.5 + self.settings.confidence / 2)
        return student_t(self.settings.confidence, self.n_clusters - 1)

    @property
    def low(self) -> Floats:
        """Lower end of each rating's interval, shape (m,)."""
        return self.rating - self.width * self.std_error

    @property
    def high(self) -> Floats:
        """Upper end of each rating's interval, shape (m,)."""
        return self.rating + self.width * self.std_error

    @cached_property
    def clearly_better(self) -> Flags:
        """Whether the model of the row is clearly better than that of the column, shape (m, m)."""
        freedom = None if self.n_clusters is None else self.n_clusters - 1
        return clearly_better(self.rating, self.covariance, freedom, self.settings.confidence)

    @property
    def places(self) -> tuple[Indices, Indices]:
        """First and last place that each model may have, shape (m,) each: see `ratings.places`."""
        return left_open(self.clearly_better)

    @property
    def rank(self) -> Indices:
        """1 + the number of models that are clearly better, shape (m,): the first of `places`."""
        return self.places[0]


def fit(
    comparisons: Comparisons, settings: BradleyTerrySettings | None = None
) -> BradleyTerryResult:
    """Maximum-likelihood ratings; `MissingDataError` if there is no comparison.

    Without a finite maximum (`has_maximum`) every model gets one tie with an average one, intervals
    come from the curvature alone, and ``warning`` says so.
    """
    settings = settings or BradleyTerrySettings()
    comparisons.need_some()
    games, score = tables(comparisons, settings.tie_weight)
    theta = maximise(games[None], score[None])
    bread = _bread(comparisons, settings.tie_weight, theta[0])
    warning = why_no_maximum(comparisons.models, score)
    n_clusters = None
    if warning:
        # Residuals of a fit that explains everything are 0, which does not make it certain.
        covariance = bread
    else:
        residual = _residual(comparisons, settings.tie_weight, theta[0])
        middle, n = clustered(comparisons, residual)
        if middle is not None:
            n_clusters = n
        else:
            squares = pair_sums(comparisons, residual**2)
            middle = laplacian(squares + squares.T)
            if n == 1:
                warning = "all comparisons are on one seed: intervals take them as independent"
        middle = middle + laplacian(_unseen(comparisons, settings, theta[0], n_clusters))
        covariance = bread @ middle @ bread
    return BradleyTerryResult(
        settings,
        comparisons.models,
        settings.mean + settings.elo * _centred_rows(theta)[0],
        settings.elo**2 * _centred_rows(covariance - covariance.mean(axis=0)),
        n_comparisons=len(comparisons),
        n_clusters=n_clusters,
        warning=warning,
    )


def _residual(comparisons: Comparisons, tie_weight: float, theta: Floats) -> Floats:
    """Result less expectation of each comparison, times its weight, shape (n,)."""
    expected = score_rate(theta[comparisons.first] - theta[comparisons.second])
    return (comparisons.result - expected) * weights(comparisons, tie_weight)


def _bread(comparisons: Comparisons, tie_weight: float, theta: Floats) -> Floats:
    """The inverse of the `curvature` at some logits, shape (m, m)."""
    games, score = (table[None] for table in tables(comparisons, tie_weight))
    return np.asarray(np.linalg.inv(curvature(games, theta[None], ~has_maximum(score))[0]))


def _unseen(
    comparisons: Comparisons, settings: BradleyTerrySettings, theta: Floats, n_clusters: int | None
) -> Floats:
    """What the variance of each pair's score lacks to be that of `UNSEEN` units, shape (m, m).

    A unit is a seed with all its verdicts on the pair alike, or one comparison where
    these are not known. Verdicts that are all ties, or one win for
    each order, do not vary, which does not make them certain: so many seeds with another result may
    still go unseen (Wilson's z² cases).
    """
    m = len(comparisons.models)
    low, high, scored = comparisons.oriented()
    weight = weights(comparisons, settings.tie_weight)
    expected = score_rate(theta[low] - theta[high])
    cluster = comparisons.cluster if n_clusters else None
    unit = np.arange(len(low)) if cluster is None else cluster
    cells, cell = distinct((unit * m + low) * m + high)
    pair = cells % (m * m)
    apart, shown = sums(cell, weight * (scored - expected)), sums(cell, weight)
    seen, units = sums(pair, apart**2, m * m), sums(pair, np.ones(len(pair)), m * m)
    chance = np.zeros(m * m)
    chance[low * m + high] = expected * (1 - expected)
    wanted = chance * sums(pair, shown**2, m * m) * np.minimum(1, UNSEEN / np.maximum(units, 1))
    lacking = np.where(wanted > seen * (1 + 1e-9), wanted - seen, 0).reshape(m, m)
    return np.asarray(lacking + lacking.T)


def clustered(
    comparisons: Comparisons, residual: Floats, style: Floats | None = None
) -> tuple[Floats | None, int]:
    """Variance of the slope of the log-likelihood as clusters show it, and how many there are.

    Shape (m + k, m + k), ``None`` of fewer than two clusters. Arguments as of `scores_by_cluster`.
    """
    by = scores_by_cluster(comparisons, residual, style)
    n = len(by)
    return (None if n < 2 else np.asarray(by.T @ by * (n / (n - 1)))), n


def scores_by_cluster(
    comparisons: Comparisons,
    residual: Floats,
    style: Floats | None = None,
) -> Floats:
    """What each known seed contributes to the slope of the log-likelihood, shape (seeds, m + k).

    ``residual``: (result less expectation) times weight. ``style``: regressors, shape (n, k).
    """
    m, features = len(comparisons.models), [] if style is None else list(style.T)
    if comparisons.cluster is None:
        return np.empty((0, m + len(features)))
    labels, cluster = distinct(comparisons.cluster)
    n = len(labels)
    gained = sums(cluster * m + comparisons.first, residual, n * m)
    lost = sums(cluster * m + comparisons.second, residual, n * m)
    by_feature = (sums(cluster, residual * feature, n) for feature in features)
    return np.column_stack([(gained - lost).reshape(n, m), *by_feature])


def _centred_rows(theta: Floats) -> Floats:
    return np.asarray(theta - theta.mean(axis=1, keepdims=True))


def weights(comparisons: Comparisons, tie_weight: float) -> Floats:
    """What each comparison counts for: ``tie_weight`` for a tie, else 1. Shape (n,)."""
    return np.where(comparisons.result == TIE, tie_weight, 1.0)


def sums(place: Indices, values: Floats, size: int = 0) -> Floats:
    """Sum of the values at each place, shape (max(size, largest place + 1),)."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), dtype=np.float64)


def laplacian(weight: Floats) -> Floats:
    """Sum over pairs of weight · (e_i - e_j)(e_i - e_j)', of symmetric tables (..., m, m)."""
    return np.asarray(weight.sum(axis=-1)[..., None] * np.eye(weight.shape[-1]) - weight)


def differences(covariance: Floats) -> Floats:
    """Variance of the difference of every two models, shape (m, m)."""
    own = np.diag(covariance)
    return np.asarray(own[:, None] + own[None, :] - 2 * covariance)


def pair_sums(comparisons: Comparisons, values: Floats) -> Floats:
    """Sum of the values over the comparisons of each ordered pair, shape (m, m)."""
    m = len(comparisons.models)
    return sums(comparisons.first * m + comparisons.second, values, m * m).reshape(m, m)


def tables(comparisons: Comparisons, tie_weight: float) -> tuple[Floats, Floats]:
    """Weighted ``games`` and ``score`` of each pair of models, shape (m, m) each."""
    weight = weights(comparisons, tie_weight)
    games = pair_sums(comparisons, weight)
    won = pair_sums(comparisons, weight * comparisons.result)
    return games + games.T, won + (games - won).T


def score_rate(difference: Floats) -> Floats:
    """Expected score at a difference in logits, any shape."""
    return 0.5 + 0.5 * np.tanh(0.5 * difference)


def maximise(
    games: Floats, score: Floats, start: Floats | None = None, *, enough: float = STEP_TOLERANCE
) -> Floats:
    """Logits of greatest likelihood for a batch of tables, with ties as in `fit`, shape (batch, m).

    ``start``: first logits, shape (1, m). A Newton step that changes differences by up to d is
    multiplied by log(1 + d) / d, and always ascends (Sun & Tran-Dinh 2019). ``enough``:
    the d that ends it, which leaves an error of about its square.
    """
    batch, m = games.shape[:2]
    ties = ~has_maximum(score)
    theta = np.zeros((batch, m)) if start is None else np.repeat(start, batch, axis=0)
    for _ in range(MAX_STEPS):
        rate = score_rate(theta[:, :, None] - theta[:, None, :])
        slope = (score - games * rate).sum(axis=2) - ties[:, None] * (score_rate(theta) - 0.5)
        step = np.linalg.solve(_curved(games, rate, theta, ties), slope[:, :, None])[:, :, 0]
        change = np.ptp(step, axis=1)
        theta += (np.log1p(change) / np.maximum(change, 1e-300))[:, None] * step
        if bool((change < enough).all()):
            break
    return theta


def curvature(games: Floats, theta: Floats, ties: Flags) -> Floats:
    """Minus the Hessian of the log-likelihood, made invertible, shape (batch, m, m).

    ``ties``: which tables got ties, shape (batch,). A constant added to the matrix fixes the level
    of the logits alone; a ridge keeps nearly decided pairs from being singular.
    """
    rate = score_rate(theta[:, :, None] - theta[:, None, :])
    return _curved(games, rate, theta, ties)


def _curved(games: Floats, rate: Floats, theta: Floats, ties: Flags) -> Floats:
    """The `curvature` where the expected scores are known."""
    m = theta.shape[1]
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

    Every model must take a point from every other, directly or through others (Ford 1957).
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
        # A model that reaches all who reach it: none outside its group took a point from it.
        apart = np.flatnonzero((reaches >= reaches.T).all(axis=1))[0]
        group = reach[apart] & reach[:, apart]
        said.append(f"{_named(models, group)} {what} every comparison with the others")
    return f"{' and '.join(said)}: how far apart they are is not known{kept}"


def _reached(edges: Flags, start: int = 0) -> Flags:
    """Which models are reachable from ``start``, shape (batch, m)."""
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
