"""What verdicts say of the judge who gave them, whoever is right: the same numbers everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from botchat.interfaces import Row
from botchat.measures.intervals import Items, Statistic, entries, share
from botchat.records import HUMAN, Judgment, Verdict
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Indices


def facts(said: Codes, item: Indices, crossed: Indices | None = None) -> dict[str, Statistic]:
    """Of verdicts on comparisons in both orders, (c, 2); ``item``: of each comparison, (c,).

    ``crossed``: who judged it, where there are several.

    - ``unreadable_rate``: of all verdicts. ``ties``: of the readable ones.
    - ``consistency``: of the comparisons readable in both orders, those with the same result.
    - ``same_winner``: of the comparisons decided in both orders, those with the same winner.
    - ``first_preferred``: of the decided verdicts on comparisons readable in both orders, those
      for the side shown first; ½ is no preference. Only both orders tell what a place is worth
      from what a contestant is.
    """
    n = int(item.max(initial=-1)) + 1
    orders = [None if of is None else np.repeat(of[:, None], 2, axis=1) for of in (item, crossed)]
    assert orders[0] is not None
    once, twice = Items(n, item, crossed), Items(n, orders[0], orders[1])
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

    ``people``: how many people's dialogues are read; then `share`s and `sharpness`.
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
    return row | sharpness(row, len(said) - row["people"], row["people"])


_ENDS = 0.05
"""Cases added to the ends of intervals: with half a case they could not hold a d′ of 4 of 20."""


def sharpness(row: Row, machines: int, people: int) -> Row:
    """``d_prime`` and ``criterion`` of ``machines_caught`` and ``people_accused``, with intervals.

    Signal detection (Macmillan & Creelman 2005, ch. 1-2): machines are the signal, people the
    noise. d′ is how well the judge tells them, the criterion how little it accuses (0: as many of
    either are wrong), which success depends on as much. Half a case is added to each kind (the
    log-linear correction; Hautus 1995). The intervals join those of both shares (MOVER; Zou &
    Donner 2008). None where either kind is missing.
    """
    if not machines or not people:
        return entries("d_prime", *[math.nan] * 3) | entries("criterion", *[math.nan] * 3)

    def placed(name: str, n: int) -> list[float]:
        added = {"": 0.5, "_low": _ENDS, "_high": _ENDS}
        return [
            NormalDist().inv_cdf((row[f"{name}{end}"] * n + more) / (n + 2 * more))
            for end, more in added.items()
        ]

    hit, hit_low, hit_high = placed("machines_caught", machines)
    alarm, alarm_low, alarm_high = placed("people_accused", people)
    hit_down, hit_up = hit - hit_low, hit_high - hit
    down, up = alarm - alarm_low, alarm_high - alarm
    d, c = hit - alarm, -(hit + alarm) / 2
    d_ends = d - math.hypot(hit_down, up), d + math.hypot(hit_up, down)
    c_ends = c - math.hypot(hit_up, up) / 2, c + math.hypot(hit_down, down) / 2
    return entries("d_prime", d, *d_ends) | entries("criterion", c, *c_ends)
