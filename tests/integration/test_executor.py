"""Calls by workers: the same bytes, limits that hold, and a lost worker is a lost connection."""

import os
import signal
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from joblib.externals.loky import reusable_executor

import botchat
from botchat.cli.main import main
from botchat.errors import FatalModelError
from botchat.models import endpoint
from botchat.pipeline import executor
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Server
from tests.openai_server.replies import converse

GENERATE = ["generate", "--seeds", "small", "--turns", "6", "--model", "alpha"]
N_SEEDS = 12
PRICED = {"price_input": 1.0, "price_output": 1.0, "timeout_s": 5.0}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(executor, "NO_TASK_S", 3.0)
    monkeypatch.setattr(executor, "LOOK_S", 0.1)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def server():
    """One that takes a moment, so that there are calls in flight."""
    with Server(converse, api_key=KEY, latency_s=0.02) as running:
        yield running


@pytest.fixture(scope="module")
def files(server, tmp_path_factory):
    """The stage files of the run in one process."""
    folder = workspace(tmp_path_factory.mktemp("plain"), server, N_SEEDS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", KEY)
        assert main([*GENERATE, "--dir", str(folder)]) == 0
    return stage_files(folder)


def kill_in_flight(server, pid):
    """Kill a process while a call of it waits for its answer."""
    server.wait_for(server.n_received + 6)
    gate = server.hold()
    gate.wait_held(1)
    os.kill(pid(), signal.SIGKILL)
    gate.open()


def loky_pid():
    """Return the process of loky's pool; before it is up, one is killed while it starts."""
    return next(iter(reusable_executor._executor._processes))


def check(server, folder, files, *flags, pid=None):
    """Run with workers, of which one may be killed: the same files; how many calls were sent."""
    server.wait_idle()
    before = server.n_received
    if pid:
        threading.Thread(target=kill_in_flight, args=(server, pid), daemon=True).start()
    assert main([*GENERATE, *flags, "--dir", str(folder)]) == 0
    assert stage_files(folder) == files
    return server.n_received - before


def test_loky_workers_make_the_same_bytes(tmp_path, server, files):
    """Every call is answered, and sent once."""
    folder = workspace(tmp_path, server, N_SEEDS, **PRICED)
    flags = ["--executor", "loky:2", "--max-usd", "1"]
    assert check(server, folder, files, *flags) == N_SEEDS * 4


def test_a_killed_worker_of_loky_loses_no_call(tmp_path, server, files, capsys):
    """What it was sending is counted and sent again, by others."""
    folder = workspace(tmp_path, server, N_SEEDS, **PRICED)
    flags = ["--executor", "loky:1", "--max-usd", "1"]
    assert check(server, folder, files, *flags, pid=loky_pid) > N_SEEDS * 4
    assert "calls estimated" in capsys.readouterr().out


def test_dask_workers_make_the_same_bytes_also_where_one_is_killed(
    tmp_path, server, files, capsys, monkeypatch
):
    """A task of a lost worker is sent again by us alone, and counted; without any it ends."""
    distributed = pytest.importorskip("distributed")
    # A worker would import what this process began with: pytest.
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # another suite may have its port
    )  # fmt: skip
    with cluster:
        by_dask = ["--executor", f"dask:{cluster.scheduler_address.removeprefix('tcp:')}"]
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert check(server, folder, files, *by_dask) == N_SEEDS * 4
        (worker,) = cluster.workers.values()
        again = workspace(tmp_path / "v", server, N_SEEDS, **PRICED)
        assert check(server, again, files, *by_dask, pid=lambda: worker.pid) > N_SEEDS * 4
        assert "calls estimated" in capsys.readouterr().out
        cluster.scale(0)
        monkeypatch.setattr(executor, "NO_WORKER_S", 0.5)
        alone = workspace(tmp_path / "u", server, N_SEEDS)
        assert main([*GENERATE, *by_dask, "--dir", str(alone)]) == 1
        assert "no worker of --executor answers" in capsys.readouterr().err


def generate(folder, executor):
    """From Python, with an executor of one's own."""
    botchat.generate(
        workspace=botchat.Workspace(folder), seeds="small", model=["alpha"], turns=6,
        spending=botchat.Spending(executor=executor),
    )  # fmt: skip


class Loses(ThreadPoolExecutor):
    """Never begins some of its tasks."""

    lost = (3,)
    n = 0

    def submit(self, *arguments, **more):
        """Return a future; nothing comes of one that is lost."""
        self.n += 1
        return Future() if self.n in self.lost else super().submit(*arguments, **more)


def test_a_lost_task_is_sent_again_and_without_workers_a_run_ends(
    tmp_path, server, files, monkeypatch
):
    """After a time, and not never; the executor is one's own, and the key is in no file."""
    monkeypatch.setattr(executor, "NO_TASK_S", 0.5)
    monkeypatch.setattr(endpoint, "_WINDOW_TIMEOUT_S", 0.1)
    with Loses(2) as pool:
        folder = workspace(tmp_path / "w", server, N_SEEDS, timeout_s=0.5)
        generate(folder, pool)
        assert stage_files(folder) == files
        written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        assert not any(KEY.encode() in content for content in written)
        pool.lost = range(10**6)
        with pytest.raises(FatalModelError, match=r"no worker of --executor answers"):
            generate(workspace(tmp_path / "v", server, 2, timeout_s=0.1), pool)


@pytest.mark.parametrize("name", ["loky:0", "loky", "ray:3"])
def test_an_executor_that_is_none_is_one_line(tmp_path, server, capsys, name):
    """Before anything is sent."""
    before = server.n_received
    folder = workspace(tmp_path / "w", server, 2)
    assert main([*GENERATE, "--executor", name, "--dir", str(folder)]) == 2
    assert capsys.readouterr().err.startswith("botchat: --executor")
    assert server.n_received == before
