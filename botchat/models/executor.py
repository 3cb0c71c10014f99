"""Model calls made by other processes or machines, through any executor of `concurrent.futures`.

Workers hold nothing: they send requests and give back responses, with what lets the requests in
from the task itself. All else stays here, as for any other server. A lost worker is a lost
connection: its calls may have been billed, count as what they had reserved, and are tried again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from joblib.externals.loky import get_reusable_executor

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Reply
from botchat.models.connection import HttpResponse, Server
from botchat.workspace.model_settings import Access

REQUESTS_PER_TASK = 16
"""Most requests that one lost worker takes with it."""

NO_WORKER_S = 120.0
"""Seconds, beyond the deadline of a call, in which a task must come back."""

Request: TypeAlias = tuple[str, bytes | None, float]
Response: TypeAlias = HttpResponse | Reply


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


@dataclass(eq=False)
class WorkerServer(Server):
    """A server to which the workers of a pool send the requests."""

    pool: WorkerPool

    def __post_init__(self) -> None:
        """Send nothing yet."""
        super().__post_init__()
        self._requests: list[Request] = []
        self._task: asyncio.Task[list[Response]]

    async def send(self, path: str, body: bytes | None, deadline_s: float) -> Response:
        """Let a worker send a request. Raises `FatalModelError` also if there is no worker."""
        if len(self._requests) in (0, REQUESTS_PER_TASK):
            self._requests = []
            self._task = asyncio.create_task(self._submit(self._requests))
        number, task = len(self._requests), self._task
        self._requests.append((path, body, deadline_s))
        return (await asyncio.shield(task))[number]

    async def _submit(self, requests: list[Request]) -> list[Response]:
        """Send ``requests``, to which others are added for one pass of the event loop."""
        await asyncio.sleep(0)
        if self._requests is requests:
            self._requests = []
        access, pool, started = self.open(), self.pool, time.monotonic()
        longest_s = NO_WORKER_S + max(deadline_s for *_, deadline_s in requests)
        try:
            task = asyncio.wrap_future(pool.submit(send_all, access, requests))
            while not (await asyncio.wait([task], timeout=1.0))[0]:
                if time.monotonic() - max(pool.seen_at, started) > longest_s:
                    raise FatalModelError(f"{self.name}: no worker of --executor answers")
            pool.seen_at = time.monotonic()
            return list(task.result())
        except FatalModelError:
            raise
        except Exception as error:  # each executor has its own for a lost worker
            detail = f"a worker was lost ({type(error).__name__}); it may have been billed"
            return [Reply("transport", detail=detail, retry_after_s=0.0)] * len(requests)


def send_all(access: Access, requests: list[Request]) -> list[Response]:
    """Send requests from a worker."""

    async def gather() -> list[Response]:
        server = Server(access.base_url, lambda: access)
        try:
            return await asyncio.gather(*(server.send(*request) for request in requests))
        finally:
            await server.close()

    return asyncio.run(gather())
