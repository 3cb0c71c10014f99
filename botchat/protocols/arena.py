"""BotChat Arena (BotChat §3.3, §4.2): two dialogues from one ChatSEED; which is AI-involved?

Every pair of contestants, every seed whose human dialogue has at least 4 utterances, both orders;
both dialogues cut to N utterances.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from botchat import prompts
from botchat.interfaces import Case, Shown
from botchat.protocols.wording import choice_schema, conversation, read_choice, verdict_words
from botchat.records import HUMAN, MIN_HUMAN, Dialogue, Dialogues, Seed

PROMPTS = ("arena",)
CHOICES = frozenset({"1", "2", "both", "neither"})

_MEANING = {
    "conversation 1": "1",
    "conversation1": "1",
    "1": "1",
    "conversation one": "1",
    "conversation 2": "2",
    "conversation2": "2",
    "2": "2",
    "conversation two": "2",
    "both": "both",
    "both conversations": "both",
    "neither": "neither",
    "neither conversation": "neither",
}


SCHEMA = choice_schema(["Conversation 1", "Conversation 2", "Both", "Neither"])


_AT = re.compile(r"arena-n(\d+)")


def protocol(turns: int) -> str:
    """Name of the protocol at N = ``turns`` utterances: ``arena-n16``."""
    return f"arena-n{turns}"


def turns_judged(protocols: Iterable[str]) -> list[int]:
    """Each N of the Arena among some protocols, largest first."""
    found = (_AT.fullmatch(name) for name in protocols)
    return sorted((int(match[1]) for match in found if match), reverse=True)


def eligible(seeds: Iterable[Seed]) -> list[Seed]:
    """Seeds whose human dialogue has at least 4 utterances (BotChat §4.2: 222 of MuTual's 547)."""
    return [seed for seed in seeds if len(seed.utterances) >= MIN_HUMAN]


def shown_length(a: Dialogue, b: Dialogue, turns: int) -> int | None:
    """Utterances shown of both dialogues, or ``None`` if one of them is too short to compare.

    A human dialogue is as long as it is, so beside one both are cut to its length if that is
    below N.
    """
    wanted = min([turns, *(len(d.utterances) for d in (a, b) if d.contestant == HUMAN)])
    return wanted if min(len(a.utterances), len(b.utterances)) >= wanted else None


def cases(seeds: Iterable[Seed], dialogues: Dialogues, turns: int) -> Iterator[Callable[[], Case]]:
    """A maker of a case for every comparison that can be made, seed by seed.

    Args:
        seeds: the set; those with too short a human dialogue are passed over.
        dialogues: contestant -> seed id -> dialogue.
        turns: N.
    """
    for seed in eligible(seeds):
        for a, b in combinations(sorted(dialogues), 2):
            one, two = dialogues[a].get(seed.id), dialogues[b].get(seed.id)
            n = shown_length(one, two, turns) if one and two else None
            if one and two and n:
                for first, second in ((one, two), (two, one)):
                    yield partial(case, seed.id, first, second, n, turns)


class Field:
    """The Arena at one N by numbers: contestants, their seeds, and the case of any comparison."""

    def __init__(self, seeds: Iterable[Seed], dialogues: Dialogues, turns: int) -> None:
        """Arguments as of `cases`, which makes the same comparisons."""
        self.contestants = tuple(sorted(dialogues))
        self.seed_ids = tuple(seed.id for seed in eligible(seeds))
        self.turns = turns
        self._dialogues = [dialogues[name] for name in self.contestants]
        lengths = [
            [len(of[seed_id].utterances) if seed_id in of else 0 for seed_id in self.seed_ids]
            for of in self._dialogues
        ]
        shape = len(self.contestants), len(self.seed_ids)
        self._length = np.array(lengths, dtype=np.intp).reshape(shape)
        human = np.array([name == HUMAN for name in self.contestants])
        self._wanted = np.where(human[:, None], np.minimum(self._length, turns), turns)

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
        one, two = (self._dialogues[number].get(self.seed_ids[seed]) for number in (first, second))
        n = shown_length(one, two, self.turns) if one and two else None
        return (one, two, n) if one and two and n else None

    def case(self, first: int, second: int, seed: int) -> Case:
        """The question about two contestants on one of their `seeds_of`, in the order shown."""
        shown = self.shown(first, second, seed)
        if shown is None:
            raise ValueError(
                f"{self.contestants[first]} and {self.contestants[second]} have no case here"
            )
        return case(self.seed_ids[seed], *shown, self.turns)


def case(seed_id: str, first: Dialogue, second: Dialogue, n: int, turns: int) -> Case:
    """The question which of two dialogues, cut to ``n`` utterances, is AI-involved."""
    return comparison("arena", protocol(turns), seed_id, first, second, n)


def comparison(
    prompt: str, protocol: str, seed_id: str, first: Dialogue, second: Dialogue, n: int
) -> Case:
    """A pairwise case in the wording of ``prompt``; Arena and GTEval differ in that only."""
    one, two = first.utterances[:n], second.utterances[:n]
    return Case(
        protocol=protocol,
        seed_id=seed_id,
        dialogues=(Shown(first.contestant, one), Shown(second.contestant, two)),
        prompt=prompts.fill(
            prompt, conversation_1=conversation(one), conversation_2=conversation(two)
        ),
        choices=CHOICES,
        read=read,
        mirror=partial(comparison, prompt, protocol, seed_id, second, first, n),
        schema=SCHEMA,
        words=partial(verdict_words, meaning=_MEANING.get),
    )


def read(text: str) -> tuple[str | None, str]:
    """(``"1" | "2" | "both" | "neither"`` = which conversation is AI-involved, reason)."""
    choice, why, _ = read_choice(text, _MEANING.get)
    return choice, why
