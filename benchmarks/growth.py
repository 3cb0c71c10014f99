"""How cost grows with what there is: a table of exponents, kept in docs/scale.md.

    python benchmarks/growth.py [KIND …] [--most 1e7] [--write docs/scale.md] [--dir DIR]

Kinds: `models` (boards of adaptive comparisons, 140 a model), `seeds` (a board of 14 models),
`verdicts` (a board of 47 models), `cases` (judged by the rules judge, then again with nothing left
to judge) and `rows` (of a ledger: opened, read, written, counted), each at sizes that grow about
tenfold, none above ``--most``. Every command is a process of its own on one core; what is timed is
CPU, of a ledger's single reads and writes too. An exponent is the slope of log cost on log size
between the two largest sizes: 1 is linear. Fails where one is above `STEEPEST` of its kind, which
for models is what pairs are: quadratic.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import board_scale
import leaderboard
import store
from board_scale import measured

from botchat.workspace import calls
from botchat.workspace.ledger import Ledger

SIZES = {
    "models": (14, 100, 300, 1000),
    "seeds": (40, 400, 4_000, 10_000),
    "verdicts": (10_000, 100_000, 1_000_000, 10_000_000),
    "cases": (2_000, 20_000, 200_000),
    "rows": (10_000, 50_000, 500_000, 5_000_000),
}
STEEPEST = {"models": 2.1, "seeds": 1.15, "verdicts": 1.15, "cases": 1.15, "rows": 1.15}
A_SEED = {"verdicts": 1843, "cases": 73.9}
"""Records a seed of `leaderboard.make` with 47 models, cases of an Arena of 14."""
TRIES = 2_000
Costs = dict[str, float]
UNITS = {
    "board": "s", "memory": "MB", "page": "MB", "judged": "s", "again": "s", "open": "ms",
    "get": "µs", "put": "µs", "stats": "s", "file": "MB",
}  # fmt: skip


def command(folder: Path, *words: str) -> tuple[float, float]:
    """CPU seconds and megabytes of a command in a workspace."""
    made = [sys.executable, "-m", "botchat", *words, "--dir", str(folder)]
    _, cpu, megabytes = measured(made)
    return cpu, megabytes


def board(folder: Path) -> Costs:
    """What the board of a workspace costs, on one core."""
    _, cpu, memory = measured(leaderboard.command(folder, "sequential"))
    files = (folder / "leaderboards" / "big").rglob("*")
    page = sum(path.stat().st_size for path in files if path.is_file()) / 1e6
    return {"board": cpu, "memory": memory, "page": page}


def models(folder: Path, n: int) -> Costs:
    """Of a board of many models, which an adaptive Arena has compared."""
    board_scale.make(folder, n, 547, 140)
    return board(folder)


def seeds(folder: Path, n: int) -> Costs:
    """Of a board of 14 models on many seeds."""
    leaderboard.make(folder, 14, n)
    return board(folder)


def verdicts(folder: Path, n: int) -> Costs:
    """Of a board of 47 models with many verdicts."""
    many = n > 1_000_000  # of which the page shows samples only
    seeds_of = max(round(n / A_SEED["verdicts"]), 4)
    leaderboard.make(folder, 47, seeds_of, reasons=1_000 if many else 0)
    return board(folder)


def cases(folder: Path, n: int) -> Costs:
    """Of judging, and of finding that everything is judged."""
    leaderboard.make(folder, 14, round(n / A_SEED["cases"]), ())
    judge = ("judge", "arena", "--seeds", "big", "--judge", "rules", "--turns", "8", "--quiet")
    return {"judged": command(folder, *judge)[0], "again": command(folder, *judge)[0]}


def each(n: int, work: Callable[[], object]) -> float:
    """CPU seconds of each of n."""
    began = time.process_time()
    work()
    return (time.process_time() - began) / n


def copied(path: Path, n: int) -> None:
    """Fill a ledger with n copies of its calls, each with a key and a digest of its own.

    Without a journal: one call at a time, this takes an hour of the disk for 5 million.
    """
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(f"SELECT {calls.COLUMNS} FROM calls").fetchall()
        known = [dict(zip(calls.FIELDS, row[:-1], strict=True)) for row in found]
        db.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000"
        )

        def made() -> Iterator[tuple[object, ...]]:
            for number in range(n):
                facts = known[number % len(known)]
                facts["key"] = hashlib.sha256(b"%d" % number).hexdigest()
                yield (*facts.values(), calls._digest(facts))

        places = ",".join("?" * (len(calls.FIELDS) + 1))
        with db:
            db.executemany(f"INSERT INTO calls ({calls.COLUMNS}) VALUES ({places})", made())


def rows(folder: Path, n: int) -> Costs:
    """Of a ledger of many calls, of which 5,000 are different."""
    path = folder / ".botchat" / "ledger.sqlite3"
    with closing(Ledger(path)) as ledger:
        store.fill(ledger, 0, min(n, 5_000))
    copied(path, n - 5_000)
    Ledger(path).close()  # writes what is still in memory to the disk
    draw = random.Random(0)
    keys = [hashlib.sha256(b"%d" % draw.randrange(n - 5_000)).hexdigest() for _ in range(TRIES)]
    opened = each(20, lambda: [Ledger(path).close() for _ in range(20)])
    with closing(Ledger(path)) as ledger:
        read = each(TRIES, lambda: [ledger.get(key) for key in keys])
        written = each(TRIES, lambda: store.fill(ledger, n, TRIES))
    return {
        "open": opened * 1e3,
        "get": read * 1e6,
        "put": written * 1e6,
        "stats": command(folder, "ledger", "stats")[0],
        "file": path.stat().st_size / 1e6,
    }


KINDS: dict[str, Callable[[Path, int], Costs]] = {
    "models": models,
    "seeds": seeds,
    "verdicts": verdicts,
    "cases": cases,
    "rows": rows,
}


def lines(kind: str, by_size: dict[int, Costs]) -> Iterator[str]:
    """A line a size, then the exponents, of a table in Markdown."""
    names = [*next(iter(by_size.values()))]
    yield f"| {kind} | " + " | ".join(f"{name}, {UNITS[name]}" for name in names) + " |"
    yield "| ---: " * (len(names) + 1) + "|"
    for size, costs in by_size.items():
        told = (f"{x:,.0f}" if (x := costs[name]) >= 1000 else f"{x:.3g}" for name in names)
        yield f"| {size:,} | " + " | ".join(told) + " |"
    if len(by_size) > 1:
        told = " | ".join(f"**{slope(by_size, name):.2f}**" for name in names)
        yield f"| exponent | {told} |"


def slope(by_size: dict[int, Costs], name: str) -> float:
    """Of log cost on log size, between the two largest sizes."""
    (small, before), (large, after) = [*by_size.items()][-2:]
    return math.log(after[name] / before[name]) / math.log(large / small)


def main() -> None:
    """Make, measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--most", type=float, default=1e7, help="the largest size")
    parser.add_argument("--write", type=Path, help="put the tables into this file, below its line")
    parser.add_argument("--dir", type=Path, help="where workspaces are made, and removed")
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    steep, tables = [], []
    for kind in arguments.kinds or KINDS:
        by_size: dict[int, Costs] = {}
        for size in SIZES[kind]:
            if size <= arguments.most:
                with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
                    by_size[size] = KINDS[kind](Path(folder), size)
                print(kind, size, by_size[size], flush=True)
        tables.append("\n".join(lines(kind, by_size)))
        print(tables[-1], flush=True)
        timed = [name for name in by_size[max(by_size)] if UNITS[name] in ("s", "ms", "µs", "MB")]
        steep += [f"{kind}: {n}" for n in timed if slope(by_size, n) > STEEPEST[kind]]
    if arguments.write is not None:
        head, mark, _ = arguments.write.read_text("utf-8").partition("<!-- made by growth.py -->\n")
        arguments.write.write_text(head + mark + "\n" + "\n\n".join(tables) + "\n", "utf-8")
    if steep:
        sys.exit(f"steeper than promised: {', '.join(steep)}")


if __name__ == "__main__":
    main()
