"""BotChat Arena (BotChat §3.3, §4.2): two dialogues from one ChatSEED; which is AI-involved?

Every pair of contestants, every seed whose human dialogue has at least 4 utterances, both orders;
both dialogues cut to N utterances.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from botchat.interfaces import Case
from botchat.protocols.kinds import Protocol, shown_length
from botchat.records import HUMAN, Dialogue, Dialogues, Seed

ARENA = Protocol(
    "arena",
    "BotChat Arena",
    kind="choice",
    shows="pair",
    question="two dialogues from one ChatSEED, both orders, cut to N",
    prompts=("arena",),
    short="Arena",
    explained="Two models continue the same start; the judge says which dialogue is AI-involved. "
    "From all such comparisons, in both orders: Bradley–Terry ratings with 95 % intervals, and Elo "
    "as in the paper.",
    leads=True,
    about_ai=True,
)

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
        lengths = [
            [len(of[seed_id].utterances) if seed_id in of else 0 for seed_id in self.seed_ids]
            for of in self._dialogues
        ]
        shape = len(self.contestants), len(self.seed_ids)
        self._length = np.array(lengths, dtype=np.intp).reshape(shape)
        human = np.array([name == HUMAN for name in self.contestants])
        n = _ANY if protocol.n is None else protocol.n
        self._wanted = np.where(human[:, None], np.minimum(self._length, n), n)

    def seeds_of(self, i: int, j: int) -> npt.NDArray[np.intp]:
        """Numbers of the seeds on which two contestants can be compared; see `shown_length`."""
        absent, short = self.obstacles(i, j)
        return np.flatnonzero(~(absent | short))

    def obstacles(self, i: int, j: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Seeds on which a dialogue of either of two contestants is absent, and is too short."""
        shorter = np.minimum(self._length[i], self._length[j])
        wanted = np.minimum(self._wanted[i], self._wanted[j])
        absent = shorter == 0
        return absent, ~absent & (shorter < wanted)

    def shown(self, first: int, second: int, seed: int) -> tuple[Dialogue, Dialogue, int] | None:
        """The dialogues of two contestants on a seed, and how much of them a case shows."""
        one, two = (self._dialogues[i].get(self.seed_ids[seed]) for i in (first, second))
        n = shown_length(one, two, self.protocol.n) if one and two else None
        return (one, two, n) if one and two and n else None

    def case(self, first: int, second: int, seed: int) -> Case:
        """The question about two contestants on one of their `seeds_of`, in the order shown."""
        shown = self.shown(first, second, seed)
        if shown is None:
            names = self.contestants[first], self.contestants[second]
            raise ValueError(f"{names[0]} and {names[1]} have no case here")
        return self.protocol.pair(self.seed_ids[seed], *shown)
