"""What dialogues show without a judge: flags, measures that explain them, and lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter

import numpy as np

from botchat.boards.names import elided
from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.interfaces import Row
from botchat.languages import ENGLISH, Language
from botchat.measures import lengths
from botchat.measures.flags import CRITERIA, MEASURES, Measured, Survey
from botchat.measures.intervals import LEAST, entries, mean, of_share, share
from botchat.measures.memory import memory
from botchat.measures.statistics import LEVEL
from botchat.records import HUMAN

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
            {"model": name, **lengths.summary(values)}
            for name, values in measured.by_contestant.items()
        ],
        [signature],
        f"In {measured.unit} an utterance; ChatSEED utterances are not counted.",
        [mean.key],
    )
    return replace(shown, frame=shown.frame[::-1].reset_index(drop=True))


def _row(name: str, found: Measured) -> Row:
    """A contestant in `_COLUMNS`."""
    row: Row = {"model": name, "measured": len(found.seed_ids)}
    none = np.iinfo(np.intp).max
    first = np.where(found.first > 0, found.first, none).min(axis=1, initial=none)
    measures = dict(zip(MEASURES, found.measures.T, strict=True))
    for key, values in measures.items():
        row |= _mean(key, values[~np.isnan(values)].tolist())
    # Of what a criterion and a measure are both called, the share that is flagged.
    by_criterion = dict(zip(CRITERIA, found.first.T, strict=True))
    for at, share_key, place_key in (
        *((at, c, f"first_{c}") for c, at in by_criterion.items()),
        (np.where(first == none, 0, first), "flagged", "first_flag"),
        (measures["closing_loop"], "loop_share", "loop_from"),
        (measures["ai_phrases"], "ai_share", ""),
    ):
        row |= share(at > 0, None, share_key)
        if place_key:
            row[place_key] = float(np.median(at[at > 0])) if (at > 0).any() else math.nan
    flagged = sorted(
        (-(row[c] or 0), i, c) for i, c in enumerate(CRITERIA) if (row[c] or 0) > USUAL
    )
    told = ", ".join(f"{NAMES[c]} {-100 * part:.0f} %" for part, _, c in flagged[:_TOLD])
    row["why"] = told if told and len(found.seed_ids) >= LEAST else None
    return row


def _mean(name: str, known: Sequence[float]) -> Row:
    """The entries of a mean over dialogues; ends where it is of shares."""
    ends = (math.nan, math.nan)
    if known and min(known) >= 0 and max(known) <= 1:
        ends = mean(known, 0, 1)
    return entries(name, math.fsum(known) / len(known) if known else math.nan, *ends)


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
