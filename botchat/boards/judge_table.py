"""The judge itself as a table: what its verdicts say of it, whoever is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate

import numpy as np

from botchat.boards.names import is_floor_bot
from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.tables import Column, Table, table, with_interval
from botchat.interfaces import Row
from botchat.metrics import lengths
from botchat.metrics.agreement import verdict_rates
from botchat.metrics.intervals import proportion_ci
from botchat.records import HUMAN, UNDECIDED, Dialogues
from botchat.verdicts import LOSS, WIN, Indices, Verdicts


def judge_table(
    judged: Iterable[ProtocolVerdicts], dialogues: Dialogues, signatures: Sequence[str]
) -> Table:
    """What a judge's verdicts say about it; ``dialogues``: of everybody judged in pairs."""

    @cache
    def words(contestant: str, seed_id: str) -> list[int]:
        """Words of the first 0, 1, 2, … utterances."""
        dialogue = dialogues.get(contestant, {}).get(seed_id)
        utterances = dialogue.utterances if dialogue else ()
        return list(accumulate(map(lengths.words, utterances), initial=0))

    def longer(verdicts: Verdicts, cluster: Indices) -> Row:
        """Share of decided verdicts for the longer dialogue."""
        first, second = _words_shown(verdicts, words)
        unequal = np.isin(verdicts.result, (WIN, LOSS)) & (first != second)
        longer_wins = (verdicts.result == WIN) == (first > second)
        return proportion_ci(
            longer_wins[unequal], cluster[verdicts.seed][unequal], "longer_preferred"
        )

    rows = []
    for part in sorted(judged, key=lambda part: part.protocol.name):
        if part.protocol.shows == "one":
            facts = _detection_rates(part)
        else:
            facts = pair_rates(part.verdicts, part.cluster) | longer(part.verdicts, part.cluster)
        rows.append({"protocol": part.protocol.name, **facts})
    return table(
        "judge",
        "The judge",
        [Column("protocol", "Protocol", "name"), *_COLUMNS],
        rows,
        signatures,
        "In percent, with 95 % intervals clustered by ChatSEED. Consistency: pairs with the same "
        "verdict in both orders. First preferred: decided verdicts for the dialogue shown first; "
        "50 is no bias. Longer preferred: decided verdicts for the dialogue with more words.",
    ).filled()


def _words_shown(verdicts: Verdicts, words: Callable[[str, str], list[int]]) -> Indices:
    """Words that the judge was shown of the first and of the second dialogue, shape (2, n)."""
    n, longest = len(verdicts.seed_ids), int(verdicts.shown.max(initial=0))
    place = np.stack([verdicts.first, verdicts.second]) * n + verdicts.seed
    totals = np.zeros((len(verdicts.contestants) * n, longest + 1), dtype=np.intp)
    for i in np.flatnonzero(np.bincount(place.ravel(), minlength=len(totals))).tolist():
        counts = words(verdicts.contestants[i // n], verdicts.seed_ids[i % n])
        totals[i] = counts[: longest + 1] + counts[-1:] * (longest + 1 - len(counts))
    return np.asarray(totals[place, verdicts.shown])


def pair_rates(verdicts: Verdicts, cluster: Indices) -> Row:
    """What verdicts on pairs say of the judge; ``cluster``: of each seed."""
    both = verdicts.both_orders()
    return {
        "judged": len(verdicts),
        "unreadable": int((~verdicts.readable).sum()),
        **verdict_rates(both.results, cluster[both.seed]),
    }


def _detection_rates(judged: ProtocolVerdicts) -> Row:
    """What verdicts on single dialogues say of the judge; positive: AI-involved."""
    protocol, judgments = judged.protocol, judged.judgments
    unreadable = [judgment.verdict is None for judgment in judgments]
    row: Row = {
        "judged": len(judgments),
        "unreadable": sum(unreadable),
        **proportion_ci(unreadable, judged.topics_of(judgments), "unreadable_rate"),
    }
    if not protocol.about_ai or protocol.passing is None:
        return row
    named = {
        "false_positive_rate": lambda name: name == HUMAN,
        "true_positive_rate": lambda name: name != HUMAN,
        "true_positive_rate_bots": is_floor_bot,
    }
    for key, is_one in named.items():
        known = (j for j in judgments if j.verdict not in (None, UNDECIDED))
        of = [j for j in known if is_one(j.contestants[0])]
        hits = [j.verdict != protocol.passing for j in of]
        row |= proportion_ci(hits, judged.topics_of(of), key)
    return row


PAIR_COLUMNS = (
    Column("judged", "Judgments", "count"),
    Column("unreadable", "Unreadable", "count"),
    *with_interval(Column("unreadable_rate", "Unreadable, share", "rate", detail=True)),
    *with_interval(Column("ties", "Ties", "rate")),
    *with_interval(Column("consistency", "Consistency", "rate")),
    *with_interval(Column("first_preferred", "First preferred", "rate")),
)
_COLUMNS = (
    *PAIR_COLUMNS,
    *with_interval(Column("longer_preferred", "Longer preferred", "rate")),
    *with_interval(Column("false_positive_rate", "False positives", "rate")),
    *with_interval(Column("true_positive_rate", "True positives", "rate")),
    *with_interval(Column("true_positive_rate_bots", "True positives, bots", "rate", detail=True)),
)
