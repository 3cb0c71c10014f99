"""The judge itself as a table: what its verdicts say of it, whoever is right."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.skill import SkillCases
from botchat.boards.tables import COLUMNS, Column, Table, TableRow, table
from botchat.estimates import UNKNOWN, Estimate, Indices
from botchat.metrics import lengths
from botchat.metrics.agreement import both_orders_rates
from botchat.metrics.statistics import proportion
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdicts, lacks_room
from botchat.records import Texts


class JudgeFacts(NamedTuple):
    """Facts of a judge's verdicts in one protocol."""

    protocol: str
    """Name of the protocol."""
    judged: int
    unreadable: int
    without_room: int
    """Verdicts that are missing since a reply was cut or showed nothing; see `lacks_room`."""
    rates: Mapping[str, Estimate]
    """Key of `_COLUMNS` -> its rate, as far as the protocol has it."""
    cases: SkillCases = SkillCases()
    """Verdicts on shuffled dialogues; none of a protocol that does not test its judges."""

    @property
    def row(self) -> TableRow:
        """Row of the judge's table."""
        return {**self._asdict(), **self.rates, "skill_n": len(self.cases.values) or None}

    def rate(self, key: str) -> Estimate:
        """Return a rate; unknown where the protocol does not have it."""
        return self.rates.get(key, UNKNOWN)


def judge_facts(part: ProtocolVerdicts) -> JudgeFacts:
    """Return the judge's facts in a protocol."""
    cases = part.tested
    skill = {"skill": cases.skill, "place": cases.placed}
    if part.protocol.is_alone:
        facts = _facts_alone(part)
        skill["true_positive_rate"] = proportion(cases.noticed, cases.clusters)
        skill["false_positive_rate"] = proportion(cases.blamed, cases.clusters)
    else:
        # Whether a reply can be read hangs on no topic: by seed, as of dialogues alone.
        seed = part.verdicts.item
        facts = pair_facts(part.verdicts, part.cluster[seed], seed, part.protocol.name)
        skill["longer_preferred"] = _longer_preferred(part)
    return facts._replace(rates={**facts.rates, **skill}, cases=cases)


def judge_table(facts: Iterable[JudgeFacts], signatures: Texts) -> Table:
    """Make the table of a judge."""
    return table(
        "judge",
        "The judge",
        [Column("protocol", "Protocol", "name"), *COLUMNS.facts_on_pairs, *COLUMNS.facts_of_tests],
        [each.row for each in facts],
        signatures,
        "In percent, with 95 % intervals clustered by ChatSEED. Consistency: pairs with the same "
        "verdict in both orders. First preferred: decided verdicts for the dialogue shown first; "
        "50 is no bias. Longer preferred: decided verdicts for the dialogue with more words. "
        "Skill: on shuffled dialogues beside human ones; 0 is guessing, 100 always right.",
    ).filled()


def _longer_preferred(judged: ProtocolVerdicts) -> Estimate:
    """Return the share of decided verdicts for the dialogue with more words, as shown."""
    verdicts = judged.verdicts

    @cache
    def words(name: int, item: int, end: int) -> int:
        dialogue = judged.dialogues.get(verdicts.contestants[name], {}).get(verdicts.items[item])
        if dialogue is None:
            return 0
        return sum(map(lengths.words, dialogue.utterances[:end]))

    item = verdicts.item.tolist()
    shown = verdicts.shown.tolist()
    first = np.array(list(map(words, verdicts.first.tolist(), item, shown)))
    second = np.array(list(map(words, verdicts.second.tolist(), item, shown)))
    unequal = np.isin(verdicts.result, (WIN, LOSS)) & (first != second)
    longer_wins = (verdicts.result == WIN) == (first > second)
    return proportion(longer_wins[unequal], judged.cluster[verdicts.item[unequal]])


def pair_facts(
    verdicts: PairVerdicts, cluster: Indices, asked: Indices, protocol: str = ""
) -> JudgeFacts:
    """Return the judge's facts on pairs.

    ``cluster``: number of each verdict's cluster. ``asked``: of its cluster for the share that
    cannot be read.
    """
    readable = verdicts.readable
    begin, outcomes = verdicts.both_orders()
    of_pair = np.stack([cluster[begin], cluster[begin]], 1)
    consistency, first_preferred = both_orders_rates(outcomes, of_pair)
    rates = {
        "consistency": consistency,
        "first_preferred": first_preferred,
        "ties": proportion((verdicts.result == TIE)[readable], cluster[readable]),
        "unreadable_rate": proportion(~readable, asked),
    }
    n_unreadable = int((~readable).sum())
    return JudgeFacts(protocol, len(verdicts), n_unreadable, int(verdicts.no_room.sum()), rates)


def _facts_alone(judged: ProtocolVerdicts) -> JudgeFacts:
    """Return the judge's facts on single dialogues."""
    judgments = judged.judgments
    unreadable = [judgment.verdict is None for judgment in judgments]
    rates = {"unreadable_rate": proportion(unreadable, judged.cases["seed"].tolist())}
    n_without_room = sum(map(lacks_room, judgments))
    return JudgeFacts(judged.protocol.name, len(judgments), sum(unreadable), n_without_room, rates)
