"""Bounded retries, and how hard a server is pushed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.models import limits
from botchat.models.endpoint import LONGEST_PAUSE_S, retry_after_s
from botchat.models.limits import Retry, ServerLimit


@given(
    attempt=st.integers(1, 20),
    asked=st.floats(0, 2000),
    waited=st.floats(0, 1000),
    n=st.integers(1, 9),
)
def test_waiting_is_bounded_and_never_undercuts_the_server(attempt, asked, waited, n):
    """A retry waits at least what was asked, gives up after n attempts or the total."""
    retry = Retry(attempts=n)
    wait = retry.wait_s(attempt, asked, waited)
    if attempt >= n:
        assert wait is None
    if wait is not None:
        assert wait >= asked
        assert waited + wait <= retry.total_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "inf"}, LONGEST_PAUSE_S),
        ({"retry-after": "99999999"}, LONGEST_PAUSE_S),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_retry_after_is_understood_in_all_its_forms(headers, seconds):
    """Seconds, fractions, milliseconds; never negative, never for ever."""
    assert retry_after_s(headers) == seconds


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
        limiter.pause(7.0)
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
