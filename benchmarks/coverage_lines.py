"""A line of what `coverage.py` and its families print: how often a method held."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Measured:
    """How often a method held in one family of worlds."""

    method: str
    world: str
    n: int
    """Seeds, or items."""
    stated: float
    """0: only shown, beside another method."""
    held: int
    runs: int
    width: float
    """Mean width of the intervals; nan of a test."""

    @property
    def achieved(self) -> float:
        """Share of the runs."""
        return self.held / self.runs

    @property
    def error(self) -> float:
        """Standard error of `achieved` where what is stated holds."""
        return math.sqrt(max(self.stated * (1 - self.stated), 0.25 / self.runs) / self.runs)

    @property
    def holds(self) -> bool:
        """Whether no less is achieved than is stated."""
        return self.achieved >= self.stated - 2 * self.error

    def __str__(self) -> str:
        """A line of the table."""
        stated = f"{self.stated:.3f}" if self.stated else "     "
        width = f"{self.width:7.3f}" if math.isfinite(self.width) else " " * 7
        return (
            f"{self.method:<24}{self.world:<44}{self.n:>5}  {stated}  {self.achieved:.3f}  "
            f"{self.error:.3f} {width}{'' if self.holds else '  <-- less than stated'}"
        )


def covered(
    method: str, world: str, n: int, ends: Iterator[tuple[float, float, float]], stated: float
) -> Measured:
    """Counted from (truth, low, high) of every run."""
    found = np.array(list(ends))
    held = (found[:, 0] >= found[:, 1] - 1e-12) & (found[:, 0] <= found[:, 2] + 1e-12)
    width = float((found[:, 2] - found[:, 1]).mean())
    return Measured(method, world, n, stated, int(held.sum()), len(found), width)
