"""How far a run is: by calls of the plan, on a terminal, a line a minute without one, or not."""

from __future__ import annotations

import io
import sys
import threading
from argparse import Namespace

import pytest

from botchat.cli import output
from botchat.cli.output import Window, may_steer, progress, progress_line, spent_line
from botchat.interfaces import Reply
from botchat.requests.meter import Meter, Step


def lockstep(meter: Meter) -> None:
    """Two dialogues of 14 calls each that advance together; 25 calls are there, one failed."""
    meter.begin("generate", 2)
    step = Step("m", items=2, each=14)
    meter.steps.append(step)
    items = [step.item(), step.item()]
    for item in items:
        step.under_way.add(item)
    for n in range(26):
        ok = n != 7
        step.count(items[n % 2], Reply(outcome="ok" if ok else "transport", text="x" * ok))


def test_calls_of_the_plan_are_counted_not_dialogues_in_lockstep() -> None:
    """It said 0/2 (0 %) with 25 of 28 calls done."""
    meter = Meter()
    lockstep(meter)
    meter.in_flight = lambda: 2
    line = progress_line(meter, meter.started + 13.0)
    assert line == "generate · 26/28 calls (92 %) · 1 s left · 2.0/s · 2 in flight · 1 failed"


def test_the_rate_is_of_lately() -> None:
    """A run that stood still for an hour and goes on is not an hour slow."""
    window = Window(10.0)
    began = window._counts[0][0]
    assert window.rate(0, began + 0.1) is None
    assert window.rate(0, began + 3600) is None
    assert window.rate(20, began + 3605) == 4.0
    assert window.rate(20, began + 3620) is None


def test_rules_ask_no_model_so_cases_are_counted() -> None:
    """A step without calls."""
    meter = Meter("judge", total=4, done=1, started=0.0)
    meter.steps.append(Step("rules", items=4, each=0))
    assert progress_line(meter, 1.0).startswith("judge · 1/4 (25 %) · 3 s left · 1.0/s")


def test_a_silent_endpoint_is_said() -> None:
    """How long ago the last reply came, beside the calls that are left."""
    meter = Meter(calls=10, cost_usd=1.25)
    meter.steps.append(step := Step("m", items=20, each=1))
    for _ in range(10):
        with step.item() as item:
            step.count(item, Reply("ok", "x"))
    line = progress_line(meter, meter.heard + 40.2)
    assert "10/20 calls (50 %) · no reply for 40 s · $1.25" in line


class Log(io.StringIO):
    """A stderr that is no terminal, and tells when it has a line."""

    def __init__(self) -> None:
        super().__init__()
        self.has_line = threading.Event()

    def write(self, text: str) -> int:
        """As it does."""
        written = super().write(text)
        if "\n" in text:
            self.has_line.set()
        return written


def log_of(monkeypatch: pytest.MonkeyPatch, every_s: float) -> Log:
    """It, with minutes that are short; pytest has a stderr of its own for each phase of a test."""
    monkeypatch.setattr(output, "EVERY_S", every_s)
    monkeypatch.setattr(sys, "stderr", log := Log())
    return log


def test_without_a_terminal_there_is_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, with the same numbers; its thread ends with the step."""
    log = log_of(monkeypatch, 0.01)
    before = set(threading.enumerate())
    with progress(Namespace(json=False, quiet=False)) as meter:
        lockstep(meter)
        for _ in range(2):  # the first may have been worded before all was counted
            log.has_line.clear()
            assert log.has_line.wait(30)
    assert set(threading.enumerate()) <= before
    assert "26/28 calls (92 %)" in log.getvalue().splitlines()[-1]
    assert "\x1b" not in log.getvalue()


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is shown and nothing waits."""
    log = log_of(monkeypatch, 0.01)
    before = set(threading.enumerate())
    with progress(Namespace(json=False, quiet=True)) as meter:
        lockstep(meter)
        assert set(threading.enumerate()) <= before
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    ("environment", "steers"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_no_color_and_dumb_terminals_get_no_escapes(
    environment: dict[str, str], steers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As no-color.org says: set, and not empty."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert may_steer(terminal) == steers


@pytest.mark.parametrize(
    ("meter", "said"),
    [
        (Meter(calls=2, tokens=1500, cost_usd=0.5), "2 calls, 1,500 tokens, $0.5000"),
        (Meter(calls=2, tokens=15, unpriced=2), "2 calls, 15 tokens, 2 calls of unknown cost"),
        (
            Meter(calls=2, tokens=15, cost_usd=0.25, unpriced=1),
            "2 calls, 15 tokens, $0.2500 + 1 calls of unknown cost",
        ),
        (Meter(calls=2, tokens=15), "2 calls, 15 tokens, $0.0000"),
    ],
)
def test_unknown_cost_is_no_zero(meter, said):
    """Dollars are shown where some are known."""
    assert spent_line(meter) == said
