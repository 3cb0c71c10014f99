"""How long a board of a thousand models takes, made from adaptive comparisons, and in what memory.

    python benchmarks/board_scale.py [--models 200 400 1000] [--a-model 140] [--seeds 547]
        [--dir DIR] [--profile]

Makes a workspace up: short dialogues of every model on every seed, and one judge's verdicts at
N = 8 on what an adaptive Arena asks of the models of ``scale.py``: ``--a-model`` comparisons for
every model. Then runs ``botchat leaderboard`` on it in a process of its own, on one core. ``--dir``
keeps what was made. ``--profile``: also say where the time goes. Fails above 2 GB.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from leaderboard import JUDGE, command, talk, write
from scale import World

from botchat.interfaces import Shown, case_digest
from botchat.ratings.adaptive import AdaptiveDesign, AdaptiveSettings, Target
from botchat.records import Dialogue, Judgment, Seed, Utterance, slug

MEGABYTES = 2048
N = 8
TALKS = 500
"""Different utterances, so that making them takes no time."""


def make(folder: Path, n_models: int, n_seeds: int, a_model: int) -> int:
    """Make the workspace; how many comparisons it holds."""
    rng = random.Random(0)
    said = [" ".join(talk(rng).split()[:6]) for _ in range(TALKS)]
    seeds = [
        Seed(f"S-{i}", tuple(rng.choices(said, k=6 if i % 547 < 222 else 3)))
        for i in range(n_seeds)
    ]
    write(folder / "seeds" / "big.jsonl", seeds)
    models = [f"openai:a-model-{n:04}" for n in range(n_models)]
    facts = tuple(Utterance("ok", 0, 8) for _ in range(N - 2))
    shown: dict[tuple[int, int], Shown] = {}
    for n, name in enumerate(models):
        dialogues = []
        for i, seed in enumerate(seeds):
            texts = (*seed.utterances[:2], *rng.choices(said, k=N - 2))
            made = "botchat:0.1.0|generate|set:big"
            dialogues.append(Dialogue(seed.id, name, texts, 2, facts, "complete", made))
            shown[n, i] = Shown.of(dialogues[-1], N)
        write(folder / "generations" / "big" / f"{slug(name)}.jsonl", dialogues)
    eligible = np.array([i for i, seed in enumerate(seeds) if len(seed.utterances) >= 4])

    def cases() -> Iterator[Judgment]:
        world = World.of(n_models, 0, n_seeds=n_seeds)
        settings = AdaptiveSettings(
            Target(20, n_models * n_models // 200), budget=n_models * a_model, batch=10 * n_models
        )
        design = AdaptiveDesign(models, lambda *_: eligible, settings)
        while (asked := design.ask()) is not None:
            results = world.result(asked.first, asked.second, asked.seed)
            design.tell(results)
            for first, second, i, result in zip(
                *(part.tolist() for part in (asked.first, asked.second, asked.seed, results)),
                strict=True,
            ):
                yield Judgment(
                    protocol=f"arena-n{N}",
                    seed_id=seeds[i].id,
                    contestants=(models[first], models[second]),
                    judge=JUDGE,
                    verdict={1.0: "1", 0.5: "both", 0.0: "2"}[result],
                    reason=said[i % TALKS],
                    shown=N,
                    case=case_digest(f"arena-n{N}", shown[first, i], shown[second, i]),
                    signature=f"botchat:0.1.0|arena|set:big|judge:{JUDGE}@0a1b2c3d|"
                    "prompt:3f9a01bc|orders:2",
                    chosen="adaptive",
                )

    path = folder / "judgments" / "big" / f"arena-n{N}" / f"{slug(JUDGE)}.jsonl"
    return write(path, cases())


def profiled(made: list[str]) -> str:
    """What takes the most time in the command itself, by all that it calls."""
    with tempfile.NamedTemporaryFile(suffix=".prof") as kept:
        run = [made[0], "-m", "cProfile", "-o", kept.name, *made[1:]]
        subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
        shown = "import pstats; pstats.Stats({!r}).sort_stats('cumulative').print_stats({}, 60)"
        told = [sys.executable, "-c", shown.format(kept.name, "'botchat|numpy|matplotlib'")]
        return subprocess.run(told, capture_output=True, text=True, check=True).stdout


STARTER = """
import os, subprocess, sys, time
begun = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
seconds = time.perf_counter() - begun
print(status, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def measured(made: list[str]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and greatest megabytes of a command, which is one process.

    A small process starts it: Linux counts what the starting one has ever held as the command's.
    """
    run = [sys.executable, "-c", STARTER, *made]
    told = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if told[0] != "0":
        sys.exit(f"{made} ended with {told[0]}")
    seconds, cpu, memory = map(float, told[1:])
    return seconds, cpu, memory


def main() -> None:
    """Make, measure, compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[200, 400, 1000])
    parser.add_argument("--a-model", type=int, default=140)
    parser.add_argument("--seeds", type=int, default=547)
    parser.add_argument("--dir", type=Path, help="keep the workspaces here, and use them again")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    most = 0.0
    print("| models | comparisons | seconds | CPU seconds | memory | page |")
    print("| ---: " * 6 + "|")
    with tempfile.TemporaryDirectory() as temporary:
        for n in arguments.models:
            folder = (arguments.dir or Path(temporary)) / str(n)
            if not (folder / "judgments").exists():
                make(folder, n, arguments.seeds, arguments.a_model)
            made = command(folder, "sequential")
            if arguments.profile:
                print(profiled(made))
            seconds, cpu, memory = measured(made)
            most = max(most, memory)
            written = [p for p in (folder / "leaderboards" / "big").rglob("*") if p.is_file()]
            size = sum(path.stat().st_size for path in written) / 1e6
            print(
                f"| {n:,} | {n * arguments.a_model:,} | {seconds:.1f} | {cpu:.1f} "
                f"| {memory:,.0f} MB | {size:,.0f} MB |",
                flush=True,
            )
    if most > MEGABYTES:
        sys.exit(f"more than {MEGABYTES} MB")


if __name__ == "__main__":
    main()
