"""Work on several cores or machines, on joblib; and concurrent coroutines.

Tasks are pure functions with their arguments (`functools.partial`), which can be pickled. The
caller's ``joblib.parallel_config`` decides where they run: its backend (loky, threading, dask, ray)
and its ``n_jobs``. Without one they run on all cores that `joblib.cpu_count` counts, which respects
affinity and a container's CPU quota, in processes that joblib starts (loky).
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, TypeVar
from uuid import uuid4

import joblib
from joblib._parallel_backends import _TracebackCapturingWrapper
from joblib.parallel import ParallelBackendBase, get_active_backend

from botchat.errors import BotChatError, ConfigError, did_you_mean

R = TypeVar("R")
T = TypeVar("T")

ENGINES = ("loky", "dask", "ray", "threading")
"""What ``--engine`` is for."""

_WORTH_S = 4.0
"""CPU seconds of work below which starting workers costs more than it saves: a process that loky
starts imports numpy and botchat anew."""


class _EndsTasks:
    """A part of joblib's backend of dask: every task ends, also one that dask gives up.

    joblib calls nobody back when dask gives a task up (its workers died too often), when a future
    is cancelled, or when a task cannot be sent: it would wait for ever.
    """

    client: Any
    submit_kwargs: dict[str, Any]
    goes_on: bool
    """Whether the other tasks do: what was given up then has its error as its result."""
    _under_way: set[asyncio.Task[Any]]

    def submit(self, func: Any, callback: Callable[[Any], None]) -> None:
        """Run a batch of tasks, and call back whatever becomes of it."""
        self.client.loop.add_callback(self._ended, func, callback)

    async def _ended(self, func: Any, callback: Callable[[Any], None]) -> None:
        this = asyncio.ensure_future(self._result(func))
        self._under_way.add(this)
        this.add_done_callback(self._under_way.discard)
        try:
            came = await this
        except (Exception, asyncio.CancelledError) as error:
            gone = BrokenProcessPool(f"{type(error).__name__}: {error}")
            came = [gone] if self.goes_on else gone
        callback(came)

    async def _result(self, func: Any) -> Any:
        batch, tasks = await self._to_func_args(func)  # type: ignore[attr-defined]
        run, key = _TracebackCapturingWrapper(batch), f"{batch!r}-{uuid4().hex}"
        sent = self.client.submit(run, tasks=tasks, key=key, **self.submit_kwargs)
        return await sent._result()

    async def _collect(self) -> None:
        """Nothing: each task calls back for itself."""

    def abort_everything(self, **_: bool) -> None:
        """Let dask forget what has not ended."""
        self.client.loop.add_callback(lambda: [task.cancel() for task in {*self._under_way}])


def _parallel(backend: Any, n_jobs: int, *, goes_on: bool = False, **more: Any) -> joblib.Parallel:
    """joblib's, whose tasks all end; ``goes_on``: in any order, and some may be lost."""
    if (kind := type(backend)).__name__ == "DaskDistributedBackend":
        made: Any = object.__new__(type("EndingDask", (_EndsTasks, kind), {}))
        vars(made).update(vars(backend), goes_on=goes_on, _under_way=set())
        backend = made
    # Results of "multiprocessing" and ray come all at once.
    one_by_one = "generator_unordered" if goes_on else "generator"
    returned = one_by_one if backend.supports_return_generator else "list"
    return joblib.Parallel(n_jobs, backend, return_as=returned, **more)


def _configured() -> tuple[Any, bool, int | None]:
    """The caller's backend, whether the caller named it, and how many jobs it shall have."""
    backend, _ = get_active_backend()
    with joblib.parallel_config() as caller:  # changes nothing; tells what is set
        named, jobs = isinstance(caller["backend"], ParallelBackendBase), caller["n_jobs"]
    return backend, named, jobs if isinstance(jobs, int) else None


class Workers:
    """Runs tasks where the caller's ``joblib.parallel_config`` says; see `workers`."""

    def __init__(self, n_jobs: int | None) -> None:
        self._backend, _, configured = _configured()
        jobs = configured if n_jobs is None else n_jobs
        if jobs is None:
            jobs = 1 if self._backend.nesting_level or multiprocessing.parent_process() else -1
        self.n_jobs: int = self._backend.effective_n_jobs(jobs)
        """Tasks that can run at a time."""
        self.started = False
        """Whether any task was worth starting a worker for."""
        self._least_s = _WORTH_S if n_jobs is None else 0
        self._running: Any = None

    def begin(self, tasks: Sequence[Callable[[], R]], seconds: float) -> Iterator[R]:
        """Begin tasks; their results come in order, each as soon as it is there.

        ``seconds``: CPU time of all tasks together, about. Where it is short, or there is one job,
        each task runs in this process when its result is asked for. Results of earlier tasks that
        were not taken are dropped.
        """
        if self.n_jobs == 1 or seconds < self._least_s:
            return (task() for task in tasks)
        self.drop()
        self.started = True
        self._running = _parallel(self._backend, self.n_jobs)((task, (), {}) for task in tasks)
        return iter(self._running)

    def drop(self) -> None:
        """Stop tasks whose results were not taken."""
        if isinstance(self._running, GeneratorType) and self._running.gi_frame is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib says that results are lost
                self._running.close()


@contextmanager
def workers(n_jobs: int | None = None) -> Iterator[Workers]:
    """Something to run tasks with; processes start with the first tasks that are worth it.

    ``n_jobs``: tasks at a time, as in joblib (-1: one a core), also where the work is small; by
    default as in the caller's ``joblib.parallel_config``, else -1. Leaving the block stops what has
    not finished. Raises `BotChatError` if a process was killed.
    """
    if n_jobs == 0:
        raise ConfigError("0 workers: give at least 1, or -1 for one a core")
    working = Workers(n_jobs)
    try:
        yield working
    except BrokenProcessPool:
        raise BotChatError(
            "a process that helped was killed, perhaps because memory ran out; "
            "free some and run the command again"
        ) from None
    finally:
        working.drop()


@dataclass(frozen=True)
class Engine:
    """The caller's choice in ``joblib.parallel_config``, for tasks that may run on any machine."""

    backend: Any
    workers: int
    """Tasks at a time."""
    exactly: bool = False
    """Whether it is given no more tasks than that."""

    def each(self, tasks: Sequence[Callable[[], R]]) -> Iterator[R | BrokenProcessPool]:
        """The results of tasks, each as soon as it is there, in any order.

        Of a task that dask gave up: the error. Raises what another backend does when it loses a
        worker.
        """
        run = _parallel(
            self.backend, self.workers, goes_on=True, batch_size=1, pre_dispatch="n_jobs"
        )
        yield from run((task, (), {}) for task in tasks)


def chosen_engine() -> Engine | None:
    """The backend that the caller's ``joblib.parallel_config`` names; ``None``: it names none."""
    backend, named, jobs = _configured()
    if not named or backend.nesting_level:
        return None
    try:
        here = backend.effective_n_jobs(jobs or -1)
    except TimeoutError as error:
        raise BotChatError(f"the engine: {' '.join(str(error).split())[:200]}") from None
    return Engine(backend, min(here, jobs) if jobs and jobs > 0 else here)


@contextmanager
def engine(name: str | None, workers: int | None, address: str | None) -> Iterator[None]:
    """Let what is inside run where ``name`` says: `joblib.parallel_config`; ``None``: as before.

    ``address``: of the scheduler of dask or ray; ``None``: ``workers`` of this machine.
    """
    if name is None:
        yield
        return
    n_jobs = workers or -1
    with ExitStack() as opened:
        try:
            if name == "dask":
                from distributed import Client, LocalCluster

                count = workers or joblib.cpu_count()
                here = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
                cluster = address or opened.enter_context(LocalCluster(**here))
                opened.enter_context(Client(cluster))
            elif name == "ray":
                import ray
                from ray.util.joblib import register_ray

                register_ray()
                if not ray.is_initialized():
                    ray.init(address=address, num_cpus=None if address else workers)
                    opened.callback(ray.shutdown)
            opened.enter_context(joblib.parallel_config(name, n_jobs=n_jobs))
        except (ImportError, ValueError, OSError, TimeoutError) as error:
            said = f"the engine {name}: {' '.join(str(error).split())[:200]}"
            if isinstance(error, ImportError):
                said += "; for dask install botchat-bench[cluster], for ray ray"
            elif str(error).startswith("Invalid backend"):
                said = (
                    f"no engine {name!r}{did_you_mean(name, ENGINES)}; engines: "
                    f"{', '.join(ENGINES)}, or a backend that is registered with joblib"
                )
            raise ConfigError(said) from None
        yield


@contextmanager
def seldom_collected() -> Iterator[None]:
    """The same inside: there is little garbage, and much to look through for it.

    In the main thread only, since all threads share one collector.
    """
    before = gc.get_threshold()
    if ours := threading.current_thread() is threading.main_thread():
        gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        if ours:
            gc.set_threshold(*before)


QUIET_PASSES = 32
"""Passes of the event loop without a new call after which no other task is about to call. From a
reply through ledger and worker to the same dialogue's next call it takes less than ten."""


async def together(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; the first error cancels the rest and is raised itself.

    Replies that are being paid for survive a cancellation: the recorded model shields them.
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


async def until_quiet(n_calls: Callable[[], int]) -> None:
    """Let other tasks run until ``n_calls()``, the number of calls so far, stops changing."""
    quiet, seen = 0, n_calls()
    while quiet < QUIET_PASSES:
        await asyncio.sleep(0)
        quiet = quiet + 1 if n_calls() == seen else 0
        seen = n_calls()
