"""Verdicts on pairs, in columns: every pairwise number is computed from these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from hashlib import sha256
from itertools import chain, product
from typing import NamedTuple, Protocol

import numpy as np

from botchat.errors import DataError
from botchat.estimates import Codes, Flags, Floats, Indices, Names
from botchat.interfaces import settings_digest
from botchat.metrics.statistics import distinct, rows_at
from botchat.records import NO_ROOM, JudgeId, Judgment, PairJudgment, Texts, Verdict

WIN = 1.0
TIE = 0.5
LOSS = 0.0
"""Result of a comparison for the contestant shown first."""

NO_CONTESTANT = ""
"""The second contestant where a dialogue was judged alone."""


class PairOutcome(IntEnum):
    """Verdict on a pair, seen from the side shown first, where verdicts stand side by side."""

    LOSS = -1
    TIE = 0
    WIN = 1
    UNREADABLE = 2
    ABSENT = 3
    """Not judged in that order."""


class ResultReader(Protocol):
    """A kind of answer: knows what a verdict means."""

    def result(self, verdict: Verdict | None) -> float | None:
        """Return 1, ½ or 0 for the contestant shown first; `DataError` for any other verdict."""


class PairVerdict(NamedTuple):
    """One verdict of one judge on a pair, in the order it was shown."""

    item: str
    """Subject of the comparison (a question, a seed); it may have many pairs."""
    first: str
    second: str
    judge: str
    result: float | None
    """1, ½ or 0 for ``first``, or between; NaN or None: unreadable."""


def lacks_room(judgment: Judgment | PairJudgment) -> bool:
    """Return whether a verdict is missing since a reply was cut or showed nothing."""
    if judgment.verdict is not None:
        return False
    if judgment.outcome in NO_ROOM:
        return True
    # A panel has an outcome of its own; its agents' votes tell theirs.
    return any(vote.verdict is None and vote.outcome in NO_ROOM for vote in judgment.transcript)


@dataclass(frozen=True, eq=False)
class PairVerdicts:
    """n verdicts on pairs; all arrays have shape (n,), indices are into the names.

    ``item``: -1 not known. ``turn``: part of an item, or 0. ``result``: 1, ½ or 0 for ``first``, or
    between; nan unreadable. ``shown``: utterances shown of each. ``weight``: how often it counts.
    """

    items: Names
    contestants: Names
    judges: Names
    known_signatures: Names
    item: Indices
    turn: Indices
    first: Indices
    second: Indices
    judge: Indices
    result: Floats
    shown: Indices
    weight: Floats
    signature: Indices
    no_room: Flags  # see `lacks_room`

    @classmethod
    def of_columns(
        cls,
        items: Names,
        contestants: Names,
        judges: Names,
        item: Indices,
        first: Indices,
        second: Indices,
        judge: Indices,
        result: Floats,
    ) -> PairVerdicts:
        """Return verdicts without turns and signatures, each counting once."""
        nothing = np.zeros(len(first), np.intp)
        return cls(
            items,
            contestants,
            judges,
            ("",),
            item=item,
            turn=nothing,
            first=first,
            second=second,
            judge=judge,
            result=result,
            shown=nothing,
            weight=np.ones(len(first)),
            signature=nothing,
            no_room=np.zeros(len(first), np.bool_),
        )

    @classmethod
    def of(cls, rows: Iterable[PairVerdict]) -> PairVerdicts:
        """Return rows in columns, names in the order in which they appear.

        >>> len(PairVerdicts.of([PairVerdict("q1", "a", "b", "judge", 1.0)]))
        1
        """
        rows = list(rows)
        items = Numbers()
        contestants = Numbers()
        judges = Numbers()
        item = items.of(row.item for row in rows)
        side = contestants.of(chain.from_iterable((row.first, row.second) for row in rows))
        judge = judges.of(row.judge for row in rows)
        return cls.of_columns(
            tuple(items),
            tuple(contestants),
            tuple(judges),
            item,
            side[::2],
            side[1::2],
            judge,
            np.array([row.result for row in rows], np.float64),
        )

    @classmethod
    def of_judgments(cls, judgments: Iterable[Judgment], answer: ResultReader) -> PairVerdicts:
        """Return the verdicts on pairs; raises as `VerdictsBuilder.add`."""
        collected = VerdictsBuilder(answer)
        collected.add([(judgment, True) for judgment in judgments])
        return collected.verdicts()

    @classmethod
    def together(cls, parts: Sequence[PairVerdicts]) -> PairVerdicts:
        """Return several as one; items, contestants and judges of one name are one."""
        if not parts:
            return cls.of([])
        items, item = _joined([part.items for part in parts], [part.item for part in parts])
        sides = [np.stack([part.first, part.second]) for part in parts]
        contestants, (first, second) = _joined([part.contestants for part in parts], sides)
        judges, judge = _joined([part.judges for part in parts], [part.judge for part in parts])
        signatures, signature = _joined(
            [part.known_signatures for part in parts], [part.signature for part in parts]
        )
        others = {}
        for name in ("turn", "result", "shown", "weight", "no_room"):
            others[name] = np.concatenate([vars(part)[name] for part in parts])
        return cls(
            items,
            contestants,
            judges,
            signatures,
            item=item,
            first=first,
            second=second,
            judge=judge,
            signature=signature,
            **others,
        )

    def __len__(self) -> int:
        """Number of verdicts, unreadable ones among them."""
        return len(self.first)

    @property
    def readable(self) -> Flags:
        """Flags of the verdicts that have a result."""
        return ~np.isnan(self.result)

    @property
    def judged_contestants(self) -> list[str]:
        """Names of the judged contestants, sorted."""
        present, _ = distinct(np.concatenate([self.first, self.second]))
        return sorted(self.contestants[i] for i in present.tolist())

    @property
    def signatures(self) -> Counter[str]:
        """Signature -> number of verdicts."""
        return Counter(self.known_signatures[i] for i in np.sort(self.signature).tolist())

    @property
    def cases(self) -> Indices:
        """Number of each verdict's item and turn; of an unknown item the verdict's own."""
        n_turns = int(self.turn.max(initial=0)) + 1
        own = len(self.items) * n_turns + np.arange(len(self))
        return np.where(self.item < 0, own, self.item * n_turns + self.turn)

    def both_orders(self) -> tuple[Indices, Codes]:
        """Put the verdicts of a judge on a case and two contestants side by side.

        Returns the number of a verdict of each such comparison, shape (c,), in the order of cases
        and contestants, and its `PairOutcome`, shape (c, 2): column 0 shows the contestant of the
        smaller number first, column 1 the other.
        """
        case = self.cases * len(self.judges) + self.judge
        begin, comparison = _comparisons(case, self.first, self.second)
        outcomes = np.full((len(begin), 2), PairOutcome.ABSENT, np.int8)
        outcomes[comparison, (self.first > self.second).astype(np.intp)] = self.outcomes
        return begin, outcomes

    @property
    def outcomes(self) -> Codes:
        """`PairOutcome` of each verdict; of a soft result the nearer side's."""
        sign = np.sign(np.nan_to_num(self.result, nan=TIE) - TIE)
        return np.where(self.readable, sign, PairOutcome.UNREADABLE).astype(np.int8)

    def only(self, kept: Flags) -> PairVerdicts:
        """Return the verdicts that ``kept`` flags."""
        if kept.all():
            return self
        return rows_at(self, kept)

    def on(self, items: Collection[str]) -> PairVerdicts:
        """Return the verdicts on some items."""
        return self.only(np.isin(self.items, list(items))[self.item])

    def between(self, contestants: Collection[str]) -> PairVerdicts:
        """Return the verdicts between some contestants."""
        known = np.isin(self.contestants, list(contestants))
        return self.only(known[self.first] & known[self.second])

    def by(self, judges: Collection[str]) -> PairVerdicts:
        """Return the verdicts of some judges."""
        return self.only(np.isin(self.judges, list(judges))[self.judge])

    @property
    def is_latest(self) -> Flags:
        """Flags of the last of each judge on an item, turn and order; all of unknown items."""
        # By columns: a million verdicts are compared in a moment.
        key = self.cases
        for column in (self.first, self.second, self.judge):
            _, key = np.unique(key * (column.max(initial=-1) + 1) + column, return_inverse=True)
        return _is_last(key)

    def with_turns_named(self) -> PairVerdicts:
        """Return the same, each turn an item of its own, and each verdict without an item."""
        names = list(self.items)
        n_turns = self.turn.max(initial=0) + 1
        if n_turns > 1:
            names = [f"{name}, turn {turn}" for name, turn in product(names, range(n_turns))]
        if (self.item < 0).any():
            names += [f"vote {number}" for number in range(1, len(self) + 1)]
        untold = np.zeros_like(self.turn)
        return replace(self, items=tuple(names), item=self.cases, turn=untold)


def _comparisons(case: Indices, first: Indices, second: Indices) -> tuple[Indices, Indices]:
    """Return where each case and two contestants first stand, and which each verdict is about."""
    low = np.minimum(first, second)
    high = np.maximum(first, second)
    m = high.max(initial=0) + 1
    _, seen, comparison = np.unique(
        (case * m + low) * m + high, return_index=True, return_inverse=True
    )
    return seen, comparison


def _is_last(key: Indices) -> Flags:
    """Return flags of the last of each key."""
    _, from_end = np.unique(key[::-1], return_index=True)
    is_last = np.zeros(len(key), np.bool_)
    is_last[::-1][from_end] = True
    return is_last


def _joined(names: Sequence[Names], columns: Sequence[Indices]) -> tuple[Names, Indices]:
    """Return the names of several parts as one list, and their columns renumbered."""
    numbers = Numbers()
    joined = []
    for of_part, column in zip(names, columns, strict=True):
        # -1, the last place, is that of an unknown name.
        places = np.append(numbers.of(of_part), -1)
        joined.append(places[column])
    return tuple(numbers), np.concatenate(joined, axis=-1)


class VerdictsBuilder:
    """Verdicts of one judge while they are read, a block at a time."""

    def __init__(self, answer: ResultReader) -> None:
        """Hold no verdict yet; ``answer`` knows what a verdict means."""
        self._result = lru_cache(maxsize=1 << 12)(answer.result)
        self._blocks: list[PairVerdicts] = []
        self._is_current: list[bool] = []
        self.n_outdated = 0
        """Verdicts that `verdicts` left out."""

    def add(self, states: Sequence[tuple[Judgment | PairJudgment, bool]]) -> None:
        """Add judgments, older ones first; raises `DataError` as `ResultReader.result`.

        ``states``: each with whether it is on the dialogues as they are.
        """
        judgments = [judgment for judgment, _ in states]
        items = Numbers()
        contestants = Numbers()
        signatures = Numbers()
        item = items.of(judgment.seed_id for judgment in judgments)
        names = [judgment.contestants for judgment in judgments]
        side = contestants.of(chain.from_iterable(names))
        block = replace(
            PairVerdicts.of_columns(
                tuple(items),
                tuple(contestants),
                ("",),
                item,
                side[::2],
                side[1::2],
                np.zeros_like(item),
                np.array([self._result(judgment.verdict) for judgment in judgments], np.float64),
            ),
            shown=np.array([judgment.shown for judgment in judgments], np.intp),
            signature=signatures.of(judgment.signature for judgment in judgments),
            no_room=np.array([lacks_room(judgment) for judgment in judgments], np.bool_),
            known_signatures=tuple(signatures),
        )
        self._blocks.append(block)
        self._is_current += [is_current for _, is_current in states]

    def verdicts(self) -> PairVerdicts:
        """Return the last on each seed and order, if it is current."""
        verdicts = PairVerdicts.together(self._blocks)
        m = len(verdicts.contestants)
        is_last = _is_last((verdicts.item * m + verdicts.first) * m + verdicts.second)
        is_kept = is_last & np.array(self._is_current, np.bool_)
        self.n_outdated = int(is_last.sum() - is_kept.sum())
        return verdicts.only(is_kept)


class Numbers(dict[str, int]):
    """Name -> its number, in the order in which names were first asked for."""

    def __missing__(self, name: str) -> int:
        """Give a new name the next number."""
        self[name] = len(self)
        return len(self) - 1

    def of(self, names: Iterable[str]) -> Indices:
        """Return the numbers of some names."""
        return np.array([self[name] for name in names], np.intp)


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Verdicts of judges on the same c comparisons (item and two contestants), in both orders.

    Column 0 is the order in which annotators saw the comparison first, or else the first found.
    """

    annotators: Texts
    judges: Texts
    """Names that are no annotators, in order of appearance."""
    items: Names
    contestants: Names
    item: Indices
    """Shape (c, 2)."""
    cluster: Indices
    """The item, or its topic in its place, shape (c, 2)."""
    sides: Indices
    """Contestants in the order of column 0, shape (c, 2)."""
    outcomes: Mapping[str, Codes]
    """Judge or annotator -> `PairOutcome`, shape (c, 2)."""

    @classmethod
    def of(
        cls, verdicts: PairVerdicts, truth_name: str | None, topics: Mapping[str, str]
    ) -> JudgedPairs:
        """Put verdicts beside each other; raises `DataError` for two of a judge on one case."""
        numbers = list(dict.fromkeys(verdicts.judge.tolist()))
        present = [verdicts.judges[i] for i in numbers]
        annotators = [name for name in present if JudgeId.parse(name).is_annotator(truth_name)]
        # Column 0 is the order in which annotators saw a comparison.
        is_annotated = np.isin(verdicts.judges, annotators)[verdicts.judge]
        rows = rows_at(verdicts, np.argsort(~is_annotated, kind="stable"))
        # Sorted, so that a bootstrap does not depend on the order of the verdicts.
        items, item = _sorted(rows.items, rows.item)
        _, cluster = _sorted([topics.get(name, name) for name in items], item)
        contestants, sides = _sorted(rows.contestants, np.concatenate([rows.first, rows.second]))
        first, second = np.split(sides, 2)
        seen, comparison = _comparisons(item, first, second)
        mirrored = (first != first[seen][comparison]).astype(np.intp)
        cell = (rows.judge * len(seen) + comparison) * 2 + mirrored
        _refuse_twice(rows, cell)
        outcomes = np.full((len(verdicts.judges), len(seen), 2), PairOutcome.ABSENT, np.int8)
        outcomes[rows.judge, comparison, mirrored] = rows.outcomes
        return cls(
            annotators=annotators,
            judges=[name for name in present if name not in annotators],
            items=items,
            contestants=contestants,
            item=np.repeat(item[seen, None], 2, axis=1),
            cluster=np.repeat(cluster[seen, None], 2, axis=1),
            sides=np.stack([first[seen], second[seen]], axis=1),
            outcomes=dict(zip(present, outcomes[numbers], strict=True)),
        )

    def majority(self, annotators: Texts) -> Codes:
        """Return the side that more of the annotators prefer, or a tie, if any gave a verdict."""
        votes = np.array([self.outcomes[name] for name in annotators], np.int8)
        votes = votes.reshape(len(annotators), *self.item.shape)
        readable = votes < PairOutcome.UNREADABLE
        orders = np.array([1, -1])
        lead = (votes * readable * orders).sum((0, 2))
        labels = np.sign(lead)[:, None] * orders
        has_label = readable.sum((0, 2)) > 0
        return np.where(has_label[:, None], labels, PairOutcome.ABSENT).astype(np.int8)


def verdicts_digest(verdicts: PairVerdicts) -> str:
    """Return a digest of all verdicts, in whatever order they came."""
    table = JudgedPairs.of(verdicts, None, {})
    m = len(table.contestants)
    case = (table.item * m + table.sides) * m + table.sides[:, ::-1]
    digests = []
    for judge in sorted(table.outcomes):
        outcomes = table.outcomes[judge]
        cells = np.sort((case * 4 + outcomes % 4)[outcomes != PairOutcome.ABSENT])
        digests.append([judge, sha256(cells.astype("<i8").tobytes()).hexdigest()])
    return settings_digest(table.items, table.contestants, digests)


def _sorted(names: Texts, column: Indices) -> tuple[Names, Indices]:
    """Return the names that a column has, sorted, each once, and the column renumbered."""
    present, at = distinct(column)
    ordered, place = np.unique(np.array(names, object)[present], return_inverse=True)
    return tuple(ordered), place[at]


def _refuse_twice(rows: PairVerdicts, cell: Indices) -> None:
    """Raise `DataError` where a judge has two verdicts in one cell, shape (n,)."""
    for at in np.flatnonzero(np.bincount(cell)[cell] > 1)[1:]:
        judge = rows.judges[rows.judge[at]]
        item = rows.items[rows.item[at]]
        second = rows.contestants[rows.second[at]]
        pair = ""
        if second != NO_CONTESTANT:
            pair = f", {rows.contestants[rows.first[at]]} before {second},"
        raise DataError(f"{judge} has judged item {item}{pair} twice; keep one of the two")
