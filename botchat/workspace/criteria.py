"""Settings of ``[protocols.NAME]``: a user's own criterion; docs/criteria.md."""

import re
from typing import Literal

import msgspec

from botchat import prompts
from botchat.frames import TomlTable
from botchat.records import Names
from botchat.workspace.model_settings import changed

PLACES = {"single": {"conversation"}, "pair": {"conversation_1", "conversation_2"}}
"""Places that a prompt must have, by what it shows."""

# Kind -> dialogues that it may show
_SHOWS = {
    "detection": ("single",),
    "pairwise": ("pair",),
    "score": ("single", "pair"),
    "report": ("single",),
}

# Setting -> kind that has it
_ONLY = {"scores": "score", "scale": "score", "labels": "pairwise", "named_is": "pairwise"}
LABELS = ("Conversation 1", "Conversation 2", "Both", "Neither")


class CriterionSettings(TomlTable, frozen=True, kw_only=True):
    """One ``[protocols.NAME]`` entry."""

    kind: Literal["detection", "pairwise", "score", "report"]
    """Form of the verdict; see `botchat.protocols.protocol`."""
    shows: Literal["single", "pair"] = "single"
    """One dialogue, or two of different models from one ChatSEED, in both orders."""
    prompt: str
    """A text file with the question, relative to ``botchat.toml``; `with_prompt` puts its text
    here."""
    title: str = ""
    """Title for headings (default: the name)."""
    question: str = ""
    """The question in a line."""
    scores: Names = ()
    """Score: names of the numbers that the judge gives, ``Empathy: 7``. Of a pair each name is
    followed by 1 or 2: ``Empathy 1: 7`` and ``Empathy 2: 4``."""
    scale: tuple[int, int] | None = None
    """Score: lowest and highest number; the higher is the better."""
    labels: Names = LABELS
    """Pairwise: what the judge writes for the first, the second, both and neither; the last one or
    two may be left out."""
    named_is: Literal["winner", "loser"] = "winner"
    """Pairwise: what the named dialogue is."""

    def __post_init__(self) -> None:
        """Refuse what does not fit the kind; each message begins with the key."""
        shows = _SHOWS[self.kind]
        if self.shows not in shows:
            raise ValueError(f"shows: a {self.kind} shows {' or '.join(shows)}")
        for name in changed(self):
            kind = _ONLY.get(name, self.kind)
            if kind != self.kind:
                raise ValueError(f"{name}: it belongs to kind {kind}")
        if self.kind == "score":
            self._check_scores()
        self._check_labels()

    def _check_scores(self) -> None:
        plain = {re.sub(r"[\W_]", "", name).lower() for name in self.scores}
        if not plain or "" in plain or len(plain) < len(self.scores):
            raise ValueError('scores: name each number, such as ["Empathy"]; no two alike')
        if self.scale is None or self.scale[0] >= self.scale[1]:
            raise ValueError("scale: give the lowest and the highest number, such as [1, 10]")

    def _check_labels(self) -> None:
        # As they are read: blanks, marks and case do not part them.
        labels = {re.sub(r"[^\w/]|_", "", label).lower() for label in self.labels}
        if "" in labels or len(labels) < len(self.labels) or not 2 <= len(labels) <= 4:
            raise ValueError("labels: give two to four different ones")
        for label in self.labels:
            if re.search(r"[;,.(\n\"'`*]", label):
                raise ValueError(f"labels: {label!r} has a mark that ends a label; use words only")


def is_reserved(name: str) -> bool:
    """Return whether BotChat has a prompt or a folder of that name."""
    return name == "stories" or name in prompts.names()


def with_prompt(settings: CriterionSettings, text: str) -> CriterionSettings:
    """Return the entry with the text of its prompt file; raises ValueError for an unfit text.

    `ConfigError` for other places than its kind has.
    """
    text = text.strip("\n")
    prompts.refuse_places(text, PLACES[settings.shows], f"{settings.prompt} must have")
    folded = " ".join(re.sub(r"\{\{.*?\}\}", "", text).casefold().split())
    for label in settings.labels:
        if settings.kind == "pairwise" and " ".join(label.casefold().split()) not in folded:
            raise ValueError(
                f"{settings.prompt} never names the label {label!r}: name it there, or others in "
                "labels"
            )
    return msgspec.structs.replace(settings, prompt=text)
