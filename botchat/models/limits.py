"""How hard an endpoint may be pushed, how often a call is tried, and what a run may cost.

A new rule of when to try again is in `Retry`; which answers it is about, `botchat.models.endpoint`
says. Reservations of money and tokens are here too.
"""

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

import msgspec

from botchat.errors import LimitReached
from botchat.interfaces import Reply, Usage, token_count


def plausible(usage: Usage) -> Usage:
    """``usage`` without what cannot be: a count is unknown then, and parts fit into the prompt.

    No prompt is empty: a server that counts zero tokens counts none.
    """
    prompt, cached = token_count(usage.prompt_tokens) or None, token_count(usage.cached_tokens)
    if prompt is not None:
        cached = cached and min(cached, prompt)
    completion = token_count(usage.completion_tokens)
    return Usage(prompt, completion if prompt else completion or None, cached)


@dataclass(frozen=True)
class Prices:
    """USD per million tokens; ``None``: unknown, which is never free."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None
    """Read from the provider's cache; ``None``: as input."""

    @property
    def known(self) -> bool:
        """Whether a call's cost can be computed."""
        return self.input is not None and self.output is not None

    @property
    def free(self) -> bool:
        """Whether every call costs nothing."""
        return self.input == 0 and self.output == 0

    def cost(self, usage: Usage) -> float | None:
        """USD of one call, or ``None`` where a price or a count is unknown."""
        if self.free:
            return 0.0
        if self.input is None or self.output is None:
            return None
        usage = plausible(usage)
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        cached = usage.cached_tokens or 0
        usd = usage.completion_tokens * self.output
        usd += cached * (self.input if self.cached is None else self.cached)
        return (usd + (usage.prompt_tokens - cached) * self.input) / 1e6

    def bill(self, reply: Reply) -> float | None:
        """USD that a call cost: what the provider says, else what its counts come to.

        ``None``: unknown, also where the provider says zero and the model has a price.
        """
        said = reply.billed_usd
        if said == 0 and self.known and not self.free:
            return None
        if said is not None and math.isfinite(said) and said >= 0:
            return said
        return self.cost(reply.usage)

    def most(self, prompt: int, completion: int) -> float | None:
        """USD of so many tokens at most, whatever is cached."""
        if self.input is None or self.output is None:
            return None
        dearest = max(self.input, self.cached or 0.0)
        return (prompt * dearest + completion * self.output) / 1e6

    def times(self, factor: float) -> Prices:
        """Prices of which each is so many times as high."""
        return Prices(*(None if n is None else factor * n for n in vars(self).values()))


FREE = Prices(0.0, 0.0)
"""Of what runs on this machine."""


class Spent(msgspec.Struct, frozen=True):
    """What a call took, or may take; ``None``: unknown."""

    usd: float | None = 0.0
    tokens: int | None = 0


@dataclass
class Ceiling:
    """The most that one call of a model takes, as far as it can be known before it is sent.

    A tokenizer of bytes makes no more tokens of a text than it has bytes, and the canonical request
    is longer than the prompt. What a provider adds all the same is learnt: the largest overruns so
    far are part of the next estimates.
    """

    prices: Prices
    _prompt: int = 0
    _completion: int = 0
    _usd: float = 0.0

    def of(self, n_bytes: int, cap: int | None) -> Spent:
        """For a request of ``n_bytes`` whose reply has at most ``cap`` tokens (``None``: any)."""
        if cap is None:
            return Spent(0.0 if self.prices.free else None, None)
        prompt, completion = n_bytes + self._prompt, cap + self._completion
        usd = self.prices.most(prompt, completion)
        return Spent(None if usd is None else usd + self._usd, prompt + completion)

    def learn(self, n_bytes: int, cap: int | None, usage: Usage, usd: float | None) -> None:
        """Take in what such a call was billed."""
        if cap is None:
            return
        self._prompt = max(self._prompt, (usage.prompt_tokens or 0) - n_bytes)
        self._completion = max(self._completion, (usage.completion_tokens or 0) - cap)
        most = self.prices.most(n_bytes + self._prompt, cap + self._completion)
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

    def wait_s(self, attempt: int, asked_s: float, waited_s: float) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (1-based); ``None``: give up.

        Never less than ``asked_s``, what the endpoint asked for (Retry-After).
        """
        if attempt >= self.attempts:
            return None
        backoff = min(self.longest_s, self.first_s * 2 ** (attempt - 1))
        wait = max(asked_s, backoff * (0.5 + random.random() / 2))
        return None if waited_s + wait > self.total_s else wait


@dataclass(eq=False, slots=True)
class Reservation:
    """A call's part of a budget, held inside an ``async with`` block; see `Budget.reserve`."""

    budget: Budget
    most: Spent
    taken: Spent | None = None
    """What it took in the end; ``None``: it was not sent."""

    async def __aenter__(self) -> Reservation:
        """Hold what it may take."""
        await self.budget.admitted(self.most)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give back what was not taken."""
        self.budget.settle(self)


@dataclass(eq=False)
class Budget:
    """What one run may still spend; ``None``: no limit.

    Every call reserves the most that it may take before it is sent: spent and reserved together
    never exceed a limit, except by what a call takes beyond its reservation.
    """

    max_usd: float | None = None
    max_calls: int | None = None
    """Counts every try."""
    max_tokens: int | None = None
    usd: float = 0.0
    """Settled; ``calls`` and ``tokens`` likewise, but ``calls`` counts those that are out too."""
    calls: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        """Nothing is reserved yet."""
        self._n_open, self._open_usd, self._open_tokens = 0, 0.0, 0
        self._waiting: deque[tuple[Spent, asyncio.Future[None]]] = deque()

    def reserve(self, most: Spent) -> Reservation:
        """Hold ``most`` inside a block; its `Reservation.taken` is spent afterwards.

        Entering it raises `LimitReached`: what is left does not do, and no call is out that could
        give some back.
        """
        return Reservation(self, most)

    async def admitted(self, most: Spent) -> None:
        """Wait until ``most`` is reserved, first come first served."""
        if not self._waiting and not self._reached(most):
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
                self.settle(Reservation(self, most))
            raise

    @property
    def limited(self) -> bool:
        """Whether money or tokens are."""
        return self.max_usd is not None or self.max_tokens is not None

    def unlimited(self, most: Spent) -> str:
        """The flag of a limit that cannot be kept because ``most`` does not say; else empty."""
        if self.max_usd is not None and most.usd is None:
            return f"--max-usd {self.max_usd:g}"
        if self.max_tokens is not None and most.tokens is None:
            return f"--max-tokens {self.max_tokens}"
        return ""

    def settle(self, held: Reservation) -> None:
        """Spend what a reserved call took, and give back the rest."""
        self._n_open -= 1
        self._open_usd -= held.most.usd or 0.0
        self._open_tokens -= held.most.tokens or 0
        if not self._n_open:
            self._open_usd = 0.0  # no rounding is left over
        if held.taken is None:
            self.calls -= 1
        else:
            self.usd += held.taken.usd or 0.0
            self.tokens += held.taken.tokens or 0
        self._wake()

    def _take(self, most: Spent) -> None:
        self.calls += 1
        self._n_open += 1
        self._open_usd += most.usd or 0.0
        self._open_tokens += most.tokens or 0

    def _wake(self) -> None:
        """Admit those who have waited longest, as far as the limits do."""
        while self._waiting:
            most, turn = self._waiting[0]
            if not turn.done():
                reached = self._reached(most)
                if reached and self._n_open and not reached.startswith("--max-calls"):
                    return
                if reached:
                    turn.set_exception(LimitReached(f"stopped at {reached}{self._so_far(most)}"))
                else:
                    self._take(most)
                    turn.set_result(None)
            self._waiting.popleft()

    def _reached(self, most: Spent) -> str:
        """The limit that leaves no room for ``most``, in words; empty: there is room."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"--max-calls {self.max_calls}: "
        usd, tokens = most.usd or 0.0, most.tokens or 0
        if self.max_usd is not None and self.usd + self._open_usd + usd > self.max_usd:
            return f"--max-usd {self.max_usd:g}: the next call may cost up to ${usd:.4g}; "
        if self.max_tokens is not None and (
            self.tokens + self._open_tokens + tokens > self.max_tokens
        ):
            return f"--max-tokens {self.max_tokens}: the next call may take up to {tokens} tokens; "
        return ""

    def _so_far(self, most: Spent) -> str:
        go_on = "the same command goes on from here (limits count for each run)"
        limits = ((most.usd, self.max_usd), (most.tokens, self.max_tokens))
        if any(limit is not None and (one or 0) > limit for one, limit in limits):
            go_on = "a higher limit or a smaller max_tokens in botchat.toml goes on from here"
        return (
            f"${self.usd:.4f}, {self.calls} calls and {self.tokens} tokens in this run; "
            f"everything is stored, and {go_on}"
        )


BURST_S = 1.0
"""Seconds' worth of a rate that may be used at once."""


class RateLimit:
    """A limit in requests or tokens a minute, spread evenly except for `BURST_S` seconds' worth."""

    def __init__(self, per_minute: float) -> None:
        """It begins with a burst, too."""
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

    Concurrency adapts as TCP's window does: while all that is allowed is in use, calls that succeed
    double it a round, until the server says that it is overloaded; from then on they add one a
    round, and every overload halves it. A Retry-After holds every caller.
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
        requests, tokens = requests_per_minute or math.inf, tokens_per_minute or math.inf
        self.most = most
        self._requests, self._tokens = RateLimit(requests), RateLimit(tokens)
        self.limit = float(min(start, most))
        self.in_flight = 0
        self._free_at = 0.0
        self._shrunk_at = 0.0
        self._slow_start = True
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

    def succeeded(self) -> None:
        """A call succeeded: allow a little more, where all that was allowed is in use."""
        if self.in_flight >= int(self.limit):
            more = 1.0 if self._slow_start else 1 / self.limit
            self.limit = min(self.most, self.limit + more)
            self._wake()

    def stop(self) -> None:
        """Send nothing more: callers that wait for a place are cancelled."""
        self._stopped.set()
        for turn in self._waiting:
            turn.cancel()

    def overloaded(self, pause_s: float) -> None:
        """The server is overloaded: halve, at most once a second, and hold all callers."""
        now, self._slow_start = time.monotonic(), False
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
