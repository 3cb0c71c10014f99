"""Why a model fails, without asking a judge: what its dialogues show that people's do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from botchat.boards.tables import Column, Table, table
from botchat.interfaces import Row
from botchat.measures.flags import CRITERIA, MEASURES, Measured, Survey
from botchat.measures.statistics import Floats, Indices
from botchat.records import Verdict

NAMES: Mapping[str, str] = {
    "ai_phrases": "says it is an AI",
    "exact_repeat": "repeats utterances",
    "closing_chain": "closing loop",
    "layout_marks": "layout marks",
    "words": "too long",
    "verbatim_run": "repeats itself",
    "overlap": "same content again",
    "drift": "loses the thread",
    "formality": "formal tone",
}
"""Criterion of `botchat.measures.flags` -> the failing in a few words."""

_USUAL = 0.01
"""Share of the set's people that each criterion accuses."""
_TOLD = 2
"""Failings that are told of a contestant."""


def flags(survey: Survey, n_seeds: int, signature: str) -> Table:
    """Shares of flagged dialogues by criterion, and the measures that explain them; fewest first.

    Args:
        survey: of the set's contestants.
        n_seeds: size of the set.
        signature: how they were measured.
    """
    rows = [_row(name, found) for name, found in survey.measured.items()]
    rows.sort(key=lambda row: (math.isnan(row["flagged"]), row["flagged"], row["model"]))
    part = "".join(f" {note}" for note in notes(survey, n_seeds))
    return table(
        "flags",
        "Flags: why dialogues fail",
        _COLUMNS,
        rows,
        [signature],
        "Without a judge: dialogues with an utterance that does what at most 1 % of the set's "
        "people do, in percent, and by what. Loop from: median first utterance of a closing loop. "
        "Repeated: word 4-grams said before; growth: length of the second half over the first; the "
        f"other measures are means over dialogues.{part}",
    )


def notes(survey: Survey, n_seeds: int) -> Iterator[str]:
    """A sentence where not all of a set was measured."""
    if survey.n_seeds < n_seeds:
        yield (
            f"Flags and style are measured on {survey.n_seeds:,} of {n_seeds:,} seeds, "
            "spread evenly."
        )


def agreement(
    survey: Survey,
    verdicts: Mapping[str, Mapping[str, Verdict | None]],
    signatures: Sequence[str],
) -> Table | None:
    """The first flag beside the utterance that the judge accuses; ``None`` if it accuses nowhere.

    Args:
        survey: of the set's contestants.
        verdicts: contestant -> seed id -> UniEval verdict, one that it offers.
        signatures: of the measures and of the verdicts.
    """
    rows: list[Row] = []
    for name, found in survey.measured.items():
        said = verdicts.get(name, {})
        flagged = _first_of_any(found)
        both = [
            (first, 0 if verdict == "No" else int(verdict))
            for seed_id, first in zip(found.seed_ids, flagged.tolist(), strict=True)
            if (verdict := said.get(seed_id)) is not None
        ]
        if both:
            rows.append({"model": name, **_agreement(np.array(both))})
    if not rows:
        return None
    rows.sort(key=lambda row: (-row["same"] - row["neither"], row["model"]))
    return table(
        "flags-judge",
        "Flags beside the judge",
        _AGREEMENT,
        rows,
        signatures,
        "In percent of the dialogues with a readable UniEval verdict: the first flag is at the "
        "utterance that the judge accuses, at most one utterance away (the same included), or "
        "neither accuses. The rest: only one of them does, or both do further apart.",
    )


def _row(name: str, found: Measured) -> dict[str, Any]:
    ever = found.first > 0
    shares = dict(zip(CRITERIA, _means(ever), strict=True))
    means = dict(zip(MEASURES, _means(found.measures), strict=True))
    told = sorted((c for c in CRITERIA if shares[c] > _USUAL), key=lambda c: -shares[c])[:_TOLD]
    of = {key: found.measures[:, MEASURES.index(key)] for key in ("closing_loop", "ai_phrases")}
    loops = of["closing_loop"][~np.isnan(of["closing_loop"])]
    n = len(found.seed_ids)
    return {
        "model": name,
        "measured": n,
        "flagged": float(ever.any(axis=1).mean()) if n else math.nan,
        "why": ", ".join(f"{NAMES[c]} {100 * shares[c]:.0f} %" for c in told) or None,
        **shares,
        **{f"first_{c}": _median(found.first[:, i]) for i, c in enumerate(CRITERIA)},
        "first_flag": _median(_first_of_any(found)),
        "loop_share": len(loops) / n if n else math.nan,
        "loop_from": float(np.median(loops)) if len(loops) else math.nan,
        "ai_share": float((of["ai_phrases"] > 0).mean()) if n else math.nan,
        **{key: means[key] for key in (*_MEANS, "length_growth", "mean_words")},
    }


def _agreement(both: Any) -> dict[str, float | int]:
    flag, judge = both.T
    accused = (flag > 0) & (judge > 0)
    return {
        "readable": len(both),
        "same": float((accused & (flag == judge)).mean()),
        "near": float((accused & (np.abs(flag - judge) <= 1)).mean()),
        "neither": float(((flag == 0) & (judge == 0)).mean()),
        "only_judge": float(((flag == 0) & (judge > 0)).mean()),
        "only_flags": float(((flag > 0) & (judge == 0)).mean()),
    }


def _first_of_any(found: Measured) -> Indices:
    """First flagged utterance of each dialogue, 0 for none."""
    none = np.iinfo(np.intp).max
    first = np.where(found.first > 0, found.first, none).min(axis=1, initial=none)
    return np.where(first == none, 0, first)


def _means(columns: Any) -> list[float]:
    """Mean of each column without what is nan; nan where nothing is left."""
    values = np.asarray(columns, dtype=np.float64)
    known = ~np.isnan(values)
    total = np.where(known, values, 0).sum(axis=0)
    n = known.sum(axis=0)
    means: Floats = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    return list(means.tolist())


def _median(first: Indices) -> float:
    flagged = first[first > 0]
    return float(np.median(flagged)) if len(flagged) else math.nan


_MEANS: Mapping[str, tuple[str, bool]] = {
    "distinct_2": ("Distinct 2-grams", False),
    "repetition_rate": ("Repeated", False),
    "exact_rate": ("Repeated utterances", True),
    "max_overlap": ("Greatest overlap", True),
    "question_rate": ("Questions", False),
    "long_word_share": ("Long words", False),
    "contraction_share": ("Contractions", False),
    "layout_share": ("Laid out", True),
    "emoji_share": ("Emoji", True),
}
"""Measures that are shares: heading, and whether for machines only."""

_COLUMNS = (
    Column("model", "Model", "name"),
    Column("flagged", "Flagged", "rate"),
    Column("why", "Most often", "name"),
    Column("first_flag", "First flag", "number"),
    *(Column(criterion, name[0].upper() + name[1:], "rate") for criterion, name in NAMES.items()),
    Column("loop_share", "Closing loops", "rate", detail=True),
    Column("loop_from", "Loop from", "number"),
    Column("ai_share", "AI phrases", "rate", detail=True),
    *(Column(key, heading, "rate", detail) for key, (heading, detail) in _MEANS.items()),
    Column("length_growth", "Growth", "decimal"),
    Column("mean_words", "Mean words", "number", detail=True),
    Column("measured", "Dialogues", "count"),
    *(
        Column(f"first_{criterion}", f"First: {name}", "number", detail=True)
        for criterion, name in NAMES.items()
    ),
)

_AGREEMENT = (
    Column("model", "Model", "name"),
    Column("same", "Same utterance", "rate"),
    Column("near", "Within one", "rate"),
    Column("neither", "Neither accuses", "rate"),
    Column("only_judge", "Only the judge", "rate"),
    Column("only_flags", "Only a flag", "rate"),
    Column("readable", "Dialogues", "count"),
)
