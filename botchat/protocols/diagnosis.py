"""Diagnosis: ten questions about one dialogue, an error type each, with place and evidence.

After MATEval (Li et al. 2024, §3.2, §4.2), with the bad cases of BotChat (Appendix C). Each error
takes one point off, from 0, counted here, because judges miscount; the verdict is the sum
(``"-3"``). Deviation: `botchat.protocols.reports.as_prose` makes the running text from the report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from botchat.errors import DataError
from botchat.metrics import intervals
from botchat.metrics.statistics import mean_interval
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import Rate
from botchat.protocols.reports import ERRORS, Report, parse, reports
from botchat.records import Dialogues, Judgment

DIAGNOSIS = Protocol(
    "diagnosis",
    "Diagnosis",
    kind="report",
    shows="one",
    question="one dialogue: which errors, where, with which words?",
    prompts=("diagnosis",),
    about_ai=True,
)

Diagnoses = Mapping[tuple[str, str], Mapping[str, Report]]
"""(contestant, seed id) -> who reports -> the report."""


class TypeFinding(NamedTuple):
    """The answers of all reports of a judgment about one error type."""

    present: bool
    """Whether more than half of the reports that judge this type say yes."""
    score: float
    """Mean of their scores."""


def diagnoses(judgments: Iterable[Judgment], dialogues: Dialogues) -> Diagnoses:
    """Read the reports of judgments again; at most one judgment a dialogue."""
    return {
        (name, judgment.seed_id): reports(
            judgment, partial(parse, utterances=dialogues[name][judgment.seed_id].utterances)
        )
        for judgment in judgments
        for name in judgment.contestants
    }


def by_type(reported: Iterable[Report]) -> dict[str, TypeFinding]:
    """Return what reports say by error type; types that none of them judges are left out."""
    scores: dict[str, list[float]] = {}
    for report in reported:
        for result in report.results:
            if result.score is not None:
                scores.setdefault(result.type, []).append(result.score)
    return {
        type_: TypeFinding(2 * sum(score < 0 for score in each) > len(each), sum(each) / len(each))
        for type_, each in scores.items()
    }


def error_rates(
    judgments: Iterable[Judgment], reported: Diagnoses, n_seeds: int
) -> list[dict[str, Any]]:
    """Return one row a contestant; at most one judgment a dialogue.

    A row has ``model``; mean ``score``; ``any``: share of the dialogues with a score below 0; for
    each type of `ERRORS` the share of dialogues that have it, ``score_TYPE`` and ``readable_TYPE``;
    ``quoted``: share of all errors whose quote is in the utterance named; ``readable``, ``missing``
    (of ``n_seeds``), ``coverage``. Intervals end in ``_low`` and ``_high``; None: nothing to count.
    """
    by_name: dict[str, dict[str, float | None]] = {}
    for judgment in judgments:
        by_name.setdefault(judgment.contestants[0], {})[judgment.seed_id] = _score(judgment)
    rows = []
    for name, by_seed in by_name.items():
        scores = [score for score in by_seed.values() if score is not None]
        flawed = Rate(sum(score < 0 for score in scores), len(scores), n_seeds - len(scores))
        by_dialogue = [reported[name, seed_id].values() for seed_id in by_seed]
        rows.append(
            {
                "model": name,
                **_mean_score(scores),
                **intervals.share([score < 0 for score in scores], None, "any"),
                **_quoted(by_dialogue),
                "readable": flawed.n,
                "missing": flawed.missing,
                "coverage": flawed.coverage,
                **_type_rates([by_type(each) for each in by_dialogue]),
            }
        )
    return rows


def _quoted(by_dialogue: Sequence[Iterable[Report]]) -> dict[str, Any]:
    """Return the share of the errors whose quote is in the utterance named."""
    errors = [
        (number, error.evidence == "found")
        for number, each in enumerate(by_dialogue)
        for report in each
        for result in report.results
        for error in result.errors
    ]
    clusters = np.array([number for number, _ in errors])
    return intervals.share([is_quoted for _, is_quoted in errors], clusters, "quoted")


def _type_rates(findings: Sequence[Mapping[str, TypeFinding]]) -> dict[str, Any]:
    """Return the entries of each error type over dialogues."""
    row: dict[str, Any] = {}
    for type_ in ERRORS:
        judged = [finding[type_] for finding in findings if type_ in finding]
        row |= intervals.share([finding.present for finding in judged], None, type_)
        total = sum(finding.score for finding in judged)
        row[f"score_{type_}"] = total / len(judged) if judged else None
        row[f"readable_{type_}"] = len(judged)
    return row


def _mean_score(scores: Sequence[float]) -> dict[str, float | None]:
    """Return the mean and its interval: Student's t; no lower end if all are equal."""
    mean = sum(scores) / len(scores) if scores else math.nan
    low, high = mean_interval(scores) if len(set(scores)) > 1 else (math.nan, math.nan)
    return intervals.entries("score", mean, low, min(high, 0.0))


def _score(judgment: Judgment) -> float | None:
    try:
        return None if judgment.verdict is None else float(judgment.verdict)
    except ValueError:
        fault = f"verdict {judgment.verdict!r} of a diagnosis is no score"
        raise DataError(f"{fault}; delete that line and judge again") from None
