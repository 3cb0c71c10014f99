"""Attempts within limits: each is reserved for before it is sent, counted after, and recorded.

An attempt without a believable count counts as what it had reserved. So does a filtered one, since
some providers bill the prompt. An attempt that was never sent, or turned away, counts nothing; one
whose answer comes in a later run counts as reserved.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from botchat.errors import ConfigError, FatalModelError
from botchat.frames import fill_text
from botchat.interfaces import Message, Reply, Usage
from botchat.models.attempts import Again, Answered, Attempt, Call, Sender, map_replies
from botchat.models.faults import FACTS
from botchat.models.limits import NOTHING, Budget, CallCost, CostBound, ServerLimit
from botchat.models.watch import Watch
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import Prices

MAX_TOKENS_NAMES = ("max_tokens", "max_completion_tokens")
"""Names of the longest reply in a model's own parameters (``extra``), which come before ours."""

BYTES_PER_TOKEN = 50
"""No tokenizer makes fewer tokens of a text than one for so many bytes."""


@dataclass(eq=False)
class PayingModel:
    """A sender within the limits of a run and of its server."""

    sender: Sender
    ledger: Ledger
    stage: str
    """Label of its calls in the ledger."""
    server_limit: ServerLimit | None = None
    """Limits of its server; None where no server is asked at once."""
    prices: Prices = Prices()
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        """Send nothing yet."""
        self._bound = CostBound(self.prices)
        self._watch = Watch(self.sender)
        self.in_flight: set[str] = set()
        """Keys of the calls in flight."""
        self.ending = False
        """Send nothing more."""
        self.fatal: FatalModelError | None = None
        """Reason why no call is sent any more."""

    def cost_bound(self, n_bytes: int, max_tokens: int | None) -> CallCost:
        """Return the most that a request of ``n_bytes`` for such a reply may take.

        Raises `ConfigError` if a limit could not be kept.
        """
        most = self._bound.of(n_bytes, self._longest_reply(max_tokens))
        limit = self.budget.unbounded(most)
        if limit is None:
            return most
        raise ConfigError(
            fill_text(
                "models/unbounded.txt",
                limit=limit,
                budget=self.budget,
                name=self.sender.name,
                has_price=self.budget.max_usd is None or self.prices.cost(0, 0) is not None,
            )
        )

    def _longest_reply(self, max_tokens: int | None) -> int | None:
        """Return the most tokens of a reply asked for with ``max_tokens``; None if unknown."""
        own = self.sender.identity.get("extra", {})
        bounds = [own[name] for name in MAX_TOKENS_NAMES if isinstance(own.get(name), int)]
        # The endpoint may take no such limit.
        is_taken = self.sender.quirks.parameters.get("max_tokens", "") is not None
        if max_tokens is not None and is_taken:
            bounds.append(max_tokens + self.sender.room)
        return max(bounds, default=self.sender.context_window)

    async def attempt(self, call: Call) -> Attempt:
        """Make one attempt, once there is room for it; account for its cost and record it.

        Raises `LimitReached`, `FatalModelError`, `BatchPending`, or the ledger's error if nothing
        can be stored.
        """
        most = self.cost_bound(len(call.request), call.decoding.max_tokens)
        # As it is now: the attempt may teach that a reply needs more room.
        longest = self._longest_reply(call.decoding.max_tokens)
        await self.budget.reserve(most)
        cost: CallCost | None = None
        revised = NOTHING
        place: AbstractAsyncContextManager[float] = nullcontext(0.0)
        if self.server_limit is not None:
            place = self.server_limit.place()
        try:
            async with place as sent_at:
                if self.ending:
                    raise asyncio.CancelledError
                if self.fatal is not None:
                    raise self.fatal
                self.ledger.check_writable()
                self.in_flight.add(call.key)
                cost = CallCost(None, None)  # also of one that is cancelled in flight, or pending
                attempt = await self.sender.attempt(call)
                if isinstance(attempt, Answered):
                    self._watch.see(call.messages, attempt.reply)
                attempt = map_replies(attempt, partial(self._price, call))
                cost = self._cost(attempt)
                revised = self._revised(call, longest, attempt)
                self._bound.learn(most, cost)
                self._bound.learn(most, revised)
                # Before the place is free: nothing is sent after a write that failed.
                await self._record(call, attempt, sent_at)
                return attempt
        except FatalModelError:
            cost = None  # such as without a key
            raise
        finally:
            self.in_flight.discard(call.key)
            if cost is None:
                self.budget.give_back(most)
            else:
                self.budget.settle(most, cost, revised)

    def _price(self, call: Call, reply: Reply) -> Reply:
        """Return a reply with its key, its believable usage, and its cost."""
        usage = believable_usage(reply.usage, call.messages, reply.text)
        cost_usd = self.prices.cost_of(usage, reply.cost_usd)
        return replace(reply, key=call.key, usage=usage, cost_usd=cost_usd)

    def _revised(self, call: Call, longest: int | None, attempt: Attempt) -> CallCost:
        """Return the most that an attempt took, by the tokens that its reply says.

        A prompt may have more than its bytes where nobody knows how many the reply has.
        """
        usage = attempt.reply.usage
        prompt = max(len(call.request), usage.prompt_tokens or 0)
        if longest is not None:
            longest = max(longest, usage.completion_tokens or 0)
        return CostBound(self.prices).of(prompt, longest)

    def _cost(self, attempt: Attempt) -> CallCost:
        """Return what an attempt took; None is unknown."""
        cost = CallCost(attempt.reply.cost_usd, attempt.reply.usage.total)
        if attempt.billed:
            return cost
        return CallCost(cost.usd or 0.0, cost.tokens or 0)

    async def _record(self, call: Call, attempt: Attempt, sent_at: float) -> None:
        """Store an attempt, an answer durable when this ends; let fewer or more be in flight."""
        limit = self.server_limit
        if isinstance(attempt, Answered):
            if limit is not None:
                limit.answered()
            await self.keep(call, attempt.reply)
        else:
            if limit is not None and isinstance(attempt, Again) and FACTS[attempt.fault].is_patient:
                limit.overloaded(sent_at, attempt.after_s)
            self.ledger.add_attempt(
                call.key, attempt.reply, model=self.sender.name, status=attempt.status
            )

    async def keep(self, call: Call, reply: Reply) -> None:
        """Store a reply as the answer to a call."""
        if call.replaces:
            self.ledger.forget([call.key])
        await self.ledger.keep(
            call.key, call.request, reply, model=self.sender.name, stage=self.stage
        )


def believable_usage(usage: Usage, messages: Sequence[Message], text: str) -> Usage:
    """Return a usage without counts that are too small for what was sent and said."""
    prompt = "".join([message["content"] for message in messages])
    return Usage(
        _believable(usage.prompt_tokens, prompt),
        _believable(usage.completion_tokens, text),
        usage.cached_tokens,
    )


def _believable(n_tokens: int | None, text: str) -> int | None:
    if n_tokens is None or n_tokens * BYTES_PER_TOKEN < len(text.encode()):
        return None
    return n_tokens
