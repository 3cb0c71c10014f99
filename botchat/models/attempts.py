"""Types of one attempt: the call that is made, and what came of sending it once.

A model is a chain: `StoredModel` (ledger) → `RetryingModel` (patience) → `PayingModel` (limits and
money) → a `Sender`: an endpoint, its Batch API, or a bot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from botchat.interfaces import Decoding, Message, ModelFacts, Quirks, Reply
from botchat.models.faults import FACTS, Fault
from botchat.workspace.ledger import Ledger, identity_key
from botchat.workspace.model_settings import ModelSettings, identity, reasoning_room


class Call(NamedTuple):
    """A request with its ledger key."""

    key: str
    request: bytes
    """Canonical form, see `botchat.workspace.ledger.request_json`."""
    messages: Sequence[Message]
    decoding: Decoding
    replaces: bool = False
    """Whether the ledger has an answer that gives way to this one."""


class Answered(NamedTuple):
    """The endpoint answered for good, if only with a refusal."""

    reply: Reply
    billed: bool = True
    """Whether it may have been billed."""


class Again(NamedTuple):
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
        return FACTS[self.fault].may_be_billed


class Adapted(NamedTuple):
    """The endpoint refused a form of the request, and the next attempt has another one."""

    reply: Reply
    status: int | None = None
    billed: bool = False


class Refused(NamedTuple):
    """No answer, and none will come of this request in this run."""

    reply: Reply
    fault: Fault
    status: int | None = None
    billed: bool = False


Attempt: TypeAlias = Answered | Again | Adapted | Refused


def map_replies(attempt: Attempt, change: Callable[[Reply], Reply]) -> Attempt:
    """Return an attempt whose replies are changed."""
    if isinstance(attempt, Again) and attempt.kept is not None:
        attempt = attempt._replace(kept=change(attempt.kept))
    return attempt._replace(reply=change(attempt.reply))


class SenderFacts(ModelFacts, Protocol):
    """Facts of whatever makes attempts."""

    @property
    def most_room(self) -> int:
        """Tokens of a reply that would be for reasoning, if the model thinks."""


class Sender(SenderFacts, Protocol):
    """Whatever makes one attempt at a time: an endpoint, its Batch API, a bot."""

    async def attempt(self, call: Call) -> Attempt:
        """Send a request once.

        Raises nothing but `FatalModelError`, before anything is sent, and `BatchPending` where it
        is sent and its answer comes in a later run.
        """


@dataclass(eq=False)
class EndpointFacts:
    """The `SenderFacts` of an endpoint's model, as far as the ledger knows them now."""

    name: str
    settings: ModelSettings
    ledger: Ledger
    """Keeps what is learnt about the endpoint."""

    def __post_init__(self) -> None:
        """Derive what callers ask for."""
        self.identity = identity(self.settings)
        self.identity_key = identity_key(self.identity)
        self.parallel = self.settings.max_concurrency

    @property
    def quirks(self) -> Quirks:
        """Refusals of its endpoint, as far as they are known."""
        return self.ledger.quirks(self.identity_key)

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together: as set, or as the endpoint says."""
        return self.settings.context_window or self.quirks.window

    @property
    def room(self) -> int:
        """Tokens of a reply that are for reasoning."""
        if self.quirks.thinks:
            return self.most_room
        return 0

    @property
    def most_room(self) -> int:
        """Tokens of a reply that would be for reasoning, if the model thinks."""
        return reasoning_room(self.settings, self.quirks)
