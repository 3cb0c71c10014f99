"""Reading verdicts: who passes, and who is preferred, on which judges are compared.

An unreadable verdict is no win, tie, loss, success or failure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from botchat.metrics.annotations import NO_CONTESTANT, NOT_SAID, UNTOLD, Annotation, first_ai_index
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, N_SEED, Dialogue, Judgment, Seed, Verdict, eligible_seeds

_Compared = tuple[str, str, str, str]  # item, first, second, judge
PASS_AT = (4, 8, 12, 16)  # N of the success rates (BotChat §4.2, Figure 4)


class WinTieLose(NamedTuple):
    """Comparisons of one contestant with another, seen from its side, from both orders."""

    wins: int
    ties: int
    losses: int


def passes(dialogue: Dialogue, verdict: Verdict | None, turns: int) -> bool | None:
    """Return whether a dialogue passes at N = ``turns``: "No", or an AI utterance above N.

    None: unreadable, undecided, no index in a dialogue longer than N, or a model's shorter than N
    without an AI utterance. Raises `DataError` for a verdict that UniEval does not offer.
    """
    index = UNTOLD if verdict is None else first_ai_index(verdict, "a UniEval judgment")
    if index == UNTOLD:
        return None
    if index == NOT_SAID and turns > N_SEED:
        return None if turns < len(dialogue.utterances) else False
    if 0 < index <= turns:
        return False
    return True if dialogue.model == HUMAN or len(dialogue.utterances) >= turns else None


def successes(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Dialogue],
    verdicts: Mapping[str, Verdict | None],
    turns: int | None,
) -> dict[str, bool | None]:
    """Return whether one contestant passes at N = ``turns`` on each seed, None: not known.

    ``turns`` None: N is the length of each human dialogue, of at least 4 utterances (Figure 7).
    """
    whole = [seed for seed in eligible_seeds(seeds) if len(seed.utterances) > N_SEED]
    lengths = {seed.id: turns or len(seed.utterances) for seed in (seeds if turns else whole)}
    return {
        i: passes(dialogues[i], verdicts.get(i), n) if i in dialogues else None
        for i, n in lengths.items()
    }


def preference(lead: float) -> str | None:
    """Return the verdict of an `Annotation` from the lead of the first, NaN if unreadable."""
    return None if math.isnan(lead) else "tie" if abs(lead) < 1e-9 else "1" if lead > 0 else "2"


def preferences(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """Return which of two is better by each judgment of one protocol, as shown.

    A lone dialogue is compared with `NO_CONTESTANT`: better (``"1"``) if it passes. Scores, reports
    compare any two dialogues of one seed, in the order of their names. Raises `DataError` for a
    verdict that the protocol does not offer.
    """
    leads = list[tuple[_Compared, float]]()
    totals = defaultdict[tuple[str, str], dict[str, float]](dict)
    for j in judgments:
        if protocol.shows == "one" and protocol.kind != "place":
            total = sum(protocol.numbers(j.verdict) or (math.nan,))
            totals[j.judge, j.seed_id][j.contestants[0]] = total
        else:
            first, second, *_ = (*j.contestants, NO_CONTESTANT)
            value = next((value for _, value in protocol.values(j)), math.nan)
            leads.append(((j.seed_id, first, second, j.judge), value - 0.5))
    for (judge, item), by_name in totals.items():
        for first, second in combinations(sorted(by_name), 2):
            leads.append(((item, first, second, judge), by_name[first] - by_name[second]))
    return [Annotation(*case, preference(lead)) for case, lead in leads]


def calibrated(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """Return which of two is better by the sum of the leads in both orders, one a judge and pair.

    Position calibration (ChatEval §3.2; Wang et al. 2023, BPC): unreadable if one order is.
    """
    leads: dict[_Compared, float] = {}
    for j in judgments:
        (first, second), lead = j.contestants, protocol.lead(j.verdict)
        key, swapped = (j.seed_id, first, second, j.judge), (j.seed_id, second, first, j.judge)
        key, sign = (swapped, -1) if swapped in leads else (key, 1)
        leads[key] = leads.get(key, 0.0) + sign * (math.nan if lead is None else lead)
    return [Annotation(*key, preference(lead)) for key, lead in leads.items()]


def truth(annotations: Iterable[Annotation], judge: str) -> Iterator[Annotation]:
    """Return what is known without a judge: which side, or dialogue, is human."""
    for item, first, second in dict.fromkeys((a.item, a.first, a.second) for a in annotations):
        if HUMAN in (first, second) or second == NO_CONTESTANT:
            yield Annotation(item, first, second, judge, "1" if first == HUMAN else "2")
