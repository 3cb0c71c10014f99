"""A workspace's records made up from a few numbers: seeds, dialogues and judgments of any size.

Every model has a skill between 0 and 1 that decides how late it is accused and how often it wins,
so a test knows how the board must come out.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import msgspec

from botchat.boards.board import Board, JudgedSet, build_board
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogue, Judgment, Seed, Utterance, eligible_seeds

_TEXT = (
    "well the bus was late again so we walked along the river and bought some bread on the "
    "way did you see her new bike no I missed it what a pity maybe tomorrow after work then"
)
WORDS = _TEXT.split()

QUICK = EloSettings(shuffles=4, runs=2)


@dataclass(frozen=True)
class Records:
    """Everything `botchat.boards.board.build_board` takes."""

    seeds: list[Seed]
    dialogues: dict[str, dict[str, Dialogue]]
    judgments: dict[str, list[Judgment]]

    def board(self, elo: EloSettings = QUICK) -> Board:
        """The board of it all, by default with an Elo of few shuffles."""
        judged_set = JudgedSet("made-up", self.seeds, self.dialogues)
        return build_board(judged_set, "rules", self.judgments, elo)


def make_records(
    skills: Mapping[str, float],
    n_seeds: int = 20,
    *,
    turns: int = 16,
    arena: Sequence[int] = (8, 16),
    unreadable: float = 0.02,
    rng_seed: int = 0,
) -> Records:
    """Records of models with the given skills, and of ``human`` in UniEval.

    Args:
        skills: model -> skill, 0 to 1.
        n_seeds: size of the set; about half of it has 4 and more utterances.
        turns: utterances of a generated dialogue.
        arena: each N of the Arena.
        unreadable: share of verdicts that are ``None``.
        rng_seed: of the random numbers.
    """
    rng = random.Random(rng_seed)
    seeds = [
        Seed(f"S-{i}", tuple(_text(rng, 12) for _ in range(rng.choice([2, 2, 3, 4, 6, 9, 12]))))
        for i in range(1, n_seeds + 1)
    ]
    dialogues = {HUMAN: {seed.id: _dialogue(HUMAN, seed.id, seed.utterances) for seed in seeds}}
    for model, skill in skills.items():
        dialogues[model] = {
            seed.id: _dialogue(
                model,
                seed.id,
                (
                    *seed.utterances[:2],
                    *(_text(rng, 8 + int(60 * (1 - skill) ** 2)) for _ in range(turns - 2)),
                ),
            )
            for seed in seeds
        }
    judgments: dict[str, list[Judgment]] = {"unieval": [], "gteval": []}

    def say(protocol: str, seed: Seed, order: tuple[str, ...], verdict: str, n: int) -> None:
        readable = rng.random() >= unreadable
        judgments.setdefault(protocol, []).append(
            judgment(protocol, seed.id, order, verdict if readable else None, n)
        )

    for model, by_seed in dialogues.items():
        hazard = 0.005 if model == HUMAN else 0.25 * (1 - skills[model]) + 0.01
        for seed in seeds:
            n = len(by_seed[seed.id].utterances)
            index = next((i for i in range(3, n + 1) if rng.random() < hazard), None)
            say("unieval", seed, (model,), "No" if index is None else str(index), n)
    for seed in eligible_seeds(seeds):
        for a, b in combinations(sorted(skills), 2):
            for n in arena:
                for order in ((a, b), (b, a)):
                    verdict = _pairwise(rng, skills[order[0]] - skills[order[1]])
                    say(f"arena-n{n}", seed, order, verdict, n)
        for model in skills:
            for order in ((model, HUMAN), (HUMAN, model)):
                edge = skills[model] - 0.9
                verdict = _pairwise(rng, edge if order[0] == model else -edge)
                say("gteval", seed, order, verdict, len(seed.utterances))
    return Records(seeds, dialogues, judgments)


def consistent(records: Records) -> Records:
    """The same by a judge whose verdict on two dialogues does not depend on their order."""
    judged = dict(records.judgments)
    for protocol in {*judged} - {"unieval"}:
        first = {(j.seed_id, *sorted(j.contestants)): j for j in reversed(judged[protocol])}
        judged[protocol] = []
        for j in first.values():
            mirrored = {"1": "2", "2": "1"}.get(j.verdict or "", j.verdict)
            swapped = msgspec.structs.replace(j, contestants=j.contestants[::-1], verdict=mirrored)
            judged[protocol] += [j, swapped]
    return replace(records, judgments=judged)


def judgment(
    protocol: str, seed_id: str, contestants: tuple[str, ...], verdict: str | None, end: int = 16
) -> Judgment:
    """One judgment of the judge ``rules``, on utterances up to ``end``."""
    n = f"|n:{end}" if protocol.startswith("arena") else ""
    return Judgment(
        protocol=protocol,
        seed_id=seed_id,
        contestants=contestants,
        judge="rules",
        verdict=verdict,
        reason="it says the same thing twice" if verdict else "",
        shown=end,
        case="0" * 16,
        signature=(
            f"botchat:0.1.0|{protocol.split('-')[0]}|set:made-up{n}|judge:rules"
            f"|prompt:3f9a01bc|orders:{len(contestants)}"
        ),
    )


def _pairwise(rng: random.Random, edge: float) -> str:
    """A verdict that the first contestant wins the more often, the greater its edge (-1 to 1)."""
    if rng.random() < 0.3:
        return rng.choice(["both", "neither"])
    return "2" if rng.random() < 0.5 + 0.49 * edge else "1"


def _text(rng: random.Random, n_words: int) -> str:
    words = rng.choices(WORDS, k=max(1, int(rng.lognormvariate(0, 0.5) * n_words)))
    return f"{' '.join(words).capitalize()}{rng.choice('.?!')}"


def _dialogue(model: str, seed_id: str, utterances: tuple[str, ...]) -> Dialogue:
    facts = () if model == HUMAN else tuple(Utterance() for _ in utterances[2:])
    return Dialogue(
        seed_id=seed_id,
        model=model,
        utterances=utterances,
        n_seed=2,
        facts=facts,
        status="complete",
        signature="",
    )
