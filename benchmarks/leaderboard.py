"""Makes up a workspace of a million judgment records, which `commands.py` times.

    python benchmarks/leaderboard.py DIR [--models 47] [--seeds 547]

Dialogues of some models, and one judge's judgments in all protocols of the paper (UniEval, Arena at
N = 8 and 16, GTEval), as the pipeline writes them. 47 models on 547 seeds are 1,007,000 records.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import msgspec

from botchat.interfaces import ShownDialogue, case_digest
from botchat.records import HUMAN, Dialogue, Judgment, Seed, Utterance, slug

JUDGE = "openai:a-judge"
SPOKEN = (
    "i you the a to of and in it is that was for on we they he she my your this what so do "
    "have be with at not no yes but can will just think know go went like really time today "
    "work home dinner train station weather rain garden dog cat sister brother teacher exam "
    "ticket bridge coffee kitchen window letter phone market apple bread cheese river "
    "holiday beach mountain doctor hospital music guitar concert film cinema bicycle car "
    "driver morning evening weekend remember forget already perhaps tomorrow yesterday "
    "thanks welcome sure great nice sorry"
)
WORDS = SPOKEN.split()
SHARES = [1 / (rank + 3) for rank in range(len(WORDS))]


def talk(rng: random.Random) -> str:
    """One utterance of about 16 made-up words."""
    words = rng.choices(WORDS, SHARES, k=max(2, int(rng.lognormvariate(2.6, 0.5))))
    return f"{' '.join(words).capitalize()}{rng.choice('..?!')}"


def write(path: Path, records) -> int:
    """Write a stage file; how many records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encode, count = msgspec.json.Encoder().encode, 0
    with path.open("wb") as file:
        for record in records:
            file.write(encode(record) + b"\n")
            count += 1
    return count


def make(
    folder: Path,
    n_models: int,
    n_seeds: int,
    judges: Sequence[str] = (JUDGE,),
) -> int:
    """Make the workspace; how many judgment records it holds."""
    rng = random.Random(0)
    # Of MuTual's 547 dialogues 222 have 4 utterances or more, so that they compete.
    seeds = [
        Seed(f"S-{i}", tuple(talk(rng) for _ in range(rng.randint(4, 12) if i % 547 < 222 else 3)))
        for i in range(n_seeds)
    ]
    write(folder / "seeds" / "big.jsonl", seeds)
    call = (f"{n:064x}" for n in range(10**9))
    dialogues: dict[str, dict[str, Dialogue]] = {HUMAN: {}}
    for seed in seeds:
        dialogues[HUMAN][seed.id] = Dialogue(seed.id, HUMAN, seed.utterances, 2, (), "complete", "")
    for n in range(n_models):
        name = f"openai:a-model-{n:02}"
        dialogues[name] = {
            seed.id: Dialogue(
                seed.id,
                name,
                (*seed.utterances[:2], *(talk(rng) for _ in range(14))),
                2,
                tuple(Utterance("ok", 0, 20, next(call)) for _ in range(14)),
                "complete",
                "botchat:0.1.0|generate|set:big",
            )
            for seed in seeds
        }
        write(folder / "generations" / "big" / f"{slug(name)}.jsonl", dialogues[name].values())
    models = list(dialogues)[1:]
    skill = {model: 0.9 - 0.8 * n / n_models for n, model in enumerate([HUMAN, *models])}

    @cache
    def seen(model: str, seed_id: str, n: int | None) -> ShownDialogue:
        return ShownDialogue.of(dialogues[model][seed_id], n)

    def judged(judge: str, protocol: str, shown: tuple[Dialogue, ...], n: int | None) -> Judgment:
        edge = 0.5 + 0.4 * (skill[shown[0].model] - skill[shown[-1].model])
        drawn = rng.random()
        if protocol == "unieval":
            length = len(shown[0].utterances)
            verdict = "No" if drawn < skill[shown[0].model] else str(rng.randint(3, length))
        else:
            verdict = "both" if drawn < 0.2 else "2" if rng.random() < edge else "1"
        return Judgment(
            protocol=protocol,
            seed_id=shown[0].seed_id,
            contestants=tuple(dialogue.model for dialogue in shown),
            judge=judge,
            verdict=None if drawn > 0.99 else verdict,
            reason=f"{talk(rng)} {talk(rng)}",
            shown=n or len(shown[0].utterances),
            case=case_digest(protocol, *(seen(one.model, one.seed_id, n) for one in shown)),
            signature=f"botchat:0.1.0|{protocol.split('-')[0]}|set:big|judge:{judge}@0a1b2c3d"
            "|prompt:3f9a01bc|orders:2",
            calls=(next(call),),
        )

    def pairwise(judge: str, protocol: str, pairs, n: int | None):
        for seed in (seed for seed in seeds if len(seed.utterances) >= 4):
            for a, b in pairs:
                one, two = dialogues[a][seed.id], dialogues[b][seed.id]
                for shown in ((one, two), (two, one)):
                    yield judged(judge, protocol, shown, n or len(seed.utterances))

    n_made = 0
    for judge in judges:
        everyone = (d for by_seed in dialogues.values() for d in by_seed.values())
        made = {
            "unieval": (judged(judge, "unieval", (dialogue,), None) for dialogue in everyone),
            "gteval": pairwise(judge, "gteval", [(model, HUMAN) for model in models], None),
            **{
                f"arena-n{n}": pairwise(judge, f"arena-n{n}", list(combinations(models, 2)), n)
                for n in (8, 16)
            },
        }
        for protocol, judgments in made.items():
            path = folder / "judgments" / "big" / protocol / f"{slug(judge)}.jsonl"
            n_made += write(path, judgments)
    return n_made


def main() -> None:
    """Make it; say how much it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path)
    parser.add_argument("--models", type=int, default=47)
    parser.add_argument("--seeds", type=int, default=547)
    arguments = parser.parse_args()
    print(f"{make(arguments.dir, arguments.models, arguments.seeds):,} records")


if __name__ == "__main__":
    main()
