"""Bootstrap Elo exactly as BotChat's Appendix A defines it, played for many shuffles at once.

Elo depends on the order of play, and a set of comparisons has none. Bootstrap Elo shuffles all
comparisons, plays them once from equal ratings, and reports the median over 1000 shuffles; the
paper repeats that ten times and reports the mean.

An update of size K pulls every rating towards the truth, so early games are forgotten: with K = 32
and 14 models the last 3,800 games of a shuffle give its final ratings to 1e-6. Only that end is
drawn and played, from about where ratings settle; pilot shuffles check that it is long enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from botchat import parallel
from botchat.ratings.bradley_terry import maximise, score_rate, tables
from botchat.ratings.comparisons import Comparisons, check, distinct
from botchat.ratings.shuffles import Draw, end_of_alike, end_of_shuffle, streams
from botchat.verdicts import TIE, WIN, Floats, Indices

MOST_GAMES = 2_000_000_000
"""Games of a board that nobody chose shuffles for: one and a half minutes on a core."""

_TOLERANCE = 1e-6
"""Elo by which a pilot's rating may differ from that of a longer end. On the published tables it
differs by 2e-7, the worst of 10,000 shuffles by 4e-6, medians by 3e-7."""
_PILOTS = 16
_BLOCK = 2500
"""Shuffles played side by side: enough to hide numpy's cost per call, few enough for the cache."""
_RATING_BYTES = 8 << 20
"""Of their ratings: of 1,000 models a game takes 45 ns at 4 to 8 MB, 62 at 1 MB and 64 at 20 MB."""
_BLOCK_BYTES = 64 << 20
"""Of their games."""
_FEWEST = 10
"""Shuffles of a run: a median of fewer says little."""
_SECONDS_A_GAME = 4e-8
"""About what drawing and playing one game takes."""

Kinds = npt.NDArray[np.unsignedinteger]
"""Numbers of kinds of game, see `_Games`."""


@dataclass(frozen=True)
class EloSettings:
    """How bootstrap Elo is computed; the defaults are the paper's (§4.2, Appendix A).

    Raises `ConfigError` for values that define no rating.
    """

    init: float = 1000.0
    scale: float = 400.0
    k: float = 32.0
    shuffles: int = 1000
    runs: int = 10
    seed: int = 0
    most_games: int | None = None
    """Play fewer shuffles where ``shuffles`` in each run would be more games, of all runs together;
    `MOST_GAMES` for boards of any size. ``None``: never."""
    per_pair: int | None = None
    """Draw so many of every compared pair, on average: a pair at random, then one of its
    comparisons, with replacement (not the paper's protocol). Estimates the Elo of a whole design
    from a part that has more of some pairs than of others."""

    @classmethod
    def of_board(cls) -> EloSettings:
        """The paper's, but of no more than `MOST_GAMES`."""
        return cls(most_games=MOST_GAMES)

    def __post_init__(self) -> None:
        """Check ranges."""
        for name, value in vars(self).items():
            if name == "init":
                right, wanted = math.isfinite(value), "a finite rating such as 1000"
            elif name in ("scale", "k"):
                right, wanted = 0 < value < math.inf, "a number above 0"
            else:
                least = int(name != "seed")
                right, wanted = value is None or value >= least, f"at least {least}"
            check((f"Elo {name}", value, right, wanted))


@dataclass(frozen=True, eq=False)
class EloResult:
    """Bootstrap Elo of each model, with the settings it was made with.

    ``rating``: mean over runs of the run's median over shuffles, shape (m,).
    ``run_ratings``: the medians, shape (runs, m). ``run_std``: their standard deviation over runs
    (n - 1; nan for one run), shape (m,). ``settings``: with as many shuffles as were played.
    ``n_played``: cases of each shuffle's end that were played, with or without a result.
    """

    settings: EloSettings
    models: tuple[str, ...]
    rating: Floats
    run_ratings: Floats
    run_std: Floats
    n_comparisons: int
    n_played: int


def bootstrap_elo(
    comparisons: Comparisons, settings: EloSettings | None = None, *, n_jobs: int | None = None
) -> EloResult:
    """Bootstrap Elo (BotChat Appendix A).

    Every shuffle has a random stream of its own, so the result depends on the comparisons, their
    order and the settings, not on where they are played: `botchat.parallel` says where.
    A worker holds at most 64 MB of drawn games. `MissingDataError`: no comparison.
    """
    cases = RatedCases(comparisons, np.arange(len(comparisons)), len(comparisons))
    return rate(Bootstrap.of([cases], settings), n_jobs)[0]


@dataclass(frozen=True, eq=False)
class RatedCases:
    """Comparisons among ``n`` shuffled cases, of which others have no result.

    ``place``: each comparison's place among the cases, shape (comparisons,).
    """

    comparisons: Comparisons
    place: Indices
    n: int


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Shuffles of some cases, and what is played in them; ``length``: games of each one's end."""

    games: tuple[_Games, ...]
    settings: EloSettings
    length: int

    @classmethod
    def of(cls, rated: Sequence[RatedCases], settings: EloSettings | None = None) -> Bootstrap:
        """Sets of comparisons that share one order, as drawing it takes half of the time.

        A shuffle of the cases is read once for each set, passing over cases without a result.
        ``rated``: as many cases in each set; one set where ``settings.per_pair`` is given.
        """
        settings = settings or EloSettings()
        games = tuple(_Games.of(cases, settings) for cases in rated)
        length = max(_guess_length(of_cases, settings) for of_cases in games)
        return cls(games, settings, length)

    @property
    def played(self) -> EloSettings:
        """The settings with as many shuffles as ``most_games`` leaves room for."""
        settings = self.settings
        if settings.most_games is None:
            return settings
        room = settings.most_games // (settings.runs * self.length * len(self.games))
        return replace(settings, shuffles=min(settings.shuffles, max(_FEWEST, room)))

    @property
    def n_shuffles(self) -> int:
        """Shuffles of all runs."""
        return self.settings.runs * self.played.shuffles

    @property
    def whole(self) -> bool:
        """Whether all games of a shuffle are played."""
        return self.length == self.games[0].in_shuffle

    def lengthened(self, miss: float) -> Bootstrap:
        """With longer ends, as pilots differ by ``miss``, which is above the tolerance."""
        # A little longer where the miss is small, twice as long where nothing is forgotten.
        n_models = max(len(games.models) for games in self.games)
        more = math.log(n_models * miss / _TOLERANCE) / _to_forget(n_models, self.settings)
        length = math.ceil(self.length * (1 + min(1, more)))
        return replace(self, length=_no_more_than_all(length, self.games[0].in_shuffle))

    def start(self, games: _Games) -> Floats:
        """Ratings before the games that are played, shape (m,).

        An end starts near where ratings settle, as the error of a nearer start is forgotten sooner.
        """
        settled = self.settings.scale / math.log(10) * (games.level - games.level.mean())
        return np.asarray(self.settings.init + settled * (not self.whole))

    def blocks(self, n_jobs: int) -> list[range]:
        """All shuffles, split evenly into a multiple of ``n_jobs``; each block fits in memory."""
        ratings = 8 * max(games.n_players for games in self.games)
        kinds = self.length * max(games.kind.itemsize for games in self.games)
        most = max(1, min(_BLOCK, _RATING_BYTES // ratings, _BLOCK_BYTES // kinds))
        count = min(self.n_shuffles, n_jobs * math.ceil(self.n_shuffles / (n_jobs * most)))
        edges = [self.n_shuffles * i // count for i in range(count + 1)]
        return [range(low, high) for low, high in pairwise(edges)]


def rate(bootstrap: Bootstrap, n_jobs: int | None = None) -> list[EloResult]:
    """Play all shuffles; the result of each set."""
    jobs = parallel.n_workers(n_jobs)
    while True:
        blocks = [partial(_play_block, bootstrap, block) for block in bootstrap.blocks(jobs)]
        n_games = bootstrap.length * bootstrap.n_shuffles * len(bootstrap.games)
        tasks: list[Callable[[], Any]] = [partial(_miss, bootstrap), *blocks]
        miss, *played = parallel.run_tasks(tasks, n_games * _SECONDS_A_GAME, n_jobs)
        if miss <= _TOLERANCE:
            break
        bootstrap = bootstrap.lengthened(miss)
    finals = [np.concatenate(parts) for parts in zip(*played, strict=True)]
    settings, results = bootstrap.played, []
    for games, final in zip(bootstrap.games, finals, strict=True):
        medians = np.median(final.reshape(settings.runs, settings.shuffles, -1), axis=1)
        several = settings.runs > 1
        run_std = medians.std(axis=0, ddof=1) if several else np.full(len(games.models), np.nan)
        rating, n = medians.mean(axis=0), games.n_comparisons
        results.append(
            EloResult(settings, games.models, rating, medians, run_std, n, bootstrap.length)
        )
    return results


def play(
    comparisons: Comparisons, orders: npt.NDArray[np.integer], settings: EloSettings
) -> Floats:
    """Final Elo ratings of given orders of play.

    ``orders``: indices of comparisons, first game first, shape (orders, games). Returns shape
    (orders, m). Each game moves both models by ``K (R - E)`` (Appendix A, equation 1).
    """
    n = len(comparisons)
    games = _Games.of(RatedCases(comparisons, np.arange(n), n), settings)
    kinds = np.ascontiguousarray(games.kind[orders].T)
    return _play(games, kinds, settings, settings.init)


@dataclass(frozen=True, eq=False)
class _Games:
    """Cases as kinds of game: (winner, loser, decided). A tie has decided = 0.

    A case without a result is a tie of two players whom nobody else meets, numbers m and m + 1, so
    that it changes no model's rating. ``n_players``: m, or those two more. ``in_shuffle``: games of
    a whole shuffle. ``games``, ``score``: of each pair, shape (m, m). ``level``: logits about which
    ratings settle, shape (m,). ``kind``: the kind of each case, shape (n,). Where games are drawn
    by pair, ``by_pair``: comparisons sorted by pair, shape (n,), and ``begin``: where each pair's
    begin in it, and its length, shape (pairs + 1,).
    ``winner``, ``loser``, ``decided``: one entry a kind.
    """

    models: tuple[str, ...]
    n_comparisons: int
    n_players: int
    in_shuffle: int
    games: Floats
    score: Floats
    level: Floats
    kind: Kinds
    by_pair: Indices
    begin: Indices
    winner: Indices
    loser: Indices
    decided: Floats

    @classmethod
    def of(cls, cases: RatedCases, settings: EloSettings) -> _Games:
        comparisons, m = cases.comparisons, len(cases.comparisons.models)
        comparisons.need_some()
        ahead = comparisons.result >= TIE
        winner = np.where(ahead, comparisons.first, comparisons.second)
        loser = np.where(ahead, comparisons.second, comparisons.first)
        kinds, kind = distinct((winner * m + loser) * 2 + (comparisons.result != TIE))
        ordered, decided = np.divmod(kinds, 2)
        winner, loser, n_players = ordered // m, ordered % m, m
        by_pair = begin = np.empty(0, dtype=np.intp)
        in_shuffle = cases.n
        if settings.per_pair is not None:
            by_pair, begin = _sorted_by_pair(comparisons)
            in_shuffle = settings.per_pair * (len(begin) - 1)
        elif cases.n > len(kind):
            with_result, kind = kind, np.full(cases.n, len(kinds))
            kind[cases.place] = with_result
            winner, loser = np.append(winner, m), np.append(loser, m + 1)
            decided, n_players = np.append(decided, 0), m + 2
        games, score = tables(comparisons, 1.0)
        level = maximise(games[None], score[None])[0]
        return cls(
            comparisons.models, len(comparisons), n_players, in_shuffle, games, score, level,
            kind.astype(np.min_scalar_type(len(kinds))), by_pair, begin,
            winner, loser, decided.astype(np.float64),
        )  # fmt: skip

    def end(self, length: int) -> Draw:
        """Draws the last cases of a shuffle."""
        if len(self.begin):
            return end_of_alike(self.by_pair, self.begin, length)
        return end_of_shuffle(len(self.kind), length)


def _sorted_by_pair(comparisons: Comparisons) -> tuple[Indices, Indices]:
    """``by_pair`` and ``begin`` of `_Games`."""
    low, high, _ = comparisons.oriented()
    key = low * len(comparisons.models) + high
    _, seen, pair = np.unique(key, return_index=True, return_inverse=True)
    # Pairs are numbered as they come, so that names of models do not decide what is drawn.
    pair = np.argsort(np.argsort(seen))[pair]
    begin = np.concatenate([[0], np.cumsum(np.bincount(pair))])
    return np.argsort(pair, kind="stable"), begin


def _play(games: _Games, kinds: Kinds, settings: EloSettings, start: npt.ArrayLike) -> Floats:
    """Play the columns of ``kinds``, shape (games, shuffles), side by side: shape (shuffles, m).

    ``start``: ratings before the first, of each shuffle or of all.

    With x = (a - b) ln10 / scale, the winner's rating a moves by K (1 - E) = K / (1 + exp x), in a
    tie by K/2 less. Ratings are kept in units of x, all shuffles in one flat array, and every step
    works in place, because here a numpy call costs as much as its arithmetic. (Tanh of x/2 is a
    step less, and without AVX-512 it takes as long as three exp.)
    """
    width, m, n_models = kinds.shape[1], games.n_players, len(games.level)
    unit = math.log(10) / settings.scale
    step = settings.k * unit
    less = step / 2 * (1 - games.decided)
    ratings = np.zeros((width, m))
    ratings[:, :n_models] = (np.asarray(start) - settings.init) * unit
    flat = ratings.reshape(-1)
    offsets = np.tile(np.arange(width) * m, 2)
    places = np.empty(2 * width, dtype=np.intp)
    winners, losers = places[:width], places[width:]
    both = np.empty(2 * width)
    winning, losing = both[:width], both[width:]
    kind = np.empty(width, dtype=np.intp)
    even, move = np.empty(width), np.empty(width)
    add, subtract, divide, exp = np.add, np.subtract, np.divide, np.exp
    with np.errstate(over="ignore"):  # K / (1 + inf) is right
        for row in kinds:
            kind[:] = row
            # mode="clip" spares take's bounds check and buffer; every index is in range.
            games.winner.take(kind, None, winners, "clip")
            games.loser.take(kind, None, losers, "clip")
            less.take(kind, None, even, "clip")
            add(places, offsets, places)
            flat.take(places, None, both, "clip")
            subtract(winning, losing, move)
            exp(move, move)
            add(move, 1.0, move)
            divide(step, move, move)
            subtract(move, even, move)
            add(winning, move, winning)
            subtract(losing, move, losing)
            flat[places] = both
    return settings.init + ratings[:, :n_models] / unit


def _play_block(bootstrap: Bootstrap, block: range) -> list[Floats]:
    """Final ratings of some shuffles, of each set: shape (shuffles, m)."""
    return [
        _play(games, kinds, bootstrap.settings, bootstrap.start(games))
        for games, kinds in zip(bootstrap.games, _draw(bootstrap, block), strict=True)
    ]


def _draw(bootstrap: Bootstrap, block: range) -> list[Kinds]:
    """Kinds of the games of each shuffle's end, for each set: shape (length, shuffles)."""
    games, length = bootstrap.games, bootstrap.length
    draw = games[0].end(length)
    drawn = [np.empty((length, len(block)), dtype=each.kind.dtype) for each in games]
    some = [np.empty((min(64, len(block)), length), dtype=each.kind.dtype) for each in games]
    for low in range(0, len(block), len(some[0])):
        numbers = block[low : low + len(some[0])]
        for i, rng in enumerate(streams(bootstrap.settings.seed, numbers)):
            cases = draw(rng)
            for of_cases, rows in zip(games, some, strict=True):
                of_cases.kind.take(cases, out=rows[i], mode="clip")
        # Several at a time: a column of `kinds` touches a cache line for every game.
        for kinds, rows in zip(drawn, some, strict=True):
            kinds[:, low : low + len(numbers)] = rows[: len(numbers)].T
    return drawn


def _guess_length(drawn: _Games, settings: EloSettings) -> int:
    """Games after which the ratings before them should be forgotten to within the tolerance.

    One game of i and j shrinks an error in their difference by the factor 1 - 2q with
    q = K ln10 / scale · E(1 - E). On average errors follow the weighted graph's Laplacian, and its
    smallest eigenvalue above 0 is the rate at which the slowest of them dies. Where pairs have few
    comparisons, E is what the level of the ratings says: a pair's own results make the far ones
    even, and the rate of the slowest six times too high.
    """
    m, games, score = len(drawn.models), drawn.games, drawn.score
    expected = (score + TIE) / (games + WIN)
    share = games / len(drawn.kind)
    if settings.per_pair is not None:
        share = (games > 0) / (len(drawn.begin) - 1)
        expected = score_rate(drawn.level[:, None] - drawn.level[None, :])
    weight = share * settings.k * math.log(10) / settings.scale * expected * (1 - expected)
    rates = np.linalg.eigvalsh(np.diag(weight.sum(axis=1)) - weight)
    rate = rates[rates > rates[-1] * 1e-9].min()
    return _no_more_than_all(math.ceil(_to_forget(m, settings) / rate), drawn.in_shuffle)


def _to_forget(n_models: int, settings: EloSettings) -> float:
    """Logarithm of the factor by which a start's error must shrink."""
    # Ratings that follow single games scatter about their level with this standard deviation. The
    # more models, the slower is the slowest of a shuffle.
    scatter = math.sqrt(settings.k * settings.scale / (2 * math.log(10)))
    return math.log(n_models * scatter / _TOLERANCE)


def _no_more_than_all(length: int, n: int) -> int:
    """``length`` up to half of all n games, else n: a long end saves little and needs a check."""
    return n if 2 * length > n else length


def _miss(bootstrap: Bootstrap) -> float:
    """Greatest difference of pilot shuffles' ratings from ends of this length and a longer one."""
    if bootstrap.whole:
        return 0.0
    settings, length = bootstrap.settings, bootstrap.length
    # A quarter scatters ratings as far as they go.
    before = length // 4 + 1
    longer = replace(bootstrap, length=length + before)
    n_shuffles = settings.runs * settings.shuffles
    drawn = _draw(longer, range(n_shuffles, n_shuffles + _PILOTS))
    missed = []
    for games, kinds in zip(bootstrap.games, drawn, strict=True):
        scattered = _play(games, kinds[:before], settings, longer.start(games))
        start = np.broadcast_to(bootstrap.start(games), scattered.shape)
        ends = np.hstack([kinds[before:]] * 2)
        rated = _play(games, ends, settings, np.concatenate([scattered, start]))
        missed.append(float(np.abs(rated[:_PILOTS] - rated[_PILOTS:]).max()))
    return max(missed)
