"""Model calls made by other processes or machines, through any executor of `concurrent.futures`.

Workers hold nothing: a task brings the requests, with what lets them in, and gives back responses.
All else stays here, as for any other server. A lost worker is a lost connection: its calls may have
been billed, count as what they had reserved, and are tried again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from joblib.externals.loky import get_reusable_executor

from botchat.errors import ConfigError, UsageError
from botchat.models.connection import Failure, Response, Server
from botchat.parallel import together
from botchat.workspace.model_settings import Access

REQUESTS_PER_TASK = 16
"""Most requests that one lost worker takes with it."""

NO_WORKER_S = 120.0
"""Seconds, beyond the deadline of a call, in which a task must come back."""

Request: TypeAlias = tuple[str, bytes | None, float]
Responses: TypeAlias = list[Response]


class WorkerPool:
    """An executor, shared by all models of a run."""

    def __init__(self, executor: str | Executor) -> None:
        """Open ``loky:N`` or ``dask://HOST:PORT``. Raises `ConfigError` for another name."""
        self.seen_at = 0.0  # when a task came back
        self._processes: Callable[[], Any] | None = None  # of loky
        self._client: Any = None  # of dask
        kind, _, place = str(executor).partition(":")
        if isinstance(executor, Executor):
            self._executor = executor
        elif kind == "loky" and place.isdigit() and int(place):
            # They outlive a killed command for 20 s.
            self._processes = partial(get_reusable_executor, int(place), timeout=20)
        elif kind == "dask" and place.startswith("//"):
            try:
                from distributed import Client

                self._client = Client(f"tcp:{place}", timeout=10)
            except (ImportError, OSError) as error:
                raise ConfigError(f"--executor {executor}: {error}") from None
            self._executor = self._client.get_executor(pure=False)
        else:
            raise UsageError(f"--executor {executor!r}: write loky:N or dask://HOST:PORT")

    def submit(self, access: Access, requests: list[Request]) -> Future[Responses]:
        """Let a worker send requests."""
        if self._processes is not None:  # others, if one was lost
            self._executor = self._processes()
        if self._client is None:
            return self._executor.submit(send_all, access, requests)
        from distributed import Event

        return self._executor.submit(_send_once, Event(client=self._client), access, requests)

    def close(self) -> None:
        """End what was begun here; an executor of somebody else goes on."""
        if self._processes is not None:
            self._processes().shutdown(wait=False, kill_workers=True)
        if self._client is not None:
            self._client.close()


def _send_once(event: Any, access: Access, requests: list[Request]) -> Responses:
    """Send requests, but not again: dask repeats the tasks of a lost worker."""
    if event.is_set():
        raise RuntimeError("a worker was lost")
    event.set()
    return send_all(access, requests)


@dataclass(eq=False)
class WorkerServer(Server):
    """A server to which the workers of a pool send the requests."""

    pool: WorkerPool
    _requests: list[Request] = field(default_factory=list, init=False)
    """Requests of the task that is submitted next."""

    async def send(self, path: str, body: bytes | None, deadline_s: float) -> Response:
        """Let a worker send a request."""
        if len(self._requests) in (0, REQUESTS_PER_TASK):
            self._requests = []
            self._task = asyncio.create_task(self._submit(self._requests))
        number = len(self._requests)
        self._requests.append((path, body, deadline_s))
        responses = await asyncio.shield(self._task)
        return responses[number]

    async def _submit(self, requests: list[Request]) -> Responses:
        """Send ``requests``, to which others are added for one pass of the event loop."""
        await asyncio.sleep(0)
        if self._requests is requests:
            self._requests = []
        access = self.open()
        longest_s = NO_WORKER_S + max(deadline_s for _, _, deadline_s in requests)
        try:
            task = asyncio.wrap_future(self.pool.submit(access, requests))
            while not (await asyncio.wait([task], timeout=longest_s))[0]:
                if time.monotonic() - self.pool.seen_at > longest_s:
                    return [
                        Failure("setting", f"{self.name}: no worker of --executor answers")
                        for _ in requests
                    ]
            self.pool.seen_at = time.monotonic()
            return task.result()
        except Exception as error:  # each executor has its own for a lost worker
            detail = f"a worker was lost ({type(error).__name__}); it may have been billed"
            return [Failure("lost", detail) for _ in requests]


def send_all(access: Access, requests: list[Request]) -> Responses:
    """Send requests from a worker."""

    async def send() -> Responses:
        async with aclosing(Server(access.base_url, lambda: access)) as server:
            return await together(server.send(*request) for request in requests)

    return asyncio.run(send())
