"""Estimates: a number with its 95 % interval, alone and in columns.

Statistics return these; only `botchat.boards.tables` knows under which keys a table has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.records import Names as Names

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]
Codes: TypeAlias = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its 95 % interval, each NaN where it is not known.

    >>> accuracy = Estimate(0.8, 0.7, 0.9)
    >>> -accuracy
    Estimate(value=-0.8, low=-0.9, high=-0.7)
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    def __neg__(self) -> Estimate:
        """Return it with the other sign."""
        return Estimate(-self.value, -self.high, -self.low)

    @property
    def is_known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are known."""
        return not math.isnan(self.low + self.high)

    def stretched(self, lowest: float, width: float) -> Estimate:
        """Return a share, 0 to 1, on a scale from ``lowest`` that is ``width`` wide."""
        ends = (lowest + width * end for end in (self.value, self.low, self.high))
        return Estimate(*ends)


UNKNOWN = Estimate()
"""No number, such as a share of no cases."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Numbers with the ends of their intervals, shape (rows,), each NaN where it is not known."""

    value: Floats
    low: Floats
    high: Floats
    n: Floats
    """Independent cases that each is worth."""

    def at(self, row: int) -> Estimate:
        """Return one of them."""
        return Estimate(float(self.value[row]), float(self.low[row]), float(self.high[row]))


@dataclass(frozen=True)
class VerdictPrice:
    """Price of one verdict; None where it is not known of every call."""

    calls: float
    tokens: float | None
    usd: float | None
    seconds: float | None
    """Sum of the calls' own, also where they were in flight together."""
