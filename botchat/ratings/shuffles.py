"""Random orders of play: the stream of each shuffle, and the end of an order drawn from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.verdicts import Indices

Draw: TypeAlias = Callable[[np.random.Generator], Indices]
"""Draws indices from a random stream, shape (length,)."""


def streams(seed: int, numbers: Sequence[int]) -> Iterator[np.random.Generator]:
    """The random stream of each shuffle; numbered through all runs.

    Each is ``PCG64DXSM(SeedSequence(seed, spawn_key=(number,)))``, made by one generator in a third
    of the time: use it before the next is asked for.
    """
    bits = np.random.PCG64DXSM(0)
    rng, state = np.random.Generator(bits), bits.state
    for word in _seed_words(seed, np.array(numbers, dtype=np.uint32)).T.tolist():
        begin, step = (word[i] << 64 | word[i + 1] for i in (0, 2))
        step = (step << 1 | 1) % 2**128
        state["state"] = {"state": ((begin + step) * _PCG + step) % 2**128, "inc": step}
        bits.state = state
        yield rng


_PCG = 0x2360ED051FC65DA44385DF649FCCF645
"""What numpy multiplies PCG64DXSM's first state by."""


def _seed_words(seed: int, numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """What ``SeedSequence(seed, spawn_key=(number,))`` gives: 4 words of each, shape (4, numbers).

    Its last step of mixing and its output as numpy has them (``bit_generator.pyx``), for all at
    once: what comes before is the same for all.
    """

    def hashed(value: npt.NDArray[np.uint32], start: int, factor: int, time: int) -> Any:
        constant = start * pow(factor, time, 2**32)
        value = (value ^ np.uint32(constant % 2**32)) * np.uint32(constant * factor % 2**32)
        return value ^ value >> np.uint32(16)

    before, mixed = 4 * max(4, -(-seed.bit_length() // 32)), []
    for i, part in enumerate(np.random.SeedSequence(seed).pool.tolist()):
        of_number = np.uint32(0x4973F715) * hashed(numbers, 0x43B0D7E5, 0x931E8875, before + i)
        value = np.full_like(numbers, 0xCA01F9DD * part % 2**32) - of_number
        mixed.append(value ^ value >> np.uint32(16))
    halves = [hashed(mixed[i % 4], 0x8B51F9DD, 0x58F38DED, i).astype(np.uint64) for i in range(8)]
    return np.array([halves[i] | halves[i + 1] << np.uint64(32) for i in range(0, 8, 2)])


def end_of_alike(by_pair: Indices, begin: Indices, length: int) -> Draw:
    """Draw the last ``length`` comparisons, the last one first, all pairs equally likely.

    ``by_pair``: comparisons sorted by pair; ``begin``: where each pair's begin, and their number.
    """
    begin, size = begin[:-1], np.diff(begin)

    def draw(rng: np.random.Generator) -> Indices:
        # One number gives pair and comparison, so that a stream gives the same end for any length.
        drawn = rng.random(length)[::-1] * len(begin)
        pair = drawn.astype(np.intp)  # np.divmod finds the same in five times the time
        return by_pair[begin[pair] + ((drawn - pair) * size[pair]).astype(np.intp)]

    return draw


def end_of_shuffle(n: int, length: int) -> Draw:
    """Draw the last ``length`` entries of a random order of 0..n-1.

    Draws with replacement, the last entry first, and skips what was drawn before, which is drawing
    without replacement and for a short end ten times cheaper than a whole order. Where more than
    half is wanted the rest is shuffled. A stream gives the end of the same order for any length.
    """
    drawn_length = min(length, n // 2)
    expected = -n * math.log1p(-drawn_length / n)
    size = int(expected + math.sqrt(expected)) + 1
    words = (size + 1) // 2
    times = np.arange(2 * words, dtype=np.int32)
    latest, left = np.empty(n, dtype=np.int32), np.empty(n, dtype=bool)
    product = np.empty(2 * words, dtype=np.uint64)
    # Half a word times n has a uniform number below n as its high half, but where the low half is
    # too low (Lemire 2019): so draws numpy.
    low, too_low, half = product.view(np.uint32)[::2], 2**32 % n, np.uint64(32)

    def integers(rng: np.random.Generator) -> Indices:
        return rng.integers(n, size=size, dtype=np.intp)[::-1]

    def first(rng: np.random.Generator) -> Indices:
        """What `integers` gives, and one more where ``size`` is odd, in half of the time."""
        if drawn_length < length:  # the rest is drawn from where `integers` stops
            return integers(rng)
        bits: Any = rng.bit_generator
        np.multiply(bits.random_raw(words).view(np.uint32)[::-1], np.uint64(n), out=product)
        if low.min() < too_low:
            bits.advance(-words)
            return integers(rng)
        return np.right_shift(product, half, out=product).view(np.intp)

    def draw(rng: np.random.Generator) -> Indices:
        drawn = first(rng)
        time = times[: len(drawn)]
        while True:
            latest[drawn] = time  # of one drawn twice numpy keeps the later, the first drawn
            kept: Indices = drawn[latest.take(drawn) == time]
            if len(kept) >= drawn_length:
                break
            drawn = np.concatenate([integers(rng), drawn])
            time = np.arange(len(drawn), dtype=np.int32)
        kept = kept[len(kept) - drawn_length :]
        if drawn_length < length:
            left[:] = True
            left[kept] = False
            (others,) = left.nonzero()
            rng.shuffle(others)
            kept = np.concatenate([others, kept])
        return kept[len(kept) - length :]

    return draw
