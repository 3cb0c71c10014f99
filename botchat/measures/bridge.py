"""A bridge from one judge to another: the new judge's means from the old one's and a drawn slice.

The old judge has judged all cases, the new one a slice of them. Each contestant's mean by the new
judge is that of prediction-powered inference (`botchat.measures.prediction_powered`). Places need
how the errors of contestants go together: every seed moves the means of all contestants that have
cases on it, so its moves, multiplied and summed, are the covariance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass

import numpy as np

from botchat.interfaces import settings_digest
from botchat.measures import prediction_powered, shares
from botchat.measures.prediction_powered import Corrected
from botchat.measures.shares import Shares
from botchat.measures.statistics import LEVEL, Floats, Indices, student_t


@dataclass(frozen=True, eq=False)
class Bridged:
    """Means, 0 to 1, of m contestants."""

    old: Shares
    """By the old judge, of all its cases."""
    old_covariance: Floats
    """Shape (m, m)."""
    old_freedom: int
    new: Sequence[Corrected]
    """By the new judge, as it would judge all of them."""
    new_covariance: Floats
    new_freedom: int
    """Seeds of the slice less 1, of the contestant with the fewest."""
    alone: Shares
    """By the new judge, of the slice alone."""


def bridge(row: Indices, seed: Indices, old: Floats, new: Floats, stratum: Indices) -> Bridged:
    """Of cases, all arrays of shape (cases,); every contestant has some in the slice.

    ``row``: the contestant, from 0. ``old``, ``new``: values from 0 to 1, ``new`` nan outside the
    slice. ``stratum``: cases of which the slice was drawn alike; what it holds of a stratum stands
    for all of it.
    """
    m, n_seeds, drawn = int(row.max()) + 1, int(seed.max()) + 1, ~np.isnan(new)
    of_stratum = np.bincount(stratum[drawn], minlength=int(stratum.max()) + 1)
    # Of a stratum without a case in the slice, nothing is weighed.
    chance = (np.maximum(of_stratum, 1) / np.bincount(stratum))[stratum]
    by_old = shares.by_seed(row, seed, old, m)
    weights = 1 / chance[drawn]
    alone = shares.by_seed(row[drawn], seed[drawn], new[drawn], m, weights)
    moved_old, moved_new = np.zeros((2, n_seeds, m))
    found, fewest = [], n_seeds
    for i in range(m):
        own = row == i
        made = prediction_powered.mean(old[own], new[own], seed[own], chance=chance[own])
        found.append(made)
        centred = (old[own] - by_old.value[i]) / own.sum()
        np.add.at(moved_old[:, i], seed[own], centred)
        there = own & drawn
        weight = 1 / chance[there]
        apart = new[there] - made.power * old[there]
        np.add.at(moved_new[:, i], seed[own], made.power * centred)
        differs = weight * (apart - np.average(apart, weights=weight)) / weight.sum()
        np.add.at(moved_new[:, i], seed[there], differs)
        fewest = min(fewest, len(np.unique(seed[there])))
    freedoms = max(n_seeds - 1, 1), max(fewest - 1, 1)
    widths = by_old.high - by_old.low, np.array([one.high - one.low for one in found])
    both = zip((moved_old, moved_new), widths, freedoms, strict=True)
    of_old, of_new = (_covariance(*each) for each in both)
    return Bridged(by_old, of_old, freedoms[0], found, of_new, freedoms[1], alone)


def _covariance(moved: Floats, width: Floats, freedom: int) -> Floats:
    """Of means that each seed moves so, (seeds, m); none varies less than its interval says."""
    found = moved.T @ moved * (len(moved) / max(len(moved) - 1, 1))
    least = (width / 2 / student_t(LEVEL, freedom)) ** 2
    return np.asarray(found + np.diag(np.maximum(least - np.diag(found), 0)))


def draw(strata: Sequence[Hashable], cases: Sequence[str], n: int, rng_seed: int) -> list[int]:
    """Numbers of ``n`` cases, as many of each stratum as of any other while it has some.

    At random and always the same: a stratum's cases are in the order of a digest. ``cases``: their
    digests; ``strata``: what each belongs to.
    """
    dealt: Counter[Hashable] = Counter()
    rounds: list[tuple[int, int, int]] = []
    for i in _in_order(cases, rng_seed):
        rounds.append((dealt[strata[i]], len(rounds), i))
        dealt[strata[i]] += 1
    return sorted(i for _, _, i in sorted(rounds)[:n])


def is_draw(
    strata: Sequence[Hashable], cases: Sequence[str], chosen: Set[str], rng_seed: int
) -> bool:
    """Whether what was chosen of each stratum are the first that `draw` gives of it."""
    ended = set()
    for i in _in_order(cases, rng_seed):
        if cases[i] not in chosen:
            ended.add(strata[i])
        elif strata[i] in ended:
            return False
    return True


def _in_order(cases: Sequence[str], rng_seed: int) -> list[int]:
    """Numbers of the cases as they are drawn."""
    return sorted(range(len(cases)), key=lambda i: settings_digest("bridge", rng_seed, cases[i]))
