"""Which contestant is better, by any judge in any protocol: what judges are compared on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import UnsetType

from botchat.measures.annotations import NOBODY, Annotation
from botchat.protocols.kinds import Protocol
from botchat.records import Judgment


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
    return [
        Annotation(
            made.seed_id,
            made.contestants[0],
            (*made.contestants, NOBODY)[1],
            made.judge,
            better(_lead(made, protocol)),
            None if isinstance(made.confidence, UnsetType) else made.confidence,
        )
        for made in judgments
    ]


def calibrated(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """Which of two is better after position calibration: by both orders together.

    By the sum of its scores, or of its results where there are no scores. One annotation a judge
    and pair (ChatEval §3.2; Wang et al. 2023, BPC). Where one of both orders is unreadable the
    result is (upstream: a tie). One order alone stands.
    """
    leads: dict[tuple[str, str, str, str], list[float]] = {}
    for judgment in judgments:
        first, second = judgment.contestants
        lead = _lead(judgment, protocol)
        if protocol.kind == "score":
            given = protocol.numbers(judgment.verdict) or (math.nan, math.nan)
            half = len(given) // 2
            lead = sum(given[:half]) - sum(given[half:])
        if (swapped := (judgment.seed_id, second, first, judgment.judge)) in leads:
            leads[swapped].append(-lead)
        else:
            leads[judgment.seed_id, first, second, judgment.judge] = [lead]
    return [Annotation(*key, better(sum(each))) for key, each in leads.items()]


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
