"""Does a model know the set? Whether it goes on with the very words that people went on with.

A seed *looks remembered* if at least half of the human third utterance, and `LEAST_WORDS` of it,
stand in runs of `RUN` words that the model's first utterance has too and the ChatSEED has not. How
often that is so is compared with seeds that are permuted, and since anybody meets another's words
more often on the same subject, one seed in `BY_CHANCE` is allowed for besides, which is more than
people's own later utterances show (benchmarks/memory.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from botchat.languages import Language
from botchat.records import natural_key
from botchat.verdicts import Indices

RUN, LEAST_WORDS = 3, 5
"""Of words; of characters twice as many."""

BY_CHANCE = 400
"""Seeds of which one is met by chance on its own subject."""

PERMUTATIONS = 999

Opening = tuple[Sequence[str], ...]
"""Words of a dialogue's ChatSEED and of the utterance after it, each by itself."""


class Memory(NamedTuple):
    """What a contestant looks to know of a set."""

    n: int
    """Seeds whose human third utterance is long enough to be known again."""
    seeds: tuple[str, ...]
    """Those that look remembered."""
    share: float
    """Of ``n``, less what is met by permutation."""
    p: float


def memory(
    said: Mapping[str, Opening], people: Mapping[str, Opening], language: Language
) -> Memory | None:
    """What is remembered, from both sides' openings by seed; ``None``: there is nothing to know."""
    size = 1 if language.pack.units == "words" else 2
    run, least = RUN * size, LEAST_WORDS * size
    ids = [i for i in sorted(said, key=natural_key) if i in people and said[i][:2] == people[i][:2]]
    ids = [i for i in ids if len(people[i][-1]) >= least]
    if len(ids) < 2:
        return None
    where: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for j, seed in enumerate(ids):
        for at, words in _runs(people[seed], run):
            where[words].append((j, at))
    rows, columns = [], []
    for i, seed in enumerate(ids):
        shared: dict[int, set[int]] = defaultdict(set)
        for words in {words for _, words in _runs(said[seed], run)}:
            for j, at in where.get(words, ()):
                shared[j].update(range(at, at + run))
        for j, places in shared.items():
            if len(places) >= max(least, len(people[ids[j]][-1]) / 2):
                rows.append(i)
                columns.append(j)
    own = [i for i, j in zip(rows, columns, strict=True) if i == j]
    met = (_permuted(len(ids))[:, rows] == np.array(columns, np.intp)).sum(1)
    tails = [_at_least(len(own) - k, len(ids) / BY_CHANCE) for k in range(len(own) + 1)]
    p = (1 + sum(tails[min(k, len(own))] for k in met.tolist())) / (1 + PERMUTATIONS)
    share = max(0.0, len(own) - float(met.mean())) / len(ids)
    return Memory(len(ids), tuple(ids[i] for i in own), share, p)


@lru_cache(maxsize=1)  # contestants have the same seeds
def _permuted(n: int) -> Indices:
    """Numbers below n, permuted; shape (`PERMUTATIONS`, n)."""
    every = np.tile(np.arange(n), (PERMUTATIONS, 1))
    return np.random.default_rng(0).permuted(every, axis=1)


def _runs(opening: Opening, n: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(place, words) of the runs of n words of its last utterance that no other of it has."""
    *before, last = opening
    known = {tuple(words[at : at + n]) for words in before for at in range(len(words) - n + 1)}
    for at in range(len(last) - n + 1):
        if (words := tuple(last[at : at + n])) not in known:
            yield at, words


def _at_least(k: int, mean: float) -> float:
    """Chance of k or more by Poisson's distribution."""
    below = (math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(k))
    return max(0.0, 1 - math.fsum(below))
