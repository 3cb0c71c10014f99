"""Counting diagnoses: reports in, how many dialogues of each contestant have which errors out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botchat.errors import DataError
from botchat.protocols.diagnosis import ERRORS, Report, reports
from botchat.protocols.rates import Rate
from botchat.records import Dialogue, Judgment

Diagnoses = Mapping[tuple[str, str], Mapping[str, Report]]
"""(contestant, seed id) -> who reports -> the report."""


@dataclass(frozen=True)
class Finding:
    """What a judgment says about one error type, all its reports taken together."""

    present: bool
    """Whether more than half of the reports that judge this type say yes."""
    score: float
    """Mean of their scores."""


def diagnoses(
    judgments: Iterable[Judgment], dialogues: Mapping[str, Mapping[str, Dialogue]]
) -> Diagnoses:
    """Every judgment's reports, read again.

    Args:
        judgments: of the diagnosis, at most one for each dialogue.
        dialogues: contestant -> seed id -> the dialogue that was judged.
    """
    found = {}
    for judgment in judgments:
        (contestant,) = judgment.contestants
        utterances = dialogues[contestant][judgment.seed_id].utterances
        found[contestant, judgment.seed_id] = reports(judgment, utterances)
    return found


def by_type(given: Iterable[Report]) -> dict[str, Finding]:
    """Error type -> what the reports say; types that none of them judges are left out."""
    scores: dict[str, list[int]] = {}
    for report in given:
        for answer in report.answers:
            if answer.score is not None:
                scores.setdefault(answer.type, []).append(answer.score)
    return {
        type_: Finding(2 * sum(score < 0 for score in each) > len(each), sum(each) / len(each))
        for type_, each in scores.items()
    }


def error_rates(
    judgments: Iterable[Judgment], reported: Diagnoses, n_seeds: int
) -> list[dict[str, Any]]:
    """One row a contestant.

    Args:
        judgments: of the diagnosis, at most one for each dialogue.
        reported: what they report.
        n_seeds: dialogues that each contestant should have; those without a verdict are missing.

    Returns:
        ``model``; mean ``score``; ``any``: share of the dialogues with a score below 0, bounded by
        ``low`` and ``high``; for each type of `ERRORS` the share of dialogues that have it, and
        ``score_TYPE`` and ``readable_TYPE`` (dialogues judged on it); ``quoted``: share of all
        errors whose quote is in the utterance named; ``readable``, ``missing``, ``coverage``.
        ``None`` where there is nothing to count.

    Raises:
        DataError: a verdict that is no score.
    """
    scores: dict[str, dict[str, float | None]] = {}
    for judgment in judgments:
        scores.setdefault(judgment.contestants[0], {})[judgment.seed_id] = _score(judgment)
    return [_row(name, by_seed, reported, n_seeds) for name, by_seed in scores.items()]


def _row(
    name: str, by_seed: Mapping[str, float | None], reported: Diagnoses, n_seeds: int
) -> dict[str, Any]:
    scores = [score for score in by_seed.values() if score is not None]
    given = [reported[name, seed_id].values() for seed_id in by_seed]
    listed = [e for each in given for report in each for a in report.answers for e in a.errors]
    flawed = Rate(sum(score < 0 for score in scores), len(scores), n_seeds - len(scores))
    row: dict[str, Any] = {
        "model": name,
        "score": _mean(scores),
        "any": flawed.value,
        "low": flawed.lowest,
        "high": flawed.highest,
        "quoted": _mean([error.evidence == "found" for error in listed]),
        "readable": flawed.n,
        "missing": flawed.missing,
        "coverage": flawed.coverage,
    }
    findings = [by_type(each) for each in given]
    for type_ in ERRORS:
        judged = [found[type_] for found in findings if type_ in found]
        row[type_] = _mean([finding.present for finding in judged])
        row[f"score_{type_}"] = _mean([finding.score for finding in judged])
        row[f"readable_{type_}"] = len(judged)
    return row


def _score(judgment: Judgment) -> float | None:
    try:
        return None if judgment.verdict is None else float(judgment.verdict)
    except ValueError:
        raise DataError(
            f"verdict {judgment.verdict!r} of a diagnosis is no score; delete that line and judge "
            "again"
        ) from None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
