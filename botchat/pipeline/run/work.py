"""Many items at once: a pool of workers, and why a run ended early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from botchat.errors import FatalModelError, LimitReached
from botchat.parallel import seldom_collected, together

T = TypeVar("T")

UNREADABLE = "unreadable"
"""How a case failed that a judge has answered, but not with a verdict."""


@dataclass
class Stops:
    """Why items could not be done: models that cannot answer at all, and a reached limit."""

    fatal: dict[str, FatalModelError] = field(default_factory=dict)
    limit: LimitReached | None = None

    def raise_first(self) -> None:
        """Raise what ended the run early, if anything did."""
        if self.limit is not None:
            raise self.limit
        if self.fatal:
            raise FatalModelError("; ".join(str(error) for error in self.fatal.values()))


def run_now(job: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also where an event loop is running already, as in a notebook."""
    with seldom_collected():
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(job)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, job).result()


async def work_through(
    items: Collection[T], do: Callable[[T], Awaitable[None]], parallel: int, stops: Stops, who: str
) -> None:
    """Do every item, ``parallel`` at a time.

    After a `FatalModelError` or `LimitReached`, noted in ``stops``, nothing new is begun, and what
    is under way is finished. Any other exception cancels the pool.
    """
    iterator = iter(items)

    async def worker() -> None:
        for item in iterator:
            if who in stops.fatal or stops.limit is not None:
                return
            try:
                await do(item)
            except FatalModelError as error:
                stops.fatal.setdefault(who, error)
            except LimitReached as error:
                stops.limit = error

    await together(worker() for _ in range(max(1, min(parallel, len(items)))))
