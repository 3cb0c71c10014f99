"""Tasks on several cores or machines, by joblib; and concurrent coroutines.

Tasks are pure functions with their arguments (`functools.partial`), which can be pickled.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend

from botchat.errors import BotChatError, ConfigError

R = TypeVar("R")
T = TypeVar("T")

_WORTH_S = 4.0
"""CPU seconds of work below which starting workers costs more than it saves: a process that loky
starts imports numpy and botchat anew."""


def n_workers(n_jobs: int | None = None) -> int:
    """Return how many tasks run at a time: ``n_jobs`` as in joblib, where -1 is one a core.

    By default the caller's ``joblib.parallel_config`` decides, else one a core; a worker starts no
    workers.
    """
    if n_jobs == 0:
        raise ConfigError("0 workers: give at least 1, or -1 for one a core")
    backend, _ = get_active_backend()
    if n_jobs is None:
        with joblib.parallel_config() as caller:  # changes nothing; tells what is set
            configured = caller["n_jobs"]
        is_worker = backend.nesting_level or multiprocessing.parent_process()
        n_jobs = configured if isinstance(configured, int) else 1 if is_worker else -1
    return int(backend.effective_n_jobs(n_jobs))


def run_tasks(
    tasks: Sequence[Callable[[], R]], seconds: float, n_jobs: int | None = None
) -> list[R]:
    """Return the results of tasks in order; they run where the caller's joblib backend says.

    ``seconds``: CPU time of all tasks, about; short work is done in this process, unless ``n_jobs``
    insists. Raises `BotChatError` if a process was killed.
    """
    workers = n_workers(n_jobs)
    if workers == 1 or (n_jobs is None and seconds < _WORTH_S):
        return [task() for task in tasks]
    try:
        return list(joblib.Parallel(workers)((task, (), {}) for task in tasks))
    except BrokenProcessPool:
        raise BotChatError(
            "a process that helped was killed, perhaps because memory ran out; "
            "free some and run the command again"
        ) from None


@contextmanager
def seldom_collected() -> Iterator[None]:
    """The same inside: there is little garbage, and much to look through for it.

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
