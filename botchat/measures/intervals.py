"""Intervals of figures from verdicts that share items, honest where all verdicts are alike.

Items (seeds, questions) are independent, verdicts of one item are not. How much a figure varies is
seen from what it is without each item (the jackknife; Efron 1982). Of that follow

- of a figure with two ends (a share, a kappa, a correlation): Wilson's interval between the ends,
  of as many independent verdicts as vary that much (Dean & Pagano 2015), by Student's t where items
  have several; as many as items where all agree. A share of independent items has Wilson's interval
  itself (Wilson 1927).
- of a difference: that of as many independent verdicts, and two more that say +1 and -1 (Bonett &
  Price 2012), by Student's t.
- of rank correlations of a few contestants, which jump: percentiles of a bootstrap over items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from botchat.interfaces import Row
from botchat.measures.statistics import LEVEL, Flags, Floats, Indices, ratio, student_t, wilson

_NORMAL = 1.959964
_ALIKE = 0.25
"""Items' worth of evidence, before any is seen, that verdicts of one item are all alike."""
_NOTHING = 1e-15
"""A variance that is only rounding."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure and what is known of its spread."""

    values: Floats
    """Of all items, then without each (if bootstrapped, in each resample); shape (n + 1,)."""
    items: int = 0
    """Items that it rests on."""
    verdicts: int | None = None
    """Yes-or-no verdicts that it is a share of; ``None``: it is not one."""
    least: float = 0.0
    """The least that it can be; the most is 1, of a difference ``-least``."""
    kind: Literal["ended", "difference", "drawn"] = "ended"
    worth: float = 0.0
    """Of a difference: independent verdicts that vary as much."""

    def less(self, other: Figure) -> Figure:
        """The difference of two figures of the same items."""
        values = self.values - other.values
        if self.kind == "drawn":
            return Figure(values, kind="drawn")
        items, least = max(self.items, other.items), min(self.least, other.least) - 1
        if self.kind == "difference":
            return Figure(values, items, None, 2 * self.least, "difference", self.worth)
        worth = min(self.independent, other.independent)
        return Figure(values, items, None, least, "difference", worth)

    @property
    def variance(self) -> float:
        """By the jackknife, of items with mean 0; what it is not defined without moves it 0."""
        moved = np.nan_to_num(self.values[1:] - self.values[0])
        return float(moved @ moved) * ((self.items - 1) / max(self.items, 1)) ** 2

    @property
    def independent(self) -> float:
        """How many independent verdicts vary as much; as many as items where nothing varies."""
        share, variance = self._place, self.variance / (1 - self.least) ** 2
        worth = float(self.items)
        if 0 < share < 1 and variance > _NOTHING:
            worth = share * (1 - share) / variance
        if self.verdicts is None or self.verdicts <= self.items:
            return worth if self.verdicts is None else float(self.verdicts)
        # How alike verdicts of one item are is seen from those that differ from most; where these
        # are few, they are taken to be more alike.
        each = self.verdicts / self.items
        alike = max(0.0, (self.verdicts / worth - 1) / (each - 1))
        seen = self.items * min(share, 1 - share)
        alike = (seen * alike + _ALIKE) / (seen + _ALIKE)
        return self.verdicts / (1 + alike * (each - 1))

    @property
    def interval(self) -> tuple[float, float]:
        """Ends at `LEVEL`; nan where nothing is known of them."""
        if self.kind == "drawn":
            drawn = self.values[1:][np.isfinite(self.values[1:])]
            if not len(drawn):
                return math.nan, math.nan
            low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            return float(low), float(high)
        if self.kind == "difference":
            return self._of_difference()
        worth = self.independent
        if self.items > 1 and self.verdicts != self.items:
            worth *= (_NORMAL / student_t(LEVEL, self.items - 1)) ** 2
        low, high = wilson(self._place * worth, worth)
        return self.least + low * (1 - self.least), self.least + high * (1 - self.least)

    @property
    def _place(self) -> float:
        """The figure between its ends, 0 to 1."""
        return min(max((float(self.values[0]) - self.least) / (1 - self.least), 0.0), 1.0)

    def _of_difference(self) -> tuple[float, float]:
        n, value, most = self.worth, float(self.values[0]) / -self.least, -self.least
        middle = n * value / (n + 2)
        square = (n * (n * self.variance / most**2 + value * value) + 2) / (n + 2)
        reach = student_t(LEVEL, self.items + 1) * math.sqrt((square - middle * middle) / (n + 2))
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

    def mean(self, values: Floats, rows: Flags) -> Figure:
        """Mean of values from 0 to 1, one a chosen row."""
        total, n = self.sums(np.stack([values, np.ones_like(values)], -1), rows).T
        return Figure(ratio(total, n), self.count(rows))

    def share(self, hit: Flags, of: Flags) -> Figure:
        """Share of ``hit`` among the rows ``of``."""
        return replace(self.mean(hit[of].astype(np.float64), of), verdicts=int(of.sum()))

    def difference(self, values: Floats, rows: Flags) -> Figure:
        """Mean of differences from -1 to 1, one a chosen row."""
        found = replace(self.mean(values, rows), least=-1.0, kind="difference")
        varies = found.variance > _NOTHING
        worth = min(float(values.var()) / found.variance, len(values)) if varies else found.items
        return replace(found, worth=worth)

    def count(self, rows: Flags) -> int:
        """Items with a chosen row."""
        return len(np.unique(self.item[rows]))


def figures(values: Mapping[str, Figure]) -> Row:
    """The entries ``name``, ``name_low``, ``name_high`` of figures; None where not defined."""
    row: Row = {}
    for name, figure in values.items():
        row |= {name: None, f"{name}_low": None, f"{name}_high": None}
        if math.isfinite(figure.values[0]):
            row[name] = float(figure.values[0])
            low, high = figure.interval
            if math.isfinite(low):
                row |= {f"{name}_low": low, f"{name}_high": high}
    return row


def differences(one: Mapping[str, Figure], other: Mapping[str, Figure]) -> Row:
    """The entries ``<name>_difference``, one less other, in the order of ``one``."""
    return figures({f"{name}_difference": one[name].less(other[name]) for name in one})
