"""Settings of ``[protocols.NAME]``: somebody's own question to the judges; docs/criteria.md."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from botchat import prompts

FOLDERS = ("stories",)
"""Folders of judgments that are no protocol of a board."""

PLACES = {"one": {"conversation"}, "pair": {"conversation_1", "conversation_2"}}
"""What a prompt must have room for, by what is shown."""

KINDS = {"place": ("one",), "choice": ("pair",), "score": ("one", "pair"), "report": ("one",)}
"""What can be shown, by kind of answer."""


class CriterionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[protocols.NAME]`` entry."""

    kind: Literal["place", "choice", "score", "report"]
    """What the judge answers with; see `botchat.protocols.protocol`."""
    shows: Literal["one", "pair"] = "one"
    """One dialogue, or two of different models from one ChatSEED, in both orders."""
    prompt: str
    """A text file with the question, relative to ``botchat.toml``; `read_prompt` replaces the name
    by its text."""
    title: str = ""
    """For headings; by default the name."""
    question: str = ""
    """What is asked, in a line."""
    numbers: tuple[str, ...] = ()
    """Score: what the judge writes before each number, ``Empathy: 7``. Of a pair each name is
    followed by 1 or 2: ``Empathy 1: 7`` and ``Empathy 2: 4``."""
    lowest: int | None = None
    highest: int | None = None
    """Score: ends of the scale; the higher number is the better one."""
    labels: tuple[str, ...] = ("Conversation 1", "Conversation 2", "Both", "Neither")
    """Choice: what the judge writes for the first, the second, both and neither; the last one or
    two may be left out."""
    chosen: Literal["wins", "loses"] = "wins"
    """Choice: what becomes of the conversation that is named."""

    def __post_init__(self) -> None:
        """Refuse what does not fit the kind; each message begins with the key."""
        if self.shows not in KINDS[self.kind]:
            raise ValueError(
                f"shows: a {self.kind} is about {' or '.join(KINDS[self.kind])}, not {self.shows}"
            )
        if self.kind == "score":
            self._check_scale()
        else:
            for key in ("numbers", "lowest", "highest"):
                if getattr(self, key) not in ((), None):
                    raise ValueError(f"{key}: it belongs to the kind score")
        if self.kind == "choice":
            self._check_labels()
        elif self.labels != _DEFAULTS["labels"] or self.chosen != "wins":
            key = "chosen" if self.chosen != "wins" else "labels"
            raise ValueError(f"{key}: it belongs to the kind choice")

    def _check_scale(self) -> None:
        plain = [re.sub(r"[\W_]", "", name).lower() for name in self.numbers]
        if not plain or not all(plain) or len(set(plain)) < len(plain):
            raise ValueError(
                'numbers: name each number that the judge gives, such as ["Empathy"]; no two alike'
            )
        if self.lowest is None or self.highest is None or self.lowest >= self.highest:
            key = "lowest" if self.lowest is None else "highest"
            raise ValueError(f"{key}: a score needs the ends of its scale, lowest below highest")

    def _check_labels(self) -> None:
        plain = {" ".join(re.sub(r"[^\w\s/]+", " ", one).lower().split()) for one in self.labels}
        if "" in plain or len(plain) < len(self.labels) or not 2 <= len(plain) <= 4:
            raise ValueError(
                "labels: give two to four different ones, for the first, the second, both, neither"
            )
        for odd in (label for label in self.labels if re.search(r"[;,.(\n\"'`*]", label)):
            raise ValueError(f"labels: {odd!r} has a mark that ends a label; use words only")


def is_taken(name: str) -> bool:
    """Whether BotChat means something else by the name: each built-in protocol has its prompt."""
    return name in FOLDERS or name in prompts.names()


_DEFAULTS = {f.name: f.default for f in msgspec.structs.fields(CriterionSettings)}


def with_prompt(settings: CriterionSettings, text: str) -> CriterionSettings:
    """The entry with the text of its prompt file in place of the name.

    Raises `ValueError`, which begins with the key: the text is empty, or lacks the places it needs.
    """
    text = text.strip("\n")
    wanted, there = PLACES[settings.shows], prompts.places(text)
    if there != wanted:
        listed = " and ".join(f"{{{{{name}}}}}" for name in sorted(wanted))
        odd = sorted(there - wanted)
        fault = f"unknown place {{{{{odd[0]}}}}} in" if odd else "a place is missing in"
        raise ValueError(f"{fault} {settings.prompt}; a prompt about {settings.shows} has {listed}")
    folded = " ".join(re.sub(r"\{\{.*?\}\}", "", text).casefold().split())
    if (settings.kind, settings.shows) == ("choice", "one") and len(settings.labels) > 1:
        settings = msgspec.structs.replace(settings, labels=("None",))
    for label in settings.labels if settings.kind == "choice" else ():
        if " ".join(label.casefold().split()) not in folded:
            fault = f"{settings.prompt} never names {label!r}, so no judge writes it"
            raise ValueError(f"labels: {fault}; name it there, or leave it out")
    return msgspec.structs.replace(settings, prompt=text)
