"""The judge itself as a table: how steady it is, how readable, and what it prefers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate

import numpy as np
from msgspec import UnsetType

from botchat.boards.protocols import Evidence
from botchat.boards.tables import Column, Table, table
from botchat.interfaces import Row
from botchat.judges.samples import stability
from botchat.measures import lengths
from botchat.protocols import rates
from botchat.protocols.pairs import Indices, Verdicts
from botchat.records import HUMAN, Dialogues, Judgment


def judge_health(
    judged: Iterable[Evidence], dialogues: Dialogues, signatures: Sequence[str]
) -> Table:
    """What a judge's verdicts say about it; ``dialogues``: of everybody judged in pairs."""

    @cache
    def words(contestant: str, seed_id: str) -> list[int]:
        """Of the first 0, 1, 2, … utterances."""
        dialogue = dialogues.get(contestant, {}).get(seed_id)
        said = dialogue.utterances if dialogue else ()
        return list(accumulate(map(lengths.words, said), initial=0))

    rows = [
        {
            "protocol": one.protocol.name,
            **(_single(one) if one.protocol.shows == "one" else _pairwise(one.verdicts, words)),
            **one.sure,
        }
        for one in judged
    ]
    rows.sort(key=lambda row: row["protocol"])
    known = {key for row in rows for key in row}
    return table(
        "judge",
        "The judge",
        [
            Column("protocol", "Protocol", "name"),
            Column("judged", "Judgments", "count"),
            Column("unreadable", "Unreadable", "count"),
            Column("unreadable_rate", "Unreadable, share", "rate", detail=True),
            Column("ties", "Ties", "rate"),
            Column("consistency", "Same in both orders", "rate"),
            Column("first_preferred", "First shown wins", "rate"),
            Column("longer_preferred", "Longer wins", "rate"),
            Column("false_alarms", "Humans accused", "rate"),
            *(column for column in SURENESS if column.key in known),
        ],
        rows,
        signatures,
        "In percent. Same in both orders: pairs of dialogues with one result whichever is shown "
        "first. First shown wins: of the decided comparisons; 50 is no preference. Longer wins: of "
        "the decided comparisons in which one dialogue has more words; also where the longer is "
        "the better one.",
    )


SURENESS = (
    Column("stable", "Samples all agree", "rate"),
    Column("samples_agree", "Two samples agree", "rate"),
    Column("confidence", "Confidence", "rate"),
)
"""Of judges that are sampled, or whose probabilities are known."""


def sureness(judgments: Sequence[Judgment]) -> Row:
    """`SURENESS` of a judge in one protocol, without what is not known.

    ``samples_agree``: the chance that two samples of a case are the same; ``confidence``: mean
    probability given to the verdicts.
    """
    found: dict[str, float] = {}
    if steady := stability(judgment.transcript for judgment in judgments):
        found |= {"stable": steady.unanimous, "samples_agree": steady.agreement}
    if known := [j.confidence for j in judgments if not isinstance(j.confidence, UnsetType)]:
        found["confidence"] = sum(known) / len(known)
    return found


Words = Callable[[str, str], list[int]]
"""(contestant, seed id) -> words of the first 0, 1, 2, … utterances of the dialogue."""


def _shown(verdicts: Verdicts, words: Words) -> Indices:
    """Words that the judge was shown of the first and of the second dialogue, shape (2, n)."""
    n, longest = len(verdicts.seed_ids), int(verdicts.shown.max(initial=0))
    place = np.stack([verdicts.first, verdicts.second]) * n + verdicts.seed
    totals = np.zeros((len(verdicts.contestants) * n, longest + 1), dtype=np.intp)
    for there in np.flatnonzero(np.bincount(place.ravel(), minlength=len(totals))).tolist():
        said = words(verdicts.contestants[there // n], verdicts.seed_ids[there % n])
        totals[there] = said[: longest + 1] + said[-1:] * (longest + 1 - len(said))
    return np.asarray(totals[place, verdicts.shown])


def _single(judged: Evidence) -> Row:
    protocol, judgments = judged.protocol, judged.judgments
    innocent = protocol.innocent if protocol.about_ai else None
    human = [judgment.verdict for judgment in judgments if HUMAN in judgment.contestants]
    said = [verdict != innocent for verdict in human if verdict is not None]
    unreadable = sum(judgment.verdict is None for judgment in judgments)
    return {
        "judged": len(judgments),
        "unreadable": unreadable,
        "unreadable_rate": unreadable / len(judgments),
        "false_alarms": sum(said) / len(said) if said and innocent is not None else None,
    }


def _pairwise(verdicts: Verdicts, words: Words) -> Row:
    found = rates.steadiness(verdicts)
    first, second = _shown(verdicts, words)
    unlike = np.isin(verdicts.result, (0.0, 1.0)) & (first != second)
    longer_won = ((verdicts.result == 1) == (first > second))[unlike]
    return {
        "judged": len(verdicts),
        "unreadable": found.ties.missing,
        "unreadable_rate": found.ties.missing / len(verdicts),
        "ties": found.ties.value,
        "consistency": found.consistency.value,
        "first_preferred": found.first_preferred.value,
        "longer_preferred": float(longer_won.mean()) if unlike.any() else None,
    }
