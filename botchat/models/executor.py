"""Model calls made by other processes or machines, through any executor of `concurrent.futures`.

Workers hold nothing: a task brings the requests, with what lets them in, and gives back responses.
All else stays here, as for any other server. A lost worker is a lost connection: its calls may have
been billed, count as what they had reserved, and are tried again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from joblib.externals.loky import get_reusable_executor

from botchat.errors import ConfigError, UsageError
from botchat.models.connection import Failure, HttpResponse, Server
from botchat.models.faults import Fault
from botchat.workspace.model_settings import Access

REQUESTS_PER_TASK = 16
"""Most requests that one lost worker takes with it."""

NO_WORKER_S = 120.0
"""Seconds, beyond the deadline of a call, in which a task must come back."""

Request: TypeAlias = tuple[str, bytes | None, float]
Response: TypeAlias = HttpResponse | Failure


class WorkerPool:
    """An executor, shared by all models of a run."""

    def __init__(self, executor: str | Executor) -> None:
        """Open ``loky:N`` or ``dask://HOST:PORT``. Raises `ConfigError` for another name."""
        self.seen_at = 0.0  # when a task came back
        self.close: Callable[[], object] = lambda: None
        kind, _, place = str(executor).partition(":")
        if isinstance(executor, Executor):
            self.submit: Callable[..., Any] = executor.submit
        elif kind == "loky" and place.isdigit() and int(place):
            # Replaces processes of which one was lost; they outlive a killed command for 20 s.
            processes = partial(get_reusable_executor, int(place), timeout=20)
            self.submit = lambda *task: processes().submit(*task)
            self.close = lambda: processes().shutdown(wait=False, kill_workers=True)
        elif kind == "dask" and place.startswith("//"):
            try:
                from distributed import Client, Event

                client = Client(f"tcp:{place}", timeout=10)
            except (ImportError, OSError) as error:
                raise ConfigError(f"--executor {executor}: {error}") from None
            pool = client.get_executor(pure=False)
            self.close = client.close
            self.submit = lambda *task: pool.submit(_call_once, Event(client=client), *task)
        else:
            raise UsageError(f"--executor {executor!r}: write loky:N or dask://HOST:PORT")


def _call_once(event: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, but not again: dask repeats the tasks of a lost worker."""
    if event.is_set():
        raise RuntimeError("a worker was lost")
    event.set()
    return function(*arguments)


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

    async def _submit(self, requests: list[Request]) -> list[Response]:
        """Send ``requests``, to which others are added for one pass of the event loop."""
        await asyncio.sleep(0)
        if self._requests is requests:
            self._requests = []
        access = self.open()
        longest_s = NO_WORKER_S + max(deadline_s for *_, deadline_s in requests)
        try:
            task = asyncio.wrap_future(self.pool.submit(send_all, access, requests))
            while not (await asyncio.wait([task], timeout=longest_s))[0]:
                if time.monotonic() - self.pool.seen_at > longest_s:
                    fault = f"{self.name}: no worker of --executor answers"
                    return [Failure(Fault.SETTING, fault) for _ in requests]
            self.pool.seen_at = time.monotonic()
            return list(task.result())
        except Exception as error:  # each executor has its own for a lost worker
            detail = f"a worker was lost ({type(error).__name__}); it may have been billed"
            return [Failure(Fault.LOST, detail) for _ in requests]


def send_all(access: Access, requests: list[Request]) -> list[Response]:
    """Send requests from a worker."""

    async def gather() -> list[Response]:
        async with aclosing(Server(access.base_url, lambda: access)) as server:
            return await asyncio.gather(*(server.send(*request) for request in requests))

    return asyncio.run(gather())
