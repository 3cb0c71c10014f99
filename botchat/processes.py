"""Work on every core, in processes that cost little to start and do not outlive their parent.

Forked: they share what the parent has read, at no cost. joblib's workers import and unpickle it all
again, which for a large leaderboard takes half as much CPU time on top.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from botchat.errors import BotChatError

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_LINUX = sys.platform == "linux"
_shared: Any = None


class Submit(Protocol):
    """Begins ``work(shared, task)`` in one of the processes."""

    def __call__(self, work: Callable[[Any, T], R], task: T, /) -> Future[R]:
        """What becomes of it."""
        ...


def usable_cores() -> int:
    """Processes worth starting: one a core where forking is cheap and safe, else 1.

    That is on Linux, in a main process with one thread.
    """
    alone = threading.active_count() == 1 and multiprocessing.parent_process() is None
    return len(os.sched_getaffinity(0)) if _LINUX and alone else 1


def spread(work: Callable[[S, T], R], tasks: Sequence[T], shared: S) -> list[R]:
    """``work(shared, task)`` of every task, in their order, on all usable cores.

    Tasks and results are sent between processes, ``shared`` is not, so it may be large. Whatever
    ``work`` raises is raised here.
    """
    workers = min(usable_cores(), len(tasks))
    if workers < 2:
        return [work(shared, task) for task in tasks]
    with pool(workers, shared) as submit:
        return [done.result() for done in [submit(work, task) for task in tasks]]


@contextmanager
def pool(workers: int, shared: object) -> Iterator[Submit]:
    """Processes that have ``shared``; leaving the block drops what they have not begun.

    On other systems than Linux each runs the caller's script anew, which then needs
    ``if __name__ == "__main__":``.

    Raises:
        BotChatError: a process was killed.
    """
    context = multiprocessing.get_context("fork" if _LINUX else "spawn")
    executor = ProcessPoolExecutor(workers, context, _begin, (shared,))

    def submit(work: Callable[[Any, T], R], task: T, /) -> Future[R]:
        with warnings.catch_warnings():
            # Newer Pythons, and jax, warn of forking beside threads, which may hold locks just
            # then. `usable_cores` knows of none; those of idle native libraries hold none.
            warnings.simplefilter("ignore")
            return executor.submit(_do, work, task)

    try:
        yield submit
    except BrokenProcessPool:
        raise BotChatError(
            "a process that helped was killed, perhaps because memory ran out; "
            "free some and run the command again"
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)


def _begin(shared: object) -> None:
    """Leave Ctrl-C to the parent, and do not outlive it: an orphan would keep inherited locks."""
    global _shared
    _shared = shared
    # Looking for garbage in what was inherited would copy it, page by page.
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if _LINUX:
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _do(work: Callable[[Any, T], R], task: T) -> R:
    return work(_shared, task)
