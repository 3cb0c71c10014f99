"""What the machine does to a run: full disk, signals, clocks, two writers, folders that refuse."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from botchat.cli.main import main
from tests.integration.test_runs import (
    CALLS,
    IN_FLIGHT,
    KEY,
    commands,
    stage_files,
    start,
    workspace,
)
from tests.openai_server import Server, converse
from tests.openai_server.faults import error
from tests.processes import Started

SMALL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
"""


def test_a_full_disk_stops_with_one_line_and_loses_nothing(tmp_path):
    """No file may grow beyond 150 kB: one line, exit 1; with room again it goes on where it was."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=20)
        ran = Started([*next(commands()), "--dir", folder], SMALL_DISK, OPENAI_API_KEY=KEY)
        _, error = ran.communicate()
        assert ran.returncode == 1
        assert error.count("\n") == 1
        assert "cannot write" in error
        server.wait_idle()
        before = server.n_received
        assert 0 < before < 3 * 20 * 6
        assert main([*next(commands()), "--dir", str(folder)]) == 0
        # Only replies that came while nothing could be written are asked for again.
        assert server.n_received <= 3 * 20 * 6 + 3 * IN_FLIGHT
        assert len(stage_files(folder)) == 3


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_does_not_wait_for_replies(tmp_path, kind):
    """Ctrl-C or SIGTERM twice: the process ends although a reply is still outstanding."""
    with Server(converse) as server:
        folder, gate = workspace(tmp_path / "w", server), server.hold()
        gate.release(1)  # the first call of a model goes alone
        process = start(folder, next(commands()))
        server.wait_for(1 + IN_FLIGHT)
        while process.poll() is None:
            process.send_signal(kind)
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
        assert server.n_received <= CALLS + IN_FLIGHT


@pytest.mark.parametrize("command", [["models"], ["models", "--json"]])
def test_an_output_that_is_full_is_one_line(tmp_path, command):
    """No traceback, and no success, where the result could not be written."""
    full = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)"
    ran = Started([*command, "--dir", tmp_path], full)
    _, error = ran.communicate()
    assert ran.returncode == 1
    assert error == "botchat: cannot use the output: No space left on device\n"


@pytest.mark.parametrize("stage", ["generate", "judge"])
def test_a_lock_that_cannot_be_written_is_one_line(tmp_path, capsys, stage):
    """As in a workspace that is read-only: what, where, and what to do; nothing is sent."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        command = ready(folder, stage)
        before = server.n_received
        capsys.readouterr()
        (folder / ".botchat" / "lock-holder").mkdir(parents=True)
        assert main([*command, "--dir", str(folder)]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "lock-holder: Is a directory; make the folder writable" in error
        assert server.n_received == before


NO_STDOUT = "import os, sys; os.close(1); sys.stdout = None"
NO_STREAMS = f"{NO_STDOUT}; os.close(0); os.close(2); sys.stdin = sys.stderr = None"
NO_READER = "import os; r, w = os.pipe(); os.dup2(w, 1); os.close(r); os.close(w)"
PRINTING = [["models"], ["models", "--json"], ["--help"], ["generate", "--help"], ["--version"]]


@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.parametrize("before", [NO_STDOUT, NO_STREAMS, NO_READER])
def test_an_output_that_nobody_reads_is_no_fault(tmp_path, before, command):
    """Closed, or a pipe whose reader has what it wants: the exit code is the command's own."""
    ran = Started([*command, "--dir", tmp_path], before)
    assert ran.communicate() == ("", "")
    assert ran.returncode == 0


@pytest.mark.parametrize("before", [NO_STDOUT, NO_READER])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_gate_does_not_open_because_nobody_reads(tmp_path, before, more):
    """Its exit code comes although its table could not be printed."""
    with Server(error(401, "wrong key")) as server:
        folder = workspace(tmp_path / "w", server)
        ran = Started(["models", "--check", *more, "--dir", folder], before, OPENAI_API_KEY=KEY)
        out, err = ran.communicate()
        assert (ran.returncode, out) == (1, "")
        assert err.startswith("botchat: ")
        assert "Traceback" not in err


PAGES = [(page, []) for page in ("cp437", "ascii", "latin-1", "cp850", "cp932")]


@pytest.mark.parametrize(("page", "more"), [*PAGES, ("ascii", ["--json"])])
def test_a_code_page_without_a_dash_prints_the_table(tmp_path, page, more):
    """With a substitute for what it lacks; JSON is UTF-8 everywhere."""
    before = f"import sys; sys.stdout.reconfigure(encoding={page!r}, errors='strict')"
    (tmp_path / "botchat.toml").write_text('[models."\u0e01\u0e02"]\nmodel = "m"\n', "utf-8")
    generate = ["generate", "--seeds", "sample", "--model", "bot:parrot", "--limit", "1"]
    for words, part in (
        (generate, r"(?m)(stopped|parrot +1) +-( |$)"),
        (["models"], r"(?m)^\?\? +endpoint "),
    ):
        ran = Started([*words, *more, "--dir", tmp_path], before)
        out, err = ran.communicate()
        assert (ran.returncode, "Traceback" in err) == (0, False)
        assert json.loads(out) if more else re.search(part, out)


def ready(folder, stage):
    """The command of a stage that asks models, in a workspace that has what it needs."""
    generate, unieval, arena, _ = commands()
    if stage == "generate":
        return generate
    assert main([*generate, "--dir", str(folder)]) == 0
    return unieval if stage == "judge" else [*arena, "--comparisons", "8"]


def hung_up(process):
    """Wait until a process has taken a hang-up: it ignores any other."""
    status = Path(f"/proc/{process.pid}/status")
    while not any(
        int(line.split()[1], 16) & 1
        for line in status.read_text().splitlines()
        if line.startswith("SigIgn")
    ):
        assert process.poll() is None


@pytest.mark.parametrize(
    ("stage", "after"),
    [
        ("generate", []),
        ("judge", [signal.SIGHUP]),
        ("arena", [signal.SIGTERM]),
        ("generate", [signal.SIGINT]),
    ],
)
def test_a_hang_up_stores_what_is_in_flight(tmp_path, stage, after):
    """SIGHUP, also the one that follows a first end, and nobody reads stderr: nothing is lost."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        command = ready(folder, stage)
        before = server.n_received
        gate = server.hold()
        gate.release(1)  # the first call of a model goes alone
        process = start(folder, command)
        gate.wait_held(IN_FLIGHT)
        for kind in after:
            process.send_signal(kind)
            assert "under way" in process.stderr.readline()
        process.stderr.close()
        process.stdout.close()
        process.send_signal(signal.SIGHUP)
        hung_up(process)
        process.send_signal(signal.SIGHUP)
        assert server.n_received == before + 1 + IN_FLIGHT
        gate.open()
        assert process.wait() == 130
        server.wait_idle()
        assert server.n_received == before + 1 + IN_FLIGHT
        assert main([*command, "--dir", str(folder)]) == 0
        assert server.n_repeated == 0
