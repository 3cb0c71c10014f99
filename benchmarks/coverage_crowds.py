"""How often intervals of a crowd's votes hold for other questions and other people: made-up worlds.

    python benchmarks/coverage_crowds.py [PART_OF_A_NAME ...]

Every question suits some models, and every worker likes some. Printed beside the intervals by both
are those by one of the two, which are about these workers, or these questions, only.
docs/statistics.md quotes the table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
from coverage_boards import Line, main, of

from botchat.boards.results import Sides
from botchat.measures import intervals
from botchat.ratings.bradley_terry import fit, maximise, score_rate
from botchat.ratings.comparisons import Comparisons

RUNS = 120

WORLDS = (
    # questions, workers, models, votes, spread by question, by worker (logits), how unequal
    (5, 40, 4, 800, 0.8, 0.4, 0.5),
    (6, 10, 4, 800, 0.6, 0.6, 0.5),
    (8, 12, 12, 1200, 0.3, 0.3, 0.5),
    (13, 124, 8, 2400, 0.8, 0.4, 1.0),
    (13, 124, 30, 4000, 0.5, 0.5, 0.7),
    (20, 20, 8, 1200, 0.5, 0.5, 0.0),
    (30, 30, 8, 2400, 0.8, 0.8, 0.5),
    (80, 15, 6, 1600, 0.3, 0.8, 0.5),
    (80, 65, 6, 2400, 0.5, 0.5, 1.0),
    (200, 200, 8, 3000, 0.5, 0.5, 0.5),
    (40, 40, 8, 1600, 0.0, 0.0, 0.5),
)


def drawn(rng: np.random.Generator, questions: int, workers: int, n: int, unequal: float):
    """The question and the worker of each vote; ``unequal``: sd of the log of workers' votes."""
    share = rng.lognormal(0, unequal, workers)
    return rng.integers(questions, size=n), rng.choice(workers, n, p=share / share.sum())


def one_way(made: Comparisons, by: str) -> Comparisons:
    """The same clustered by one of the two."""
    cluster = made.cluster if by == "question" else made.crossed
    return Comparisons(made.models, made.first, made.second, made.result, cluster)


def crowds() -> Iterator[Line]:
    """Bradley-Terry ratings and win rates of every model."""
    for i, (q, w, m, n, by_question, by_worker, unequal) in enumerate(WORLDS):
        rng = np.random.default_rng([1, i])
        strength = np.linspace(-0.8, 0.8, m)
        nodes, weights = np.polynomial.hermite_e.hermegauss(61)
        spread = math.sqrt(2 * (by_question**2 + by_worker**2))
        apart = strength[:, None] - strength[None, :]
        chance = score_rate(apart[..., None] + spread * nodes) @ (weights / weights.sum())
        games = 1.0 - np.eye(m)
        theta = maximise(games[None], (chance * games)[None])[0]
        rating = 1000 + 400 / math.log(10) * (theta - theta.mean())
        rate = (chance * games).sum(1) / (m - 1)
        held: dict[str, list[np.ndarray]] = {}
        width: dict[str, list[float]] = {}
        for _ in range(RUNS):
            question, worker = drawn(rng, q, w, n, unequal)
            first = rng.integers(m, size=n)
            second = (first + rng.integers(1, m, size=n)) % m
            likes = by_question * rng.normal(size=(q, m))
            tastes = by_worker * rng.normal(size=(w, m))
            utility = strength + likes[question] + tastes[worker]
            each = np.arange(n)
            won = rng.random(n) < score_rate(utility[each, first] - utility[each, second])
            ways = (question, worker) if q <= w else (worker, question)
            names = tuple(f"m{k:02}" for k in range(m))
            made = Comparisons(names, first, second, won.astype(float), *ways)
            by = {"both": made}
            by |= {f"  by {name} alone": Comparisons(names, first, second, won.astype(float), way)
                   for name, way in (("question", question), ("worker", worker))}  # fmt: skip
            for name, given in by.items():
                fitted = fit(given)
                low, high = fitted.low, fitted.high
                held.setdefault(f"BT, {name}", []).append((low <= rating) & (rating <= high))
                width.setdefault(f"BT, {name}", []).append(float((high - low).mean()))
                rows = Sides.of(given).by_model()
                low, high = np.array([[rows[k]["win_low"], rows[k]["win_high"]] for k in names]).T
                held.setdefault(f"win rate, {name}", []).append((low <= rate) & (rate <= high))
                width.setdefault(f"win rate, {name}", []).append(float((high - low).mean()))
        world = f"{m} models, {n} votes, sd {by_question} and {by_worker}, unequal {unequal}"
        for method, found in sorted(held.items(), key=lambda one: "alone" in one[0]):
            stated = 0.95 if "both" in method else math.nan
            mean = float(np.mean(width[method]))
            yield of(method, world, f"{q} x {w}", np.array(found), mean, stated)


def shares() -> Iterator[Line]:
    """A share of all votes, such as ties, that differs by question and by worker."""
    for i, (q, w, _, n, by_question, by_worker, unequal) in enumerate(WORLDS):
        for middle in (0.0, -2.0):
            rng = np.random.default_rng([2, i])
            nodes, weights = np.polynomial.hermite_e.hermegauss(61)
            spread = math.hypot(by_question, by_worker)
            truth = float(score_rate(middle + spread * nodes) @ (weights / weights.sum()))
            held, width = [], []
            for _ in range(400):
                question, worker = drawn(rng, q, w, n, unequal)
                own = by_question * rng.normal(size=q)[question]
                own = own + by_worker * rng.normal(size=w)[worker]
                hit = (rng.random(n) < score_rate(middle + own)).astype(float)
                row = np.zeros(n, np.intp)
                found = intervals.by_seed(row, question, hit, 1, crossed=worker)
                held.append((found.low <= truth) & (truth <= found.high))
                width.append(float(found.high[0] - found.low[0]))
            world = f"share {truth:.2f}, {n} votes, sd {by_question} and {by_worker}"
            yield of("share, both", world, f"{q} x {w}", np.array(held), float(np.mean(width)))


FAMILIES: list[Callable[[], Iterator[Line]]] = [crowds, shares]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], FAMILIES))
