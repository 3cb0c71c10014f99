"""Bradley-Terry on a board: ratings with intervals, what ties and style move, what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from botchat.boards.tables import Column, Table, table
from botchat.ratings.bradley_terry import (
    BradleyTerryResult,
    PairFit,
    TieSensitivity,
    pair_fit,
    tie_sensitivity,
)
from botchat.ratings.comparisons import Comparisons, Flags, Floats
from botchat.ratings.style import StyleResult, fit_style

WORST_PAIRS = 10
"""Pairs that the table of misfit shows."""

UNEVEN = 1.1
"""Comparisons of one pair for one of another from which pairs are weighed. Below, what is missing
is chance (dialogues that stopped early), and Elo stays as the paper defines it."""

_ALIKE = "count every pair alike"
_AS_IT_IS = "depend on which pairs have more"

_NAMED = 5
"""Models that a sentence names."""


@dataclass(frozen=True)
class Design:
    """Which of the comparisons that a protocol has were made, readable or not."""

    made: tuple[int, ...]
    """Of every pair of models."""
    expected: int
    """Of a pair."""
    chosen: int = 0
    """Of all: those that an adaptive design asked for."""

    @property
    def full(self) -> bool:
        """Whether every pair has all."""
        return all(made >= self.expected for made in self.made)

    @property
    def uneven(self) -> bool:
        """Whether some pairs that were compared have clearly more than others."""
        compared = [made for made in self.made if made]
        return bool(compared) and max(compared) > UNEVEN * min(compared)

    @property
    def signature(self) -> str:
        """``data:full``, or the share that was made: ``data:31.2%``, ``data:7.4%,adaptive``."""
        if self.full:
            return "data:full"
        share = sum(self.made) / (self.expected * len(self.made))
        return f"data:{100 * share:.1f}%{',adaptive' if self.chosen else ''}"

    def note(self) -> str:
        """What a reader must know of it."""
        if self.full:
            return f"Every pair was compared as often as there are cases: {self.expected:,} times."
        least, most = min(self.made), max(self.made)
        made = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"Not every comparison was made: pairs have {made} of {self.expected:,}{self._how()}. "
            "Bradley–Terry weighs a pair by what it has; Elo and the rates "
            f"{_ALIKE if self.uneven else _AS_IT_IS}."
        )

    def _how(self) -> str:
        made = sum(self.made)
        if not self.chosen:
            return ""
        which = "they were" if self.chosen >= made else f"{self.chosen:,} of {made:,} were"
        return f"; {which} chosen adaptively, most where the order of two models was in doubt"


@dataclass(frozen=True, eq=False)
class Strengths:
    """Everything that Bradley-Terry says about some comparisons."""

    design: Design
    ties: TieSensitivity
    pairs: PairFit
    style: StyleResult | None
    """``None``: the dialogues were not measured."""

    @classmethod
    def of(
        cls,
        comparisons: Comparisons,
        design: Design,
        differences: Floats | None = None,
        features: Sequence[str] = (),
    ) -> Strengths:
        """Fit, and fit again with other readings.

        Args:
            comparisons: at least one.
            design: how they were chosen.
            differences: style of the first dialogue less that of the second, a row a comparison;
                rows that are not finite are left out.
            features: its columns.
        """
        ties = tie_sensitivity(comparisons)
        style = None
        if differences is not None:
            known = np.asarray(np.isfinite(differences).all(axis=1))
            if known.any():
                style = fit_style(_only(comparisons, known), differences[known], features)
        return cls(design, ties, pair_fit(comparisons, ties.half), style)

    @property
    def fitted(self) -> BradleyTerryResult:
        """The ratings: a tie is half a win."""
        return self.ties.half

    @property
    def signature(self) -> str:
        """From what and how they were made: ``data:full|bt:ties0.5,95%,by-seed``."""
        fitted = self.fitted
        errors = "by-seed" if fitted.n_clusters else "independent"
        level = f"{100 * fitted.settings.confidence:g}%"
        return f"{self.design.signature}|bt:ties0.5,{level},{errors}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the board must say of them, a sentence each."""
        warned = [f"Bradley–Terry: {self.fitted.warning}."] if self.fitted.warning else []
        return (*warned, *([] if self.design.full else [self.design.note()]))

    def rows(self) -> dict[str, dict[str, Any]]:
        """Model -> values of `COLUMNS`."""
        fitted, places = self.fitted, self.ties.places
        values: dict[str, Any] = {
            "bt": fitted.rating,
            "bt_low": fitted.low,
            "bt_high": fitted.high,
            "bt_group": fitted.rank,
            "bt_tie_shift": np.abs(places - places[0]).max(axis=0),
            "bt_place": places[0],
            "bt_place_ties_dropped": places[1],
            "bt_place_ties_won": places[2],
        }
        found = {
            model: {key: column[i].item() for key, column in values.items()}
            for i, model in enumerate(fitted.models)
        }
        if self.style is not None:
            adjusted = self.style.adjusted
            for i, model in enumerate(adjusted.models):
                found[model] |= {
                    "bt_style": adjusted.rating[i].item(),
                    "bt_style_low": adjusted.low[i].item(),
                    "bt_style_high": adjusted.high[i].item(),
                }
        return found

    def note(self) -> str:
        """How a reader reads the columns."""
        fitted = self.fitted
        level = f"{100 * fitted.settings.confidence:g} %"
        if fitted.warning:
            intervals = f"Bradley–Terry: {fitted.warning}."
        else:
            how = (
                f"allow for the {fitted.n_clusters:,} ChatSEEDs that the comparisons share"
                if fitted.n_clusters
                else "take the comparisons as independent"
            )
            intervals = (
                f"Bradley–Terry intervals ({level}) {how}; group: 1 + the number of models that "
                "are clearly better."
            )
        moved = [
            model for model, moves in zip(fitted.models, self.ties.moved, strict=True) if moves
        ]
        shift = (
            "Moved by ties: places that a model moves at most if ties are dropped or count as a "
            f"win for both{': ' + _listed(moved) if moved else '; none does'}."
        )
        style = (
            ""
            if self.style is None
            else " At equal style: the rating that is left when the judge's taste for length and "
            "manner is taken out; not used for any rank."
        )
        return f"{self.design.note()} {intervals} {shift}{style}"

    def misfit_table(self, name: str, title: str, signature: str) -> Table | None:
        """The pairs whose results the ratings explain worst; ``None`` where none can differ."""
        pairs = self.pairs
        order = np.argsort(-np.abs(pairs.residual), kind="stable")[:WORST_PAIRS]
        models = self.fitted.models
        rows = [
            {
                "model_a": models[pairs.first[i]],
                "model_b": models[pairs.second[i]],
                "games": round(float(pairs.games[i])),
                "observed": pairs.observed[i].item(),
                "expected": pairs.expected[i].item(),
                "residual": pairs.residual[i].item(),
            }
            for i in order
            if pairs.residual[i]
        ]
        if not rows:
            return None
        beyond = int((np.abs(pairs.residual) > 3).sum())
        return table(
            name,
            f"{title}: pairs that one number a model does not explain",
            _MISFIT,
            rows,
            [signature],
            f"Misfit {pairs.misfit:.2f}: the mean square residual, about 1 where one number a "
            f"model does. {beyond} of {len(pairs.residual)} pairs are beyond ±3. Residual: "
            "observed less expected score (a tie is half), in standard errors.",
        )

    def style_table(self, name: str, title: str, signature: str) -> Table | None:
        """What the judge gives for each feature of style; ``None`` where it is not measured."""
        style = self.style
        if style is None:
            return None
        rows = [
            {
                "feature": feature,
                "worth": style.coefficient[i].item(),
                "worth_low": style.low[i].item(),
                "worth_high": style.high[i].item(),
                "step": style.scale[i].item(),
            }
            for i, feature in enumerate(style.features)
        ]
        warning = f" {style.warning}." if style.warning else ""
        return table(
            name,
            f"{title}: what style is worth",
            _STYLE,
            rows,
            [signature],
            "Rating points that the judge gives a dialogue for one step more than the other has, "
            "at equal strength; a step is the usual difference of two dialogues. Length: logarithm "
            "of the words in an utterance; repetition: share of word 4-grams said before; "
            "questions: share of utterances with one; formality: formal marks in 100 words. From "
            f"{style.adjusted.n_comparisons:,} comparisons.{warning}",
        )


COLUMNS = (
    Column("bt", "Bradley–Terry", "rating"),
    Column("bt_low", "95 % low", "rating"),
    Column("bt_high", "95 % high", "rating"),
    Column("bt_group", "Group", "count"),
    Column("bt_tie_shift", "Moved by ties", "count"),
    Column("bt_style", "At equal style", "rating"),
    Column("bt_style_low", "95 % low", "rating"),
    Column("bt_style_high", "95 % high", "rating"),
    Column("bt_place", "Place", "count", detail=True),
    Column("bt_place_ties_dropped", "Place, ties dropped", "count", detail=True),
    Column("bt_place_ties_won", "Place, ties won", "count", detail=True),
)
"""Of an Arena's standing."""

_MISFIT = (
    Column("model_a", "Model", "name"),
    Column("model_b", "Against", "name"),
    Column("games", "Comparisons", "count"),
    Column("observed", "Score", "rate"),
    Column("expected", "Expected", "rate"),
    Column("residual", "Residual", "number"),
)

_STYLE = (
    Column("feature", "Style", "name"),
    Column("worth", "Worth", "rating"),
    Column("worth_low", "95 % low", "rating"),
    Column("worth_high", "95 % high", "rating"),
    Column("step", "One step", "decimal"),
)


def _only(comparisons: Comparisons, kept: Flags) -> Comparisons:
    cluster = comparisons.cluster
    return Comparisons(
        comparisons.models,
        comparisons.first[kept],
        comparisons.second[kept],
        comparisons.result[kept],
        None if cluster is None else cluster[kept],
    )


def _listed(models: Sequence[str]) -> str:
    more = len(models) - _NAMED
    return ", ".join(models[:_NAMED]) + (f" and {more} more" if more > 0 else "")
