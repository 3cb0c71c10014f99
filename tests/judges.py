"""Judges whose quality is known, and a set of dialogues for them.

Every dialogue is less human than a human one by a known amount, a floor bot's most; the ideal judge
sees that amount with a little noise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from botchat.boards.board import Board, JudgedSet, build_board
from botchat.boards.skill import JudgeTest
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.controls import shuffled_dialogues
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, SHUFFLED, Dialogue, Judgment, Seed
from tests.boards import QUICK, judgment, make_records

PROTOCOLS = (UNIEVAL, ARENA.at(16), GTEVAL)

Judge = Callable[[Protocol, Sequence[Dialogue]], str | None]
"""The verdict on the dialogues shown, in this order."""


@dataclass(frozen=True)
class World:
    """Seeds, everybody's dialogues, and by how much each is less human than a human one."""

    seeds: list[Seed]
    dialogues: dict[str, dict[str, Dialogue]]
    gap: dict[tuple[str, str], float]

    @classmethod
    def of(cls, n_seeds: int, quality: Mapping[str, float], seed: int = 0) -> World:
        """``n_seeds`` of 4 and more utterances; ``quality`` of each contestant, 0 to 1.

        Made once for all; to change it, copy it.
        """
        return cls._of(n_seeds, tuple(quality.items()), seed)

    @classmethod
    @cache
    def _of(cls, n_seeds: int, qualities: tuple[tuple[str, float], ...], seed: int) -> World:
        rng, quality = random.Random(seed), dict(qualities)
        records = make_records(quality, 3 * n_seeds, arena=(), rng_seed=seed)
        seeds = [s for s in records.seeds if len(s.utterances) >= 4][:n_seeds]
        assert len(seeds) == n_seeds
        gap = {
            (name, s.id): rng.gauss(1 - worth, 0.1)
            for name, worth in {**quality, HUMAN: 1.0, SHUFFLED: 0.3}.items()
            for s in seeds
        }
        dialogues = {
            name: {s.id: by_seed[s.id] for s in seeds}
            for name, by_seed in records.dialogues.items()
        }
        dialogues[SHUFFLED] = shuffled_dialogues(seeds, n_seeds)
        return cls(seeds, dialogues, gap)

    def judgments(
        self, judge: Judge, protocols: Sequence[Protocol] = PROTOCOLS
    ) -> dict[str, list[Judgment]]:
        """The judge's verdicts on everything, by protocol."""
        names = sorted(set(self.dialogues) - {HUMAN, SHUFFLED})
        judgments: dict[str, list[Judgment]] = {}
        for protocol in protocols:
            groups: list[tuple[str, ...]] = [(name,) for name in (*names, HUMAN, SHUFFLED)]
            if protocol.is_pair:
                groups = [*combinations(names, 2), (SHUFFLED, HUMAN)]
            elif protocol.against_human:
                groups = [(name, HUMAN) for name in (*names, SHUFFLED)]
            orders = [order for group in groups for order in dict.fromkeys((group, group[::-1]))]
            judgments[protocol.name] = []
            for seed in self.seeds:
                for order in orders:
                    if any(seed.id not in self.dialogues[name] for name in order):
                        continue  # a small set has few shuffled dialogues
                    dialogues = [self.dialogues[name][seed.id] for name in order]
                    n = min(len(dialogue.utterances) for dialogue in dialogues)
                    verdict = judge(protocol, dialogues)
                    judgments[protocol.name].append(
                        judgment(protocol.name, seed.id, order, verdict, n)
                    )
        return judgments

    def board(
        self, judge: Judge, protocols: Sequence[Protocol] = PROTOCOLS, name: str = "j"
    ) -> Board:
        """The board of a judge's verdicts."""
        return self.board_of(self.judgments(judge, protocols), name)

    def board_of(self, judgments: Mapping[str, Sequence[Judgment]], name: str = "j") -> Board:
        """The board of some judgments."""
        models = {key: by_seed for key, by_seed in self.dialogues.items() if key != SHUFFLED}
        test = JudgeTest({}, list(self.dialogues[SHUFFLED]), 40, len(self.seeds))
        judged_set = JudgedSet("made-up", self.seeds, models, test=test)
        return build_board(judged_set, name, judgments, QUICK)

    def ideal(self, noise: float = 0.05, seed: int = 1) -> Judge:
        """Calls models AI, and of two dialogues the less human one; rarely wrong."""
        rng = random.Random(seed)

        def judge(protocol: Protocol, dialogues: Sequence[Dialogue]) -> str:
            gaps = [self.gap[d.contestant, d.seed_id] + rng.gauss(0, noise) for d in dialogues]
            if protocol.kind == "place":
                return str(3 + rng.randrange(2)) if gaps[0] > 0.3 else "No"
            lead = gaps[0] - gaps[1]
            if abs(lead) < 0.05:
                return "both" if gaps[0] > 0.3 else "neither"
            return "1" if lead > 0 else "2"

        return judge

    def noisy(self, share: float, seed: int = 2) -> Judge:
        """The ideal judge, which throws a coin for a share of its verdicts."""
        rng, ideal, guess = random.Random(seed), self.ideal(seed=seed), coin(seed + 100)
        return lambda *case: guess(*case) if rng.random() < share else ideal(*case)


def coin(seed: int = 3) -> Judge:
    """Guesses."""
    rng = random.Random(seed)
    return lambda protocol, _: rng.choice(
        ["No", "3"] if protocol.kind == "place" else ["1", "2", "both", "neither"]
    )


def always(alone: str, pair: str) -> Judge:
    """The same verdict on one dialogue, and on a pair, whatever they are."""
    return lambda protocol, _: alone if protocol.kind == "place" else pair


USELESS: Mapping[str, Judge] = {
    "never accuses": always("No", "neither"),
    "always accuses": always("3", "both"),
    "coin": coin(),
    "always first": always("3", "1"),
    "always second": always("No", "2"),
    "always tie": always("No", "both"),
}
