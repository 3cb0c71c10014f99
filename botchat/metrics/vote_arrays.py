"""Votes in columns: which of two is better, said by any judge, read from anybody's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.errors import DataError
from botchat.metrics.annotations import Annotation, VerdictArrays
from botchat.metrics.statistics import distinct
from botchat.records import natural_sort_key
from botchat.verdicts import UNREADABLE, Floats, Indices

Texts: TypeAlias = Sequence[tuple[str, ...] | None]
"""What a model said in each vote, a text for each utterance; ``None``: not known."""


MOST_TEXTS = 20_000
"""Votes whose texts are read, evenly spread over the file."""


@dataclass(frozen=True, eq=False)
class Votes:
    """n votes; all arrays have shape (n,), indices are into the names.

    ``item``: what was asked, -1 not known. ``turn``: which part of an item, 0 where it has one.
    ``result``: 1, ½ or 0 for ``first``, nan unreadable. ``texts``: what ``first`` and ``second``
    said, where the file has it.
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
    asked: str = "items"
    """What the items are called: questions, prompts."""
    who: str = "judges"
    """What the judges are called: workers, users."""
    texts: tuple[Texts, Texts] | None = None

    def __len__(self) -> int:
        """Number of votes, unreadable ones among them."""
        return len(self.first)

    @property
    def readable(self) -> npt.NDArray[np.bool_]:
        """Which have a result."""
        return ~np.isnan(self.result)

    def only(self, kept: npt.NDArray[np.bool_]) -> Votes:
        """Some of them."""
        columns = {name: getattr(self, name)[kept] for name in _COLUMNS}
        texts = None
        if self.texts:
            one, two = (list(compress(side, kept.tolist())) for side in self.texts)
            texts = one, two
        return replace(self, **columns, texts=texts)

    def by(self, names: Sequence[str]) -> Votes:
        """Those of some judges."""
        return self.only(np.isin(self.judges, list(names))[self.judge])

    @property
    def cases(self) -> Indices:
        """The number of what each judge was asked: item, turn, judge; a vote's own if unknown."""
        known = self.item * (int(self.turn.max(initial=0)) + 1) + self.turn
        known = known * max(1, len(self.judges)) + self.judge
        found = np.where(self.item < 0, np.arange(len(self)), known)
        return np.unique(found, return_inverse=True)[1]

    def clusters(self, least: int) -> tuple[Indices, str] | None:
        """What votes share, for errors, and its plural; ``None``: votes are independent.

        Items; judges where there are no items, where every vote has its own, or where only judges
        are more than ``least``.
        """
        ways = [(self.item, self.asked)] if bool((self.item >= 0).all()) else []
        ways = [one for one in (*ways, (self.judge, self.who)) if len(one[0])]
        number = {name: int(np.count_nonzero(np.bincount(labels))) for labels, name in ways}
        ways = [one for one in ways if 1 < number[one[1]] < len(self)]
        large = [one for one in ways if number[one[1]] > least]
        return next(iter(large or (one for one in ways if one[1] == self.asked)), None)

    def latest(self, *, once: bool = False) -> Votes:
        """Of the votes of one judge on one item, turn and order the last; all of unknown items.

        ``once``: two of them are a `DataError`.
        """
        key = np.where(self.item < 0, len(self.items) + np.arange(len(self)), self.item)
        for column in (self.turn, self.first, self.second, self.judge):
            key = distinct(key * (int(column.max(initial=0)) + 1) + column)[1]
        last = np.zeros(int(key.max(initial=-1)) + 1, np.intp)
        last[key] = np.arange(len(self))
        earlier = np.flatnonzero(last[key] != np.arange(len(self)))
        if once and len(earlier):
            n = int(last[key][earlier].min())
            first, second = (self.contestants[column[n]] for column in (self.first, self.second))
            raise DataError(
                f"{self.judges[self.judge[n]]} has judged item {self.items[self.item[n]]}, "
                f"{first} before {second}, twice; keep one of the two"
            )
        return self.only(last[key] == np.arange(len(self))) if len(earlier) else self

    def _cases(self) -> tuple[list[str], Indices]:
        """Names of what was asked, with turns where an item has several, and that of each vote."""
        n_turns = int(self.turn.max(initial=0)) + 1
        unknown = len(self.items) * n_turns + np.arange(len(self))
        numbers, case = distinct(np.where(self.item < 0, unknown, self.item * n_turns + self.turn))
        names = []
        for number in numbers.tolist():
            item, turn = divmod(number, n_turns)
            name = f"vote {number - len(self.items) * n_turns + 1}"
            if item < len(self.items):
                name = self.items[item] + (f", turn {turn}" if n_turns > 1 else "")
            names.append(name)
        return names, case

    def annotations(self, *, once: bool = False) -> tuple[list[Annotation], int]:
        """One for each of the `latest` votes, and how many votes are earlier ones."""
        votes = self.latest(once=once)
        names, case = votes._cases()
        columns = (case, votes.first, votes.second, votes.judge, votes.result)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found = [
            Annotation(
                names[item],
                self.contestants[first],
                self.contestants[second],
                self.judges[judge],
                None if result != result else {1.0: "1", 0.0: "2"}.get(result, "tie"),
            )
            for item, first, second, judge, result in rows
        ]
        return found, len(self) - len(votes)

    def arrays(self, truth_prefix: str | None) -> VerdictArrays:
        """The same as arrays, of judges who have a vote; raises as `VerdictArrays.of`."""
        names, case = self._cases()
        order = sorted(range(len(names)), key=lambda i: natural_sort_key(names[i]))
        place = np.empty(len(names), np.intp)
        place[order] = np.arange(len(names))
        judges, judge = distinct(self.judge)
        return VerdictArrays.of_columns(
            (
                tuple(names[i] for i in order),
                self.contestants,
                tuple(self.judges[i] for i in judges),
            ),
            (place[case], self.first, self.second, judge),
            np.where(self.readable, 2 * self.result - 1, UNREADABLE).astype(np.int8),
            truth_prefix,
        )

    @classmethod
    def together(cls, parts: Sequence[Votes]) -> Votes:
        """Votes of several files as one; items of one name are one item."""
        first, *others = parts
        if not others:
            return first
        named: dict[str, tuple[str, ...]] = {}
        columns = {name: [getattr(part, name) for part in parts] for name in _COLUMNS}
        for kind, of_kind in _NAMED.items():
            found = [getattr(part, kind) for part in parts]
            named[kind] = tuple(dict.fromkeys(chain.from_iterable(found)))
            number = {name: i for i, name in enumerate(named[kind])}
            # Last stands -1, which is the place of what is not known.
            places = [np.array([*(number[name] for name in names), -1]) for names in found]
            for column in of_kind:
                old = zip(places, columns[column], strict=True)
                columns[column] = [place[numbers] for place, numbers in old]
        joined = {name: np.concatenate(values) for name, values in columns.items()}
        told = {}
        for name, plural in (("asked", "items"), ("who", "judges")):
            alike = len({getattr(part, name) for part in parts}) == 1
            told[name] = getattr(first, name) if alike else plural
        texts = None
        if any(part.texts for part in parts):
            sides = [part.texts or ([None] * len(part),) * 2 for part in parts]
            texts = tuple([said for side in sides for said in side[i]] for i in (0, 1))
        return cls(**named, **joined, **told, texts=texts)  # type: ignore[arg-type]


_NAMED = {"contestants": ("first", "second"), "items": ("item",), "judges": ("judge",)}
_COLUMNS = ("item", "turn", "first", "second", "judge", "result")
