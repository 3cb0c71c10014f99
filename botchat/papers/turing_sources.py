"""Sources of the exam, each as it is shown: cut, paired, and what people said of its chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from botchat.interfaces import Row
from botchat.languages import ENGLISH
from botchat.measures.flags import flags, floors
from botchat.papers.turing_files import Chat
from botchat.protocols.reports import reports
from botchat.records import HUMAN, Judgment

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
    """Those that could, cut."""
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
    if not person and not ordered(whole):
        whole, both = [], []
    some = [one for one in own if HUMAN in one.who and sum(w != HUMAN for w in one.who) == 1]
    speakers = [one for of in some if len({*(one := of.cut(_MOST)).speakers}) == len(one.who)]
    return OneSource(of, end, both, whole, speakers, [*zip(machine, person, strict=False)])


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
