"""What changed between two independent estimates, and which of several fell.

The interval of a difference follows from the intervals of both (MOVER: Donner & Zou 2012; of two
Wilson intervals it is Newcombe's method 10, 1998). It takes the estimates as independent: of two
boards of the same ChatSEEDs it is wider than need be, never narrower where seeds are hard for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from botchat.measures.statistics import LEVEL


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

    @property
    def value(self) -> float:
        """The difference."""
        return self.after.value - self.before.value

    @property
    def turned(self) -> Change:
        """From after to before."""
        return Change(self.after, self.before)

    @property
    def low(self) -> float:
        """Lower end of its interval at `LEVEL`."""
        return self.value - math.hypot(
            self.after.value - self.after.low, self.before.high - self.before.value
        )

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value + self._reach_up

    @property
    def _reach_up(self) -> float:
        return math.hypot(self.after.high - self.after.value, self.before.value - self.before.low)

    @property
    def fell(self) -> float:
        """One-sided p that it did not fall: below p the upper end at level 1 - 2 p is negative."""
        if not self._reach_up:
            return float(self.value >= 0)
        normal = NormalDist()
        return normal.cdf(self.value / self._reach_up * normal.inv_cdf(0.5 + LEVEL / 2))


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p of several tests, so that all together are wrong as rarely (Holm 1979)."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, most = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - place) * p[i]))
        adjusted[i] = most
    return adjusted
