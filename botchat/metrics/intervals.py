"""95 % confidence intervals: Wilson's for shares, a bootstrap for everything else.

Clusters (ChatSEEDs, topics, questions) are independent, their cases alike: how alike is estimated
from the variance between clusters. A share's interval is Wilson's (1927) of the independent cases
that it is worth (Korn & Graubard 1998; Dean & Pagano 2015), with Student's t of clusters - 1. Any
other figure is a function of sums by cluster, which are drawn with replacement; percentiles are
expanded for small samples (Hesterberg 2015). `benchmarks/coverage.py` measures both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from botchat.interfaces import Row
from botchat.metrics.statistics import LEVEL, Z, distinct, student_t
from botchat.verdicts import Flags, Floats, Indices

LEAST = 20  # dialogues below which nothing is concluded: an interval of up to ±20 points
RESAMPLES = 1000
_MOST_DRAWN = 2000  # clusters drawn one by one; more are put together at random in as many groups
_ALIKE = 0.25  # clusters' worth of prior evidence that cases of one cluster are all alike
_NOTHING = 1e-15  # a variance that is only rounding


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares and the ends of their intervals, 0 to 1, shape (rows,); nan without a case."""

    value: Floats
    low: Floats
    high: Floats
    n: Floats  # independent cases that each is worth

    def row(self, i: int, name: str) -> Row:
        """The columns ``name``, ``name_low`` and ``name_high`` of one share."""
        return ci_columns(name, self.value[i], self.low[i], self.high[i])


def ci_columns(name: str, value: float, low: float, high: float) -> Row:
    """A number and the ends of its interval under their column names; None for nan."""
    columns = {name: value, f"{name}_low": low, f"{name}_high": high}
    return {key: None if math.isnan(number) else float(number) for key, number in columns.items()}


def clustered_proportions(
    row: Indices, cluster: Indices | None, value: Floats, n_rows: int
) -> Shares:
    """Mean of the values (0 to 1) of each row, with intervals clustered by ``cluster``.

    All arguments have shape (cases,). ``cluster``: numbers from 0; None: every case is independent.
    """
    cluster = np.arange(len(row)) if cluster is None else cluster
    size = int(cluster.max(initial=0)) + 1
    cells, cell = distinct(row * size + cluster)
    row_of = cells // size
    total = np.bincount(row, minlength=n_rows).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(row, value, n_rows) / total
        apart = value - mean[row]
        own = np.bincount(row, apart**2, n_rows) / total
        # 1 / the cases, and 1 / the clusters of one size that would say as much.
        each_case = 1 / total
        each_cluster = np.bincount(row_of, np.bincount(cell) ** 2.0, n_rows) / total**2
        variance = np.bincount(row_of, np.bincount(cell, apart) ** 2, n_rows) / total**2
        alike = (variance / own - each_case) / (each_cluster - each_case)
        seen = np.minimum(mean, 1 - mean) / each_cluster
        alike = np.where(np.isfinite(alike), alike, 1.0).clip(0, 1)
        alike = (seen * alike + _ALIKE) / (seen + _ALIKE)
        each = own / (mean * (1 - mean)) * (each_case + alike * (each_cluster - each_case))
        n = np.bincount(row_of, minlength=n_rows)
        t = np.array([student_t(LEVEL, int(df)) if df > 0 else math.inf for df in n - 1])
        each = np.fmin(each * (t / Z) ** 2 * n / (n - 1), each_cluster)
    same = (own <= _NOTHING) & ~np.isnan(mean)
    each[same] = each_cluster[same]
    low, high = wilson(mean, each)
    # Cases that are all the same show no spread: as many others as can go unseen may be at an end.
    unseen = wilson(np.zeros(int(same.sum())), each_cluster[same])[1]
    low[same], high[same] = mean[same] * (1 - unseen), mean[same] + unseen * (1 - mean[same])
    return Shares(mean, low, high, 1 / each)


def wilson(share: npt.ArrayLike, each: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Intervals of shares; ``each``: 1 / the independent cases that they are worth; any shape."""
    share, c = np.asarray(share), Z**2 * np.asarray(each)
    reach = np.sqrt(np.maximum(c * share * (1 - share) + c * c / 4, 0))
    # At 0 and 1 one end is exactly that; floating point would miss it.
    low = np.where(share <= 0, 0.0, (share + c / 2 - reach) / (1 + c))
    high = np.where(share >= 1, 1.0, (share + c / 2 + reach) / (1 + c))
    return low, high


def proportion_ci(
    values: npt.ArrayLike,
    cluster: Sequence[str] | Indices | None,
    name: str,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Row:
    """The columns of a share, or a mean of values on a scale; all None without a case.

    ``cluster``: of each case; None: they are independent. ``scale``: lowest and highest value.
    """
    lowest, width = scale[0], scale[1] - scale[0]
    cases = (np.asarray(values, dtype=np.float64) - lowest) / width
    number = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
    row = clustered_proportions(np.zeros(len(cases), np.intp), number, cases, 1).row(0, name)
    return {k: None if v is None else lowest + width * v for k, v in row.items()}


def separated(value: Floats, low: Floats, high: Floats) -> Flags:
    """Whether the row's number is above the column's, of numbers with intervals of their own.

    A difference above the root of both reaches' squares (MOVER; Zou & Donner 2008), for all pairs
    together (Bonferroni).
    """
    m = len(value)
    wider = student_t(1 - (1 - LEVEL) / max(1, m * (m - 1) // 2), 10**12) / Z
    reach = wider * np.hypot((value - low)[:, None], (high - value)[None, :]) + 1e-9
    return np.asarray(value[:, None] - value[None, :] > reach)


def bootstrap_ci(
    cluster: Indices,
    columns: Iterable[Floats],
    figures: Callable[[Floats], Mapping[str, Floats]],
) -> Row:
    """The columns of figures that are functions of sums over cases.

    ``cluster`` and each of the k ``columns``: of every case, shape (cases,). ``figures``: sums of
    shape (draws, k) -> name -> values of shape (draws,). An end is None where a figure does not
    vary.
    """
    numbers, group = distinct(cluster)
    n = max(1, len(numbers))
    if n > _MOST_DRAWN:  # as good as drawn one by one
        group = np.random.default_rng(0).integers(_MOST_DRAWN, size=n)[group]
        n = _MOST_DRAWN
    sums = np.stack([np.bincount(group, column, n) for column in columns], axis=-1)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    weights: Floats = np.concatenate([np.ones((1, n)), drawn])
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student_t(LEVEL, n - 1)) if n > 1 else 0.0
    row: Row = {}
    for name, values in figures(weights @ sums).items():
        known = values[1:][np.isfinite(values[1:])]
        low, high = np.quantile(known, (tail, 1 - tail)) if len(known) else (math.nan, math.nan)
        if not high - low > _NOTHING:
            low = high = math.nan
        row |= ci_columns(name, float(values[0]), float(low), float(high))
    return row
