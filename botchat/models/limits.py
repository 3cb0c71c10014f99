"""Prices, budgets, rate limits and retries.

A new rule of when to try again is in `Retry`; which answers it is about, `botchat.models.endpoint`
says.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from dataclasses import dataclass

import msgspec

from botchat.errors import LimitReached
from botchat.interfaces import Reply, Usage, token_count


def valid_usage(usage: Usage) -> Usage:
    """Return ``usage`` without impossible counts: they are unknown.

    No prompt is empty: a server that counts zero tokens counts none.
    """
    prompt, cached = token_count(usage.prompt_tokens) or None, token_count(usage.cached_tokens)
    if prompt is not None:
        cached = cached and min(cached, prompt)
    completion = token_count(usage.completion_tokens)
    return Usage(prompt, completion if prompt else completion or None, cached)


@dataclass(frozen=True)
class Prices:
    """USD per million tokens; None is unknown, which is never free."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None
    """Read from the provider's cache; None: as input."""

    @property
    def known(self) -> bool:
        """Whether a call's cost can be computed."""
        return self.input is not None and self.output is not None

    @property
    def free(self) -> bool:
        """Whether every call costs nothing."""
        return self.input == 0 and self.output == 0

    def cost(self, usage: Usage) -> float | None:
        """Return USD of so many tokens, or None if a price or a count is unknown."""
        if self.free:
            return 0.0
        usage = valid_usage(usage)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if self.input is None or self.output is None or prompt is None or completion is None:
            return None
        cached = usage.cached_tokens or 0
        usd = completion * self.output
        usd += cached * (self.input if self.cached is None else self.cached)
        return (usd + (prompt - cached) * self.input) / 1e6

    def cost_of(self, reply: Reply) -> float | None:
        """Return USD that a call cost: as the provider reports, else by its tokens.

        None if unknown, also if the provider reports zero and the model has a price.
        """
        reported = reply.billed_usd
        if reported == 0 and self.known and not self.free:
            return None
        if reported is not None and math.isfinite(reported) and reported >= 0:
            return reported
        return self.cost(reply.usage)

    def cost_bound(self, prompt: int, completion: int) -> float | None:
        """Return the most USD that so many tokens cost, whatever is cached."""
        if self.input is None or self.output is None:
            return None
        return (prompt * max(self.input, self.cached or 0.0) + completion * self.output) / 1e6

    def times(self, factor: float) -> Prices:
        """Return each price times ``factor``."""
        return Prices(*(None if n is None else factor * n for n in vars(self).values()))


FREE = Prices(0.0, 0.0)
"""Prices of models on this machine."""


class CallCost(msgspec.Struct, frozen=True):
    """USD and tokens that a call took, or may take; None is unknown."""

    usd: float | None = 0.0
    tokens: int | None = 0


@dataclass
class CostBound:
    """The most that one call of a model takes, as far as it can be known before it is sent.

    A tokenizer of bytes makes no more tokens of a text than it has bytes, and the canonical request
    is longer than the prompt. What a provider adds is learnt: the largest overruns until now are
    part of the next bounds.
    """

    prices: Prices
    _prompt: int = 0
    _completion: int = 0
    _usd: float = 0.0

    def of(self, n_bytes: int, max_tokens: int | None) -> CallCost:
        """Return the bound for a request of ``n_bytes``; ``max_tokens`` of its reply, if known."""
        if max_tokens is None:
            return CallCost(0.0 if self.prices.free else None, None)
        prompt, completion = n_bytes + self._prompt, max_tokens + self._completion
        usd = self.prices.cost_bound(prompt, completion)
        return CallCost(None if usd is None else usd + self._usd, prompt + completion)

    def learn(self, n_bytes: int, max_tokens: int | None, usage: Usage, usd: float | None) -> None:
        """Take in what such a call was billed."""
        if max_tokens is None:
            return
        self._prompt = max(self._prompt, (usage.prompt_tokens or 0) - n_bytes)
        self._completion = max(self._completion, (usage.completion_tokens or 0) - max_tokens)
        most = self.prices.cost_bound(n_bytes + self._prompt, max_tokens + self._completion)
        if usd is not None and most is not None:
            self._usd = max(self._usd, usd - most)


@dataclass(frozen=True)
class Retry:
    """When a failed attempt is repeated: exponential backoff with full jitter, bounded."""

    attempts: int = 6
    first_s: float = 0.5
    longest_s: float = 60.0
    total_s: float = 900.0
    """Longest waiting in all; after that the next run asks again."""

    def wait_s(self, attempt: int, requested_s: float, waited_s: float) -> float | None:
        """Return seconds to wait after failed attempt number ``attempt`` (1-based); None: give up.

        Never less than ``requested_s``, the endpoint's Retry-After.
        """
        if attempt >= self.attempts:
            return None
        backoff = min(self.longest_s, self.first_s * 2 ** (attempt - 1))
        wait = max(requested_s, backoff * (0.5 + random.random() / 2))
        return None if waited_s + wait > self.total_s else wait


@dataclass(eq=False)
class Budget:
    """Money, calls and tokens that one run may still spend; None is no limit.

    Every call reserves the most that it may take before it is sent: spent and reserved together
    never exceed a limit, except by what a call takes beyond its reservation.
    """

    max_usd: float | None = None
    max_calls: int | None = None
    """Every attempt counts."""
    max_tokens: int | None = None
    usd: float = 0.0
    """USD spent; reservations are not in it."""
    calls: int = 0
    """Attempts made, those in flight included."""
    tokens: int = 0

    def __post_init__(self) -> None:
        """Reserve nothing yet."""
        self._n_open, self._open_usd, self._open_tokens = 0, 0.0, 0
        self._waiting: deque[tuple[CallCost, asyncio.Future[None]]] = deque()

    @property
    def limited(self) -> bool:
        """Whether money or tokens are."""
        return self.max_usd is not None or self.max_tokens is not None

    def unbounded(self, most: CallCost) -> str:
        """Return the flag of a limit that cannot be kept since ``most`` is unknown, or ''."""
        if self.max_usd is not None and most.usd is None:
            return f"--max-usd {self.max_usd:g}"
        if self.max_tokens is not None and most.tokens is None:
            return f"--max-tokens {self.max_tokens}"
        return ""

    async def reserve(self, most: CallCost) -> None:
        """Wait until ``most`` is reserved, first come first served; `settle` ends it.

        Raises `LimitReached` if what is left does not do and no call in flight may give some back.
        """
        if not self._waiting and not self._limit_hit(most):
            self._take(most)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((most, turn))
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._wake()  # those behind it may fit
            elif turn.exception() is None:
                self.settle(most, None)
            raise

    def settle(self, most: CallCost, cost: CallCost | None) -> None:
        """Spend what a call took that had reserved ``most``; None if it was not sent."""
        self._n_open -= 1
        self._open_usd -= most.usd or 0.0
        self._open_tokens -= most.tokens or 0
        if not self._n_open:
            self._open_usd = 0.0  # no rounding is left over
        if cost is None:
            self.calls -= 1
        else:
            self.usd += cost.usd or 0.0
            self.tokens += cost.tokens or 0
        self._wake()

    def _take(self, most: CallCost) -> None:
        self.calls += 1
        self._n_open += 1
        self._open_usd += most.usd or 0.0
        self._open_tokens += most.tokens or 0

    def _wake(self) -> None:
        """Admit those who have waited longest, as far as the limits do."""
        while self._waiting:
            most, turn = self._waiting[0]
            if not turn.done():
                limit = self._limit_hit(most)
                if limit and self._n_open and not limit.startswith("--max-calls"):
                    return
                if limit:
                    turn.set_exception(LimitReached(f"stopped at {limit}{self._summary}"))
                else:
                    self._take(most)
                    turn.set_result(None)
            self._waiting.popleft()

    def _limit_hit(self, most: CallCost) -> str:
        """Return the limit that leaves no room for ``most``, in words, or ''."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"--max-calls {self.max_calls}: "
        usd, tokens = most.usd or 0.0, most.tokens or 0
        if self.max_usd is not None and self.usd + self._open_usd + usd > self.max_usd:
            return f"--max-usd {self.max_usd:g}: the next call may cost up to ${usd:.4g}; "
        all_tokens = self.tokens + self._open_tokens + tokens
        if self.max_tokens is not None and all_tokens > self.max_tokens:
            return f"--max-tokens {self.max_tokens}: the next call may take up to {tokens} tokens; "
        return ""

    @property
    def _summary(self) -> str:
        return (
            f"${self.usd:.4f}, {self.calls} calls and {self.tokens} tokens in this run; everything "
            "is stored, and the same command goes on from here (limits count for each run)"
        )


BURST_S = 1.0
"""Seconds' worth of a rate that may be used at once."""


class RateLimit:
    """A limit in requests or tokens a minute, spread evenly except for `BURST_S` seconds' worth."""

    def __init__(self, per_minute: float | None) -> None:
        self.per_minute = per_minute or math.inf
        self._next = -math.inf

    def wait_s(self, amount: float, now: float) -> float:
        """Take ``amount`` units; return seconds from ``now`` until they may be used."""
        start = max(self._next, now - BURST_S)
        self._next = start + amount * 60 / self.per_minute
        return max(0.0, start - now)

    def correct(self, amount: float) -> None:
        """Take ``amount`` more (negative: give back) after an estimate was wrong."""
        self._next += amount * 60 / self.per_minute


OVERLOADED = (429, 503, 529)
"""HTTP statuses by which a server says that it is overloaded."""


class RateLimiter:
    """One server's capacity, shared by every model and stage that uses it.

    At most so many calls in flight, and so many requests and tokens a minute. When the server says
    that it is overloaded, all callers wait as long as it asks.
    """

    def __init__(
        self,
        max_concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        """A rate of None is no limit."""
        self._places = asyncio.Semaphore(max_concurrency)
        self._requests, self._tokens = RateLimit(requests_per_minute), RateLimit(tokens_per_minute)
        self._free_at = -math.inf

    async def enter(self, tokens: float) -> None:
        """Wait for a place in flight, for the rates, and for any pause; `leave` gives it back.

        ``tokens``: an estimate for prompt and reply.
        """
        await self._places.acquire()
        try:
            now = time.monotonic()
            wait_s = max(self._requests.wait_s(1, now), self._tokens.wait_s(tokens, now))
            while (pause_s := max(self._free_at, now + wait_s) - time.monotonic()) > 0:
                await asyncio.sleep(pause_s)
        except asyncio.CancelledError:
            self._places.release()
            raise

    def leave(self, reply: Reply | None, tokens: float) -> None:
        """Give the place back; learn from the reply, if there is one."""
        self._places.release()
        if reply is None:
            return
        if reply.usage.prompt_tokens is not None:
            used = reply.usage.prompt_tokens + (reply.usage.completion_tokens or 0)
            self._tokens.correct(used - tokens)
        if reply.status in OVERLOADED:
            self._free_at = max(self._free_at, time.monotonic() + (reply.retry_after_s or 0.0))
