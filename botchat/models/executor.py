"""Model calls made by other processes or machines, through any executor of `concurrent.futures`.

Workers hold nothing: they send requests and give back replies, with what lets the requests in from
the task itself. Ledger, budget, rates and retries stay here, as for any other model. A lost worker
is a lost connection: its calls may have been billed, count as what they had reserved, and are tried
again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from joblib.externals.loky import ProcessPoolExecutor

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.connection import Access, Server
from botchat.models.endpoint import EndpointModel

CALLS_PER_TASK = 16
"""Most calls that one lost worker takes with it."""

NO_WORKER_S = 120.0
"""Seconds, beyond the deadline of a call, in which a task must come back."""

Call: TypeAlias = tuple[Sequence[Message], Decoding]
Opened: TypeAlias = tuple[Callable[..., Any], Callable[[], object]]
"""What submits a task to an executor, and what closes it."""


class WorkerPool:
    """An executor, shared by all models of a run."""

    def __init__(self, open_executor: Callable[[], Opened]) -> None:
        self._open, self.seen_at = open_executor, 0.0  # when a task came back
        self._submit, self.close = open_executor()

    def submit(self, *task: Any) -> Any:
        """Return a future; processes of which one was lost are replaced by others."""
        try:
            return self._submit(*task)
        except BrokenExecutor:
            self.close()
            self._submit, self.close = self._open()
            return self._submit(*task)


def open_pool(executor: str | Executor) -> WorkerPool:
    """Open ``loky:N``, ``dask://HOST:PORT`` or an executor. Raises `ConfigError` for another."""
    if isinstance(executor, Executor):
        return WorkerPool(lambda: (executor.submit, lambda: None))
    kind, _, place = executor.partition(":")
    if kind == "loky" and place.isdigit() and int(place):
        return WorkerPool(lambda: _open_loky(int(place)))
    if kind != "dask" or not place.startswith("//"):
        raise ConfigError(f"--executor {executor!r}: write loky:N or dask://HOST:PORT")
    try:
        return WorkerPool(lambda: _open_dask(f"tcp:{place}"))
    except (ImportError, OSError) as error:
        raise ConfigError(f"--executor {executor}: {error}") from None


def _open_loky(n_workers: int) -> Opened:
    pool = ProcessPoolExecutor(n_workers, timeout=20)  # s; they outlive a killed command
    # The end of a process that was killed while it started may not come.
    return pool.submit, lambda: pool.shutdown(wait=False, kill_workers=True)


def _open_dask(address: str) -> Opened:
    from distributed import Client

    client = Client(address, timeout=10)
    submit = client.get_executor(pure=False).submit
    return lambda *task: submit(_call_once, uuid4().hex, *task), client.close


def _call_once(token: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, but not again: dask repeats the tasks of a lost worker."""
    from distributed import Event

    event = Event(token)
    if event.is_set():
        raise RuntimeError("a worker was lost")
    event.set()
    return function(*arguments)


class ExecutorModel:
    """An `EndpointModel` whose calls the workers of a pool make."""

    def __init__(self, model: EndpointModel, pool: WorkerPool) -> None:
        self.name, self.identity = model.name, model.identity
        self.context_window, self.parallel = model.context_window, model.parallel
        self._model, self._pool = model, pool
        self._calls: list[Call] = []
        self._task: asyncio.Task[list[Any]]

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Make one attempt, by a worker. Raises `FatalModelError` also if there is no worker."""
        if len(self._calls) in (0, CALLS_PER_TASK):
            self._calls = []
            self._task = asyncio.create_task(self._call(self._calls))
        number, task = len(self._calls), self._task
        self._calls.append((messages, decoding))
        reply: Reply | BaseException = (await asyncio.shield(task))[number]
        if isinstance(reply, BaseException):
            raise reply
        self._model.quirks = self._model.quirks | dict(reply.sent or {})
        return reply

    async def _call(self, calls: list[Call]) -> list[Any]:
        """Let a worker make ``calls``, to which others are added for one pass of the event loop."""
        await asyncio.sleep(0)
        if self._calls is calls:
            self._calls = []
        model, pool, started = self._model, self._pool, time.monotonic()
        access = model.server.open()
        model_of = partial(EndpointModel, model.name, model.settings, quirks=model.quirks)
        try:
            task = asyncio.wrap_future(pool.submit(call_all, model_of, access, calls))
            while not (await asyncio.wait([task], timeout=1.0))[0]:
                quiet_s = time.monotonic() - max(pool.seen_at, started)
                if quiet_s > model.settings.timeout_s + NO_WORKER_S:
                    error = FatalModelError(f"{self.name}: no worker of --executor answers")
                    return [error] * len(calls)
            pool.seen_at = time.monotonic()
            return list(task.result())
        except Exception as error:  # each executor has its own for a lost worker
            detail = f"a worker was lost ({type(error).__name__}); it may have been billed"
            return [Reply("transport", detail=detail, retry_after_s=0.0)] * len(calls)


def call_all(
    model_of: Callable[..., EndpointModel], access: Access, calls: Sequence[Call]
) -> list[Any]:
    """Make calls in a worker; return replies and errors."""

    async def gather() -> list[Any]:
        server = Server(access.base_url, lambda: access)
        model = model_of(server=server)
        chats = (model.chat(*call) for call in calls)
        try:
            return await asyncio.gather(*chats, return_exceptions=True)
        finally:
            await server.close()

    return asyncio.run(gather())
