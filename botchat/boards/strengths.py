"""Bradley-Terry on a board: ratings, intervals, and how the comparisons were designed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from botchat.boards.tables import Column, with_ends
from botchat.metrics.intervals import LEAST
from botchat.ratings.bradley_terry import BradleyTerryResult, fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.length import fit_at_equal_length
from botchat.verdicts import Floats

UNEVEN = 1.1
"""Greatest ratio of the comparisons of two pairs at which Elo still is as the paper defines it: up
to here, what is missing is chance (dialogues that stopped early). Above, pairs are weighted."""

_EQUAL_DIGITS = 6

_NAMED = 5
"""Most models that a sentence names."""


@dataclass(frozen=True)
class Design:
    """How many of the comparisons that a protocol has were made, readable or not."""

    made: tuple[int, ...]
    """One number for every pair of models."""
    expected: int | None
    """Comparisons that each pair should have; ``None``: votes as they came, which have no plan."""
    unit: str = "ChatSEEDs"
    """What comparisons share, and errors are clustered by."""

    @property
    def full(self) -> bool:
        """Whether every pair has all its comparisons."""
        return self.expected is None or all(made >= self.expected for made in self.made)

    @property
    def uneven(self) -> bool:
        """Whether some pairs that were compared have clearly more than the plan gives others."""
        if self.expected is None:
            return False
        compared = [made for made in self.made if made]
        return bool(compared) and max(compared) > UNEVEN * min(compared)

    @property
    def signature(self) -> str:
        """``data:full``, or the share that was made: ``data:31.2%``."""
        if self.expected is None:
            return f"data:{sum(self.made)}-votes"
        if self.full:
            return "data:full"
        share = sum(self.made) / (self.expected * len(self.made))
        return f"data:{100 * share:.1f}%"

    def note(self) -> str:
        """How complete the comparisons are, and what that means for the numbers."""
        if self.expected is None:
            met = [made for made in self.made if made]
            each = f"{min(met):,}" + f" to {max(met):,}" * (min(met) < max(met))
            return (
                f"{sum(met):,} votes on {len(met):,} of {len(self.made):,} pairs, "
                f"{each} a pair; every vote counts alike."
            )
        if self.full:
            return f"Every pair was compared as often as there are cases: {self.expected:,} times."
        least, most = min(self.made), max(self.made)
        made = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        others = "count every pair alike" if self.uneven else "depend on which pairs have more"
        return (
            f"Not every comparison was made: pairs have {made} of {self.expected:,}. "
            f"Bradley–Terry weighs a pair by what it has; Elo and the rates {others}."
        )


@dataclass(frozen=True, eq=False)
class Strengths:
    """All results of Bradley-Terry on some comparisons."""

    design: Design
    fitted: BradleyTerryResult
    equal: BradleyTerryResult | None
    """At equal length; ``None``: the lengths of the dialogues are not known."""

    @classmethod
    def of(
        cls,
        comparisons: Comparisons,
        design: Design,
        differences: Floats | None = None,
    ) -> Strengths:
        """Fit at least one comparison, as they are and at equal length.

        ``differences``: length of the first less the second; those not finite are left out.
        """
        equal = None
        if differences is not None and (known := np.isfinite(differences)).any():
            equal = fit_at_equal_length(comparisons.only(known), differences[known])
        return cls(design, fit(comparisons), equal)

    @property
    def signature(self) -> str:
        """The data and the settings, as in ``data:full|bt:ties0.5,95%,by-seed``."""
        fitted = self.fitted
        errors = "by-seed" if fitted.n_clusters else "independent"
        level = f"{100 * fitted.settings.confidence:g}%"
        return f"{self.design.signature}|bt:ties0.5,{level},{errors}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the board must know, a sentence each."""
        warning = self.fitted.warning and f"Bradley–Terry: {self.fitted.warning}."
        design = "" if self.design.full else self.design.note()
        return tuple(filter(None, (warning, self.unsettled, design)))

    @property
    def few(self) -> bool:
        """Whether the comparisons are on too few ChatSEEDs for a claim in words."""
        n = self.fitted.n_clusters
        if n is None and self.design.expected is None:
            return sum(self.design.made) < LEAST
        # Where seeds are not known: each is compared in both orders.
        return (max(self.design.made, default=0) / 2 if n is None else n) < LEAST

    @property
    def unsettled(self) -> str:
        """A sentence on the models that may all be first; "" where one is clearly best."""
        fitted = self.fitted
        order = np.argsort(-fitted.rating.round(_EQUAL_DIGITS), kind="stable")
        ahead = [fitted.models[i] for i in order if fitted.places[0][i] == 1]
        if len(ahead) < 2 or self.few:
            return ""
        return f"{_named(ahead, ' and ')} cannot be separated: each may be first."

    def rows(self) -> dict[Any, dict[Any, Any]]:
        """Model -> values of `COLUMNS`, those at equal length only where it is known."""
        fitted = self.fitted
        first, last = fitted.places
        found = pd.DataFrame(
            {
                # To the digits in which models that did the same are equal.
                "bt": fitted.rating.round(_EQUAL_DIGITS),
                "bt_low": fitted.low,
                "bt_high": fitted.high,
                "rank_low": first,
                "rank_high": last,
            },
            index=pd.Index(fitted.models, dtype=object),
        )
        if self.equal is not None:
            found["bt_length"] = self.equal.rating
            found["bt_length_low"], found["bt_length_high"] = self.equal.low, self.equal.high
        return found.to_dict("index")

    def note(self) -> str:
        """How to read the columns."""
        fitted = self.fitted
        level = f"{100 * fitted.settings.confidence:g} %"
        said = [self.design.note()]
        if fitted.warning:
            said.append(f"Bradley–Terry: {fitted.warning}.")
        else:
            how = "take the comparisons as independent"
            if fitted.n_clusters:
                shared = f"{fitted.n_clusters:,} {self.design.unit}"
                how = f"allow for the {shared} that the comparisons share"
            said.append(
                f"Ranked by Bradley–Terry; its intervals ({level}) {how}. Places: those that "
                f"the comparisons leave open, of all models at once ({level}): behind all that are "
                "clearly better, before all that are clearly worse."
            )
        if self.equal is not None:
            said.append(
                "At equal length: the rating that is left when the judge's taste for length is "
                "taken out; not used for any rank."
            )
        return " ".join(said)


def _named(names: Sequence[str], last: str) -> str:
    """Names with commas between, ``last`` before the last; those beyond `_NAMED` are counted."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return last.join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


COLUMNS = (
    *with_ends(Column("bt", "Bradley–Terry", "rating"), "95 %"),
    *with_ends(Column("bt_length", "At equal length", "rating", priority=1), "95 %"),
)
"""Of `Strengths.rows`."""
