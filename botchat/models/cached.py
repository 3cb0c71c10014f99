"""Every model call goes through here: ledger first, then budget, then the endpoint, with retries.

A reply in the ledger is returned and nothing is sent. A call is sent only once the budget holds the
most that it may take. What comes back is stored before anyone sees it. Two callers who ask the same
at the same time share one call.

What a try counts for, where the endpoint does not say what it took:

| how it ended | counted at |
| --- | --- |
| refused connection, unknown name, left out of its batch | nothing: it was not sent |
| 3xx, 4xx, overloaded (429, 503, 529) | nothing: it was turned away |
| 408, any other 5xx, deadline, broken connection, unreadable answer | what it had reserved |
| filtered (also as 4xx: some providers bill the prompt), any answer | the same |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from typing import Any

import msgspec
from msgspec.structs import replace

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import ChatModel, Decoding, Message, Reply, changes, visible
from botchat.models.limits import (
    OVERLOADED,
    Budget,
    Ceiling,
    Endpoint,
    Prices,
    Retry,
    Spent,
    plausible,
)
from botchat.models.self_chat import without_thoughts
from botchat.workspace.ledger import Ledger, request_json, request_key
from botchat.workspace.usage import CHECK, answered_by, askers, last_answered_by

log = logging.getLogger("botchat")

DRAIN_S = 30.0
"""How long an interrupted run waits for replies that are under way, and may be billed."""

HOPELESS = 8
"""A model is given up after so many calls if it has answered none in this run."""

ADAPTATIONS = 16
"""Most tries of a call that only learn what the endpoint refuses; further ones are failures."""

CAPS = ("max_tokens", "max_completion_tokens")
"""Names of the longest reply in a model's own parameters (``extra``), which come before ours."""


class Door:
    """Lets one call of a model out, with all its tries, until the model has answered.

    However many calls wait, a wrong key, an unknown model and a server that is down cost the tries
    of one. Failures that may be the call's own (it reached the server) let others knock too.
    """

    def __init__(self, opened: bool, alone: bool = False) -> None:
        """``opened``: the model is known to answer; the first failure closes the door.

        ``alone``: one knocks at a time whatever happens, since what a call takes is not known yet.
        """
        self.opened, self._alone = opened, alone
        self.answered = False  # in this run
        self._given_up = 0
        self._knocking: set[str] = set()
        self._fatal: FatalModelError | None = None
        self._moved = asyncio.Event()

    async def enter(self, call: str) -> None:
        """Wait until ``call`` may be sent. Raises `FatalModelError` as `admits`."""
        while not self.admits(call):
            several = self._given_up and not self._alone
            if len(self._knocking) < (HOPELESS - self._given_up if several else 1):
                self._knocking.add(call)
            else:
                await self._moved.wait()

    def leave(self, call: str) -> None:
        """The call has ended; another one may knock."""
        if call in self._knocking:
            self._knocking.discard(call)
            self._move()

    def admits(self, call: str) -> bool:
        """Whether ``call`` may be sent now; `FatalModelError`: another found that none may ever."""
        if self._fatal is not None:
            raise FatalModelError(str(self._fatal))
        return self.opened or call in self._knocking

    def open(self) -> None:
        """The model has answered."""
        if not self.answered:
            self.opened = self.answered = True
            self._move()

    def failed(self) -> None:
        """A try has failed."""
        self.opened = self.answered

    def given_up(self, reached: bool) -> bool:
        """A call was given up; whether the model is, too. ``reached``: it came to the server."""
        self._given_up += 1
        return not self.answered and (not reached or self._given_up >= HOPELESS)

    def close(self, error: FatalModelError) -> None:
        """Let nobody out any more."""
        self._fatal = error
        self._move()

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


@dataclass(eq=False)
class RecordedModel:
    """A `ChatModel` whose every reply is kept in the ledger."""

    model: ChatModel
    ledger: Ledger
    stage: str = field(kw_only=True)
    """Label of its calls in the ledger's accounts."""
    endpoint: Endpoint | None = None
    """Capacity of its server, at whose door the first call knocks alone; ``None``: no limit."""
    prices: Prices = field(default_factory=Prices)
    budget: InitVar[Budget | None] = None
    """``None``: nothing it does is paid for or limited."""
    retry: Retry = field(default_factory=Retry)
    on_reply: Callable[[Reply, bool], None] = lambda *_: None
    """Called with each reply and whether it came from the ledger."""
    on_estimate: Callable[[Spent, str], None] = lambda *_: None
    """Called for each try whose cost the endpoint did not say, with what it was counted at beyond
    what is known, and why."""

    def __post_init__(self, budget: Budget | None) -> None:
        """Take over what the ledger knows about ``model``."""
        self._paid = budget is not None
        self._budget = budget or Budget()
        self._ceiling = Ceiling(self.prices)
        self.name = self.model.name
        self.identity = self.model.identity
        self.context_window = self.model.context_window
        self.parallel = self.model.parallel
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._out: set[str] = set()
        self._ending = False
        self._quirks = self.ledger.quirks(self.identity)

    @cached_property
    def _door(self) -> Door:
        """Open where the ledger holds an answer; where there is no server, nobody knocks.

        Under a limit the first call goes alone: what a provider adds is reserved for all others.
        """
        limited = self._budget.limited
        known = self._has_answered() and not limited
        return Door(known or self.endpoint is None, alone=limited)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Answer from the ledger, or ask and store. Raises as `ChatModel.chat`."""
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        stored = self.ledger.get(key)
        if stored is not None:
            stored = spoken(stored)
            self.on_reply(stored, True)
            return stored
        running = self._in_flight.get(key)
        if running is None:
            running = asyncio.create_task(self._ask(key, request, messages, decoding))
            self._in_flight[key] = running
            running.add_done_callback(partial(self._ended, key))
        # Shielded: a caller that is cancelled (Ctrl-C) must not throw away a reply that is
        # already being paid for; `drain` waits for it.
        return await asyncio.shield(running)

    def _ended(self, key: str, running: asyncio.Task[Reply]) -> None:
        del self._in_flight[key]
        # The caller may be gone; asyncio prints an exception that nobody retrieves.
        _ = running.cancelled() or running.exception()

    def check_limits(self, max_tokens: int | None) -> None:
        """Raise `ConfigError` if a limit could not be kept for calls with this ``max_tokens``."""
        most = self._ceiling.of(0, self._cap(max_tokens))
        if flag := self._budget.unlimited(most):
            missing = (
                f"the price of {self.name} is unknown; set price_input and price_output"
                if flag.startswith("--max-usd") and not self.prices.known
                else f"nothing limits a reply of {self.name}; set max_tokens or context_window"
            )
            raise ConfigError(f"{flag} cannot be kept: {missing} in botchat.toml")

    def stop(self) -> None:
        """Send nothing more, and try nothing again."""
        self._ending = True
        if self.endpoint:
            self.endpoint.stop()

    async def drain(self) -> None:
        """Wait until every call that is out is stored; none is tried again, no other is sent."""
        self.stop()
        running = dict(self._in_flight)
        for key, task in running.items():
            if key not in self._out:  # it waits for its turn, or sleeps between two tries
                task.cancel()
        if running:
            _, late = await asyncio.wait(running.values(), timeout=DRAIN_S)
            for task in late:
                task.cancel()

    @property
    def under_way(self) -> int:
        """Number of calls that are out."""
        return len(self._out)

    async def _ask(
        self, key: str, request: bytes, messages: Sequence[Message], decoding: Decoding
    ) -> Reply:
        failures, adapted, waited_s = 0, 0, 0.0
        try:
            while True:
                await self._door.enter(key)
                try:
                    reply = await self._try(key, request, messages, decoding)
                    if reply is None:
                        continue
                    self._learn(reply)
                    if reply.final:
                        self._compare(reply)
                        kept = self.ledger.keep(
                            key, request, reply, model=self.name, stage=self.stage
                        )
                        await kept
                        self._door.open()
                        reply = spoken(reply)
                        break
                    self.ledger.add_attempt(key, reply, model=self.name)
                finally:  # `drain` waits for it until it is stored
                    self._out.discard(key)
                asked_s = reply.retry_after_s
                if self._ending:
                    break
                if asked_s is not None and reply.adapted and adapted < ADAPTATIONS:
                    adapted += 1
                    continue
                failures += 1
                wait_s = None
                if asked_s is not None:
                    if self.endpoint is not None:
                        self._door.failed()
                    wait_s = self.retry.wait_s(failures, asked_s, waited_s)
                if wait_s is None:
                    reply = self._given_up(reply, failures)
                    break
                waited_s += wait_s
                await asyncio.sleep(wait_s)
        except FatalModelError as error:
            self._door.close(error)
            raise
        finally:
            self._door.leave(key)
        self.on_reply(reply, False)
        return reply

    async def _try(
        self, key: str, request: bytes, messages: Sequence[Message], decoding: Decoding
    ) -> Reply | None:
        """One attempt, once there is room for it, and what it cost; ``None``: the door closed."""
        if self._ending:
            raise asyncio.CancelledError
        cap = self._cap(decoding.max_tokens)
        most = self._ceiling.of(len(request), cap)
        if self._budget.unlimited(most):
            self.check_limits(decoding.max_tokens)
        # Four bytes a token; the endpoint's own count corrects it afterwards.
        tokens = len(request) / 4
        async with (
            self._budget.reserve(most) as held,
            self.endpoint.slot(tokens) if self.endpoint else nullcontext(),
        ):
            if not self._door.admits(key):
                return None
            self._out.add(key)
            try:
                reply = await self.model.chat(messages, decoding)
            except FatalModelError as error:
                if error.reply is not None:
                    held.taken = Spent()
                    self.ledger.add_attempt(key, error.reply, model=self.name)
                raise
            usage, usd = plausible(reply.usage), self.prices.bill(reply)
            reply = replace(reply, key=key, usage=usage, cost_usd=usd)
            self._ceiling.learn(len(request), cap, usage, usd)
            held.taken = self._taken(most, reply)
        if self.endpoint:
            self.endpoint.learn(reply, tokens)
        return reply

    @property
    def quirks(self) -> Mapping[str, Any]:
        """What its endpoint was found to refuse (see `Reply.sent`)."""
        return self._quirks

    def _taken(self, most: Spent, reply: Reply) -> Spent:
        """What a try counts for whose reservation was ``most`` (the module's table)."""
        usd, usage = reply.cost_usd, reply.usage
        tokens = None
        if usage.prompt_tokens is not None and usage.completion_tokens is not None:
            tokens = usage.prompt_tokens + usage.completion_tokens
        if _turned_away(reply):
            usd, tokens = usd or 0.0, tokens or 0
        priced = usd is not None or most.usd is None
        told = self._paid and (reply.answered or most.usd or self._budget.limited)
        if told and not (priced and tokens is not None):
            why = "no count of tokens" if reply.answered else "no answer, maybe billed"
            if reply.billed_usd == 0:
                why = "a cost of zero beside a price"
            estimated = Spent(0.0 if priced else most.usd, most.tokens if tokens is None else 0)
            self.on_estimate(estimated, why)
        return Spent(most.usd if usd is None else usd, most.tokens if tokens is None else tokens)

    def _cap(self, max_tokens: int | None) -> int | None:
        """Most tokens of a reply that is asked for with ``max_tokens``; ``None``: unknown."""
        refused = self._quirks.get("parameters", {})
        if any(refused.get(name, "sent") is None for name in CAPS):
            max_tokens = None  # the endpoint takes no such limit
        own = self.identity.get("extra") or {}
        caps = [n for name in CAPS if isinstance(n := own.get(name), int)]
        caps += [] if max_tokens is None else [max_tokens]
        window: int | None = self.context_window or self._quirks.get("context_window")
        return max(caps) if caps else window

    def _given_up(self, reply: Reply, failures: int) -> Reply:
        """What its caller gets; raises `FatalModelError`: the model has not answered once."""
        if reply.retry_after_s is not None:
            # What only asked for another form of the request is no answer.
            outcome = "transport" if reply.answered else reply.outcome
            detail = f"{reply.detail} (tried {failures} times)"
            reply = replace(reply, outcome=outcome, detail=detail)
        elif self._door.opened:
            return reply  # the fault may be this request's own
        # What a batch left out says nothing about the model.
        if self._door.given_up(reply.reached or self.endpoint is None):
            raise FatalModelError(
                f"{self.name} has not answered once: {reply.detail}; run again when it does"
                + ("" if reply.reached else " (is the server running? check host and port)")
            )
        return reply

    def _has_answered(self) -> bool:
        """Whether the ledger's latest call of a model has its identity.

        Calls of the same settings at another address are told before they are paid for again.
        """
        known, own = askers(self.ledger), self._own
        if any(identity == own for identity, _ in known.values()):
            return True
        for identity, n in known.values():
            if "base_url" in own and identity | {"base_url": own["base_url"]} == own:
                there = identity["base_url"]
                log.warning(
                    f"the ledger holds {n} calls of {own['model']} with the same settings at "
                    f"{there}; to use them instead of paying again, stop and set in its [models] "
                    f'entry: identity = "{there}"'
                )
        return False

    @property
    def _own(self) -> dict[str, Any]:
        """Its identity as the ledger has it."""
        own: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.identity))
        return own

    def _learn(self, reply: Reply) -> None:
        if reply.sent and dict(reply.sent) != self._quirks:
            before, self._quirks = changes(self._quirks), dict(reply.sent)
            if new := [change for change in changes(self._quirks) if change not in before]:
                log.warning(
                    f"{self.name} is asked {' and '.join(new)} from now on, since its endpoint "
                    "refuses it otherwise"
                )
            self.ledger.set_quirks(self.identity, self._quirks)

    @cached_property
    def snapshot(self) -> str:
        """What its latest reply of earlier runs says of who answered; empty: it does not."""
        return last_answered_by(self.ledger, self.name, self._own)

    def _compare(self, reply: Reply) -> None:
        """Say it, once, where others answer now than those whose replies the ledger has."""
        before, self.snapshot = self.snapshot, answered_by(reply.raw) or self.snapshot
        if before and before != self.snapshot and self.stage != CHECK:
            log.warning(
                f"{self.name} answers as {self.snapshot} now, and in the ledger as {before}: what "
                "is new will stand beside what is replayed; to ask all of it anew, stop and give "
                f"the model a revision, such as {self.name}@2"
            )


def _turned_away(reply: Reply) -> bool:
    """Whether a try was certainly not billed."""
    status = reply.status or 0
    refused = status in OVERLOADED or (300 <= status < 500 and status != 408)
    return not reply.reached or (refused and reply.outcome != "filtered")


def spoken(reply: Reply) -> Reply:
    """A reply without its thoughts; the ledger keeps them, so a better rule repairs old calls."""
    if not reply.usable:
        return reply
    if visible(text := without_thoughts(reply.text)):
        return reply if text == reply.text else replace(reply, text=text)
    return replace(reply, text="", outcome="empty", detail="nothing but thoughts")
