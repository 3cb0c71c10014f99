"""Sampling intervals of shares and means at 95 %: what other ChatSEEDs could have shown.

A share's interval is Wilson's (1927) for as many independent cases as its seeds are worth. Where
cases share seeds, the clustered variance v of the share p, and Student's t with seeds - 1 degrees
of freedom for the normal z, make them worth p (1 - p) / v · z² / t² cases, as in surveys (Korn &
Graubard 1998; Dean & Pagano 2015), but no fewer than the seeds and no more than the cases; v is
(n + 1) / n times the usual one of n seeds, without which 5 seeds of 30 models covered .938. So no
interval has width zero, at 0 and 100 % it is Wilson's for the number of seeds, and with one case a
seed it is Wilson's own. Where few cases hit or few do not, its end is moved out to Poisson's, since
Wilson's covers less (Brown, Cai & DasGupta 2001, §4.1.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from botchat.interfaces import Row
from botchat.measures.statistics import LEVEL, Floats, Indices, student_t

LEAST = 20
"""Dialogues below which nothing is said in words: a 95 % interval of a share of 20 is up to ±20
points wide."""

Z2 = 1.959963984540054**2
"""Square of the normal distribution's 97.5 % quantile."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares with the ends of their intervals, 0 to 1, each shape (rows,); nan without a case."""

    value: Floats
    low: Floats
    high: Floats

    def row(self, i: int, name: str) -> Row:
        """The entries ``name``, ``name_low`` and ``name_high`` of one."""
        return entries(name, self.value[i], self.low[i], self.high[i])


def entries(name: str, value: float, low: float, high: float) -> Row:
    """A number and the ends of its interval under their keys; ``None`` for nan."""
    found = {name: value, f"{name}_low": low, f"{name}_high": high}
    return {key: None if math.isnan(number) else float(number) for key, number in found.items()}


def of_share(hits: float, n: float) -> tuple[float, float]:
    """Interval of a share of ``n`` independent cases; nan of none."""
    if n <= 0:
        return math.nan, math.nan
    low, high = of_shares(np.array([hits / n]), np.array([1 / n]))
    return float(low[0]), float(high[0])


def of_shares(share: Floats, each: Floats) -> tuple[Floats, Floats]:
    """Intervals of shares; ``each``: 1 / the independent cases that they are worth; any shape."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = _wilson(share, Z2 * each)
        return np.minimum(low, _edge(share, each)), np.maximum(high, 1 - _edge(1 - share, each))


def _wilson(share: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Wilson's interval; ``c``: z² / cases."""
    reach = np.sqrt(np.maximum(c * share * (1 - share) + c * c / 4, 0))
    low = np.where(share <= 0, 0.0, (share + c / 2 - reach) / (1 + c))
    return low, np.where(share >= 1, 1.0, (share + c / 2 + reach) / (1 + c))


def _edge(share: Floats, each: Floats) -> Floats:
    """The lower end where few cases hit: Poisson's at one-sided 95 %; 1 where there are more."""
    n = 1 / each
    hits = share * n
    few = (hits > 0) & (share < 0.5) & (hits < np.where(n > 50, 3.5, 2.5))
    found = np.ones_like(share)
    found[few] = [_fewest(one) for one in hits[few].tolist()]
    found[few] /= n[few]
    return found


@cache
def _fewest(hits: float) -> float:
    """Poisson's lower end of a number of hits, by its distribution's incomplete gamma function.

    A&S 6.5.29, regularised, for small arguments. The same few numbers are asked for often.
    """
    low, high, whole = 0.0, hits, math.gamma(hits + 1)
    for _ in range(50):
        middle = (low + high) / 2
        term = total = 1.0
        for k in range(1, 40):
            term *= middle / (hits + k)
            total += term
        above = middle**hits * math.exp(-middle) * total / whole < 1 - LEVEL
        low, high = (middle, high) if above else (low, middle)
    return low


def by_seed(
    row: Indices,
    seed: Indices | None,
    value: Floats,
    n_rows: int,
    weight: Floats | None = None,
    centre: Floats | None = None,
) -> Shares:
    """Mean of the values (0 to 1) of each row, with intervals clustered by seed.

    All arguments have shape (cases,). ``seed``: numbers from 0; ``None``: not known, every case is
    independent. ``weight``: of each case, default 1. ``centre``: what a case is compared with,
    default the mean of its row; in a mean over opponents the mean against this one.
    """
    weight = np.ones(len(row)) if weight is None else weight
    total = np.bincount(row, weight, n_rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(row, weight * value, n_rows) / total
        squares = np.bincount(row, weight**2, n_rows) / total**2
    apart = weight * (value - (mean[row] if centre is None else centre))
    each = worth = squares
    if seed is not None:
        n_seeds = int(seed.max(initial=0)) + 1
        cell = row * n_seeds + seed
        if n_rows * n_seeds > 4 * len(row) + 1_000_000:  # too sparse to count every cell
            cells, cell = np.unique(cell, return_inverse=True)
        else:
            cells = np.arange(n_rows * n_seeds)
        some = np.bincount(cell, minlength=len(cells)) > 0
        of_row = cells[some] // n_seeds
        n = np.bincount(of_row, minlength=n_rows)
        of_seed = np.bincount(cell, weight, len(cells))[some]
        moved = np.bincount(cell, apart, len(cells))[some]
        t = np.array([student_t(LEVEL, k - 1) if k > 1 else math.inf for k in n.tolist()])
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = np.bincount(of_row, of_seed**2, n_rows) / total**2
            variance = np.bincount(of_row, moved**2, n_rows) / total**2 * (n + 1) / (n - 1)
            each = t**2 / Z2 * variance / (mean * (1 - mean))
    # Nan, where nothing varies or there is one seed, is worth the seeds.
    each = np.clip(np.where(np.isnan(each), math.inf, each), squares, worth)
    return Shares(mean, *of_shares(mean, each))


def share(values: npt.ArrayLike, seed: Sequence[str] | Indices | None, name: str) -> Row:
    """The entries of a share or mean of values from 0 to 1, clustered by the seed of each.

    ``seed``: of each case; ``None``: they are independent. All are ``None`` without a case.
    """
    given = np.asarray(values, dtype=np.float64)
    if not len(given):
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    numbers = None if seed is None else np.unique(np.asarray(seed), return_inverse=True)[1]
    return by_seed(np.zeros(len(given), dtype=np.intp), numbers, given, 1).row(0, name)


def mean(values: Sequence[float], lowest: float, highest: float) -> tuple[float, float]:
    """Interval of a mean of independent scores on a scale; nan of none.

    The same as of a share, the ends of the scale for 0 and 1: Wilson's form leans to the middle as
    scores do that pile up at an end, where a plain Student's t covers too little. Scores that are
    all the same show no spread: the interval is then what the mean would be if as many others as
    can go unseen (`of_share` of none) were at an end of the scale.
    """
    if not values:
        return math.nan, math.nan
    n, given = len(values), np.asarray(values, dtype=np.float64)
    middle, scale = float(given.mean()), highest - lowest
    if given.min() == given.max():
        unseen = of_share(0, n)[1]
        return middle - unseen * (middle - lowest), middle + unseen * (highest - middle)
    at = (middle - lowest) / scale
    variance = float(given.var(ddof=1)) / scale**2 / (at * (1 - at))
    each = min(student_t(LEVEL, n - 1) ** 2 / Z2 * variance, 1) / n
    low, high = _wilson(np.array([at]), np.array([Z2 * each]))
    return lowest + scale * float(low[0]), lowest + scale * float(high[0])
