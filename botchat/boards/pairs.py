"""Comparisons counted: wins, ties and losses of contestants and pairs, and their rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from botchat.interfaces import Row
from botchat.metrics.intervals import Shares, clustered_proportions
from botchat.metrics.statistics import distinct
from botchat.protocols.rates import WinTieLose
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import LOSS, TIE, WIN, Indices, Verdicts

_RESULTS = {"win": (WIN,), "tie": (TIE,), "lose": (LOSS,), "win_or_tie": (WIN, TIE)}

MOST_LISTED = 300
"""Models up to which pairs that were never compared are listed too."""


def comparisons_of(readable: Verdicts, cluster: Indices) -> Comparisons:
    """Readable verdicts as comparisons of the contestants, by name; ``cluster``: of each seed."""
    contestants = readable.judged_contestants
    place = {name: i for i, name in enumerate(contestants)}
    # Contestants that only unreadable verdicts name have no place, and none is asked for.
    of = np.array([place.get(name, -1) for name in readable.contestants], dtype=np.intp)
    return Comparisons(
        tuple(contestants),
        of[readable.first],
        of[readable.second],
        readable.result,
        cluster[readable.seed],
    )


class PairRates:
    """Win, tie and lose rates of each model against all others, or against each other one."""

    def __init__(self, comparisons: Comparisons, *, by_pair: bool) -> None:
        """Count every comparison from either side."""
        self._place = {name: i for i, name in enumerate(comparisons.models)}
        self._by_pair, m = by_pair, len(comparisons.models)
        side = np.concatenate([comparisons.first, comparisons.second])
        other = np.concatenate([comparisons.second, comparisons.first])
        result = np.concatenate([comparisons.result, 1 - comparisons.result])
        cluster = None if comparisons.cluster is None else np.tile(comparisons.cluster, 2)
        rows, row = distinct(side * m + other if by_pair else side)
        self._rows = {number: i for i, number in enumerate(rows.tolist())}
        self._shares: Mapping[str, Shares] = {
            name: clustered_proportions(
                row, cluster, np.isin(result, hits).astype(np.float64), len(rows)
            )
            for name, hits in _RESULTS.items()
        }

    def row(self, model: str, other: str | None = None) -> Row:
        """The columns of the rates of one model, against ``other``; empty if never compared."""
        number = self._place.get(model, -1)
        if self._by_pair and other is not None:
            number = number * len(self._place) + self._place.get(other, -(len(self._place) ** 2))
        if (i := self._rows.get(number)) is None:
            return {}
        return {k: v for name, share in self._shares.items() for k, v in share.row(i, name).items()}


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Comparisons of every two contestants; a thousand have a million pairs, so in arrays.

    ``results``: losses, ties and wins of the first against the second, shape (m, m, 3).
    ``missing``: shape (m, m).
    """

    place: Mapping[str, int]
    results: Indices
    missing: Indices

    @classmethod
    def of(
        cls, comparisons: Comparisons, contestants: Sequence[str], expected: int = 0
    ) -> PairCounts:
        """``contestants``: all models, and others; ``expected``: comparisons of each pair."""
        place, m = {name: i for i, name in enumerate(contestants)}, len(contestants)
        of = np.array([place[name] for name in comparisons.models], dtype=np.intp)
        pair = of[comparisons.first] * m + of[comparisons.second]
        kind = 3 * pair + (2 * comparisons.result).astype(np.intp)
        shown = np.bincount(kind, minlength=3 * m * m).reshape(m, m, 3)
        results = shown + shown.swapaxes(0, 1)[:, :, ::-1]
        missing = np.maximum(0, expected - results.sum(axis=2))
        np.fill_diagonal(missing, 0)
        return cls(place, results, missing)

    def of_pair(self, a: str, b: str) -> WinTieLose:
        """Seen from the first."""
        pair = self.place[a], self.place[b]
        return _win_tie_lose(self.results[pair], self.missing[pair])

    def of_model(self, name: str) -> WinTieLose:
        """Of all its pairs."""
        i = self.place[name]
        return _win_tie_lose(self.results[i].sum(axis=0), self.missing[i].sum())

    def listed(self, order: Sequence[str]) -> list[tuple[str, str]]:
        """The ordered pairs to list; of more than `MOST_LISTED` those compared, once each."""
        if len(order) <= MOST_LISTED:
            return list(permutations(order, 2))
        return [(a, b) for a, b in combinations(order, 2) if self.of_pair(a, b).win.n]

    def total(self) -> WinTieLose:
        """Each comparison once."""
        pairs = np.triu_indices(len(self.place), 1)
        return _win_tie_lose(self.results[pairs].sum(axis=0), self.missing[pairs].sum())


def _win_tie_lose(results: Indices, missing: np.intp) -> WinTieLose:
    losses, ties, wins = results.tolist()
    return WinTieLose(wins, ties, losses, int(missing))
