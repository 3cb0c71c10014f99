"""The judge itself as a table: what its verdicts say of it, whoever is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.tables import Column, Table, is_floor_bot, table
from botchat.estimates import Estimate, Indices
from botchat.interfaces import Row
from botchat.metrics import lengths
from botchat.metrics.agreement import verdict_rates
from botchat.metrics.statistics import distinct, proportion
from botchat.metrics.verdicts import LOSS, WIN, PairVerdicts
from botchat.records import HUMAN, UNDECIDED, Dialogues


def judge_table(
    judged: Iterable[ProtocolVerdicts], dialogues: Dialogues, signatures: Sequence[str]
) -> Table:
    """Make the table of a judge; ``dialogues`` are of all contestants judged in pairs."""
    rows = []
    for part in sorted(judged, key=lambda part: part.protocol.name):
        if part.protocol.is_alone:
            rates = _detection_rates(part)
        else:
            rates = pair_rates(part.verdicts, part.cluster[part.verdicts.item])
            rates["longer_preferred"] = _longer_preferred(part, dialogues)
        rows.append({"protocol": part.protocol.name, **rates})
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


def _longer_preferred(judged: ProtocolVerdicts, dialogues: Dialogues) -> Estimate:
    """Return the share of decided verdicts for the dialogue with more words, as shown."""
    verdicts = judged.verdicts
    names = verdicts.contestants
    seed_ids = verdicts.items
    most = 1 + verdicts.shown.max(initial=0)
    side = np.concatenate([verdicts.first, verdicts.second]) * len(seed_ids)
    cut = (side + np.tile(verdicts.item, 2)) * most + np.tile(verdicts.shown, 2)
    numbers, place = distinct(cut)
    words = np.zeros(len(numbers), np.intp)
    for i, number in enumerate(numbers.tolist()):
        name, seed = divmod(number // most, len(seed_ids))
        dialogue = dialogues.get(names[name], {}).get(seed_ids[seed])
        if dialogue:
            words[i] = sum(lengths.words(each) for each in dialogue.utterances[: number % most])
    first, second = words[place].reshape(2, -1)
    unequal = np.isin(verdicts.result, (WIN, LOSS)) & (first != second)
    longer_wins = (verdicts.result == WIN) == (first > second)
    cluster = judged.cluster[verdicts.item]
    return proportion(longer_wins[unequal], cluster[unequal])


def pair_rates(verdicts: PairVerdicts, cluster: Indices) -> Row:
    """Return the judge's rates on pairs; ``cluster`` is the number of each verdict's cluster."""
    begin, outcomes = verdicts.both_orders()
    return {
        "judged": len(verdicts),
        "unreadable": int((~verdicts.readable).sum()),
        **vars(verdict_rates(outcomes, cluster[begin])),
    }


def _detection_rates(judged: ProtocolVerdicts) -> Row:
    """Return the judge's rates on single dialogues, where positive is AI-involved."""
    protocol = judged.protocol
    judgments = judged.judgments
    unreadable = [judgment.verdict is None for judgment in judgments]
    row: Row = {
        "judged": len(judgments),
        "unreadable": sum(unreadable),
        "unreadable_rate": proportion(unreadable, judged.topics_of(judgments)),
    }
    if not protocol.about_ai or protocol.answer.passing is None:
        return row
    known = [j for j in judgments if j.verdict not in (None, UNDECIDED)]
    for key, counts in (
        ("false_positive_rate", lambda name: name == HUMAN),
        ("true_positive_rate", lambda name: name != HUMAN),
        ("true_positive_rate_bots", is_floor_bot),
    ):
        counted = [j for j in known if counts(j.contestants[0])]
        hits = [j.verdict != protocol.answer.passing for j in counted]
        row[key] = proportion(hits, judged.topics_of(counted))
    return row


PAIR_COLUMNS = (
    Column("judged", "Judgments", "count"),
    Column("unreadable", "Unreadable", "count"),
    Column("unreadable_rate", "Unreadable, share", "rate", detail=True, interval=True),
    Column("ties", "Ties", "rate", interval=True),
    Column("consistency", "Consistency", "rate", interval=True),
    Column("first_preferred", "First preferred", "rate", interval=True),
)
_COLUMNS = (
    *PAIR_COLUMNS,
    Column("longer_preferred", "Longer preferred", "rate", interval=True),
    Column("false_positive_rate", "False positives", "rate", interval=True),
    Column("true_positive_rate", "True positives", "rate", interval=True),
    Column("true_positive_rate_bots", "True positives, bots", "rate", detail=True, interval=True),
)
