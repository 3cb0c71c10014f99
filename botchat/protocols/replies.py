"""How a reply is understood, by what was asked: for a place, or for a choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cache, lru_cache, partial
from typing import NamedTuple

from botchat.languages import Language
from botchat.protocols import verdicts
from botchat.protocols.own_words import answered_in, known, spell_letters
from botchat.protocols.verdicts import Found, Meaning
from botchat.records import SOMEWHERE, Verdict

LABELS = ("Conversation 1", "Conversation 2", "Both", "Neither")
"""What a judge answers to a choice in the papers' words."""

PLACES = {"yes": "yes", "no": "no"}
CHOICES = {"first": "1", "second": "2", "both": "both", "neither": "neither"}
"""List of a pack's labels -> the verdict that they are; so of places."""


class Understood(NamedTuple):
    """How a reply to one case is understood; the fields are those of `Case`."""

    choices: Set[Verdict]
    read: Callable[[str], tuple[Verdict | None, str]]


def _marked(
    choices: Set[Verdict],
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
        if sides:
            names = [[*known(spoken, key)] for key in ("first", "second")]
            text = spell_letters(text, [[x for x in each if len(x) > 1] for each in names])
        return verdicts.read_verdict(text, meaning(spoken), spoken, sides=sides)

    def read(text: str) -> tuple[Verdict | None, str]:
        said = found(text)
        return settled(said) if settled else said.verdict, said.reason

    return Understood(choices, read)


@lru_cache(maxsize=256)
def place(n: int, language: Language) -> Understood:
    """Of a reply about ``n`` utterances: ``"No"``, `SOMEWHERE` or a 1-based index; the reason."""

    def settled(said: Found) -> Verdict | None:
        if said.verdict != "yes":
            return "No" if said.verdict == "no" else None
        return str(said.index) if said.index is not None and 1 <= said.index <= n else SOMEWHERE

    return _marked(
        frozenset({"No", SOMEWHERE, *map(str, range(1, n + 1))}),
        language,
        partial(verdicts.labelled, keys=PLACES),
        settled=settled,
    )


@lru_cache(maxsize=64)
def choice(asked: tuple[str, ...], language: Language) -> Understood:
    """Of a reply about two dialogues: the verdict that its label, one of ``asked``, stands for."""
    own = dict(zip(asked, CHOICES.values(), strict=False))  # somebody's own criterion
    ours = asked == LABELS
    return _marked(
        frozenset(own.values()),
        language,
        partial(verdicts.labelled, keys=CHOICES) if ours else lambda _: own,
        phrases=ours,
        sides=ours,
    )
