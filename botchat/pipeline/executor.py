"""Model calls made by other processes or machines, through any executor of `concurrent.futures`.

A worker keeps connections alone: a task brings requests, with what lets them in, and gives back
responses. All else stays here, as for any other server. A lost worker is a lost connection: its
calls may have been billed, count as what they had reserved, and are tried again.
"""

import asyncio
import atexit
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import ceil
from threading import Thread
from typing import Any, TypeAlias

import msgspec

from botchat.errors import ConfigError, UsageError
from botchat.models.connection import Failure, Response, Server
from botchat.parallel import together
from botchat.workspace.model_settings import Access

# Seconds without another request after which a task is sent: a worker does one at a time, and a
# task of few requests would keep it for as long as one of many.
GATHER_S = 0.002

# Seconds between two looks whether there are workers.
LOOK_S = 2.0

# Seconds in which a scheduler without workers must get one.
NO_WORKER_S = 20.0

# Seconds, beyond the deadline of a call, in which a task must come back.
NO_TASK_S = 120.0

Request: TypeAlias = tuple[str, bytes | None, float]
Responses: TypeAlias = list[Response]


class WorkerPool:
    """An executor, shared by all models of a run."""

    def __init__(self, executor: str | Executor) -> None:
        """Open ``loky:N`` or ``dask://HOST:PORT``. Raises `ConfigError` for another name."""
        self.seen_at = time.monotonic()  # when a task went or came back, or a worker was there
        self.n_workers = 1
        self._processes: Callable[[], Any] | None = None  # of loky
        self._client: Any = None  # of dask
        kind, _, place = str(executor).partition(":")
        if isinstance(executor, Executor):
            self._executor = executor
            self.n_workers = getattr(executor, "_max_workers", 2)
        elif kind == "loky" and place.isdigit() and int(place):
            from joblib.externals.loky import get_reusable_executor  # imports numpy

            self.n_workers = int(place)
            # They outlive a killed command for 20 s.
            self._processes = partial(get_reusable_executor, int(place), timeout=20)
        elif kind == "dask" and place.startswith("//"):
            try:
                from distributed import Client

                self._client = Client(f"tcp:{place}", timeout=10)
            except (ImportError, OSError) as error:
                raise ConfigError(f"--executor {executor}: {error}") from None
            self._executor = self._client.get_executor(pure=False)
            self._count()
        else:
            raise UsageError(f"--executor {executor!r}: write loky:N or dask://HOST:PORT")

    def submit(self, access: Access, requests: list[Request]) -> Future[Responses]:
        """Let a worker send requests."""
        self.seen_at = time.monotonic()
        if self._processes is not None:  # others, if one was lost
            self._executor = self._processes()
        if self._client is None:
            return self._executor.submit(send_all, access, requests)
        from distributed import Event

        return self._executor.submit(_send_once, Event(client=self._client), access, requests)

    def is_gone(self, longest_s: float) -> bool:
        """Return whether nothing came back for so long; dask is asked whether it has workers."""
        if self._client is not None:
            longest_s = NO_WORKER_S
            self._count()
        return time.monotonic() - self.seen_at > longest_s

    def _count(self) -> None:
        """Count the workers of dask, which come and go."""
        n_workers = sum(self._client.nthreads().values())
        if n_workers:
            self.n_workers = n_workers
            self.seen_at = time.monotonic()

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
    _n_out: int = field(default=0, init=False)
    # Requests of the tasks that are submitted next
    _requests: list[Request] = field(default_factory=list, init=False)

    async def send(self, path: str, body: bytes | None, deadline_s: float) -> Response:
        """Let a worker send a request."""
        if not self._requests:
            self._gathering = asyncio.create_task(self._gather())
        number = len(self._requests)
        self._requests.append((path, body, deadline_s))
        self._n_out += 1
        try:
            share, tasks = await asyncio.shield(self._gathering)
            responses = await asyncio.shield(tasks[number // share])
        finally:
            self._n_out -= 1
        return responses[number % share]

    async def _gather(self) -> tuple[int, list[asyncio.Task[Responses]]]:
        """Once nobody joins any more, submit a worker's share of all in flight as a task."""
        n_before = 0
        while n_before < len(self._requests):
            n_before = len(self._requests)
            await asyncio.sleep(GATHER_S)
        requests = self._requests
        self._requests = []
        share = ceil(self._n_out / self.pool.n_workers) or 1
        parts = [requests[start : start + share] for start in range(0, len(requests), share)]
        return share, [asyncio.create_task(self._submit(part)) for part in parts]

    async def _submit(self, requests: list[Request]) -> Responses:
        access = self.open()
        longest_s = NO_TASK_S + max(deadline_s for _, _, deadline_s in requests)
        try:
            task = asyncio.wrap_future(self.pool.submit(access, requests))
            until = time.monotonic() + longest_s  # workers may be there, and a task lost
            while not (await asyncio.wait([task], timeout=LOOK_S))[0]:
                if await asyncio.to_thread(self.pool.is_gone, longest_s):
                    text = f"{self.name}: no worker of --executor answers"
                    return [Failure("setting", text) for _ in requests]
                if time.monotonic() > until:
                    raise TimeoutError
            self.pool.seen_at = time.monotonic()
            return task.result()
        except Exception as error:  # each executor has its own for a lost worker
            detail = f"a worker was lost ({type(error).__name__}); it may have been billed"
            return [Failure("lost", detail) for _ in requests]


def send_all(access: Access, requests: list[Request]) -> Responses:
    """Send requests from a worker."""
    loop, server = _kept(os.getpid(), msgspec.json.encode(access))
    job = together(server.send(*request) for request in requests)
    return asyncio.run_coroutine_threadsafe(job, loop).result()


@lru_cache(64)
def _kept(process: int, access: bytes) -> tuple[asyncio.AbstractEventLoop, Server]:
    """Return the connections of a process to a server, in a thread that lives as long as it."""
    known = msgspec.json.decode(access, type=Access)
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name=f"botchat-{process}", daemon=True).start()
    server = Server(known.base_url, lambda: known)
    # Threads of an own process have no other end, and aiohttp would complain of open connections.
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(server.aclose(), loop).result())
    return loop, server
