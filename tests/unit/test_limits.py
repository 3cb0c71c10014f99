"""Concurrency that adapts, bounded retries, prices."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Reply
from botchat.models import limits
from botchat.models.endpoint.replies import LONGEST_PAUSE_S, retry_after_s
from botchat.models.limits import BURST_S, Endpoint, RateLimit, Retry


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


def test_each_wait_is_up_to_twice_the_last():
    """From half of it on; never longer than the longest."""
    retry = Retry(attempts=9, first_s=1, longest_s=6, total_s=1000)
    for attempt, most in ((1, 1), (2, 2), (3, 4), (4, 6), (8, 6)):
        waits = [retry.wait_s(attempt, 0, 0) for _ in range(200)]
        assert most / 2 <= min(waits) < 0.6 * most
        assert 0.9 * most < max(waits) <= most


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "inf"}, LONGEST_PAUSE_S),
        ({"retry-after": "99999999"}, LONGEST_PAUSE_S),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2999 07:28:00 GMT"}, LONGEST_PAUSE_S),
    ],
)
def test_retry_after_is_understood_in_all_its_forms(headers, seconds):
    """Seconds, fractions, milliseconds, dates; never negative, never for ever."""
    assert retry_after_s(headers) == seconds


async def test_places_go_round_among_those_who_ask():
    """Two models and two stages on one server: whoever waits longest is next, newcomers last."""
    endpoint = Endpoint(most=3, start=3)
    served = Counter()

    async def worker(who):
        while served.total() < 400:
            async with endpoint.slot():
                served[who] += 1
                for _ in range(1 + len(who)):  # calls that take longer get no more places
                    await asyncio.sleep(0)

    who = ["a", "bb", "cccc", "dddddddd"]
    await asyncio.gather(*(worker(one) for one in who for _ in range(8)))
    assert max(served.values()) - min(served.values()) <= 16  # two rounds of 400 places


async def test_a_pause_asked_of_one_call_holds_every_other(monkeypatch):
    """Retry-After is the whole endpoint's: what waits for a place goes after it, and not before."""
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    pauses = []

    async def wait_for(waiting, timeout):
        waiting.close()
        pauses.append(timeout)
        now[0] += timeout
        raise TimeoutError

    monkeypatch.setattr(limits.asyncio, "wait_for", wait_for)
    endpoint = Endpoint(most=4, start=4)
    endpoint.learn(Reply("transport", status=429, retry_after_s=7.0))
    entered = []
    for _ in range(3):
        async with endpoint.slot():
            entered.append(now[0])
    assert entered == [1007.0] * 3
    assert pauses == [7.0]


@pytest.mark.parametrize("capacity", [3, 10, 40])
async def test_the_capacity_of_a_server_is_found_and_used(monkeypatch, capacity):
    """A server that refuses what is beyond: few refusals, and most of its places in use."""
    now = [0.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    endpoint = Endpoint(most=64)
    there, found = 0, []

    async def worker():
        nonlocal there
        while len(found) < 6000:
            async with endpoint.slot():
                there += 1
                refused = there > capacity
                found.append((there, refused))
                now[0] += 0.5 / capacity  # a call takes half a second
                for _ in range(2):
                    await asyncio.sleep(0)
                there -= 1
            said = Reply("transport", status=429, retry_after_s=0.0) if refused else Reply("ok")
            endpoint.learn(said)

    await asyncio.gather(*(worker() for _ in range(64)))
    found = found[1000:]
    assert sum(refused for _, refused in found) < 0.2 * len(found)
    assert sum(there for there, _ in found) > 0.4 * capacity * len(found)


async def test_a_fresh_endpoint_doubles_what_is_allowed_until_the_first_overload():
    """A round of successes doubles it; after an overload it adds one; a burst halves it once."""

    async def rounds(endpoint, n):
        allowed = []
        for _ in range(n):
            allowed.append(int(endpoint.limit))
            for _ in range(allowed[-1]):
                endpoint.succeeded()
                endpoint.in_flight = int(endpoint.limit)
        return allowed

    endpoint = Endpoint(most=100, start=16)
    endpoint.in_flight = 16
    fresh = await rounds(endpoint, 4)
    endpoint.overloaded(0.0)
    endpoint.in_flight = int(endpoint.limit)
    assert (fresh, await rounds(endpoint, 3)) == ([16, 32, 64, 100], [50, 50, 51])
    endpoint = Endpoint(most=64, start=64)
    for _ in range(10):
        endpoint.overloaded(0.0)
    assert endpoint.limit == 32


@given(
    most=st.integers(1, 40),
    start=st.integers(1, 40),
    callers=st.integers(1, 60),
    said=st.lists(st.sampled_from(["ok", "ok", "ok", "overloaded", "malformed"]), max_size=200),
)
def test_what_is_allowed_grows_only_where_it_is_in_use(most, start, callers, said):
    """Whatever comes: from 1 to the most, never more in flight, no growth with places free."""

    async def run():
        endpoint, answers = Endpoint(most, start), iter(said)

        async def caller():
            for answer in answers:
                async with endpoint.slot():
                    assert endpoint.in_flight <= most
                    await asyncio.sleep(0)
                before, used = endpoint.limit, endpoint.in_flight >= int(endpoint.limit)
                status = 429 if answer == "overloaded" else None
                kind = "ok" if answer == "ok" else "transport"
                endpoint.learn(Reply(kind, status=status))
                assert 1 <= endpoint.limit <= most
                assert endpoint.limit <= before + (answer == "ok" and used)
                if not used or answer != "ok":
                    assert endpoint.limit <= before

        await asyncio.gather(*(caller() for _ in range(callers)))
        assert endpoint.in_flight == 0

    asyncio.run(run())


async def test_a_cancelled_waiter_loses_no_place():
    """In the queue, or at its turn: the place goes to the next one."""
    endpoint = Endpoint(most=1, start=1)
    gate = asyncio.Event()

    async def call():
        async with endpoint.slot():
            await gate.wait()

    first = asyncio.create_task(call())
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(call()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    gate.set()
    await asyncio.wait_for(asyncio.gather(first, *waiting[1:]), 5)
    assert endpoint.in_flight == 0
    # At its turn; the gate is open now.
    async with endpoint.slot():
        second = asyncio.create_task(call())
        third = asyncio.create_task(call())
        await asyncio.sleep(0)
    # Leaving the slot has woken the second; it is cancelled before it can run.
    second.cancel()
    await asyncio.wait_for(third, 5)


@given(
    per_minute=st.floats(1, 10_000),
    calls=st.lists(st.tuples(st.floats(0, 20), st.floats(0.1, 50)), min_size=1, max_size=60),
)
def test_no_minute_gets_more_than_its_rate(per_minute, calls):
    """However calls arrive, any minute's worth of uses is within the rate, a burst and one call."""
    rate, now, used = RateLimit(per_minute), 0.0, []
    for gap, amount in calls:
        now += gap
        used.append((now + rate.wait_s(amount, now), amount))
    assert [at for at, _ in used] == sorted(at for at, _ in used)
    for start, _ in used:
        within = [amount for at, amount in used if start <= at < start + 60]
        allowed = per_minute * (60 + BURST_S) / 60 + max(within)
        assert sum(within) <= allowed * (1 + 1e-9)


def test_a_rate_that_is_free_does_not_wait_and_a_used_one_does():
    """60 a minute: two at once at most, then one a second; corrections move the next use."""
    rate = RateLimit(60)
    waits = [rate.wait_s(1, 100.0) for _ in range(4)]
    assert waits == pytest.approx([0, 0, 1, 2])
    rate.correct(-1)
    assert rate.wait_s(1, 100.0) == pytest.approx(2)
    assert rate.wait_s(1, 200.0) == 0


async def test_stopping_an_endpoint_cancels_who_still_waits():
    """An interrupted run sends nothing that was not under way, whatever it waited for."""
    endpoint = Endpoint(most=1, start=1, requests_per_minute=1)
    entered = 0

    async def call():
        nonlocal entered
        async with endpoint.slot():
            entered += 1

    await call()
    waiting = [asyncio.create_task(call()) for _ in range(3)]
    await asyncio.sleep(0)
    endpoint.stop()
    results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert entered == 1
