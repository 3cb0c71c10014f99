"""Tasks on every core: in order, with their errors, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import joblib
import pytest

from botchat import parallel
from botchat.errors import BotChatError, ConfigError, DataError

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


LARGE = 1000.0
"""CPU seconds that are worth a process to any backend."""


def double(task: int) -> tuple[int, int]:
    """Twice the task, and who did it."""
    return 2 * task, os.getpid()


def refuse(task: int) -> None:
    """What a broken line of a file does."""
    raise DataError(f"file:{task}: broken")


def die() -> None:
    """What the kernel does where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def doubles(n: int) -> list[Callable[[], tuple[int, int]]]:
    """Ten tasks or so."""
    return [partial(double, i) for i in range(n)]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every process that multiprocessing starts from now on; loky's are among them."""
    started: list[object] = []
    start = BaseProcess.start

    def noted(process: BaseProcess) -> None:
        started.append(process)
        start(process)

    monkeypatch.setattr(BaseProcess, "start", noted)
    return started


BACKENDS = [("loky", 1), ("loky", 2), ("threading", 2)]


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_results_are_those_of_the_tasks(backend: str, n_jobs: int) -> None:
    """In order, done by this process alone or not by this one."""
    with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
        assert parallel.n_workers() == n_jobs
        results = parallel.run_tasks(doubles(10), LARGE)
    assert [value for value, _ in results] == list(range(0, 20, 2))
    here = n_jobs == 1 or backend == "threading"
    assert {pid == os.getpid() for _, pid in results} == {here}


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_errors_are_the_tasks_own(backend: str, n_jobs: int) -> None:
    """Class and message arrive as they were raised."""
    with (
        joblib.parallel_config(backend=backend, n_jobs=n_jobs),
        pytest.raises(DataError, match=r"^file:3: broken$"),
    ):
        parallel.run_tasks([partial(refuse, 3)], LARGE)


def test_small_work_starts_nothing(starts: list[object]) -> None:
    """Whatever the caller has configured; only ``n_jobs`` that is asked for here insists."""
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert {pid for _, pid in parallel.run_tasks(doubles(10), 0.01)} == {os.getpid()}
    assert starts == []
    with joblib.parallel_config(backend="loky"):
        assert os.getpid() not in {pid for _, pid in parallel.run_tasks(doubles(10), 0.01, 2)}


def test_no_jobs_are_refused() -> None:
    """An expected error, not joblib's."""
    with pytest.raises(ConfigError, match="0 workers"):
        parallel.run_tasks([], LARGE, 0)


@linux
def test_a_killed_process_is_said() -> None:
    """One line, not a broken pool."""
    with (
        joblib.parallel_config(backend="loky", n_jobs=2),
        pytest.raises(BotChatError, match="was killed, perhaps because memory ran out"),
    ):
        parallel.run_tasks([die, die], LARGE)


@linux
def test_an_interrupt_ends_the_workers() -> None:
    """Ctrl-C reaches all processes of a terminal; one of them speaks, and none stays."""
    program = """
import os, time
from botchat import parallel
def wait():
    os.write(1, b"at work\\n")
    time.sleep(600)
try:
    parallel.run_tasks([wait, wait], 1200, 2)
except KeyboardInterrupt:
    print("interrupted")
"""
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=root,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline() for _ in range(2)] == [b"at work\n"] * 2
        os.killpg(parent.pid, signal.SIGINT)
        rest, _ = parent.communicate(timeout=60)
    assert rest == b"interrupted\n"
    assert parent.returncode == 0
