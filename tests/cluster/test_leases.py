"""Leases: whatever becomes of workers, what they are billed is within what the run counts."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.cluster.leases import (
    INSTALMENTS,
    Account,
    LeasedBudget,
    command,
    end_command,
    lease_of,
    part,
)
from botchat.errors import ConfigError, LimitReached
from botchat.models.limits import Budget, Spent
from botchat.requests.arguments import Limits
from botchat.workspace.store import Store


@pytest.fixture
def account():
    """A lease's, in a store in memory that is commanded."""
    return new_account()


def new_account():
    """The lease of a shard, in a store in memory that is commanded."""
    store = Store(f"memory://{secrets.token_hex(8)}")
    command(store, "home", "run")
    return Account(store, "home", "run", "shard")


def asked(budget, most, taken):
    """One call; whether it was sent."""

    async def ask():
        async with budget.reserve(most) as held:
            held.taken = taken

    try:
        asyncio.run(ask())
    except LimitReached:
        return False
    return True


calls = st.lists(
    st.tuples(st.floats(0, 0.3), st.integers(0, 300), st.floats(0, 1), st.integers(0, 3)),
    max_size=40,
)


@given(calls, st.integers(1, 40), st.integers(0, 40))
def test_no_more_is_billed_than_is_counted(sent, most_calls, killed_at):
    """Of three workers with one shard; the last call may be billed its most: they are killed."""
    account, lease = new_account(), Limits(1.0, most_calls, 1000)
    workers = [LeasedBudget(lease=lease, draw=account.drawer()) for _ in range(3)]
    billed = [0.0, 0, 0]
    for at, (usd, tokens, share, who) in enumerate(sent):
        most, worker = Spent(usd, tokens), workers[who % 3]
        last = at >= killed_at
        taken = most if last else Spent(usd * share, int(tokens * share))
        if asked(worker, most, taken):
            billed = [billed[0] + taken.usd, billed[1] + 1, billed[2] + taken.tokens]
        if last:
            break
    counted = part(lease, account.close())
    assert all(a <= b + 1e-9 for a, b in zip(billed, counted, strict=True))
    assert all(a <= b for a, b in zip(counted, (1, most_calls, 1000), strict=True))
    assert not any(worker.draw(worker.drawn + 1) for worker in workers)
    end_command(account.store, "home")


@given(calls)
def test_one_worker_can_spend_its_whole_lease(sent):
    """It is refused only what an ordinary budget of the same limits refuses."""
    lease = Limits(1.0, 20, 1000)
    account, plain = new_account(), Budget(1.0, 20, 1000)
    leased = LeasedBudget(lease=lease, draw=account.drawer())
    for usd, tokens, share, _ in sent:
        most, taken = Spent(usd, tokens), Spent(usd * share, int(tokens * share))
        assert asked(leased, most, taken) == asked(plain, most, taken)
    assert (leased.usd, leased.calls, leased.tokens) == (plain.usd, plain.calls, plain.tokens)
    assert account.close() == leased.drawn
    end_command(account.store, "home")


def test_an_instalment_is_drawn_before_it_is_spent(account):
    """As many as a call needs, at once; a call that is cheaper leaves the rest for the next."""
    budget = LeasedBudget(lease=Limits(max_usd=1.0), draw=account.drawer())
    assert budget.drawn == 0
    assert asked(budget, Spent(0.35), Spent(0.05))
    assert budget.drawn == 4
    assert all(asked(budget, Spent(0.1), Spent(0.1)) for _ in range(3))
    assert budget.drawn == 4
    assert account.notes() != []
    assert not asked(budget, Spent(0.7), Spent(0.7))
    assert budget.drawn == 4  # what would not do is not drawn
    assert account.close() == 4


def test_nobody_draws_on_a_lease_that_is_closed_or_whose_run_is_over(account):
    """A worker that was thought dead, or a head's orphan, has what it has drawn, and no more."""
    other = Account(account.store, "home", "run", "other")
    late, orphan = account.drawer(), other.drawer()
    assert late(2)
    assert orphan(3)
    assert account.close() == 2
    assert not late(3)
    command(account.store, "home", "another")
    assert not orphan(4)
    end_command(account.store, "home")
    assert not orphan(4)
    with pytest.raises(ConfigError, match="--store"):
        account.drawer()


def test_a_shard_that_was_given_out_twice_has_one_lease(account):
    """A backend that replaces a worker by itself lets the next have what the first did not draw."""
    first = account.drawer()
    assert first(7)
    second = account.drawer()
    assert not second(4)
    assert second(3)
    assert not first(8)
    assert account.close() == INSTALMENTS


def test_parts_of_what_is_left():
    """Neither what is spent nor what calls hold that are out is lent."""
    budget = Budget(max_usd=1.0, max_calls=10)
    held = budget.lend(Spent(0.4))
    budget.usd = 0.2
    lease = lease_of(budget, 2)
    assert (lease.max_usd, lease.max_calls) == (pytest.approx(0.2), 4)
    assert lease_of(budget, 10) is None  # not a call for each
    assert lease_of(Budget(), 3) == Limits()
    held.taken = Spent(0.4)
    budget.settle(held)
    assert budget.left == (pytest.approx(0.4), 9, None)
