"""The test server as a process of its own, for clients that are killed and for benchmarks.

    python -m tests.server [--log FILE] [--latency-ms 5] [--batches]

Prints its base URL on the first line and serves until SIGTERM or SIGINT. ``--log`` gets one JSON
line for each request received (``model, digest``) before it is answered.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from tests.openai_server.batches import BatchServer
from tests.openai_server.server import Server


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m tests.server", description=__doc__)
    parser.add_argument("--log", metavar="FILE", help="append JSON lines here")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--batches", action="store_true", help="a Batch API too")
    options = parser.parse_args()
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    server = (BatchServer if options.batches else Server)(
        latency_s=options.latency_ms / 1000,
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
        os.write(descriptor, msgspec.json.encode(event) + b"\n")

    return write


if __name__ == "__main__":
    main()
