"""How a run ends from outside: signals, and a terminal that goes away."""

from __future__ import annotations

import io
import math
import os
import signal
import sys
import time
from typing import Any

_AT_ONCE_S = 0.1
"""Signals that come so soon after another are of one end."""

ENDS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def take_signals() -> None:
    """Let SIGTERM, and SIGHUP unless it is ignored (nohup), end a run as Ctrl-C does.

    Replies in flight are stored first; a second Ctrl-C or SIGTERM drops them. A hang-up never does:
    a terminal that closes sends several, and the end of a login session sends both kinds at once.
    """
    # A background job of a script starts with SIGINT ignored; the others become a SIGINT.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    acted_at, ours = -math.inf, os.getpid()

    def end(kind: int = signal.SIGTERM, *_: object) -> None:
        nonlocal acted_at
        if os.getpid() != ours:  # a process that was forked to help has nothing to store
            signal.signal(kind, signal.SIG_DFL)
            signal.raise_signal(kind)
        if time.monotonic() - acted_at > _AT_ONCE_S:
            acted_at = time.monotonic()
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, end)
    if sys.platform != "win32":

        def hang_up(*_: object) -> None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if not _ending():
                end()

        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, hang_up)


def _ending() -> bool:
    """Whether a run has been interrupted already and stores what is in flight."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and any(task.cancelling() for task in asyncio.all_tasks())
    except (RuntimeError, AttributeError):  # nothing is under way, or it is being imported
        return False


class _Lasting(io.FileIO):
    """A file that swallows what it cannot write."""

    def write(self, data: Any) -> int:
        """Write, or pretend to."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def lasting_stderr() -> io.TextIOWrapper:
    """A stderr whose terminal or reader may go away without ending the run that reports there."""
    encoding = sys.stderr.encoding if sys.stderr else None
    if sys.stderr is None:  # it was closed; a file that is opened would get its number
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    raw = io.BufferedWriter(_Lasting(2, "w", closefd=False))
    return io.TextIOWrapper(raw, encoding, errors="backslashreplace", line_buffering=True)
