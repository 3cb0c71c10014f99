"""How hard an endpoint may be pushed, how often a call is tried, and what a run may cost."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from botchat.errors import LimitReached
from botchat.interfaces import Reply, Usage


@dataclass(frozen=True)
class Prices:
    """USD per million tokens; ``None``: unknown, which is never free."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None

    @property
    def known(self) -> bool:
        """Whether a call's cost can be computed."""
        return self.input is not None and self.output is not None

    def cost(self, usage: Usage) -> float | None:
        """USD of one call, or ``None`` where a price or a count is unknown."""
        if self.input == 0 and self.output == 0:
            return 0.0
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if self.input is None or self.output is None or prompt is None or completion is None:
            return None
        cached = usage.cached_tokens or 0
        cached_price = self.input if self.cached is None else self.cached
        fresh = prompt - cached
        return (fresh * self.input + cached * cached_price + completion * self.output) / 1e6


FREE = Prices(0.0, 0.0)
"""Of what runs on this machine."""


@dataclass(frozen=True)
class Retry:
    """When a failed attempt is repeated: exponential backoff with full jitter, bounded."""

    attempts: int = 6
    first_s: float = 0.5
    longest_s: float = 60.0
    total_s: float = 900.0
    """Longest waiting in all; after that the next run asks again."""

    def wait_s(self, attempt: int, asked_s: float, waited_s: float) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (1-based); ``None``: give up.

        Never less than ``asked_s``, what the endpoint asked for (Retry-After).
        """
        if attempt >= self.attempts:
            return None
        backoff = min(self.longest_s, self.first_s * 2 ** (attempt - 1))
        wait = max(asked_s, backoff * (0.5 + random.random() / 2))
        return None if waited_s + wait > self.total_s else wait


@dataclass
class Budget:
    """What one run may still spend, checked before every call; ``None``: no limit."""

    max_usd: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    usd: float = 0.0
    calls: int = 0
    tokens: int = 0

    def admit(self, model: str, priced: bool) -> None:
        """Count one call about to be sent.

        Raises:
            LimitReached: a limit is used up, or money is limited and the price is unknown.
        """
        resume = (
            f"${self.usd:.4f}, {self.calls} calls and {self.tokens} tokens in this run; everything "
            "is stored, and the same command goes on from here (limits count for each run)"
        )
        if self.max_usd is not None and not priced:
            raise LimitReached(
                f"--max-usd {self.max_usd:g} cannot be kept: the price of {model} is unknown; "
                "set price_input and price_output in botchat.toml"
            )
        if self.max_usd is not None and self.usd >= self.max_usd:
            raise LimitReached(f"stopped at --max-usd {self.max_usd:g}: {resume}")
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise LimitReached(f"stopped at --max-calls {self.max_calls}: {resume}")
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise LimitReached(f"stopped at --max-tokens {self.max_tokens}: {resume}")
        self.calls += 1

    def spend(self, reply: Reply) -> None:
        """Count what one reply cost."""
        self.usd += reply.cost_usd or 0.0
        self.tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)


BURST_S = 1.0
"""Seconds' worth of a rate that may be used at once."""


class Rate:
    """A limit in requests or tokens a minute, spread evenly except for `BURST_S` seconds' worth."""

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        self._next = -math.inf

    def wait_s(self, amount: float, now: float) -> float:
        """Take ``amount`` units; seconds from ``now`` until they may be used."""
        start = max(self._next, now - BURST_S)
        self._next = start + amount * 60 / self.per_minute
        return max(0.0, start - now)

    def correct(self, amount: float) -> None:
        """Take ``amount`` more (negative: give back), where an estimate was wrong."""
        self._next += amount * 60 / self.per_minute


OVERLOADED = (429, 503, 529)
"""HTTP statuses by which a server says that it is overloaded."""


class Endpoint:
    """One server's capacity, shared by every model and stage that uses it.

    Concurrency adapts: it grows slowly while calls succeed and is halved when the server says it is
    overloaded (additive increase, multiplicative decrease). A Retry-After holds every caller.
    """

    def __init__(
        self,
        most: int,
        start: int = 16,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        """At most ``most`` calls in flight, ``start`` at first; a rate of ``None`` is no limit."""
        self.most = most
        self._requests = Rate(requests_per_minute or math.inf)
        self._tokens = Rate(tokens_per_minute or math.inf)
        self.limit = float(min(start, most))
        self.in_flight = 0
        self._free_at = 0.0
        self._shrunk_at = 0.0
        self._stopped = asyncio.Event()
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self, tokens: float = 0.0) -> AsyncIterator[None]:
        """Wait for a place in flight, for the rates, and for any pause the server asked for.

        ``tokens``: an estimate for prompt and reply. Raises ``CancelledError`` after `stop`.
        """
        turn = asyncio.get_running_loop().create_future()
        if self._stopped.is_set():
            turn.cancel()
        self._waiting.append(turn)
        self._wake()
        try:
            await turn
            now = time.monotonic()
            wait_s = max(self._requests.wait_s(1, now), self._tokens.wait_s(tokens, now))
            while True:
                if self._stopped.is_set():
                    raise asyncio.CancelledError
                pause = max(self._free_at, now + wait_s) - time.monotonic()
                if pause <= 0:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), pause)
            yield
        finally:
            if not turn.cancelled():  # it has a place, even if its caller went before using it
                self.in_flight -= 1
                self._wake()

    def learn(self, reply: Reply, tokens: float = 0.0) -> None:
        """Adapt to how a call ended whose `slot` was taken with ``tokens``."""
        usage = reply.usage
        if usage.prompt_tokens is not None:
            self._tokens.correct(usage.prompt_tokens + (usage.completion_tokens or 0) - tokens)
        if reply.status in OVERLOADED:
            self.overloaded(reply.retry_after_s or 0.0)
        elif reply.answered:
            self.succeeded()

    def stop(self) -> None:
        """Send nothing more: callers that wait for a place are cancelled."""
        self._stopped.set()
        for turn in self._waiting:
            turn.cancel()

    def succeeded(self) -> None:
        """A call succeeded: allow a little more."""
        self.limit = min(self.most, self.limit + 1 / self.limit)
        self._wake()

    def overloaded(self, pause_s: float) -> None:
        """The server is overloaded: halve, at most once a second, and hold all callers."""
        now = time.monotonic()
        if now - self._shrunk_at > 1.0:
            self.limit = max(1.0, self.limit / 2)
            self._shrunk_at = now
        self._free_at = max(self._free_at, now + pause_s)

    def _wake(self) -> None:
        """Give free places to those who have waited longest; new callers queue behind them."""
        while self._waiting and self.in_flight < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
