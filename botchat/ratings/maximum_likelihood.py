"""The maximum of Bradley-Terry likelihoods: Newton's method on tables of pairs, many at once.

A table is two (m, m) arrays: ``games``, how often two models were compared, and ``score``, what
the row's model scored against the column's. Strengths are logits: i scores against j at the rate
1 / (1 + exp(t_j - t_i)).
"""

from __future__ import annotations

import numpy as np

from botchat.ratings.comparisons import TIE, Comparisons, Flags, Floats, Indices

_MAX_STEPS = 100
_STEP_TOLERANCE = 1e-10
"""Logits; 2e-8 Elo."""


def weights(comparisons: Comparisons, tie_weight: float) -> Floats:
    """What each comparison counts for: ``tie_weight`` for a tie, else 1. Shape (n,)."""
    return np.where(comparisons.outcome == TIE, tie_weight, 1.0)


def sums(place: Indices, values: Floats, size: int = 0) -> Floats:
    """Sum of the values at each place 0..size-1, or of as many places as there are."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), dtype=np.float64)


def tables(comparisons: Comparisons, tie_weight: float) -> tuple[Floats, Floats]:
    """Weighted ``games`` and ``score`` of each pair of models, shape (m, m) each."""
    m = len(comparisons.models)
    pair = comparisons.first * m + comparisons.second
    weight = weights(comparisons, tie_weight)
    games = sums(pair, weight, m * m).reshape(m, m)
    won = sums(pair, weight * comparisons.outcome, m * m).reshape(m, m)
    return games + games.T, won + (games - won).T


def score_rate(difference: Floats) -> Floats:
    """Expected score at a difference in logits, any shape."""
    return 0.5 + 0.5 * np.tanh(0.5 * difference)


def maximise(games: Floats, score: Floats, start: Floats | None = None) -> Floats:
    """Logits of greatest likelihood for a batch of tables, shape (batch, m).

    A table without a finite maximum (`has_maximum`) gets one tie of each model with an average
    one. ``start``: logits to begin with, shape (1, m).
    Newton's steps are damped as for generalised self-concordant functions (Sun & Tran-Dinh 2019):
    one that would change differences by up to d is taken log(1 + d) / d of the way, which always
    ascends.
    """
    batch, m = games.shape[:2]
    ties = ~has_maximum(score)
    theta = np.zeros((batch, m)) if start is None else np.repeat(start, batch, axis=0)
    for _ in range(_MAX_STEPS):
        rate = score_rate(theta[:, :, None] - theta[:, None, :])
        slope = (score - games * rate).sum(axis=2) - ties[:, None] * (score_rate(theta) - 0.5)
        step = np.linalg.solve(curvature(games, theta, ties), slope[:, :, None])[:, :, 0]
        change = np.ptp(step, axis=1)
        theta += (np.log1p(change) / np.maximum(change, 1e-300))[:, None] * step
        if bool((change < _STEP_TOLERANCE).all()):
            break
    return theta


def curvature(games: Floats, theta: Floats, ties: Flags) -> Floats:
    """Minus the Hessian of the log-likelihood, made invertible, shape (batch, m, m).

    ``ties``: tables with the tie that makes a maximum, shape (batch,).
    Logits are free up to a constant: a constant is added that fixes that direction and touches no
    other. The tiny ridge keeps pairs that are all but decided from being singular; it can slow a
    step of Newton's but cannot move where the steps lead.
    """
    m = theta.shape[1]
    rate = score_rate(theta[:, :, None] - theta[:, None, :])
    weight = games * rate * (1 - rate)
    own = score_rate(theta)
    diagonal = weight.sum(axis=2) + ties[:, None] * own * (1 - own)
    level = diagonal.mean(axis=1, keepdims=True)
    matrix = level[:, :, None] / m - weight
    each = np.arange(m)
    matrix[:, each, each] += diagonal + 1e-11 * level
    return np.asarray(matrix)


def has_maximum(score: Floats) -> Flags:
    """Whether each table of a batch has a finite maximum of likelihood, shape (batch,).

    It has one exactly if every model took a point from every other, directly or through a chain
    of models (Ford 1957).
    """
    took = score > 0
    return np.asarray(_reached(took).all(axis=1) & _reached(took.swapaxes(1, 2)).all(axis=1))


def why_no_maximum(models: tuple[str, ...], score: Floats) -> str:
    """One line on why a table, shape (m, m), has no finite maximum, or "" where it has one."""
    if has_maximum(score[None])[0]:
        return ""
    took = score > 0
    kept = "; one tie of each with an average model was added to keep ratings finite"
    group = _reached((took | took.T)[None])[0]
    if not group.all():
        return (
            f"{_named(models, group)} and {_named(models, ~group)} were never compared with each"
            f" other, not even through other models: their ratings do not compare{kept}"
        )
    reach = np.stack([_reached(took[None], model)[0] for model in range(len(models))])
    said = []
    for reaches, what in ((reach, "won"), (reach.T, "lost")):
        # One that reaches all who reach it: nobody outside its circle took a point from it.
        apart = np.flatnonzero((reaches >= reaches.T).all(axis=1))[0]
        group = reach[apart] & reach[:, apart]
        said.append(f"{_named(models, group)} {what} every comparison with the others")
    return f"{' and '.join(said)}: how far apart they are is not known{kept}"


def _reached(edges: Flags, start: int = 0) -> Flags:
    """Which models a chain of edges from ``start`` leads to, shape (batch, m)."""
    reached = np.zeros(edges.shape[:2], dtype=bool)
    reached[:, start] = True
    while True:
        more = reached | (edges & reached[:, :, None]).any(axis=1)
        if (more == reached).all():
            return reached
        reached = more


def _named(models: tuple[str, ...], chosen: Flags, most: int = 5) -> str:
    names = [models[i] for i in np.flatnonzero(chosen)]
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
