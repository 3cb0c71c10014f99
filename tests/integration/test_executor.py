"""Calls by workers: the same bytes, limits that hold, and a lost worker is a lost connection."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from joblib.externals.loky import reusable_executor

import botchat
from botchat.cli.main import main
from botchat.errors import FatalModelError
from botchat.models import executor
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Server
from tests.openai_server.replies import converse

GENERATE = ["generate", "--seeds", "small", "--turns", "6", "--model", "alpha"]
N_SEEDS = 12
PRICED = {"price_input": 1.0, "price_output": 1.0, "timeout_s": 5.0}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(executor, "NO_WORKER_S", 3.0)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def cluster():
    """A dask scheduler and two workers in processes of their own."""
    distributed = pytest.importorskip("distributed")
    made = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    yield made
    made.close()


def expected(server, folder):
    """The stage files of the run in one process."""
    assert main([*GENERATE, "--dir", str(workspace(folder, server, N_SEEDS))]) == 0
    return stage_files(folder)


def kill_some(pids):
    """Kill some of the processes, a while after each other."""
    for _ in range(6):
        time.sleep(0.1)
        for pid in [*pids()][:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def loky_pids():
    """Return the processes of loky's pool."""
    pool = reusable_executor._executor
    return [*((pool and pool._processes) or ())]


def check(server, folder, *flags):
    """Run with workers; no try is forgotten."""
    server.wait_idle()
    before = server.n_received
    codes = [main([*GENERATE, *flags, "--dir", str(folder)])]
    while codes[-1] and len(codes) < 4:  # no worker came up: one line, and the run goes on later
        codes.append(main([*GENERATE, *flags, "--dir", str(folder)]))
    assert codes[-1] == 0
    return server.n_received - before


@pytest.mark.parametrize("kills", [False, True], ids=["calm", "killed"])
def test_loky_workers_make_the_same_bytes(tmp_path, kills):
    """Also where some are killed while they start; every call is answered."""
    with Server(converse, api_key=KEY, latency_s=0.02) as server:
        files = expected(server, tmp_path / "plain")
        folder = workspace(tmp_path / "w", server, N_SEEDS, **PRICED)
        if kills:
            threading.Thread(target=kill_some, args=(loky_pids,), daemon=True).start()
        sent = check(server, folder, "--executor", "loky:2", "--max-usd", "1")
        assert stage_files(folder) == files
        assert sent >= N_SEEDS * 4 if kills else sent == N_SEEDS * 4


def test_dask_workers_make_the_same_bytes_also_where_one_is_killed(tmp_path, cluster):
    """A task of a lost worker is sent again by us alone, and counted."""
    with Server(converse, api_key=KEY, latency_s=0.02) as server:
        files = expected(server, tmp_path / "plain")
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        address = cluster.scheduler_address.removeprefix("tcp:")
        assert check(server, folder, "--executor", f"dask:{address}") == N_SEEDS * 4
        assert stage_files(folder) == files
        again = workspace(tmp_path / "v", server, N_SEEDS)
        pids = [worker.pid for worker in cluster.workers.values()]
        threading.Thread(target=kill_some, args=(lambda: pids[:1],), daemon=True).start()
        check(server, again, "--executor", f"dask:{address}")
        assert stage_files(again) == files


def test_any_executor_makes_the_calls(tmp_path):
    """From Python, with an executor of one's own; the key is in no file."""
    with Server(converse, api_key=KEY) as server, ThreadPoolExecutor(2) as pool:
        files = expected(server, tmp_path / "plain")
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        place = botchat.Workspace(folder)
        botchat.generate(
            workspace=place,
            seeds="small",
            model=["alpha"],
            turns=6,
            spending=botchat.Spending(executor=pool),
        )
        assert stage_files(folder) == files
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


class Nobody(ThreadPoolExecutor):
    """Takes tasks and never begins one."""

    def submit(self, *arguments, **more):
        """Return a future of which nothing comes."""
        from concurrent.futures import Future

        return Future()


def test_without_a_worker_a_run_ends_with_one_line(tmp_path, monkeypatch):
    """After a time, and not never."""
    monkeypatch.setattr(executor, "NO_WORKER_S", 0.1)
    with Server(converse) as server:
        place = botchat.Workspace(workspace(tmp_path / "w", server, 2, timeout_s=0.1))
        with pytest.raises(FatalModelError, match=r"no worker of --executor answers"):
            botchat.generate(
                workspace=place,
                seeds="small",
                model=["alpha"],
                spending=botchat.Spending(executor=Nobody(1)),
            )


@pytest.mark.parametrize("name", ["loky:0", "loky", "ray:3"])
def test_an_executor_that_is_none_is_one_line(tmp_path, capsys, name):
    """Before anything is sent."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, 2)
        assert main([*GENERATE, "--executor", name, "--dir", str(folder)]) == 2
        assert capsys.readouterr().err.startswith("botchat: --executor")
        assert server.n_received == 0
