"""Families of `coverage.py`: what changed between two boards of the same ChatSEEDs (`compare`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from botchat.measures.changes import Change, Estimate, correlation, holm
from botchat.measures.intervals import of_shares
from botchat.ratings.bradley_terry import fit, influence
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import Floats

if TYPE_CHECKING:
    from coverage import Measured

ALPHA = 0.05


def outcomes(
    rng: np.random.Generator, before: float, after: float, alike: float, copied: float, n: int
) -> tuple[Floats, Floats]:
    """Results of a model on the same seeds twice, shape (n,); seeds are hard for both alike.

    ``alike``: correlation of two dialogues of a seed. ``copied``: share of dialogues that are the
    same in both, of equal rates only.
    """
    hard = rng.normal(size=n) * math.sqrt(alike)
    of_own = math.sqrt(1 - alike)
    limits = [_normal_quantile(rate) for rate in (before, after)]
    one, other = (hard + of_own * rng.normal(size=n) < limit for limit in limits)
    if copied:
        other = np.where(rng.random(n) < copied, one, other)
    return one.astype(np.float64), other.astype(np.float64)


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def share(results: Floats) -> Estimate:
    """A share of independent dialogues, with its interval."""
    low, high = of_shares(np.array([results.mean()]), np.array([1 / len(results)]))
    return Estimate(float(results.mean()), float(low[0]), float(high[0]))


def changes() -> Iterator[Measured]:
    """`compare`: change of a rate, paired by seed; beside it as if boards were strangers."""
    from coverage import covered

    worlds = ((0.5, 0.5), (0.5, 0.4), (0.9, 0.9), (0.95, 0.8), (0.3, 0.45))
    for n, (before, after), (alike, copied) in product(
        (20, 80, 300), worlds, ((0.0, 0.0), (0.4, 0.0), (0.8, 0.0), (0.4, 0.8))
    ):
        if copied and before != after:
            continue
        rng = np.random.default_rng([n, round(100 * before), round(100 * after), int(10 * alike)])
        paired, strangers = [], []
        for _ in range(600):
            one, other = outcomes(rng, before, after, alike, copied, n)
            for found, r in ((paired, correlation(one, other)), (strangers, 0.0)):
                change = Change(share(one), share(other), r)
                found.append((after - before, change.low, change.high))
        world = f"{before:.2f} to {after:.2f}, alike {alike:.1f}, copied {copied:.1f}"
        # Of few seeds no interval of few values holds everywhere.
        stated = 0.93 if n == 20 else 0.95
        yield covered("rate, change by seed", world, n, iter(paired), stated)
        yield covered("  as of strangers", world, n, iter(strangers), 0)


def false_alarms() -> Iterator[Measured]:
    """`compare --gate`: five models that did not change; how often none is blamed."""
    from coverage import Measured

    rates = (0.15, 0.3, 0.5, 0.7, 0.9)
    for n, (alike, copied) in product((20, 80, 300), ((0.0, 0.0), (0.4, 0.0), (0.4, 0.8))):
        rng = np.random.default_rng([n, int(10 * alike), int(10 * copied)])
        quiet, runs = 0, 600
        for _ in range(runs):
            p = []
            for rate in rates:
                one, other = outcomes(rng, rate, rate, alike, copied, n)
                p.append(Change(share(one), share(other), correlation(one, other)).fell)
            quiet += min(holm(p)) > ALPHA
        world = f"5 models, alike {alike:.1f}, copied {copied:.1f}"
        yield Measured("gate, no false alarm", world, n, 1 - ALPHA, quiet, runs, math.nan)


def rating_changes() -> Iterator[Measured]:
    """`compare`: Bradley-Terry of models on the same seeds, judged twice."""
    from coverage import Measured, covered

    skill = np.array([-0.8, -0.3, 0.0, 0.4, 0.7])
    pairs = np.array([p for a, b in combinations(range(5), 2) for p in ((a, b), (b, a))])
    for n, alike in product((30, 100), (0.0, 1.0)):
        rng = np.random.default_rng([n, int(alike)])
        first, second = (np.tile(side, n) for side in pairs.T)
        seed = np.repeat(np.arange(n), len(pairs))
        ends, quiet, runs = [], 0, 150
        for _ in range(runs):
            # A model may be good at a seed; that stays.
            good = skill + alike * rng.normal(size=(n, 5))
            made = [
                _rated(rng, good[seed, first] - good[seed, second], first, second, seed)
                for _ in range(2)
            ]
            found = [
                Change(before, after, correlation(*(moves[:, i] for _, moves in made)))
                for i, (before, after) in enumerate(zip(*(one for one, _ in made), strict=True))
            ]
            ends.append((0.0, found[3].low, found[3].high))
            quiet += min(holm([one.fell for one in found])) > ALPHA
        world = f"5 models, a seed's own strength {alike:.1f}"
        yield covered("rating, change by seed", world, n, iter(ends), 0.95)
        yield Measured("gate, no false alarm", world, n, 1 - ALPHA, quiet, runs, math.nan)


def _rated(
    rng: np.random.Generator, lead: Floats, first: Floats, second: Floats, seed: Floats
) -> tuple[list[Estimate], Floats]:
    won = rng.random(len(first)) < 1 / (1 + np.exp(-lead))
    made = Comparisons(tuple("abcde"), first, second, won.astype(float), seed)
    fitted = fit(made)
    told = zip(fitted.rating, fitted.low, fitted.high, strict=True)
    return [Estimate(*map(float, one)) for one in told], influence(made, fitted)[1]


FAMILIES: list[Callable[[], Iterator[Measured]]] = [changes, false_alarms, rating_changes]
