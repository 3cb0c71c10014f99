"""Calls by workers: the same bytes, limits that hold, and a lost worker is a lost connection."""

import contextlib
import os
import signal
import threading
import time
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


def expected(server, folder):
    """The stage files of the run in one process."""
    assert main([*GENERATE, "--dir", str(workspace(folder, server, N_SEEDS))]) == 0
    return stage_files(folder)


def kill_some(pids):
    """Kill some of the processes, a while after each other."""
    for _ in range(3):
        time.sleep(0.1)
        for pid in [*pids()][:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def loky_pids():
    """Return the processes of loky's pool."""
    pool = reusable_executor._executor
    return [*((pool and pool._processes) or ())]


def check(server, folder, files, executor, *flags, pids=None):
    """Run with workers, of which some are killed: the same files; how many calls were sent."""
    if pids:
        threading.Thread(target=kill_some, args=(pids,), daemon=True).start()
    server.wait_idle()
    before = server.n_received
    for _ in range(4):  # where no worker came up it is one line, and the run goes on later
        if (code := main([*GENERATE, "--executor", executor, *flags, "--dir", str(folder)])) == 0:
            break
    assert (code, stage_files(folder)) == (0, files)
    return server.n_received - before


@pytest.mark.parametrize("pids", [None, loky_pids], ids=["calm", "killed"])
def test_loky_workers_make_the_same_bytes(tmp_path, pids):
    """Also where some are killed while they start; every call is answered, and none forgotten."""
    with Server(converse, api_key=KEY, latency_s=0.02) as server:
        files = expected(server, tmp_path / "plain")
        folder = workspace(tmp_path / "w", server, N_SEEDS, **PRICED)
        sent = check(server, folder, files, "loky:2", "--max-usd", "1", pids=pids)
        assert sent >= N_SEEDS * 4 if pids else sent == N_SEEDS * 4


def test_dask_workers_make_the_same_bytes_also_where_one_is_killed(tmp_path, capsys, monkeypatch):
    """A task of a lost worker is sent again by us alone, and counted; without any it ends."""
    distributed = pytest.importorskip("distributed")
    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        Server(converse, api_key=KEY, latency_s=0.02) as server,
        distributed.LocalCluster(processes=True, **workers) as cluster,
    ):
        files = expected(server, tmp_path / "plain")
        by_dask = f"dask:{cluster.scheduler_address.removeprefix('tcp:')}"
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert check(server, folder, files, by_dask) == N_SEEDS * 4
        pid = next(worker.pid for worker in cluster.workers.values())
        again = workspace(tmp_path / "v", server, N_SEEDS, **PRICED)
        check(server, again, files, by_dask, pids=lambda: [pid])
        cluster.scale(0)
        monkeypatch.setattr(executor, "NO_WORKER_S", 0.5)
        alone = workspace(tmp_path / "u", server, N_SEEDS)
        assert main([*GENERATE, "--executor", by_dask, "--dir", str(alone)]) == 1
        assert "no worker of --executor answers" in capsys.readouterr().err


def generate(folder, executor):
    """From Python, with an executor of one's own."""
    botchat.generate(
        workspace=botchat.Workspace(folder), seeds="small", model=["alpha"], turns=6,
        spending=botchat.Spending(executor=executor),
    )  # fmt: skip


def test_any_executor_makes_the_calls(tmp_path):
    """From Python, with an executor of one's own; the key is in no file."""
    with Server(converse, api_key=KEY) as server, ThreadPoolExecutor(2) as pool:
        files = expected(server, tmp_path / "plain")
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        generate(folder, pool)
        assert stage_files(folder) == files
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


class Loses(ThreadPoolExecutor):
    """Never begins its first tasks."""

    n_lost = 1

    def submit(self, *arguments, **more):
        """Return a future; nothing comes of one that is lost."""
        self.n_lost -= 1
        return Future() if self.n_lost >= 0 else super().submit(*arguments, **more)


def test_a_lost_task_is_sent_again_and_without_workers_a_run_ends(tmp_path, monkeypatch):
    """After a time, and not never."""
    monkeypatch.setattr(executor, "NO_TASK_S", 0.5)
    monkeypatch.setattr(endpoint, "_WINDOW_TIMEOUT_S", 0.1)
    with Server(converse, api_key=KEY, latency_s=0.02) as server, Loses(2) as pool:
        files = expected(server, tmp_path / "plain")
        folder = workspace(tmp_path / "w", server, N_SEEDS, timeout_s=0.5)
        generate(folder, pool)
        assert stage_files(folder) == files
        pool.n_lost = N_SEEDS * 100
        with pytest.raises(FatalModelError, match=r"no worker of --executor answers"):
            generate(workspace(tmp_path / "v", server, 2, timeout_s=0.1), pool)


@pytest.mark.parametrize("name", ["loky:0", "loky", "ray:3"])
def test_an_executor_that_is_none_is_one_line(tmp_path, capsys, name):
    """Before anything is sent."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, 2)
        assert main([*GENERATE, "--executor", name, "--dir", str(folder)]) == 2
        assert capsys.readouterr().err.startswith("botchat: --executor")
        assert server.n_received == 0
