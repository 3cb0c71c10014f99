"""Pairwise protocols by numbers: what can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType

import numpy as np

from botchat.interfaces import Case
from botchat.protocols.kinds import Protocol, comparable
from botchat.records import HUMAN, Dialogue, Dialogues, Seed, outline
from botchat.verdicts import Flags, Indices

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
