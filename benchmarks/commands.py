"""CPU seconds of whole commands, from the interpreter's start to files written.

    python benchmarks/commands.py [ROW …] [--repeats 3]

Rows: the sample's `leaderboard`, with and without PNG; the rules
judge on 202,020 cases, and the same again, where nothing is left to judge;
the `leaderboard` of a million verdicts. All by default. Before and after each command the plain
loop of Elo is timed, 20 times 40,404 games in pure Python: on a machine with nothing else to do it
took `LOOP` seconds of CPU, and aims are as much larger as it takes longer here and now. Prints
CPU seconds, what they were before, the aim, and memory; fails where one is above its aim.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import leaderboard
import numpy as np
import ratings

LOOP = 0.22
BOTCHAT = [sys.executable, "-m", "botchat"]


@dataclass(frozen=True)
class Row:
    """A command in a workspace; ``before``: CPU seconds that it took; ``aim``: that it may take."""

    name: str
    workspace: str
    command: str
    before: float
    aim: float
    anew: bool = False
    """Whether what the command has written is removed first."""


ROWS = {
    row.name: row
    for row in (
        Row("board", "sample", "leaderboard --seeds sample", 3.7, 2.2),
        Row("board-no-png", "sample", "leaderboard --seeds sample", 3.0, 1.5),
        Row("rules", "cases", "judge arena --seeds big --judge rules --turns 8", 11.7, 9, True),
        Row("replay", "cases", "judge arena --seeds big --judge rules --turns 8", 4.6, 3),
        Row("million", "million", "leaderboard --seeds big", 24.8, 13),
    )
}

STARTER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def call(made: list[str]) -> tuple[float, float]:
    """CPU seconds and greatest megabytes of a command, which is one process.

    A small process starts it: Linux counts what the starting one has ever held as the command's.
    Its modules are compiled before, as where it is installed.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    run = [sys.executable, "-c", STARTER, *made]
    told = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if told[0] != "0":
        sys.exit(f"{made} ended with {told[0]}")
    return float(told[1]), float(told[2])


def make(workspace: str, folder: Path) -> None:
    """Make a workspace by its name."""
    if workspace == "sample":
        demo = [*BOTCHAT, "demo", "--dir", str(folder), "--quiet"]
        call(demo)
    elif workspace == "cases":
        leaderboard.make(folder, 14, 5 * 547, ())
    else:
        leaderboard.make(folder, 47, 547)


def loop() -> float:
    """CPU seconds of the plain loop of Elo."""
    data = ratings.comparisons()
    order = np.random.default_rng(0).permutation(len(data))
    orders = np.tile(order, (20, 1))
    return ratings.stopwatch(lambda: ratings.plain_elo(data, orders))


def main() -> None:
    """Make, measure, compare with the aims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rows = [ROWS[name] for name in arguments.rows or ROWS]
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        for row in rows:
            folder = Path(temporary, row.workspace)
            if not folder.exists():
                make(row.workspace, folder)
            run = [*BOTCHAT, *row.command.split(), "--dir", str(folder), "--quiet"]
            taken: list[tuple[float, float]] = []
            slower: list[float] = []
            for _ in range(arguments.repeats):
                if row.anew:
                    for file in folder.glob("judgments/**/*.jsonl"):
                        file.unlink()
                before = loop()
                taken.append(call(run))
                slower.append((before + loop()) / 2 / LOOP)
            share, times, seconds = min(
                (t / s, s, t) for (t, _), s in zip(taken, slower, strict=True)
            )
            print(
                f"{row.name:14s} {seconds:6.2f} s of CPU, before {row.before * times:6.2f}, "
                f"aim {row.aim * times:6.2f}, {max(mb for _, mb in taken):5.0f} MB  "
                f"(loop x {times:.2f})",
                flush=True,
            )
            if share > row.aim:
                missed.append(row.name)
    if missed:
        sys.exit(f"above the aim: {', '.join(missed)}")


if __name__ == "__main__":
    main()
