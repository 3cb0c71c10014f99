"""What may be billed and brings nothing: few attempts a call, few calls a run, at any time."""

import itertools

import pytest

from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline import session
from tests.integration.test_money import account
from tests.integration.test_runs import IN_FLIGHT, KEY, workspace
from tests.openai_server import Answer, Gate, Server, converse, faults, per_request, text

GENERATE = ["generate", "--seeds", "small", "--turns", "3", "--model", "alpha", "--dir"]
N_SEEDS = 20
HOPELESS = 8

GATE = Gate()
IN_VAIN = {
    "page": faults.html(),
    "no JSON": Answer(200, b"It is done."),
    "half a body": Answer(200, b'{"choices": [{"index": 0, "mess'),
    "a number": Answer(200, b"17"),
    "end of an error": text("half", finish_reason="error"),
    "end that is aborted": text("half", finish_reason="abort"),
    "time-out": faults.hang(GATE),
}
LOST = {
    "reset": faults.cut(),
    "closed": faults.cut(reset=False),
    "broken off": faults.cut(20),
    "500": faults.server_error(),
}
PAID = {**IN_VAIN, **LOST}


def run(folder, server, n_seeds=N_SEEDS, fault=None):
    """A run of these seeds without waits; its exit code. Nothing hangs long."""
    timeout_s = 0.1 if fault and fault.gate else 60.0
    return main([*GENERATE, str(workspace(folder, server, n_seeds, timeout_s=timeout_s))])


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(session, "Retry", lambda: Retry(first_s=0.0))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize("n_fine", [0, 1])
@pytest.mark.parametrize("fault", PAID.values(), ids=PAID)
def test_a_server_that_takes_money_for_nothing_is_given_up(tmp_path, capsys, fault, n_fine):
    """After eight in a row beyond those in flight, before the first answer or after it."""
    count = itertools.count()
    with Server(lambda call: converse(call) if next(count) < n_fine else fault) as server:
        assert run(tmp_path / "w", server, fault=fault) == 1
        assert server.n_received <= n_fine + HOPELESS + 2 * (IN_FLIGHT - 1) * n_fine
        line = capsys.readouterr().err.splitlines()[-1]
        assert f"{HOPELESS} times in a row" in line or "has not answered once" in line
        assert account(tmp_path / "w")[0] <= n_fine


@pytest.mark.parametrize(
    ("fault", "most"),
    [(fault, 2) for fault in IN_VAIN.values()] + [(fault, 3) for fault in LOST.values()],
    ids=[*IN_VAIN, *LOST],
)
def test_one_call_is_made_two_or_three_times(tmp_path, capsys, fault, most):
    """Its line says why, and what to raise where the server is slow."""
    with Server(fault) as server:
        assert run(tmp_path / "w", server, 1, fault) == 1
        assert server.n_received == most
        assert account(tmp_path / "w")[:2] == (0, most)
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"(tried {most} times)" in line
    if fault.gate is not None:
        assert "no reply within timeout_s = 0.1" in line


@pytest.mark.parametrize("fault", [faults.html(), faults.cut(), faults.server_error()])
def test_failures_between_answers_end_nothing(tmp_path, fault):
    """Each call fails once: every dialogue is made, for there are never eight in a row."""
    with Server(per_request(fault, converse)) as server:
        assert run(tmp_path / "w", server) == 0
        assert account(tmp_path / "w")[0] == N_SEEDS


@pytest.mark.parametrize("end", [None, "eos_found"])
def test_an_end_that_is_never_told_is_said(tmp_path, caplog, end):
    """Once; when every reply ends so it is the server's way, and is not asked twice for ever."""
    with Server(lambda call: text(f"So {call.digest}.", finish_reason=end)) as server:
        assert run(tmp_path / "w", server) == 0
        assert caplog.text.count("finish_reason") == 1
        assert server.n_received < N_SEEDS + HOPELESS
