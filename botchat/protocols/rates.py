"""Counting verdicts: from what a judge said to rates, always with what is missing beside them.

Also who is better by any judge in any protocol, which is what judges are compared on.

An unreadable verdict is no win, tie or loss and no success or failure: it is missing, and every
`Rate` and `Tally` says how much is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from botchat.errors import DataError
from botchat.metrics import intervals
from botchat.metrics.annotations import NOBODY, NOT_SAID, UNTOLD, Annotation, accused_index
from botchat.metrics.statistics import mean_interval, share
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERRORS, Report, reports
from botchat.records import (
    HUMAN,
    N_SEED,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    Verdict,
    eligible,
)

PASS_AT = (4, 8, 12, 16)
"""N of the success rates (BotChat §4.2, Figure 4)."""


def passed(dialogue: Dialogue, verdict: Verdict | None, turns: int) -> bool | None:
    """Whether a dialogue passes UniEval at N = ``turns``: "No", or the accused index is above N.

    Unknown (``None``) where it cannot be read or is undecided, where a generated dialogue is
    shorter than N and not accused (a human one is complete at its own length), and where it is
    longer than N and accused `SOMEWHERE`. Raises `DataError` for a verdict that UniEval does not
    offer.
    """
    if verdict is None:
        return None
    accused = accused_index(verdict, "a UniEval judgment")
    if accused == UNTOLD:
        return None
    if accused == NOT_SAID and turns > N_SEED:
        return None if turns < len(dialogue.utterances) else False
    if 0 < accused <= turns:
        return False
    return True if dialogue.model == HUMAN or len(dialogue.utterances) >= turns else None


@dataclass(frozen=True)
class Rate:
    """How many of the covered cases hit, and how many cases are not covered."""

    hits: int
    n: int
    """Covered cases: those with a readable verdict."""
    missing: int
    """Cases that the protocol has and that no readable verdict covers."""

    @property
    def value(self) -> float:
        """Share of hits among the covered, 0 to 1; NaN if nothing is covered."""
        return share(self.hits, self.n)

    @property
    def coverage(self) -> float:
        """Share of the cases that are covered, 0 to 1; NaN if there are no cases."""
        return share(self.n, self.n + self.missing)


@dataclass(frozen=True)
class Tally:
    """Comparisons of one contestant with others, seen from its side, from both orders."""

    wins: int = 0
    ties: int = 0
    losses: int = 0
    missing: int = 0

    @property
    def n(self) -> int:
        """Comparisons with a readable verdict."""
        return self.wins + self.ties + self.losses

    @property
    def win(self) -> Rate:
        """Win rate."""
        return Rate(self.wins, self.n, self.missing)

    @property
    def win_or_tie(self) -> Rate:
        """Win + tie rate, the metric of GTEval (BotChat §4.2)."""
        return Rate(self.wins + self.ties, self.n, self.missing)


def success(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Dialogue],
    verdicts: Mapping[str, Verdict | None],
    turns: int | None,
) -> Rate:
    """Success rate of one contestant at N = ``turns`` over all seeds of the set (BotChat §4.2).

    ``None``: N is the length of each human dialogue, of at least 4 utterances (Figure 7).
    ``dialogues`` are the contestant's and ``verdicts`` UniEval's on them, by seed id; a seed
    without either, or without a readable verdict, is missing.
    """
    results = [
        passed(dialogues[seed.id], verdicts.get(seed.id), turns or len(seed.utterances))
        if seed.id in dialogues
        else None
        for seed in (seeds if turns else eligible(seeds))
        if turns or len(seed.utterances) > N_SEED
    ]
    missing = results.count(None)
    return Rate(results.count(True), len(results) - missing, missing)


Diagnoses = Mapping[tuple[str, str], Mapping[str, Report]]
"""(contestant, seed id) -> who reports -> the report."""


class Finding(NamedTuple):
    """What a judgment says about one error type, all its reports taken together."""

    present: bool
    """Whether more than half of the reports that judge this type say yes."""
    score: float
    """Mean of their scores."""


def diagnoses(judgments: Iterable[Judgment], dialogues: Dialogues) -> Diagnoses:
    """The reports of the diagnosis' judgments, read again; at most one judgment a dialogue."""
    return {
        (name, made.seed_id): reports(made, dialogues[name][made.seed_id].utterances)
        for made in judgments
        for name in made.contestants
    }


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
    """One row a contestant, of judgments of the diagnosis, at most one for each dialogue.

    A row has ``model``; mean ``score``; ``any``: share of the dialogues with a score below 0, and
    For each type of `ERRORS` the
    share of dialogues that have it, and ``score_TYPE`` and ``readable_TYPE`` (dialogues judged on
    it); ``quoted``: share of all errors whose quote is in the utterance named; ``readable``,
    ``missing`` (of ``n_seeds`` dialogues, those without a verdict), ``coverage``. The rates and the
    score have the ends of their intervals in ``…_low``, ``…_high``. ``None``: nothing to count.
    Raises `DataError` for a verdict that is no score.
    """
    points: dict[str, dict[str, float | None]] = {}
    for made in judgments:
        points.setdefault(made.contestants[0], {})[made.seed_id] = _points(made)
    rows = []
    for name, by_seed in points.items():
        scores = [score for score in by_seed.values() if score is not None]
        given = [reported[name, seed_id].values() for seed_id in by_seed]
        listed = [
            (number, error.evidence == "found")
            for number, each in enumerate(given)
            for report in each
            for answer in report.answers
            for error in answer.errors
        ]
        quoted, of = [found for _, found in listed], np.array([number for number, _ in listed])
        flawed = Rate(sum(score < 0 for score in scores), len(scores), n_seeds - len(scores))
        row: dict[str, Any] = {
            "model": name,
            **_score(scores),
            **intervals.share([score < 0 for score in scores], None, "any"),
            **intervals.share(quoted, of, "quoted"),
            "readable": flawed.n,
            "missing": flawed.missing,
            "coverage": flawed.coverage,
        }
        findings = [by_type(each) for each in given]
        for type_ in ERRORS:
            judged = [found[type_] for found in findings if type_ in found]
            row |= intervals.share([finding.present for finding in judged], None, type_)
            total = sum(finding.score for finding in judged)
            row[f"score_{type_}"] = total / len(judged) if judged else None
            row[f"readable_{type_}"] = len(judged)
        rows.append(row)
    return rows


def _score(scores: Sequence[float]) -> dict[str, float | None]:
    """The mean and its interval: Student's t, from 0 if all are equal; a score has no lower end."""
    mean = sum(scores) / len(scores) if scores else math.nan
    low, high = mean_interval(scores) if len(set(scores)) > 1 else (math.nan, math.nan)
    return intervals.entries("score", mean, low, min(high, 0.0))


def _points(made: Judgment) -> float | None:
    try:
        return None if made.verdict is None else float(made.verdict)
    except ValueError:
        raise DataError(
            f"verdict {made.verdict!r} of a diagnosis is no score; delete that line and judge again"
        ) from None


# ------------------------------------------------ who is better: what judges are compared on


def better(lead: float) -> str | None:
    """The verdict of an `Annotation`, from how far the first is ahead; nan: unreadable."""
    if math.isnan(lead):
        return None
    return "tie" if abs(lead) < 1e-9 else "1" if lead > 0 else "2"


def preferences(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """What judgments of one protocol say about who is better.

    - pairs: the winner (`Protocol.result`), as shown.
    - a place: the dialogue alone, beside `NOBODY`: better (``"1"``) where nothing is accused.
    - scores and reports of single dialogues: of any two dialogues of one seed the one with the
      higher sum, in the order of their names.

    Raises `DataError` for a verdict that the protocol does not offer.
    """
    if protocol.shows == "one" and protocol.kind != "place":
        return list(_by_score(judgments, protocol))
    said, known = [], dict[tuple[Verdict | None, int], str | None]()
    for made in judgments:
        first, second, *_ = shown = (*made.contestants, NOBODY)
        if (unlike := (made.verdict, len(shown))) not in known:
            known[unlike] = better(_lead(made, protocol))
        said.append(Annotation(made.seed_id, first, second, made.judge, known[unlike]))
    return said


def calibrated(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """Which of two is better after position calibration: by both orders together.

    By the sum of its leads (`Protocol.lead`), one annotation a judge and pair (ChatEval §3.2; Wang
    et al. 2023, BPC). Where one of both orders is unreadable the result is (upstream: a tie). One
    order alone stands.
    """
    leads: dict[tuple[str, str, str, str], float] = {}
    for made in judgments:
        first, second = made.contestants
        found = protocol.lead(made.verdict)
        lead = math.nan if found is None else found
        if (swapped := (made.seed_id, second, first, made.judge)) in leads:
            leads[swapped] -= lead
        else:
            leads[made.seed_id, first, second, made.judge] = lead
    return [Annotation(*key, better(lead)) for key, lead in leads.items()]


def truth(asked: Iterable[Annotation], judge: str) -> Iterator[Annotation]:
    """What is known without asking anybody: which side, or dialogue, is human."""
    seen = {(a.item, a.first, a.second): a for a in asked}
    for item, first, second in seen:
        if HUMAN in (first, second) or second == NOBODY:
            yield Annotation(item, first, second, judge, "1" if first == HUMAN else "2")


def _by_score(judgments: Iterable[Judgment], protocol: Protocol) -> Iterator[Annotation]:
    totals: dict[tuple[str, str], dict[str, float]] = {}
    for made in judgments:
        total = sum(protocol.numbers(made.verdict) or (math.nan,))
        totals.setdefault((made.judge, made.seed_id), {})[made.contestants[0]] = total
    for (judge, seed_id), of in totals.items():
        for first, second in combinations(sorted(of), 2):
            yield Annotation(seed_id, first, second, judge, better(of[first] - of[second]))


def _lead(made: Judgment, protocol: Protocol) -> float:
    values = protocol.values(made)
    return values[0][1] - 0.5 if values else math.nan
