"""Coroutines side by side: run them all, and tell when none of them has anything to add."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

QUIET_PASSES = 32
"""Passes of the event loop without a new call after which nobody else is on the way. From a reply
through ledger and worker to the same dialogue's next call it takes less than ten."""


async def together(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; the first error cancels the rest and is raised itself.

    Replies that are being paid for survive a cancellation: the recorded model shields them.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
    except BaseExceptionGroup as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]


async def until_quiet(n_calls: Callable[[], int]) -> None:
    """Let every other task run until none of them calls any more.

    Args:
        n_calls: calls so far; a change is a new call.
    """
    quiet, seen = 0, n_calls()
    while quiet < QUIET_PASSES:
        await asyncio.sleep(0)
        quiet = quiet + 1 if n_calls() == seen else 0
        seen = n_calls()
