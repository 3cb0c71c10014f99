"""The judge itself as a table: how steady it is, how readable, and what it prefers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate

import numpy as np
from msgspec import UnsetType

from botchat.boards.names import is_floor_bot
from botchat.boards.protocols import Evidence
from botchat.boards.tables import Column, Table, table, with_interval
from botchat.interfaces import Row
from botchat.judges.single import sample_agreement
from botchat.metrics import lengths
from botchat.metrics.intervals import figures, share
from botchat.metrics.judge_bias import accusations, facts
from botchat.records import Dialogues, Judgment
from botchat.verdicts import LOSS, WIN, Indices, Verdicts


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
            *COUNTS,
            Column("people", "Of people", "count", detail=True),
            Column("seeds", "ChatSEEDs", "count", detail=True),
            *RATES,
            *with_interval(Column("first_preferred", "First shown wins", "rate")),
            *with_interval(Column("longer_preferred", "Longer wins", "rate")),
            *with_interval(Column("people_accused", "People accused", "rate")),
            *with_interval(Column("machines_caught", "Machines caught", "rate", detail=True)),
            *with_interval(Column("bots_caught", "Floor bots caught", "rate", detail=True)),
            *(c for column in SURENESS if column.key in known for c in with_interval(column)),
        ],
        rows,
        signatures,
        "In percent, with 95 % intervals that allow for the ChatSEEDs that verdicts share. Same in "
        "both orders: pairs of dialogues with one result whichever is shown first; same winner: of "
        "those decided in both. First shown wins: of the decided comparisons of pairs that are "
        "read in both orders; 50 is no preference. Longer wins: of the decided "
        "comparisons in which one dialogue has more words; also where the longer is better.",
    )


COUNTS = (
    Column("unreadable", "Unreadable", "count"),
    Column("decided", "Decided", "count", detail=True),
)
RATES = (
    *with_interval(Column("unreadable_rate", "Unreadable, share", "rate", detail=True)),
    *with_interval(Column("ties", "Ties", "rate")),
    *with_interval(Column("consistency", "Same in both orders", "rate")),
    *with_interval(Column("same_winner", "Same winner in both orders", "rate")),
)
"""What `of_pairs` counts, and what it comes to."""

SURENESS = (
    Column("stable", "Samples all agree", "rate"),
    Column("samples_agree", "Two samples agree", "rate"),
    Column("cut", "Went on as another, cut", "rate"),
)
"""Of judges that are sampled, or whose members spoke for others."""


def sureness(judgments: Sequence[Judgment]) -> Row:
    """`SURENESS` of a judge in one protocol, without what is not known.

    ``samples_agree``: the chance that two samples of a case are the same; ``cut``: share of
    remarks that went on as another agent (`Remark.cut`).
    """
    found: Row = {}
    talked = [j for j in judgments if j.transcript]
    agreement = [(j.seed_id, each) for j in talked for each in sample_agreement(j.transcript)]
    for i, key in enumerate(("stable", "samples_agree") if agreement else ()):
        found |= share([each[i] for _, each in agreement], [seed for seed, _ in agreement], key)
    spoken = [
        (j.seed_id, not isinstance(one.cut, UnsetType)) for j in talked for one in j.transcript
    ]
    if any(cut for _, cut in spoken):
        found |= share([cut for _, cut in spoken], [seed for seed, _ in spoken], "cut")
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
    innocent = protocol.passing if protocol.about_ai else None
    unreadable = [judgment.verdict is None for judgment in judgments]
    seeds = [judgment.seed_id for judgment in judgments]
    bots = accusations((one for one in judgments if is_floor_bot(one.contestants[0])), innocent)
    return {
        "judged": len(judgments),
        "unreadable": sum(unreadable),
        "seeds": len(set(seeds)),
        **share(unreadable, seeds, "unreadable_rate"),
        **accusations(judgments, innocent),
        **{f"bots_caught{end}": bots[f"machines_caught{end}"] for end in ("", "_low", "_high")},
    }


def of_pairs(verdicts: Verdicts, cluster: Indices | None = None) -> Row:
    """A judge's facts that verdicts on pairs alone tell; ``cluster``: what each seed shares."""
    made = verdicts.both_orders()
    return {
        "judged": len(verdicts),
        "unreadable": int((~verdicts.readable).sum()),
        "decided": int(np.isin(verdicts.result, (WIN, LOSS)).sum()),
        **figures(facts(made.results, made.seed if cluster is None else cluster[made.seed])),
    }


def _pairwise(verdicts: Verdicts, words: Words) -> Row:
    first, second = _shown(verdicts, words)
    unlike = np.isin(verdicts.result, (WIN, LOSS)) & (first != second)
    longer_won = ((verdicts.result == WIN) == (first > second))[unlike]
    return {
        **of_pairs(verdicts),
        "seeds": len(np.unique(verdicts.seed)),
        **share(longer_won, verdicts.seed[unlike], "longer_preferred"),
    }
