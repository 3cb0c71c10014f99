"""Sources of the exam, each as it is shown: cut, paired, and what people said of its chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from botchat.interfaces import Case, Row
from botchat.languages import ENGLISH
from botchat.measures.annotations import accused_index
from botchat.measures.flags import flags, floors
from botchat.papers.turing_files import Chat
from botchat.protocols.catalogue import GTEVAL
from botchat.protocols.kinds import Protocol
from botchat.protocols.reports import reports
from botchat.records import HUMAN, Dialogue, Judgment
from botchat.verdicts import Floats

_MOST = 30
CUT = f"first {_MOST}"
"""Utterances that are shown where speakers are told apart, who are as long as each other anyway."""
_SYSTEMS, _CHATS = 3, 10
"""Fewest systems that are ordered, and rated chats of each."""
_AGAIN = ("repetition", "repetitive_phrasing")
"""Of a diagnosis."""
_REPEATS = {"exact_repeat", "overlap", "verbatim_run", "closing_chain"}

Key = tuple[str, ...]
"""What a judgment is filed under: item and contestants."""


class Source(NamedTuple):
    """What is known of a source beside its chats."""

    era: str = ""
    end: int | None = None
    """Utterances that a chat is cut to; ``None``: as many as 9 in 10 have."""
    people: str = ""
    """The source whose people's chats stand beside its machines'."""


SOURCES: Mapping[str, Source] = {
    "spotbot-convai2": Source("2020", 10),
    "spotbot-dailydialog": Source("2020", 10),
    "spotbot-empathetic": Source("2020", 4),
    "spc": Source("2023", 12, "spotbot-convai2"),
    "convai2017": Source("2017"),
    "convai2018": Source("2018"),
    "fed": Source("2020"),
    "dstc9": Source("2020"),
    "ji2022": Source("2021"),
    "abceval": Source("2022"),
    "simulatorarena-math": Source("2024"),
    "simulatorarena-document": Source("2024"),
}
"""By name in the plain form; any other is taken as it is."""


@dataclass(frozen=True)
class OneSource:
    """One source as it is shown."""

    of: Source
    end: int
    near: Sequence[Chat]
    """All that could be cut to ``end`` utterances, uncut."""
    whole: Sequence[Chat]
    """Those that could, cut; machines' and people's in turn."""
    speakers: Sequence[Chat]
    """Of one machine among people."""
    pairs: Sequence[tuple[Chat, Chat]]
    """A machine's chat and a person's, each in one pair."""

    @property
    def head(self) -> Row:
        """What a row says of it: era of the machine, what was cut."""
        left = len(self.near) - len(self.whole)
        cut = f"first {self.end}" + (f", {left} shorter left out" if left else "")
        return {"era": self.of.era, "cut": cut}


def part_of(name: str, talks: Mapping[str, Sequence[Chat]]) -> OneSource:
    """A source made ready; ``talks``: of all sources."""
    of, own = SOURCES.get(name, Source()), talks[name]
    lent = [o for o in talks.get(of.people, ()) if not o.machines]
    both = [*own, *(replace(one, source=name, opinions=()) for one in lent)]
    end = of.end or int(np.quantile([len(one.utterances) for one in both], 0.1))
    whole = [one.cut(end) for one in both if len(one.utterances) >= end]
    machine, person = kinds(whole)
    pairs = [*zip(machine, person, strict=False)]
    whole = in_turn([machine, person])
    if not person and not ordered(whole):
        whole, both = [], []
    some = [one for one in own if HUMAN in one.who and sum(w != HUMAN for w in one.who) == 1]
    speakers = [one for of in some if len({*(one := of.cut(_MOST)).speakers}) == len(one.who)]
    return OneSource(of, end, both, whole, speakers, pairs)


def ordered(talks: Sequence[Chat]) -> list[str]:
    """Systems with enough chats that people rated; empty: too few to have an order."""
    rated = [one.machines for one in talks if rating(one) is not None]
    names = sorted({name for of in rated for name in of})
    found = [name for name in names if sum(name in of for of in rated) >= _CHATS]
    return found if len(found) >= _SYSTEMS else []


def rating(talk: Chat) -> float | None:
    """People's of a chat's machines: their score, or the share of raters who accuse nobody."""
    said = accusations(talk)
    return 1 - sum(said) / len(said) if said and talk.machines else talk.rating


def accusations(talk: Chat, after: int | None = None) -> list[bool]:
    """Of each rater who read the first ``after`` utterances, default as many as are shown."""
    end = len(talk.utterances) if after is None else after
    return [one.accuses for one in talk.opinions if one.after == end]


def repeated(said: Judgment | None, utterances: tuple[str, ...]) -> set[int] | None:
    """Utterances in which a diagnosis finds a repetition; ``None``: there is none to read."""
    told = reports(said, utterances) if said is not None and said.verdict is not None else {}
    if not told:
        return None
    kinds = [one for of in told.values() for one in of.answers if one.type in _AGAIN]
    return {error.utterance for one in kinds for error in one.errors if error.utterance}


def repetition(talk: Chat) -> float:
    """Share of a machine's utterances that repeat, by the criteria of the rules judge."""
    found = flags(talk.utterances, floors(ENGLISH), n_seed=0)
    again = {one.index for one in found if one.criterion in _REPEATS}
    mine = {at for at, by in enumerate(talk.speakers, 1) if talk.who[by] != HUMAN}
    return len(again & mine) / max(len(mine), 1)


def majority(said: Sequence[bool]) -> float:
    """1 accuses, 0 does not, nan of a tie or of nobody."""
    return float(2 * sum(said) > len(said)) if 2 * sum(said) != len(said) else np.nan


def item_of(talk: Chat) -> Key:
    """What judgments of a whole chat are filed under."""
    return f"{talk.source}:{talk.id}", " + ".join(talk.machines) or HUMAN


def kinds(talks: Sequence[Chat]) -> tuple[list[Chat], list[Chat]]:
    """Those with a machine in them, and those of people alone."""
    return [one for one in talks if one.machines], [one for one in talks if not one.machines]


def in_turn(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """One of each list, then another, until all are there."""
    return [one for some in zip_longest(*lists) for one in some if one is not None]


def named(said: Judgment | None, chat: Chat) -> float:
    """1 where the speaker that is named is the machine, 0 of another or none; nan: not known."""
    if said is None or said.verdict is None:
        return np.nan
    return float(said.verdict.isdecimal() and chat.who[int(said.verdict) - 1] != HUMAN)


def point(said: Mapping[Key, Judgment], machine: Chat, nth: int) -> float:
    """1 where the machine's chat is named in the nth order, ½ of a tie; nan: not known."""
    id_, name = item_of(machine)
    found = said.get((id_, HUMAN, name) if nth else (id_, name, HUMAN))
    won = GTEVAL.result(found.verdict) if found else None
    return np.nan if won is None else won if nth else 1 - won


def key_of(one: Judgment) -> Key:
    """The same of a judgment."""
    return one.seed_id, *one.contestants


def index_of(said: Judgment) -> float:
    """The utterance that a place verdict accuses; infinite of none."""
    return accused_index(said.verdict or "No", said.judge) or np.inf


def machine_by(said: Judgment, n: int) -> tuple[float, float]:
    """How surely a place verdict takes a chat for a machine's, and whether it accuses; 0 to 1.

    By its probability where that is known, else the earlier the surer.
    """
    at = index_of(said)
    accuses = float(at < np.inf)
    if isinstance(said.confidence, float):
        return (said.confidence if accuses else 1 - said.confidence), accuses
    return (1 - (min(at, n) - 1) / (2 * n) if accuses else 0.0), accuses


def dialogue_of(talk: Chat, id_: str = "") -> Dialogue:
    """What protocols ask about."""
    own, who = item_of(talk)
    names = tuple(f"{by + 1}" for by in talk.speakers)
    said = talk.utterances
    return Dialogue(id_ or own, who, said, 0, (), "complete", "", speakers=names)


def case_of(protocol: Protocol, talk: Chat) -> Case:
    """The question about one chat, no utterance of which is given."""
    one = dialogue_of(talk)
    (make,) = protocol.cases((), {one.contestant: {one.seed_id: one}})
    case = make()
    return replace(case, dialogues=tuple(replace(shown, n_seed=0) for shown in case.dialogues))


def pair_of(machine: Chat, person: Chat, swapped: bool) -> Case:
    """Which of two has a machine in it?"""
    one = dialogue_of(machine)
    other = dialogue_of(person, one.seed_id)
    first, second = (other, one) if swapped else (one, other)
    return GTEVAL.pair(one.seed_id, first, second, len(machine.utterances))


def seen_in(talks: Sequence[Chat], said: Mapping[Key, Judgment]) -> Floats:
    """How much of a machine a judge sees in each chat, and whether it accuses; (2, chats)."""
    seen = np.full((2, len(talks)), np.nan)
    for at, one in enumerate(talks):
        if (found := said.get(item_of(one))) is not None and found.verdict is not None:
            seen[:, at] = machine_by(found, len(one.utterances))
    return seen
