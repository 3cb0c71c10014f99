"""The adaptive Arena: which comparisons to make next, and when to stop.

Every pair of models gets a few comparisons, then those that say most about probably wrong orders
get more, until draws from the posterior of the full board's ratings (`botchat.ratings.full_board`)
hold the `Target`. What is asked depends on models, seeds, settings and the results told only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from botchat.errors import ConfigError
from botchat.ratings import full_board
from botchat.ratings.bradley_terry import has_maximum, sums
from botchat.ratings.comparisons import Comparisons, check
from botchat.verdicts import Floats, Indices

ELO = 400 / math.log(10)
"""Rating points in one logit."""

_ENOUGH_FOR_A_START = 30
"""Comparisons for each model; each counts for two models."""
_LEAST_BATCH, _BATCHES = 50, 80
_LOOKS = 2
"""Batches in a row at whose end the target must hold; one of many could be luck."""
_MARGIN = 0.85
"""Share of the allowed doubt that draws may have: a posterior is right on average over boards, and
boards whose pairs lie just beyond the gap are harder."""
_SLACK = 1e-9
"""Of a comparison of two probabilities."""
_SURE = 5.0
"""Standard errors beyond which no draw has a pair in the wrong order."""
_FAR = 400.0
"""Elo; at this distance one model scores 1 of 11."""
_BLOCK, _MOST_DRAWN, _LEAST_DRAWS = 1 << 16, 1 << 25, 200
"""Differences of drawn strengths that fit into a cache, and in all draws; draws at least."""


@dataclass(frozen=True)
class Target:
    """At most ``swaps`` pairs more than ``gap`` Elo apart in the wrong order, at ``confidence``."""

    gap: float = 10.0
    swaps: int = 2
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check ranges."""
        confidence = self.confidence
        check(
            ("gap", self.gap, 0 <= self.gap < math.inf, "Elo points, 0 or more"),
            ("swaps", self.swaps, self.swaps >= 0, "0 or more pairs"),
            ("confidence", confidence, 0 < confidence < 1, "a number between 0 and 1"),
        )


@dataclass(frozen=True)
class AdaptiveSettings:
    """How comparisons are chosen; `ConfigError` for values out of range.

    ``target``: when to stop; None: when the ``budget`` is used, which counts earlier runs too.
    ``design``: ``uniform`` asks pairs in turn. ``first``: comparisons of each pair at the start, at
    most 60 a model. ``batch``: comparisons asked at once; None: 1/80 of those made, at least 50.
    ``uniform``: share of the later ones that go to pairs in turn. ``audits``: share that shows a
    seed in its other order. ``draws``: from the posterior.
    """

    target: Target | None = Target()
    budget: int | None = None
    design: Literal["adaptive", "uniform"] = "adaptive"
    seed: int = 0
    first: int = 4
    batch: int | None = None
    uniform: float = 0.1
    audits: float = 0.1
    draws: int = 2000

    def __post_init__(self) -> None:
        """Check ranges."""
        if self.target is None and self.budget is None:
            raise ConfigError("nothing says when to stop: give a target or a budget")
        least = {"budget": 1, "seed": 0, "first": 1, "batch": 1, "draws": 100}
        for name, value in vars(self).items():
            if name in least:
                right = value is None or value >= least[name]
                check((name, value, right, f"at least {least[name]}"))
            elif name in ("uniform", "audits"):
                check((name, value, 0 <= value <= 1, "a share from 0 to 1"))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Comparisons to make: ``first`` is shown before ``second`` on ``seed``; shape (n,) each."""

    first: Indices
    second: Indices
    seed: Indices

    def __len__(self) -> int:
        """Number of comparisons."""
        return len(self.first)


@dataclass(frozen=True, eq=False)
class BoardSoFar:
    """What is known so far.

    ``made``: comparisons, unreadable ones too, of ``population`` on the full board. ``rating``,
    ``error``: estimated Elo (mean 1000) and its standard error, shape (m,). ``swaps``: upper bound,
    at the wanted confidence, of pairs in the wrong order. ``probability``: that the target holds.
    ``finished``, ``warning``: why it stopped, what the ratings cannot tell; one line or "".
    """

    made: int
    population: int
    rating: Floats
    error: Floats
    swaps: int
    probability: float
    finished: str
    warning: str


class AdaptiveDesign:
    """Call `ask`, make the comparisons and call `tell`, until `ask` returns None."""

    def __init__(
        self,
        models: Sequence[str],
        seeds_of: Callable[[int, int], Indices],
        settings: AdaptiveSettings,
        known: Comparisons | None = None,
        added: int | None = None,
    ) -> None:
        """Nothing asked yet.

        ``seeds_of``: (i, j) with i < j -> numbers of the seeds that the two models share.
        ``added``: index of a model to add to a board: only pairs with it are asked and counted.
        ``known``: comparisons of the others, then; their ``cluster`` numbers the seeds.
        Raises `ConfigError` for fewer than two models, or models that no seeds connect.
        """
        m = len(models)
        if m < 2:
            raise ConfigError(f"{m} models to compare: give at least two")
        self.models = tuple(models)
        if known is not None:
            fits = known.models == self.models and known.cluster is not None and added is not None
            if not fits or bool(((known.first == added) | (known.second == added)).any()):
                raise ValueError(
                    "known comparisons need seeds, these models, and none of the one added"
                )
        self._seeds_of, self._settings, self._added = seeds_of, settings, added
        low, high = np.triu_indices(m, 1)
        sizes = (len(seeds_of(i, j)) for i, j in combinations(range(m), 2))
        n_seeds = np.fromiter(sizes, dtype=np.intp, count=len(low))
        self._population = np.zeros((m, m))
        self._population[low, high] = self._population[high, low] = 2 * n_seeds
        if not has_maximum(self._population[None])[0]:
            raise ConfigError(
                "some models have no seed in common with the others, not even through other "
                "models: let them generate on the same seeds"
            )
        asked = n_seeds > 0
        if added is not None:
            asked &= (low == added) | (high == added)
        self._low, self._high, self._n_seeds = low[asked], high[asked], n_seeds[asked]
        self._size = int(2 * self._n_seeds.sum())
        self._limit = min(self._size, settings.budget or self._size)
        self._fresh, self._audited = np.zeros((2, len(self._low)), dtype=np.intp)
        self._orders: dict[int, npt.NDArray[np.integer]] = {}
        none = np.zeros(0, dtype=np.intp)
        self._told = known or Comparisons(self.models, none, none, np.zeros(0), none)
        self._open: Chosen | None = None
        self._latent: full_board.Latent | None = None
        self._held = 0

    def ask(self) -> Chosen | None:
        """The next batch; None when finished. ``ValueError`` if the last was not told."""
        if self._open is not None:
            raise ValueError("the results of the last batch have not been told")
        made = int(self._made.sum())
        if made < min(self._first, self._limit) or not self.state.finished:
            self._open = self._questions(self._next_pairs())
        return self._open

    def tell(self, result: Floats) -> None:
        """Results of the last batch for ``first``: 1, ½, 0; nan: unreadable, not asked again.

        ``ValueError`` for another number of results than was asked for, or other values.
        """
        asked, result = self._open, np.asarray(result, dtype=np.float64)
        if asked is None or result.shape != (len(asked),):
            raise ValueError(f"{result.shape} results told, {len(asked or ())} asked for")
        read, told = ~np.isnan(result), self._told
        assert told.cluster is not None, "checked at the start"
        self._told = Comparisons(
            self.models,
            np.append(told.first, asked.first[read]),
            np.append(told.second, asked.second[read]),
            np.append(told.result, result[read]),
            np.append(told.cluster, asked.seed[read]),
        )
        lost = asked.first[~read], asked.second[~read]
        np.subtract.at(self._population, lost, 1)
        np.subtract.at(self._population, lost[::-1], 1)
        self._open = None
        vars(self).pop("_looked", None)

    @property
    def state(self) -> BoardSoFar:
        """What is known from the results told."""
        return self._looked[0]

    @property
    def elsewhere(self) -> BoardSoFar:
        """What the estimate is worth on other seeds: no comparison on these takes that doubt away.

        Its ``error``, ``swaps`` and ``probability`` are of ratings on seeds of the same kind.
        """
        board = full_board.estimate(self._told, self._population, self._latent)
        more = full_board.by_other_seeds(board, self._told, self._population)
        board = replace(board, covariance=board.covariance + more)
        (swaps, probability), _ = self._wrong(board)
        return replace(self.state, error=_error(board), swaps=swaps, probability=probability)

    @cached_property
    def _looked(self) -> tuple[BoardSoFar, Floats]:
        """The state, and the gain of one more comparison of each pair; `tell` drops it."""
        settings, made = self._settings, int(self._made.sum())
        board = full_board.estimate(self._told, self._population, self._latent)
        low, high = self._low, self._high
        (swaps, probability), doubt = self._wrong(board)
        if made >= self._first:
            self._latent = board.latent
            held = probability >= (settings.target or Target()).confidence - _SLACK
            self._held = self._held + 1 if held else 0
        finished = ""
        if made == self._size:
            finished = "everything compared"
        elif settings.target is not None and self._held >= _LOOKS:
            finished = "target reached"
        elif settings.budget is not None and made >= settings.budget:
            finished = "budget used"
        state = BoardSoFar(
            made,
            self._size,
            rating=1000 + ELO * board.strength,
            error=_error(board),
            swaps=swaps,
            probability=probability,
            finished=finished,
            warning=self._warning(board.strength),
        )
        variance = board.variance
        weight = np.zeros_like(variance)
        # Pairs that were compared completely have neither doubt nor variance.
        told = np.divide(doubt, variance[low, high], out=np.zeros_like(doubt), where=doubt > 0)
        weight[low, high] = weight[high, low] = told
        return state, np.maximum(board.next.gains(weight)[low, high], 0)

    def _wrong(self, board: full_board.FullBoard) -> tuple[tuple[int, float], Floats]:
        """How sure it is that the target holds, as of `BoardSoFar`; the doubt of each pair."""
        target = self._settings.target or Target()
        counts, doubt = _wrong(board, self._low, self._high, target.gap / ELO, self._normals)
        sure = 1 - _MARGIN * (1 - target.confidence)
        missed = float((counts > target.swaps).mean()) / _MARGIN
        swaps = int(np.quantile(counts, sure, method="inverted_cdf"))
        return (swaps, max(0.0, 1 - missed)), doubt

    @property
    def _made(self) -> Indices:
        """Comparisons asked of each pair, shape (pairs,)."""
        return self._fresh + self._audited

    @cached_property
    def _first(self) -> int:
        """Comparisons before the first choice: some of each pair, but not many of a model."""
        placed = len(self.models) if self._added is None else 2
        return min(self._settings.first * len(self._low), _ENOUGH_FOR_A_START * placed)

    @cached_property
    def _normals(self) -> Floats:
        """The same in every `state`, so that a new state is not a new chance of a lucky draw."""
        return self._rng(0).standard_normal((self._settings.draws, len(self.models)))

    def _rng(self, *path: int) -> np.random.Generator:
        return np.random.default_rng([self._settings.seed, *path])

    def _next_pairs(self) -> Indices:
        """Pairs of the next batch, one entry for each comparison."""
        made, settings = int(self._made.sum()), self._settings
        size = self._first - made if made < self._first else settings.batch
        size = max(_LEAST_BATCH, made // _BATCHES) if size is None else size
        size = min(made + size, self._limit) - made
        left = 2 * self._n_seeds - self._made
        rng = self._rng(1, made)
        chosen = np.zeros_like(left)
        if made >= self._first and settings.design == "adaptive":
            gain = np.where(left > 0, self._looked[1], 0)
            wanted = _levelled(gain, self._made, (1 - settings.uniform) * size)
            chosen = np.minimum(_rounded(wanted, rng), left)
        # The rest goes to pairs in turn.
        turn = self._made + chosen + rng.random(len(left))
        while (missing := size - int(chosen.sum())) > 0:
            open_ = np.flatnonzero(chosen < left)
            last = min(missing, len(open_)) - 1
            turns = open_[np.argpartition(turn[open_], last)[: last + 1]]
            chosen[turns] += 1
            turn[turns] += 1
        return np.repeat(np.arange(len(chosen)), chosen)

    def _questions(self, pairs: Indices) -> Chosen:
        """Each pair's next seeds; some are seeds asked before, in the other order."""
        chance = self._rng(2, int(self._made.sum())).random(len(pairs)) < self._settings.audits
        seed = np.empty(len(pairs), dtype=np.intp)
        mirrored = np.empty(len(pairs), dtype=bool)
        for k, (pair, audit) in enumerate(zip(pairs.tolist(), chance.tolist(), strict=True)):
            order = self._order(pair)
            fresh, audited = self._fresh[pair], self._audited[pair]
            again = fresh == len(order) or (audit and audited < fresh)
            at = audited if again else fresh
            seed[k], mirrored[k] = order[at], (at + pair + again) % 2
            (self._audited if again else self._fresh)[pair] += 1
        low, high = self._low[pairs], self._high[pairs]
        return Chosen(np.where(mirrored, high, low), np.where(mirrored, low, high), seed)

    def _order(self, pair: int) -> npt.NDArray[np.integer]:
        """A pair's seeds in random order, in the smallest integer type."""
        if pair not in self._orders:
            low, high = int(self._low[pair]), int(self._high[pair])
            seeds = self._rng(3, low, high).permutation(self._seeds_of(low, high))
            self._orders[pair] = seeds.astype(np.min_scalar_type(seeds.max()))
        return self._orders[pair]

    def _warning(self, strength: Floats) -> str:
        """What more comparisons with these opponents would not tell either."""
        m, told = len(self.models), self._told
        games = np.bincount(told.first, minlength=m) + np.bincount(told.second, minlength=m)
        score = sums(told.first, told.result, m) + sums(told.second, 1 - told.result, m)
        for i in range(m) if self._added is None else [self._added]:
            for points, what in ((0.0, "lost"), (games[i], "won")):
                if games[i] and score[i] == points:
                    return (
                        f"{self.models[i]} {what} all of its {games[i]:.0f} comparisons: how far "
                        "it is from the others is little more than a guess"
                    )
        if self._added is not None:
            nearest = ELO * np.sort(np.abs(strength - strength[self._added]))[1]
            if nearest > _FAR:
                return (
                    f"the model nearest to {self.models[self._added]} is {nearest:.0f} Elo away: "
                    "its rating rests on rare results; add a model of its strength"
                )
        return ""


def _wrong(
    board: full_board.FullBoard, low: Indices, high: Indices, gap: float, normals: Floats
) -> tuple[Floats, Floats]:
    """In draws of the full board: pairs more than ``gap`` logits apart in the wrong order.

    Their number in each draw, and for each pair the share of draws.
    """
    values, vectors = np.linalg.eigh(board.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    ahead = board.strength[low] - board.strength[high]
    error = np.sqrt(np.maximum(board.variance[low, high], 0))
    doubtful = np.flatnonzero(np.abs(ahead) + gap < _SURE * error)
    better = np.where(ahead >= 0, low, high)[doubtful]
    worse = np.where(ahead >= 0, high, low)[doubtful]
    # With many pairs their number is nearly the same in all draws, and few draws are enough.
    normals = normals[: max(_LEAST_DRAWS, _MOST_DRAWN // max(1, len(doubtful)))]
    counts, rate = np.zeros(len(normals)), np.zeros(len(low))
    drawn = board.strength[:, None] + root @ normals.T
    block = max(1, _BLOCK // len(normals))
    each = np.ones(max(block, len(normals)), dtype=np.float32)
    for begin in range(0, len(doubtful), block):
        some = slice(begin, begin + block)
        apart = drawn.take(worse[some], axis=0)
        apart -= drawn.take(better[some], axis=0)
        # Numbers below 2**24 are whole in single precision.
        wrong = (apart > gap).astype(np.float32)
        counts += each[: len(wrong)] @ wrong
        rate[doubtful[some]] = wrong @ each[: len(normals)]
    return counts, rate / len(normals)


def _error(board: full_board.FullBoard) -> Floats:
    """Standard errors in Elo, shape (m,)."""
    return ELO * np.sqrt(np.maximum(np.diag(board.covariance), 0))


def _levelled(gain: Floats, made: Indices, size: float) -> Floats:
    """The best distribution of ``size`` comparisons over pairs, shape (pairs,).

    After k more than n comparisons a pair's gain is about gain · (n / (n + k))²: all pairs that get
    any are brought down to the same gain.
    """
    root, there = np.sqrt(gain), made + 1.0
    above, level = gain > 0, 0.0
    if not above.any():
        return np.zeros(len(gain))
    # The level is highest when exactly the pairs above it get comparisons.
    while (higher := float((there * root)[above].sum() / (there[above].sum() + size))) > level:
        level, above = higher, root > higher
    return np.asarray(there * np.maximum(root / level - 1, 0))


def _rounded(wanted: Floats, rng: np.random.Generator) -> Indices:
    """Whole numbers with the expectations ``wanted``, whose sum is off by less than 1."""
    ends = np.floor(np.cumsum(wanted) + rng.random())
    return np.diff(ends, prepend=0.0).astype(np.intp)
