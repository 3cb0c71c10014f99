"""A judge's cases beside what a reference says of some of them, and its rates as people judge.

One way to read a reference that is known for a part of the cases (`JudgedCases`), whoever it is:
people (`cases`; labels are the judgments of judges whose names begin with ``human``, and where
several labelled one case it has the mean of what they said) or another judge (`one_by_one`). What
follows from it is `botchat.measures.references`; a bridge's tables are in `botchat.boards.bridge`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TypeAlias

import numpy as np

from botchat.boards.names import elided
from botchat.boards.protocols import MODEL, Evidence, success_turns
from botchat.boards.results import comparisons_of
from botchat.boards.strengths import Design
from botchat.boards.tables import Column, Kind, Table, table, with_interval
from botchat.interfaces import Row
from botchat.measures import intervals
from botchat.measures.intervals import LEAST
from botchat.measures.references import PEOPLE, Corrected, Given, Side
from botchat.measures.statistics import ratio
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import names_own, passed
from botchat.protocols.scores import Scale
from botchat.records import HUMAN, Dialogues, Judgment, Seed
from botchat.verdicts import Flags, Floats, Indices

Labels: TypeAlias = Mapping[str, Sequence[Judgment]]
"""Protocol -> what people said, one judgment for each person and case."""

WITHIN = 0.05
"""How near to the truth a rate should be: a board without labels says how many that takes."""

_UNLIKELY = 4.0
"""Standard errors beyond which labelled cases are taken not to be drawn at random."""


@dataclass(frozen=True, eq=False)
class JudgedCases:
    """What a judge said of the cases that a rate is of, and a reference of those of its slice.

    A case is a dialogue, or two dialogues of one ChatSEED, in both orders or in the one shown. All
    arrays have shape (cases,): ``seed``, ``one`` and ``other`` are indices into the names,
    ``other`` is -1 of a dialogue alone. ``judged``, ``reference``: the result for ``one``, 0 to 1,
    of several orders or people the mean; ``reference`` is nan outside the slice. ``weight``: of the
    case in a rate; ``chance``: with which it came into the slice, in any unit.
    """

    protocol: Protocol
    what: str
    """The number, in words."""
    rated: tuple[str, ...]
    """Contestants that have one."""
    signature: str
    names: tuple[str, ...]
    seed_ids: tuple[str, ...]
    seed: Indices
    one: Indices
    other: Indices
    judged: Floats
    reference: Floats
    weight: Floats
    chance: Floats
    persons: tuple[str, ...]
    """Who the reference is, by name."""
    scale: Scale | None = None
    """Of scores; results are then between its ends."""
    given: Given | None = None
    """What each of them said, for ``one``."""

    @property
    def labels(self) -> int:
        """Cases of the slice."""
        return int((~np.isnan(self.reference)).sum())

    def rows_of(self, name: str) -> Indices:
        """The cases of one contestant."""
        i = self.names.index(name)
        return np.flatnonzero((self.one == i) | (self.other == i))

    def of(self, name: str) -> Side:
        """The cases of one contestant, results from its side."""
        rows = self.rows_of(name)
        mine = self.one[rows] == self.names.index(name)
        judged, reference = (
            np.where(mine, values[rows], 1 - values[rows])
            for values in (self.judged, self.reference)
        )
        return Side(
            judged, reference, self.seed[rows], self.weight[rows], self.chance[rows],
            self._given_of(rows, mine),
        )  # fmt: skip

    def _given_of(self, rows: Indices, mine: Flags) -> Given | None:
        if self.given is None:
            return None
        place, case = np.full(len(self.seed), -1), self.given.case
        place[rows] = np.arange(len(rows))
        there = place[case] >= 0
        at, value = place[case][there], self.given.value[there]
        return Given(at, self.given.person[there], np.where(mine[at], value, 1 - value))

    def told(self, key: str, *found: float) -> Row:
        """A result and the ends of its interval under their keys, on the scale of the number."""
        scale = self.scale
        least, span = (0.0, 1.0) if scale is None else (scale.lowest, scale.highest - scale.lowest)
        return intervals.entries(key, *(least + span * x for x in found))

    @property
    def odds(self) -> float:
        """How far the judge's results of the slice are off those of a random draw.

        In standard errors of a draw without replacement among the cases of the same contestants;
        0 where all or none are in it.
        """
        key = _together(self.one, self.other)
        drawn = ~np.isnan(self.reference)
        n, k = np.bincount(key), np.bincount(key, drawn)
        middle = np.bincount(key, self.judged) / n
        apart = self.judged - middle[key]
        spread = np.bincount(key, apart**2) / n
        variance = float((k * (n - k) / np.maximum(n - 1, 1) * spread).sum())
        return float(apart[drawn].sum()) / math.sqrt(variance) if variance > 1e-9 else 0.0


def cases(
    judged: Mapping[str, Evidence], labels: Labels, seeds: Sequence[Seed], dialogues: Dialogues
) -> list[JudgedCases]:
    """The cases of every number that people can correct, of each protocol the leading one first.

    ``judged``: the judge's, by protocol. These are success rates, at each N among the dialogues
    that reach it; means of scores; and of two dialogues a win, half of a tie.
    """
    found: list[JudgedCases] = []
    for name, said in judged.items():
        protocol, people = said.protocol, labels.get(name, ())
        if protocol.shows != "one":
            found.append(_paired(said, people, seeds))
            continue
        numbers: list[tuple[str, Callable[[Judgment], float | None], Scale | None]] = []
        if protocol.kind == "place":
            seen = protocol.seen(dialogues)
            numbers = [
                (f"success @{n}", partial(_passes, seen, n), None)
                for n in success_turns(said, seen)
            ]
        elif protocol.kind == "choice":
            numbers = [("not named", partial(_not_named, dialogues), None)]
        elif protocol.kind == "score":
            scale = protocol.asked_scale
            numbers = [
                (number, partial(_score, protocol, i), scale)
                for i, number in enumerate(scale.names)
            ]
        found += [
            one_by_one(
                protocol, said.judgments, people, [seed.id for seed in seeds], value,
                f"{protocol.label}: {number}", said.signature, scale,
            )
            for number, value, scale in numbers
        ]  # fmt: skip
    return [one for one in found if len(one.seed)]


def _passes(dialogues: Dialogues, n: int, judgment: Judgment) -> float | None:
    """1 or 0 of a dialogue that reaches N, by whether it is accused up to it."""
    dialogue = dialogues.get(judgment.contestants[0], {}).get(judgment.seed_id)
    # Of those that stop before N only the accused would be there.
    if dialogue is None or (dialogue.model != HUMAN and len(dialogue.utterances) < n):
        return None
    return passed(dialogue, judgment.verdict, n)


def _not_named(dialogues: Dialogues, judgment: Judgment) -> float | None:
    """1 or 0 of a dialogue, by whether a speaker that is the contestant is named."""
    dialogue = dialogues.get(judgment.contestants[0], {}).get(judgment.seed_id)
    if dialogue is None or judgment.verdict is None:
        return None
    return names_own(dialogue, judgment.verdict) is not True


def _score(protocol: Protocol, i: int, judgment: Judgment) -> float | None:
    """A number of a score, the ends of its scale as 0 and 1."""
    given = protocol.numbers(judgment.verdict)
    return None if given is None else protocol.asked_scale.part(given[i])


def result(protocol: Protocol, judgment: Judgment) -> float | None:
    """What a verdict gives the one that is shown first (`Protocol.values`)."""
    values = protocol.values(judgment)
    return values[0][1] if values else None


def one_by_one(
    protocol: Protocol,
    judged: Sequence[Judgment],
    reference: Sequence[Judgment],
    seed_ids: Sequence[str],
    value: Callable[[Judgment], float | None],
    what: str = "",
    signature: str = "",
    scale: Scale | None = None,
) -> JudgedCases:
    """Cases as they were shown, of each judgment on these seeds that ``value`` gives a number."""
    place = {seed_id: i for i, seed_id in enumerate(seed_ids)}
    names = tuple(dict.fromkeys(name for one in judged for name in one.contestants))
    number = {name: i for i, name in enumerate(names)}

    def valued(said: Iterable[Judgment]) -> Iterator[tuple[_Case, float, str]]:
        for one in said:
            at, shown = place.get(one.seed_id, -1), [number.get(n, -1) for n in one.contestants]
            if min(at, *shown) >= 0 and (found := value(one)) is not None:
                yield (at, shown[0], shown[1] if len(shown) > 1 else -1), found, one.judge

    rows = {case: found for case, found, _ in valued(judged)}
    keys = np.array(list(rows), dtype=np.intp).reshape(-1, 3).T
    seed, one, other = keys
    results, weight = np.array(list(rows.values()), dtype=np.float64), np.ones(len(rows))
    given = _given(keys, valued(reference))
    return JudgedCases(
        protocol, what, _rated(protocol, names), signature, names, tuple(place), seed, one, other,
        results, _means(given, len(seed)), weight, weight, _persons(reference), scale, given,
    )  # fmt: skip


def _paired(judged: Evidence, people: Sequence[Judgment], seeds: Sequence[Seed]) -> JudgedCases:
    """Pairs of dialogues, and how often the first, by name, wins; a tie is half of a win."""
    protocol = judged.protocol
    said = judged.verdicts.on([seed.id for seed in protocol.eligible(seeds)])
    said = said.only(said.readable)
    made = comparisons_of(said)
    m, place = len(made.models), {seed_id: i for i, seed_id in enumerate(said.seed_ids)}
    first = made.first < made.second
    pair = np.where(first, made.first * m + made.second, made.second * m + made.first)
    key, inverse, orders = np.unique(
        said.seed * m * m + pair, return_inverse=True, return_counts=True
    )
    by_judge = np.bincount(inverse, np.where(first, made.result, 1 - made.result)) / orders
    seed, pair = key // (m * m), key % (m * m)
    one, other = pair // m, pair % m
    games = np.bincount(pair, orders, minlength=m * m)
    weight = orders.astype(np.float64)
    uneven = Design(tuple(games[games > 0].astype(int).tolist()), 0).uneven
    if uneven:  # as on the board: opponents count alike
        weight = weight / games[pair]
    number = {name: i for i, name in enumerate(made.models)}

    def valued() -> Iterator[tuple[_Case, float, str]]:
        for label in people:
            a, b = (number.get(name, -1) for name in label.contestants)
            at, by = place.get(label.seed_id, -1), result(protocol, label)
            if min(a, b, at) >= 0 and by is not None:
                yield (at, min(a, b), max(a, b)), by if a < b else 1 - by, label.judge

    given = _given(np.stack([seed, one, other]), valued())
    means = _means(given, len(seed))
    # By pair they are drawn alike, and so not alike among cases.
    chance = drawn_by_pair(one, other, means) if uneven else np.ones(len(pair))
    return JudgedCases(
        protocol, f"{protocol.label}: win + ½ tie", _rated(protocol, made.models),
        judged.signature, made.models, said.seed_ids, seed, one, other, by_judge, means, weight,
        chance if chance.all() else np.ones(len(pair)), _persons(people), None, given,
    )  # fmt: skip


def drawn_by_pair(one: Indices, other: Indices, reference: Floats) -> Floats:
    """Share of the slice in the cases of the same contestants, of each case, shape (cases,)."""
    key = _together(one, other)
    return (np.bincount(key, ~np.isnan(reference)) / np.bincount(key))[key]


def _together(one: Indices, other: Indices) -> Indices:
    """A number for the contestants of each case, in whatever order they are."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    both = low * (high.max(initial=0) + 1) + high
    return np.unique(both, return_inverse=True)[1].astype(np.intp)


_Case: TypeAlias = tuple[int, int, int]
"""Seed and contestants, by number."""


def _given(keys: Indices, valued: Iterable[tuple[_Case, float, str]]) -> Given:
    """What each person said of the cases ``keys``, shape (3, cases)."""
    said = list(valued)
    place = {key: i for i, key in enumerate(zip(*keys.tolist(), strict=True))} if said else {}
    people = {name: i for i, name in enumerate(dict.fromkeys(who for *_, who in said))}
    rows = [(place[key], people[who], by) for key, by, who in said if key in place]
    case, person, value = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return Given(case.astype(np.intp), person.astype(np.intp), value)


def _means(given: Given, n: int) -> Floats:
    """The mean value of each of ``n`` cases, nan of those without."""
    return ratio(np.bincount(given.case, given.value, n), np.bincount(given.case, minlength=n))


def _rated(protocol: Protocol, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if protocol.shows != "human" or name != HUMAN)


def _persons(people: Sequence[Judgment]) -> tuple[str, ...]:
    return tuple(sorted({label.judge for label in people}))


# ---------------------------------------------------------------------------------------- tables


def as_people(found: Sequence[JudgedCases], judge: str) -> list[Table]:
    """The judge's rates, and its means of scores, beside what they are as people judge.

    ``found``: as of `cases`. No table where people labelled nothing.
    """
    labelled = [one for one in found if one.labels]
    rates = [one for one in labelled if one.scale is None]
    scores = [one for one in labelled if one.scale is not None]
    made = [_beside("as-people-judge", "As people judge", rates, judge)] if rates else []
    if scores:
        made.append(_beside("as-people-judge-scores", "Scores as people judge", scores, judge))
    return made


def _beside(name: str, title: str, labelled: Sequence[JudgedCases], judge: str) -> Table:
    rows: list[Row] = []
    for one in labelled:
        of_one: list[Row] = []
        for model in one.rated:
            side = one.of(model)
            own, by = side.by_judge, side.by_reference
            ends = float(own.low[0]), float(own.high[0])
            if one.scale is not None:  # as on the board
                ends = intervals.mean(side.judged.tolist(), 0, 1)
            of_one.append(
                {
                    "number": one.what,
                    "model": model,
                    **one.told("judge", float(own.value[0]), *ends),
                    **one.told("people", by.value, by.low, by.high),
                    **one.told("others", by.value + 0 * by.others[0], *by.others),
                    "labels": by.labels,
                    "cases": len(side.judged),
                    "power": by.power if by.labels else None,
                }
            )
        # The highest first, by the judge where there are no labels.
        rows += sorted(of_one, key=lambda row: (
            math.inf if row["people"] is None else -row["people"], -row["judge"], row["model"]
        ))  # fmt: skip
    persons = sorted({person for one in labelled for person in one.persons})
    many = max((one.given.people for one in labelled if one.given), default=0) >= PEOPLE
    counted = f"{len(persons)} {'person' if len(persons) == 1 else 'people'}"
    counted += f": {', '.join(persons)}" if len(persons) < 4 else ""
    scored = labelled[0].scale is not None
    kind: Kind = "decimal" if scored else "rate"
    others = with_interval(Column("others", "As other people judge", kind))
    of_others = f"what others would say takes labels of {PEOPLE} or more."
    if many:
        of_others = "other people like them may lie anywhere in the second interval."
    return table(
        name,
        title,
        [
            Column("number", "Score" if scored else "Rate", "name"),
            MODEL,
            *with_interval(Column("judge", "Judge", kind)),
            *with_interval(Column("people", "As people judge", kind)),
            *(others if many else ()),
            Column("labels", "Labels", "count"),
            Column("cases", "Cases", "count"),
            Column("power", "Power of the judge", "decimal", detail=True),
        ],
        rows,
        [f"{one.signature}|as-people:ppi++|labels:{one.labels}" for one in labelled],
        f"Judge: {judge}, {'means of scores' if scored else 'in percent'}. As people judge: what "
        f"the people who labelled ({counted}) would say of other dialogues of the same kind, from "
        "their labels of a part of the cases and the judge's verdicts on all (PPI++), with 95 % "
        "intervals. That holds where the labelled cases were drawn at random, and of these people: "
        f"{of_others}{'' if scored else _RATES}",
    )


_RATES = (
    " Success at N: of the dialogues that reach N. Win + ½ tie: both orders of a pair of dialogues "
    "are one case."
)


def notes(found: Sequence[JudgedCases], seed_set: str, judge: str) -> Iterator[str]:
    """What people's labels change, or how many there should be, a sentence each."""
    leading = list({one.protocol.name: one for one in reversed(found)}.values())[::-1]
    labelled = [one for one in leading if one.labels]
    for one in labelled:
        if abs(odds := one.odds) > _UNLIKELY:
            yield (
                f"The cases of {one.protocol.name} that people labelled do not look drawn at "
                f"random: the judge's verdicts on them are {abs(odds):.0f} standard errors off "
                "those on the others. The column As people judge then says nothing; draw the cases "
                f"with: botchat label plan --seeds {seed_set} --judge {judge}"
            )
        else:
            yield from _changes(one)
    of_rates = [one for one in leading if one.scale is None]
    if of_rates and not labelled:
        yield _needed(of_rates[0], seed_set, judge)


def _changes(one: JudgedCases) -> Iterator[str]:
    """Contestants that change place for sure, where there are labels enough for words."""
    rows = {name: side for name in one.rated if len((side := one.of(name)).known) >= LEAST}
    if len(rows) < 2 or one.scale is not None:
        return
    judge = {name: float(side.by_judge.value[0]) for name, side in rows.items()}
    people = {name: side.by_reference for name, side in rows.items()}
    said = []
    for a, b in combinations(sorted(rows, key=lambda name: -people[name].value), 2):
        if people[a].low > people[b].high and judge[a] < judge[b]:
            said.append(f"{_told(a, people[a])} is above {_told(b, people[b])}")
    change = f"as people judge, {'; '.join(said)}; the judge has them the other way round"
    yield f"{one.what}: {change if said else 'no two change place for sure as people judge'}."


def _told(name: str, by: Corrected) -> str:
    return f"{elided(name, 34)} ({100 * by.value:.0f} [{100 * by.low:.0f}–{100 * by.high:.0f}])"


def _needed(one: JudgedCases, seed_set: str, judge: str) -> str:
    """How many labels would bring the rates within `WITHIN`, a sentence."""
    readable = [one.of(name) for name in one.rated if name != HUMAN]
    needed = [each.reach.needed(WITHIN) for each in readable if len(each.judged)]
    best, worst = zip(*needed, strict=True) if needed else ((), ())
    points = f"{one.what} as people judge, within ± {100 * WITHIN:.0f} points,"
    command = f"botchat label plan --seeds {seed_set} --judge {judge}"
    if None in best:
        return (
            f"{points} takes more dialogues than there are, even if people labelled all of them; "
            f"what fewer buy says: {command}"
        )
    most = "all" if None in worst else f"{max(worst, default=0):,}"
    return (
        f"{points} takes {max(best, default=0):,} labels a model if people always agree with the "
        f"judge, {most} if its verdicts tell nothing about theirs (and their rate is its own); "
        f"draw them with: {command}"
    )
