"""Verdicts of judges and annotators on comparisons, as rows and as arrays.

A verdict here says which of two is *better* (of dialogues: more human), whatever the protocol asks.
A judge's name decides whether it counts as an annotator: see `botchat.metrics.agreement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

import msgspec
import numpy as np

from botchat.errors import DataError
from botchat.interfaces import settings_digest
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


def is_annotator(judge: str, truth_prefix: str | None) -> bool:
    """Whether a judge's name makes it an annotator."""
    return truth_prefix is not None and judge.startswith(truth_prefix)


@dataclass(frozen=True, eq=False)
class VerdictArrays:
    """Verdicts as arrays: c comparisons (item and two contestants), each shown in two orders.

    Column 0 is the order in which annotators saw the comparison first, or else the first found.
    """

    annotators: tuple[str, ...]
    judges: tuple[str, ...]
    """Those who are no annotators, in order of appearance."""
    items: tuple[str, ...]
    contestants: tuple[str, ...]
    item: Indices
    """Shape (c,)."""
    sides: Indices
    """Contestants in the order of column 0, shape (c, 2)."""
    verdicts: Mapping[str, Codes]
    """Judge or annotator -> shape (c, 2): 1 the side shown first, -1 the second, or a code."""

    @classmethod
    def of(cls, annotations: Iterable[Annotation], truth_prefix: str | None) -> VerdictArrays:
        """From rows; raises `DataError` for two of a judge on one item and order."""
        rows = list(annotations)
        columns = {key: [getattr(row, key) for row in rows] for key in ("item", "judge")}
        # Sorted, so that a bootstrap does not depend on the order of the annotations.
        items = tuple(sorted({*columns["item"]}, key=natural_sort_key))
        sides = tuple(dict.fromkeys(name for row in rows for name in (row.first, row.second)))
        names = tuple(dict.fromkeys(columns["judge"]))
        return cls.of_columns(
            (items, sides, names),
            (
                _indices(items, columns["item"]),
                _indices(sides, [row.first for row in rows]),
                _indices(sides, [row.second for row in rows]),
                _indices(names, columns["judge"]),
            ),
            np.array([_CODE[row.verdict] for row in rows], np.int8),
            truth_prefix,
        )

    @classmethod
    def of_columns(
        cls,
        names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
        columns: tuple[Indices, Indices, Indices, Indices],
        verdict: Codes,
        truth_prefix: str | None,
    ) -> VerdictArrays:
        """From columns of shape (n,): item, first, second, judge as indices into ``names``.

        ``names``: of items, contestants and judges. ``verdict``: as of `verdicts`.
        """
        items, contestants, judges = names
        annotators = tuple(name for name in judges if is_annotator(name, truth_prefix))
        is_label = np.array([name in annotators for name in judges], bool)
        order = np.argsort(~is_label[columns[3]], kind="stable") if len(verdict) else slice(None)
        item, first, second, judge = (column[order] for column in columns)
        m = len(contestants)
        key = (item * m + np.minimum(first, second)) * m + np.maximum(first, second)
        _, seen, comparison = np.unique(key, return_index=True, return_inverse=True)
        found = np.argsort(seen)  # comparisons as they are found, not by their numbers
        begin, comparison = seen[found], np.argsort(found)[comparison]
        mirrored = (first != first[begin][comparison]).astype(np.intp)
        cell = (judge * len(begin) + comparison) * 2 + mirrored
        if len(verdict) and (twice := np.bincount(cell)).max() > 1:
            row = int(np.flatnonzero(twice[cell] > 1)[1])
            pair = (
                ""
                if contestants[second[row]] == NOBODY
                else (f", {contestants[first[row]]} before {contestants[second[row]]},")
            )
            raise DataError(
                f"{judges[judge[row]]} has judged item {items[item[row]]}{pair} twice; keep one of "
                "the two"
            )
        codes = np.full((len(judges), len(begin), 2), ABSENT, np.int8)
        codes[judge, comparison, mirrored] = verdict[order]
        return cls(
            annotators=annotators,
            judges=tuple(name for name in judges if name not in annotators),
            items=items,
            contestants=contestants,
            item=item[begin],
            sides=np.stack([first[begin], second[begin]], axis=1),
            verdicts=dict(zip(judges, codes, strict=True)),
        )

    @property
    def digest(self) -> str:
        """Of all verdicts, in whatever order they came."""
        names = sorted(self.contestants)
        rank = np.array([names.index(name) for name in self.contestants], np.intp)
        shown = rank[np.stack([self.sides, self.sides[:, ::-1]], axis=1)]
        case = (self.item[:, None] * len(names) + shown[..., 0]) * len(names) + shown[..., 1]
        digests = []
        for judge in sorted(self.verdicts):
            codes = self.verdicts[judge]
            found = np.sort((case * 4 + codes % 4)[codes != ABSENT])
            digests.append([judge, sha256(found.astype("<i8").tobytes()).hexdigest()])
        return settings_digest(self.items, names, digests)

    def seen_by(self, annotator: str) -> Codes:
        """One verdict a comparison, of column 0 or, where that has none, of 1 mirrored; (c,)."""
        here, mirrored = self.verdicts[annotator].T
        swapped = (here >= UNREADABLE) & (mirrored < UNREADABLE)
        return np.asarray(np.where(swapped, np.negative(mirrored), here), np.int8)

    def majority(self, annotators: Sequence[str]) -> Codes:
        """The side that more of the annotators prefer, or a tie, if any gave a verdict; (c, 2)."""
        lead, voters = np.zeros((2, len(self.item)), np.intp)
        for name in annotators:
            readable = self.verdicts[name] < UNREADABLE
            lead += (np.where(readable, self.verdicts[name], 0) * np.array([1, -1])).sum(1)
            voters += readable.sum(1)
        mirrored = np.sign(lead)[:, None] * np.array([1, -1])
        return np.asarray(np.where((voters > 0)[:, None], mirrored, ABSENT), np.int8)


def _indices(names: Sequence[str], column: Sequence[str]) -> Indices:
    number = {name: i for i, name in enumerate(names)}
    return np.fromiter(map(number.__getitem__, column), np.intp, len(column))
