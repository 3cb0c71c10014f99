"""Work on every core: in order, with its errors, and nothing left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from botchat import parallel
from botchat.cli.output import show_progress
from botchat.errors import BotChatError, DataError

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


def double(task: int) -> tuple[int, int]:
    """Twice the task, and who did it."""
    return 2 * task, os.getpid()


def refuse(task: int) -> None:
    """What a broken line of a file does."""
    raise DataError(f"file:{task}: broken")


def die() -> None:
    """What the kernel does where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(params=[1, 2])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As many cores as can be used."""
    n: int = request.param
    if n > 1 and sys.platform != "linux":
        pytest.skip("processes are forked on Linux only")
    monkeypatch.setattr(parallel, "usable_cores", lambda: n)
    return n


def test_results_are_those_of_the_work(cores: int) -> None:
    """Ten tasks, done by this process alone or not by this one."""
    with parallel.executor() as working:
        found = [done.result() for done in [working.submit(double, n) for n in range(10)]]
    assert [value for value, _ in found] == list(range(0, 20, 2))
    assert {pid == os.getpid() for _, pid in found} == {cores == 1}


def test_errors_are_the_works_own(cores: int) -> None:
    """Class and message arrive as they were raised."""
    with (
        pytest.raises(DataError, match=r"^file:3: broken$"),
        parallel.executor() as working,
    ):
        working.submit(refuse, 3).result()


def test_here_nothing_is_done_that_is_not_asked_for() -> None:
    """Work is done once, when its result is wanted, and not at all where it is called off."""
    done: list[int] = []
    first, second, third = (parallel.HERE.submit(done.append, n) for n in range(3))
    assert third.cancel()
    second.result()
    second.result()
    first.result()
    assert done == [1, 0]


@linux
def test_a_killed_process_is_said() -> None:
    """One line, not a broken pool."""
    with (
        pytest.raises(BotChatError, match="was killed, perhaps because memory ran out"),
        parallel.executor(2) as working,
    ):
        working.submit(die).result()


@linux
def test_a_worker_starts_no_workers() -> None:
    """It uses its own core alone."""
    with parallel.executor(2) as working:
        assert working.submit(parallel.usable_cores).result() == 1


def test_beside_a_thread_nothing_is_forked() -> None:
    """It may hold a lock just then."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert parallel.usable_cores() == 1
    finally:
        done.set()
        thread.join()


@linux
def test_workers_do_not_outlive_a_killed_parent() -> None:
    """Its output ends only when everyone who inherited it is gone."""
    program = """
import os, time
from botchat.parallel import executor
def wait():
    os.write(1, b"at work\\n")
    time.sleep(600)
with executor(2) as working:
    for done in [working.submit(wait) for _ in range(2)]:
        done.result()
"""
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root
    ) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline() for _ in range(2)] == [b"at work\n"] * 2
        parent.kill()
        rest, _ = parent.communicate(timeout=60)
    assert rest == b""


class Terminal(io.StringIO):
    """Where progress is shown."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_the_progress_of_a_leaderboard_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside one nothing would be spread; each step is drawn as it is made."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    before = threading.active_count()
    with show_progress(by_steps=True) as meter:
        meter.begin("draw figures", 3)
        meter.advance()
        assert threading.active_count() == before
        assert "draw figures · 1/3" in terminal.getvalue()
