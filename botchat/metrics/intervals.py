"""The interval of every rate, mean and figure of agreement, at 95 %: what other items would show.

Items (ChatSEEDs, questions) are independent, cases of one item are alike. How alike is seen from
the variance between items; a share that is alike as seen is worth fewer independent cases than it
has, and its interval is Wilson's (1927) of so many (Korn & Graubard 1998; Dean & Pagano 2015):

- never more cases than there are, never fewer than items, and as few as items where all cases
  agree, so that no interval has width zero; a quarter of an item that says "all alike" is added.
- Student's t with items - 1 degrees of freedom stands for the normal z, fewer where few items
  decide. Near 0 and 1 the end is moved out to Poisson's (Brown, Cai & DasGupta 2001, §4.1.1).

Votes of a crowd share what was asked and who answered: V_one + max(0, V_other - V_both), at least
that of either alone, with the fewer's t (Cameron, Gelbach & Miller 2011; MacKinnon et al. 2024).

Of other figures (a kappa, a correlation) the variance is the jackknife's (Efron 1982), and the
interval is the same between the figure's two ends. A difference is moved to the middle by two more
cases that say +1 and -1 (Bonett & Price 2012). Rank correlations of a few contestants jump: theirs
are percentiles of a bootstrap. `benchmarks/coverage.py` and ``coverage_boards.py`` measure them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from botchat.interfaces import Row
from botchat.metrics.statistics import LEVEL, Z, ratio, student_t
from botchat.verdicts import Flags, Floats, Indices

LEAST = 20
"""Dialogues below which nothing is said in words: a 95 % interval of a share of 20 is up to ±20
points wide."""

_ALIKE = 0.25
"""Items' worth of evidence, before any is seen, that cases of one item are all alike."""
_EVEN = 1e-6
"""Degrees of freedom by which clusters are as good as equal."""
_NOTHING = 1e-15
"""A variance that is only rounding."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares with the ends of their intervals, 0 to 1, each shape (rows,); nan without a case."""

    value: Floats
    low: Floats
    high: Floats
    worth: Floats
    """Independent cases that vary as much."""

    def row(self, i: int, name: str) -> Row:
        """The entries ``name``, ``name_low`` and ``name_high`` of one."""
        return entries(name, self.value[i], self.low[i], self.high[i])


def entries(name: str, value: float, low: float, high: float) -> Row:
    """A number and the ends of its interval under their keys; ``None`` for nan."""
    found = {name: value, f"{name}_low": low, f"{name}_high": high}
    return {key: None if math.isnan(number) else float(number) for key, number in found.items()}


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
    given, weight = weight, np.ones(len(row)) if weight is None else weight
    total = np.bincount(row, weight, n_rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(row, weight * value, n_rows) / total
        own = np.bincount(row, weight * (value - mean[row]) ** 2, n_rows) / total
        squares = np.bincount(row, weight**2, n_rows) / total**2
    if seed is None:
        only = _Clusters(squares, own * squares, np.bincount(row, None, n_rows))
        return _of_clusters(mean, own, squares, only)
    apart: Floats = weight * (value - (mean[row] if centre is None else centre))
    whole = np.asarray(total, dtype=np.float64)
    return _of_clusters(mean, own, squares, _between(row, seed, given, apart, whole))


class _Clusters(NamedTuple):
    """Clusters of one kind, shape (rows,)."""

    seeds: Floats
    """1 / the clusters of one weight that would say as much."""
    variance: Floats
    """Of the mean, as seen between them."""
    n: Indices
    """How many there are."""
    uneven: tuple[Floats, ...] | None = None
    """What `freedom` takes; ``None``: one case each."""

    def freedom(self, squares: Floats, alike: Floats) -> tuple[Floats, Floats]:
        """Degrees of freedom of the variance, and what it lacks, as few clusters may decide.

        As of so many clusters of one weight as have as unequal a part in it (Satterthwaite 1946);
        of equal ones n - 1 and n / (n - 1). ``squares`` and ``alike``: as of `_of_clusters`.
        """
        equal = (self.n - 1).astype(np.float64)
        if self.uneven is None:
            return equal, self.n / equal
        own, cross, more, part, share = self.uneven
        whole = squares + alike * (self.seeds - squares)
        found = whole**2 / (own + 2 * alike * cross + alike**2 * more) - 1
        lacking = whole / (whole * (1 + self.seeds) - 2 * (part + alike * share))
        same = np.abs(found - equal) < _EVEN
        return np.where(same, equal, found), np.where(same, self.n / equal, lacking)


def _between(
    row: Indices, seed: Indices, weight: Floats | None, apart: Floats, total: Floats
) -> _Clusters:
    n_rows, n_seeds = len(total), int(seed.max(initial=0)) + 1
    cell = row * n_seeds + seed
    if n_rows * n_seeds > 4 * len(row) + 1_000_000:  # too sparse to count every cell
        cells, cell = np.unique(cell, return_inverse=True)
    else:
        cells = np.arange(n_rows * n_seeds)
    counts = np.bincount(cell, minlength=len(cells))
    some = counts > 0
    of_row = cells[some] // n_seeds
    each = [np.asarray(counts[some], dtype=np.float64)] * 2
    if weight is not None:
        sums = (np.bincount(cell, one, len(cells))[some] for one in (weight, weight**2))
        each = [np.asarray(one, dtype=np.float64) for one in sums]
    of_seed, squared = each
    moved = np.bincount(cell, apart, len(cells))[some]
    with np.errstate(divide="ignore", invalid="ignore"):
        seeds = np.bincount(of_row, of_seed**2, n_rows) / total**2
        variance = np.bincount(of_row, moved**2, n_rows) / total**2
        share = of_seed / total[of_row]
        own = squared / total[of_row] ** 2
    more = share**2 - own
    uneven = [own**2, own * more, more**2, share * own, share * more]
    n = np.bincount(of_row, minlength=n_rows)
    parts = (np.bincount(of_row, one, n_rows).astype(np.float64) for one in uneven)
    return _Clusters(seeds, variance, n, tuple(parts))


def _of_clusters(mean: Floats, own: Floats, squares: Floats, way: _Clusters) -> Shares:
    """Clustered shares; all arguments have shape (rows,).

    ``own``: variance of a case. ``squares``: 1 / the cases of one weight that would say as much.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        seeds = way.seeds
        alike = (way.variance / own - squares) / (seeds - squares)
        seen = np.minimum(mean, 1 - mean) / seeds
        alike = np.where(np.isfinite(alike), alike, 1.0).clip(0, 1)
        alike = (seen * alike + _ALIKE) / (seen + _ALIKE)
        each = own / (mean * (1 - mean)) * (squares + alike * (seeds - squares))
        freedom, lacking = way.freedom(squares, alike)
        worth = 1 / each
        each = each * _half_widths(freedom) ** 2 / Z**2 * lacking
    each = np.fmin(each, seeds)
    low, high = of_shares(mean, each)
    # Cases that are all the same show no spread: as many others as can go unseen may be at an end.
    same = (own <= _NOTHING) & ~np.isnan(mean)
    unseen = of_shares(np.zeros(int(same.sum())), seeds[same])[1]
    low[same], high[same] = mean[same] * (1 - unseen), mean[same] + unseen * (1 - mean[same])
    return Shares(mean, low, high, np.where(np.isfinite(worth), worth, 1 / seeds))


def _half_widths(freedom: Floats) -> Floats:
    """Student's t of degrees of freedom, exact of whole ones; infinite below one."""
    grid = np.array([*range(1, 60), 60, 80, 120, 240, 1000, 1e9])
    known = np.array([student_t(LEVEL, int(df)) for df in grid])
    found = np.interp(-1 / np.maximum(freedom, 1e-9), -1 / grid, known, left=math.inf)
    for df in np.unique(freedom[freedom == np.round(freedom)]):
        found[freedom == df] = student_t(LEVEL, int(df)) if df >= 1 else math.inf
    return np.asarray(found)


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

    That of a share, the ends of the scale for 0 and 1: it leans to the middle as scores do that
    pile up at an end, where a plain Student's t covers too little.
    """
    scale = highest - lowest
    found = share((np.asarray(values, dtype=np.float64) - lowest) / scale, None, "mean")
    if found["mean"] is None:
        return math.nan, math.nan
    return lowest + scale * found["mean_low"], lowest + scale * found["mean_high"]


def of_share(hits: float, n: float) -> tuple[float, float]:
    """Interval of a share of ``n`` independent cases; nan of none."""
    if n <= 0:
        return math.nan, math.nan
    low, high = of_shares(np.array([hits / n]), np.array([1 / n]))
    return float(low[0]), float(high[0])


def of_shares(share: Floats, each: Floats) -> tuple[Floats, Floats]:
    """Intervals of shares; ``each``: 1 / the independent cases that they are worth; any shape."""
    with np.errstate(divide="ignore", invalid="ignore"):
        c = Z**2 * each
        reach = np.sqrt(np.maximum(c * share * (1 - share) + c * c / 4, 0))
        # At 0 and 1 one end is exactly that; floating point would miss it.
        low = np.where(share <= 0, 0.0, (share + c / 2 - reach) / (1 + c))
        high = np.where(share >= 1, 1.0, (share + c / 2 + reach) / (1 + c))
        return np.minimum(low, _edge(share, each)), np.maximum(high, 1 - _edge(1 - share, each))


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


@dataclass(frozen=True, eq=False)
class Statistic:
    """A figure and what is known of its spread."""

    values: Floats
    """Of all items, then without each, and with some that were not met (if bootstrapped, in each
    resample); shape (n + 1,)."""
    items: int = 0
    """Items that it rests on."""
    least: float = 0.0
    """The least that it can be; the most is 1, of a difference ``-least``."""
    kind: Literal["share", "ended", "difference", "drawn"] = "ended"
    worth: float = 0.0
    """Of a share or difference: independent verdicts that vary as much."""
    ends: tuple[float, float] = (math.nan, math.nan)
    """Of a share: its interval."""
    freedom: float | None = None
    """Degrees of freedom where few items decide; default one fewer than items."""

    def less(self, other: Statistic) -> Statistic:
        """The difference of two figures of the same items."""
        values = self.values - other.values
        if self.kind == "drawn":
            return Statistic(values, kind="drawn")
        items, least = max(self.items, other.items), min(self.least, other.least) - 1
        worth = min(self.independent, other.independent)
        if self.kind == "difference":
            least, worth = 2 * self.least, self.worth
        free = min((one.freedom for one in (self, other) if one.freedom is not None), default=None)
        return Statistic(values, items, least, "difference", worth, freedom=free)

    @property
    def variance(self) -> float:
        """By the jackknife, of items with mean 0; what it is not defined without moves it 0."""
        moved = np.nan_to_num(self.values[1:] - self.values[0])
        return float(moved @ moved) * ((self.items - 1) / max(self.items, 1)) ** 2

    @property
    def independent(self) -> float:
        """How many independent verdicts vary as much; as many as items where nothing varies."""
        place, variance = self._place, self.variance / (1 - self.least) ** 2
        if self.worth:
            return self.worth
        varies = 0 < place < 1 and variance > _NOTHING
        return place * (1 - place) / variance if varies else float(self.items)

    @property
    def interval(self) -> tuple[float, float]:
        """Ends at `LEVEL`; nan where nothing is known of them."""
        if self.kind == "share":
            return self.ends
        if self.kind == "drawn":
            drawn = self.values[1:][np.isfinite(self.values[1:])]
            if not len(drawn):
                return math.nan, math.nan
            low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            return float(low), float(high)
        if self.kind == "difference":
            return self._of_difference()
        worth = self.independent
        if self.items > 1:
            worth = max(worth * (Z / self._half_width(0)) ** 2, 1.0)
        low, high = of_share(self._place * worth, worth)
        return self.least + low * (1 - self.least), self.least + high * (1 - self.least)

    @property
    def _place(self) -> float:
        """The figure between its ends, 0 to 1."""
        return min(max((float(self.values[0]) - self.least) / (1 - self.least), 0.0), 1.0)

    def _half_width(self, more: int) -> float:
        """Student's t, with so many more degrees of freedom."""
        free = self.items - 1 if self.freedom is None else self.freedom
        return float(_half_widths(np.array([max(free, 1.0) + more]))[0])

    def _of_difference(self) -> tuple[float, float]:
        n, value, most = self.worth, float(self.values[0]) / -self.least, -self.least
        middle = n * value / (n + 2)
        square = (n * (n * self.variance / most**2 + value * value) + 2) / (n + 2)
        reach = self._half_width(2) * math.sqrt((square - middle * middle) / (n + 2))
        low, high = max(-1.0, middle - reach), min(1.0, middle + reach)
        return most * min(value, low), most * max(value, high)


def left_out(by_item: Floats) -> Floats:
    """Sums over all items, then without each; (items, …) -> (items + 1, …)."""
    total = by_item.sum(0)
    return np.concatenate([total[None], total - by_item])


class Items:
    """Figures of verdicts, each of which belongs to one of n items."""

    def __init__(self, n: int, item: Indices) -> None:
        """``item``: of each verdict, any shape; rows below are flags of that shape."""
        self.n, self.item = n, item

    def sums(self, values: Floats, rows: Flags) -> Floats:
        """Sums of ``values`` (chosen rows, k), of all items and without each, (n + 1, k)."""
        by_item = np.zeros((self.n, values.shape[1]))
        np.add.at(by_item, self.item[rows], values)
        return left_out(by_item)

    def mean(self, values: Floats, rows: Flags) -> Statistic:
        """Mean of values from 0 to 1, one a chosen row."""
        item, once = self.item[rows], np.ones_like(values)
        # As `sums` does, in a fraction of the time.
        by_item = [np.bincount(item, of, self.n).astype(np.float64) for of in (values, once)]
        total, n = left_out(np.stack(by_item, -1)).T
        found = by_seed(np.zeros(len(item), np.intp), item, values, 1)
        low, high, worth = (float(part[0]) for part in (found.low, found.high, found.worth))
        free, share = self.freedom(rows), ratio(total, n)
        items = self.count(rows)
        return Statistic(share, items, 0.0, "share", worth, (low, high), freedom=free)

    def share(self, hit: Flags, of: Flags) -> Statistic:
        """Share of ``hit`` among the rows ``of``."""
        return self.mean(hit[of].astype(np.float64), of)

    def difference(self, values: Floats, rows: Flags) -> Statistic:
        """Mean of differences from -1 to 1, one a chosen row."""
        total, n = self.sums(np.stack([values, np.ones_like(values)], -1), rows).T
        free = self.freedom(rows)
        found = Statistic(ratio(total, n), self.count(rows), -1.0, "difference", freedom=free)
        varies = found.variance > _NOTHING
        worth = min(float(values.var()) / found.variance, len(values)) if varies else found.items
        return replace(found, worth=worth)

    def freedom(self, rows: Flags) -> float:
        """Degrees of freedom where items have unequal numbers of chosen rows, half alike."""
        n = np.bincount(self.item[rows], minlength=self.n).astype(np.float64)
        part = n * (1 + n)
        return round(float(part.sum() ** 2 / max((part**2).sum(), 1)) - 1, 9)

    def count(self, rows: Flags) -> int:
        """Items with a chosen row."""
        return len(np.unique(self.item[rows]))


def figures(values: Mapping[str, Statistic]) -> Row:
    """The entries ``name``, ``name_low``, ``name_high`` of figures; None where not defined."""
    row: Row = {}
    for name, figure in values.items():
        value = float(figure.values[0])
        known = math.isfinite(value)
        row |= entries(name, *((value, *figure.interval) if known else [math.nan] * 3))
    return row


def differences(one: Mapping[str, Statistic], other: Mapping[str, Statistic]) -> Row:
    """The entries ``<name>_difference``, one less other, in the order of ``one``."""
    return figures({f"{name}_difference": one[name].less(other[name]) for name in one})
