"""Bounded retries, and how hard a server is pushed."""

import asyncio
import json
from types import SimpleNamespace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Decoding, Message, Quirks, Reply
from botchat.models import limits
from botchat.models.attempts import Again, Answered
from botchat.models.endpoint import seconds_to_wait
from botchat.models.faults import FACTS, Fault
from botchat.models.limits import Retry, ServerLimit
from botchat.models.paying import PayingModel
from botchat.models.reader import read_error
from botchat.models.retrying import RetryingModel
from botchat.models.stored import StoredModel
from botchat.workspace.ledger import Ledger
from tests.rows import cases


@given(
    fault=st.sampled_from(get_args(Fault)),
    attempt=st.integers(1, 120),
    asked=st.floats(0, 2000),
    waited=st.floats(0, 1000),
    has_answered=st.booleans(),
)
def test_waiting_is_bounded_and_never_undercuts_the_server(
    fault, attempt, asked, waited, has_answered
):
    """A retry waits at least what was asked; what may have been billed is sent three times."""
    retry = Retry()
    wait = retry.wait_s(fault, attempt, asked, waited, has_answered)
    if attempt >= retry.most or (FACTS[fault].may_be_billed and attempt >= 3):
        assert wait is None
    if wait is not None:
        assert wait >= asked
        assert waited + wait <= retry.patience_s


@pytest.mark.parametrize(("draw", "part"), [(min, 0.5), (max, 1.0)])
def test_waits_grow_twofold_and_are_spread_over_half_of_a_step(monkeypatch, draw, part):
    """So that calls which failed together do not come back together."""
    monkeypatch.setattr(limits.random, "uniform", lambda *ends: draw(ends))
    waits = [Retry().wait_s("busy", n, 0.0, 0.0, True) for n in (1, 2, 3, 9)]
    assert waits == [part * step for step in (0.5, 1.0, 2.0, 60.0)]


def test_what_costs_nothing_is_waited_for_ten_minutes():
    """A 429 is no failed attempt before; a server that is down is, unless it has answered."""
    spans = {}
    for name, fault, has_answered in (
        ("busy", "busy", False),
        ("loading", "loading", False),
        ("restarted", "unreachable", True),
        ("down", "unreachable", False),
    ):
        waited, attempts = 0.0, 1
        while (wait := Retry().wait_s(fault, attempts, 0.0, waited, has_answered)) is not None:
            waited, attempts = waited + wait, attempts + 1
        spans[name] = waited
    assert min(spans["busy"], spans["loading"], spans["restarted"]) > 530
    assert spans["down"] < 20


@pytest.mark.parametrize(("headers", "body", "seconds"), cases("waits_that_are_asked_for", 3))
def test_a_wait_is_understood_in_all_its_forms(headers, body, seconds):
    """Header, date, field or words; never negative, never for ever."""
    error = read_error(json.dumps(body).encode())
    assert seconds_to_wait(headers, error) == pytest.approx(seconds)


class Clock:
    """A clock that goes on by sleeping alone."""

    now = 1000.0

    def rule(self, patch):
        """Be the clock of the limits, and of whoever sleeps."""
        patch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.passes = asyncio.sleep
        patch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        """Go on, and let others go on."""
        self.now += seconds
        await self.passes(0)


@pytest.fixture
def clock(monkeypatch):
    """The clock of a test."""
    clock = Clock()
    clock.rule(monkeypatch)
    return clock


async def test_a_pause_asked_of_one_call_holds_every_other(clock):
    """Retry-After is the whole server's: what waits for a place goes after it, and not before."""
    limiter = ServerLimit(4)
    async with limiter.place():
        limiter.overloaded(clock.now, 7.0)
    for _ in range(3):
        async with limiter.place():
            assert clock.now == 1007.0


class Overloaded:
    """A sender that answers so many calls at a time, and asks the others to wait."""

    name = "m"
    identity = {"model": "m"}  # noqa: RUF012
    context_window = None
    parallel = 64
    quirks = Quirks()
    room = most_room = 0

    def __init__(self, clock, *attempts, at_most=64):
        """``attempts``: what comes of the calls first; the last for all, if it is no answer."""
        self.clock, self.attempts, self.at_most = clock, list(attempts), at_most
        self.times = []
        self.out = 0

    async def attempt(self, call):
        """The next attempt."""
        self.times.append(self.clock.now)
        self.out += 1
        is_full = self.out > self.at_most
        for _ in range(9):
            await self.clock.passes(0)
        self.out -= 1
        if is_full:
            return Again(Reply("transport"), "busy", status=429)
        if self.attempts:
            return self.attempts.pop(0) if len(self.attempts) > 1 else self.attempts[0]
        return Answered(Reply("ok", call.messages[0]["content"]))


async def asked(sender, limiter, *texts):
    """The replies to these texts, asked for at once after a first one."""
    model = StoredModel(RetryingModel(PayingModel(sender, Ledger(None), "t", limiter)))
    calls = [model.chat([Message(role="user", content=each)], Decoding()) for each in texts]
    return [await calls[0], *await asyncio.gather(*calls[1:])]


def busy(fault, after_s=0.0):
    """An attempt that a server turns away."""
    return Again(Reply("transport", detail="HTTP 429"), fault, after_s, status=429)


@pytest.mark.parametrize("fault", ["busy", "loading"])
@pytest.mark.parametrize("asked_s", [0.25, 6.0, 20.0, 45.0, 300.0])
async def test_a_wait_that_is_asked_for_is_kept(clock, fault, asked_s):
    """By the call that is asked again; the test above says: by every other."""
    limiter = ServerLimit(8)
    sender = Overloaded(clock, busy(fault, asked_s), Answered(Reply("ok", "fine")))
    (reply,) = await asked(sender, limiter, "a")
    assert reply.text == "fine"
    first, second = sender.times
    assert second - first >= asked_s


@pytest.mark.parametrize("at_most", [1, 3, 7])
async def test_a_server_that_takes_few_at_a_time_loses_no_call(clock, at_most):
    """24 calls with 64 allowed: those turned away are asked again until all are answered."""
    sender = Overloaded(clock, at_most=at_most)
    texts = [f"call {n}" for n in range(24)]
    replies = await asked(sender, ServerLimit(64), *texts)
    assert [reply.text for reply in replies] == texts
    assert len(sender.times) < 24 * 6


async def test_no_more_are_in_flight_than_allowed_and_a_cancelled_waiter_loses_no_place():
    """Whoever waits longest is next; whoever goes away before its turn takes no place."""
    limiter, order = ServerLimit(2), []

    async def call(name):
        async with limiter.place():
            order.append(name)
            await gate.wait()

    gate = asyncio.Event()
    calls = [asyncio.create_task(call(name)) for name in "abcde"]
    await asyncio.sleep(0)
    assert order == ["a", "b"]
    calls[2].cancel()
    gate.set()
    await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
    assert order == ["a", "b", "d", "e"]
    async with limiter.place(), limiter.place():
        pass


async def test_a_429_halves_the_calls_in_flight_once_and_answers_let_them_grow():
    """All that were out tell one thing; after as many answers as are out there is one more."""
    limiter = ServerLimit(16)
    places = [limiter.place() for _ in range(16)]
    sent = [await place.__aenter__() for place in places]
    for at in sent:
        limiter.overloaded(at, 0.0)
    for place in places:
        await place.__aexit__(None, None, None)
    assert limiter.allowed == 8
    for _ in range(8 + 9):
        limiter.answered()
    assert limiter.allowed == 10
    for _ in range(1000):
        limiter.answered()
    assert limiter.allowed == 16
