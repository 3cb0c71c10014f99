"""The test server as a process of its own, for clients that are killed and for benchmarks.

    python -m tests.server [--port 0] [--log FILE] [--latency-ms 5] [--fail-rate 0.1 --seed 1]

Prints its base URL on the first line and serves until SIGTERM or SIGINT. ``--log`` gets one JSON
line for each request received (``n, repeat, model, digest``) before it is answered, and one for
each answered, cut or lost (``n, status``); every line has the clock time ``at``.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tests.openai_server.batches import BatchServer
from tests.openai_server.faults import TRANSIENT
from tests.openai_server.replies import converse, flaky
from tests.openai_server.server import Server


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m tests.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--log", metavar="FILE", help="append JSON lines here")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--fail-rate", type=float, default=0.0, help="share of attempts that fail")
    parser.add_argument("--fail-kinds", default=",".join(TRANSIENT), help="comma-separated")
    parser.add_argument("--seed", type=int, default=0, help="of the failures")
    parser.add_argument("--models", default="", help="comma-separated; default: any name")
    parser.add_argument("--batches", action="store_true", help="a Batch API too")
    parser.add_argument("--api-key", help="the only key accepted; default: any")
    options = parser.parse_args(arguments)
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    server = (BatchServer if options.batches else Server)(
        flaky(options.fail_rate, options.seed, kinds=options.fail_kinds.split(","))
        if options.fail_rate
        else converse,
        models=[name for name in options.models.split(",") if name],
        api_key=options.api_key,
        latency_s=options.latency_ms / 1000,
        port=options.port,
        keep=False,
        log=_writer(options.log) if options.log else None,
    )
    with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        signal.sigwait(signals)


def _writer(path: str) -> Callable[[dict[str, Any]], None]:
    """Appends one line a call, in one write, so that a reader never sees half of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(event: dict[str, Any]) -> None:
        os.write(descriptor, msgspec.json.encode(event | {"at": time.time()}) + b"\n")

    return write


if __name__ == "__main__":
    main()
