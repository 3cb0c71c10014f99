"""How a reply is understood, by what was asked: for a place, for a choice, of each speaker.

A choice among the speakers of one chat is the number of the one it names, in the order in which
they first speak, or ``"neither"``. What is said of each speaker is a word for each, in that order:
``"No 4"`` accuses the second from utterance 4 on, ``"No Yes"`` does not say from where.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

from botchat.languages import Language
from botchat.protocols import verdicts
from botchat.protocols.own_words import answered_in, own
from botchat.protocols.verdicts import Found, Meaning
from botchat.protocols.wording import choice_schema
from botchat.records import LETTERS, SOMEWHERE, Verdict

LABELS = ("Conversation 1", "Conversation 2", "Both", "Neither")
"""What a judge answers to a choice in the papers' words."""

PLACES = {"yes": "yes", "no": "no"}
CHOICES = {"first": "1", "second": "2", "both": "both", "neither": "neither"}
"""List of a pack's labels -> the verdict that they are; so of places."""


class Understood(NamedTuple):
    """How a reply to one case is understood; the fields are those of `Case`."""

    choices: Set[Verdict]
    read: Callable[[str], tuple[Verdict | None, str]]
    schema: Mapping[str, Any] | None = None
    words: Callable[[str], Sequence[tuple[int, int]]] | None = None


@lru_cache(maxsize=256)
def place(n: int, language: Language) -> Understood:
    """Of a reply about ``n`` utterances: ``"No"``, `SOMEWHERE` or a 1-based index; the reason."""

    @cache
    def meaning(spoken: Language) -> Meaning:
        return verdicts.meanings(verdicts.labelled(spoken, PLACES), spoken)

    def found(text: str) -> Found:
        spoken = answered_in(text, language)
        return verdicts.read_verdict(text, meaning(spoken), spoken)

    def read(text: str) -> tuple[Verdict | None, str]:
        said = found(text)
        if said.verdict != "yes":
            return "No" if said.verdict == "no" else None, said.reason
        named = said.index is not None and 1 <= said.index <= n
        return str(said.index) if named else SOMEWHERE, said.reason

    labels = language.labels
    return Understood(
        frozenset({"No", SOMEWHERE, *map(str, range(1, n + 1))}),
        read,
        choice_schema((labels.no[0], labels.yes[0]), verdicts.fields_asked(language), index=True),
        lambda text: found(text).words,
    )


@lru_cache(maxsize=64)
def choice(asked: tuple[str, ...], language: Language) -> Understood:
    """Of a reply about two dialogues: the verdict that its label, one of ``asked``, stands for."""
    own = dict(zip(asked, CHOICES.values(), strict=False))  # somebody's own criterion
    if ours := asked == LABELS:
        asked = tuple(getattr(language.labels, key)[0] for key in CHOICES)

    @cache
    def meaning(spoken: Language) -> Meaning:
        table = verdicts.labelled(spoken, CHOICES) if ours else own
        return verdicts.meanings(table, spoken, phrases=ours)

    def found(text: str) -> Found:
        spoken = answered_in(text, language)
        return verdicts.read_verdict(text, meaning(spoken), spoken, sides=ours)

    def read(text: str) -> tuple[Verdict | None, str]:
        said = found(text)
        return said.verdict, said.reason

    return Understood(
        frozenset([*CHOICES.values()][: len(asked)]),
        read,
        choice_schema(asked, verdicts.fields_asked(language)),
        lambda text: found(text).words[:1],
    )


# ------------------------------------------------------------------------------ about speakers

_OF_EACH = re.compile(
    r"^[^\w\n]*(?:speaker[ \t]+)?(?P<who>[A-H])\b[^\w\n]*[:\uff1a][^\w\n]*"
    r"(?P<said>human|person|people|no|machine|ai|bot|yes)\b(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_HUMAN_WORDS = ("human", "person", "people", "no")
_REASON = re.compile(
    r"\breason\W*[:\uff1a](.*?)(?=^\W*speaker [A-H]\W*[:\uff1a]|\Z)", re.I | re.S | re.M
)


@lru_cache(maxsize=64)
def speaker(n: int, none: str, language: Language) -> Understood:
    """Of a reply that names one of n speakers, or ``none`` of them."""
    asked = {f"Speaker {LETTERS[i]}": str(i + 1) for i in range(n)} | {none: "neither"}
    known = asked | {LETTERS[i]: str(i + 1) for i in range(n)}
    known |= dict.fromkeys(("Neither", "Nobody", "No one", "None of them"), "neither")

    def found(text: str) -> Found:
        spoken = answered_in(text, language)
        return verdicts.read_verdict(text, verdicts.meanings(known, spoken, phrases=False), spoken)

    def read(text: str) -> tuple[Verdict | None, str]:
        said = found(text)
        return said.verdict, said.reason

    return Understood(
        frozenset(asked.values()),
        read,
        choice_schema(tuple(asked), verdicts.fields_asked(language)),
        lambda text: found(text).words[:1],
    )


@dataclass(frozen=True)
class EachSpeaker(Set[Verdict]):
    """Every verdict on each speaker of a chat; ``spoken_by``: the number of each utterance's."""

    spoken_by: tuple[int, ...]

    @property
    def offered(self) -> list[list[Verdict]]:
        """The words that each may get: an index is of an utterance of that speaker."""
        of = range(len({*self.spoken_by}))
        said = [[str(n) for n, who in enumerate(self.spoken_by, 1) if who == one] for one in of]
        return [["No", SOMEWHERE, *indices] for indices in said]

    def __contains__(self, verdict: object) -> bool:
        """Whether it has a word for each that may be given."""
        words, offered = str(verdict).split(" "), self.offered
        return len(words) == len(offered) and all(
            word in one for word, one in zip(words, offered, strict=True)
        )

    def __iter__(self) -> Iterator[Verdict]:
        """One after the other, first that all are human."""
        return map(" ".join, product(*self.offered))

    def __len__(self) -> int:
        """How many there are."""
        return math.prod(map(len, self.offered))

    def read(self, text: str) -> tuple[Verdict | None, str]:
        """(verdict, reason) of a reply with a line for each speaker, of which the last counts.

        ``None`` where one has none. An index of another's utterance is no place.
        """
        told = {match["who"].upper(): match for match in _OF_EACH.finditer(text)}
        words = []
        for who, offered in enumerate(self.offered):
            if (match := told.get(LETTERS[who])) is None:
                return None, " ".join(text.split())
            index = re.search(r"[1-9]\d*", match["rest"])
            at = index[0] if index and index[0] in offered else SOMEWHERE
            words.append("No" if match["said"].lower() in _HUMAN_WORDS else at)
        why = _REASON.search(text)
        return " ".join(words), " ".join((why[1] if why else text).split())


def each(spoken_by: tuple[int, ...], language: Language) -> Understood:
    """Of a reply that says of each speaker whether it is a machine, and from where on."""
    offered = EachSpeaker(spoken_by)
    return Understood(offered, lambda text: offered.read(own(text, language)))
