"""Bounded retries, and how hard a server is pushed."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.models import limits
from botchat.models.endpoint import LONGEST_WAIT_S, seconds_to_wait
from botchat.models.faults import Fault
from botchat.models.limits import Retry, ServerLimit
from botchat.models.reader import read_error


@given(
    fault=st.sampled_from(Fault),
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
    if attempt >= retry.most or (fault.facts.may_be_billed and attempt >= 3):
        assert wait is None
    if wait is not None:
        assert wait >= asked
        assert waited + wait <= retry.patience_s


def test_what_costs_nothing_is_waited_for_ten_minutes():
    """A 429 is no failed attempt before; a server that is down is, unless it has answered."""
    spans = {}
    for name, fault, has_answered in (
        ("busy", Fault.BUSY, False),
        ("loading", Fault.LOADING, False),
        ("restarted", Fault.UNREACHABLE, True),
        ("down", Fault.UNREACHABLE, False),
    ):
        waited, attempts = 0.0, 1
        while (wait := Retry().wait_s(fault, attempts, 0.0, waited, has_answered)) is not None:
            waited, attempts = waited + wait, attempts + 1
        spans[name] = waited
    assert min(spans["busy"], spans["loading"], spans["restarted"]) > 530
    assert spans["down"] < 20


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, {}, 0),
        ({"retry-after": "7"}, {}, 7),
        ({"retry-after": "0.25"}, {}, 0.25),
        ({"retry-after-ms": "2500"}, {}, 2.5),
        ({"retry-after": "-3"}, {}, 0),
        ({"retry-after": "soon"}, {}, 0),
        ({"retry-after": "nan"}, {}, 0),
        ({"retry-after": "inf"}, {}, LONGEST_WAIT_S),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}, 0),
        (
            {
                "retry-after": "Wed, 21 Oct 2015 07:28:09 GMT",
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
            },
            {},
            9,
        ),
        ({}, {"error": {"message": "Slow down", "retry_after": 12}}, 12),
        ({}, {"error": {"message": "Slow down", "retry_after_ms": 1500}}, 1.5),
        ({}, {"error": "Model is loading", "estimated_time": 33.5}, 33.5),
        ({}, {"error": {"code": 429, "details": [{"@type": "x", "retryDelay": "41s"}]}}, 41),
        ({}, {"error": {"message": "Please try again in 8.5s."}}, 8.5),
        ({}, {"error": {"message": "Please try again in 1m30s."}}, 90),
        ({}, {"error": {"message": "Please try again in 350ms."}}, 0.35),
        ({}, {"error": {"message": "Please retry after 20 seconds."}}, 20),
        ({}, {"detail": "Wait 2 minutes and 5 seconds before the next request"}, 125),
        ({}, {"error": {"message": "You may retry your 3 messages"}}, 0),
    ],
)
def test_a_wait_is_understood_in_all_its_forms(headers, body, seconds):
    """Header, date, field or words; never negative, never for ever."""
    error = read_error(json.dumps(body).encode())
    assert seconds_to_wait(headers, error) == pytest.approx(seconds)


class Clock:
    """A clock that goes on by sleeping alone."""

    now = 1000.0

    def rule(self, patch):
        """Be the clock of the limits."""
        patch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: self.now))
        patch.setattr(limits.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        """Go on."""
        self.now += seconds


async def test_a_pause_asked_of_one_call_holds_every_other(monkeypatch):
    """Retry-After is the whole server's: what waits for a place goes after it, and not before."""
    clock = Clock()
    clock.rule(monkeypatch)
    limiter = ServerLimit(4)
    async with limiter.place():
        limiter.overloaded(clock.now, 7.0)
    for _ in range(3):
        async with limiter.place():
            assert clock.now == 1007.0


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
