"""Commands as processes of their own, forked from one process that has imported botchat already.

Each import of botchat takes half a second of CPU; signals, pipes and exit codes are as those of
``python -m botchat``, which `benchmarks/kills.py` and some tests start.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.forkserver import _forkserver  # type: ignore[attr-defined]
from pathlib import Path
from threading import Thread
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
FORKS = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
FORKS.set_forkserver_preload(["tests.preloaded"])  # spawned ones import it by themselves


class Started:
    """A command under way: what tests use of `subprocess.Popen`, with text from both pipes."""

    def __init__(self, words: Sequence[str | Path], before: str = "", **env: str) -> None:
        """``before``: Python that the process runs first; ``env``: beside this process's own."""
        ours, theirs = zip(*(FORKS.Pipe(duplex=False) for _ in range(2)), strict=True)
        told = [str(word) for word in words]
        self._process = FORKS.Process(
            target=_begin, args=(told, before, {**os.environ, **env}, theirs), daemon=False
        )
        with contextlib.chdir(ROOT):  # the server's folder, if this starts it
            self._process.start()
        for end in theirs:
            end.close()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno())) for end in ours)
        for end in ours:
            end.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, below 0 where a signal ended it; `None` while it is under way."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """As `returncode`."""
        return self._process.exitcode

    def send_signal(self, kind: int) -> None:
        """Nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, kind)

    def terminate(self) -> None:
        """End it politely."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has one; `subprocess.TimeoutExpired` where that takes longer."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("botchat", timeout or 0)
        return code

    def communicate(self) -> tuple[str, str]:
        """What it says on stdout and on stderr until its end; of a pipe that is closed nothing."""
        said = ["", ""]

        def hear(i: int) -> None:
            pipe = (self.stdout, self.stderr)[i]
            if not pipe.closed:
                with pipe:
                    said[i] = pipe.read()

        threads = [Thread(target=hear, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.wait()
        return said[0], said[1]


def _begin(words: list[str], before: str, env: dict[str, str], pipes: list[Connection]) -> NoReturn:
    """What the process does: `entry`, as if it had been started with these words."""
    from botchat.cli.main import entry

    for number, pipe in enumerate(pipes, 1):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it is not the old file
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["botchat", *words]
    exec(before, {})
    entry()


def end_server() -> None:
    """End the process that commands are forked from, if there is one, so that it is waited for."""
    _forkserver._stop()
