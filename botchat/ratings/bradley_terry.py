"""Bradley-Terry ratings with confidence intervals, rank intervals and length control.

Model i scores against model j at the rate 1 / (1 + 10^((r_j - r_i) / 400)); a win scores 1, a tie
½ (Bradley & Terry 1952; BotChat, Appendix A). Comparisons on one ChatSEED are not independent:
intervals come from a sandwich estimator clustered by seed. With length control the logit has one
more term, the length of the first dialogue less that of the second (as in length-controlled
AlpacaEval, Dubois et al. 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from botchat.metrics.statistics import LEVEL, distinct, student_t
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import Flags, Floats, Indices

MEAN = 1000.0
"""Mean of the ratings on every board."""
ELO = 400 / math.log(10)
"""Rating points in one logit."""
EQUAL = 1e-6
"""Rating points up to which two ratings are equal: rounding in fits of identical models."""

_UNSEEN = 4
"""Units of evidence that results other than those seen may have (Wilson's z² cases)."""
_MAX_STEPS, _TOLERANCE = 100, 1e-10
"""Newton steps, and the largest change in logits that ends them."""
_RIDGE = 1e-11
"""Share of the curvature added to it, so that nearly decided comparisons can be inverted."""
_MIN_CURVATURE = 1e-8
"""Least curvature of length at a finite maximum, as a share of that at even odds."""
_MIN_OWN_LENGTH = 1e-6
"""Least share of the length differences that models do not explain."""
_MANY = 10**12
"""Degrees of freedom of independent comparisons: Student's t is the normal there."""
_CELLS = 1 << 21
"""Clusters times parameters held at a time (16 MB)."""


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    """Bradley-Terry ratings of m models.

    ``rating``: shape (m,), mean `MEAN`. ``covariance``: of the ratings, shape (m, m), clustered by
    the ``n_clusters`` seeds; None if fewer than two seeds are known. ``warning``: what these
    comparisons cannot tell, one line or "".
    """

    models: tuple[str, ...]
    rating: Floats
    covariance: Floats
    n_comparisons: int
    n_clusters: int | None
    warning: str

    @property
    def std_error(self) -> Floats:
        """Standard error of each rating, shape (m,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def reach(self, level: float = LEVEL) -> float:
        """Half the width of an interval in standard errors: Student's t with clusters - 1."""
        return student_t(level, (self.n_clusters or _MANY) - 1)

    @property
    def low(self) -> Floats:
        """Lower end of each rating's 95 % interval, shape (m,)."""
        return self.rating - self.reach() * self.std_error

    @property
    def high(self) -> Floats:
        """Upper end of each rating's 95 % interval, shape (m,)."""
        return self.rating + self.reach() * self.std_error

    @cached_property
    def significantly_better(self) -> Flags:
        """Whether the row's model is better than the column's, shape (m, m).

        Holds at 95 % for all pairs together (Bonferroni).
        """
        m, own = len(self.models), np.diag(self.covariance)
        error = np.sqrt(np.maximum(own[:, None] + own - 2 * self.covariance, 0))
        reach = self.reach(1 - (1 - LEVEL) / max(1, m * (m - 1) // 2))
        return np.asarray(self.rating[:, None] - self.rating > reach * error + EQUAL)

    @property
    def rank_intervals(self) -> tuple[Indices, Indices]:
        """First and last rank that each model may have, shape (m,) each."""
        return ranks_from_order(self.significantly_better)


def ranks_from_order(better: Flags) -> tuple[Indices, Indices]:
    """First and last rank of each model, from ``better``: row better than column, shape (m, m).

    Behind all that are better, before all that are worse (Mogstad, Romano, Shaikh & Wilhelm 2024).
    """
    first, last = 1 + better.sum(axis=0), len(better) - better.sum(axis=1)
    return np.asarray(first, dtype=np.intp), np.asarray(last, dtype=np.intp)


def fit(comparisons: Comparisons, length: Floats | None = None) -> BradleyTerryResult:
    """Fit ratings by maximum likelihood; raises `MissingDataError` if there is no comparison.

    ``length``: of the first dialogue less that of the second, shape (n,); ratings are then what is
    left at equal length. Without a finite maximum every model gets one tie with an average one,
    intervals come from the curvature alone, and ``warning`` says so.
    """
    comparisons.require_any()
    m = len(comparisons.models)
    rows = _Rows.of(comparisons, length)
    parameters, ties = _fit_rows(rows if rows.n_lengths else rows.aggregated())
    warning = explain_no_maximum(comparisons)
    bread = np.asarray(np.linalg.inv(rows.curvature(parameters, ties)))
    n_clusters = None
    if ties.any() or (rows.n_lengths and len(comparisons) <= m + 1):
        # Residuals of a fit that explains everything are 0, which does not make it certain.
        covariance = bread
    else:
        residual = rows.result - rows.expected(parameters)
        middle, n = _clustered_variance(comparisons, rows, residual)
        n_clusters = n if n > 1 else None
        if n == 1:
            warning = "all comparisons are on one seed: intervals take them as independent"
        expected = logistic(parameters[comparisons.first] - parameters[comparisons.second])
        middle[:m, :m] += _unseen_variance(comparisons, expected, n_clusters)
        covariance = bread @ middle @ bread
    centre = np.eye(m) - 1 / m
    return BradleyTerryResult(
        comparisons.models,
        MEAN + ELO * (parameters[:m] - parameters[:m].mean()),
        ELO**2 * centre @ covariance[:m, :m] @ centre,
        len(comparisons),
        n_clusters,
        warning,
    )


def fit_logits(comparisons: Comparisons) -> Floats:
    """Ratings in logits, with mean 0, shape (m,)."""
    parameters, _ = _fit_rows(_Rows.of(comparisons).aggregated())
    return np.asarray(parameters - parameters.mean())


def logistic(difference: Floats) -> Floats:
    """Expected score at a difference in logits, any shape."""
    return 0.5 + 0.5 * np.tanh(0.5 * difference)


# ---------------------------------------------------------------------- the likelihood


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a logistic regression on m models (first less second) and length.

    ``weight``: comparisons of a row, shape (n,). ``length``: shape (n, 1), or (n, 0) without.
    """

    m: int
    first: Indices
    second: Indices
    result: Floats
    weight: Floats
    length: Floats

    @classmethod
    def of(cls, comparisons: Comparisons, length: Floats | None = None) -> _Rows:
        """Rows of comparisons; without ``length`` where models explain it, in units of its size."""
        sides, n = (comparisons.first, comparisons.second), len(comparisons)
        column = np.zeros((n, 0)) if length is None else length[:, None]
        column = column / np.maximum(np.sqrt(np.mean(column**2, axis=0)), 1e-300)
        rows = cls(len(comparisons.models), *sides, comparisons.result, np.ones(n), column)
        if rows.n_lengths and rows._length_beyond_models(rows.weight) <= _MIN_OWN_LENGTH * n:
            return cls.of(comparisons)
        return rows

    def aggregated(self) -> _Rows:
        """One row for each (first, second, result); only without length."""
        code = (self.first * self.m + self.second) * 3 + (2 * self.result).astype(np.intp)
        codes, row = distinct(code)
        sides, result = np.divmod(codes, 3)
        weight = sums(row, self.weight, len(codes))
        return _Rows(
            self.m, sides // self.m, sides % self.m, result / 2, weight, np.zeros((len(codes), 0))
        )

    @property
    def n_lengths(self) -> int:
        """1 with length control, else 0."""
        return int(self.length.shape[1])

    def logits(self, parameters: Floats) -> Floats:
        """Log-odds of the first, shape (n,)."""
        strength = parameters[: self.m]
        return np.asarray(
            strength[self.first] - strength[self.second] + self.length @ parameters[self.m :]
        )

    def expected(self, parameters: Floats) -> Floats:
        """Expected score of the first, shape (n,)."""
        return logistic(self.logits(parameters))

    def gradient(self, residual: Floats) -> Floats:
        """Sum over rows of the residual times the regressors, shape (m + k,)."""
        return np.concatenate([self._by_model(residual), self.length.T @ residual])

    def information(self, weight: Floats) -> Floats:
        """Sum over rows of the weight times the regressors' outer product, (m + k, m + k)."""
        pairs = sums(self.first * self.m + self.second, weight, self.m**2).reshape(self.m, self.m)
        lengths = weight[:, None] * self.length
        cross = np.array([self._by_model(column) for column in lengths.T]).reshape(-1, self.m)
        return np.block([[laplacian(pairs + pairs.T), cross.T], [cross, self.length.T @ lengths]])

    def curvature(self, parameters: Floats, ties: Floats) -> Floats:
        """Minus the Hessian of the log-likelihood, made invertible, shape (m + k, m + k).

        A constant added to the matrix fixes the level of the logits, where no ties do.
        """
        expected, own = self.expected(parameters), logistic(parameters)
        matrix = self.information(self.weight * expected * (1 - expected))
        matrix += np.diag(ties * own * (1 - own))
        level = np.diag(matrix)[: self.m].mean()
        matrix[: self.m, : self.m] += (1 - ties[: self.m].max()) * level / self.m
        return np.asarray(matrix + _RIDGE * level * np.eye(len(matrix)))

    def length_decides(self, parameters: Floats) -> bool:
        """Whether length explains the results so well that its coefficient is not finite."""
        if not self.n_lengths:
            return False
        expected = self.expected(parameters)
        now = self._length_beyond_models(self.weight * expected * (1 - expected))
        return now < _MIN_CURVATURE * self._length_beyond_models(self.weight)

    def _length_beyond_models(self, weight: Floats) -> float:
        """Information on length that models do not explain."""
        matrix, m = self.information(weight), self.m
        explained = np.linalg.pinv(matrix[:m, :m], hermitian=True) @ matrix[:m, m:]
        return float((matrix[m:, m:] - matrix[m:, :m] @ explained)[0, 0])

    def _by_model(self, values: Floats) -> Floats:
        """Each model's sum as first less its sum as second, shape (m,)."""
        return sums(self.first, values, self.m) - sums(self.second, values, self.m)


def _fit_rows(rows: _Rows) -> tuple[Floats, Floats]:
    """Parameters of greatest likelihood, and the ties added to keep them finite, (m + k,) each."""
    ties = np.zeros(rows.m + rows.n_lengths)
    ties[: rows.m] = not has_maximum(_points(rows))
    parameters = _maximise(rows, ties)
    if parameters is None or rows.length_decides(parameters):
        ties[:] = 1
        parameters = _maximise(rows, ties)
        assert parameters is not None, "a likelihood with a tie for every parameter has a maximum"
    return parameters, ties


def _maximise(rows: _Rows, ties: Floats) -> Floats | None:
    """Parameters of greatest likelihood, or None if they do not converge.

    A Newton step that changes logits by up to d is multiplied by log(1 + d) / d, and always ascends
    (Sun & Tran-Dinh 2019).
    """
    parameters = np.zeros(len(ties))
    for _ in range(_MAX_STEPS):
        residual = rows.weight * (rows.result - rows.expected(parameters))
        slope = rows.gradient(residual) - ties * (logistic(parameters) - 0.5)
        try:
            step = np.asarray(np.linalg.solve(rows.curvature(parameters, ties), slope))
        except np.linalg.LinAlgError:  # so far out that the curvature is 0
            return None
        change = max(np.abs(rows.logits(step)).max(), np.abs(ties * step).max())
        parameters += (np.log1p(change) / max(change, 1e-300)) * step
        if change < _TOLERANCE:
            return parameters
    return None


# ---------------------------------------------------------------------- variances


def _clustered_variance(
    comparisons: Comparisons, rows: _Rows, residual: Floats
) -> tuple[Floats, int]:
    """Variance of the likelihood's slope, shape (m + k, m + k), and the number of known clusters.

    Between clusters where there are two or more, else between comparisons.
    """
    if comparisons.cluster is None:
        return rows.information(residual**2), 0
    labels, cluster = distinct(comparisons.cluster)
    n, size = len(labels), rows.m + rows.n_lengths
    if n < 2:
        return rows.information(residual**2), n
    order, step = np.argsort(cluster, kind="stable"), max(1, _CELLS // size)
    variance = np.zeros((size, size))
    for low in range(0, n, step):
        begin, end = np.searchsorted(cluster[order], [low, low + step])
        part, k = order[begin:end], min(step, n - low)
        of, gained = cluster[part] - low, residual[part]
        models = sums(of * rows.m + rows.first[part], gained, k * rows.m)
        models -= sums(of * rows.m + rows.second[part], gained, k * rows.m)
        lengths = [sums(of, gained * column[part], k) for column in rows.length.T]
        slopes = np.column_stack([models.reshape(k, rows.m), *lengths])
        variance += slopes.T @ slopes
    return variance * (n / (n - 1)), n


def _unseen_variance(comparisons: Comparisons, expected: Floats, n_clusters: int | None) -> Floats:
    """What the variance of each pair's score lacks to be that of `_UNSEEN` units, shape (m, m).

    A unit is a seed with all its verdicts on the pair alike, or one comparison where seeds are not
    known. Verdicts that are all ties, or one win for each order, do not vary, which does not make
    them certain: so many seeds with another result may still go unseen. ``expected``: score of the
    first at the fitted ratings, shape (n,).
    """
    m, n = len(comparisons.models), len(comparisons)
    low, high, score = comparisons.oriented()
    expected = np.where(comparisons.first < comparisons.second, expected, 1 - expected)
    unit = comparisons.cluster if n_clusters and comparisons.cluster is not None else np.arange(n)
    cells, cell = distinct((unit * m + low) * m + high)
    pair = cells % (m * m)
    apart, size = sums(cell, score - expected), sums(cell, np.ones(n))
    seen, units = sums(pair, apart**2, m * m), sums(pair, np.ones(len(pair)), m * m)
    chance = np.zeros(m * m)
    chance[low * m + high] = expected * (1 - expected)
    wanted = chance * sums(pair, size**2, m * m) * np.minimum(1, _UNSEEN / np.maximum(units, 1))
    lacking = np.where(wanted > seen * (1 + 1e-9), wanted - seen, 0).reshape(m, m)
    return laplacian(np.asarray(lacking + lacking.T))


def sums(position: Indices, values: Floats, size: int = 0) -> Floats:
    """Sum of the values at each position, shape (max(size, largest position + 1),)."""
    return np.asarray(np.bincount(position, weights=values, minlength=size), dtype=np.float64)


def laplacian(weight: Floats) -> Floats:
    """Sum over pairs of weight · (e_i - e_j)(e_i - e_j)', of a symmetric table (m, m)."""
    return np.asarray(np.diag(weight.sum(axis=1)) - weight)


# ---------------------------------------------------------------------- is there a maximum?


def has_maximum(points: Floats) -> bool:
    """Whether the likelihood has a finite maximum; ``points``: the row's from the column, (m, m).

    Every model must take a point from every other, directly or through others (Ford 1957).
    """
    return bool(_reached(points > 0).all() and _reached((points > 0).T).all())


def explain_no_maximum(comparisons: Comparisons) -> str:
    """One line on why ratings have no finite maximum of likelihood, or "" where they have one."""
    points = _points(_Rows.of(comparisons).aggregated())
    if has_maximum(points):
        return ""
    took, models = points > 0, comparisons.models
    kept = "; one tie of each with an average model was added to keep ratings finite"
    group = _reached(took | took.T)
    if not group.all():
        return (
            f"{_names(models, group)} and {_names(models, ~group)} were never compared with each"
            f" other, not even through other models: their ratings do not compare{kept}"
        )
    reach = np.stack([_reached(took, model) for model in range(len(models))])
    parts = []
    for reaches, verb in ((reach, "won"), (reach.T, "lost")):
        # A model that reaches all who reach it: none outside its group took a point from it.
        apart = np.flatnonzero((reaches >= reaches.T).all(axis=1))[0]
        group = reach[apart] & reach[:, apart]
        parts.append(f"{_names(models, group)} {verb} every comparison with the others")
    return f"{' and '.join(parts)}: how far apart they are is not known{kept}"


def _points(rows: _Rows) -> Floats:
    """Points that the row's model took from the column's, shape (m, m)."""
    m = rows.m
    won = sums(rows.first * m + rows.second, rows.weight * rows.result, m * m)
    lost = sums(rows.second * m + rows.first, rows.weight * (1 - rows.result), m * m)
    return np.asarray((won + lost).reshape(m, m))


def _reached(edges: Flags, start: int = 0) -> Flags:
    """Which models are reachable from ``start``, shape (m,)."""
    reached = np.zeros(len(edges), dtype=bool)
    reached[start] = True
    while True:
        more = reached | edges[reached].any(axis=0)
        if (more == reached).all():
            return reached
        reached = more


def _names(models: tuple[str, ...], chosen: Flags) -> str:
    """Names of the chosen models, at most five, then how many more."""
    names = [models[i] for i in np.flatnonzero(chosen)]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
