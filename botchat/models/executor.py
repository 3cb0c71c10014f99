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
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from joblib.externals.loky import get_reusable_executor

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.connection import Server
from botchat.models.endpoint import EndpointModel
from botchat.workspace.model_settings import Access, ModelSettings

CALLS_PER_TASK = 16
"""Most calls that one lost worker takes with it."""

NO_WORKER_S = 120.0
"""Seconds, beyond the deadline of a call, in which a task must come back."""

Call: TypeAlias = tuple[Sequence[Message], Decoding]


class WorkerPool:
    """An executor, shared by all models of a run."""

    def __init__(self, executor: str | Executor) -> None:
        """Open ``loky:N`` or ``dask://HOST:PORT``. Raises `ConfigError` for another name."""
        self.seen_at = 0.0  # when a task came back
        self.submit: Callable[..., Any]
        self.close: Callable[[], object] = lambda: None
        if isinstance(executor, Executor):
            self.submit = executor.submit
            return
        kind, _, place = executor.partition(":")
        if kind == "loky" and place.isdigit() and int(place):
            # Replaces processes of which one was lost; they outlive a killed command for 20 s.
            processes = partial(get_reusable_executor, int(place), timeout=20)
            self.submit = lambda *task: processes().submit(*task)
            self.close = lambda: processes().shutdown(wait=False, kill_workers=True)
        elif kind == "dask" and place.startswith("//"):
            try:
                from distributed import Client

                client = Client(f"tcp:{place}", timeout=10)
            except (ImportError, OSError) as error:
                raise ConfigError(f"--executor {executor}: {error}") from None
            submit, self.close = client.get_executor(pure=False).submit, client.close
            self.submit = lambda *task: submit(_call_once, uuid4().hex, *task)
        else:
            raise ConfigError(f"--executor {executor!r}: write loky:N or dask://HOST:PORT")


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
        what = (model.server.open(), model.name, model.settings, model.quirks, calls)
        try:
            task = asyncio.wrap_future(pool.submit(call_all, *what))
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
    access: Access, name: str, settings: ModelSettings, quirks: dict[str, Any], calls: list[Call]
) -> list[Any]:
    """Make calls in a worker; return replies and errors."""

    async def gather() -> list[Any]:
        server = Server(access.base_url, lambda: access)
        model = EndpointModel(name, settings, server, quirks)
        chats = (model.chat(*call) for call in calls)
        try:
            return await asyncio.gather(*chats, return_exceptions=True)
        finally:
            await server.close()

    return asyncio.run(gather())
