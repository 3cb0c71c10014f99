"""Bradley-Terry on a board: ratings, intervals, effects of ties and of style, pairs that misfit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from botchat.boards.tables import Column, Table, explained, table, with_ends
from botchat.measures.intervals import LEAST
from botchat.ratings.bradley_terry import (
    BradleyTerryResult,
    PairFit,
    fit,
    pair_fit,
    places_by_ties,
)
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.fragility import Fragility, fragility
from botchat.ratings.style import StyleResult, fit_style
from botchat.verdicts import Floats, Indices

WORST_PAIRS = 10
"""Pairs that the table of misfit shows."""

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
    units: tuple[str, ...] = ("ChatSEEDs",)
    """What comparisons share, and errors are clustered by: one, or two that cross, the fewer first.
    """

    @property
    def unit(self) -> str:
        """The first of these."""
        return self.units[0]

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
    by_ties: Indices
    """Places with a tie as half a win, dropped and as a win for both, shape (3, m)."""
    pairs: PairFit
    style: StyleResult | None
    """``None``: the style of the dialogues was not measured."""
    fragile: Fragility | None
    """``None``: seeds are not known, or ratings have no maximum."""

    @classmethod
    def of(
        cls,
        comparisons: Comparisons,
        design: Design,
        differences: Floats | None = None,
        features: Sequence[str] = (),
    ) -> Strengths:
        """Fit at least one comparison: as they are, with ties read otherwise, and at equal style.

        ``differences``: style of the first less the second, shape (comparisons, features); rows
        that are not finite are left out.
        """
        fitted = fit(comparisons)
        style = None
        if differences is not None:
            known = np.asarray(np.isfinite(differences).all(axis=1))
            if known.any():
                style = fit_style(comparisons.only(known), differences[known], features)
        pairs, fragile = pair_fit(comparisons, fitted), fragility(comparisons, fitted)
        return cls(design, fitted, places_by_ties(comparisons), pairs, style, fragile)

    @property
    def signature(self) -> str:
        """The data and the settings, as in ``data:full|bt:ties0.5,95%,by-seed``."""
        fitted = self.fitted
        errors = "by-seed" if fitted.n_clusters else "independent"
        errors = "two-way" if fitted.n_crossed else errors
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
        """Model -> values of `COLUMNS`, those of style only where it was measured."""
        fitted, places = self.fitted, self.by_ties
        first, last = fitted.places
        found = pd.DataFrame(
            {
                # To the digits in which models that did the same are equal.
                "bt": fitted.rating.round(_EQUAL_DIGITS),
                "bt_low": fitted.low,
                "bt_high": fitted.high,
                "rank_low": first,
                "rank_high": last,
                "bt_tie_shift": np.abs(places - places[0]).max(axis=0),
                "bt_place": places[0],
                "bt_place_ties_dropped": places[1],
                "bt_place_ties_won": places[2],
            },
            index=pd.Index(fitted.models, dtype=object),
        )
        if self.style is not None:
            equal = self.style.adjusted
            found["bt_style"] = equal.rating
            found["bt_style_low"], found["bt_style_high"] = equal.low, equal.high
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
                counted = zip(
                    (fitted.n_clusters, fitted.n_crossed), self.design.units, strict=False
                )
                shared = " and ".join(f"{n:,} {unit}" for n, unit in counted if n)
                how = f"allow for the {shared} that the comparisons share"
            if fitted.n_crossed and self.few:
                how += f" (fewer than {LEAST} {self.design.unit}: read them with care)"
            said.append(
                f"Ranked by Bradley–Terry; its intervals ({level}) {how}. Places: those that "
                f"the comparisons leave open, of all models at once ({level}): behind all that are "
                "clearly better, before all that are clearly worse."
            )
        moved = list(compress(fitted.models, (self.by_ties != self.by_ties[0]).any(axis=0)))
        said.append(
            "Moved by ties: places that a model moves at most if ties are dropped or count as a "
            f"win for both{': ' + _named(moved, ', ') if moved else '; none does'}."
        )
        if self.fragile:
            said.append(f"{self.fragile.told(self.design.unit)}.")
        if self.style is not None:
            said.append(
                "At equal style: the rating that is left when the judge's taste for length and "
                "manner is taken out; not used for any rank."
            )
        return " ".join(said)

    def misfit_table(self, board: Table) -> Table | None:
        """The pairs whose results the ratings explain worst; ``None`` where none can differ."""
        pairs = self.pairs
        order = np.argsort(-np.abs(pairs.residual), kind="stable")[:WORST_PAIRS]
        worst = [i for i in order if pairs.residual[i]]
        if not worst:
            return None
        models = self.fitted.models
        columns = [
            Column("model_a", "Model", "name", getter=lambda i: models[pairs.first[i]]),
            Column("model_b", "Against", "name", getter=lambda i: models[pairs.second[i]]),
            Column("games", "Comparisons", "count", getter=lambda i: round(float(pairs.games[i]))),
            Column("observed", "Score", "rate", getter=lambda i: pairs.observed[i]),
            Column("expected", "Expected", "rate", getter=lambda i: pairs.expected[i]),
            Column("residual", "Residual", "number", getter=lambda i: pairs.residual[i],
                   meaning="observed less expected score (a tie is half), in standard errors"),
        ]  # fmt: skip
        beyond = int((np.abs(pairs.residual) > 3).sum())
        return table(
            f"{board.name}-misfit",
            f"{board.title}: pairs that one number a model does not explain",
            columns,
            worst,
            [board.signature],
            f"Misfit {pairs.misfit:.2f}: the mean square residual, about 1 where one number a "
            f"model does. {beyond} of {len(pairs.residual)} pairs are beyond ±3. "
            f"{explained(columns)}",
        )

    def fragility_table(self, board: Table) -> Table | None:
        """How few ChatSEEDs decide who is first; ``None`` where that is not known."""
        if self.fragile is None:
            return None
        columns = [
            Column("first", "First", "name"),
            Column("second", "Second", "name"),
            Column("lead", "Lead", "rating"),
            Column("seeds", self.design.unit[:1].upper() + self.design.unit[1:], "count",
                   meaning="without so many the second stands before the first; an upper bound"),
            Column("of", "Of", "count"),
        ]  # fmt: skip
        title = f"{board.title}: what decides who is first"
        return table(f"{board.name}-fragility", title, columns, [self.fragile], [board.signature])

    def style_table(self, board: Table) -> Table | None:
        """What each feature of style is worth to the judge; ``None`` where it is not measured."""
        style = self.style
        if style is None:
            return None
        worth = Column("worth", "Worth", "rating", getter=lambda i: style.coefficient[i])
        warning = f" {style.warning}." if style.warning else ""
        return table(
            f"{board.name}-style",
            f"{board.title}: what style is worth",
            [
                Column("feature", "Style", "name", getter=lambda i: style.features[i]),
                *with_ends(worth, "95 %", low=lambda i: style.low[i], high=lambda i: style.high[i]),
                Column("step", "One step", "decimal", getter=lambda i: style.scale[i]),
            ],
            range(len(style.features)),
            [board.signature],
            "Rating points that go with one step more than the other dialogue has, at equal "
            "strength; what style goes with need not be its effect. A step is the usual difference "
            "of two dialogues. Length: logarithm "
            "of the words in an utterance; repetition: share of word 4-grams said before; "
            "questions: share of utterances with one; formality: formal marks in 100 words. From "
            f"{style.adjusted.n_comparisons:,} comparisons.{warning}",
        )


def _named(names: Sequence[str], last: str) -> str:
    """Names with commas between, ``last`` before the last; those beyond `_NAMED` are counted."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return last.join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


COLUMNS = (
    *with_ends(Column("bt", "Bradley–Terry", "rating"), "95 %"),
    Column("bt_tie_shift", "Moved by ties", "count", priority=1),
    *with_ends(Column("bt_style", "At equal style", "rating", priority=1), "95 %"),
    Column("bt_place", "Place", "count", detail=True),
    Column("bt_place_ties_dropped", "Place, ties dropped", "count", detail=True),
    Column("bt_place_ties_won", "Place, ties won", "count", detail=True),
)
"""Of `Strengths.rows`."""
