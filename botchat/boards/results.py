"""Comparisons counted: wins, ties and losses, and their rates with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from botchat.interfaces import Row
from botchat.metrics import intervals
from botchat.metrics.intervals import Shares
from botchat.protocols.rates import WinTieLose
from botchat.ratings.comparisons import Comparisons, distinct
from botchat.verdicts import LOSS, TIE, WIN, Floats, Indices, Verdicts

_RESULTS = {"win": (WIN,), "tie": (TIE,), "lose": (LOSS,), "win_or_tie": (WIN, TIE)}

MOST_LISTED = 300
"""Models up to which pairs that were never compared are listed too."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Every comparison once from either side; ``side``, ``other``, ``result``: shape (2 n,)."""

    models: tuple[str, ...]
    side: Indices
    other: Indices
    result: Floats
    seed: Indices | None

    @classmethod
    def of(cls, made: Comparisons) -> Sides:
        """From comparisons, with their seeds where those are known."""
        return cls(
            made.models,
            np.concatenate([made.first, made.second]),
            np.concatenate([made.second, made.first]),
            np.concatenate([made.result, 1 - made.result]),
            None if made.cluster is None else np.tile(made.cluster, 2),
        )

    def by_model(self, *, alike: bool = False) -> dict[str, Row]:
        """Model -> its rates and their ends; ``alike``: means over opponents, who count alike."""
        m = len(self.models)
        pair = self.side * m + self.other
        games = np.bincount(pair, minlength=m * m)
        opponents = (games.reshape(m, m) > 0).sum(axis=1)
        weight = 1 / (games[pair] * opponents[self.side]) if alike else None

        def centre(hit: Floats) -> Floats | None:
            if not alike:
                return None
            return np.asarray((np.bincount(pair, hit, m * m) / np.maximum(games, 1))[pair])

        found = self._rates(self.side, m, weight, centre)
        return {model: _row(found, i) for i, model in enumerate(self.models)}

    def by_pair(self) -> Callable[[str, str], Row]:
        """(model, other) -> the rates of one against the other; empty where not compared.

        A row is made when it is asked for: a thousand models have a million.
        """
        m = len(self.models)
        pairs, pair = distinct(self.side * m + self.other)
        found = self._rates(pair, len(pairs))
        place = {name: i for i, name in enumerate(self.models)}
        rows = {pair: i for i, pair in enumerate(pairs.tolist())}

        def of(model: str, other: str) -> Row:
            there = model in place and other in place
            i = rows.get(place[model] * m + place[other]) if there else None
            return {} if i is None else _row(found, i)

        return of

    def _rates(
        self,
        row: Indices,
        n: int,
        weight: Floats | None = None,
        centre: Callable[[Floats], Floats | None] = lambda _: None,
    ) -> dict[str, Shares]:
        hits = {
            name: np.isin(self.result, counted).astype(np.float64)
            for name, counted in _RESULTS.items()
        }
        return {
            name: intervals.by_seed(row, self.seed, hit, n, weight, centre(hit))
            for name, hit in hits.items()
        }


def _row(found: Mapping[str, Shares], i: int) -> Row:
    return {k: v for name, rates in found.items() for k, v in rates.row(i, name).items()}


@dataclass(frozen=True, eq=False)
class Tallies:
    """Comparisons of every two contestants; a thousand have a million pairs, so in arrays.

    ``results``: losses, ties and wins of the first against the second, shape (m, m, 3).
    ``missing``: shape (m, m).
    """

    place: Mapping[str, int]
    results: Indices
    missing: Indices

    @classmethod
    def of(cls, comparisons: Comparisons, contestants: Sequence[str], expected: int = 0) -> Tallies:
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

    @property
    def made(self) -> tuple[int, ...]:
        """Readable comparisons of each pair, in the order of ``combinations``."""
        n = self.results.sum(axis=2)
        return tuple(n[np.triu_indices(len(n), 1)].tolist())

    def of_pair(self, a: str, b: str) -> WinTieLose:
        """Seen from the first."""
        pair = self.place[a], self.place[b]
        return _tally(self.results[pair], self.missing[pair])

    def of_model(self, name: str) -> WinTieLose:
        """Of all its pairs."""
        i = self.place[name]
        return _tally(self.results[i].sum(axis=0), self.missing[i].sum())

    def listed(self, order: Sequence[str]) -> list[tuple[str, str]]:
        """The ordered pairs to list; of more than `MOST_LISTED` those compared, once each."""
        if len(order) <= MOST_LISTED:
            return list(permutations(order, 2))
        at = np.array([self.place[name] for name in order])
        there = np.argwhere(np.triu(self.results.sum(axis=2)[np.ix_(at, at)]))
        return [(order[i], order[j]) for i, j in there.tolist()]

    def together(self, order: Sequence[str]) -> WinTieLose:
        """Each comparison once, seen from whoever is first in the order."""
        at = np.array([self.place[name] for name in order], dtype=np.intp)
        one, other = np.triu_indices(len(at), 1)
        pairs = at[one], at[other]
        return _tally(self.results[pairs].sum(axis=0), self.missing[pairs].sum())


def _tally(results: Indices, missing: np.intp) -> WinTieLose:
    losses, ties, wins = results.tolist()
    return WinTieLose(wins, ties, losses, int(missing))


def comparisons_of(readable: Verdicts) -> Comparisons:
    """Readable verdicts as comparisons of the contestants, by name, with their seeds."""
    contestants = readable.judged_contestants
    place = {name: i for i, name in enumerate(contestants)}
    # Contestants that only unreadable verdicts name have no place, and none is asked for.
    of = np.array([place.get(name, -1) for name in readable.contestants], dtype=np.intp)
    return Comparisons(
        tuple(contestants), of[readable.first], of[readable.second], readable.result, readable.seed
    )
