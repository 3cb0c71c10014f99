"""Verdicts of judges and people on comparisons, as lines and as arrays.

A verdict here says which of two is *better* (of dialogues: more human), whatever the protocol asks.
A judge's name decides whether it counts as a person: see `botchat.metrics.agreement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter

import msgspec
import numpy as np

from botchat.errors import DataError
from botchat.records import UNDECIDED, UNKNOWN_INDEX, Verdict, natural_sort_key
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Indices

NOBODY = ""
"""Name of the second contestant where a dialogue was judged alone."""

BLIND_PAGE = "prompt:blind-page"
"""Of the signature of people's labels: they read the page, whatever judges' prompt says by now."""

_CODE = {"1": 1, "2": -1, "tie": TIED, None: UNREADABLE}


class Annotation(msgspec.Struct, frozen=True, gc=False):
    """One verdict of one judge on one comparison, in the order it was shown."""

    item: str
    """What the comparison was made on (a question, a seed); an item may have many pairs."""
    first: str
    second: str
    judge: str
    verdict: str | None
    """``"1"``: the first is better; ``"2"``: the second; ``"tie"``; ``None``: unreadable."""


NOT_SAID = 10**9
"""`accused_index` where a verdict accuses and does not say from where; no dialogue is so long."""


UNTOLD = -1
"""`accused_index` where an annotator cannot tell."""


def accused_index(verdict: Verdict, of: str) -> int:
    """The 1-based utterance that a UniEval verdict accuses, or `NOT_SAID`; 0 for No, or `UNTOLD`.

    Raises `DataError` for a verdict that is none of these.
    """
    if (found := _accused(verdict)) is None:
        raise DataError(
            f"verdict {verdict!r} of {of} is neither No, Yes nor an index from 1; delete that line "
            "and judge again"
        )
    return found


@lru_cache(maxsize=1 << 12)  # there are few, and each is read for every column
def _accused(verdict: Verdict) -> int | None:
    if verdict in _PLACES:
        return _PLACES[verdict]
    return int(verdict) if re.fullmatch("0*[1-9][0-9]{0,8}", verdict) else None


_PLACES = {"No": 0, UNKNOWN_INDEX: NOT_SAID, UNDECIDED: UNTOLD}


def is_person(judge: str, truth_prefix: str | None) -> bool:
    """Whether a judge's name makes it an annotator."""
    return truth_prefix is not None and judge.startswith(truth_prefix)


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def _indices(numbers: Mapping[str, int], names: Sequence[str]) -> Indices:
    return np.fromiter(map(numbers.__getitem__, names), np.intp, len(names))


@dataclass(frozen=True, eq=False)
class Opinions:
    """Verdicts as arrays: c comparisons (item and two contestants), each shown in two orders.

    Column 0 is the order in which people saw the comparison first, or else the first found.
    """

    people: tuple[str, ...]
    judges: tuple[str, ...]
    """Those who are not people, in order of appearance."""
    items: tuple[str, ...]
    """Sorted, so that a bootstrap does not depend on the order of the annotations."""
    contestants: tuple[str, ...]
    item: Indices
    """Shape (c,)."""
    sides: Indices
    """Contestants in the order of column 0, shape (c, 2)."""
    said: Mapping[str, Codes]
    """Judge or person -> shape (c, 2): 1 the side shown first, -1 the second, or a code above."""

    @classmethod
    def of(cls, annotations: Iterable[Annotation], truth_prefix: str | None) -> Opinions:
        """The grid of annotations; raises `DataError` for two of a judge on one item and order."""
        rows = list(annotations)
        people = {name for name in {r.judge for r in rows} if is_person(name, truth_prefix)}
        rows = [r for r in rows if r.judge in people] + [r for r in rows if r.judge not in people]
        of = {name: [*map(attrgetter(name), rows)] for name in Annotation.__struct_fields__}
        items = _numbered(sorted({*of["item"]}, key=natural_sort_key))
        contestants = _numbered(chain.from_iterable(zip(of["first"], of["second"], strict=True)))
        names = _numbered(of["judge"])
        item, judge = _indices(items, of["item"]), _indices(names, of["judge"])
        first, second = (_indices(contestants, of[side]) for side in ("first", "second"))
        m = len(contestants)
        key = (item * m + np.minimum(first, second)) * m + np.maximum(first, second)
        _, seen, comparison = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(seen)  # comparisons as they are found, not by their numbers
        begin, comparison = seen[order], np.argsort(order)[comparison]
        mirrored = (first != first[begin][comparison]).astype(np.intp)
        _, kept = np.unique((judge * len(begin) + comparison) * 2 + mirrored, return_index=True)
        if len(kept) < len(rows):
            row = rows[int(np.setdiff1d(np.arange(len(rows)), kept)[0])]
            about = "" if row.second == NOBODY else f"{row.first} before {row.second}"
            raise DataError(
                f"{row.judge} has judged item {row.item}{f', {about}' if about else ''}, twice; "
                "keep one of the two"
            )
        said = np.full((len(names), len(begin), 2), ABSENT, np.int8)
        said[judge, comparison, mirrored] = [*map(_CODE.__getitem__, of["verdict"])]
        return cls(
            people=tuple(name for name in names if name in people),
            judges=tuple(name for name in names if name not in people),
            items=tuple(items),
            contestants=tuple(contestants),
            item=item[begin],
            sides=np.stack([first[begin], second[begin]], axis=1),
            said=dict(zip(names, said, strict=True)),
        )

    def seen_by(self, person: str) -> Codes:
        """One verdict a comparison, of column 0 or, where that has none, of 1 mirrored; (c,)."""
        here, there = self.said[person][:, 0], self.said[person][:, 1]
        swapped = (here >= UNREADABLE) & (there < UNREADABLE)
        return np.where(swapped, np.negative(there), here).astype(np.int8)

    def majority(self, people: Sequence[str]) -> Codes:
        """The side that more of ``people`` prefer, or a tie, if any gave a verdict; (c, 2)."""
        lead, voters = np.zeros((2, len(self.item)), np.intp)
        for person in people:
            readable = self.said[person] < UNREADABLE
            lead += (np.where(readable, self.said[person], 0) * np.array([1, -1])).sum(1)
            voters += readable.sum(1)
        mirrored = np.sign(lead)[:, None] * np.array([1, -1])
        return np.where((voters > 0)[:, None], mirrored, ABSENT).astype(np.int8)
