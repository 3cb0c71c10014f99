"""Models behind the ledger: each call asks the ledger, the budget, then the endpoint, with retries.

A call is sent only once the budget holds the most that it may take; its reply is stored before
anyone sees it. Two callers who ask the same at the same time share one call. Until a model has
answered in a run, one call goes alone: a wrong key or a server that is down costs its attempts.

An attempt without a usable count counts as what it had reserved. So does a filtered one, since some
providers bill the prompt. An attempt never sent, or turned away (`_turned_away`), counts nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import ChatModel, Decoding, Message, Reply, describe_quirks
from botchat.models import limits
from botchat.models.limits import Budget, CallCost, CostBound, Prices, Retry, ServerLimit
from botchat.models.self_chat import strip_reasoning
from botchat.workspace.ledger import Ledger, request_json, request_key

log = logging.getLogger("botchat")

DRAIN_S = 30.0  # longest that an interrupted run waits for replies in flight

HOPELESS = 8  # calls after which a model is given up that has answered none in this run

MAX_TOKENS_NAMES = ("max_tokens", "max_completion_tokens")
"""Names of the longest reply in a model's own parameters (``extra``), which come before ours."""


class _Call(NamedTuple):
    key: str
    request: bytes  # its canonical form
    messages: Sequence[Message]
    decoding: Decoding


@dataclass(eq=False)
class CachedModel:
    """A `ChatModel` whose every reply is kept in the ledger."""

    model: ChatModel
    ledger: Ledger
    stage: str
    """Label of its calls in the ledger."""
    limiter: ServerLimit | None = None
    """Limits of its server; None where no server is asked at once."""
    prices: Prices = field(default_factory=Prices)
    budget: Budget = field(default_factory=Budget)
    retry: Retry = field(default_factory=Retry)
    on_reply: Callable[[Reply, bool], None] = lambda *_: None
    """Called with each reply and whether it came from the ledger."""

    def __post_init__(self) -> None:
        """Load what the ledger knows about ``model``."""
        self._bound = CostBound(self.prices)
        self.name, self.identity = self.model.name, self.model.identity
        self.parallel = self.model.parallel
        self.quirks: Mapping[str, Any] = self.ledger.quirks(self.identity)
        """Refusals and window of its endpoint (see `Reply.sent`)."""
        self._tasks: dict[str, asyncio.Task[Reply]] = {}
        self.in_flight: set[str] = set()
        """Keys of the calls in flight."""
        self.ending = False
        """Send nothing more, and try nothing again."""
        self._answered, self._n_given_up = self.limiter is None, 0
        self._alone = asyncio.Lock()
        self._fatal: FatalModelError | None = None

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together: as set, or as the endpoint says."""
        return self.model.context_window or self.quirks.get("context_window")

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Answer from the ledger, or ask and store. Raises as `ChatModel.chat`."""
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        if (stored := self.ledger.get(key)) is not None:
            stored = strip_reasoning(stored)
            self.on_reply(stored, True)
            return stored
        task = self._tasks.get(key)
        if task is None:
            call = _Call(key, request, messages, decoding)
            task = self._tasks[key] = asyncio.create_task(self._ask_in_turn(call))
            # The caller may be gone; asyncio prints an exception that is never retrieved.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded: a caller that is cancelled (Ctrl-C) must not throw away a reply that is
        # already being paid for; `drain` waits for it.
        return await asyncio.shield(task)

    def cost_bound(self, n_bytes: int, max_tokens: int | None) -> CallCost:
        """Return the most that a request of ``n_bytes`` for such a reply may take.

        Raises `ConfigError` if a limit could not be kept.
        """
        most = self._bound.of(n_bytes, self._reply_bound(max_tokens))
        if flag := self.budget.unbounded(most):
            missing = f"nothing limits a reply of {self.name}; set max_tokens or context_window"
            if flag.startswith("--max-usd") and self.prices.cost(0, 0) is None:
                missing = f"the price of {self.name} is unknown; set price_input and price_output"
            raise ConfigError(f"{flag} cannot be kept: {missing} in botchat.toml")
        return most

    async def drain(self) -> None:
        """Wait until every call in flight is stored; none is tried again, no other is sent."""
        self.ending = True
        tasks = [*self._tasks.values()]
        for key, task in self._tasks.items():
            if key not in self.in_flight:  # it waits for its turn, or between two attempts
                task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=DRAIN_S)
            for task in late:
                task.cancel()

    async def _ask_in_turn(self, call: _Call) -> Reply:
        """Call `_ask`, one call at a time until the model has answered."""
        try:
            async with nullcontext() if self._answered else self._alone:
                if not self._answered:
                    return await self._ask(call)
            return await self._ask(call)
        except FatalModelError as error:
            self._fatal = self._fatal or error
            raise
        finally:
            del self._tasks[call.key]

    async def _ask(self, call: _Call) -> Reply:
        failures, waited_s = 0, 0.0
        while True:
            try:
                reply = await self._attempt(call)
            finally:  # `drain` waits for it until it is stored
                self.in_flight.discard(call.key)
            if reply.final:
                self._answered = True
                reply = strip_reasoning(reply)
                break
            if self.ending:
                break
            if reply.adapted:  # an endpoint has few things to refuse
                continue
            failures += 1
            wait_s = self.retry.wait_s(failures, reply.retry_after_s, waited_s)
            if wait_s is None:
                reply = self._give_up(reply, failures)
                break
            waited_s += wait_s
            await asyncio.sleep(wait_s)
        self.on_reply(reply, False)
        return reply

    async def _attempt(self, call: _Call) -> Reply:
        """Make one attempt, once there is room for it; account for its cost and store the reply."""
        most = self.cost_bound(len(call.request), call.decoding.max_tokens)
        cost = None
        await self.budget.reserve(most)
        try:
            async with self.limiter.place() if self.limiter else nullcontext():
                if self.ending:
                    raise asyncio.CancelledError
                if self._fatal is not None:
                    raise FatalModelError(str(self._fatal))
                self.ledger.check_writable()
                self.in_flight.add(call.key)
                reply = await self.model.chat(call.messages, call.decoding)
                reply = replace(reply, key=call.key, cost_usd=self.prices.cost_of(reply))
                cost = CallCost(reply.cost_usd, reply.usage.total)
                self._bound.learn(most, cost)
                if _turned_away(reply):
                    cost = CallCost(cost.usd or 0.0, cost.tokens or 0)
                if self.limiter and reply.status in limits.OVERLOADED:
                    self.limiter.pause(reply.retry_after_s or 0.0)
                self._learn_quirks(reply)
                # Stored before the place is free: nothing is sent after a write that failed.
                await self.ledger.store(call.key, call.request, reply, self.name, self.stage)
                if reply.fatal:
                    raise FatalModelError(reply.fatal)
                return reply
        finally:
            self.budget.settle(most, cost)

    def _reply_bound(self, max_tokens: int | None) -> int | None:
        """Return the most tokens of a reply asked for with ``max_tokens``; None if unknown."""
        parameters, own = self.quirks.get("parameters", {}), self.identity.get("extra") or {}
        if any(parameters.get(name, "sent") is None for name in MAX_TOKENS_NAMES):
            max_tokens = None  # the endpoint takes no such limit
        bounds = [max_tokens, *(own.get(name) for name in MAX_TOKENS_NAMES)]
        return max((n for n in bounds if isinstance(n, int)), default=self.context_window)

    def _give_up(self, reply: Reply, failures: int) -> Reply:
        """Return the caller's reply; raises `FatalModelError` if the model cannot answer at all."""
        if reply.retry_after_s is not None:
            reply = replace(reply, detail=f"{reply.detail} (tried {failures} times)")
        self._n_given_up += 1
        # A fault may be this request's own, if it came to the server.
        if not self._answered and (not reply.reached or self._n_given_up >= HOPELESS):
            hint = "" if reply.reached else " (is the server running? check host and port)"
            why = f"{self.name} has not answered once: {reply.detail}"
            raise FatalModelError(f"{why}; run again when it does{hint}")
        return reply

    def _learn_quirks(self, reply: Reply) -> None:
        if not reply.sent or dict(reply.sent) == self.quirks:
            return
        before, self.quirks = describe_quirks(self.quirks), dict(reply.sent)
        self.ledger.set_quirks(self.identity, self.quirks)
        if new := [change for change in describe_quirks(self.quirks) if change not in before]:
            how = " and ".join(new)
            log.warning(f"{self.name} is asked {how} from now on: its endpoint refuses otherwise")


def _turned_away(reply: Reply) -> bool:
    """Return whether an attempt was certainly not billed."""
    status = reply.status or 0
    refused = status in limits.OVERLOADED or (300 <= status < 500 and status != 408)
    return not reply.reached or (refused and reply.outcome != "filtered")
