"""What every panel is made of: an agent that says something, and the talk that comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from botchat.interfaces import Case, ChatModel, Message, Sampling
from botchat.records import Turn

SWAPPED = " (swapped)"
"""Ends a speaker's name where it was shown the case in the other order."""

_MARK = re.compile(r"^([ \t>*_#-]*)\[([^\]\n]{1,80})\]([*_ \t]*):", re.MULTILINE)


@dataclass(frozen=True)
class Agent:
    """A member of a panel: a model that plays a role, known to the others by a name."""

    name: str
    role: str
    """Role description, empty for none."""
    model: ChatModel
    sampling: Sampling
    structured: bool = False
    """Hold it to the case's JSON schema, where it has one, when it votes."""

    async def say(self, prompt: str, case: Case | None = None) -> Turn:
        """Its answer to one prompt, as a turn; with ``case`` also what it votes for.

        The prompt is sent whole or not at all: nothing is cut away to make it fit, an overflow is
        the turn's outcome like any other failure, and the turn's text is then empty.
        """
        schema = case.schema if case is not None and self.structured else None
        sampling = replace(self.sampling, schema=schema)
        reply = await self.model.chat([Message(role="user", content=prompt)], sampling)
        if not reply.usable:
            return Turn(self.name, "", reply.key, reply.outcome)
        vote = case.read(reply.text)[0] if case is not None else None
        if case is not None and vote not in case.choices:
            vote = None
        return Turn(self.name, reply.text, reply.key, reply.outcome, vote)


@dataclass(frozen=True)
class Talk:
    """Everything that was said about a case, and the turns whose votes count."""

    turns: tuple[Turn, ...]
    votes: tuple[Turn, ...]
    """One for each voter: its last turn, whether or not a vote can be read from it."""
    digest: str = ""
    """A text that sums the talk up, where the strategy makes one."""


class Talking(Protocol):
    """A way for agents to work on a case."""

    async def talk(self, case: Case) -> Talk:
        """Let them; raises only what `ChatModel.chat` raises."""
        ...


def heard(turn: Turn) -> bool:
    """Whether a turn was said at all; a failed reply is never passed on as a message."""
    return turn.outcome in ("ok", "truncated")


def history(turns: Iterable[Turn]) -> str:
    """Messages as the others see them: ``[name]: text``, one after the other (ChatEval's code).

    A line inside a message that looks like the head of another message loses its brackets and
    colon, so that nobody can speak in another's name.
    """
    return "\n".join(f"[{turn.speaker}]: {_defused(turn)}" for turn in turns if heard(turn))


def _defused(turn: Turn) -> str:
    own = f"[{turn.speaker}]:"
    return _MARK.sub(r"\1(\2)\3 -", turn.text.strip().removeprefix(own).strip())
