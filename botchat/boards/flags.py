"""What dialogues show without a judge: flags, measures that explain them, and lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter, methodcaller

import numpy as np

from botchat.boards.tables import Column, Getter, Kind, Table, explained, record, table
from botchat.measures import lengths
from botchat.measures.flags import CRITERIA, MEASURES, Measured, Survey
from botchat.measures.statistics import Flags, Floats, Indices
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
"""Criterion of `botchat.measures.flags` -> what it finds, in a few words."""

_USUAL = 0.01
"""Share of the human dialogues that a criterion flags; only more than this is named as a reason."""
_TOLD = 2
"""Most reasons that are named for a contestant."""


def flags(survey: Survey, n_seeds: int, signature: str) -> Table:
    """Shares of flagged dialogues by criterion, and what explains them; the fewest flags first.

    ``n_seeds``: size of the set, of which the survey may have measured a part.
    """
    rows = [record(_COLUMNS, _Row(*one)) for one in survey.measured.items()]
    rows.sort(key=lambda row: (math.isnan(row["flagged"]), row["flagged"], row["model"]))
    part = "".join(f" {note}" for note in notes(survey, n_seeds))
    return table(
        "flags",
        "Flags: why dialogues fail",
        _COLUMNS,
        rows,
        [signature],
        "Without a judge: dialogues with an utterance that does what at most 1 % of the set's "
        f"people do, in percent, and by what. {explained([_LOOP_FROM])} "
        "Repeated: word 4-grams said before; growth: length of the second half over the first; the "
        f"other measures are means over dialogues.{part}",
    )


def notes(survey: Survey, n_seeds: int) -> Iterator[str]:
    """A sentence where only a part of the set was measured."""
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
    """The first flag beside the utterance that the judge accuses; ``None`` without a verdict.

    ``verdicts``: contestant -> seed id -> UniEval verdict.
    """
    rows = []
    for name, found in survey.measured.items():
        said = verdicts.get(name, {})
        both = [
            (first, 0 if verdict == "No" else int(verdict))
            for seed_id, first in zip(found.seed_ids, _first_of_any(found).tolist(), strict=True)
            if (verdict := said.get(seed_id)) is not None
        ]
        if both:
            rows.append(record(_AGREEMENT, _Beside(name, *np.array(both).T)))
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


@dataclass(frozen=True)
class _Row:
    """A contestant and what was measured of its dialogues."""

    name: str
    found: Measured

    @cached_property
    def means(self) -> dict[str, float]:
        """Measure -> mean over the dialogues where it is known; nan where it is in none."""
        known = ~np.isnan(self.found.measures)
        total = np.where(known, self.found.measures, 0).sum(axis=0)
        n = known.sum(axis=0)
        means = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
        return dict(zip(MEASURES, means.tolist(), strict=True))

    def measure(self, key: str) -> Floats:
        """A measure of every dialogue."""
        return self.found.measures[:, MEASURES.index(key)]

    def first(self, criterion: str) -> Indices:
        """The first utterance of every dialogue that a criterion flags, 0 for none."""
        return self.found.first[:, CRITERIA.index(criterion)]

    @property
    def why(self) -> str | None:
        """The criteria that flag most dialogues, in words."""
        shares = {criterion: _share(self.first(criterion)) for criterion in CRITERIA}
        told = sorted((c for c in CRITERIA if shares[c] > _USUAL), key=lambda c: -shares[c])
        return ", ".join(f"{NAMES[c]} {100 * shares[c]:.0f} %" for c in told[:_TOLD]) or None


@dataclass(frozen=True)
class _Beside:
    """First flagged and first accused utterance of dialogues, 0 for none; shapes (n,)."""

    name: str
    flag: Indices
    judge: Indices

    @property
    def apart(self) -> Floats:
        """Utterances between them; nan where only one accuses, or none does."""
        accused = (self.flag > 0) & (self.judge > 0)
        return np.where(accused, np.abs(self.flag - self.judge), np.nan)


def _first_of_any(found: Measured) -> Indices:
    """First flagged utterance of each dialogue, 0 for none."""
    none = np.iinfo(np.intp).max
    first = np.where(found.first > 0, found.first, none).min(axis=1, initial=none)
    return np.where(first == none, 0, first)


def _share(values: Floats | Indices | Flags) -> float:
    """Share of those above 0."""
    return float((values > 0).mean()) if len(values) else math.nan


def _median(values: Floats | Indices) -> float:
    """Median of those above 0."""
    known = values[values > 0]
    return float(np.median(known)) if len(known) else math.nan


def _rate(key: str, heading: str, of: Getter, *, detail: bool = False) -> Column:
    """The share of dialogues where ``of`` is above 0."""
    return Column(key, heading, "rate", detail, getter=lambda row: _share(of(row)))


def _first(key: str, heading: str, of: Getter, *, detail: bool = False) -> Column:
    """The median utterance over the dialogues where ``of`` is above 0."""
    return Column(key, heading, "number", detail, getter=lambda row: _median(of(row)))


def _mean(key: str, heading: str, kind: Kind = "rate", *, detail: bool = False) -> Column:
    return Column(key, heading, kind, detail, getter=lambda row: row.means[key])


_MODEL = Column("model", "Model", "name", getter=lambda row: row.name)
_LOOP_FROM = replace(
    _first("loop_from", "Loop from", methodcaller("measure", "closing_loop")),
    meaning="median first utterance of a closing loop",
)

_COLUMNS = (
    _MODEL,
    _rate("flagged", "Flagged", lambda row: _first_of_any(row.found)),
    Column("why", "Most often", "name", role="reason", of="flagged"),
    _first("first_flag", "First flag", lambda row: _first_of_any(row.found)),
    *(_rate(c, f"{s[0].upper()}{s[1:]}", methodcaller("first", c)) for c, s in NAMES.items()),
    _rate("loop_share", "Closing loops", methodcaller("measure", "closing_loop"), detail=True),
    _LOOP_FROM,
    _rate("ai_share", "AI phrases", methodcaller("measure", "ai_phrases"), detail=True),
    _mean("distinct_2", "Distinct 2-grams"),
    _mean("repetition_rate", "Repeated"),
    _mean("exact_rate", "Repeated utterances", detail=True),
    _mean("max_overlap", "Greatest overlap", detail=True),
    _mean("question_rate", "Questions"),
    _mean("long_word_share", "Long words"),
    _mean("contraction_share", "Contractions"),
    _mean("layout_share", "Laid out", detail=True),
    _mean("emoji_share", "Emoji", detail=True),
    _mean("length_growth", "Growth", "decimal"),
    _mean("mean_words", "Mean words", "number", detail=True),
    Column("measured", "Dialogues", "count", getter=lambda row: len(row.found.seed_ids)),
    *(
        _first(f"first_{c}", f"First: {s}", methodcaller("first", c), detail=True)
        for c, s in NAMES.items()
    ),
)

_AGREEMENT = (
    _MODEL,
    _rate("same", "Same utterance", lambda row: row.apart == 0),
    _rate("near", "Within one", lambda row: row.apart <= 1),
    _rate("neither", "Neither accuses", lambda row: (row.flag == 0) & (row.judge == 0)),
    _rate("only_judge", "Only the judge", lambda row: (row.flag == 0) & (row.judge > 0)),
    _rate("only_flags", "Only a flag", lambda row: (row.flag > 0) & (row.judge == 0)),
    Column("readable", "Dialogues", "count", role="readable", getter=lambda row: len(row.flag)),
)
