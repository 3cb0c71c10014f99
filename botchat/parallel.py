"""Work on every core, in processes that cost little to start and do not outlive their parent.

Forked: they need not import again what the parent has, which for a large leaderboard would take
half as much CPU time on top. What they are given to do is sent to them.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from botchat.errors import BotChatError

P = ParamSpec("P")
R = TypeVar("R")

_LINUX = sys.platform == "linux"


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if _LINUX else os.cpu_count() or 1


def usable_cores() -> int:
    """Processes worth starting: one a core where forking is cheap and safe, else 1.

    That is on Linux, in a main process with one thread.
    """
    alone = threading.active_count() == 1 and multiprocessing.parent_process() is None
    return cores() if _LINUX and alone else 1


class Here(Executor):
    """Works in this process, when the result is asked for."""

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """What becomes of ``work(*args, **kwargs)``."""
        return _Later(lambda: work(*args, **kwargs))


HERE = Here()


class _Later(Future[R]):
    def __init__(self, work: Callable[[], R]) -> None:
        super().__init__()
        self._work = work

    def result(self, timeout: float | None = None) -> R:
        if not self.done():
            self.set_result(self._work())
        return super().result(timeout)


@contextmanager
def executor(workers: int | None = None) -> Iterator[Executor]:
    """Processes to work in, by default one a usable core; `Here` where that is one.

    They start with the first piece of work. Leaving the block drops what they have not begun. On
    other systems than Linux each runs the caller's script anew, which then needs
    ``if __name__ == "__main__":``.

    Raises:
        BotChatError: a process was killed.
    """
    workers = usable_cores() if workers is None else workers
    if workers == 1:
        yield HERE
        return
    context = multiprocessing.get_context("fork" if _LINUX else "spawn")
    pool = _Pool(workers, context, _begin)
    try:
        yield pool
    except BrokenProcessPool:
        raise BotChatError(
            "a process that helped was killed, perhaps because memory ran out; "
            "free some and run the command again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


class _Pool(ProcessPoolExecutor):
    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        with warnings.catch_warnings():
            # Newer Pythons, and jax, warn of forking beside threads, which may hold locks just
            # then. `usable_cores` knows of none; those of idle native libraries hold none.
            warnings.simplefilter("ignore")
            return super().submit(work, *args, **kwargs)


def _begin() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it: an orphan would keep inherited locks."""
    # Looking for garbage in what was inherited would copy it, page by page.
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if _LINUX:
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        _keep_memory()


def spend_memory() -> None:
    """Take more memory for less time, in a process that reads much and soon ends.

    Garbage that refers in circles is looked for seldom: there is little, and each look goes through
    everything that was read. Memory that is freed is kept for what is needed next.
    """
    gc.set_threshold(100_000, 20, 20)
    _keep_memory()


def _keep_memory() -> None:
    """Else glibc gives megabytes back and gets them anew, page by page, again and again."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if _LINUX else None
    if mallopt is not None:  # it is glibc
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 25)


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
