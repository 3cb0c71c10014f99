"""What verdicts say of the judge who gave them, whoever is right: the same numbers everywhere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from botchat.interfaces import Row
from botchat.metrics.intervals import Items, Statistic, share
from botchat.records import HUMAN, Judgment, Verdict
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Indices


def facts(said: Codes, item: Indices) -> dict[str, Statistic]:
    """Of verdicts on comparisons in both orders, (c, 2); ``item``: of each comparison, (c,).

    - ``unreadable_rate``: of all verdicts. ``ties``: of the readable ones.
    - ``consistency``: of the comparisons readable in both orders, those with the same result.
    - ``same_winner``: of the comparisons decided in both orders, those with the same winner.
    - ``first_preferred``: of the decided verdicts on comparisons readable in both orders, those
      for the side shown first; ½ is no preference. Only both orders tell what a place is worth
      from what a contestant is.
    """
    n = int(item.max(initial=-1)) + 1
    once, twice = Items(n, item), Items(n, np.repeat(item[:, None], 2, axis=1))
    readable = said < UNREADABLE
    decided: Flags = readable & (said != TIED)
    both, decided_both = (np.asarray(one.all(1)) for one in (readable, decided))
    same = said[:, 0] == -said[:, 1]
    return {
        "consistency": once.share(same, both),
        "same_winner": once.share(same, decided_both),
        "first_preferred": twice.share(said == 1, decided & both[:, None]),
        "ties": twice.share(said == TIED, readable),
        "unreadable_rate": twice.share(said == UNREADABLE, said != ABSENT),
    }


def accusations(judgments: Iterable[Judgment], innocent: Verdict | None) -> Row:
    """Of verdicts on single dialogues, of which ``innocent`` accuses none: who is accused.

    ``people``: how many people's dialogues are read; then `share`s.
    """
    said = [
        (one.seed_id, one.contestants[0] == HUMAN, one.verdict != innocent)
        for one in judgments
        if None not in (one.verdict, innocent)
    ]
    row: Row = {"people": sum(human for _, human, _ in said)}
    for name, of_people in (("people_accused", True), ("machines_caught", False)):
        of = [(seed, hit) for seed, human, hit in said if human is of_people]
        row |= share([hit for _, hit in of], [seed for seed, _ in of], name)
    return row
