"""Judges of which it is known what they are worth, and a set of dialogues for them.

Every dialogue falls behind a person's by so much, a floor bot's most; the *ideal* judge sees that,
with a little noise of its own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import msgspec

from botchat.boards.board import Board, build
from botchat.interfaces import ShownDialogue
from botchat.judges.rules import RulesJudge
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Dialogue, Judgment, Seed
from tests.boards import QUICK, judgment, made

QUALITY: Mapping[str, float] = {
    "bot:eliza": 0.0,
    "bot:parrot": 0.0,
    **{f"model-{i:02}": 0.25 + 0.06 * i for i in range(12)},
}

PROTOCOLS = (UNIEVAL, ARENA.at(16), GTEVAL)

Say = Callable[[Protocol, Sequence[Dialogue]], str | None]
"""What a judge says of the dialogues shown, in this order."""


@dataclass(frozen=True)
class World:
    """Seeds, everybody's dialogues, and how far each falls behind a person's."""

    seeds: list[Seed]
    dialogues: dict[str, dict[str, Dialogue]]
    behind: dict[tuple[str, str], float]

    @classmethod
    def of(cls, n_seeds: int = 40, quality: Mapping[str, float] = QUALITY, seed: int = 0) -> World:
        """Of seeds of 4 and more utterances."""
        rng = random.Random(seed)
        plain = made(dict(quality), 3 * n_seeds, arena=(), rng_seed=seed)
        seeds = [one for one in plain.seeds if len(one.utterances) >= 4][:n_seeds]
        assert len(seeds) == n_seeds
        behind = {
            (name, one.id): rng.gauss(1 - worth, 0.1)
            for name, worth in {**quality, HUMAN: 1.0}.items()
            for one in seeds
        }
        ids = {one.id for one in seeds}
        dialogues = {
            name: {seed_id: said for seed_id, said in by.items() if seed_id in ids}
            for name, by in plain.dialogues.items()
        }
        return cls(seeds, dialogues, behind)

    def judged(
        self, say: Say, protocols: Sequence[Protocol] = PROTOCOLS
    ) -> dict[str, list[Judgment]]:
        """What a judge says of everything."""
        names = sorted(set(self.dialogues) - {HUMAN})
        found: dict[str, list[Judgment]] = {}
        for protocol in protocols:
            groups: list[tuple[str, ...]] = [(name,) for name in (*names, HUMAN)]
            if protocol.shows == "pair":
                groups = [*combinations(names, 2)]
            elif protocol.shows == "human":
                groups = [(name, HUMAN) for name in names]
            made_ = found.setdefault(protocol.name, [])
            for one in self.seeds:
                for group in groups:
                    for shown in [group] if len(group) == 1 else [group, group[::-1]]:
                        dialogues = [self.dialogues[name][one.id] for name in shown]
                        n = min(len(d.utterances) for d in dialogues)
                        verdict = say(protocol, dialogues)
                        made_.append(judgment(protocol.name, one.id, shown, verdict, n))
        return found

    def board(
        self, say: Say, protocols: Sequence[Protocol] = PROTOCOLS, judge: str = "made", **more: Any
    ) -> Board:
        """The board of what a judge says."""
        said = self.judged(say, protocols)
        return self.board_of(said, judge, **more)

    def board_of(
        self, said: Mapping[str, list[Judgment]], judge: str = "made", **more: Any
    ) -> Board:
        """The board of some judgments."""
        known = {"seed_set": "made-up", "elo": QUICK, **more}
        return build(self.seeds, self.dialogues, said, judge=judge, **known)

    # ------------------------------------------------------------------------------ judges

    def ideal(self, noise: float = 0.05, seed: int = 1) -> Say:
        """Names the machine, and of two the one that falls further behind; rarely wrong."""
        rng = random.Random(seed)

        def say(protocol: Protocol, dialogues: Sequence[Dialogue]) -> str:
            seen = [
                self.behind[one.contestant, one.seed_id] + rng.gauss(0, noise) for one in dialogues
            ]
            if protocol.kind == "place":
                found = seen[0] > 0.3
                return str(3 + rng.randrange(2)) if found else "No"
            apart = seen[0] - seen[1]
            return ("both" if seen[0] > 0.3 else "neither") if abs(apart) < 0.05 else (
                "1" if apart > 0 else "2"
            )  # fmt: skip

        return say

    def noisy(self, share: float = 0.5, seed: int = 2) -> Say:
        """The ideal judge, which throws a coin for a share of its verdicts."""
        rng, ideal, guess = random.Random(seed), self.ideal(seed=seed), coin(seed + 100)
        return lambda *case: guess(*case) if rng.random() < share else ideal(*case)

    def rules(self) -> Say:
        """BotChat's own."""
        judge = RulesJudge(one.utterances for one in self.seeds)

        def say(protocol: Protocol, dialogues: Sequence[Dialogue]) -> str | None:
            seed_id, *_ = (one.seed_id for one in dialogues)
            if protocol.shows == "one":
                (one,) = dialogues
                case = protocol.case(seed_id, ShownDialogue(one.contestant, one.utterances))
            else:
                n = min(len(one.utterances) for one in dialogues)
                case = protocol.case(seed_id, *(ShownDialogue.of(each, n) for each in dialogues))
            return asyncio.run(judge.answer(case)).verdict

        return say


def coin(seed: int = 3) -> Say:
    """Guesses."""
    rng = random.Random(seed)
    return lambda protocol, _: rng.choice(
        ["No", "3"] if protocol.kind == "place" else ["1", "2", "both", "neither"]
    )


def always(alone: str, of_two: str) -> Say:
    """The same verdict on one dialogue, and on two, whatever they are."""
    return lambda protocol, _: alone if protocol.kind == "place" else of_two


USELESS: Mapping[str, Say] = {
    "never accuses": always("No", "neither"),
    "always accuses": always("3", "both"),
    "coin": coin(),
    "always first": always("3", "1"),
    "always second": always("No", "2"),
    "always tie": always("No", "both"),
}


def renamed(said: Mapping[str, Sequence[Judgment]], judge: str) -> dict[str, list[Judgment]]:
    """The same verdicts from somebody else."""
    return {
        name: [msgspec.structs.replace(one, judge=judge) for one in made_]
        for name, made_ in said.items()
    }
