"""Bradley-Terry ratings with confidence intervals, rank intervals and length control.

Model i scores against model j at the rate 1 / (1 + 10^((r_j - r_i) / 400)); a win scores 1, a tie
½, a soft result itself (Bradley & Terry 1952; BotChat, Appendix A). Comparisons on one ChatSEED
are not independent: intervals come from a sandwich estimator clustered by seed. With length control
the logit has one more term, the length of the first dialogue less that of the second (as in
length-controlled AlpacaEval, Dubois et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np

from botchat.errors import listed
from botchat.estimates import Flags, Floats, Indices, Names
from botchat.metrics.statistics import (
    LEVEL,
    distinct,
    level_of_pairs,
    student_t,
)
from botchat.ratings.comparisons import Comparisons

# Mean of the ratings on every board.
MEAN = 1000.0
# Rating points in one logit.
ELO = 400 / math.log(10)
# Rating points up to which two ratings are equal: rounding in fits of identical models.
EQUAL = 1e-6

_UNSEEN = 4  # units of evidence that results other than those seen may have (Wilson's z² cases)
_MAX_STEPS = 100  # Newton steps
_TOLERANCE = 1e-10  # change in logits that ends them
_ROUNDING = 1e-5  # change in logits that the last step may leave
# Share of the curvature added to it, so that nearly decided comparisons can be inverted.
_RIDGE = 1e-11
# Logits that the usual difference of length may add, before it explains every result.
_MOST_OF_LENGTH = 24
_MIN_OWN_LENGTH = 1e-6  # least share of the length differences that models do not explain
_MANY = 10**12  # degrees of freedom of independent comparisons: Student's t is the normal there
_CELLS = 1 << 21  # clusters times models held at a time (16 MB)
_MOST_NAMED = 5  # models of a group that a warning names


@dataclass(frozen=True, eq=False)
class BradleyTerryResult:
    """Bradley-Terry ratings of m models.

    ``rating``: shape (m,), mean `MEAN`. ``covariance``: of the ratings, shape (m, m), clustered by
    topic or seed; NaN where these are too few. ``n_clusters``: topics or seeds, None where errors
    take comparisons as independent. ``warning``: what these comparisons cannot tell, one line or
    "". ``n_seeds``: ChatSEEDs, None if they are not known.
    """

    models: Names
    rating: Floats
    covariance: Floats
    n_clusters: int | None
    warning: str
    n_seeds: int | None = None

    @property
    def std_error(self) -> Floats:
        """Standard error of each rating, shape (m,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def reach(self, level: float = LEVEL) -> float:
        """Half the width of an interval in standard errors: Student's t with clusters - 1."""
        return student_t(level, max(2, self.n_clusters or _MANY) - 1)

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
        return self.above(self.models, level_of_pairs(len(self.models)))

    def above(self, names: Sequence[str], level: float) -> Flags:
        """Whether the row's model is better than the column's, of these models, shape (m, m).

        ``level``: of each two-sided test.
        """
        at = [self.models.index(name) for name in names]
        covariance = self.covariance[np.ix_(at, at)]
        own = np.diag(covariance)
        error = np.sqrt(np.maximum(own[:, None] + own - 2 * covariance, 0))
        rating = self.rating[at]
        return rating[:, None] - rating > self.reach(level) * error + EQUAL


def ranks_from_order(better: Flags) -> tuple[Indices, Indices]:
    """First and last rank of each model, from ``better``: row better than column, shape (m, m).

    Behind all that are better, before all that are worse (Mogstad, Romano, Shaikh & Wilhelm 2024).
    """
    first = 1 + better.sum(axis=0)
    last = len(better) - better.sum(axis=1)
    return first, last


def fit(comparisons: Comparisons, length: Floats | None = None) -> BradleyTerryResult:
    """Fit ratings by maximum likelihood; raises `MissingDataError` if there is no comparison.

    ``length``: of the first dialogue less that of the second, shape (n,); ratings are then what is
    left at equal length. Without a finite maximum every model gets one tie with an average one,
    and ``warning`` names the reason; it does too where there are fewer than `LEAST_CLUSTERS` topics
    or seeds, which give no interval.
    """
    comparisons.require_any()
    rows = _rows(comparisons, length)
    m = rows.m
    warning = _explain_no_maximum(comparisons)
    parameters, ties = _fit_rows(rows, warning)
    bread = np.linalg.inv(rows.curvature(parameters, ties))
    n_clusters = None
    covariance = bread
    # Residuals of a fit that explains everything are 0, which does not make it certain.
    if not (rows.length.any() and (ties[m] or len(rows) <= m + 1)):
        residual = rows.weights * (rows.result - rows.expected(parameters))
        middle = rows.information(residual**2)
        if rows.cluster is not None:
            labels, cluster = distinct(rows.cluster)
            n_clusters = len(labels)
            middle = _clustered_variance(rows, cluster, residual)
        seen = np.diag(middle)[:m]
        middle[:m, :m] += _unseen_variance(rows, parameters, comparisons.unit, seen, ties[:m])
        middle += _curvature_of_ties(parameters, ties)
        covariance = bread @ middle @ bread
    too_few = comparisons.too_few_clusters
    if too_few:
        covariance = covariance * np.nan
        warning = f"{warning}; {too_few}".removeprefix("; ")
    centre = np.eye(m) - 1 / m
    return BradleyTerryResult(
        comparisons.models,
        MEAN + ELO * (parameters[:m] - parameters[:m].mean()),
        ELO**2 * centre @ covariance[:m, :m] @ centre,
        n_clusters,
        warning,
        comparisons.n_seeds,
    )


def fit_logits(comparisons: Comparisons) -> Floats:
    """Ratings in logits, with mean 0, shape (m,)."""
    warning = _explain_no_maximum(comparisons)
    parameters, _ = _fit_rows(_rows(comparisons), warning)
    return np.asarray(parameters[:-1] - parameters[:-1].mean())


def logistic(difference: Floats) -> Floats:
    """Expected score at a difference in logits, any shape."""
    return 0.5 + 0.5 * np.tanh(0.5 * difference)


# ---------------------------------------------------------------------- the likelihood


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows(Comparisons):
    """Comparisons as rows of a logistic regression on m models (first less second) and length.

    ``length``: 0 without length control, shape (n,).
    """

    length: Floats

    @property
    def m(self) -> int:
        """Number of models."""
        return len(self.models)

    def aggregated(self) -> _Rows:
        """One row for each (first, second) with the mean result, where there is no length."""
        if self.length.any():
            return self
        sides, row = distinct(self.first * self.m + self.second)
        first, second = np.divmod(sides, self.m)
        weight = sums(row, self.weights)
        result = sums(row, self.weights * self.result) / weight
        length = np.zeros(len(sides))
        return _Rows(self.models, first, second, result, None, weight, length=length)

    def logits(self, parameters: Floats) -> Floats:
        """Log-odds of the first, shape (n,)."""
        strength = parameters[self.first] - parameters[self.second]
        return np.asarray(strength + self.length * parameters[-1])

    def expected(self, parameters: Floats) -> Floats:
        """Expected score of the first, shape (n,)."""
        return logistic(self.logits(parameters))

    def gradient(self, residual: Floats) -> Floats:
        """Sum over rows of the residual times the regressors, shape (m + 1,)."""
        slopes = sums(self.first, residual, self.m) - sums(self.second, residual, self.m)
        return np.append(slopes, self.length @ residual)

    def information(self, weight: Floats) -> Floats:
        """Sum over rows of the weight times the regressors' outer product, (m + 1, m + 1)."""
        pairs = sums(self.first * self.m + self.second, weight, self.m**2).reshape(self.m, self.m)
        matrix = np.zeros((self.m + 1, self.m + 1))
        matrix[:-1, :-1] = laplacian(pairs + pairs.T)
        matrix[-1] = self.gradient(weight * self.length)
        matrix[:, -1] = matrix[-1]
        return matrix

    def curvature(self, parameters: Floats, ties: Floats) -> Floats:
        """Minus the Hessian of the log-likelihood, made invertible, shape (m + 1, m + 1).

        A constant added to the matrix fixes the level of the logits, where no ties do.
        """
        expected = self.expected(parameters)
        matrix = self.information(self.weights * expected * (1 - expected))
        matrix += _curvature_of_ties(parameters, ties)
        level = np.diag(matrix)[: self.m].mean()
        matrix[: self.m, : self.m] += (1 - ties[: self.m].max()) * level / self.m
        return np.asarray(matrix + _RIDGE * level * np.eye(len(matrix)))


def _curvature_of_ties(parameters: Floats, ties: Floats) -> Floats:
    """Part of the curvature that is of ties with an average model, shape (m + 1, m + 1)."""
    own = logistic(parameters)
    return np.diag(ties * own * (1 - own))


def _rows(comparisons: Comparisons, length: Floats | None = None) -> _Rows:
    """Rows of comparisons; without ``length`` where models explain it, in units of its size."""
    n = len(comparisons)
    rows = _Rows(
        comparisons.models,
        comparisons.first,
        comparisons.second,
        comparisons.result,
        comparisons.cluster,
        comparisons.weights / comparisons.weights.mean(),  # a tie that is added weighs one of them
        length=np.zeros(n),
    )
    if length is None:
        return rows
    unit = max(float(np.sqrt(np.mean(length**2))), 1e-300)
    controlled = replace(rows, length=length / unit)
    m = rows.m
    matrix = controlled.information(rows.weights)
    explained = np.linalg.pinv(matrix[:m, :m], hermitian=True) @ matrix[:m, m]
    if matrix[m, m] - matrix[m, :m] @ explained > _MIN_OWN_LENGTH * n:
        return controlled
    return rows


def _fit_rows(rows: _Rows, warning: str) -> tuple[Floats, Floats]:
    """Parameters of greatest likelihood, and the ties added to keep them finite, (m + 1,) each.

    ``warning``: why ratings have no finite maximum without ties, if they have none.
    """
    rows = rows.aggregated()
    ties = np.append(np.full(rows.m, float(bool(warning))), float(not rows.length.any()))
    parameters = _maximise(rows, ties)
    if parameters is None or abs(parameters[-1]) > _MOST_OF_LENGTH:
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
    change = math.inf
    for _ in range(_MAX_STEPS):
        residual = rows.weights * (rows.result - rows.expected(parameters))
        slope = rows.gradient(residual) - ties * (logistic(parameters) - 0.5)
        try:
            step = np.asarray(np.linalg.solve(rows.curvature(parameters, ties), slope))
        except np.linalg.LinAlgError:  # so far out that the curvature is 0
            return None
        change = max(np.abs(rows.logits(step)).max(), np.abs(ties * step).max())
        parameters += (np.log1p(change) / max(change, 1e-300)) * step
        if change < _TOLERANCE:
            break
    # Of many million votes for one side rounding leaves more than the tolerance.
    if change < _ROUNDING:
        return parameters
    return None


# ---------------------------------------------------------------------- variances


def _clustered_variance(rows: _Rows, cluster: Indices, residual: Floats) -> Floats:
    """Variance of the likelihood's slope between clusters, shape (m + 1, m + 1)."""
    order = np.argsort(cluster, kind="stable")
    n = int(cluster.max()) + 1
    width = rows.m + 1
    variance = np.zeros((width, width))
    step = max(1, _CELLS // rows.m)
    for low in range(0, n, step):
        begin, end = np.searchsorted(cluster[order], [low, low + step])
        part = order[begin:end]
        own = cluster[part] - low
        gained = residual[part]
        k = min(step, n - low)
        cell = own * width
        slopes = sums(cell + rows.first[part], gained, k * width)
        slopes -= sums(cell + rows.second[part], gained, k * width)
        slopes += sums(cell + rows.m, gained * rows.length[part], k * width)
        slopes = slopes.reshape(k, width)
        variance += slopes.T @ slopes
    return variance * (n / max(1, n - 1))


def _unseen_variance(
    rows: _Rows, parameters: Floats, unit: Indices, seen: Floats, ties: Floats
) -> Floats:
    """Return what each model's variance lacks to be that of `_UNSEEN` units, shape (m, m).

    A unit is a seed with all its verdicts on a pair alike, or one comparison where seeds are not
    known. Verdicts that are all ties, or one win for each order, do not vary, which does not make
    them certain: some `_UNSEEN` seeds with another result may go unseen. A model's pairs are taken
    together, since most of few comparisons may well be ties. Where ``ties`` were added, shape (m,),
    nor does a model that always wins vary: it lacks what it has less than with independent
    verdicts. ``unit``: number of each verdict's unit, shape (n,). ``seen``: variance of each
    model's slope, shape (m,).
    """
    m = rows.m
    expected = logistic(parameters[rows.first] - parameters[rows.second])
    # Both orders of a pair are one cell.
    pair = rows.first + rows.second + 2 * m * np.abs(rows.first - rows.second)
    each = len(rows) / len(distinct(unit * 2 * m * m + pair)[0])
    whole = rows.information(rows.weights**2 * expected * (1 - expected))[:m, :m]
    takes_part = distinct(np.concatenate([unit * m + rows.first, unit * m + rows.second]))[0]
    least = each * np.minimum(1, _UNSEEN / np.bincount(takes_part % m))
    lacking = np.maximum(least, ties) - seen / np.diag(whole)
    lacking[lacking < _ROUNDING] = 0
    return laplacian(-whole * np.maximum(lacking[:, None], lacking))


def sums(position: Indices, values: Floats, size: int = 0) -> Floats:
    """Sum of the values at each position, shape (max(size, largest position + 1),)."""
    return np.asarray(np.bincount(position, values, size), np.float64)


def laplacian(weight: Floats) -> Floats:
    """Sum over pairs of weight · (e_i - e_j)(e_i - e_j)', of a symmetric table (m, m)."""
    return np.diag(weight.sum(axis=1)) - weight


# ---------------------------------------------------------------------- is there a maximum?


def _explain_no_maximum(comparisons: Comparisons) -> str:
    """One line on why ratings have no finite maximum of likelihood, or "" where they have one.

    Every model must take a point from every other, directly or through others (Ford 1957).
    """
    models = comparisons.models
    m = len(models)
    first = comparisons.first
    second = comparisons.second
    result = comparisons.result
    points = sums(first * m + second, result, m * m) + sums(second * m + first, 1 - result, m * m)
    took: Flags = points.reshape(m, m) > 0
    if _reached(took).all() and _reached(took.T).all():
        return ""
    group = _reached(took | took.T)
    fault = "some models won every comparison with the others: how far apart they are is not known"
    if not group.all():
        names = listed(compress(models, group), _MOST_NAMED)
        others = listed(compress(models, ~group), _MOST_NAMED)
        fault = (
            f"{names} and {others} were never compared with each other, not even through other "
            "models: their ratings do not compare"
        )
    return f"{fault}; one tie of each with an average model was added to keep ratings finite"


def _reached(edges: Flags) -> Flags:
    """Find the models that are reachable from the first, shape (m,)."""
    reached: Flags = np.arange(len(edges)) == 0
    while True:
        more = edges[reached].any(axis=0) & ~reached
        if not more.any():
            return reached
        reached |= more
