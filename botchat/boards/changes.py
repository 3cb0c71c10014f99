"""Changes of models between two boards: success on the seeds that both have, and who fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from botchat.estimates import Floats, Indices
from botchat.metrics.statistics import holm, sign_flip
from botchat.protocols.verdicts import NOT_SAID


def success_changes(
    old: Mapping[str, int | None],
    new: Mapping[str, int | None],
    n: int,
    largest: int,
    topics: Mapping[str, str],
) -> tuple[Floats, Indices]:
    """Return success at N after less before on each seed known on both, and its cluster.

    ``old``, ``new``: seed id -> index of the first AI utterance; 0 if none, None if unknown.
    ``largest``: the largest N of the boards. ``topics``: seed id -> topic, where it has one.
    """
    seeds = sorted(old.keys() & new.keys())
    before = np.array([_success(old[seed], n, largest) for seed in seeds])
    changes = np.array([_success(new[seed], n, largest) for seed in seeds]) - before
    known = np.isfinite(changes)
    names = [topics.get(seed, seed) for seed in seeds]
    return changes[known], np.unique(names, return_inverse=True)[1][known]


def _success(index: int | None, n: int, largest: int) -> float:
    """Return whether a dialogue has no AI utterance up to N, given the ``index`` of the first."""
    if index is None or index < 0 or (index == NOT_SAID and n < largest):
        return np.nan
    return float(index != NOT_SAID and not 0 < index <= n)


def p_fell(changes: Floats, cluster: Indices) -> float:
    """Return the one-sided p that a model did not fall: where it did, half of the two-sided one."""
    sums = np.asarray(np.bincount(cluster, changes), np.float64)
    if changes.sum() < 0:
        return sign_flip(sums) / 2
    return 1.0


def p_values(tests: Sequence[tuple[str, Floats, Indices]]) -> dict[str, float]:
    """Return model -> p that it did not fall in any of its tests, where it has a seed (Holm).

    ``tests``: a model, and `success_changes` at one N.
    """
    known = [test for test in tests if len(test[1])]
    corrected = holm([p_fell(changes, cluster) for _, changes, cluster in known])
    p: dict[str, float] = {}
    for (name, _, _), value in zip(known, corrected, strict=True):
        p[name] = min(value, p.get(name, 1.0))
    return p
