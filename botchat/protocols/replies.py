"""How a reply is understood, by what was asked: for a place, for a choice, of each speaker.

A choice among the speakers of one chat is the number of the one it names, in the order in which
they first speak, or ``"neither"``. What is said of each speaker is a word for each, in that order:
``"No 4"`` accuses the second from utterance 4 on, ``"No Yes"`` does not say from where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from botchat.languages import Language
from botchat.protocols import verdicts
from botchat.protocols.own_words import answered_in, own
from botchat.protocols.scores import Combinations
from botchat.protocols.verdicts import Found, Meaning, choice_schema
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


def _marked(
    choices: Set[Verdict],
    schema: Mapping[str, Any],
    language: Language,
    table: Callable[[Language], Mapping[str, str]],
    *,
    phrases: bool = True,
    sides: bool = False,
    settled: Callable[[Found], Verdict | None] | None = None,
) -> Understood:
    """Of a reply that marks its verdict ("Choice: …"), a label of the ``table`` of a language.

    ``settled``: the verdict of what was found, if its index counts too. The others: as of
    `botchat.protocols.verdicts`.
    """

    @cache
    def meaning(spoken: Language) -> Meaning:
        return verdicts.meanings(table(spoken), spoken, phrases=phrases)

    def found(text: str) -> Found:
        spoken = answered_in(text, language)
        return verdicts.read_verdict(text, meaning(spoken), spoken, sides=sides)

    def read(text: str) -> tuple[Verdict | None, str]:
        said = found(text)
        return settled(said) if settled else said.verdict, said.reason

    return Understood(choices, read, schema, lambda text: found(text).words[: 2 if settled else 1])


@lru_cache(maxsize=256)
def place(n: int, language: Language) -> Understood:
    """Of a reply about ``n`` utterances: ``"No"``, `SOMEWHERE` or a 1-based index; the reason."""

    def settled(said: Found) -> Verdict | None:
        if said.verdict != "yes":
            return "No" if said.verdict == "no" else None
        return str(said.index) if said.index is not None and 1 <= said.index <= n else SOMEWHERE

    return _marked(
        frozenset({"No", SOMEWHERE, *map(str, range(1, n + 1))}),
        choice_schema((language.labels.no[0], language.labels.yes[0]), language, index=True),
        language,
        partial(verdicts.labelled, keys=PLACES),
        settled=settled,
    )


@lru_cache(maxsize=64)
def choice(asked: tuple[str, ...], language: Language) -> Understood:
    """Of a reply about two dialogues: the verdict that its label, one of ``asked``, stands for."""
    own = dict(zip(asked, CHOICES.values(), strict=False))  # somebody's own criterion
    if ours := asked == LABELS:
        asked = tuple(getattr(language.labels, key)[0] for key in CHOICES)
    return _marked(
        frozenset(own.values()),
        choice_schema(asked, language),
        language,
        partial(verdicts.labelled, keys=CHOICES) if ours else lambda _: own,
        phrases=ours,
        sides=ours,
    )


@lru_cache(maxsize=64)
def speaker(n: int, none: str, language: Language) -> Understood:
    """Of a reply that names one of n speakers, or ``none`` of them."""
    numbers = {LETTERS[i]: str(i + 1) for i in range(n)}
    asked = {f"Speaker {letter}": number for letter, number in numbers.items()}
    asked[none] = "neither"
    others = dict.fromkeys(("Neither", "Nobody", "No one", "None of them"), "neither")
    known = asked | numbers | others
    schema = choice_schema(tuple(asked), language)
    return _marked(frozenset(asked.values()), schema, language, lambda _: known, phrases=False)


# ------------------------------------------------------------------------------ of each speaker

_OF_EACH = re.compile(
    r"^[^\w\n]*(?:speaker[ \t]+)?(?P<who>[A-H])\b[^\w\n]*[:\uff1a][^\w\n]*"
    r"(?:(?P<human>human|person|people|no)|machine|ai|bot|yes)\b(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_REASON = re.compile(
    r"\breason\W*[:\uff1a](.*?)(?=^\W*speaker [A-H]\W*[:\uff1a]|\Z)", re.I | re.S | re.M
)


@lru_cache(maxsize=256)
def each(spoken_by: tuple[int, ...], language: Language) -> Understood:
    """Of a reply with a line for each speaker: human or a machine, and from where on.

    ``spoken_by``: the number of each utterance's speaker. The last line about a speaker counts; an
    index of another's utterance is no place. Without a line for one there is no verdict.
    """
    places: list[list[Verdict]] = [["No", SOMEWHERE] for _ in {*spoken_by}]
    for number, who in enumerate(spoken_by, 1):
        places[who].append(str(number))

    def read(text: str) -> tuple[Verdict | None, str]:
        text = own(text, language)
        told = {match["who"].upper(): match for match in _OF_EACH.finditer(text)}
        words = []
        for letter, offered in zip(LETTERS, places, strict=False):
            if (match := told.get(letter)) is None:
                return None, " ".join(text.split())
            index = re.search(r"[1-9]\d*", match["rest"])
            at = index[0] if index and index[0] in offered else SOMEWHERE
            words.append("No" if match["human"] else at)
        why = _REASON.search(text)
        return " ".join(words), " ".join((why[1] if why else text).split())

    return Understood(Combinations(tuple(map(tuple, places))), read)
