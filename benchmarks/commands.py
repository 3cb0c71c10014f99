"""CPU seconds and memory of whole commands, from the interpreter's start to files written.

    python benchmarks/commands.py [NAME …]

What users wait for: plans, boards of growing size, a comparison, an import, a publication, a
judgment from the ledger; all by default. Fails where a command takes more than its floor. Small
commands run three times, and the fastest counts.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import leaderboard
import msgspec

from botchat.interfaces import Decoding
from botchat.workspace.ledger import Ledger, StoredCall, request_json, request_key

ROOT = Path(__file__).resolve().parents[1]
BOTCHAT = [sys.executable, "-m", "botchat"]
ENTRY = '[models.{0}]\nmodel = "{0}"\nbase_url = "{1}"\nprice_input = 1\nprice_output = 2\n'
NOWHERE = "http://127.0.0.1:9/v1"


class Row(NamedTuple):
    """A command; the models and seeds of its board, if it has one; its floor (0: none)."""

    words: str
    models: int = 0
    seeds: int = 0
    most_s: float = 0
    most_mb: float = 0


COMMANDS = {
    "help": Row("--help", most_s=0.3),
    "models": Row("models", most_s=0.5),
    "sample": Row("leaderboard", most_s=4),
    "plan": Row("run --seeds big --plan", 14, 547, 8),
    "compare": Row("compare big big --gate", 14, 547, 2),
    "compare-47": Row("compare big big", 47, 547, 4),
    "import": Row("import {}/chats.jsonl", most_s=13),
    "publish": Row("publish me/run --seeds big --dry-run", 14, 547, 25, 600),
    "replay": Row("judge arena --turns 16 --judge judge", 14, 547, 10),
    "paper": Row("leaderboard", 14, 547, 12),
    "paid": Row("leaderboard", 14, 547, 14),
    "boards": Row("leaderboard", 100, 100),
    "seeds": Row("leaderboard", 6, 10_000),
    "million": Row("leaderboard", 47, 547, 20, 700),
    "ledger": Row("ledger"),
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
    words = [*BOTCHAT, *command.format(folder).split(), "--dir", str(folder), "--quiet"]
    run = [sys.executable, "-c", STARTER, *words]
    output = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if output[0] != "0":
        sys.exit(f"{words} ended with {output[0]}")
    return float(output[1]), float(output[2])


def fill_ledger(folder: Path, n_calls: int, prompt: str) -> str:
    """Store calls under the keys that `leaderboard.make` gives its verdicts."""
    (folder / ".botchat").mkdir(parents=True)
    body = request_json({"model": "m"}, [{"role": "user", "content": prompt}], Decoding())
    call = StoredCall(
        request_key(body), "m", "generate", 1.8e9, "ok", "I am fine.", "stop", 30, 9, None,
        0.5, 0.0001, "", {}, msgspec.Raw(body), "{}",
    )  # fmt: skip
    row = call.row()[1:]
    with closing(Ledger(folder / ".botchat" / "ledger.sqlite3")) as ledger:
        ledger.add_calls((f"{n:064x}", *row) for n in range(n_calls))
    return f"{n_calls:,} calls"


def judge_once(folder: Path, words: str) -> str:
    """Let a server judge, and forget the verdicts: the ledger has the replies."""
    server = [sys.executable, "-m", "tests.server"]
    with subprocess.Popen(server, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        (folder / "botchat.toml").write_text(ENTRY.format("judge", url))
        shutil.rmtree(folder / "judgments")
        measure(words, folder)
        shutil.rmtree(folder / "judgments")
        process.terminate()
    return "40,404 verdicts from the ledger"


def prepare(name: str, folder: Path) -> str:
    """Make the workspace of a row; return its size."""
    row = COMMANDS[name]
    size = ""
    if row.models:
        n_verdicts = leaderboard.make(folder, row.models, row.seeds)
        size = f"{row.models} models, {row.seeds:,} seeds, {n_verdicts:,} verdicts"
    match name.partition("-")[0]:
        case "sample":
            measure("demo", folder)
            return "the sample: 3 bots, 40 seeds, 880 verdicts"
        case "plan":
            shutil.rmtree(folder / "generations")
            shutil.rmtree(folder / "judgments")
            names = [f"m{n}" for n in range(row.models)]
            models = "".join(ENTRY.format(each, NOWHERE) for each in [*names, "judge"])
            run = f'[run]\njudge = "judge"\nmodels = {names}\n'.replace("'", '"')
            (folder / "botchat.toml").write_text(models + run)
            return f"{row.models} models, {row.seeds} seeds, 202,000 calls"
        case "compare":
            measure("leaderboard", folder)
        case "import":
            rng = random.Random(0)
            chats = (
                {"messages": [{"role": "ab"[k % 2], "content": leaderboard.talk(rng)}
                              for k in range(10)]}
                for _ in range(100_000)
            )  # fmt: skip
            return f"{leaderboard.write(folder / 'chats.jsonl', chats):,} dialogues"
        case "publish":
            rng = random.Random(0)
            size = fill_ledger(folder, 100_000, " ".join(leaderboard.talk(rng) for _ in range(30)))
        case "replay":
            size = judge_once(folder, row.words)
        case "paid":
            size += f", {fill_ledger(folder, n_verdicts + 14 * 14 * 547, 'How are you?')}"
        case "ledger":
            size = fill_ledger(folder, 500_000, "How are you?")
    return size


def main() -> None:
    """Prepare, measure, compare with the floors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMMANDS))
    missed = []
    for name in parser.parse_args().names or COMMANDS:
        row = COMMANDS[name]
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            size = prepare(name, folder)
            runs = [measure(row.words, folder) for _ in range(1 if row.models else 3)]
        seconds, mb = min(runs)
        floor = f"   <{row.most_s:g}s" if row.most_s else ""
        word = row.words.split()[0]
        print(f"{word:11} {seconds:6.2f}s {mb:5.0f}MB   {size}{floor}".rstrip(), flush=True)
        if (row.most_s and seconds > row.most_s) or (row.most_mb and mb > row.most_mb):
            missed.append(name)
    if missed:
        sys.exit(f"above the floor: {', '.join(missed)}")


if __name__ == "__main__":
    main()
