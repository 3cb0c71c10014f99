"""Votes in columns: which of two is better, said by any judge, read from anybody's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.errors import DataError
from botchat.measures.annotations import Annotation
from botchat.verdicts import Floats, Indices

Texts: TypeAlias = Sequence[tuple[str, ...] | None]
"""What a model said in each vote, a text for each utterance; ``None``: not known."""

_MOST_CELLS = 2**21
"""Clusters times models: above this, clusters are put together at random (16 MB)."""
MOST_STYLED = 20_000
"""Votes whose texts are measured, evenly spread over the file."""


@dataclass(frozen=True, eq=False)
class Votes:
    """n votes; all arrays have shape (n,), indices are into the names.

    ``item``: what was asked, -1 not known. ``turn``: which part of an item, 0 where it has one.
    ``result``: 1, ½ or 0 for ``first``, nan unreadable. ``weight``: how often a vote counts.
    ``confidence``: of the judge in the verdict, nan not known. ``texts``: what ``first`` and
    ``second`` said, where the file has it.
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
    weight: Indices
    confidence: Floats
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

    def clusters(self) -> tuple[Indices | None, str]:
        """What is shared by votes, for errors, and its plural; ``None``: votes are independent.

        Items; judges where there are no items, where every vote has its own, or where they are not
        more than the contestants, whom so few cannot tell apart, and judges are. Where there are
        very many, they are put together at random, which leaves errors unbiased.
        """
        m = len(self.contestants)
        whole = bool((self.item >= 0).all())
        items, judges = (
            int(np.count_nonzero(np.bincount(column))) if len(column) else 0
            for column in (self.item if whole else self.item[:0], self.judge)
        )
        by_item = 1 < items < len(self)
        by_judge = 1 < judges < len(self)
        if by_judge and judges > m and not (by_item and items > m):
            chosen, name = self.judge, self.who
        elif by_item:
            chosen, name = self.item, self.asked
        else:
            return None, ""
        most, n = max(2, _MOST_CELLS // m), int(chosen.max()) + 1
        if n > most:
            groups = np.random.default_rng(0).integers(most, size=n)
            return groups[chosen], f"groups of {name}"
        return chosen, name

    def annotations(self, *, once: bool = False) -> tuple[list[Annotation], int]:
        """One for each vote, and how many votes were given again: of these the last counts.

        Votes of one judge on one item, turn and order are one; where no item is known, each is.
        ``once``: two of them are a `DataError`.
        """
        found: dict[tuple[int, int, int, int, int], Annotation] = {}
        many_turns = bool(self.turn.any())
        columns = (self.item, self.turn, self.first, self.second, self.judge)
        values = zip(self.result.tolist(), self.confidence.tolist(), strict=True)
        for n, (key, (result, sure)) in enumerate(
            zip(zip(*(c.tolist() for c in columns), strict=True), values, strict=True)
        ):
            item, turn, first, second, judge = key
            named = f"vote {n + 1}" if item < 0 else self.items[item]
            key = key if item >= 0 else (-1 - n, *key[1:])
            if once and key in found:
                raise DataError(
                    f"{self.judges[judge]} has judged item {named}, {self.contestants[first]} "
                    f"before {self.contestants[second]}, twice; keep one of the two"
                )
            found[key] = Annotation(
                f"{named}, turn {turn}" if many_turns else named,
                self.contestants[first],
                self.contestants[second],
                self.judges[judge],
                None if result != result else {1.0: "1", 0.0: "2"}.get(result, "tie"),
                None if sure != sure else sure,
            )
        return list(found.values()), len(self) - len(found)

    @classmethod
    def together(cls, parts: Sequence[Votes]) -> Votes:
        """Votes of several files as one; items of one name are one item."""
        first, *others = parts
        if not others:
            return first
        names, moved = {}, {}
        for kind, columns in _NAMED.items():
            known: dict[str, int] = {}
            places = [
                np.array([known.setdefault(name, len(known)) for name in getattr(part, kind)], int)
                for part in parts
            ]
            names[kind] = tuple(known)
            for column in columns:
                moved[column] = np.concatenate(
                    [
                        np.where(old < 0, old, place[np.maximum(old, 0)]) if len(place) else old
                        for part, place in zip(parts, places, strict=True)
                        if (old := getattr(part, column)) is not None
                    ]
                )
        plain = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in _COLUMNS
            if name not in moved
        }
        told = {
            name: getattr(first, name)
            if len({getattr(part, name) for part in parts}) == 1
            else plural
            for name, plural in (("asked", "items"), ("who", "judges"))
        }
        texts = None
        if any(part.texts for part in parts):
            sides = [part.texts or ([None] * len(part),) * 2 for part in parts]
            texts = tuple([said for side in sides for said in side[i]] for i in (0, 1))
        return cls(**names, **moved, **plain, **told, texts=texts)  # type: ignore[arg-type]


_NAMED = {"contestants": ("first", "second"), "items": ("item",), "judges": ("judge",)}
_COLUMNS = (
    "item", "turn", "first", "second", "judge", "result", "weight", "confidence",
)  # fmt: skip
