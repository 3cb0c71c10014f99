"""Whole sets of dialogues measured: a row a dialogue, in arrays, quick to send and to count."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np

from botchat.measures.flags import (
    DialogueMeasures,
    Style,
    Thresholds,
    Values,
    first_flags,
    fit_thresholds,
    measure,
    measure_style,
)
from botchat.measures.statistics import Floats, Indices
from botchat.records import Dialogue, Seed

CRITERIA = Values._fields
"""Columns of `Measured.first`."""

MEASURES = tuple(field.name for field in fields(DialogueMeasures))
"""Columns of `Measured.measures`."""

STYLE = ("length", "repetition", "questions", "formality")
"""Columns of `Measured.style`: logarithm of the mean words of an utterance, share of word 4-grams
said before, share of utterances with a question, formal marks in 100 words."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What one contestant's dialogues show after their ChatSEEDs; n dialogues with anything there.

    ``measures``: `MEASURES` of each, nan where there is nothing to measure, shape (n, 16).
    ``first``: 1-based utterance of the first flag of each of `CRITERIA`, 0 for none, shape (n, 9).
    ``style``: N -> `STYLE` of each dialogue cut to N utterances, shape (n, 4).
    """

    seed_ids: tuple[str, ...]
    measures: Floats
    first: Indices
    style: Mapping[int, Floats]


@dataclass(frozen=True, eq=False)
class Survey:
    """All contestants of a set, measured on the same seeds."""

    thresholds: Thresholds
    n_seeds: int
    measured: Mapping[str, Measured]
    """Contestant -> its dialogues, ``human`` among them."""


def survey(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Mapping[str, Dialogue]],
    turns: Collection[int] = (),
) -> Survey:
    """Measure every contestant's dialogues against what the people of the set do.

    Args:
        seeds: the set.
        dialogues: contestant -> seed id -> dialogue.
        turns: each N of `Measured.style`.
    """
    thresholds = fit_thresholds(seed.utterances for seed in seeds)
    measured = {
        name: measure_all({i: d.utterances for i, d in by_seed.items()}, thresholds, turns)
        for name, by_seed in dialogues.items()
    }
    return Survey(thresholds, len(seeds), measured)


def measure_all(
    dialogues: Mapping[str, tuple[str, ...]], thresholds: Thresholds, turns: Collection[int] = ()
) -> Measured:
    """Measure a contestant's dialogues.

    Args:
        dialogues: seed id -> utterances.
        thresholds: of the flags.
        turns: each N of `Measured.style`.
    """
    seed_ids, measures, first = [], [], []
    style: dict[int, list[tuple[float, ...]]] = {n: [] for n in turns}
    for seed_id, utterances in dialogues.items():
        found = measure(utterances)
        if not found.n_utterances:
            continue
        flagged = first_flags(utterances, thresholds)
        seed_ids.append(seed_id)
        measures.append(_values(found))  # NumPy makes nan of None
        first.append([flagged.get(criterion, 0) for criterion in CRITERIA])
        for n, rows in style.items():
            whole = n >= len(utterances)
            rows.append(style_of(found if whole else measure_style(utterances, n)))
    return Measured(
        tuple(seed_ids),
        np.array(measures, dtype=np.float64).reshape(-1, len(MEASURES)),
        np.array(first, dtype=np.intp).reshape(-1, len(CRITERIA)),
        {n: np.array(rows, np.float64).reshape(-1, len(STYLE)) for n, rows in style.items()},
    )


def style_of(found: Style | DialogueMeasures) -> tuple[float, ...]:
    """`STYLE` of a dialogue; 0 for what cannot be measured."""
    length = math.log1p(found.mean_words)
    shown = (length, found.repetition_rate, found.question_rate, found.formality)
    return tuple(0.0 if math.isnan(value) else value for value in shown)


_values = attrgetter(*MEASURES)
