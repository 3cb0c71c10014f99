"""How often a model that remembers a part of a set is found, and one that does not is flagged.

    OPENBLAS_NUM_THREADS=1 python benchmarks/memory.py SEEDS.jsonl [GENERATIONS]

SEEDS: a file of a workspace, such as MuTual's 547 (318 have a third utterance). A made-up model
says on each seed what people say on another one (*another seed*), on the seed of the set whose
ChatSEED is nearest (*nearest*), or what they said there later, in their fifth or fourth utterance,
which is as near to the subject as can be (*later*); and on a part of the seeds the third itself,
with every word replaced or left out at a rate. GENERATIONS: a folder of models, one line each.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from botchat.languages import ENGLISH
from botchat.languages.text import known_words
from botchat.measures.memory import Opening, memory
from botchat.records import N_SEED, Dialogue, Seed
from botchat.workspace import files

RUNS = 200
WORLDS = ((0.0, 0.0), (0.02, 0.0), (0.02, 0.2), (0.05, 0.2))
"""(share remembered, share of its words that are wrong)."""
Words = Sequence[str]


def opening(utterances: Sequence[str]) -> Opening:
    """The words of the first three utterances."""
    split = known_words(ENGLISH).split
    return tuple(split(text.lower().replace("\u2019", "'")) for text in utterances[: N_SEED + 1])


def edited(words: Words, rate: float, rng: random.Random) -> list[str]:
    """Half of what is wrong is left out, half is another word."""
    drawn = [(word, rng.random()) for word in words]
    return [word if at >= rate else "other" for word, at in drawn if at >= rate / 2]


def sources(people: Mapping[str, Opening], seeds: Sequence[Seed]) -> dict[str, Callable]:
    """What a made-up model says on a seed, of which it remembers nothing."""
    ids = [*people]
    of = {seed.id: seed.utterances for seed in seeds}
    content = {i: {*people[i][0], *people[i][1]} for i in ids}
    near = {}
    for i in ids:
        like = {j: len(content[i] & content[j]) / len(content[i] | content[j]) for j in ids}
        # MuTual has some dialogues twice.
        near[i] = max((j for j in ids if like[j] < 0.8), key=like.__getitem__)
    split = known_words(ENGLISH).split

    def later(i: str, _: random.Random) -> Words:
        after = [split(text.lower()) for text in (of[i][4:5] or of[i][3:4])]
        return after[0] if after else people[near[i]][2]

    return {
        "another seed": lambda _, rng: people[rng.choice(ids)][2],
        "nearest": lambda i, _: people[near[i]][2],
        "later": later,
    }


def main(path: Path, generations: Path | None) -> None:
    """Prints a line a world, and one a model."""
    seeds = files.read(path, Seed)
    people = {seed.id: opening(seed.utterances) for seed in seeds if len(seed.utterances) > N_SEED}
    print(f"{len(people)} seeds with a third utterance, {RUNS} runs a world, flagged at .05")
    for name, says in sources(people, seeds).items():
        for share, wrong in WORLDS:
            flagged, found = 0, 0.0
            for run in range(RUNS):
                rng = random.Random(f"{name} {share} {wrong} {run}")
                # Another run, other seeds: later and nearest say the same each time.
                drawn = rng.sample([*people], len(people) * 9 // 10) if not share else [*people]
                said = {
                    i: (
                        *people[i][:2],
                        edited(people[i][2], wrong, rng) if rng.random() < share else says(i, rng),
                    )
                    for i in drawn
                }
                known = memory(said, people, ENGLISH)
                assert known is not None
                flagged += known.p <= 0.05
                found += known.share / RUNS
            print(
                f"{name:12} remembered {share:.2f} wrong words {wrong:.2f}: "
                f"flagged {flagged / RUNS:.3f}, share found {found:.4f}"
            )
    for model in sorted(generations.glob("*.jsonl")) if generations else ():
        said = {one.seed_id: opening(one.utterances) for one in files.read(model, Dialogue)}
        print(model.stem, memory(said, people, ENGLISH))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", type=Path, help="a file of a workspace, such as MuTual's")
    parser.add_argument("generations", type=Path, nargs="?", help="a folder of models")
    main(**vars(parser.parse_args()))
