"""How long `botchat agree` takes for a million verdicts, and in how much memory.

    python benchmarks/agree.py [--items 250000]

Makes verdicts of two people and two judges on as many comparisons of 14 models, one an item, as one
CSV file, and compares them as a user does: a process of its own. Fails above `SECONDS` of CPU or
`MEGABYTES`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SECONDS, MEGABYTES = 10.0, 800
RATERS = {"human:a": 0.9, "human:b": 0.85, "judge-a": 0.75, "judge-b": 0.6}
"""How often each gives the true verdict."""
MODELS = [f"model-{n:02}" for n in range(14)]


def make(path: Path, n_items: int) -> int:
    """Write the verdicts; how many there are."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(MODELS), n_items)
    second = (first + rng.integers(1, len(MODELS), n_items)) % len(MODELS)
    true = np.where(rng.random(n_items) < 0.2, 2, (first > second).astype(int))
    with path.open("w", encoding="utf-8") as file:
        file.write("item,first,second,judge,verdict\n")
        for name, right in RATERS.items():
            verdicts = np.where(rng.random(n_items) < right, true, rng.integers(0, 4, n_items))
            for n, (a, b, verdict) in enumerate(zip(first, second, verdicts, strict=True)):
                label = ("1", "2", "tie", "")[verdict]
                file.write(f"q{n},{MODELS[a]},{MODELS[b]},{name},{label}\n")
    return n_items * len(RATERS)


def main() -> None:
    """Make, measure, compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=250_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "verdicts.csv")
        print(f"{make(file, arguments.items):,} verdicts")
        agree = [sys.executable, "-m", "botchat", "agree", str(file), "--json", "--dir", temporary]
        begun = time.perf_counter()
        subprocess.run(agree, stdout=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(f"{seconds:.2f} s, {cpu:.2f} s of CPU")
    megabytes = used.ru_maxrss / 1024
    print(f"{megabytes:.0f} MB")
    if cpu > SECONDS or megabytes > MEGABYTES:
        sys.exit(f"more than {SECONDS:g} s of CPU or {MEGABYTES} MB")


if __name__ == "__main__":
    main()
