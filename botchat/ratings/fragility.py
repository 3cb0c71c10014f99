"""How few ChatSEEDs decide who is first: those without which the first two change places.

Each seed's influence on the difference of two Bradley-Terry ratings is known from the fit itself
(its score times the inverse curvature). Seeds are taken away in the order of their influence and
the ratings fitted anew (Broderick, Giordano & Meager 2020). Another choice of seeds might do with
fewer: the number is an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from botchat.ratings.bradley_terry import (
    BradleyTerryResult,
    fit,
    has_maximum,
    influence,
    maximise,
    tables,
)
from botchat.ratings.comparisons import Comparisons, distinct

_LEAST_LEAD = 1e-9
"""Logits; less is rounding."""


@dataclass(frozen=True)
class Fragility:
    """The first two models of a board and what it takes to swap them."""

    first: str
    second: str
    lead: float
    """Rating points between them."""
    seeds: int | None
    """Seeds whose removal puts the second before the first; ``None``: none were found."""
    of: int
    """All seeds."""

    def told(self, unit: str = "ChatSEEDs") -> str:
        """In words; ``unit``: what the seeds are called."""
        if self.seeds is None:
            return f"No {unit} were found without which {self.second} stands before {self.first}"
        return (
            f"Without {self.seeds} of the {self.of} {unit}, if not fewer, {self.second} would "
            f"stand before {self.first}"
        )


def fragility(
    comparisons: Comparisons, fitted: BradleyTerryResult | None = None
) -> Fragility | None:
    """How few seeds swap the two best models by Bradley-Terry.

    ``fitted``: their ratings, if there are some. ``None`` where seeds are not known, ratings have
    no maximum, or there are not two models.
    """
    fitted = fitted or fit(comparisons)
    if len(fitted.models) < 2 or comparisons.cluster is None or fitted.warning:
        return None
    first, second = np.argsort(-fitted.rating, kind="stable")[:2].tolist()
    names = fitted.models[first], fitted.models[second]
    lead = float(fitted.rating[first] - fitted.rating[second])
    labels, seed = distinct(comparisons.cluster)
    _, moves = influence(comparisons, fitted)
    order = np.argsort(moves[:, second] - moves[:, first], kind="stable")

    def swapped(k: int) -> bool:
        """Whether the places are swapped without the first k seeds of that order."""
        gone = np.zeros(len(labels), dtype=bool)
        gone[order[:k]] = True
        kept = ~gone[seed]
        left = comparisons.only(kept)
        games, score = (table[None] for table in tables(left, fitted.settings.tie_weight))
        if not has_maximum(score)[0]:
            return False
        rating = maximise(games, score)[0]
        return bool(rating[second] - rating[first] > _LEAST_LEAD)

    low, high, most = 0, 1, len(labels) - 1
    while not swapped(min(high, most)):
        if high >= most:
            return Fragility(*names, lead, None, len(labels))
        low, high = high, 2 * high
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if swapped(middle) else (middle, high)
    return Fragility(*names, lead, high, len(labels))
