"""What a store costs: pulling many small segments, pushing and pulling many rows.

    python benchmarks/store.py [--segments 1000 10000] [--rows 20000 100000]

In a folder, each size in a fresh ledger: CPU milliseconds a segment of one row, CPU microseconds a
row of a large ledger. Rows are calls of about 1 KB with random keys, as of dialogues. Fails where a
segment or a row takes more than `MOST`, or `GROWTH` times as much in the largest as in the smallest
of its kind.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from botchat.interfaces import Decoding, Reply, Usage
from botchat.workspace import segments
from botchat.workspace.ledger import Ledger, request_json, request_key
from botchat.workspace.store import Store

MOST = {"segments pulled": 2000.0, "rows pushed": 120.0, "rows pulled": 120.0}
"""Microseconds of CPU for each."""
GROWTH = 1.5


def fill(ledger: Ledger, first: int, n: int) -> None:
    """Store ``n`` calls, numbered from ``first``."""
    draw = random.Random(first)
    with ledger.transaction():
        for number in range(first, first + n):
            said = draw.randbytes(500).hex()
            request = request_json(
                {"model": "m"}, [{"role": "user", "content": f"{number}: {said}"}], Decoding()
            )
            reply = Reply("ok", text=said[:200], usage=Usage(300, 50), cost_usd=0.001)
            ledger.put(request_key(request), request, reply, model="m", stage="judge")


def spent(n: int, work: Callable[[], object]) -> float:
    """CPU microseconds that it takes for each of n."""
    began = time.process_time()
    work()
    return (time.process_time() - began) / n * 1e6


def of_segments(root: Path, n: int) -> dict[str, float]:
    """Pull so many segments of one row each."""
    store = Store(str(root / "store"))
    with closing(Ledger(root / "written.sqlite3")) as ledger:
        for number in range(n):
            at = segments.mark(ledger)
            fill(ledger, number, 1)
            store.add(segments.FOLDER, segments.since(ledger, at))
    with closing(Ledger(root / "read.sqlite3")) as ledger:
        took = spent(n, lambda: segments.pull(ledger, store))
        assert ledger.select("SELECT count(*) FROM calls") == [(n,)]
    return {"segments pulled": took}


def of_rows(root: Path, n: int) -> dict[str, float]:
    """Push a ledger of so many rows, and pull them into another."""
    store = Store(str(root / "store"))
    with closing(Ledger(root / "written.sqlite3")) as ledger:
        fill(ledger, 0, n)
        pushed = spent(n, lambda: segments.push(ledger, store))
    with closing(Ledger(root / "read.sqlite3")) as ledger:
        pulled = spent(n, lambda: segments.pull(ledger, store))
        assert ledger.select("SELECT count(*) FROM calls") == [(n,)]
    return {"rows pushed": pushed, "rows pulled": pulled}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--segments", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    for measure, sizes in ((of_segments, options.segments), (of_rows, options.rows)):
        for n in sorted(sizes):
            with tempfile.TemporaryDirectory() as folder:
                for what, each in measure(Path(folder), n).items():
                    found.setdefault(what, []).append(each)
                    print(f"{n:8,} {what:16} {each:7.0f} µs CPU each", flush=True)
    above = [
        what
        for what, took in found.items()
        if max(took) > MOST[what] or took[-1] > GROWTH * took[0]
    ]
    sys.exit(f"too much, or it grows: {', '.join(above)}" if above else None)


if __name__ == "__main__":
    main()
