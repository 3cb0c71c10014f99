"""Prices, budgets, calls in flight and retries."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from botchat.errors import LimitReached
from botchat.interfaces import Reply

OVERLOADED = (429, 503, 529)  # HTTP statuses


@dataclass(frozen=True)
class Prices:
    """USD per million tokens; None is unknown, which is never free."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None  # read from the provider's cache; None: as input

    def cost(self, prompt: int | None, completion: int | None, cached: int = 0) -> float | None:
        """Return the cost of a call's tokens in USD; None if a price or a count is unknown."""
        if self.input == self.output == 0:
            return 0.0
        if self.input is None or self.output is None or prompt is None or completion is None:
            return None
        price = self.input if self.cached is None else self.cached
        return (completion * self.output + cached * price + (prompt - cached) * self.input) / 1e6

    def cost_of(self, reply: Reply) -> float | None:
        """Return USD that a call cost: as the provider reports, else by its tokens.

        None if unknown, also if the provider reports zero and the model has a price.
        """
        usage, billed = reply.usage, reply.billed_usd
        if billed is None or not 0 <= billed < math.inf:
            return self.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens or 0)
        return None if billed == 0 and self.cost(1, 1) else billed

    def in_batch(self) -> Prices:
        """Return the prices of the Batch API: half of these, at OpenAI and most others."""
        return Prices(*(None if n is None else n / 2 for n in vars(self).values()))


FREE = Prices(0.0, 0.0)  # models on this machine


class CallCost(NamedTuple):
    """USD and tokens that a call took, or may take; None is unknown."""

    usd: float | None = 0.0
    tokens: int | None = 0


@dataclass
class CostBound:
    """The most that one call of a model takes, as far as it can be known before it is sent.

    A tokenizer of bytes makes no more tokens of a text than it has bytes, and the canonical request
    is longer than the prompt. The largest overruns until now are part of the next bounds.
    """

    prices: Prices
    _usd: float = 0.0
    _tokens: int = 0

    def of(self, n_bytes: int, max_tokens: int | None) -> CallCost:
        """Return the bound for a request of ``n_bytes``; ``max_tokens`` of its reply, if known."""
        # A token in the provider's cache may be dearer.
        cached = n_bytes if (self.prices.cached or 0) > (self.prices.input or 0) else 0
        usd = self.prices.cost(n_bytes, max_tokens, cached)
        tokens = None if max_tokens is None else n_bytes + max_tokens + self._tokens
        return CallCost(None if usd is None else usd + self._usd, tokens)

    def learn(self, most: CallCost, cost: CallCost) -> None:
        """Take in what a call took whose bound was ``most``."""
        if most.usd is not None and cost.usd is not None:
            self._usd += max(0.0, cost.usd - most.usd)
        if most.tokens is not None and cost.tokens is not None:
            self._tokens += max(0, cost.tokens - most.tokens)


@dataclass(frozen=True)
class Retry:
    """Rules for repeating a failed attempt: exponential backoff with full jitter, bounded."""

    attempts: int = 6
    first_s: float = 0.5
    longest_s: float = 60.0
    total_s: float = 900.0  # longest waiting in all; after that the next run asks again

    def wait_s(self, attempt: int, least_s: float | None, waited_s: float) -> float | None:
        """Return seconds to wait after failed attempt ``attempt`` (1-based), or None to give up.

        Never less than ``least_s``, the endpoint's Retry-After; None if waiting will not help.
        """
        if least_s is None or attempt >= self.attempts:
            return None
        backoff = min(self.longest_s, self.first_s * 2 ** (attempt - 1))
        wait = max(least_s, backoff * (0.5 + random.random() / 2))
        return None if waited_s + wait > self.total_s else wait


@dataclass(eq=False)
class Budget:
    """USD, calls (every attempt counts) and tokens that a run may spend; None is no limit.

    Every call reserves the most that it may take before it is sent. Spent and reserved together
    never exceed a limit, except by what a call takes beyond its reservation.
    """

    max_usd: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    usd: float = 0.0  # spent; reservations are not in it
    calls: int = 0  # attempts, finished or in flight
    tokens: int = 0
    estimated: tuple[int, float, int] = (0, 0.0, 0)
    """Attempts that did not say what they took; USD and tokens counted for them."""

    def __post_init__(self) -> None:
        """Reserve nothing yet."""
        self._open: list[CallCost] = []
        self._turn, self._settled = asyncio.Lock(), asyncio.Event()

    def unbounded(self, most: CallCost) -> str:
        """Return the flag of a limit that cannot be kept since ``most`` is unknown, or ''."""
        if self.max_usd is not None and most.usd is None:
            return f"--max-usd {self.max_usd:g}"
        return f"--max-tokens {self.max_tokens}" if self.max_tokens and most.tokens is None else ""

    async def reserve(self, most: CallCost) -> None:
        """Wait until ``most`` is reserved, first come first served; `settle` ends it.

        Raises `LimitReached` if what is left does not do and no call in flight may give some back.
        """
        async with self._turn:
            while limit := self._limit_hit(most):
                if not self._open or limit.startswith("--max-calls"):
                    so_far = f"${self.usd:.4f}, {self.calls} calls and {self.tokens} tokens"
                    raise LimitReached(
                        f"stopped at {limit}; {so_far} in this run; everything is stored, and the "
                        "same command goes on from here (limits count for each run)"
                    )
                self._settled.clear()
                await self._settled.wait()
            self.calls += 1
            self._open.append(most)

    def settle(self, most: CallCost, cost: CallCost | None) -> None:
        """Spend what a call took that had reserved ``most``; None if it was not sent.

        What is unknown of it counts as it had been reserved.
        """
        self._open.remove(most)
        self._settled.set()
        if cost is None:
            self.calls -= 1
            return
        usd = (most.usd or 0.0) if cost.usd is None else 0.0
        tokens = (most.tokens or 0) if cost.tokens is None else 0
        self.usd += usd + (cost.usd or 0.0)
        self.tokens += tokens + (cost.tokens or 0)
        if usd or (tokens and (most.usd or self.max_usd or self.max_tokens)):
            n, all_usd, all_tokens = self.estimated
            self.estimated = (n + 1, all_usd + usd, all_tokens + tokens)

    def _limit_hit(self, most: CallCost) -> str:
        """Return the limit that leaves no room for ``most``, in words, or ''."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"--max-calls {self.max_calls}"
        if self.max_usd is not None:
            usd = math.fsum(each.usd or 0.0 for each in (*self._open, most))
            if self.usd + usd > self.max_usd:
                return f"--max-usd {self.max_usd:g}: the next call may cost up to ${most.usd:.4g}"
        if self.max_tokens is not None:
            tokens = sum(each.tokens or 0 for each in (*self._open, most))
            if self.tokens + tokens > self.max_tokens:
                flag = f"--max-tokens {self.max_tokens}"
                return f"{flag}: the next call may take up to {most.tokens} tokens"
        return ""


class ServerLimit:
    """Calls in flight at one server, shared by every model and stage that uses it.

    When the server says that it is overloaded, all callers wait as long as it asks.
    """

    def __init__(self, max_concurrency: int) -> None:
        """Allow at most ``max_concurrency`` calls in flight."""
        self._places = asyncio.Semaphore(max_concurrency)
        self._free_at = -math.inf

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place in flight, and for the end of any pause."""
        async with self._places:
            while (wait_s := self._free_at - time.monotonic()) > 0:
                await asyncio.sleep(wait_s)
            yield

    def pause(self, seconds: float) -> None:
        """Let no call begin for ``seconds``."""
        self._free_at = max(self._free_at, time.monotonic() + seconds)
