"""Models behind the ledger: a call that was answered once is never sent again.

A reply is stored before anyone sees it. Two callers who ask the same at the same time share one
call. What was stored before a quirk of the endpoint was learnt answers the same call after it.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from botchat.frames import of_kind, read_json
from botchat.interfaces import CountTokens, Decoding, Message, Quirks, Reply, visible
from botchat.models.attempts import Call, SenderFacts
from botchat.models.reader import read_completion
from botchat.models.retrying import RetryingModel
from botchat.thoughts import strip_thoughts
from botchat.workspace.ledger import Ledger, request_json, request_key


def rough_tokens(text: str) -> int:
    """Return a cautious estimate of a text's tokens.

    Three bytes a token is more than English, code or Chinese need on average.
    """
    return len(text.encode()) // 3 + 1


def _ignore(reply: Reply, from_ledger: bool) -> None:
    """Do nothing with a reply."""


@dataclass(eq=False)
class LedgerModel(ABC):
    """A `ChatModel` that the ledger answers, where it has the call."""

    sender: SenderFacts
    ledger: Ledger
    on_reply: Callable[[Reply, bool], None]
    """Called with each reply and whether it came from the ledger."""
    count: CountTokens
    """Tokens of a text."""

    def __post_init__(self) -> None:
        """Take over what the sender says of itself."""
        self.name = self.sender.name
        self.identity = self.sender.identity
        self.parallel = self.sender.parallel

    @property
    def quirks(self) -> Quirks:
        """Refusals of its endpoint, as far as they are known."""
        return self.sender.quirks

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together; None if unknown."""
        return self.sender.context_window

    @property
    def room(self) -> int:
        """Tokens of a reply that are for reasoning."""
        return self.sender.room

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Answer from the ledger, or ask and store. Raises as `ChatModel.chat`."""
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        stored = self.ledger.get(key)
        if stored is not None and not wants_more_room(stored, self.sender.most_room):
            stored = visible_reply(stored, decoding.max_tokens, self.count)
            self.on_reply(stored, True)
            return stored
        return await self.ask(Call(key, request, messages, decoding, replaces=stored is not None))

    @abstractmethod
    async def ask(self, call: Call) -> Reply:
        """Answer a call that the ledger does not have."""


class StoredModel(LedgerModel):
    """A model whose every reply is kept in the ledger."""

    def __init__(
        self,
        retrying: RetryingModel,
        on_reply: Callable[[Reply, bool], None] = _ignore,
        count: CountTokens = rough_tokens,
    ) -> None:
        """Ask nothing yet."""
        self.retrying = retrying
        self.paying = retrying.paying
        super().__init__(self.paying.sender, self.paying.ledger, on_reply, count)
        self._tasks: dict[str, asyncio.Task[Reply]] = {}

    async def ask(self, call: Call) -> Reply:
        """Ask and store, or share a call that is under way."""
        key = call.key
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._ask(call))
            # The caller may be gone; asyncio prints an exception that is never retrieved.
            self._tasks[key].add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded: a caller that is cancelled (Ctrl-C) must not throw away a reply that is
        # already being paid for; `drain` waits for it.
        return await asyncio.shield(self._tasks[key])

    async def _ask(self, call: Call) -> Reply:
        try:
            reply = await self.retrying.ask(call)
        finally:
            del self._tasks[call.key]
        reply = visible_reply(reply, call.decoding.max_tokens, self.count)
        self.on_reply(reply, False)
        return reply

    def stop(self) -> None:
        """Send nothing more, and try nothing again."""
        self.paying.ending = True

    async def drain(self, longest_s: float) -> int:
        """Wait until every call in flight is stored; return how many were not in ``longest_s``."""
        self.stop()
        tasks = dict(self._tasks)
        # Of those that wait for their turn, or between two attempts.
        for key in tasks.keys() - self.paying.in_flight:
            tasks[key].cancel()
        if not tasks:
            return 0
        _, late = await asyncio.wait(tasks.values(), timeout=longest_s)
        for task in late:
            task.cancel()
        return len(late)


def wants_more_room(reply: Reply, room: int) -> bool:
    """Return whether a stored reply used its limit up for reasoning, and had less than ``room``."""
    if reply.outcome != "empty" or reply.sent.room >= room:
        return False
    completion = read_completion(of_kind(dict, read_json(reply.raw)))
    return completion.is_cut or completion.has_reasoning


def visible_reply(reply: Reply, max_tokens: int | None, count: CountTokens) -> Reply:
    """Return a reply without its reasoning; the ledger keeps it.

    The room for reasoning is none for the text: what is longer than ``max_tokens`` is cut.
    """
    if not reply.usable:
        return reply
    text = strip_thoughts(reply.text)
    if not visible(text):
        return replace(reply, text="", outcome="empty", detail="nothing but reasoning")
    if reply.sent.room and max_tokens is not None and count(text) > max_tokens:
        cut = _first_tokens(text, max_tokens, count)
        return replace(reply, text=cut, outcome="truncated", detail="longer than max_tokens")
    return replace(reply, text=text)


def _first_tokens(text: str, max_tokens: int, count: CountTokens) -> str:
    """Return the longest beginning of a text that has no more tokens."""
    n_cut = bisect_left(
        range(len(text)), True, key=lambda n: count(text[: len(text) - n]) <= max_tokens
    )
    return text[: len(text) - n_cut].rstrip()
