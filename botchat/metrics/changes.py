"""What changed between two estimates, and which of several fell.

The interval of a difference follows from the intervals of both and their correlation (MOVER: Donner
& Zou 2012; of Wilson's intervals of independent shares it is Newcombe's method 10, 1998, of paired
ones his for paired data). The correlation is that of what the estimates are from, seed by seed;
where that is not known, it is taken as 0: wider than need be where seeds are hard for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from botchat.metrics.statistics import LEVEL


class Estimate(NamedTuple):
    """A number with the ends of its interval at `LEVEL`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """``after`` less ``before``."""

    before: Estimate
    after: Estimate
    correlation: float = 0.0
    """Of the two as estimates, -1 to 1."""

    @property
    def value(self) -> float:
        """The difference."""
        return self.after.value - self.before.value

    @property
    def low(self) -> float:
        """Lower end of its interval at `LEVEL`."""
        return self.value - self._reach(
            self.after.value - self.after.low, self.before.high - self.before.value
        )

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value + self._reach_up

    @property
    def _reach_up(self) -> float:
        return self._reach(self.after.high - self.after.value, self.before.value - self.before.low)

    def _reach(self, one: float, other: float) -> float:
        square = one**2 + other**2 - 2 * self.correlation * one * other
        return math.sqrt(max(square, 0.0))

    @property
    def fell(self) -> float:
        """One-sided p that it did not fall: below p the upper end at level 1 - 2 p is negative."""
        if not self._reach_up:
            return float(self.value >= 0)
        normal = NormalDist()
        return normal.cdf(self.value / self._reach_up * normal.inv_cdf(0.5 + LEVEL / 2))

    def smallest_found(self, alpha: float, power: float) -> float:
        """The fall that a test at level ``alpha`` finds in a share ``power`` of comparisons."""
        normal = NormalDist()
        error = self._reach_up / normal.inv_cdf(0.5 + LEVEL / 2)
        return error * (normal.inv_cdf(1 - alpha) + normal.inv_cdf(power))


LEAST_SHARED = 5
"""Seeds below which a correlation is not known."""


def correlation(before: npt.ArrayLike, after: npt.ArrayLike) -> float:
    """Of two estimates, from what each seed says in both, shape (seeds,); nan: it says nothing.

    Pearson's over the seeds that speak in both, as far as the estimates rest on these. It is moved
    towards 0 by two seeds' worth, as Newcombe's continuity correction of phi does: seeds that all
    say the same twice do not make a difference certain.
    """
    one, other = (np.asarray(values, dtype=np.float64) for values in (before, after))
    both = ~np.isnan(one) & ~np.isnan(other)
    n = int(both.sum())
    if n < LEAST_SHARED:
        return 0.0
    one_sum, other_sum = int((~np.isnan(one)).sum()), int((~np.isnan(other)).sum())
    one, other = one[both] - one[both].mean(), other[both] - other[both].mean()
    spread = math.sqrt(float(one @ one) * float(other @ other))
    if not spread:
        return 0.0
    found = float(one @ other) / spread
    nearer = max(abs(found) - 2 / n, 0.0)
    return math.copysign(nearer, found) * n / math.sqrt(one_sum * other_sum)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p of several tests, so that all together are wrong as rarely (Holm 1979)."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, most = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - place) * p[i]))
        adjusted[i] = most
    return adjusted
