"""Survival of dialogues until UniEval accuses them: Kaplan-Meier over utterances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from botchat.interfaces import Row
from botchat.metrics.annotations import NOT_SAID, accused_index
from botchat.metrics.intervals import entries, of_share
from botchat.records import HUMAN, Dialogues, Judgment
from botchat.verdicts import Floats, Indices


@dataclass(frozen=True, eq=False)
class Curve:
    """Survival by utterance (Kaplan & Meier 1958); all of shape (n,), place i is utterance i + 1.

    ``at_risk``: dialogues that reach the utterance unaccused. ``accused``: dialogues whose first
    accused utterance it is. ``surviving``: share of dialogues not accused up to and including it,
    0 to 1; nan after the last utterance of the longest dialogue.
    """

    at_risk: Indices
    accused: Indices
    surviving: Floats

    def reached(self, share: float) -> int | None:
        """The first utterance after which at most ``share`` survives, or ``None``."""
        found = np.flatnonzero(self.surviving <= share + 1e-12)
        return int(found[0]) + 1 if len(found) else None

    def at(self, n: int, key: str) -> Row:
        """The share that survives utterance ``n`` by key, with Wilson's interval.

        It is that of as many dialogues as reach the utterance or were accused before.
        """
        if n > len(self.surviving) or math.isnan(value := float(self.surviving[n - 1])):
            return entries(key, *[math.nan] * 3)
        known = int(self.accused[: n - 1].sum() + self.at_risk[n - 1])
        return entries(key, value, *of_share(value * known, known))


def estimate(ends: Iterable[tuple[int, bool]], n: int) -> Curve:
    """The curve of dialogues, the longest of which has ``n`` utterances.

    ``ends``: of each, the first accused utterance and true, or the last one and false.
    """
    listed = list(ends)
    accused, unaccused = (
        np.bincount([end for end, how in listed if how is one], minlength=n + 1)[1 : n + 1]
        for one in (True, False)
    )
    leaving = accused + unaccused
    at_risk = leaving.sum() - np.cumsum(leaving) + leaving
    surviving: Floats = np.cumprod(1 - accused / np.maximum(at_risk, 1), dtype=np.float64)
    surviving[surviving < 1e-12] = 0
    surviving[(at_risk == 0) & (surviving > 0)] = math.nan
    return Curve(at_risk, accused, surviving)


def curves(judgments: Iterable[Judgment], dialogues: Dialogues) -> dict[str, Curve]:
    """Contestant -> its curve, up to the longest dialogue with a readable UniEval judgment.

    A model's dialogue that ends unaccused counts as far as it goes; a human one has passed.
    """
    ends: dict[str, list[tuple[int, bool]]] = {}
    longest = 0
    for judgment in judgments:
        (name,) = judgment.contestants
        if judgment.verdict is None:
            continue
        n = len(dialogues[name][judgment.seed_id].utterances)
        accused = accused_index(judgment.verdict, f"{name} on seed {judgment.seed_id}")
        # An index after the last utterance was not offered; it counts as the last one.
        last = n if accused == NOT_SAID else min(n, accused or n)
        ends.setdefault(name, []).append((last, accused > 0))
        longest = max(longest, n)
    passed = [(end if accused else longest, accused) for end, accused in ends.get(HUMAN, ())]
    ends |= {HUMAN: passed} if passed else {}
    return {name: estimate(found, longest) for name, found in ends.items()}
