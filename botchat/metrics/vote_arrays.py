"""Votes in columns: which of two is better, said by any judge, read from anybody's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from botchat.metrics.annotations import Annotation
from botchat.metrics.statistics import distinct
from botchat.verdicts import Flags, Floats, Indices

_VERDICTS = {1.0: "1", 0.5: "tie", 0.0: "2"}


@dataclass(frozen=True, eq=False)
class Votes:
    """n votes; all arrays have shape (n,), indices are into the names.

    ``item``: -1 not known. ``turn``: which part of an item, 0 where it has one. ``result``: 1, ½ or
    0 for ``first``, nan unreadable.
    """

    contestants: tuple[str, ...]
    items: tuple[str, ...]
    judges: tuple[str, ...]
    item: Indices
    turn: Indices
    first: Indices
    second: Indices
    judge: Indices
    result: Floats

    def __len__(self) -> int:
        """Return the number of votes, unreadable ones among them."""
        return len(self.first)

    @property
    def readable(self) -> Flags:
        """Flags of those with a result."""
        return ~np.isnan(self.result)

    def only(self, kept: Flags) -> Votes:
        """Return some of them."""
        return replace(self, **{name: getattr(self, name)[kept] for name in _COLUMNS})

    def by(self, names: Sequence[str]) -> Votes:
        """Return those of some judges."""
        return self.only(np.isin(self.judges, list(names))[self.judge])

    @property
    def cases(self) -> Indices:
        """Number of each vote's item and turn; of an unknown item the vote's own."""
        n_turns = int(self.turn.max(initial=0)) + 1
        own = len(self.items) * n_turns + np.arange(len(self))
        return np.where(self.item < 0, own, self.item * n_turns + self.turn)

    def clusters(self, least: int) -> tuple[Indices, str] | None:
        """Return numbers of what votes share, for errors, and its plural; None: independent.

        Items; judges where votes share no item, or where only judges are more than ``least``.
        """
        items, judges = (self.item, "items"), (self.judge, "judges")
        for (numbers, name), most in ((items, least), (judges, least), (items, 1)):
            if most < len(np.unique(numbers)) < len(self) and numbers.min() >= 0:
                return numbers, name
        return None

    def latest(self) -> Votes:
        """Return the last vote of each judge on an item, turn and order; all of unknown items."""
        key = self.cases
        for column in (self.first, self.second, self.judge):
            key = distinct(key * (int(column.max(initial=-1)) + 1) + column)[1]
        last = np.zeros(int(key.max(initial=-1)) + 1, np.intp)
        last[key] = np.arange(len(self))
        return self.only(last[key] == np.arange(len(self)))

    def annotations(self) -> list[Annotation]:
        """Return the votes as rows, items with the turn in their names where there are several."""
        several = bool((self.turn > 0).any())
        rows = []
        columns = (getattr(self, name).tolist() for name in _COLUMNS)
        for n, (i, turn, a, b, judge, result) in enumerate(zip(*columns, strict=True), 1):
            item = f"vote {n}" if i < 0 else self.items[i]
            item += f", turn {turn}" if several and i >= 0 else ""
            names = self.contestants[a], self.contestants[b], self.judges[judge]
            rows.append(Annotation(item, *names, _VERDICTS.get(result)))
        return rows

    @classmethod
    def together(cls, parts: Sequence[Votes]) -> Votes:
        """Return the votes of several files as one; items of one name are one item."""
        columns = {name: [getattr(part, name) for part in parts] for name in _COLUMNS}
        names: dict[str, tuple[str, ...]] = {}
        for column, kind in _NAMES.items():
            by_part = [getattr(part, kind) for part in parts]
            names[kind] = tuple(dict.fromkeys(chain.from_iterable(by_part)))
            number = {name: i for i, name in enumerate(names[kind])}
            # -1, the last place, is that of an unknown item.
            places = [np.array([*(number[name] for name in of_part), -1]) for of_part in by_part]
            columns[column] = [places[i][old] for i, old in enumerate(columns[column])]
        joined = {name: np.concatenate(values) for name, values in columns.items()}
        return cls(**names, **joined)  # type: ignore[arg-type]


_NAMES = {"first": "contestants", "second": "contestants", "item": "items", "judge": "judges"}
_COLUMNS = ("item", "turn", "first", "second", "judge", "result")
