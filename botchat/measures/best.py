"""Which of several judges may be the best, and by how much any can be better: all at once.

Every judge in turn is held against all others (multiple comparisons with the best, Hsu 1981; 1996,
ch. 4). It leaves the set where the largest lead over it, in units of its own spread, is beyond what
random signs of the items show in 95 % of draws (max-t, Romano & Wolf 2005): the best is in the set
in 95 % of worlds, and in the same worlds all bounds on how much better a judge of it is hold.

Two judges are compared on what both have answered. The bounds are those of a ratio (Fieller 1954),
with two more items, +1 and -1 (Bonett & Price 2012). `benchmarks/coverage_judges.py` measures them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from botchat.interfaces import Row
from botchat.measures.statistics import LEVEL, ratio
from botchat.verdicts import Flags, Floats, Indices

_FLIPS = 4_999
"""Random signs of all items, beside those seen."""

GROUPS = 1024
"""Items beyond so many are flipped in as many groups: more would not change a quantile."""

_ONE_SIDED = NormalDist().inv_cdf(LEVEL)

_POWER = NormalDist().inv_cdf(0.8)
"""A lead as seen is found in four of five samples."""


@dataclass(frozen=True, eq=False)
class Contest:
    """Judges (rows) held against others (columns); both axes have the order of the values given."""

    lead: Floats
    """Mean of the column less the row on what both answered, shape (m, m); nan without any."""
    low: Floats
    """Least that the column is better than the row, simultaneous; that of the other is its most."""
    units: Floats
    """`lead` in the units of `beyond`."""
    beyond: Floats
    """Units above which a lead over the row is no chance, shape (m,)."""
    p: Floats
    """That no other is better, shape (m,)."""
    items: Indices
    """Items that both answered, shape (m, m)."""

    @property
    def may_be_best(self) -> Flags:
        """The set that surely holds the best; shape (m,)."""
        return np.asarray(self.p > 1 - LEVEL)

    @property
    def at_most_worse(self) -> Floats:
        """How much better than each judge the best can be; shape (m,)."""
        most = np.where(self.may_be_best, -self.low.T, 0.0)
        np.fill_diagonal(most, 0.0)
        return np.asarray(most.max(1).clip(0))

    def of(self, judge: int) -> Row:
        """Entries of one judge, JSON-ready."""
        worse = float(self.at_most_worse[judge])
        return {"may_be_best": int(self.may_be_best[judge]), "at_most_worse": worse}

    def more_items(self, row: int, column: int) -> int | None:
        """Items to add for the row to leave the set, if the lead is as seen; ``None`` of no lead.

        In four of five samples.
        """
        if not (units := float(self.units[row, column])) > 0:
            return None
        needed = float(((self.beyond[row] + _POWER) / units) ** 2 - 1)
        return max(1, math.ceil(int(self.items[row, column]) * needed))


def contest(values: Floats, item: Indices, most: float = 1.0) -> Contest:
    """Judges' values compared with the best of them.

    ``values``: shape (m, cases), such as 1 right and 0 wrong; nan where there is none. ``item``:
    of each case. ``most``: that two values can differ by.
    """
    there, item = np.unique(item, return_inverse=True)
    item %= GROUPS
    order = np.argsort(item, kind="stable")
    begins = np.searchsorted(item[order], np.arange(min(len(there), GROUPS)))
    values = values[:, order]
    known = ~np.isnan(values)
    flips = signs(len(begins))
    found = [_held(values, known, j, begins, flips, most) for j in range(len(values))]
    return Contest(*map(np.array, zip(*found, strict=True)))


@lru_cache(maxsize=4)
def signs(n: int, draws: int = _FLIPS, seed: int = 0) -> Floats:
    """Signs of ``n`` items, those seen (all 1) first: every way, or ``draws`` at random beside it.

    Shape (ways, n).
    """
    if 2**n <= draws:
        found = 1.0 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    else:
        drawn = np.random.default_rng(seed).integers(0, 2, (draws, n), dtype=np.int8)
        found = np.concatenate([np.ones((1, n)), 2.0 * drawn - 1])
    found.flags.writeable = False
    return np.asarray(found, np.float64)


def flipped(leads: Floats, flips: Floats) -> Floats:
    """Sums of each column in units of its spread, shape (ways, columns); ``leads``: by item."""
    spread = np.sqrt((leads**2).sum(0))
    return np.asarray(flips @ (leads / np.where(spread > 0, spread, 1.0)))


def beyond_chance(largest: Floats) -> float:
    """How likely by chance is the first of the largest sums of every way: p."""
    return float((largest >= largest[0] - 1e-9).mean())


def rank_apart(points: Floats) -> tuple[float, int]:
    """Whether two judges rank the same: p, and the contestant (column) that they differ most on.

    ``points``: those by one judge less those by the other, on what both answered, by item; shape
    (items, contestants). How much a judge gives to all does not count.
    """
    apart = np.abs(flipped(points - points.mean(1, keepdims=True), signs(len(points))))
    return beyond_chance(apart.max(1)), int(apart[0].argmax())


def _held(
    values: Floats, known: Flags, j: int, begins: Indices, flips: Floats, most: float
) -> tuple[Floats, Floats, Floats, float, float, Indices]:
    """Judge j against all others: a row of each field of a `Contest`."""
    both = known & known[j]
    apart = np.where(both, values - values[j], 0.0)
    leads = np.add.reduceat(apart, begins, axis=1).T
    n = np.add.reduceat(both.astype(np.float64), begins, axis=1).T
    sums = flipped(leads, flips)
    largest = np.delete(sums, j, axis=1).max(1, initial=-math.inf)
    beyond = max(float(np.quantile(largest, LEVEL, method="higher")), _ONE_SIDED)
    low = _least(leads, n, beyond, most)
    lead = ratio(leads.sum(0), n.sum(0))
    return lead, low, sums[0], beyond, beyond_chance(largest), (n > 0).sum(0)


def _least(leads: Floats, n: Floats, beyond: float, most: float) -> Floats:
    """Lower ends of mean leads, both of shape (items, m): less would be beyond chance."""
    items, square, total, cases = (n > 0).sum(0), beyond**2, leads.sum(0), n.sum(0)
    extra = ratio(cases, items)
    all_cases = cases + 2 * extra
    a = all_cases**2 - square * ((n**2).sum(0) + 2 * extra**2)
    b = all_cases * total - square * (leads * n).sum(0)
    c = total**2 - square * ((leads**2).sum(0) + 2 * (most * extra) ** 2)
    with np.errstate(invalid="ignore"):
        low = ratio(b - np.sqrt(np.maximum(b**2 - a * c, 0.0)), a)
    return np.where(a > 0, np.fmin(low, ratio(total, cases)).clip(-most), -most)
