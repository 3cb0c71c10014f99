"""Types of one attempt: the call that is made, and what came of sending it once.

A model is a chain: `StoredModel` (ledger) → `RetryingModel` (patience) → `PayingModel` (limits and
money) → a `Sender`: an endpoint, its Batch API, or a bot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from botchat.interfaces import ChatModel, Decoding, Message, Quirks, Reply
from botchat.models.faults import Fault


class Call(NamedTuple):
    """A request with its ledger key."""

    key: str
    request: bytes
    """Canonical form, see `botchat.workspace.ledger.request_json`."""
    messages: Sequence[Message]
    decoding: Decoding
    replaces: bool = False
    """Whether the ledger has an answer that gives way to this one."""


@dataclass(frozen=True)
class Answered:
    """The endpoint answered for good, if only with a refusal."""

    reply: Reply
    billed: bool = True
    """Whether it may have been billed."""


@dataclass(frozen=True)
class Again:
    """No answer: the same request may be answered when it is sent again."""

    reply: Reply
    fault: Fault
    after_s: float = 0.0
    """Least seconds before that, as the endpoint asks."""
    kept: Reply | None = None
    """Taken as the answer if the last attempt brings no better one."""
    status: int | None = None
    """HTTP status, if there was one."""

    @property
    def billed(self) -> bool:
        """Whether it may have been billed."""
        return self.fault.may_be_billed


@dataclass(frozen=True)
class Adapted:
    """The endpoint refused a form of the request, and the next attempt has another one."""

    reply: Reply
    status: int | None = None
    billed: bool = False


@dataclass(frozen=True)
class Refused:
    """No answer, and none will come of this request in this run."""

    reply: Reply
    fault: Fault
    status: int | None = None
    billed = False

    @property
    def fatal(self) -> bool:
        """Whether no other request to this model will be answered either."""
        return self.fault.ends_the_model


@dataclass(frozen=True)
class Pending:
    """A call that is sent, and whose answer comes in a later run."""

    reason: str


Attempt: TypeAlias = Answered | Again | Adapted | Refused | Pending


def map_replies(attempt: Attempt, change: Callable[[Reply], Reply]) -> Attempt:
    """Return an attempt whose replies are changed."""
    if isinstance(attempt, Pending):
        return attempt
    if isinstance(attempt, Again) and attempt.kept is not None:
        attempt = replace(attempt, kept=change(attempt.kept))
    return replace(attempt, reply=change(attempt.reply))


class Sender(Protocol):
    """Whatever makes one attempt at a time."""

    @property
    def name(self) -> str:
        """The name users call the model by."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `botchat.interfaces.ChatModel`."""

    @property
    def quirks(self) -> Quirks:
        """Refusals of its endpoint, as far as they are known."""

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together; None if unknown."""

    @property
    def parallel(self) -> int:
        """Calls worth having in flight at once."""

    @property
    def room(self) -> int:
        """Tokens of a reply that are for reasoning, now that its quirks are as they are."""

    @property
    def most_room(self) -> int:
        """Tokens of a reply that would be for reasoning, if the model thinks."""

    async def attempt(self, call: Call) -> Attempt:
        """Send a request once. Raises nothing but `FatalModelError`, before anything is sent."""


@dataclass(frozen=True)
class Offline:
    """A `Sender` for a model on this machine, which always answers."""

    model: ChatModel

    @property
    def room(self) -> int:
        """None: it does not think."""
        return 0

    @property
    def most_room(self) -> int:
        """None: it does not think."""
        return 0

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    @property
    def identity(self) -> Mapping[str, Any]:
        """Identity of the model."""
        return self.model.identity

    @property
    def quirks(self) -> Quirks:
        """None: nothing is refused."""
        return Quirks()

    @property
    def context_window(self) -> int | None:
        """The model's own."""
        return self.model.context_window

    @property
    def parallel(self) -> int:
        """The model's own."""
        return self.model.parallel

    async def attempt(self, call: Call) -> Attempt:
        """Let the model answer."""
        return Answered(await self.model.chat(call.messages, call.decoding), billed=False)
