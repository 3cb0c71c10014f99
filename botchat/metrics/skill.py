"""Skill of judges, Peirce's score (1884): one number for how well verdicts agree with labels.

Half of the mean verdict where the label is 1, less half of that where it is -1; a verdict is 1, -1,
or 0 for a tie or an unreadable one. It is 0 for every answer that does not look, such as always
"Yes", whatever the balance of the labels, and 1 for always right. A label is 1 for the side shown
first, or for a human dialogue; labels that are ties are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from botchat.estimates import Codes, Estimate, Floats, Indices
from botchat.metrics.statistics import bootstrap, distinct, ratio, student_t
from botchat.metrics.verdicts import PairOutcome

GUESSING = ""
"""The judge that calls everything a tie; its skill is 0."""


@dataclass(frozen=True)
class SkillDifference:
    """Skill of one judge less that of another, or of guessing; NaN: not known."""

    value: float
    error: float
    """Standard error."""
    n_clusters: int
    n_items: int
    n_of_class: Sequence[int]
    """Items with the label 1, and with the label -1."""

    def __neg__(self) -> SkillDifference:
        """Return it with the other sign."""
        return replace(self, value=-self.value)

    def at(self, level: float) -> Estimate:
        """Return the difference with its two-sided interval, by Student's t of clusters - 1."""
        reach = student_t(level, max(1, self.n_clusters - 1)) * self.error
        return Estimate(self.value, self.value - reach, self.value + reach)


def skill_difference(
    item: Indices, cluster: Indices, labels: Codes, a: Codes, b: Codes
) -> SkillDifference:
    """Return the skill of judge a less that of b on the same cases; all have shape (cases,).

    ``labels``: 1 or -1. ``a``, ``b``: `PairOutcome`. The error is that of the sums of the cases'
    influences by cluster.
    """
    apart = labels * (_as_verdicts(a) - _as_verdicts(b)) / 2
    side = (labels < 0).astype(np.intp)
    n = np.bincount(side, minlength=2)
    mean = ratio(np.bincount(side, apart, 2), n)
    sums = np.bincount(distinct(cluster)[1], (apart - mean[side]) / n[side])
    variance = (sums**2).sum() * ratio(len(sums), len(sums) - 1)
    return SkillDifference(
        value=float(mean.sum()),
        error=math.sqrt(variance),
        n_clusters=len(sums),
        n_items=len(distinct(item)[0]),
        n_of_class=[len(distinct(item[side == column])[0]) for column in (0, 1)],
    )


def skill(codes: Codes, labels: Codes, item: Indices) -> Estimate:
    """Return the skill of verdicts, with labels 1 and -1."""
    up = (labels > 0).astype(np.float64)
    right = labels * _as_verdicts(codes)
    (skill,) = bootstrap(item, [up, 1 - up, right * up, right * (1 - up)], _mean_of_classes)
    return skill


def _mean_of_classes(sums: Floats) -> list[Floats]:
    """Return the mean of both classes' means, from sums of cases and of values in each class."""
    return [ratio(sums[:, 2:], sums[:, :2]).mean(1)]


SkillDifferences: TypeAlias = Mapping[tuple[str, str], SkillDifference]
"""(judge a, judge b or `GUESSING`) -> skill of a less that of b."""


def skill_differences(
    item: Indices, cluster: Indices, truth: Codes, outcomes: Mapping[str, Codes]
) -> SkillDifferences:
    """Compare every two judges where both were asked and the label is no tie.

    ``truth`` and each judge's ``outcomes``: `PairOutcome`; all arrays have shape (cases,).
    """
    labelled = np.flatnonzero(np.abs(truth) == 1)
    codes = {GUESSING: np.zeros(len(labelled), np.int8)}
    for name, outcome in outcomes.items():
        codes[name] = outcome[labelled]
    differences = {}
    for a, b in combinations(codes, 2):
        both = (codes[a] != PairOutcome.ABSENT) & (codes[b] != PairOutcome.ABSENT)
        rows = labelled[both]
        difference = skill_difference(
            item[rows], cluster[rows], truth[rows], codes[a][both], codes[b][both]
        )
        differences[a, b] = difference
        differences[b, a] = -difference
    return differences


def _as_verdicts(codes: Codes) -> Codes:
    """Return 1 or -1, and 0 for all that is neither."""
    return np.where(np.abs(codes) == 1, codes, 0).astype(np.int8)
