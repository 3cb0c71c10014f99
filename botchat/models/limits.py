"""Budgets, patience, and calls in flight."""

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from botchat.errors import LimitReached
from botchat.frames import fill_text
from botchat.models.faults import FACTS, Fault
from botchat.workspace.model_settings import Prices


class CallCost(NamedTuple):
    """USD and tokens that a call took, or may take; None is unknown."""

    usd: float | None = 0.0
    tokens: int | None = 0
    overrun_usd: float = 0.0
    """Part of ``usd`` that is for overruns like those of earlier calls."""
    overrun_tokens: int = 0


NOTHING = CallCost()

Limit: TypeAlias = Literal["max_usd", "max_calls", "max_tokens"]
"""A field of `Budget`."""


@dataclass
class CostBound:
    """The most that one call of a model takes, as far as it can be known before it is sent.

    A tokenizer of bytes makes no more tokens of a text than it has bytes, and the canonical request
    is longer than the prompt. The largest overrun until now is part of the next bounds.
    """

    prices: Prices
    _usd: float = 0.0
    _tokens: int = 0

    def of(self, n_bytes: int, max_tokens: int | None) -> CallCost:
        """Return the bound for a request of ``n_bytes``; ``max_tokens`` of its reply, if known."""
        n_cached = 0
        if (self.prices.cached or 0) > (self.prices.input or 0):  # it may be dearer
            n_cached = n_bytes
        usd = self.prices.cost(n_bytes, max_tokens, n_cached)
        tokens = None
        if usd is not None:
            usd += self._usd
        if max_tokens is not None:
            tokens = n_bytes + max_tokens + self._tokens
        return CallCost(usd, tokens, self._usd, self._tokens)

    def learn(self, most: CallCost, cost: CallCost) -> None:
        """Take in what a call took whose bound was ``most``."""
        if most.usd is not None and cost.usd is not None:
            # The bound had the largest overrun in it already.
            self._usd = max(self._usd, cost.usd - (most.usd - most.overrun_usd))
        if most.tokens is not None and cost.tokens is not None:
            self._tokens = max(self._tokens, cost.tokens - (most.tokens - most.overrun_tokens))


class Retry(NamedTuple):
    """Rules for repeating an attempt, by what it may have cost (see `Fault`).

    Waits grow twofold, each a half to the whole of its step, and are never less than the endpoint
    asks for.
    """

    first_s: float = 0.5
    longest_s: float = 60.0
    patience_s: float = 600.0
    """Longest waiting of one call, where attempts cost nothing; the next run asks again."""
    most: int = 100
    """Most attempts of a call."""

    def wait_s(
        self, fault: Fault, attempts: int, least_s: float, waited_s: float, has_answered: bool
    ) -> float | None:
        """Return seconds to wait after so many failed attempts, or None to give up.

        ``waited_s``: waited already; ``has_answered``: whether the model has in this run. A server
        that has answered and cannot be reached is being restarted.
        """
        is_patient = FACTS[fault].is_patient or (fault == "unreachable" and has_answered)
        if attempts >= self.most or (not is_patient and attempts >= FACTS[fault].attempts):
            return None
        # A gateway that restarts takes some seconds, and few attempts are made.
        growth = 4**attempts if fault == "server" else 2 ** (attempts - 1)
        backoff = min(self.longest_s, self.first_s * growth)
        wait: float = max(least_s, backoff * random.uniform(0.5, 1.0))
        if waited_s + wait > self.patience_s:
            return None
        return wait


@dataclass
class EstimatedUse:
    """Counts for attempts that did not say what they took."""

    calls: int = 0
    usd: float = 0.0
    tokens: int = 0


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

    def __post_init__(self) -> None:
        """Reserve nothing yet."""
        self.estimated = EstimatedUse()
        self._open: list[CallCost] = []
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()

    def unbounded(self, most: CallCost) -> Limit | None:
        """Return the limit that cannot be kept since ``most`` is unknown, if there is one."""
        if self.max_usd is not None and most.usd is None:
            return "max_usd"
        if self.max_tokens and most.tokens is None:
            return "max_tokens"
        return None

    async def reserve(self, most: CallCost) -> None:
        """Wait until ``most`` is reserved, first come first served; `settle` ends it.

        Raises `LimitReached` if what is left does not do and no call in flight may give some back.
        """
        async with self._turn:
            while True:
                limit = self._limit_hit(most)
                if limit is None:
                    break
                if not self._open or self.calls == self.max_calls:
                    raise LimitReached(
                        fill_text("models/stopped.txt", limit=limit, budget=self, most=most)
                    )
                self._settled.clear()
                await self._settled.wait()
            self.calls += 1
            self._open.append(most)

    def give_back(self, most: CallCost) -> None:
        """End a reservation whose call was not sent."""
        self.calls -= 1
        self.settle(most, NOTHING)

    def settle(self, most: CallCost, cost: CallCost, revised: CallCost = NOTHING) -> None:
        """Spend what a call took that had reserved ``most``.

        Unknown parts count as reserved, or as ``revised`` if that is more: the bound by what its
        reply says.
        """
        self._open.remove(most)
        self._settled.set()
        unknown_usd = 0.0
        unknown_tokens = 0
        if cost.usd is None:
            unknown_usd = max(most.usd or 0.0, revised.usd or 0.0)
        if cost.tokens is None:
            unknown_tokens = max(most.tokens or 0, revised.tokens or 0)
        self.usd += unknown_usd + (cost.usd or 0.0)
        self.tokens += unknown_tokens + (cost.tokens or 0)
        is_counted = most.usd or self.max_usd or self.max_tokens
        if is_counted and (unknown_usd or unknown_tokens):
            self.estimated.calls += 1
            self.estimated.usd += unknown_usd
            self.estimated.tokens += unknown_tokens

    def _limit_hit(self, most: CallCost) -> Limit | None:
        """Return the limit that leaves no room for ``most``, if there is one."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return "max_calls"
        if self.max_usd is not None:
            usd = math.fsum([each.usd or 0.0 for each in self._open + [most]])
            if self.usd + usd > self.max_usd:
                return "max_usd"
        if self.max_tokens is not None:
            tokens = sum([each.tokens or 0 for each in self._open + [most]])
            if self.tokens + tokens > self.max_tokens:
                return "max_tokens"
        return None


class ServerLimit:
    """Calls in flight at one server, shared by every model and stage that uses it.

    When the server says that it is overloaded, half as many are in flight, once for all that were
    out then, and all callers wait as long as it asks. After as many answers as are in flight, there
    is room for one more.
    """

    def __init__(self, max_concurrency: int) -> None:
        """Allow at most ``max_concurrency`` calls in flight."""
        self.most = max_concurrency
        self.allowed = max_concurrency
        self.in_flight = 0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._free_at = 0.0  # by `time.monotonic`
        self._cut_at = 0.0
        self._n_answers = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[float]:
        """Wait for a place in flight, and for the end of any pause; yield the time of sending."""
        async with self._turn:
            while self.in_flight >= self.allowed:
                self._freed.clear()
                await self._freed.wait()
            self.in_flight += 1
        try:
            while self._free_at > time.monotonic():
                await asyncio.sleep(self._free_at - time.monotonic())
            yield time.monotonic()
        finally:
            self.in_flight -= 1
            self._freed.set()

    def overloaded(self, sent_at: float, seconds: float) -> None:
        """Let no call begin for ``seconds``, and fewer at a time; a call of ``sent_at`` tells."""
        self._free_at = max(self._free_at, time.monotonic() + seconds)
        if sent_at > self._cut_at:
            self.allowed = max(1, min(self.allowed, self.in_flight) // 2)
            self._cut_at = time.monotonic()
            self._n_answers = 0

    def answered(self) -> None:
        """Take note of an answer."""
        self._n_answers += 1
        if self._n_answers >= self.allowed:
            self._n_answers = 0
            self.allowed = min(self.most, self.allowed + 1)
            self._freed.set()
