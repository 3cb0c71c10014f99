"""How far a run is, in ``.botchat/progress.json``: so another process can show it (`botchat view`).

The run writes it twice a second from its meter, in one piece and in place of the last; what it
says is at most that old when the run is killed. Money that was spent is in the ledger in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from botchat.errors import BotChatError, LimitReached
from botchat.models.limits import Budget
from botchat.requests.meter import LONGEST, Meter
from botchat.workspace.folder import Workspace
from botchat.workspace.progress import Progress, StepProgress
from botchat.workspace.secrets import public_arguments

EVERY_S = 0.5
"""Between two writes."""

WINDOW_S = 10.0
"""Over which the rate is taken."""


def path(workspace: Workspace) -> Path:
    """The file."""
    return workspace.hidden / "progress.json"


def read(workspace: Workspace) -> Progress | None:
    """What the latest run wrote; ``None``: nothing that can be read."""
    try:
        return msgspec.json.decode(path(workspace).read_bytes(), type=Progress)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError):
        return None


@contextmanager
def told(workspace: Workspace, meter: Meter, budget: Budget) -> Iterator[None]:
    """Write how far the run is while the block runs, and how it ended."""
    teller, ended = _Teller(path(workspace), meter, budget), threading.Event()

    def keep_telling() -> None:
        while not ended.wait(EVERY_S):
            teller.tell("running", "")

    # In a thread, since bots and rules leave the loop no pause.
    thread = threading.Thread(target=keep_telling, daemon=True)
    thread.start()
    state, why = "failed", ""
    try:
        yield
        state = "done"
    except (asyncio.CancelledError, KeyboardInterrupt):
        state = "interrupted"
        raise
    except BotChatError as error:
        state, why = "stopped" if isinstance(error, LimitReached) else "failed", str(error)
        raise
    finally:
        ended.set()
        thread.join()
        teller.tell(state, why)


def steps_of(meter: Meter) -> list[StepProgress]:
    """The steps of a run as they are now, and those that its plan has and that are not begun."""
    begun = [msgspec.convert(one, StepProgress, from_attributes=True) for one in [*meter.steps]]
    ahead = dict(meter.ahead)
    for one in begun:
        same = [at for at in ahead if at[0] == one.protocol and (one.protocol or at[1] == one.by)]
        one.planned_usd = ahead.pop(same[0])[1] if same else None
    name = begun[0].seed_set if begun else ""
    return begun + [
        StepProgress(name, protocol, by, left=calls, planned_usd=usd, begun=False)
        for (protocol, by), (calls, usd) in ahead.items()
    ]


class Window:
    """How many calls a second were done lately."""

    def __init__(self, seconds: float = WINDOW_S) -> None:
        """``seconds``: what is lately. Nothing is done yet."""
        self.seconds = seconds
        self._counts = deque([(time.monotonic(), 0)])

    def rate(self, counted: int, now: float) -> float | None:
        """The rate, at a reading of the clock; ``None``: too early. ``counted``: calls so far."""
        self._counts.append((now, counted))
        while self._counts[0][0] < now - self.seconds:
            self._counts.popleft()
        began, before = self._counts[0]
        return (counted - before) / (now - began) if now - began >= EVERY_S else None


def _cell() -> Any:
    """Where the notebook that Python runs in shows how far the run is; ``None``: it is in none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display").display(_bar("", None), raw=True, display_id=True)


def _bar(line: str, percent: int | None) -> dict[str, str]:
    """A bar with a line, by kinds of text, as notebooks take it."""
    value = "" if percent is None else f' value="{percent}"'
    return {
        "text/plain": line,
        "text/html": f'<progress max="100"{value}></progress> {escape(line)}',
    }


class _Teller:
    """Writes the file of one run, and the bar of a notebook."""

    def __init__(self, path: Path, meter: Meter, budget: Budget) -> None:
        self._path, self._meter, self._budget = path, meter, budget
        self._started = self._heard = time.time()
        self._window, self._counted = Window(), 0
        self._cell = _cell()

    def tell(self, state: str, why: str) -> None:
        """Write, if there is something to tell; what cannot be written is not worth a run."""
        if not self._meter.steps:
            return
        now, monotonic = time.time(), time.monotonic()
        steps = steps_of(self._meter)
        counted = sum(step.counted for step in steps)
        if counted > self._counted:
            self._counted, self._heard = counted, now
        rate = self._window.rate(counted, monotonic)
        budget = self._budget
        made = Progress(
            process=os.getpid(),
            host=socket.gethostname(),
            command=f"botchat {public_arguments(sys.argv[1:])}"[:500],
            started=self._started,
            at=now,
            heard=self._heard,
            state=state,
            why=why[:LONGEST],
            rate=rate,
            steps=steps,
            spent_usd=budget.usd,
            spent_calls=budget.calls,
            spent_tokens=budget.tokens,
            max_usd=budget.max_usd,
            max_calls=budget.max_calls,
            max_tokens=budget.max_tokens,
            estimated=self._meter.estimates.total(),
            batches=dict(self._meter.batches),
        )
        # One process writes at a time, so the other name is free; nothing is lost with this file,
        # so nobody waits for the disk.
        new = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(made))
            new.replace(self._path)
        if self._cell is not None:
            self._cell.update(_bar(made.line, made.percent), raw=True)
