"""Concurrent coroutines: groups that end together, jobs that stop at once or early."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from botchat.errors import FatalModelError, LimitReached, UnreadableReplies

T = TypeVar("T")


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect garbage seldom: there is little of it, and much to look through for it.

    In the main thread only, since all threads share one collector.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
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


@dataclass
class EarlyStop:
    """Reasons why items could not be done."""

    fatal: dict[str, FatalModelError] = field(default_factory=dict)
    """Models that cannot answer at all."""
    unreadable: dict[tuple[str, str], UnreadableReplies] = field(default_factory=dict)
    """Judge and protocol; the judge goes on with its other protocols."""
    limit: LimitReached | None = None

    def raise_first(self) -> None:
        """Raise what ended the run or a part of it early, if anything did.

        A limit and a model end the whole run, and come first.
        """
        if self.limit is not None:
            raise self.limit
        if self.fatal:
            raise FatalModelError("; ".join(map(str, self.fatal.values())))
        if self.unreadable:
            raise UnreadableReplies("; ".join(map(str, self.unreadable.values())))


Job: TypeAlias = Callable[[], Coroutine[Any, Any, T]]
"""Makes a coroutine, in the thread that runs it."""


def run_sync(job: Job[T], lock: Callable[[], AbstractContextManager[None]] = nullcontext) -> T:
    """Run to the end, also where an event loop is running already, as in a notebook.

    ``lock``: entered before, and left after, by the thread that runs the job.
    """
    with seldom_collected():
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with lock():
                return asyncio.run(job())
        return _run_aside(job, lock)


def _run_aside(job: Job[T], lock: Callable[[], AbstractContextManager[None]]) -> T:
    """Run in a thread of its own; what ends the waiting (Ctrl-C) cancels the job and is raised.

    The caller waits until the thread has ended, so that nothing is sent or written behind its back.
    Each further interrupt cancels again, as `asyncio.run` does with what is still being stored.
    """
    begun: Future[Callable[[], object]] = Future()  # cancels the job

    async def cancellable_job() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result(partial(task.get_loop().call_soon_threadsafe, task.cancel))
        return await job()

    def work() -> T:
        with lock():
            return asyncio.run(cancellable_job())

    interrupt: BaseException | None = None
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(work)
        either: list[Future[Any]] = [begun, end]
        while not end.done():
            try:
                while not end.done():
                    wait([end], timeout=1.0)  # on Windows no interrupt comes within a wait
            except BaseException as error:
                interrupt = error
                wait(either, return_when=FIRST_COMPLETED)
                if begun.done():
                    with suppress(RuntimeError):  # its loop has ended meanwhile
                        begun.result()()
    if interrupt is not None:
        raise interrupt
    return end.result()


async def run_concurrently(
    items: Collection[T],
    do: Callable[[T], Awaitable[None]],
    parallel: int,
    stops: EarlyStop,
    model: str,
    protocol: str = "",
) -> None:
    """Do every item, ``parallel`` at a time.

    After an error that `EarlyStop` has a place for, which is noted in ``stops``, nothing new is
    begun, and what is under way is finished. Any other exception cancels the pool.
    """
    iterator = iter(items)
    asked = (model, protocol)

    async def worker() -> None:
        for item in iterator:
            if stops.limit is not None or model in stops.fatal or asked in stops.unreadable:
                return
            try:
                await do(item)
            except FatalModelError as error:
                stops.fatal.setdefault(model, error)
            except UnreadableReplies as error:
                stops.unreadable.setdefault(asked, error)
            except LimitReached as error:
                stops.limit = error

    await together(worker() for _ in range(max(1, min(parallel, len(items)))))
