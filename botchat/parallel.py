"""Concurrent coroutines: groups that end together, jobs that stop at once."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect garbage seldom: there is little of it, and much to look through for it.

    In the main thread only, since all threads share one collector.
    """
    before = gc.get_threshold()
    if ours := threading.current_thread() is threading.main_thread():
        gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        if ours:
            gc.set_threshold(*before)


async def together(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; the first error cancels the rest and is raised itself.

    Replies that are being paid for survive a cancellation: the cached model shields them.
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


async def stoppable(job: Awaitable[T], stop: Callable[[], None]) -> T:
    """Await a job; when it is cancelled, ``stop()`` is called before anything else happens.

    A cancellation goes down through groups of tasks one turn of the loop at a time, and a reply
    that comes in between would have its task send the next call.
    """
    task = asyncio.ensure_future(job)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        stop()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    return task.result()
