"""Parts of a run that a worker may do: dialogues to be made, cases to be put to a judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from botchat.arguments import JudgeName
from botchat.interfaces import Case, Judge, Subject
from botchat.languages import Language
from botchat.models.self_chat import Length, extend
from botchat.pipeline.run.session import Session
from botchat.records import Seed

if TYPE_CHECKING:
    from botchat.pipeline.run.ask import Asked, Cases, Filing


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
    items: Sequence[Callable[[], Case]]

    def begun(
        self, session: Session, _length: Length
    ) -> tuple[Callable[[Callable[[], Case]], Awaitable[object]], int]:
        """What puts a case to the judge, and how many at a time."""
        answering = session.judges(self.judge, self.control, self.subject)[self.nth]

        def ask(make: Callable[[], Case]) -> Awaitable[object]:
            return answering.answer(make())

        return ask, answering.parallel


def questions(
    asked: Asked, answerers: Sequence[tuple[Judge, Cases]], filings: Sequence[Filing]
) -> list[Questions]:
    """What is to be asked of each judge in each protocol, and is in no stage file.

    Not of a cascade with a guarantee, which must know all cases before it answers any.
    """
    return [
        Questions(
            asked.judge,
            asked.control,
            number // len(asked.cases),
            cases.protocol.subject,
            [make for make in cases.make if filing.stored(make()) is None],
        )
        for number, ((judge, cases), filing) in enumerate(zip(answerers, filings, strict=True))
        if filing.answering is judge
    ]
