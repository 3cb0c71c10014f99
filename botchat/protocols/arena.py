"""BotChat Arena (BotChat §3.3, §4.2): two dialogues from one ChatSEED; which is AI-involved?

Every pair of contestants, every seed whose human dialogue has at least 4 utterances, both orders;
both dialogues cut to N utterances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations

from botchat import prompts
from botchat.interfaces import Case, Shown
from botchat.protocols.wording import conversation, read_choice
from botchat.records import HUMAN, MIN_HUMAN, Dialogue, Seed

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


def protocol(turns: int) -> str:
    """Name of the protocol at N = ``turns`` utterances: ``arena-n16``."""
    return f"arena-n{turns}"


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


def cases(
    seeds: Iterable[Seed], dialogues: Mapping[str, Mapping[str, Dialogue]], turns: int
) -> Iterator[Callable[[], Case]]:
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
    )


def read(text: str) -> tuple[str | None, str]:
    """(``"1" | "2" | "both" | "neither"`` = which conversation is AI-involved, reason)."""
    choice, why, _ = read_choice(text, _MEANING.get)
    return choice, why
