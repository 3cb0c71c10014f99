"""Bootstrap Elo as BotChat's Appendix A defines it, played for many shuffles at once.

Elo depends on the order of play, and a set of comparisons has none. Bootstrap Elo shuffles all
comparisons, plays them once from equal ratings, and reports the median over 1000 shuffles; the
paper repeats that ten times and reports the mean.

An update of size K pulls every rating towards the truth, so early games are forgotten: with K = 32
and 14 models the last few thousand games of a shuffle give its final ratings to 0.01, while the
mean of ten medians varies by 0.45. Only that end is drawn and played, from where ratings settle.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import joblib
import numpy as np
import numpy.typing as npt

from botchat.errors import DataError
from botchat.estimates import Floats, Names
from botchat.metrics.statistics import distinct
from botchat.metrics.verdicts import TIE
from botchat.ratings.bradley_terry import fit_logits, laplacian, logistic
from botchat.ratings.comparisons import Comparisons

# Elo that may be left of the error of where an end starts
_TOLERANCE = 1e-2
# Longest end: where a model always wins, ratings never settle, and a few whole shuffles tell where
# ends start.
_MOST_GAMES = 5_000
_PILOTS = 128  # of these shuffles
_SIDE_BY_SIDE = 2500  # shuffles played together, which hides numpy's cost per call
_CELLS = 1 << 24  # games of these at a time, for the memory's sake


@dataclass(frozen=True)
class EloSettings:
    """Settings of bootstrap Elo; the defaults are the paper's (§4.2, Appendix A)."""

    init: float = 1000.0
    scale: float = 400.0
    k: float = 32.0
    shuffles: int = 1000
    runs: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise `DataError` for a number with which Elo cannot be played."""
        for name in ("scale", "k", "shuffles", "runs"):
            value = vars(self)[name]
            if not value > 0:
                raise DataError(f"EloSettings({name}={value!r}): give a number above 0")

    @property
    def signature(self) -> str:
        """``elo:k32,1000x10|seed:0``, and what differs from the paper."""
        text = f"elo:k{self.k:g},{self.shuffles}x{self.runs}"
        if self.init != PAPER.init:
            text += f",init{self.init:g}"
        if self.scale != PAPER.scale:
            text += f",scale{self.scale:g}"
        return f"{text}|seed:{self.seed}"


class EloResult(NamedTuple):
    """Bootstrap Elo of each model, with the settings it was made with.

    ``rating``: mean over runs of the run's median over shuffles, shape (m,). ``run_std``: standard
    deviation of the medians over runs (n - 1; nan for one run), shape (m,).
    """

    settings: EloSettings
    models: Names
    rating: Floats
    run_std: Floats


PAPER = EloSettings()
"""The paper's way to rate (BotChat, Appendix A)."""


def bootstrap_elo(comparisons: Comparisons, settings: EloSettings | None = None) -> EloResult:
    """Bootstrap Elo (BotChat, Appendix A); raises `MissingDataError` if there is no comparison.

    Raises `DataError` for soft results and weights (`Comparisons.is_hard`). The result depends on
    the comparisons, their order and the settings alone. It runs on the workers of
    `joblib.parallel_config`, by default in this process.
    """
    settings = settings or PAPER
    comparisons.require_any()
    if not comparisons.is_hard:
        raise DataError("Elo takes wins, ties and losses that count once; rate by Bradley-Terry")
    total = settings.runs * settings.shuffles
    level = fit_logits(comparisons)
    length = _length_of_end(comparisons, level, settings)
    start = level if length < len(comparisons) else np.zeros(len(level))
    if length > _MOST_GAMES:
        shape = (len(comparisons) - _MOST_GAMES, _PILOTS)
        pilots = _play_block(comparisons, total, shape, start, settings)
        start = (pilots.mean(axis=0) - settings.init) * math.log(10) / settings.scale
        length = _MOST_GAMES
    width = min(_SIDE_BY_SIDE, max(16, _CELLS // length))
    sizes = [min(width, total - low) for low in range(0, total, width)]
    finals = joblib.Parallel()(
        joblib.delayed(_play_block)(comparisons, block, (length, size), start, settings)
        for block, size in enumerate(sizes)
    )
    medians = np.median(
        np.concatenate(finals).reshape(settings.runs, settings.shuffles, -1), axis=1
    )
    run_std = np.full(len(level), np.nan)
    if settings.runs > 1:
        run_std = medians.std(axis=0, ddof=1)
    return EloResult(settings, comparisons.models, medians.mean(axis=0), run_std)


def play(
    comparisons: Comparisons,
    orders: npt.NDArray[np.integer],
    settings: EloSettings,
    start: Floats,
) -> Floats:
    """Final Elo ratings of given orders of play, shape (orders, m).

    ``orders``: indices of comparisons, first game first, shape (orders, games). ``start``: ratings
    before the first, in logits about ``settings.init``, shape (m,). Each game moves both models by
    K (R - E) (Appendix A, equation 1): in logits the winner moves by K / (1 + exp(winner - loser)),
    in a tie by K / 2 less.
    """
    m = len(comparisons.models)
    width = len(orders)
    step = settings.k * math.log(10) / settings.scale
    ahead = comparisons.result >= TIE
    winner = np.where(ahead, comparisons.first, comparisons.second)
    loser = np.where(ahead, comparisons.second, comparisons.first)
    # A game is one of a few kinds: their tables stay in the cache.
    kinds, kind = distinct((winner * m + loser) * 2 + (comparisons.result == TIE))
    # A row of ratings a model: what shuffles have in common stands together.
    winners = kinds // 2 // m * width
    losers = kinds // 2 % m * width
    less = kinds % 2 * step / 2
    ratings = np.repeat(start, width)
    shuffle = np.arange(width)
    games = kind.astype(np.min_scalar_type(len(kinds)))[np.ascontiguousarray(orders.T)]
    with np.errstate(over="ignore"):  # K / (1 + inf) is right
        for row in games:
            wins = winners.take(row) + shuffle
            loses = losers.take(row) + shuffle
            won = ratings.take(wins)
            lost = ratings.take(loses)
            move = step / (1 + np.exp(won - lost)) - less.take(row)
            ratings[wins] = won + move
            ratings[loses] = lost - move
    return settings.init + ratings.reshape(m, width).T * settings.k / step


def _play_block(
    comparisons: Comparisons,
    block: int,
    shape: tuple[int, int],
    start: Floats,
    settings: EloSettings,
) -> Floats:
    """Final ratings of one block of shuffles, each block from a random stream of its own.

    ``shape``: games of an end, and shuffles. One random order of n games has n // length ends that
    share no game.
    """
    n = len(comparisons)
    length, width = shape
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(block,)))
    orders = np.empty((width, length), np.int32)
    each = n // length
    for low in range(0, width, each):
        ends = min(each, width - low)
        orders[low : low + ends] = rng.permutation(n)[: length * ends].reshape(ends, length)
    return play(comparisons, orders, settings, start)


def _length_of_end(comparisons: Comparisons, level: Floats, settings: EloSettings) -> int:
    """Games after which the start is forgotten to `_TOLERANCE`; all n if that is above n / 2.

    One game of i and j shrinks an error in their difference by the factor 1 - 2q with
    q = K ln10 / scale · E(1 - E). On average errors follow the weighted graph's Laplacian, and its
    smallest eigenvalue above 0 is the rate at which the slowest of them dies.
    """
    m = len(level)
    n = len(comparisons)
    games = np.bincount(comparisons.first * m + comparisons.second, minlength=m * m).reshape(m, m)
    expected = logistic(level[:, None] - level[None, :])
    unit = settings.k * math.log(10) / settings.scale
    weight = (games + games.T) / n * unit * expected * (1 - expected)
    rates = np.linalg.eigvalsh(laplacian(weight))
    slowest = rates[rates > 1e-9 * rates[-1]].min()
    scatter = math.sqrt(settings.k * settings.scale / (2 * math.log(10)))
    length: int = math.ceil(math.log(m * scatter / _TOLERANCE) / slowest)
    return length if 2 * length <= n else n
