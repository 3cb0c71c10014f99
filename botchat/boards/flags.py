"""What dialogues show without a judge: flags, measures that explain them, and lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from botchat.boards.names import elided
from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.interfaces import Row
from botchat.languages import ENGLISH, Language
from botchat.measures import lengths
from botchat.measures.annotations import NOT_SAID, accused_index
from botchat.measures.flags import CRITERIA, MEASURES, Measured, Survey
from botchat.measures.intervals import LEAST, entries, mean, of_share, share
from botchat.measures.memory import memory
from botchat.measures.statistics import LEVEL
from botchat.records import HUMAN, Verdict
from botchat.verdicts import Indices

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
"""Criterion of `botchat.measures.flags` -> what it finds, in a few words."""

USUAL = 0.01
"""Share of the human dialogues that a criterion flags; only more than this is named as a reason."""
_NAMED = 60
"""Most letters of the names of seeds in a sentence."""
_TOLD = 2
"""Most reasons that are named for a contestant."""


@lru_cache(maxsize=1)  # the same for all judges of a set
def flags(survey: Survey, n_seeds: int, signature: str, language: Language = ENGLISH) -> Table:
    """Shares of flagged dialogues by criterion, and what explains them; the fewest flags first.

    ``n_seeds``: size of the set, of which the survey may have measured a part.
    """
    rows = [_row(*one) | _memory(*one, survey, language) for one in survey.measured.items()]
    rows.sort(key=lambda row: (row["flagged"] is None, row["flagged"] or 0, row["model"]))
    part = "".join(f" {note}" for note in _in_part(survey, n_seeds))
    return table(
        "flags",
        "Flags: why dialogues fail",
        _COLUMNS,
        rows,
        [signature],
        "Without a judge: dialogues with an utterance that does what at most 1 % of the set's "
        f"people do, in percent, and by what. {explained([_LOOP_FROM, *_MEMORY])} "
        "Repeated: word 4-grams said before; growth: length of the second half over the first; the "
        f"other measures are means over dialogues.{part}",
    )


def notes(survey: Survey, n_seeds: int, flagged: Table) -> Iterator[str]:
    """A sentence where only a part of the set was measured, and one on what models remember."""
    yield from _in_part(survey, n_seeds)
    if (n := max(flagged.frame["memory_seeds"].dropna(), default=0)) >= LEAST:
        none = "No model goes on with people's own words more often than by chance"
        yield from [*remembered(flagged)] or [
            f"{none} ({n:,} ChatSEEDs that could be known again)."
        ]


def remembered(flagged: Table) -> Iterator[str]:
    """A sentence on each model that looks to know the set."""
    for row in flagged.records:
        if (row["memory_p"] or 1) <= 1 - LEVEL:
            seeds = elided(row["remembered"], _NAMED)
            yield (
                f"{row['model']} looks to remember {100 * row['memory']:.1f} % of this set (p = "
                f"{row['memory_p']:.2g}): it goes on with people's own words on {seeds}."
            )


def _memory(name: str, found: Measured, survey: Survey, language: Language) -> Row:
    """A contestant in `_MEMORY`, beside people; empty where there are none."""
    people = survey.measured.get(HUMAN)
    known = memory(found.openings, people.openings, language) if people else None
    if known is None or name == HUMAN:
        return {}
    return {
        **entries("memory", known.share, *of_share(known.share * known.n, known.n)),
        "memory_p": known.p,
        "memory_seeds": known.n,
        "remembered": ", ".join(known.seeds) or None,
    }


def _in_part(survey: Survey, n_seeds: int) -> Iterator[str]:
    if survey.n_seeds < n_seeds:
        yield (
            f"Flags and style are measured on {survey.n_seeds:,} of {n_seeds:,} seeds, "
            "spread evenly."
        )


def agreement(
    survey: Survey, verdicts: Mapping[str, Mapping[str, Verdict | None]], signatures: Sequence[str]
) -> Table | None:
    """The first flag beside the utterance that the judge accuses; ``None`` without a verdict.

    ``verdicts``: contestant -> seed id -> UniEval verdict.
    """
    rows = []
    for name, found in survey.measured.items():
        said = verdicts.get(name, {})
        both = [
            (first, accused)
            for seed_id, first in zip(found.seed_ids, _first_of_any(found).tolist(), strict=True)
            if (verdict := said.get(seed_id)) is not None
            and (accused := accused_index(verdict, f"{name} on seed {seed_id}")) != NOT_SAID
        ]
        if both:
            rows.append(_beside(name, *np.array(both).T))
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


def utterance_lengths(measured: lengths.Lengths, signature: str) -> Table:
    """Statistics of the lengths of generated utterances, the shortest first."""
    mean = Column(
        f"mean_{measured.unit}", f"Mean {measured.unit}", "number", getter=itemgetter("mean")
    )
    shown = table(
        "lengths",
        "Length of generated utterances",
        [
            _MODEL,
            Column("utterances", "Utterances", "count", getter=itemgetter("n")),
            mean,
            Column("median", "Median", "number"),
            Column("p95", "95 %", "number"),
            Column("max", "Longest", "count"),
            Column("sd", "Std. dev.", "number"),
        ],
        [
            {"model": name, **lengths.summary(values)._asdict()}
            for name, values in measured.by_contestant.items()
        ],
        [signature],
        f"In {measured.unit} an utterance; ChatSEED utterances are not counted.",
        [mean.key],
    )
    return replace(shown, frame=shown.frame[::-1].reset_index(drop=True))


def _row(name: str, found: Measured) -> Row:
    """A contestant in `_COLUMNS`."""
    flagged = _first_of_any(found)
    first = dict(zip(CRITERIA, found.first.T, strict=True))
    shares = {criterion: _share(at) for criterion, at in first.items()}
    usual = sorted((c for c in CRITERIA if shares[c] > USUAL), key=lambda c: -shares[c])
    measures = pd.DataFrame(found.measures, columns=MEASURES)
    few = len(found.seed_ids) < LEAST
    return {
        **{key: value for name in MEASURES for key, value in _mean(name, measures[name]).items()},
        **{key: value for c, at in first.items() for key, value in share(at > 0, None, c).items()},
        **{f"first_{criterion}": _median(at) for criterion, at in first.items()},
        "model": name,
        **share(flagged > 0, None, "flagged"),
        "first_flag": _median(flagged),
        "why": None
        if few
        else ", ".join(f"{NAMES[c]} {100 * shares[c]:.0f} %" for c in usual[:_TOLD]) or None,
        **share(measures["closing_loop"] > 0, None, "loop_share"),
        "loop_from": _median(measures["closing_loop"]),
        **share(measures["ai_phrases"] > 0, None, "ai_share"),
        "measured": len(found.seed_ids),
    }


def _beside(name: str, flag: Indices, judge: Indices) -> Row:
    """A contestant in `_AGREEMENT`, from the first flagged and accused utterances, 0 for none."""
    flagged, accused, apart = flag > 0, judge > 0, np.abs(flag - judge)
    return {
        "model": name,
        **share(flagged & accused & (apart == 0), None, "same"),
        **share(flagged & accused & (apart <= 1), None, "near"),
        **share(~flagged & ~accused, None, "neither"),
        **share(~flagged & accused, None, "only_judge"),
        **share(flagged & ~accused, None, "only_flags"),
        "readable": len(flag),
    }


def _first_of_any(found: Measured) -> Indices:
    """First flagged utterance of each dialogue, 0 for none."""
    none = np.iinfo(np.intp).max
    first = np.where(found.first > 0, found.first, none).min(axis=1, initial=none)
    return np.where(first == none, 0, first)


def _mean(name: str, values: pd.Series) -> Row:
    """The entries of a mean over dialogues; ends where it is of shares."""
    known = values.dropna().tolist()
    if not known:
        return entries(name, math.nan, math.nan, math.nan)
    share_like = min(known) >= 0 and max(known) <= 1
    ends = mean(known, 0, 1) if share_like else (math.nan, math.nan)
    return entries(name, math.fsum(known) / len(known), *ends)


def _share(values: Any) -> float:
    """Share of those above 0."""
    return float((values > 0).mean()) if len(values) else math.nan


def _median(values: Any) -> float:
    """Median of those above 0."""
    known = values[values > 0]
    return float(np.median(known)) if len(known) else math.nan


_MODEL = Column("model", "Model", "name")
_LOOP_FROM = Column(
    "loop_from", "Loop from", "number", meaning="median first utterance of a closing loop"
)


def _with_intervals(*columns: Column) -> tuple[Column, ...]:
    """Columns, the rates among them with their ends."""
    return tuple(
        c for one in columns for c in (with_interval(one) if one.kind == "rate" else (one,))
    )


_MEMORY = (
    Column(
        "memory", "Remembered", "rate",
        meaning="seeds whose next human utterance it says again, most of it word by word",
    ),
    Column("memory_p", "p of memory", "exact"),
    Column("memory_seeds", "Seeds for memory", "count", detail=True),
    Column("remembered", "Remembered seeds", "name", detail=True),
)  # fmt: skip

_COLUMNS = _with_intervals(
    _MODEL,
    Column("flagged", "Flagged", "rate"),
    Column("why", "Most often", "name", role="reason", of="flagged"),
    Column("first_flag", "First flag", "number"),
    *(Column(c, f"{s[0].upper()}{s[1:]}", "rate") for c, s in NAMES.items()),
    Column("loop_share", "Closing loops", "rate", detail=True),
    _LOOP_FROM,
    Column("ai_share", "AI phrases", "rate", detail=True),
    Column("distinct_2", "Distinct 2-grams", "rate"),
    Column("repetition_rate", "Repeated", "rate"),
    Column("exact_rate", "Repeated utterances", "rate", detail=True),
    Column("max_overlap", "Greatest overlap", "rate", detail=True),
    Column("question_rate", "Questions", "rate"),
    Column("long_word_share", "Long words", "rate"),
    Column("contraction_share", "Contractions", "rate"),
    Column("layout_share", "Laid out", "rate", detail=True),
    Column("emoji_share", "Emoji", "rate", detail=True),
    Column("length_growth", "Growth", "decimal"),
    Column("mean_words", "Mean words", "number", detail=True),
    Column("measured", "Dialogues", "count"),
    *_MEMORY,
    *(Column(f"first_{c}", f"First: {s}", "number", detail=True) for c, s in NAMES.items()),
)

_AGREEMENT = _with_intervals(
    _MODEL,
    Column("same", "Same utterance", "rate"),
    Column("near", "Within one", "rate"),
    Column("neither", "Neither accuses", "rate"),
    Column("only_judge", "Only the judge", "rate"),
    Column("only_flags", "Only a flag", "rate"),
    Column("readable", "Dialogues", "count", role="readable"),
)
