"""Interrupting a cell of a notebook, where an event loop runs already, ends what it began."""

import contextlib
import signal
import threading

import pytest

import botchat
from botchat.errors import WorkspaceLockedError
from tests.integration.test_runs import CALLS, IN_FLIGHT, KEY, workspace
from tests.openai_server import Server, converse
from tests.processes import Started

NOTEBOOK = """
import asyncio, signal, sys
import botchat

signal.signal(signal.SIGINT, signal.default_int_handler)

async def cell():
    try:
        botchat.generate(workspace={folder!r}, seeds="small", turns=8,
                         model=["alpha", "beta", "gamma"])
        print("done", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)

loop = asyncio.new_event_loop()  # whose signals are as a kernel has them
for _ in range({n_cells}):
    loop.run_until_complete(cell())
loop.close()
"""
"""A kernel that runs a cell some times."""


@contextlib.contextmanager
def kernel(folder, n_cells):
    """Yield the process; it is killed where it would go on for ever."""
    process = Started(
        ["--version"], NOTEBOOK.format(folder=str(folder), n_cells=n_cells), OPENAI_API_KEY=KEY
    )
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def interrupt(server, process):
    """Interrupt a cell whose calls are in flight, and wait until it has begun to end."""
    gate = server.hold()
    gate.release(1)  # the first call of a model goes alone
    server.wait_for(1 + IN_FLIGHT)
    process.send_signal(signal.SIGINT)
    assert f"{IN_FLIGHT} replies under way" in process.stderr.readline()
    return gate


def test_an_interrupted_cell_sends_nothing_more(tmp_path):
    """What is in flight is stored; control comes back when that is done."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        with kernel(folder, n_cells=1) as process:
            gate = interrupt(server, process)
            gate.open()
            assert process.stdout.readline() == "interrupted\n"
            assert server.n_received == 1 + IN_FLIGHT
        assert server.n_received == 1 + IN_FLIGHT


def test_the_next_cell_begins_when_the_last_has_ended(tmp_path):
    """Interrupted twice, it drops what is in flight; only that is paid for again."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        with kernel(folder, n_cells=2) as process:
            gate = interrupt(server, process)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            gate.open()
            assert process.stdout.readline() == "done\n"
        assert server.n_received == CALLS + IN_FLIGHT


async def test_a_cell_in_a_workspace_that_another_writes_to_is_one_line(tmp_path):
    """The thread that would write takes the lock; what it raises comes to the cell."""
    place = botchat.Workspace(tmp_path)
    with place.locked(), pytest.raises(WorkspaceLockedError, match="in use by process"):
        botchat.generate(workspace=place, seeds="sample", model="bot:parrot", limit=1)
    botchat.generate(workspace=place, seeds="sample", model="bot:parrot", limit=1)
    assert len(place.dialogues("sample", "bot:parrot")) == 1
