"""Statistics of agreement and rank, and 95 % confidence intervals.

Statistics work along the last axes and keep the others. An undefined one (division by zero, a
rating without variation) is NaN.

Intervals are Wilson's for shares, a bootstrap for everything else. Clusters (ChatSEEDs, topics,
questions) are independent, their cases alike: how alike is estimated from the variance between
clusters. A share's interval is Wilson's (1927) of the independent cases that it is worth (Korn &
Graubard 1998; Dean & Pagano 2015), with Student's t of clusters - 1. Any other figure is a function
of sums by cluster, which are drawn with replacement; percentiles are expanded for small samples
(Hesterberg 2015). `benchmarks/coverage.py` measures both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from botchat.estimates import Codes, Estimate, Estimates, Flags, Floats, Indices

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

LEVEL = 0.95  # coverage of every interval
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)  # half its width in standard errors where these are known
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_MANY = 1 << 15

LEAST = 20  # dialogues below which nothing is concluded: an interval of up to ±20 points
RESAMPLES = 1000
_MOST_DRAWN = 2000  # clusters drawn one by one; more are put together at random in as many groups
_ALIKE = 0.25  # clusters' worth of prior evidence that cases of one cluster are all alike
_NOTHING = 1e-15  # a variance that is only rounding


def distinct(labels: Indices) -> tuple[Indices, Indices]:
    """Distinct labels, ascending, and the position of each label among them, shape (n,).

    Like ``numpy.unique``, but without sorting if the labels, which start at 0, are small numbers.
    """
    if labels.max(initial=0) > 4 * len(labels):
        return np.unique(labels, return_inverse=True)
    present = np.bincount(labels) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[labels]


def rows_at(record: Record, at: Indices | Flags) -> Record:
    """Return a record with some rows, by number or flag, of every field that is a column."""
    columns = {}
    for name, column in vars(record).items():
        if isinstance(column, np.ndarray):
            columns[name] = column[at]
    return replace(record, **columns)


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """``part / whole``, NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(whole, 0), np.nan, np.divide(part, whole))


def cohen_kappa(confusion: Floats) -> Floats:
    """Cohen's kappa of tables of counts, shape (..., k, k) -> (...) (Cohen 1960)."""
    n = confusion.sum((-2, -1))
    agreement = ratio(np.trace(confusion, axis1=-2, axis2=-1), n)
    chance = ratio((confusion.sum(-1) * confusion.sum(-2)).sum(-1), n * n)
    return ratio(agreement - chance, 1 - chance)


def fleiss_kappa(sums: Floats) -> Floats:
    """Fleiss' kappa (Fleiss 1971), shape (...).

    ``sums``: over the units, of `agreeing_pairs`, of 1, and of the raters of each of k labels,
    shape (..., 2 + k).
    """
    agreement = ratio(sums[..., 0], sums[..., 1])
    labels = sums[..., 2:]
    chance = (ratio(labels, labels.sum(-1)[..., None]) ** 2).sum(-1)
    return ratio(agreement - chance, 1 - chance)


def agreeing_pairs(counts: Floats) -> Floats:
    """Share of agreeing pairs in each unit, from the raters of each label, shape (units, k)."""
    raters = counts.sum(-1)
    return ratio((counts * (counts - 1)).sum(-1), raters * (raters - 1))


def rank_correlations(x: Floats, y: Floats, weights: Floats | None = None) -> list[Floats]:
    """Spearman's rank correlation of two ratings, ties at their mean rank, and Kendall's tau-b.

    ``weights``: how often each entry counts, by default once. All have shape (..., n).
    """
    w = np.ones_like(x) if weights is None else weights
    signs_x = np.sign(x[..., :, None] - x[..., None, :])
    signs_y = np.sign(y[..., :, None] - y[..., None, :])

    def against_all(signs: Floats) -> Floats:
        return (w[..., None, :] @ signs)[..., 0, :]

    def total(values: Floats) -> Floats:
        return np.asarray((w * values).sum(-1))

    def pairs(signs: Floats) -> Floats:
        return total(against_all(signs))

    # The signed sum against all others is twice the distance of a rank from the mean rank.
    return [
        _correlation(total, against_all(signs_x), against_all(signs_y)),
        _correlation(pairs, signs_x, signs_y),
    ]


def _correlation(total: Callable[[Floats], Floats], x: Floats, y: Floats) -> Floats:
    return ratio(total(x * y), np.sqrt(total(x * x) * total(y * y)))


def sign_flip(sums: Floats) -> float:
    """Two-sided p of the hypothesis that each item's sum might as well have the other sign.

    Exact for whole sums, by convolution (Fisher 1935, §21): with sums of 1 and -1 McNemar's exact
    test. Sums of several sizes, more than `_MANY` together, are taken as normal.
    """
    size_of, count = np.unique(np.abs(sums[sums != 0]).astype(np.intp), return_counts=True)
    total = int(size_of @ count)
    seen = abs(float(sums.sum()))
    if total > _MANY and len(count) > 1:
        return 2 * NormalDist().cdf(-seen / math.sqrt(sums @ sums))
    chance = np.ones(1)
    for size, n in zip(size_of.tolist(), count.tolist(), strict=True):
        logs = np.cumsum(np.log(np.maximum(1, np.arange(n + 1))))  # of 0!, 1!, …
        flipped = np.zeros(size * n + 1)
        flipped[::size] = np.exp(logs[-1] - logs - logs[::-1] - n * math.log(2))
        chance = np.convolve(chance, flipped)
    # With j of the total flipped, the sum is total - 2 j.
    beyond = np.abs(total - 2 * np.arange(len(chance))) >= seen
    return min(1.0, float(chance[beyond].sum()))


@cache
def student_t(level: float, df: int) -> float:
    """Half a two-sided interval's width in standard errors, of Student's t.

    With t = tan(angle) times the root of ``df``, the density of the angle is proportional to
    cos(angle) ** (df - 1); Gauss-Legendre quadrature integrates it to 1e-12.
    """

    def inside(angle: float) -> float:
        sine = np.sin(angle * (_NODES + 1) / 2)
        return float(angle * (_WEIGHTS @ np.exp((df - 1) / 2 * np.log1p(-sine * sine))))

    low = 0.0
    high = min(math.pi / 2, 20 / math.sqrt(df))
    wanted = level * inside(high)
    for _ in range(60):
        middle = (low + high) / 2
        if inside(middle) < wanted:
            low = middle
        else:
            high = middle
    return math.sqrt(df) * math.tan(low)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p of several tests, so that all together are wrong as rarely (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    each = np.minimum(1.0, np.arange(len(p), 0, -1) * np.sort(p))
    adjusted[order] = np.maximum.accumulate(each)
    return adjusted.tolist()


class SkillDifference(NamedTuple):
    """Skill of one judge less that of another, or of guessing; NaN: not known."""

    value: float
    error: float
    """Standard error."""
    n_clusters: int
    n_items: int
    n_of_class: Sequence[int]
    """Items with the label 1, and with the label -1."""

    def at(self, level: float) -> Estimate:
        """Return it with a two-sided interval, by Student's t of clusters - 1."""
        reach = student_t(level, max(1, self.n_clusters - 1)) * self.error
        return Estimate(self.value, self.value - reach, self.value + reach)


def skill_difference(
    item: Indices, cluster: Indices, labels: Codes, lead: Codes
) -> SkillDifference:
    """Return the difference in skill of two judges; all arguments have shape (cases,).

    Skill is Peirce's score (1884): half of the mean verdict (1, -1 or 0) where the label is 1, less
    half of that where it is -1. 0 is whoever does not look, 1 is always right. ``labels``: 1 or -1.
    ``lead``: the one's verdict less the other's. The error is that of the cases' influences.
    """
    side = (labels < 0).astype(np.intp)
    apart = labels * lead / 2
    n = np.bincount(side, minlength=2)
    mean = ratio(np.bincount(side, apart, 2), n)
    sums = np.bincount(distinct(cluster)[1], (apart - mean[side]) / n[side])
    n_clusters = len(sums)
    variance = sums @ sums * ratio(n_clusters, n_clusters - 1)
    of_class = [len(distinct(item[side == i])[0]) for i in (0, 1)]
    n_items = len(distinct(item)[0])
    return SkillDifference(mean.sum(), math.sqrt(variance), n_clusters, n_items, of_class)


class ClusteredCases:
    """Cases by row and cluster, of which means are taken."""

    def __init__(
        self, row: Indices, cluster: Indices | None, n_rows: int, weight: Floats | None = None
    ) -> None:
        """Take arguments of shape (cases,).

        ``cluster``: numbers from 0; None: every case is independent. ``weight``: how often each
        case counts; None: once.
        """
        if weight is None:
            weight = np.ones(len(row))
        if cluster is None:
            cluster = np.arange(len(row))
        size = cluster.max(initial=0) + 1
        cells, self._cell = distinct(row * size + cluster)
        self._row_of = cells // size
        self._row = row
        self._weight = weight
        self._total = np.bincount(row, weight, n_rows)
        square = self._total**2
        n = np.bincount(self._row_of, minlength=n_rows)
        t = np.array([student_t(LEVEL, int(df)) if df > 0 else math.inf for df in n - 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            # 1 / the cases, and 1 / the clusters of one size that would say as much.
            self._each_case = np.bincount(row, weight**2, n_rows) / square
            sizes = np.bincount(self._cell, weight) ** 2
            self._each_cluster = np.bincount(self._row_of, sizes, n_rows) / square
            self._wider = (t / Z) ** 2 * n / (n - 1)

    def proportions(self, value: Floats) -> Estimates:
        """Return the mean of the values (0 to 1) of each row, with intervals by cluster."""
        n_rows = len(self._total)
        each_case = self._each_case
        each_cluster = self._each_cluster
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(self._row, self._weight * value, n_rows) / self._total
            distance = value - mean[self._row]
            apart = self._weight * distance
            own = np.bincount(self._row, apart * distance, n_rows) / self._total
            spread = np.bincount(self._cell, apart) ** 2
            variance = np.bincount(self._row_of, spread, n_rows) / self._total**2
            alike = (variance / own - each_case) / (each_cluster - each_case)
            seen = np.minimum(mean, 1 - mean) / each_cluster
            alike = np.where(np.isfinite(alike), alike, 1.0).clip(0, 1)
            alike = (seen * alike + _ALIKE) / (seen + _ALIKE)
            each = own / (mean * (1 - mean)) * (each_case + alike * (each_cluster - each_case))
            each = np.fmin(each * self._wider, each_cluster)
        same = (own <= _NOTHING) & ~np.isnan(mean)
        each[same] = each_cluster[same]
        low, high = wilson(mean, each)
        # Cases that are all the same show no spread: as many others as can go unseen may be at an
        # end.
        unseen = wilson(np.zeros(int(same.sum())), each_cluster[same])[1]
        low[same] = mean[same] * (1 - unseen)
        high[same] = mean[same] + unseen * (1 - mean[same])
        return Estimates(mean, low, high, 1 / each)


def wilson(share: npt.ArrayLike, each: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return intervals of shares, any shape; ``each`` is 1 / their independent cases."""
    share = np.asarray(share)
    c = Z**2 * np.asarray(each)
    reach = np.sqrt(np.maximum(c * share * (1 - share) + c * c / 4, 0))
    # At 0 and 1 one end is exactly that; floating point would miss it.
    low = np.where(share <= 0, 0.0, (share + c / 2 - reach) / (1 + c))
    high = np.where(share >= 1, 1.0, (share + c / 2 + reach) / (1 + c))
    return low, high


def proportion(
    values: npt.ArrayLike,
    cluster: Sequence[str] | Indices | None,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Return a share, or a mean of values on a scale; unknown without a case.

    ``cluster``: of each case; None: they are independent. ``scale``: lowest and highest value.

    >>> proportion([1, 0, 1, 1], ["a", "b", "c", "d"]).value
    0.75
    """
    lowest, highest = scale
    width = highest - lowest
    cases = (np.asarray(values, dtype=np.float64) - lowest) / width
    number = None
    if cluster is not None:
        number = np.unique(cluster, return_inverse=True)[1]
    row = np.zeros_like(cases, np.intp)
    return ClusteredCases(row, number, 1).proportions(cases).at(0).stretched(lowest, width)


def level_of_pairs(m: int) -> float:
    """Level of each two-sided test of m things, for all pairs together (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(1, math.comb(m, 2))


def level_of_best(m: int) -> float:
    """Level of each two-sided test, for all comparisons of the best of m things with the others.

    Of one-sided tests that is Bonferroni's for m - 1 of them (Hsu 1984), but for two things, of
    which either may be called the best.
    """
    return 1 - (1 - LEVEL) * 2 / max(2, m - 1)


def separated(value: Floats, low: Floats, high: Floats, level: float) -> Flags:
    """Whether the row's number is above the column's, of numbers with intervals of their own.

    A difference above the root of both reaches' squares (MOVER; Zou & Donner 2008). ``level``: of
    each two-sided test.
    """
    wider = student_t(level, 10**12) / Z
    reach = wider * np.hypot((value - low)[:, None], (high - value)[None, :]) + 1e-9
    return value[:, None] - value[None, :] > reach


@lru_cache(maxsize=2)
def _weights(n: int, draws: int) -> Floats:
    """Return the weights of n clusters in the data and in each draw, shape (1 + draws, n)."""
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), draws)
    return np.concatenate([np.ones((1, n)), drawn])


def bootstrap(
    cluster: Indices,
    columns: Iterable[Floats],
    figures: Callable[[Floats], Floats | list[Floats]],
) -> list[Estimate]:
    """Return figures that are functions of sums over cases.

    ``cluster`` and each of the k ``columns``: of every case, shape (cases,). ``figures``: sums of
    shape (draws, k) -> values of one figure, shape (draws,), or of several. An end is unknown where
    a figure does not vary.
    """
    numbers, group = distinct(cluster)
    n = max(1, len(numbers))
    if n > _MOST_DRAWN:  # as good as drawn one by one
        group = np.random.default_rng(0).integers(_MOST_DRAWN, size=n)[group]
        n = _MOST_DRAWN
    sums = np.stack([np.bincount(group, column, n) for column in columns], axis=-1)
    tail = 0.0
    if n > 1:
        tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student_t(LEVEL, n - 1))
    drawn = figures(_weights(n, RESAMPLES) @ sums)
    return [_percentiles(values, tail) for values in np.atleast_2d(drawn)]


def _percentiles(values: Floats, tail: float) -> Estimate:
    """Return the first of the values, of the data, with the tails of the others, the draws."""
    value = float(values[0])
    known = values[1:][np.isfinite(values[1:])]
    if len(known):
        low, high = np.quantile(known, (tail, 1 - tail)).tolist()
        if high - low > _NOTHING:
            return Estimate(value, low, high)
    return Estimate(value)


def skill(verdicts: Codes, labels: Codes, item: Indices) -> Estimate:
    """Return the skill of verdicts, see `skill_difference`; not known of labels all alike."""
    of_class = np.stack([labels > 0, labels < 0])
    columns = np.concatenate([of_class, labels * verdicts * of_class])
    return bootstrap(item, columns, lambda sums: ratio(sums[:, 2:], sums[:, :2]).mean(1))[0]
