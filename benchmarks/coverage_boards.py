"""How often the intervals and places of boards hold: made-up worlds of known truth, seeds fixed.

Each family draws worlds of one kind and yields, for each, what was stated, what was achieved with
its standard error, and the mean width. `coverage.py` prints them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from botchat.boards.results import Sides
from botchat.metrics import intervals
from botchat.ratings.bradley_terry import BradleyTerryResult, fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings, bootstrap_elo

SEEDS = (5, 10, 40, 200, 547)
"""Numbers of ChatSEEDs; 547 is MuTual's test set."""


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    method: str
    world: str
    n: str
    """ChatSEEDs, or models and ChatSEEDs as ``14 x 40``."""
    stated: float
    """Coverage, or power where nothing is promised: nan."""
    achieved: float
    error: float
    """Standard error of ``achieved``."""
    width: float = math.nan

    @property
    def holds(self) -> bool:
        """Whether the promise was kept, as far as can be seen."""
        return not self.achieved < self.stated - 2 * self.error

    def __str__(self) -> str:
        """As a row."""
        stated = "    –" if math.isnan(self.stated) else f"{self.stated:5.3f}"
        width = "      –" if math.isnan(self.width) else f"{self.width:7.3f}"
        numbers = f"{stated}  {self.achieved:8.3f}  {self.error:5.3f}  {width}"
        said = "" if self.holds else "  <-- less than stated"
        return f"{self.method:<31}{self.world:<60}{self.n:>8}  {numbers}{said}"


def of(method: str, world: str, n: object, held: np.ndarray, width: float, stated=0.95) -> Line:
    """A line from whether each interval held: shape (worlds,), or (worlds, intervals)."""
    each = np.asarray(held, dtype=float).reshape(len(held), -1).mean(axis=1)
    # Where all hold, the error is that of one more that does not.
    spread = max(each.std(ddof=1), 1 / len(each)) if len(each) > 1 else 1.0
    return Line(method, world, str(n), stated, each.mean(), spread / math.sqrt(len(each)), width)


# Rates and means --------------------------------------------------------------------------------


def rates() -> Iterator[Line]:
    """Shares of dialogues, of two orders of a case, and of verdicts that share a seed."""
    rng = np.random.default_rng(1)
    shapes = (("one case a seed", 1, 0.0), ("two orders, half of them alike", 2, 0.5))
    shapes += (("two orders, always alike", 2, 1.0), ("26 verdicts a seed, loosely alike", 26, 0.1))
    shapes += (("20 verdicts a seed, much alike", 20, 0.6),)
    for world, k, alike in shapes:
        for name, low, high in (("", 0.05, 0.95), (", 1 to 5 % or 95 to 99 %", 0.01, 0.05)):
            for n in SEEDS:
                worlds = 1500 if n * k < 3000 else 300
                p = rng.uniform(low, high, worlds)
                p = np.where((rng.random(worlds) < 0.5) & (high < 0.5), 1 - p, p)
                held, width = _rates(rng, p, n, k, alike)
                yield of("rate", world + name, n, held, width)


def _rates(
    rng: np.random.Generator, p: np.ndarray, n: int, k: int, alike: float
) -> tuple[np.ndarray, float]:
    shape = len(p), n, k
    # Verdicts of a seed follow one draw of it, or each its own.
    common, own = rng.random((len(p), n, 1)), rng.random(shape)
    hit = np.where(rng.random(shape) < alike, common, own) < p[:, None, None]
    row, seed = (np.broadcast_to(i, shape).ravel() for i in np.ogrid[: len(p), :n, :k][:2])
    found = intervals.by_seed(row, seed, hit.ravel().astype(float), len(p))
    return (found.low <= p) & (p <= found.high), float((found.high - found.low).mean())


def means() -> Iterator[Line]:
    """Means of scores from 1 to 5, those of good models mostly at the top."""
    rng = np.random.default_rng(2)
    for world, chances in (
        ("scores spread out", (0.1, 0.2, 0.3, 0.25, 0.15)),
        ("scores mostly at the top", (0, 0.02, 0.08, 0.3, 0.6)),
    ):
        truth = float(np.dot(range(1, 6), chances))
        for n in SEEDS:
            ends = np.array(
                [
                    intervals.mean(rng.choice(5, n, p=chances).__add__(1).tolist(), 1, 5)
                    for _ in range(800)
                ]
            )
            held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            yield of("mean score", world, n, held, float(np.diff(ends).mean()))


def board(
    strength: np.ndarray, n: int, rng: np.random.Generator, alike: float = 0.5, tie: float = 0.0
) -> Comparisons:
    """Every pair on ``n`` seeds in both orders; verdicts alone are Bradley-Terry's where no tie is.

    On each seed each model has a utility, its strength plus Gumbel noise, which decides a share
    ``alike`` of the verdicts; others are drawn by themselves. Closer than ``tie`` is a tie.
    """
    m = len(strength)
    low, high = np.triu_indices(m, 1)
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    utility = strength + rng.gumbel(size=(n, m))
    apart = strength[first] - strength[second] + rng.logistic(size=(n, len(first)))
    same = rng.random((n, len(first))) < alike
    apart = np.where(same, utility[:, first] - utility[:, second], apart)
    result = np.where(np.abs(apart) < tie, 0.5, (apart > 0) * 1.0)
    names = tuple(f"m{i:02}" for i in range(m))
    cluster = np.repeat(np.arange(n), len(first))
    return Comparisons(names, np.tile(first, n), np.tile(second, n), result.ravel(), cluster)


def boards() -> Iterator[Line]:
    """Bradley-Terry ratings and win rates of ladders of 2 to 30 models."""
    rng = np.random.default_rng(4)
    for m in (2, 8, 30):
        strength = np.linspace(0.8, -0.8, m)
        rating = 1000 + 400 / math.log(10) * (strength - strength.mean())
        chance = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        win = (chance.sum(axis=1) - 0.5) / (m - 1)
        for n in SEEDS:
            made = [board(strength, n, rng) for _ in range(max(10, min(300, 80_000 // (m * n))))]
            fits = [fit(one) for one in made]
            held = np.array([(f.low <= rating) & (rating <= f.high) for f in fits])
            width = float(np.mean([f.high - f.low for f in fits]))
            yield of("Bradley-Terry", "ladder", f"{m} x {n}", held, width)
            rows = [list(Sides.of(one).by_model().values()) for one in made[:150]]
            ends = np.array([[(r["win_low"], r["win_high"]) for r in each] for each in rows])
            held = (ends[..., 0] <= win) & (win <= ends[..., 1])
            yield of("win rate", "ladder", f"{m} x {n}", held, float(np.diff(ends).mean()))


def elo() -> Iterator[Line]:
    """Elo's interval, which is Bradley-Terry's error about Elo's own mean."""
    rng = np.random.default_rng(5)
    strength, settings = np.linspace(0.6, -0.6, 6), EloSettings(shuffles=50, runs=4)
    exact = EloSettings(shuffles=2000, runs=4)
    truth = bootstrap_elo(board(strength, 10_000, rng), exact).rating
    for n in (10, 40, 200):
        held, widths = [], []
        for _ in range(120):
            made = board(strength, n, rng)
            rated, error = bootstrap_elo(made, settings), fit(made)
            reach = error.width * np.hypot(error.std_error, rated.run_std / 2)
            held.append(np.abs(rated.rating - truth) <= reach)
            widths.append(2 * reach)
        yield of("Elo", "ladder", f"6 x {n}", np.array(held), float(np.mean(widths)))


def level() -> Iterator[Line]:
    """Boards of equal models: how often nothing is called clearly better."""
    rng = np.random.default_rng(6)
    every: list[np.ndarray] = []
    for world, tie in (("level", 0.0), ("level, two thirds ties", 1.5)):
        for m in (2, 8, 14, 30):
            for n in (5, 20, 80) if m == 30 else (5, 20, 80, 222):
                worlds = max(60, min(200, 40_000 // (m * n)))
                fits = [fit(board(np.zeros(m), n, rng, tie=tie)) for _ in range(worlds)]
                none = np.array([bool((one.rank == 1).all()) for one in fits])
                size = f"{m} x {n}"
                every += [none] if m > 2 and n > 5 else []
                yield of("nothing called better", world, size, none, math.nan)
    yield of(
        "nothing called better",
        "all of these of 8 x 20 and more",
        "",
        np.concatenate(every),
        math.nan,
    )


def power() -> Iterator[Line]:
    """Ladders: the share of all pairs that places separate."""
    rng = np.random.default_rng(7)
    for m, step in ((8, 30), (14, 15), (14, 30)):
        for n in (40, 222):
            strength = -np.arange(m) * step * math.log(10) / 400
            fits = [fit(board(strength, n, rng)) for _ in range(30)]
            pairs, size = m * (m - 1) / 2, f"{m} x {n}"
            found = np.array([(one.rank - 1).sum() / pairs for one in fits])
            world = f"ladder of {step} Elo a step"
            yield of("pairs separated", world, size, found, math.nan, math.nan)
            wrong = np.array([not np.tril(_better(one)).any() for one in fits])
            yield of("none separated wrongly", world, size, wrong, math.nan)


def _better(rated: BradleyTerryResult) -> np.ndarray:
    """Pairs in the wrong order by places: the row's last place before the column's first."""
    first, last = rated.places
    return np.asarray(last[:, None] < first[None, :])


FAMILIES: list[Callable[[], Iterator[Line]]] = [
    rates, means, boards, elo, level, power,
]  # fmt: skip
