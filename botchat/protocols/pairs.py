"""Pairwise protocols by numbers: what can be compared (`Field`), what was said (`Verdicts`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.interfaces import Case
from botchat.protocols.kinds import Protocol, comparable
from botchat.records import HUMAN, Dialogue, Dialogues, Judgment, PairVerdict, Seed, outline

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]


_ANY = 1 << 40
"""More utterances than any dialogue has."""


class Field:
    """A pairwise protocol by numbers: who is compared, on which seeds, the case of a comparison."""

    def __init__(self, protocol: Protocol, seeds: Iterable[Seed], dialogues: Dialogues) -> None:
        """The same comparisons as of ``protocol.cases``; without N, of any length."""
        self.protocol = protocol
        self.contestants = tuple(sorted(dialogues))
        self.seed_ids = tuple(seed.id for seed in protocol.eligible(seeds))
        self._dialogues = [dialogues[name] for name in self.contestants]
        known = [outline(of).lengths for of in self._dialogues]
        lengths = [[of.get(seed_id, 0) for seed_id in self.seed_ids] for of in known]
        shape = len(self.contestants), len(self.seed_ids)
        self._length = np.array(lengths, dtype=np.intp).reshape(shape)
        human = np.array([name == HUMAN for name in self.contestants])
        n = _ANY if protocol.n is None else protocol.n
        self._wanted = np.where(human[:, None], np.minimum(self._length, n), n)

    def seeds_of(self, i: int, j: int) -> Indices:
        """Numbers of the seeds on which two contestants can be compared; see `comparable`."""
        absent, short = self.obstacles(i, j)
        return np.flatnonzero(~(absent | short))

    def obstacles(
        self, i: int | Indices, j: int | Indices, seed: Indices | EllipsisType = ...
    ) -> tuple[Flags, Flags]:
        """Seeds on which a dialogue of either of two contestants is absent, and is too short.

        Several contestants at a time, as numpy broadcasts; or each pair on one ``seed``.
        """
        shorter = np.minimum(self._length[i, seed], self._length[j, seed])
        wanted = np.minimum(self._wanted[i, seed], self._wanted[j, seed])
        absent = shorter == 0
        return absent, ~absent & (shorter < wanted)

    def shown(self, first: int, second: int, seed: int) -> tuple[Dialogue, Dialogue, int] | None:
        """The dialogues of two contestants on a seed, and how much of them a case shows."""
        one, two = (self._dialogues[i].get(self.seed_ids[seed]) for i in (first, second))
        return comparable(one, two, self.protocol.n)

    def case(self, first: int, second: int, seed: int) -> Case:
        """The question about two contestants on one of their `seeds_of`, in the order shown."""
        shown = self.shown(first, second, seed)
        if shown is None:
            names = self.contestants[first], self.contestants[second]
            raise ValueError(f"{names[0]} and {names[1]} have no case here")
        return self.protocol.pair(self.seed_ids[seed], *shown)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What one judge said in one pairwise protocol, at most once for each seed and order shown.

    All arrays have shape (n,). ``seed``, ``first``, ``second``, ``signature``: indices into the
    names. ``result``: for ``first``, nan where unreadable. ``shown``: utterances shown of each
    dialogue. ``chosen``: whether an adaptive design asked for it. ``case``: digest of what was
    shown, as a number; 0 for none.
    """

    seed_ids: tuple[str, ...]
    contestants: tuple[str, ...]
    known_signatures: tuple[str, ...]
    seed: Indices
    first: Indices
    second: Indices
    result: Floats
    shown: Indices
    chosen: Flags
    signature: Indices
    case: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, judgments: Iterable[Judgment], protocol: Protocol) -> Verdicts:
        """Of judgments of a pairwise protocol; errors as of `Collected.add`."""
        collected = Collected(protocol)
        collected.add(list(judgments))
        return collected.verdicts()

    def __len__(self) -> int:
        """Number of verdicts, unreadable ones among them."""
        return len(self.seed)

    @property
    def readable(self) -> Flags:
        """Which have a result."""
        return ~np.isnan(self.result)

    @property
    def judged_contestants(self) -> list[str]:
        """Who was judged, by name."""
        m = len(self.contestants)
        there = np.bincount(self.first, minlength=m) + np.bincount(self.second, minlength=m)
        return sorted(self.contestants[i] for i in np.flatnonzero(there).tolist())

    @property
    def signatures(self) -> Counter[str]:
        """How they were made -> how many."""
        counts = np.bincount(self.signature, minlength=len(self.known_signatures)).tolist()
        return +Counter(dict(zip(self.known_signatures, counts, strict=True)))

    def only(self, kept: Flags) -> Verdicts:
        """Some of them."""
        if kept.all():
            return self
        return replace(self, **{name: getattr(self, name)[kept] for name in _COLUMNS})

    def on(self, seed_ids: Collection[str]) -> Verdicts:
        """Those on some seeds."""
        return self.only(np.isin(self.seed_ids, list(seed_ids))[self.seed])

    def between(self, contestants: Collection[str]) -> Verdicts:
        """Those between some contestants."""
        known = np.isin(self.contestants, list(contestants))
        return self.only(known[self.first] & known[self.second])


_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("seed", "first", "second"), np.intp),
    "result": np.float64,
    "shown": np.intp,
    "chosen": np.bool_,
    "signature": np.intp,
    "case": np.uint64,
}
_FIELDS = attrgetter("seed_id", "contestants", "verdict", "shown", "chosen", "signature", "case")


class Collected:
    """Verdicts while they are read, a block at a time."""

    def __init__(self, protocol: Protocol) -> None:
        """Nothing yet; ``protocol`` knows what a verdict means."""
        self._result = lru_cache(maxsize=1 << 12)(protocol.result)
        self._seeds, self._contestants, self._signatures = _Numbers(), _Numbers(), _Numbers()
        self._blocks = [tuple(np.empty(0, dtype) for dtype in _COLUMNS.values())]

    def add(self, said: Sequence[Judgment | PairVerdict]) -> None:
        """Add some, older ones first; raises `DataError` as `Protocol.result`."""
        if not said:
            return
        n = len(said)
        seeds, contestants, verdicts, shown, chosen, signatures, cases = zip(
            *map(_FIELDS, said), strict=True
        )
        numbers = self._contestants.of(chain.from_iterable(contestants), 2 * n)
        columns = (
            self._seeds.of(seeds, n),
            numbers[::2],
            numbers[1::2],
            list(map(self._result, verdicts)),
            shown,
            list(map(bool, chosen)),
            self._signatures.of(signatures, n),
            list(map(_number, cases)),
        )
        self._blocks.append(tuple(map(np.asarray, columns, _COLUMNS.values())))

    def verdicts(self) -> Verdicts:
        """The last on each seed and order, in order of first appearance."""
        columns = list(map(np.concatenate, zip(*self._blocks, strict=True)))
        seed, first, second, *_ = columns
        key = (seed * len(self._contestants) + first) * len(self._contestants) + second
        ordered = np.sort(key)
        if (ordered[1:] == ordered[:-1]).any():
            appeared = np.unique(key, return_index=True)[1]
            from_end = np.unique(key[::-1], return_index=True)[1]
            latest = (len(key) - 1 - from_end)[np.argsort(appeared)]
            columns = [column[latest] for column in columns]
        return Verdicts(
            tuple(self._seeds), tuple(self._contestants), tuple(self._signatures), *columns
        )


def _number(case: str) -> int:
    """A digest of 16 hex digits as a number, 0 where it is none."""
    try:
        return int(case, 16) if len(case) == 16 else 0
    except ValueError:
        return 0


class _Numbers(dict[str, int]):
    """Name -> its number, in the order in which names were first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return len(self) - 1

    def of(self, names: Iterable[str], n: int) -> Indices:
        """The number of each of n."""
        return np.fromiter(map(self.__getitem__, names), np.intp, n)
