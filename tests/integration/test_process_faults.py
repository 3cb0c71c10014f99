"""What the machine does to a run: full disk, signals, clocks, two writers, folders that refuse."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from botchat.cli.main import main
from tests.integration.test_runs import (
    IN_FLIGHT,
    KEY,
    ROOT,
    commands,
    stage_files,
    start,
    workspace,
)
from tests.openai_server import Server, converse


def test_a_full_disk_stops_with_one_line_and_loses_nothing(tmp_path):
    """No file may grow beyond 150 kB: one line, exit 1; with room again it goes on where it was."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)

        def small_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

        ran = subprocess.run(
            [sys.executable, "-m", "botchat", *next(commands()), "--dir", str(folder)],
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": KEY},
            capture_output=True,
            text=True,
            preexec_fn=small_disk,
            check=False,
        )
        assert ran.returncode == 1
        assert ran.stderr.count("\n") == 1
        assert "cannot write" in ran.stderr
        server.wait_idle()
        before = server.n_received
        assert 0 < before < 60 * 6
        assert main([*next(commands()), "--dir", str(folder)]) == 0
        # Only replies that came while nothing could be written are asked for again.
        assert server.n_received <= 60 * 6 + 3 * IN_FLIGHT
        assert len(stage_files(folder)) == 3


def test_a_second_interrupt_does_not_wait_for_replies(tmp_path):
    """Ctrl-C twice: the process ends although a reply is still outstanding."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        gate = server.hold()
        gate.release(1)  # the first call of a model goes alone
        process = start(folder, next(commands()))
        server.wait_for(1 + IN_FLIGHT)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        process.communicate()
        assert process.returncode in (130, -signal.SIGINT)
        assert sum(call.answered for call in server.calls) == 1
        gate.open()
        server.wait_idle()
        assert main([*next(commands()), "--dir", str(folder)]) == 0
        assert server.n_received <= 60 * 6 + IN_FLIGHT


def test_a_jump_of_the_clock_changes_nothing(tmp_path, monkeypatch):
    """Wall-clock time goes back a day after every call: same files, same number of calls."""
    import time

    real = time.time
    jumps = iter(range(0, 10**9, 86_400))
    with Server(converse) as server:
        one = workspace(tmp_path / "one", server)
        assert main([*next(commands()), "--dir", str(one)]) == 0
        calls = server.n_received
        two = workspace(tmp_path / "two", server)
        monkeypatch.setattr(time, "time", lambda: real() - next(jumps))
        assert main([*next(commands()), "--dir", str(two)]) == 0
        assert server.n_received == 2 * calls
        assert stage_files(one) == stage_files(two)


@pytest.mark.parametrize("where", ["generations", ".botchat", "generations/small"])
def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys, where):
    """A file stands where a folder is needed: one line that names it, nothing is sent."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        (folder / where).parent.mkdir(parents=True, exist_ok=True)
        (folder / where).write_text("in the way")
        assert main([*next(commands()), "--dir", str(folder)]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert where.split("/")[-1] in error
        assert server.n_received == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_workspace_is_one_line(tmp_path, capsys):
    """No permission: one line that names the folder."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        folder.chmod(0o500)
        assert main([*next(commands()), "--dir", str(folder)]) == 1
        folder.chmod(0o700)
        assert capsys.readouterr().err.count("\n") == 1
        assert server.n_received == 0
