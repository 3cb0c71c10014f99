"""People on the rating scale: the strength that explains how models do beside people (GTEval).

The models' ratings are held as the Arena has them; the people's is the one at which the expected
results of all GTEval comparisons sum to the observed ones (maximum likelihood of Bradley-Terry in
this one number). Its interval has the error of both: what one ChatSEED adds to the sum of GTEval
and, through the ratings, to the Arena's, is taken together (sandwich clustered by seed, delta
method). A reference line, not a rank: GTEval is cut to people's length, ratings are at N.

``people_line.of(board)`` gives a `PeopleLine` or ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from botchat.boards.board import Board
from botchat.boards.protocols import Evidence
from botchat.boards.results import comparisons_of
from botchat.measures.statistics import student_t
from botchat.ratings.bradley_terry import (
    UNSEEN,
    BradleyTerryResult,
    curvature,
    score_rate,
    scores_by_cluster,
    sums,
    tables,
)
from botchat.ratings.comparisons import Comparisons, distinct
from botchat.records import HUMAN
from botchat.verdicts import Floats, Indices

_STEPS = 80
"""Halvings of the search: to the last digit."""
_REACH = 60.0
"""Logits beyond the models' within which it is searched."""


@dataclass(frozen=True)
class PeopleLine:
    """Where people stand among the ratings of an Arena, in its points."""

    rating: float
    low: float
    high: float
    """Ends of the 95 % interval."""
    comparisons: int
    """Readable ones of a model beside people."""
    seeds: int
    """ChatSEEDs that they are on."""
    n: int | None
    """N of the Arena."""


def of(board: Board) -> PeopleLine | None:
    """People on the scale of the leading Arena; ``None`` without an Arena or a finite value."""
    arena = board.leading
    beside = next(
        (e for e in board.evidence.values() if e.protocol.shows == "human" and e.protocol.about_ai),
        None,
    )
    if arena is None or beside is None:
        return None
    verdicts = board.evidence[arena.protocol.name].verdicts
    number = {seed_id: i for i, seed_id in enumerate(verdicts.seed_ids)}
    found = estimate(arena.strengths.ties.half, arena.compared, *_beside(beside, number))
    if found is None:
        return None
    rating, reach, n, seeds = found
    return PeopleLine(rating, rating - reach, rating + reach, n, seeds, arena.protocol.n)


def _beside(judged: Evidence, number: Mapping[str, int]) -> tuple[Comparisons, ...]:
    """The comparisons with people, their seeds numbered as the Arena's are."""
    made = comparisons_of(judged.verdicts.only(judged.verdicts.readable))
    assert made.cluster is not None
    numbers = dict(number)
    of_seed = [numbers.setdefault(i, len(numbers)) for i in judged.verdicts.seed_ids]
    cluster = np.array(of_seed, dtype=np.intp)[made.cluster]
    return (Comparisons(made.models, made.first, made.second, made.result, cluster),)


def estimate(
    fitted: BradleyTerryResult, compared: Comparisons, beside: Comparisons
) -> tuple[float, float, int, int] | None:
    """Rating of `HUMAN`, half its 95 % interval, comparisons and seeds that it is from.

    ``fitted``: the ratings, of ``compared``. ``beside``: with `HUMAN`, its clusters numbered as
    those of ``compared``; models without a rating are left out. ``None`` where people won or lost
    everything.
    """
    settings, place = fitted.settings, {name: i for i, name in enumerate(fitted.models)}
    if HUMAN not in beside.models:
        return None
    people = beside.models.index(HUMAN)
    of_model = np.array(
        [-1 if name == HUMAN else place.get(name, -1) for name in beside.models], dtype=np.intp
    )
    first = beside.second == people
    model = of_model[np.where(first, beside.first, beside.second)]
    known = model >= 0
    model, result = model[known], np.where(first, beside.result, 1 - beside.result)[known]
    if not 0 < result.sum() < len(result):
        return None
    theta = (fitted.rating - settings.mean) / settings.elo
    strength = _solve(theta[model], float(result.sum()))
    expected = score_rate(theta[model] - strength)
    slope = expected * (1 - expected)
    weight = sums(model, slope, len(theta)) / slope.sum()
    cluster = np.zeros(0, dtype=np.intp) if beside.cluster is None else beside.cluster[known]
    seeds = len(np.unique(cluster))
    own = (result - expected) / slope.sum()
    shared = compared.cluster
    if fitted.n_clusters is None or shared is None or seeds < 2:
        # No residual tells the error of ratings that have no maximum: both are taken as apart.
        by_seed = sums(cluster, own) if seeds > 1 else own
        variance = float(by_seed @ by_seed) + float(
            weight @ fitted.covariance @ weight / settings.elo**2
        )
        freedom = max(seeds, 2) - 1
    else:
        size = int(max(cluster.max(), shared.max())) + 1
        moved = sums(cluster, -own, size) + _influence(compared, theta, size) @ weight
        there = np.bincount(cluster, minlength=size) + np.bincount(shared, minlength=size) > 0
        n = int(there.sum())
        variance = float(moved @ moved) * n / (n - 1)
        freedom = min(seeds, fitted.n_clusters) - 1
    variance += _unseen(own, slope, model, cluster if seeds > 1 else np.arange(len(own)))
    reach = settings.elo * student_t(settings.confidence, freedom) * float(np.sqrt(variance))
    return settings.mean + settings.elo * strength, reach, len(result), seeds


def _unseen(own: Floats, chance: Floats, model: Indices, seed: Indices) -> float:
    """What the variance lacks to be that of `UNSEEN` seeds of each model, all alike on a seed.

    As of the ratings themselves (`bradley_terry`): results that do not vary are not certain.
    ``own``: what each case adds; ``chance``: the variance of its result.
    """
    m = int(model.max()) + 1
    cells, cell = distinct(seed * m + model)
    of_model = cells % m
    seen = sums(of_model, sums(cell, own) ** 2, m)
    spread = sums(of_model, sums(cell, np.sqrt(chance)) ** 2, m) / chance.sum() ** 2
    wanted = spread * np.minimum(1.0, UNSEEN / np.maximum(1, np.bincount(of_model, minlength=m)))
    return float(np.maximum(0.0, wanted - seen).sum())


def _solve(theta: Floats, won: float) -> float:
    """The strength at which models of these strengths are expected to win so much."""
    low, high = theta.min() - _REACH, theta.max() + _REACH
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if score_rate(theta - middle).sum() > won else (low, middle)
    return float(low + high) / 2


def _influence(compared: Comparisons, theta: Floats, size: int) -> Floats:
    """How far each seed moves each rating, in logits, shape (size, m)."""
    games, _ = tables(compared, 1.0)
    bread = np.linalg.inv(curvature(games[None], theta[None], np.zeros(1, dtype=bool))[0])
    residual = compared.result - score_rate(theta[compared.first] - theta[compared.second])
    moves = scores_by_cluster(compared, residual) @ bread
    found = np.zeros((size, len(theta)))
    assert compared.cluster is not None
    found[np.unique(compared.cluster)] = moves - moves.mean(axis=1, keepdims=True)
    return found
