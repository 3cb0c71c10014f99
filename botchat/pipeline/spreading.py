"""Work on every core: one function on many arguments, in processes that cost little to start."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_shared: Any = None


def spread(work: Callable[[Any, Any], T], tasks: Sequence[Any], shared: Any = None) -> list[T]:
    """``work(shared, task)`` of every task, in their order.

    In processes where forking is cheap and safe (Linux, no other thread), else in this one. What is
    shared is not copied to them, so it may be large; tasks and results are.
    """
    alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    if sys.platform != "linux" or not alone or len(tasks) < 2:
        return [work(shared, task) for task in tasks]
    workers = min(len(os.sched_getaffinity(0)), len(tasks))
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside threads, which here are those of idle libraries.
        warnings.simplefilter("ignore")
        with ProcessPoolExecutor(workers, context, _begin, (shared,)) as pool:
            return [done.result() for done in [pool.submit(_do, work, task) for task in tasks]]


def _begin(shared: Any) -> None:
    """Leave Ctrl-C to the parent."""
    global _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared = shared


def _do(work: Callable[[Any, Any], T], task: Any) -> T:
    return work(_shared, task)
