"""Bounded retries, and how hard a server is pushed."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Reply, Usage
from botchat.models import limits
from botchat.models.endpoint import LONGEST_PAUSE_S, retry_after_s
from botchat.models.limits import BURST_S, RateLimiter, Retry


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


async def test_a_pause_asked_of_one_call_holds_every_other(monkeypatch):
    """Retry-After is the whole server's: what waits for a place goes after it, and not before."""
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])

    async def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(limits.asyncio, "sleep", sleep)
    limiter = RateLimiter(4)
    async with limiter.place(0):
        limiter.learn(Reply("transport", status=429, retry_after_s=7.0), 0)
    for _ in range(3):
        async with limiter.place(0):
            assert now == [1007.0]


async def test_no_more_are_in_flight_than_allowed_and_a_cancelled_waiter_loses_no_place():
    """Whoever waits longest is next; whoever goes away before its turn takes no place."""
    limiter, order = RateLimiter(2), []

    async def call(name):
        async with limiter.place(0):
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
    async with limiter.place(0), limiter.place(0):
        pass


@given(
    per_minute=st.floats(1, 10_000),
    calls=st.lists(st.tuples(st.floats(0, 20), st.floats(0.1, 50)), min_size=1, max_size=60),
)
def test_no_minute_gets_more_than_its_rate(per_minute, calls):
    """However calls arrive, any minute's worth of uses is within the rate, a burst and one call."""
    rate, now, used = RateLimiter(1, None, per_minute), 0.0, []
    for gap, amount in calls:
        now += gap
        used.append((rate.take(amount, now), amount))
    assert [at for at, _ in used] == sorted(at for at, _ in used)
    for start, _ in used:
        within = [amount for at, amount in used if start <= at < start + 60]
        allowed = per_minute * (60 + BURST_S) / 60 + max(within)
        assert sum(within) <= allowed * (1 + 1e-9)


async def test_the_endpoints_own_count_corrects_the_estimate():
    """What a reply did not take is given back to the rate of tokens."""
    rate = RateLimiter(1, None, 60)
    async with rate.place(10):
        rate.learn(Reply("ok", usage=Usage(3, 1)), 10)
    now = time.monotonic()
    rate.take(0, now)
    assert 2 < rate.take(0, now) - now <= 3
