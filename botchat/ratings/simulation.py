"""Simulation of an adaptive design on a board whose comparisons are all known.

The board's results answer for the judge, and its Bradley-Terry ratings are the truth: the numbers
say how well a part of this board represents the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from botchat.measures.statistics import kendall
from botchat.ratings.adaptive import AdaptiveDesign, AdaptiveSettings, State
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons, Floats, Indices


@dataclass(frozen=True, eq=False)
class Population:
    """Every comparison of a full board.

    ``result``: of model i shown before model j on each of s seeds, shape (m, m, s), or nan.
    ``dealt``: seed and order were not recorded; each run deals the results to them at random.
    """

    models: tuple[str, ...]
    result: Floats
    dealt: bool

    @classmethod
    def of(cls, comparisons: Comparisons) -> Population:
        """From comparisons, at most one a seed and order; `MissingError` if there is none."""
        comparisons.need_some()
        m, first, second = len(comparisons.models), comparisons.first, comparisons.second
        seed, result = comparisons.cluster, comparisons.result
        if seed is None:
            low, high, result = comparisons.oriented()
            pair = low * m + high
            order = np.argsort(pair, kind="stable")
            pair, result = pair[order], result[order]
            seed, swapped = np.divmod(np.arange(len(pair)) - np.searchsorted(pair, pair), 2)
            low, high = pair // m, pair % m
            first, second = np.where(swapped, high, low), np.where(swapped, low, high)
            result = np.where(swapped, 1 - result, result)
        cells = np.full((m, m, int(seed.max()) + 1), np.nan)
        cells[first, second, seed] = result
        return cls(comparisons.models, cells, comparisons.cluster is None)

    @property
    def comparisons(self) -> Comparisons:
        """All comparisons, with seeds."""
        first, second, seed = np.nonzero(~np.isnan(self.result))
        return Comparisons(self.models, first, second, self.result[first, second, seed], seed)

    @cached_property
    def truth(self) -> Floats:
        """The full board's Bradley-Terry ratings, shape (m,)."""
        return fit(self.comparisons).rating

    def seeds_of(self, i: int, j: int) -> Indices:
        """Seeds on which two models were compared in at least one order."""
        return np.flatnonzero(~np.isnan(self.result[i, j]) | ~np.isnan(self.result[j, i]))

    def deal(self, rng: np.random.Generator) -> Population:
        """The same comparisons; if ``dealt``, each pair's results dealt again."""
        if not self.dealt:
            return self
        low, high = np.triu_indices(len(self.models), 1)
        cells = np.concatenate([self.result[low, high], 1 - self.result[high, low]], axis=1)
        one, other = np.split(rng.permuted(cells, axis=1), 2, axis=1)
        result = self.result.copy()
        result[low, high], result[high, low] = one, 1 - other
        return replace(self, result=result)


def simulate(
    population: Population, settings: AdaptiveSettings, run: int, added: int | None = None
) -> State:
    """How run number ``run`` of a design ends; ``added``: a model to place on the others' board."""
    rng = np.random.default_rng([settings.seed, run])
    population = population.deal(rng)
    known = None
    if added is not None:
        board = population.result.copy()
        board[added] = board[:, added] = np.nan
        known = replace(population, result=board).comparisons
    settings = replace(settings, seed=int(rng.integers(1 << 32)))
    design = AdaptiveDesign(population.models, population.seeds_of, settings, known, added)
    while (asked := design.ask()) is not None:
        design.tell(population.result[asked.first, asked.second, asked.seed])
    return design.state


def swaps(ratings: Floats, truth: Floats, gap: float) -> Indices:
    """Pairs more than ``gap`` apart in truth, in another order in ratings (n, m); shape (n,)."""
    low, high = np.triu_indices(len(truth), 1)
    apart = truth[low] - truth[high]
    wrong = (ratings[:, low] - ratings[:, high]) * np.sign(apart) <= 0
    return np.asarray((wrong & (np.abs(apart) > gap)).sum(axis=1))


def order_kept(ratings: Floats, truth: Floats) -> Floats:
    """Kendall's tau-b of ratings (n, m) with the truth, shape (n,); 0 where all are equal."""
    return np.nan_to_num(kendall(ratings, np.broadcast_to(truth, ratings.shape)))
