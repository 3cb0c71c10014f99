"""Model calls made by other processes or machines, through any executor of `concurrent.futures`.

Workers hold nothing: they send requests and give back replies, with what lets the requests in from
the task itself. Ledger, budget, rates and retries stay here, as for any other model. A lost worker
is a lost connection: its calls may have been billed, count as what they had reserved, and are tried
again.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.connection import Access, Server
from botchat.models.endpoint import EndpointModel
from botchat.workspace.model_settings import ModelSettings

CALLS_PER_TASK = 32
"""Most calls that one lost worker takes with it."""

NO_WORKER_S = 120.0
"""Seconds without any worker after which a model is given up."""

T = TypeVar("T")

Call: TypeAlias = tuple[Sequence[Message], Decoding]


@dataclass(eq=False)
class WorkerPool:
    """An executor, shared by all models of a run."""

    submit: Callable[..., Future[Any]]
    """Method of a `concurrent.futures.Executor`."""
    count_workers: Callable[[], int] = lambda: 4
    close: Callable[[], object] = lambda: None
    seen_at: float = -math.inf
    """When a task came back."""


def open_pool(executor: str | Executor) -> WorkerPool:
    """Open ``loky:N``, ``dask://HOST:PORT`` or an executor. Raises `ConfigError` for another."""
    if isinstance(executor, Executor):
        return WorkerPool(executor.submit)
    kind, _, place = executor.partition(":")
    if kind == "loky" and place.isdigit() and int(place):
        loky = LokyPool(int(place))
        return WorkerPool(loky.submit, lambda: int(place), loky.close)
    if kind == "dask" and place.startswith("//"):
        try:
            from distributed import Client

            client = Client(f"tcp:{place}", timeout=10)
        except ImportError:
            raise ConfigError("--executor dask://…: install dask[distributed] first") from None
        except OSError:
            raise ConfigError(f"--executor {executor}: no dask scheduler answers there") from None
        dask: Executor = client.get_executor(pure=False)
        return WorkerPool(
            lambda *task: dask.submit(_call_once, uuid4().hex, *task),
            lambda: len(client.nthreads()),
            client.close,
        )
    raise ConfigError(f"--executor {executor!r}: write loky:N or dask://HOST:PORT")


class LokyPool:
    """Processes of joblib's loky; a pool that lost one is replaced.

    Its end is never waited for: that of a process killed while it starts may not come.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._pool: Any = None

    def submit(self, *task: Any) -> Future[Any]:
        """Give a task to a process."""
        from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor

        with contextlib.suppress(BrokenProcessPool):
            self._pool = self._pool or ProcessPoolExecutor(self._n_workers, timeout=300)
            future: Future[Any] = self._pool.submit(*task)
            return future
        self.close()
        return self.submit(*task)

    def close(self) -> None:
        """Kill the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, kill_workers=True)
            self._pool = None


def _call_once(token: str, function: Callable[..., T], *arguments: Any) -> T:
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
        self._access: Access | None = None
        self._waiting: list[tuple[Call, asyncio.Future[Reply]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Make one attempt, by a worker. Raises `FatalModelError` also if there is no worker."""
        self._access = self._access or self._model.server.open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._submit)
        self._waiting.append(((messages, decoding), future))
        reply = await future
        if reply.sent:
            self._model.quirks = self._model.quirks | dict(reply.sent)
        return reply

    def _submit(self) -> None:
        """Divide the waiting calls into tasks."""
        waiting, self._waiting = self._waiting, []
        size = -(-len(waiting) // max(1, self._pool.count_workers()))
        size = min(CALLS_PER_TASK, size)
        for start in range(0, len(waiting), size):
            task = asyncio.ensure_future(self._call(waiting[start : start + size]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _call(self, calls: Sequence[tuple[Call, asyncio.Future[Reply]]]) -> None:
        model = self._model
        arguments = (model.name, model.settings, model.quirks, self._access)
        try:
            submitted = self._pool.submit(call_all, *arguments, [call for call, _ in calls])
            results = await self._result(asyncio.wrap_future(submitted))
        except FatalModelError as error:
            results = [error] * len(calls)
        except Exception as error:  # each executor has its own for a lost worker
            detail = f"a worker was lost ({type(error).__name__}); it may have been billed"
            results = [Reply("transport", detail=detail, retry_after_s=0.0)] * len(calls)
        for (_, future), result in zip(calls, results, strict=True):
            if not future.done():
                fails = isinstance(result, Exception)
                future.set_exception(result) if fails else future.set_result(result)

    async def _result(self, future: asyncio.Future[list[Any]]) -> list[Any]:
        """Wait for a task; some task comes back within the deadline of its calls, or none will."""
        pool, started = self._pool, time.monotonic()
        while not (await asyncio.wait([future], timeout=min(1.0, NO_WORKER_S)))[0]:
            longest_s = self._model.settings.timeout_s if pool.count_workers() else 0.0
            if time.monotonic() - max(pool.seen_at, started) > longest_s + NO_WORKER_S:
                raise FatalModelError(f"{self.name}: no worker of --executor for {NO_WORKER_S:g} s")
        pool.seen_at = time.monotonic()
        return future.result()


def call_all(
    name: str,
    settings: ModelSettings,
    quirks: dict[str, Any],
    access: Access,
    calls: Sequence[Call],
) -> list[Reply | BaseException]:
    """Make calls in a worker; its connections stay open for later tasks."""

    async def gather() -> list[Reply | BaseException]:
        return await asyncio.gather(*(model.chat(*call) for call in calls), return_exceptions=True)

    place = (access.base_url, *access.secrets)
    server = _servers.setdefault(place, Server(access.base_url, lambda: access))
    model = EndpointModel(name, settings, server, quirks)
    return asyncio.run_coroutine_threadsafe(gather(), _loop()).result()


_servers: dict[tuple[str, ...], Server] = {}


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    atexit.register(_close_servers)
    return loop


def _close_servers() -> None:
    async def close() -> None:
        for server in _servers.values():
            await server.close()

    asyncio.run_coroutine_threadsafe(close(), _loop()).result(timeout=5)
