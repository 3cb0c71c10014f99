"""Anatomy of a debate, from the transcripts: who moved, toward what, and whether that was right.

A *turn* is what a member said before it heard the others again (of a statement that it examined
again, the second). Votes are numbers: scores, else 1 for what is better or unaccused, 0, ½ for a
tie. *Toward* is the slope of a member's change from turn to turn on the mean of what it last heard
of the others less its own vote; intervals are Student's, by the jackknife over seeds. Noisy votes
move toward others without any talk. Slopes of a placebo (`botchat.judges.placebo`) are free of
this, the own vote being held: on the verdict that the messages state, and on the same members' own
vote on the case, whose evidence is heard where verdicts are swapped, and not in another question.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from botchat.boards.tables import Column, Table, explained, table, with_ends, with_interval
from botchat.interfaces import Row
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import TOLD, aggregate, has_vote, mirrored
from botchat.measures.annotations import Opinions
from botchat.measures.intervals import LEAST, entries, left_out, share
from botchat.measures.statistics import LEVEL, student_t
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import preferences
from botchat.records import Judgment, Remark, Verdict
from botchat.verdicts import UNREADABLE

EVERYBODY, CLOSING = "all members", "the closing"

Truth = Mapping[tuple[str, str, str], str]
"""(item, first, second) -> who is better: ``"1"``, ``"2"`` or ``"tie"``."""

Talks = Mapping[str, list[tuple[int, Remark]]]
"""Member -> (place in the talk, remark) of each of its turns."""


class _Moved(NamedTuple):
    """The first and the last vote of a member, or of all members and the panel."""

    about: Judgment
    """In the order that was shown."""
    first: Verdict
    last: Verdict


Step = tuple[str, float, float, float, float]
"""Seed, then numbers: own vote before and after, what was heard, the others' own votes."""


def truth_of(grid: Opinions) -> Truth:
    """What most people say, in both orders; empty without people."""
    said, found = {1: "1", -1: "2", 0: "tie"}, {}
    for item, pair, codes in zip(
        grid.item, grid.sides.tolist(), grid.majority(grid.people).tolist(), strict=True
    ):
        for (one, two), code in zip((pair, pair[::-1]), codes, strict=True):
            if code < UNREADABLE:
                key = grid.items[item], grid.contestants[one], grid.contestants[two]
                found[key] = said[code]
    return found


def rows(
    judge: str, judgments: Sequence[Judgment], protocol: Protocol, truth: Truth, *, at_once: bool
) -> list[Row]:
    """A row for all members, each in the order of speaking, and a closing that overruled them.

    ``at_once``: members of a round do not hear each other. Empty if nobody spoke twice.
    """
    turns: dict[str, list[_Moved]] = defaultdict(list, {EVERYBODY: []})
    steps: dict[str, list[Step]] = defaultdict(list)
    closing, placebo, choices = [], False, protocol.reading().choices
    for made in judgments:
        ends = []
        for about, talk, told in _talks(made):
            placebo |= bool(told)
            for name, spoken in talk.items():
                first, last = spoken[0][1].verdict, spoken[-1][1].verdict
                ends.append(last if about is made else mirrored(last))
                moves = [*_steps(name, talk, told, made, protocol, at_once)]
                for who in (EVERYBODY, name):
                    steps[who] += moves
                    if len(spoken) > 1 and first is not None and last is not None:
                        turns[who].append(_Moved(about, first, last))
        whole = aggregate(ends, choices)
        if whole is not None and made.verdict is not None:
            closing.append(_Moved(made, whole, made.verdict))
    if not turns[EVERYBODY]:
        return []
    if any(one.first != one.last for one in closing):
        turns[CLOSING] = closing
    return [
        {"judge": judge, "member": name, "spoke": i if i and name != CLOSING else None}
        | _row(turns[name], protocol, truth)
        | _slopes([(s, (1.0, x - own), y - own) for s, own, y, x, _ in steps[name]], "toward")
        | _slopes(
            [(s, (1.0, x, others, own), y) for s, own, y, x, others in steps[name] if placebo],
            "verdict_slope", "evidence_slope",
        )
        for i, name in enumerate(turns)
    ]  # fmt: skip


def _talks(made: Judgment) -> Iterator[tuple[Judgment, Talks, Mapping[str, Remark]]]:
    """Of each order: the judgment as it was shown, turns, and messages that were told otherwise."""
    turned = msgspec.structs.replace(made, contestants=made.contestants[::-1])
    for about, end in ((made, ""), (turned, SWAPPED)):
        found: dict[str, list[tuple[int, Remark]]] = {}
        told, before = {}, ""
        for at, one in enumerate(made.transcript):
            if one.speaker.endswith(SWAPPED) != bool(end):
                continue
            name = one.speaker.removesuffix(end)
            if name.endswith(TOLD):
                told[name.removesuffix(TOLD)] = one
            elif has_vote(one):
                spoken = found.setdefault(name, [])
                if name == before:
                    spoken.pop()  # it has examined its statement again
                spoken.append((at, one))
                before = name
        yield about, found, told


def _steps(
    name: str,
    talk: Talks,
    told: Mapping[str, Remark],
    made: Judgment,
    protocol: Protocol,
    at_once: bool,
) -> Iterator[Step]:
    """What a member heard and did between its turns: one for each number of its vote."""

    def number(one: Remark) -> tuple[float, ...] | None:
        if one.verdict is None or protocol.kind == "score":
            return protocol.numbers(one.verdict)
        cast = msgspec.structs.replace(made, verdict=one.verdict)
        return tuple(value for _, value in protocol.values(cast)[:1])

    for nth, ((_, was), (now_at, now)) in enumerate(pairwise(talk[name])):
        known = {
            who: [one for at, one in (spoken[: nth + 1] if at_once else spoken) if at < now_at][-1:]
            for who, spoken in talk.items()
            if who != name
        }
        own, new = number(was), number(now)
        kept = [vote for of in known.values() for one in of if (vote := number(one))]
        if told:
            known = {who: [told[who]] for who in known if who in told}
        heard = [vote for of in known.values() for one in of if (vote := number(one))]
        if own and new and heard and kept:
            means = (np.mean(votes, axis=0).tolist() for votes in (heard, kept))
            for each in zip(own, new, *means, strict=True):
                yield (made.seed_id, *each)


def _row(turns: Sequence[_Moved], protocol: Protocol, truth: Truth) -> Row:
    """Who moved, and how often that was right."""
    seeds = [one.about.seed_id for one in turns]
    moved = share([one.first != one.last for one in turns], seeds, "moved")
    found: Row = {"n": len(turns), **moved}
    if not truth or (protocol.shows == "one" and protocol.kind != "place"):
        return found

    def right(vote: Callable[[_Moved], Verdict]) -> list[bool | None]:
        cast = [msgspec.structs.replace(one.about, verdict=vote(one)) for one in turns]
        said = preferences(cast, protocol)
        known = [truth.get((one.item, one.first, one.second)) for one in said]
        return [None if k is None else k == one.verdict for k, one in zip(known, said, strict=True)]

    votes = right(lambda one: one.first), right(lambda one: one.last)
    each = [both for both in zip(*votes, seeds, strict=True) if None not in both]
    changes = Counter(both[:2] for both in each)
    found |= {"wrong_to_right": changes[False, True], "right_to_wrong": changes[True, False]}
    for i, name in enumerate(("first_right", "last_right")):
        found |= share([bool(both[i]) for both in each], [both[2] for both in each], name)
    return found


def _slopes(steps: Sequence[tuple[str, tuple[float, ...], float]], *names: str) -> Row:
    """Slopes of the regressors behind the constant, with intervals by seed; ``None``: not known.

    ``steps``: seed, regressors (the first is the constant), what they explain.
    """
    seeds = np.unique([seed for seed, _, _ in steps], return_inverse=True)[1]
    n, k = int(seeds.max(initial=-1)) + 1, len(steps[0][1]) if steps else 0
    value = reach = np.full(len(names), math.nan)
    if n > k:
        x, y = np.array([step[1] for step in steps]), np.array([step[2] for step in steps])
        sums = np.zeros((n, k, k + 1))
        np.add.at(sums, seeds, x[:, :, None] * np.column_stack([x, y])[:, None, :])
        whole = left_out(sums)
        if np.linalg.matrix_rank(whole[0, :, :k]) == k:
            slopes = (np.linalg.pinv(whole[:, :, :k]) @ whole[:, :, k:])[:, 1:, 0]
            apart = ((slopes[1:] - slopes[0]) ** 2).sum(0) * (n - 1) / n
            value, reach = slopes[0], student_t(LEVEL, n - 1) * np.sqrt(apart)
    each = zip(names, value, value - reach, value + reach, strict=False)
    return {key: one for of in each for key, one in entries(*of).items()}


# ------------------------------------------------------------------------------------ in words


def told(found: Sequence[Row]) -> Iterator[str]:
    """A sentence on each panel: who moved toward what, and what that was worth."""
    for i, row in enumerate(found):
        if row["member"] != EVERYBODY or row["n"] < LEAST:
            continue
        said = f"In the debate of {row['judge']} {100 * row['moved']:.0f} % of votes changed"
        if row["toward"] is not None:
            said += f", by {_slope(row, 'toward')} of the way toward what was heard"
        if "wrong_to_right" in row:
            both = [(one["wrong_to_right"], one["right_to_wrong"]) for one in found[i : i + 2]]
            said += "; {} from wrong to right, {} from right to wrong".format(*both[0])
            said += f" ({found[i + 1]['member']}, who speaks first: {{}} and {{}})".format(*both[1])
        if row["verdict_slope"] is not None:
            said += f"; a vote follows what others state by {_slope(row, 'verdict_slope')}, and "
            said += f"what they think of the case by {_slope(row, 'evidence_slope')}"
        yield f"{said}."


def _slope(row: Row, name: str) -> str:
    return f"{row[name]:.2f} ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"


_COLUMNS = (
    Column("judge", "Judge", "name"),
    Column("member", "Member", "name"),
    Column("spoke", "Speaks as", "count", meaning="place in the order of speaking"),
    Column("n", "Votes", "count", meaning="with a readable first and last turn"),
    *with_interval(Column("moved", "Moved", "rate", meaning="the last vote is not the first")),
    *with_ends(Column("toward", "Toward", "decimal", meaning="part of the way to what is heard")),
    *with_interval(Column("first_right", "First turn right", "rate")),
    *with_interval(Column("last_right", "Last turn right", "rate")),
    Column("wrong_to_right", "Wrong to right", "count"),
    Column("right_to_wrong", "Right to wrong", "count"),
    *with_interval(Column("verdict_slope", "Verdict slope", "decimal")),
    *with_interval(Column("evidence_slope", "Evidence slope", "decimal")),
)


def debates(found: Sequence[Row], signature: str) -> Table:
    """The table of `rows` of all panels."""
    note = (
        f"From the first turn to the last. {explained(_COLUMNS)} {CLOSING.capitalize()}: from all "
        "last turns together to the verdict. Slopes of placebos: docs/judges.md."
    )
    return table("debates", "What a debate changes", _COLUMNS, found, [signature], note)
