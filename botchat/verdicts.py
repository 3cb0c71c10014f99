"""Verdicts of a judge on pairs, in columns: every pairwise number is computed from these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.records import Judgment, PairJudgment, Verdict, lacks_room

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]
Codes: TypeAlias = npt.NDArray[np.int8]

WIN, TIE, LOSS = 1.0, 0.5, 0.0
"""Result of a comparison for the contestant shown first."""

TIED, UNREADABLE, ABSENT = 0, 2, 3
"""Codes of a verdict in both orders, next to 1 (the side shown first) and -1 (the second)."""


class ResultReader(Protocol):
    """A protocol: knows what a verdict means."""

    def result(self, verdict: Verdict | None) -> float | None:
        """Return 1, ½ or 0 for the contestant shown first; `DataError` for any other verdict."""


@dataclass(frozen=True, eq=False)
class BothOrders:
    """Verdicts of one judge on c comparisons: two contestants on one seed, shown in two orders."""

    seed: Indices
    """Shape (c,)."""
    sides: Indices
    """The contestants in the order of column 0, the smaller number first; shape (c, 2)."""
    results: Codes
    """Shape (c, 2): 1 the side shown first, -1 the second, 0 a tie, `UNREADABLE` or `ABSENT`."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Verdicts of one judge in one pairwise protocol, at most once for each seed and order shown.

    All arrays have shape (n,). ``seed``, ``first``, ``second``, ``signature``: indices into the
    names. ``result``: for ``first``, nan where unreadable. ``shown``: utterances shown of each
    dialogue. ``no_room``: see `lacks_room`.
    """

    seed_ids: tuple[str, ...]
    contestants: tuple[str, ...]
    known_signatures: tuple[str, ...]
    seed: Indices
    first: Indices
    second: Indices
    result: Floats
    shown: Indices
    signature: Indices
    no_room: Flags

    @classmethod
    def of(cls, judgments: Iterable[Judgment], protocol: ResultReader) -> Verdicts:
        """Return the verdicts of a pairwise protocol; raises as `VerdictsBuilder.add`."""
        collected = VerdictsBuilder(protocol)
        collected.add(list(judgments))
        return collected.verdicts()

    def __len__(self) -> int:
        """Number of verdicts, unreadable ones among them."""
        return len(self.seed)

    @property
    def readable(self) -> Flags:
        """Flags of the verdicts that have a result."""
        return ~np.isnan(self.result)

    @property
    def judged_contestants(self) -> list[str]:
        """Names of the judged contestants."""
        m = len(self.contestants)
        counts = np.bincount(self.first, minlength=m) + np.bincount(self.second, minlength=m)
        return sorted(self.contestants[i] for i in np.flatnonzero(counts).tolist())

    @property
    def signatures(self) -> Counter[str]:
        """Signature -> number of verdicts."""
        counts = np.bincount(self.signature, minlength=len(self.known_signatures)).tolist()
        return +Counter(dict(zip(self.known_signatures, counts, strict=True)))

    def both_orders(self) -> BothOrders:
        """Both orders of each comparison side by side, in the order of seeds and contestants."""
        m = len(self.contestants)
        sides = np.sort(np.stack([self.first, self.second], axis=1), axis=1)
        low, high = sides.T
        _, begin, comparison = np.unique(
            (self.seed * m + low) * m + high, return_index=True, return_inverse=True
        )
        codes = np.full((len(begin), 2), ABSENT, np.int8)
        code = np.where(self.readable, 2 * self.result - 1, UNREADABLE)
        codes[comparison, (self.first > self.second).astype(np.intp)] = code
        return BothOrders(self.seed[begin], sides[begin], codes)

    def only(self, kept: Flags) -> Verdicts:
        """Return the verdicts that ``kept`` flags."""
        if kept.all():
            return self
        return replace(self, **{name: getattr(self, name)[kept] for name in _COLUMNS})

    def on(self, seed_ids: Collection[str]) -> Verdicts:
        """Return the verdicts on some seeds."""
        return self.only(np.isin(self.seed_ids, list(seed_ids))[self.seed])

    def between(self, contestants: Collection[str]) -> Verdicts:
        """Return the verdicts between some contestants."""
        known = np.isin(self.contestants, list(contestants))
        return self.only(known[self.first] & known[self.second])


_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("seed", "first", "second"), np.intp),
    **{"result": np.float64, "shown": np.intp, "signature": np.intp, "no_room": np.bool_},
}
_FIELDS = attrgetter("seed_id", "contestants", "verdict", "shown", "signature")


class VerdictsBuilder:
    """Verdicts while they are read, a block at a time."""

    def __init__(self, protocol: ResultReader) -> None:
        """Hold no verdict yet; ``protocol`` knows what a verdict means."""
        self._result = lru_cache(maxsize=1 << 12)(protocol.result)
        self._seeds, self._contestants, self._signatures = _Numbers(), _Numbers(), _Numbers()
        self._blocks = [tuple(np.empty(0, dtype) for dtype in (*_COLUMNS.values(), np.bool_))]
        self.n_outdated = 0
        """Verdicts that `verdicts` left out."""

    def add(
        self, judgments: Sequence[Judgment | PairJudgment], current: Sequence[bool] | None = None
    ) -> None:
        """Add judgments, older ones first; raises `DataError` as `ResultReader.result`.

        ``current``: whether each is on the dialogues as they are, by default all.
        """
        if not judgments:
            return
        n = len(judgments)
        fields = zip(*map(_FIELDS, judgments), strict=True)
        seeds, contestants, verdicts, lengths, signatures = fields
        numbers = self._contestants.of(chain.from_iterable(contestants), 2 * n)
        columns = (
            self._seeds.of(seeds, n),
            numbers[::2],
            numbers[1::2],
            list(map(self._result, verdicts)),
            lengths,
            self._signatures.of(signatures, n),
            [lacks_room(judgment) for judgment in judgments],
        )
        flags = np.ones(n, np.bool_) if current is None else np.asarray(current, np.bool_)
        self._blocks.append((*map(np.asarray, columns, _COLUMNS.values()), flags))

    def verdicts(self) -> Verdicts:
        """Return the last on each seed and order, if it is current, as they first appeared."""
        columns = list(map(np.concatenate, zip(*self._blocks, strict=True)))
        seed, first, second, *_ = columns
        key = (seed * len(self._contestants) + first) * len(self._contestants) + second
        ordered = np.sort(key)
        if (ordered[1:] == ordered[:-1]).any():
            appeared = np.unique(key, return_index=True)[1]
            from_end = np.unique(key[::-1], return_index=True)[1]
            latest = (len(key) - 1 - from_end)[np.argsort(appeared)]
            columns = [column[latest] for column in columns]
        *columns, current = columns
        self.n_outdated = int((~current).sum())
        names = tuple(self._seeds), tuple(self._contestants), tuple(self._signatures)
        return Verdicts(*names, *columns).only(current)


class _Numbers(dict[str, int]):
    """Name -> its number, in the order in which names were first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return len(self) - 1

    def of(self, names: Iterable[str], n: int) -> Indices:
        """Return the numbers of n names."""
        return np.fromiter(map(self.__getitem__, names), np.intp, n)
