"""Parts of a run that a worker may do: dialogues to be made, cases to be put to a judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from botchat.interfaces import Case, Subject
from botchat.models.self_chat import Length, extend
from botchat.pipeline.session import JudgeName, Session
from botchat.prompts.languages import Language
from botchat.records import Seed


class Part(Protocol):
    """Dialogues or cases that are asked for in one way; a frozen dataclass that can be pickled."""

    @property
    def items(self) -> Sequence[Any]:
        """Each is asked for by itself."""

    def begun(
        self, session: Session, length: Length
    ) -> tuple[Callable[[Any], Awaitable[object]], int]:
        """What asks for an item with the models of a session, and how many at a time."""


@dataclass(frozen=True)
class Talks:
    """Dialogues of one contestant, as a part of a run that a worker does."""

    names: tuple[str, ...]
    """Who speaks."""
    turns: int
    language: Language
    items: Sequence[Seed]

    def begun(
        self, session: Session, length: Length
    ) -> tuple[Callable[[Seed], Awaitable[object]], int]:
        """What makes a dialogue, and how many at a time."""
        speakers = [session.speaker(name) for name in self.names]

        def make(seed: Seed) -> Awaitable[object]:
            return extend(seed, speakers, self.turns, length, str, self.language)

        return make, min(speaker.model.parallel for speaker in speakers)


@dataclass(frozen=True)
class Questions:
    """Cases of one protocol, as a part of a run that a worker does."""

    judge: JudgeName
    control: bool
    nth: int
    """Of the judges that these make (`Session.judges`)."""
    subject: Subject
    """Of the protocol."""
    items: Sequence[Callable[[], Case]]

    def begun(
        self, session: Session, _length: Length
    ) -> tuple[Callable[[Callable[[], Case]], Awaitable[object]], int]:
        """What puts a case to the judge, and how many at a time."""
        answering = session.judges(self.judge, self.control, self.subject)[self.nth]

        def ask(make: Callable[[], Case]) -> Awaitable[object]:
            return answering.answer(make())

        return ask, answering.parallel
