"""Every model call goes through here: ledger first, then budget, then the endpoint, with retries.

A reply in the ledger is returned and nothing is sent. A call is sent only if the budget admits it.
What comes back is stored before anyone sees it. Two callers who ask the same at the same time
share one call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from botchat.errors import FatalModelError
from botchat.interfaces import ChatModel, Decoding, Message, Reply, TokenLogprobs, changes
from botchat.models.limits import Budget, Endpoint, Prices, Retry
from botchat.models.roles import without_thoughts
from botchat.workspace.ledger import Ledger, request_json, request_key

log = logging.getLogger("botchat")

DRAIN_S = 30.0
"""How long an interrupted run waits for replies that are under way, and may be billed."""

HOPELESS = 8
"""A model is given up after so many calls in a row if it has answered none in this run."""


@dataclass(eq=False)
class RecordedModel:
    """A `ChatModel` whose every reply is kept in the ledger."""

    model: ChatModel
    ledger: Ledger
    stage: str = field(kw_only=True)
    """Label of its calls in the ledger's accounts."""
    endpoint: Endpoint | None = None
    """Capacity of its server; ``None``: no limit."""
    prices: InitVar[Prices | None] = None
    budget: InitVar[Budget | None] = None
    retry: InitVar[Retry | None] = None
    on_reply: Callable[[Reply, bool], None] = lambda *_: None
    """Called with each reply and whether it came from the ledger."""
    token_logprobs: Callable[[str], TokenLogprobs] | None = None
    """Finds them in the raw body of a reply that was asked for them."""

    def __post_init__(
        self, prices: Prices | None, budget: Budget | None, retry: Retry | None
    ) -> None:
        """Take over what the ledger knows about ``model``."""
        self._prices = prices or Prices()
        self._budget = budget or Budget()
        self._retry = retry or Retry()
        self.name = self.model.name
        self.identity = self.model.identity
        self.context_window = self.model.context_window
        self.parallel = self.model.parallel
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._ending = False
        self._given_up: int | None = 0
        self._quirks = self.ledger.quirks(self.identity)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Answer from the ledger, or ask and store. Raises as `ChatModel.chat`."""
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        stored = self.ledger.get(key)
        if stored is not None:
            stored = self._as_asked(stored, decoding)
            self.on_reply(stored, True)
            return stored
        running = self._in_flight.get(key)
        if running is None:
            running = asyncio.create_task(self._ask(key, request, messages, decoding))
            self._in_flight[key] = running
            running.add_done_callback(lambda _: self._in_flight.pop(key, None))
            # The caller may be gone; asyncio prints an exception that nobody retrieves.
            running.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded: a caller that is cancelled (Ctrl-C) must not throw away a reply that is
        # already being paid for; `drain` waits for it.
        return await asyncio.shield(running)

    async def drain(self) -> None:
        """Wait until every call in flight is stored; none is tried again, no other is sent."""
        self._ending = True
        if self.endpoint:
            self.endpoint.stop()
        under_way = set(self._in_flight.values())
        if under_way:
            _, late = await asyncio.wait(under_way, timeout=DRAIN_S)
            for task in late:
                task.cancel()

    async def _ask(
        self, key: str, request: bytes, messages: Sequence[Message], decoding: Decoding
    ) -> Reply:
        failures, waited_s = 0, 0.0
        # Four bytes a token; the endpoint's own count corrects it afterwards.
        tokens = len(request) / 4
        while True:
            async with self.endpoint.slot(tokens) if self.endpoint else nullcontext():
                # Only now: other calls may have used up the limit while this one waited.
                self._budget.admit(self.name, self._prices.known)
                reply = await self.model.chat(messages, decoding)
                reply = replace(reply, key=key, cost_usd=self._prices.cost(reply.usage))
                self._budget.spend(reply)
            if self.endpoint:
                self.endpoint.learn(reply, tokens)
            self._learn(reply)
            if reply.final:
                self._given_up = None
                self.ledger.put(key, request, reply, model=self.name, stage=self.stage)
                reply = self._as_asked(reply, decoding)
                break
            self.ledger.add_attempt(key, reply, model=self.name)
            if reply.retry_after_s is None or self._ending:
                break
            if reply.adapted:
                continue
            failures += 1
            wait_s = self._retry.wait_s(failures, reply.retry_after_s, waited_s)
            if wait_s is None:
                self._note_given_up(reply)
                reply = replace(reply, detail=f"{reply.detail} (tried {failures} times)")
                break
            waited_s += wait_s
            await asyncio.sleep(wait_s)
        self.on_reply(reply, False)
        return reply

    def _note_given_up(self, reply: Reply) -> None:
        """Count calls given up until one is answered; a model that never answers is stopped."""
        if self._given_up is not None:
            self._given_up += 1
            if self._given_up >= HOPELESS:
                raise FatalModelError(
                    f"{self.name} has not answered once: {reply.detail}; run again when it does"
                )

    @property
    def quirks(self) -> Mapping[str, Any]:
        """What its endpoint was found to refuse (see `Reply.sent`)."""
        return self._quirks

    @property
    def under_way(self) -> int:
        """Number of calls in flight."""
        return len(self._in_flight)

    def _learn(self, reply: Reply) -> None:
        if reply.sent and dict(reply.sent) != self._quirks:
            before, self._quirks = changes(self._quirks), dict(reply.sent)
            if new := [change for change in changes(self._quirks) if change not in before]:
                log.warning(
                    "%s is asked %s from now on, since its endpoint refuses it otherwise; to try "
                    "again as asked for: botchat models --forget-quirks %s",
                    self.name,
                    " and ".join(new),
                    self.name,
                )
            self.ledger.set_quirks(self.identity, self._quirks)

    def _as_asked(self, reply: Reply, decoding: Decoding) -> Reply:
        """A stored reply as its caller gets it."""
        if decoding.logprobs is not None and self.token_logprobs:
            reply = replace(reply, tokens=self.token_logprobs(reply.raw))
        return spoken(reply)


def spoken(reply: Reply) -> Reply:
    """A reply without its thoughts; the ledger keeps them, so a better rule repairs old calls."""
    if not reply.usable:
        return reply
    text = without_thoughts(reply.text)
    if not text:
        return replace(reply, text="", outcome="empty", detail="nothing but thoughts")
    return replace(reply, text=text)
