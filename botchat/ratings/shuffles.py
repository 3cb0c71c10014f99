"""The end of a random order of comparisons, drawn without the rest of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from botchat.ratings.comparisons import Indices

Draw: TypeAlias = Callable[[np.random.Generator], Indices]
"""Draws indices from a random stream, shape (length,)."""


def stream(seed: int, number: int) -> np.random.Generator:
    """The random stream of one shuffle; shuffles are numbered through all runs."""
    child = np.random.SeedSequence(seed, spawn_key=(number,))
    return np.random.Generator(np.random.PCG64DXSM(child))


def end_of_resample(n: int, length: int) -> Draw:
    """Draw the last ``length`` of n indices drawn with replacement, the last one first."""
    return lambda rng: rng.integers(n, size=length, dtype=np.intp)[::-1]


def end_of_alike(by_pair: Indices, begin: Indices, length: int) -> Draw:
    """Draw the last ``length`` comparisons, the last one first, so that all pairs are as likely.

    ``by_pair``: comparisons, sorted by pair; ``begin``: where each pair's begin, and its length.
    """
    begin, size = begin[:-1], np.diff(begin)

    def draw(rng: np.random.Generator) -> Indices:
        # One number tells pair and comparison, so that a stream gives one end for any length.
        pair, within = np.divmod(rng.random(length)[::-1] * len(begin), 1)
        chosen = pair.astype(np.intp)
        place = begin[chosen] + (within * size[chosen]).astype(np.intp)
        return np.asarray(by_pair[place])

    return draw


def end_of_shuffle(n: int, length: int) -> Draw:
    """Draw the last ``length`` entries of a random order of 0..n-1.

    Draws with replacement, the last entry first, and skips what was drawn before: that is drawing
    without replacement, and for a short end ten times cheaper than a whole order. Where more than
    half is wanted the rest is shuffled. A stream gives the end of the same order for any length.
    """
    drawn_length = min(length, n // 2)
    expected = -n * math.log1p(-drawn_length / n)
    size = int(expected + math.sqrt(expected)) + 1
    times = np.arange(size, dtype=np.int32)
    latest = np.empty(n, dtype=np.int32)

    def draw(rng: np.random.Generator) -> Indices:
        drawn, time = rng.integers(n, size=size, dtype=np.intp)[::-1].copy(), times
        while True:
            latest[drawn] = time  # of one drawn twice numpy keeps the later, the first drawn
            kept: Indices = drawn[latest.take(drawn) == time]
            if len(kept) >= drawn_length:
                break
            drawn = np.concatenate([rng.integers(n, size=size, dtype=np.intp)[::-1], drawn])
            time = np.arange(len(drawn), dtype=np.int32)
        kept = kept[len(kept) - drawn_length :]
        if drawn_length < length:
            rest = np.delete(np.arange(n), kept)
            kept = np.concatenate([rng.permutation(rest), kept])
        return kept[len(kept) - length :]

    return draw
