"""CPU seconds and memory of whole commands, from the interpreter's start to files written.

    python benchmarks/commands.py [NAME …]

Boards of growing size, a ledger of 500,000 calls, and ``--help``; all by default. Fails where a
command takes more than its floor. Small commands run three times, and the fastest counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import leaderboard
import msgspec

from botchat.interfaces import Decoding
from botchat.workspace.ledger import Ledger, StoredCall, request_json, request_key

BOTCHAT = [sys.executable, "-m", "botchat"]
N_CALLS = 500_000

# Name: command, models, seeds, and the most CPU seconds and megabytes of the floor.
COMMANDS: dict[str, tuple[str, int, int, float, float]] = {
    "help": ("--help", 0, 0, 0.3, 0),
    "sample": ("leaderboard", 0, 0, 5, 0),
    "paper": ("leaderboard", 14, 547, 0, 0),
    "models": ("leaderboard", 100, 100, 0, 0),
    "seeds": ("leaderboard", 6, 10_000, 0, 0),
    "million": ("leaderboard", 47, 547, 60, 1000),
    "ledger": ("ledger", 0, 0, 0, 0),
}

STARTER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def measure(command: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and greatest megabytes of a command, which is one process.

    A small process starts it: Linux counts what the starting one has ever held as the command's.
    Its modules are compiled before, as where it is installed.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [*BOTCHAT, *command.split(), "--dir", str(folder), "--quiet"]
    run = [sys.executable, "-c", STARTER, *words]
    output = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if output[0] != "0":
        sys.exit(f"{words} ended with {output[0]}")
    return float(output[1]), float(output[2])


def prepare(name: str, folder: Path) -> str:
    """Make the workspace of a row; return its size."""
    command, n_models, n_seeds, _, _ = COMMANDS[name]
    if n_models:
        n_verdicts = leaderboard.make(folder, n_models, n_seeds)
        return f"{n_models} models, {n_seeds:,} seeds, {n_verdicts:,} verdicts"
    if command == "leaderboard":
        measure("demo", folder)
        return "the sample: 3 bots, 40 seeds, 880 verdicts"
    if command == "ledger":
        (folder / ".botchat").mkdir(parents=True)
        body = request_json(
            {"model": "m"}, [{"role": "user", "content": "How are you?"}], Decoding()
        )
        call = StoredCall(
            request_key(body), "m", "generate", 1.8e9, "ok", "I am fine.", "stop", 30, 9, None,
            0.5, 0.0001, "", {}, msgspec.Raw(body), "{}",
        )  # fmt: skip
        row = call.row()[1:]
        with closing(Ledger(folder / ".botchat" / "ledger.sqlite3")) as ledger:
            ledger.add_calls((f"{n:064x}", *row) for n in range(N_CALLS))
        return f"{N_CALLS:,} calls"
    return ""


def main() -> None:
    """Prepare, measure, compare with the floors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMMANDS))
    missed = []
    for name in parser.parse_args().names or COMMANDS:
        command, n_models, _, most_s, most_mb = COMMANDS[name]
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            size = prepare(name, folder)
            seconds, mb = min(measure(command, folder) for _ in range(1 if n_models else 3))
        floor = f"   at most {most_s:g} s" if most_s else ""
        print(f"{command:11} {seconds:6.2f} s {mb:5.0f} MB   {size}{floor}".rstrip(), flush=True)
        if (most_s and seconds > most_s) or (most_mb and mb > most_mb):
            missed.append(name)
    if missed:
        sys.exit(f"above the floor: {', '.join(missed)}")


if __name__ == "__main__":
    main()
