"""Reading verdicts: who passes, and who is preferred, on which judges are compared.

An unreadable verdict is no win, tie, loss, success or failure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np

from botchat.metrics.verdicts import LOSS, NO_CONTESTANT, WIN, PairVerdict, PairVerdicts
from botchat.protocols.kinds import Graded, result_of
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Judgment

PASS_AT = (4, 8, 12, 16)  # N of the success rates (BotChat §4.2, Figure 4)


def preferences(judgments: Iterable[Judgment], protocol: Protocol) -> list[PairVerdict]:
    """Return which of two is better by each judgment of one protocol, as shown.

    A lone dialogue is compared with `NO_CONTESTANT`: it wins if it passes. Scores, reports compare
    any two dialogues of one seed, in the order of their names. Raises `DataError` for a verdict
    that the protocol does not offer.
    """
    if protocol.is_alone and isinstance(protocol.answer, Graded):
        return _preferences_of_totals(judgments, protocol.answer)
    verdicts = []
    for judgment in judgments:
        first = judgment.contestants[0]
        second = NO_CONTESTANT
        if len(judgment.contestants) > 1:
            second = judgment.contestants[1]
        values = protocol.values(judgment)
        result = values[0][1] if values else math.nan
        verdicts.append(PairVerdict(judgment.seed_id, first, second, judgment.judge, result))
    return verdicts


def _preferences_of_totals(judgments: Iterable[Judgment], answer: Graded) -> list[PairVerdict]:
    """Return which of any two dialogues of one seed has the larger sum of numbers."""
    totals = defaultdict[tuple[str, str], dict[str, float]](dict)
    for judgment in judgments:
        total = sum(answer.numbers(judgment.verdict) or (math.nan,))
        totals[judgment.judge, judgment.seed_id][judgment.contestants[0]] = total
    verdicts = []
    for (judge, item), by_name in totals.items():
        for first, second in combinations(sorted(by_name), 2):
            result = result_of(by_name[first] - by_name[second])
            verdicts.append(PairVerdict(item, first, second, judge, result))
    return verdicts


def calibrated(judgments: Iterable[Judgment], protocol: Protocol) -> list[PairVerdict]:
    """Return which of two is better by the sum of the leads in both orders, one a judge and pair.

    Position calibration (ChatEval §3.2; Wang et al. 2023, BPC): unreadable if one order is.
    """
    leads = defaultdict[tuple[str, str, str, str], float](float)
    for judgment in judgments:
        first, second = judgment.contestants
        lead = math.nan
        if judgment.verdict is not None:
            lead = protocol.answer.lead(judgment.verdict)
        key = (judgment.seed_id, first, second, judgment.judge)
        swapped = (judgment.seed_id, second, first, judgment.judge)
        if swapped in leads:
            leads[swapped] -= lead
        else:
            leads[key] += lead
    verdicts = []
    for (item, first, second, judge), lead in leads.items():
        verdicts.append(PairVerdict(item, first, second, judge, result_of(lead)))
    return verdicts


def truth(verdicts: PairVerdicts, judge: str) -> PairVerdicts:
    """Return what is known without a judge: which side, or dialogue, is human.

    One verdict of ``judge`` for each item, first and second of ``verdicts``.
    """
    m = len(verdicts.contestants)
    names = np.array(verdicts.contestants, object)
    is_human = names == HUMAN
    known = is_human[verdicts.first] | is_human[verdicts.second]
    known |= (names == NO_CONTESTANT)[verdicts.second]
    shown = verdicts.only(known)
    key = (shown.item * m + shown.first) * m + shown.second
    asked = shown.take(np.sort(np.unique(key, return_index=True)[1]))
    result = np.where(is_human[asked.first], WIN, LOSS)
    nobody = np.zeros(len(asked), np.intp)
    return replace(asked, judges=(judge,), judge=nobody, result=result)
