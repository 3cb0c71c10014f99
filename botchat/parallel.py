"""Work on several cores or machines, on joblib; and concurrent coroutines.

Tasks are pure functions with their arguments (`functools.partial`), which can be pickled. The
caller's ``joblib.parallel_config`` decides where they run: its backend (loky, threading, dask, ray)
and its ``n_jobs``. Without one they run on all cores that `joblib.cpu_count` counts, which respects
affinity and a container's CPU quota, in processes that joblib starts (loky).
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import GeneratorType
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend

from botchat.errors import BotChatError, ConfigError

R = TypeVar("R")
T = TypeVar("T")

_WORTH_S = 4.0
"""CPU seconds of work below which starting workers costs more than it saves: a process that loky
starts imports numpy and botchat anew."""


class Workers:
    """Runs tasks where the caller's ``joblib.parallel_config`` says; see `workers`."""

    def __init__(self, n_jobs: int | None) -> None:
        self._backend, _ = get_active_backend()
        with joblib.parallel_config() as caller:  # changes nothing; tells what is set
            configured = caller["n_jobs"]
        jobs = (configured if isinstance(configured, int) else None) if n_jobs is None else n_jobs
        if jobs is None:
            jobs = 1 if self._backend.nesting_level or multiprocessing.parent_process() else -1
        self.n_jobs: int = self._backend.effective_n_jobs(jobs)
        """Tasks that can run at a time."""
        self.started = False
        """Whether any task was worth starting a worker for."""
        self._least_s = _WORTH_S if n_jobs is None else 0
        self._running: Any = None

    def begin(self, tasks: Sequence[Callable[[], R]], seconds: float) -> Iterator[R]:
        """Begin tasks; their results come in order, each as soon as it is there.

        ``seconds``: CPU time of all tasks together, about. Where it is short, or there is one job,
        each task runs in this process when its result is asked for. Results of earlier tasks that
        were not taken are dropped.
        """
        if self.n_jobs == 1 or seconds < self._least_s:
            return (task() for task in tasks)
        self.drop()
        self.started = True
        # Results of "multiprocessing" and ray come all at once.
        returned = "generator" if self._backend.supports_return_generator else "list"
        parallel = joblib.Parallel(self.n_jobs, self._backend, return_as=returned)
        self._running = parallel((task, (), {}) for task in tasks)
        return iter(self._running)

    def drop(self) -> None:
        """Stop tasks whose results were not taken."""
        if isinstance(self._running, GeneratorType) and self._running.gi_frame is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib says that results are lost
                self._running.close()


@contextmanager
def workers(n_jobs: int | None = None) -> Iterator[Workers]:
    """Something to run tasks with; processes start with the first tasks that are worth it.

    ``n_jobs``: tasks at a time, as in joblib (-1: one a core), also where the work is small; by
    default as in the caller's ``joblib.parallel_config``, else -1. Leaving the block stops what has
    not finished. Raises `BotChatError` if a process was killed.
    """
    if n_jobs == 0:
        raise ConfigError("0 workers: give at least 1, or -1 for one a core")
    working = Workers(n_jobs)
    try:
        yield working
    except BrokenProcessPool:
        raise BotChatError(
            "a process that helped was killed, perhaps because memory ran out; "
            "free some and run the command again"
        ) from None
    finally:
        working.drop()


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
