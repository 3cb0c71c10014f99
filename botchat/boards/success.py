"""Success rates: how far dialogues go without an utterance that is taken for AI.

Everywhere ``ends`` are `botchat.boards.protocols.ProtocolVerdicts.ends`, one row a verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from botchat.estimates import UNKNOWN, Estimate, Estimates, Flags, Floats
from botchat.metrics.statistics import LEAST, ClusteredCases, wilson
from botchat.protocols.verdicts import NOT_SAID, UNTOLD
from botchat.records import HUMAN, N_SEED


def passes(ends: pd.DataFrame, n: int | pd.Series) -> pd.Series:
    """Return 1 where there is no AI utterance up to N = ``n``, 0 where there is; NaN: not known.

    Not known: unreadable, undecided, no index in a dialogue
    longer than N, or a dialogue shorter than N without an AI utterance.
    """
    first_ai = ends["first_ai"]
    unsaid = (first_ai == NOT_SAID) & (n > N_SEED)
    is_open = (first_ai == UNTOLD) | first_ai.isna() | (unsaid & (ends["shown"] > n))
    fails = unsaid | ((first_ai > 0) & (first_ai <= n))
    known = [is_open, fails, ends["shown"] >= n]
    return pd.Series(np.select(known, [math.nan, 0.0, 1.0], math.nan), ends.index)


@dataclass(frozen=True, eq=False)
class SuccessCurve:
    """Success rate at each N; place i of both is N = i + 1.

    ``rate``: 0 to 1, nan where it is not known. ``n``: independent dialogues that it is worth.
    """

    rate: Floats
    n: Floats

    @classmethod
    def of_model(cls, ends: pd.DataFrame, longest: int) -> SuccessCurve:
        """Return the curve up to the length of the longest dialogue (Kaplan & Meier 1958).

        A dialogue that breaks off early counts as far as it goes: of all that reach N or have an AI
        utterance before. ``ends``: those that are known.
        """
        is_ai = (ends["first_ai"] > 0).to_numpy()
        # One after the last utterance was not offered; it counts as the last.
        end = ends["shown"].where(~is_ai, ends[["shown", "first_ai"]].min(axis=1)).to_numpy(np.intp)
        n = np.arange(1, longest + 1)[:, None]
        reaches = end >= n
        failed = (end <= n) & is_ai
        at_risk = reaches.sum(1)
        gone = (reaches & failed).sum(1)
        rate: Floats = np.cumprod(1 - gone / np.maximum(at_risk, 1), dtype=np.float64)
        rate[rate < 1e-12] = 0
        rate[(at_risk == 0) & (rate > 0)] = np.nan
        return cls(rate, _shares(ends, reaches | is_ai, ~failed).n)

    @classmethod
    def of_people(cls, ends: pd.DataFrame) -> SuccessCurve:
        """Return the share at each N of the human dialogues that have N utterances or more.

        They are complete at their own length, so a shorter one tells nothing of a longer; unknown
        of fewer than `LEAST`.
        """
        length, first_ai = ends[["shown", "first_ai"]].to_numpy().T
        n = np.arange(1, length.max() + 1)[:, None]
        is_known = (length >= n) & ((first_ai != NOT_SAID) | (length == n))
        index = np.minimum(first_ai, length)
        shares = _shares(ends, is_known, (index == 0) | (index > n))
        return cls(np.where(is_known.sum(1) >= LEAST, shares.value, np.nan), shares.n)

    def at(self, n: int) -> Estimate:
        """Return the success rate at N = ``n``; unknown beyond the longest dialogue."""
        if n > len(self.rate):
            return UNKNOWN
        value = float(self.rate[n - 1])
        low, high = wilson(value, 1 / self.n[n - 1])
        return Estimate(value, float(low), float(high))


def _shares(ends: pd.DataFrame, counts: Flags, passed: Flags) -> Estimates:
    """Return the share of dialogues that passed of those that count at each N, shape (N, n)."""
    row, dialogue = np.nonzero(counts)
    cluster = np.unique(ends["topic"].to_numpy(str), return_inverse=True)[1]
    hits = passed[row, dialogue].astype(np.float64)
    return ClusteredCases(row, cluster[dialogue], len(counts)).proportions(hits)


def success_curves(ends: pd.DataFrame) -> dict[str, SuccessCurve]:
    """Contestant -> its curve, up to the longest dialogue with a readable verdict."""
    known = ends[ends["first_ai"] >= 0]
    longest = known["shown"].max()
    curves = {}
    for name, of_name in known.groupby("model", sort=False):
        if name == HUMAN:
            curves[str(name)] = SuccessCurve.of_people(of_name)
        else:
            curves[str(name)] = SuccessCurve.of_model(of_name, longest)
    return curves
