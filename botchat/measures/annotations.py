"""What judges and people said of comparisons, in one form, as lines and as arrays.

A verdict here says which of two is *better* (or rather human); what a case asks is the protocol's
business. A judge's name decides whether it counts as a person: see `botchat.measures.agreement`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import UnsetType

from botchat.errors import DataError
from botchat.measures.statistics import Floats, Indices
from botchat.records import Judgment, Verdict, natural_key

Codes: TypeAlias = npt.NDArray[np.int8]

COLUMNS = ("item", "first", "second", "judge", "verdict")
"""Columns of an annotation file."""

NOBODY = ""
"""Name of the second contestant where a dialogue was judged alone."""

TIE, UNREADABLE, ABSENT = 0, 2, 3
"""Codes of a verdict in a `Grid`, beside 1 (the side shown first) and -1 (the second)."""

_CODE = {"1": 1, "2": -1, "tie": TIE, None: UNREADABLE}
_AI_SIDE = {"1": "2", "2": "1", "both": "tie", "neither": "tie"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """One verdict of one judge on one comparison, in the order it was shown."""

    item: str
    """What the comparison was made on (a question, a seed); one item may serve many pairs."""
    first: str
    second: str
    judge: str
    verdict: str | None
    """``"1"``: the first is better; ``"2"``: the second; ``"tie"``; ``None``: unreadable."""
    confidence: float | None = None
    """Probability that the judge gave to its verdict, where it is known."""


def read_csv(text: str, where: str) -> list[Annotation]:
    """Annotations of a CSV file with the columns `COLUMNS`, in any order; others are ignored.

    Args:
        text: the file's content.
        where: its name, for messages.

    Raises:
        DataError: with file and line: no such column, a verdict that is none of 1, 2, tie or empty,
            an empty name, a contestant against itself, a second verdict of one judge on one order.
    """
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found: dict[tuple[str, str, str, str], int] = {}
    annotations: list[Annotation] = []
    line = 1
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise DataError(
                f"{where}:1: no column {', '.join(missing)}; the first line must name the columns "
                f"{','.join(COLUMNS)}"
            )
        at = [header.index(name) for name in COLUMNS]
        line = rows.line_num + 1
        for row in rows:
            if any(field.strip() for field in row):
                if len(row) != len(header):
                    raise DataError(
                        f"{where}:{line}: {len(row)} fields where the first line names "
                        f"{len(header)}; quote a field that contains a comma"
                    )
                annotation = _annotation([row[i].strip() for i in at], f"{where}:{line}")
                key = (annotation.item, annotation.first, annotation.second, annotation.judge)
                if key in found:
                    raise DataError(
                        f"{where}:{line}: {annotation.judge} has judged item {annotation.item}, "
                        f"{annotation.first} before {annotation.second}, on line {found[key]} "
                        "already; keep one of the two"
                    )
                found[key] = line
                annotations.append(annotation)
            line = rows.line_num + 1
    except csv.Error as error:
        raise DataError(f"{where}:{line}: not readable as CSV: {error}") from None
    return annotations


def decoded(content: bytes, where: str) -> str:
    """The UTF-8 text of a file, with or without a byte order mark.

    Raises:
        DataError: it is not UTF-8; with the line.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{where}:{line}: not UTF-8 text; save the file as UTF-8") from None


def from_judgments(judgments: Iterable[Judgment]) -> list[Annotation]:
    """Annotations of stage records, of one protocol: Arena, GTEval or UniEval.

    There a verdict names the AI-involved side, so it is the *other* one that is better; Both and
    Neither are ties. A UniEval dialogue has `NOBODY` as its second contestant: it is better
    (``"1"``) where nothing was accused, ``"2"`` where any utterance was.

    Raises:
        DataError: a verdict that the protocol does not offer.
    """
    return [
        Annotation(
            judgment.seed_id,
            judgment.contestants[0],
            judgment.contestants[1] if len(judgment.contestants) > 1 else NOBODY,
            judgment.judge,
            _better(judgment.verdict, judgment),
            None if isinstance(judgment.confidence, UnsetType) else judgment.confidence,
        )
        for judgment in judgments
    ]


def is_person(judge: str, truth_prefix: str | None) -> bool:
    """Whether a judge's name makes it an annotator."""
    return truth_prefix is not None and judge.startswith(truth_prefix)


@dataclass(frozen=True, eq=False)
class Grid:
    """Verdicts as arrays: c comparisons (item and two contestants), each shown in two orders.

    The order of column 0 is the one that people first saw, or else the first there is.
    """

    people: tuple[str, ...]
    judges: tuple[str, ...]
    """Those who are no people, in the order they come in."""
    items: tuple[str, ...]
    """Sorted, so that a bootstrap does not depend on the order of the annotations."""
    contestants: tuple[str, ...]
    item: Indices
    """Shape (c,)."""
    sides: Indices
    """Contestants in the order of column 0, shape (c, 2)."""
    said: Mapping[str, Codes]
    """Judge or person -> shape (c, 2): 1 the side shown first, -1 the second, or a code above."""
    confidence: Mapping[str, Floats]
    """Of those whose is known of any verdict -> shape (c, 2), nan where it is not."""

    @classmethod
    def of(cls, annotations: Iterable[Annotation], truth_prefix: str | None) -> Grid:
        """The grid of annotations, at most one a judge, item and order of showing.

        Raises:
            DataError: there are two.
        """
        rows = sorted(annotations, key=lambda row: not is_person(row.judge, truth_prefix))
        items = sorted({row.item for row in rows}, key=natural_key)
        number = {item: i for i, item in enumerate(items)}
        contestants: dict[str, int] = {}
        places: dict[tuple[str, str, str], tuple[int, int]] = {}
        comparisons: list[tuple[int, int, int]] = []
        names = dict.fromkeys(row.judge for row in rows)
        entries: dict[tuple[str, int, int], int] = {}
        sure: dict[str, Floats] = {}
        for row in rows:
            place = places.get((row.item, row.first, row.second))
            if place is None:
                place = (len(comparisons), 0)
                places[row.item, row.first, row.second] = place
                places[row.item, row.second, row.first] = (len(comparisons), 1)
                comparisons.append(
                    (
                        number[row.item],
                        contestants.setdefault(row.first, len(contestants)),
                        contestants.setdefault(row.second, len(contestants)),
                    )
                )
            if (row.judge, *place) in entries:
                raise DataError(
                    f"{row.judge} has judged item {row.item}, {row.first} before {row.second}, "
                    "twice; keep one of the two"
                )
            entries[row.judge, *place] = _CODE[row.verdict]
        said = {name: np.full((len(comparisons), 2), ABSENT, np.int8) for name in names}
        for (name, comparison, order), code in entries.items():
            said[name][comparison, order] = code
        for row in rows:
            if row.confidence is not None:
                known = sure.setdefault(row.judge, np.full((len(comparisons), 2), np.nan))
                known[places[row.item, row.first, row.second]] = row.confidence
        table = np.array(comparisons, dtype=np.intp).reshape(-1, 3)
        return cls(
            people=tuple(name for name in names if is_person(name, truth_prefix)),
            judges=tuple(name for name in names if not is_person(name, truth_prefix)),
            items=tuple(items),
            contestants=tuple(contestants),
            item=table[:, 0],
            sides=table[:, 1:],
            said=said,
            confidence=sure,
        )

    def seen_by(self, person: str) -> Codes:
        """One verdict a comparison, in the order of column 0, shape (c,).

        What was said in the other order counts, mirrored, where nothing readable was said in this.
        """
        here, there = self.said[person][:, 0], self.said[person][:, 1]
        swapped = (here >= UNREADABLE) & (there < UNREADABLE)
        return np.where(swapped, np.negative(there), here).astype(np.int8)

    def majority(self, people: Sequence[str]) -> Codes:
        """The side that more of ``people`` prefer, in both orders, shape (c, 2).

        Votes for a tie count for neither side, and a level vote is a tie; absent where nobody gave
        a readable verdict.
        """
        lead = np.zeros(len(self.item), np.intp)
        voters = np.zeros(len(self.item), np.intp)
        for person in people:
            readable = self.said[person] < UNREADABLE
            lead += (np.where(readable, self.said[person], 0) * np.array([1, -1])).sum(1)
            voters += readable.sum(1)
        mirrored = np.sign(lead)[:, None] * np.array([1, -1])
        return np.where((voters > 0)[:, None], mirrored, ABSENT).astype(np.int8)


def _annotation(fields: list[str], where: str) -> Annotation:
    item, first, second, judge, verdict = fields
    for name, value in zip(COLUMNS[:4], fields, strict=False):
        if not value:
            raise DataError(f"{where}: {name} is empty; every line needs one")
    if first == second:
        raise DataError(f"{where}: {first} is compared with itself; first and second must differ")
    verdict = verdict.lower()
    if verdict not in ("1", "2", "tie", ""):
        raise DataError(f"{where}: verdict {verdict!r} is none of 1, 2, tie or empty (unreadable)")
    return Annotation(item, first, second, judge, verdict or None)


def _better(verdict: Verdict | None, judgment: Judgment) -> str | None:
    if verdict is None:
        return None
    if len(judgment.contestants) == 1 and (verdict == "No" or verdict.isdecimal()):
        return "1" if verdict == "No" else "2"
    if len(judgment.contestants) == 2 and verdict in _AI_SIDE:
        return _AI_SIDE[verdict]
    raise DataError(
        f"verdict {verdict!r} of {judgment.judge} on seed {judgment.seed_id} ({judgment.protocol}) "
        "names no better side; judges are compared on arena, gteval or unieval judgments"
    )
