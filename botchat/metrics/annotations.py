"""Verdicts of judges and annotators on comparisons: as rows, as arrays, and as votes in columns.

A verdict here says which of two is *better* (of dialogues: more human), whatever the protocol asks.
A judge's name decides whether it counts as an annotator: see `botchat.metrics.agreement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain

import msgspec
import numpy as np

from botchat.errors import DataError
from botchat.interfaces import settings_digest
from botchat.metrics.statistics import distinct
from botchat.records import UNDECIDED, UNKNOWN_INDEX, Verdict
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Floats, Indices

NO_CONTESTANT = ""  # the second contestant where a dialogue was judged alone
BLIND_PAGE = "prompt:blind-page"  # in the signature of human labels: they read the page

_CODE = {"1": 1, "2": -1, "tie": TIED, None: UNREADABLE}

_VERDICTS = {1.0: "1", 0.5: "tie", 0.0: "2"}


class Annotation(msgspec.Struct, frozen=True, gc=False):
    """One verdict of one judge on one comparison, in the order it was shown."""

    item: str  # what the comparison was made on (a question, a seed); it may have many pairs
    first: str
    second: str
    judge: str
    verdict: str | None
    """``"1"``: the first is better; ``"2"``: the second; ``"tie"``; None: unreadable."""


NOT_SAID = 10**9  # `first_ai_index` of a verdict without an index; no dialogue is so long
UNTOLD = -1  # `first_ai_index` where an annotator cannot tell
_INDICES = {"No": 0, UNKNOWN_INDEX: NOT_SAID, UNDECIDED: UNTOLD}


def first_ai_index(verdict: Verdict, dialogue: str) -> int:
    """Return the 1-based utterance that a UniEval verdict names, 0 for No, `NOT_SAID` or `UNTOLD`.

    Raises `DataError` for a verdict that is none of these.
    """
    if verdict in _INDICES:
        return _INDICES[verdict]
    if re.fullmatch("0*[1-9][0-9]{0,8}", verdict):
        return int(verdict)
    raise DataError(
        f"verdict {verdict!r} of {dialogue} is neither No, Yes nor an index from 1; delete that "
        "line and judge again"
    )


def is_annotator(judge: str, truth_prefix: str | None) -> bool:
    """Whether a judge's name makes it an annotator."""
    return truth_prefix is not None and judge.startswith(truth_prefix)


@dataclass(frozen=True, eq=False)
class VerdictArrays:
    """Verdicts as arrays: c comparisons (item and two contestants), each shown in two orders.

    Column 0 is the order in which annotators saw the comparison first, or else the first found.
    """

    annotators: tuple[str, ...]
    judges: tuple[str, ...]  # who are no annotators, in order of appearance
    items: tuple[str, ...]
    contestants: tuple[str, ...]
    item: Indices  # shape (c,)
    sides: Indices  # contestants in the order of column 0, shape (c, 2)
    verdicts: Mapping[str, Codes]
    """Judge or annotator -> shape (c, 2): 1 the side shown first, -1 the second, or a code."""

    @classmethod
    def of(cls, annotations: Iterable[Annotation], truth_prefix: str | None) -> VerdictArrays:
        """Put rows into arrays; raises `DataError` for two of a judge on one item and order."""
        rows = list(annotations)
        judges = tuple(dict.fromkeys(row.judge for row in rows))
        annotators = tuple(name for name in judges if is_annotator(name, truth_prefix))
        # Column 0 is the order in which annotators saw a comparison.
        rows.sort(key=lambda row: row.judge not in annotators)
        # Sorted, so that a bootstrap does not depend on the order of the annotations.
        items = tuple(sorted({row.item for row in rows}))
        contestants = tuple(sorted({name for row in rows for name in (row.first, row.second)}))
        item = _places(items, (row.item for row in rows))
        first = _places(contestants, (row.first for row in rows))
        second = _places(contestants, (row.second for row in rows))
        judge = _places(judges, (row.judge for row in rows))
        m = len(contestants)
        key = (item * m + np.minimum(first, second)) * m + np.maximum(first, second)
        _, seen, comparison = np.unique(key, return_index=True, return_inverse=True)
        mirrored = (first != first[seen][comparison]).astype(np.intp)
        cell = (judge * len(seen) + comparison) * 2 + mirrored
        if len(rows) and (twice := np.bincount(cell)).max() > 1:
            row = rows[int(np.flatnonzero(twice[cell] > 1)[1])]
            pair = "" if row.second == NO_CONTESTANT else f", {row.first} before {row.second},"
            fault = f"{row.judge} has judged item {row.item}{pair} twice"
            raise DataError(f"{fault}; keep one of the two")
        codes = np.full((len(judges), len(seen), 2), ABSENT, np.int8)
        codes[judge, comparison, mirrored] = [_CODE[row.verdict] for row in rows]
        return cls(
            annotators=annotators,
            judges=tuple(name for name in judges if name not in annotators),
            items=items,
            contestants=contestants,
            item=item[seen],
            sides=np.stack([first[seen], second[seen]], axis=1),
            verdicts=dict(zip(judges, codes, strict=True)),
        )

    @property
    def digest(self) -> str:
        """Digest of all verdicts, in whatever order they came."""
        sides, m = np.stack([self.sides, self.sides[:, ::-1]], axis=1), len(self.contestants)
        case = (self.item[:, None] * m + sides[..., 0]) * m + sides[..., 1]
        digests = []
        for judge in sorted(self.verdicts):
            codes = self.verdicts[judge]
            cells = np.sort((case * 4 + codes % 4)[codes != ABSENT])
            digests.append([judge, sha256(cells.astype("<i8").tobytes()).hexdigest()])
        return settings_digest(self.items, self.contestants, digests)

    def by_topic(self, topics: Mapping[str, str]) -> VerdictArrays:
        """Return the same with an item's topic in its place, where it has one."""
        names = [topics.get(item, item) for item in self.items]
        items, place = np.unique(np.array(names, object), return_inverse=True)
        return replace(self, items=tuple(items), item=place[self.item])

    def majority(self, annotators: Sequence[str]) -> Codes:
        """The side that more of the annotators prefer, or a tie, if any gave a verdict; (c, 2)."""
        lead, voters = np.zeros((2, len(self.item)), np.intp)
        for name in annotators:
            readable = self.verdicts[name] < UNREADABLE
            lead += (np.where(readable, self.verdicts[name], 0) * np.array([1, -1])).sum(1)
            voters += readable.sum(1)
        mirrored = np.sign(lead)[:, None] * np.array([1, -1])
        return np.asarray(np.where((voters > 0)[:, None], mirrored, ABSENT), np.int8)


def _places(names: Sequence[str], column: Iterable[str]) -> Indices:
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[name] for name in column], np.intp)


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
        """Flags of the votes with a result."""
        return ~np.isnan(self.result)

    def only(self, kept: Flags) -> Votes:
        """Return the votes where ``kept`` is true."""
        return replace(self, **{name: getattr(self, name)[kept] for name in _COLUMNS})

    def by(self, names: Sequence[str]) -> Votes:
        """Return the votes of some judges."""
        return self.only(np.isin(self.judges, list(names))[self.judge])

    @property
    def cases(self) -> Indices:
        """Number of each vote's item and turn; of an unknown item the vote's own."""
        n_turns = int(self.turn.max(initial=0)) + 1
        own = len(self.items) * n_turns + np.arange(len(self))
        return np.where(self.item < 0, own, self.item * n_turns + self.turn)

    def clusters(self, least: int) -> tuple[Indices, str] | None:
        """Return (cluster of each vote, its kind in the plural); None if votes are independent.

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
