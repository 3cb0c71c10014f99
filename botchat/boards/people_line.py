"""People on the rating scale: the strength that explains how models do beside people (GTEval).

The models' ratings are held as the Arena has them; the people's is the one at which the expected
results of all GTEval comparisons sum to the observed ones (maximum likelihood of Bradley-Terry in
this one number). Its interval has the error of both: what one ChatSEED adds to the sum of GTEval
and, through the ratings, to the Arena's, is taken together (sandwich clustered by seed, delta
method). A reference line, not a rank: GTEval is cut to people's length, ratings are at N.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from botchat.boards.board import Board
from botchat.boards.results import comparisons_of
from botchat.measures.statistics import student_t
from botchat.ratings.bradley_terry import UNSEEN, BradleyTerryResult, influence, score_rate, sums
from botchat.ratings.comparisons import Comparisons, distinct
from botchat.records import HUMAN
from botchat.verdicts import Floats, Indices

_STEPS = 80
"""Halvings of the search: to the last digit."""
_REACH = 60.0
"""Logits beyond the models' within which it is searched."""


class PeopleLine(NamedTuple):
    """Where people stand among the ratings of an Arena, in its points, with the 95 % interval."""

    rating: float
    low: float
    high: float


def of(board: Board) -> PeopleLine | None:
    """People on the scale of the leading Arena; ``None`` without an Arena or a finite value."""
    arena, judged = board.leading, board.evidence.values()
    asked = [one for one in judged if one.protocol.shows == "human" and one.protocol.about_ai]
    if arena is None or not asked:
        return None
    said = asked[0].verdicts
    made = comparisons_of(said.only(said.readable))
    # Their seeds are numbered as the Arena's are.
    seed_ids = [*board.evidence[arena.protocol.name].verdicts.seed_ids, *said.seed_ids]
    number = {seed_id: i for i, seed_id in enumerate(dict.fromkeys(seed_ids))}
    cluster = np.array([number[seed_id] for seed_id in said.seed_ids], dtype=np.intp)[made.cluster]
    beside = Comparisons(made.models, made.first, made.second, made.result, cluster)
    found = estimate(arena.strengths.fitted, arena.compared, beside)
    if found is None:
        return None
    rating, reach, *_ = found
    return PeopleLine(rating, rating - reach, rating + reach)


def estimate(
    fitted: BradleyTerryResult, compared: Comparisons, beside: Comparisons
) -> tuple[float, float, int, int] | None:
    """Rating of `HUMAN`, half its 95 % interval, comparisons and seeds that it is from.

    ``fitted``: the ratings, of ``compared``. ``beside``: with `HUMAN`, its clusters numbered as
    those of ``compared``; models without a rating are left out. ``None`` where people won or lost
    everything.
    """
    settings, place = fitted.settings, {name: i for i, name in enumerate(fitted.models)}
    if HUMAN not in beside.models or beside.cluster is None:
        return None
    people = beside.models.index(HUMAN)
    of_model = np.array([place.get(name, -1) for name in beside.models], dtype=np.intp)
    of_model[people] = -1
    first = beside.second == people
    model = of_model[np.where(first, beside.first, beside.second)]
    known = model >= 0
    model, result = model[known], np.where(first, beside.result, 1 - beside.result)[known]
    if not 0 < result.sum() < len(result):
        return None
    theta = fitted.logits
    strength = _solve(theta[model], float(result.sum()))
    expected = score_rate(theta[model] - strength)
    slope = expected * (1 - expected)
    weight = sums(model, slope, len(theta)) / slope.sum()
    cluster = beside.cluster[known]
    seeds = len(np.unique(cluster))
    own = (result - expected) / slope.sum()
    of_ratings, moves = influence(compared, fitted)
    if seeds < 2 or not len(of_ratings):
        # No residual tells the error of ratings that have no maximum: both are taken as apart.
        by_seed = sums(cluster, own) if seeds > 1 else own
        of_models = float(weight @ fitted.covariance @ weight / settings.elo**2)
        variance, freedom = float(by_seed @ by_seed) + of_models, max(seeds, 2) - 1
    else:
        moved = sums(cluster, -own, int(of_ratings.max()) + 1)
        moved[of_ratings] += moves @ weight / settings.elo
        n = len(np.union1d(cluster, of_ratings))
        variance = float(moved @ moved) * n / (n - 1)
        freedom = min(seeds, len(of_ratings)) - 1
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
