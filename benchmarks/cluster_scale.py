"""1,000 made-up models through an adaptive Arena by workers: time, memory, segments.

    python benchmarks/cluster_scale.py [--models 1000] [--budget 20000] [--engine dask]

Dialogues are written, not generated; the judge is a script behind the suite's server, which reads a
number in each conversation and prefers the greater. Printed are the seconds of the whole command,
the head's own CPU and greatest memory, and how many segments a store then has, with their bytes.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from botchat.records import N_SEED, Dialogue, Seed, Utterance
from botchat.workspace import files
from botchat.workspace.folder import Workspace, dialogue_order
from tests.openai_server import Server
from tests.openai_server.answers import Answer, Call, content_text, text

ROOT = Path(__file__).resolve().parents[1]
SPREAD, NOISE, TIE = 120.0, 200.0, 30.0
"""Elo: standard deviation of the models, of a dialogue, and what is too close to tell."""


def judged(call: Call) -> Answer:
    """The conversation with the greater number is the human one."""
    prompt = content_text(call.messages[-1].get("content"))
    one, two = (float(number) for number in re.findall(r"worth (-?\d+\.\d)", prompt))
    if abs(one - two) < TIE:
        return text("Choice: Neither; Reason: alike")
    return text(f"Choice: Conversation {2 if one > two else 1}; Reason: a machine")


def fill(workspace: Workspace, models: int, seeds: int) -> None:
    """A set, and every model's dialogues on it."""
    rng, turns = random.Random(0), 4
    told = [Seed(f"s{n:03}", tuple(f"line {i} of {n}" for i in range(turns))) for n in range(seeds)]
    workspace.write_seeds("made", told)
    for m in range(models):
        name, strength = f"m{m:04}", rng.gauss(0, SPREAD)
        made = []
        for seed in told:
            said = (f"I am worth {rng.gauss(strength, NOISE):.1f}.", "Good bye.")
            facts = tuple(Utterance("ok", call=f"{m}-{seed.id}-{n}") for n in range(len(said)))
            shown = (*seed.utterances[:N_SEED], *said)
            made.append(
                Dialogue(
                    seed_id=seed.id,
                    model=name,
                    utterances=shown,
                    n_seed=N_SEED,
                    facts=facts,
                    status="complete",
                    signature="made",
                )
            )
        files.finish(workspace.dialogues_path("made", name), made, dialogue_order)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--engine", default="dask")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Server(judged, keep=False) as server:
        workspace, store = Workspace(Path(folder, "w")), Path(folder, "store")
        fill(workspace, options.models, options.seeds)
        entry = f'[models.umpire]\nmodel = "umpire"\nbase_url = "{server.url}"\n'
        (workspace.root / "botchat.toml").write_text(f"{entry}max_concurrency = 64\n")
        where = ["--engine", options.engine, "--workers", str(options.workers)]
        command = [
            sys.executable, "-m", "botchat", "judge", "arena", "--seeds", "made", "--turns", "4",
            "--judge", "umpire", "--adaptive", "--budget", str(options.budget), "--quiet",
            "--dir", str(workspace.root), "--store", str(store),
            *(where if options.workers else []),
        ]  # fmt: skip
        begun = time.monotonic()
        head = os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONPATH": str(ROOT)})
        _, status, used = os.wait4(head, 0)
        segments = [path.stat().st_size for path in (store / "ledger").rglob("*.gz")]
        print(
            f"{options.models} models | {options.budget} comparisons | {options.engine} "
            f"{options.workers} | exit {status} | {time.monotonic() - begun:.0f} s | head: "
            f"{used.ru_utime + used.ru_stime:.0f} s CPU, {used.ru_maxrss / 1024:.0f} MB | "
            f"{len(segments)} segments, {math.fsum(segments) / 1e6:.1f} MB | "
            f"{server.n_received} requests"
        )


if __name__ == "__main__":
    main()
