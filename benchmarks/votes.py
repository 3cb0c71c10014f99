"""How fast and how right a million votes are ranked with intervals, beside other people's ways.

    python benchmarks/votes.py [--votes 1000000] [--models 100] [--repeats 3] [--python PYTHON]

All read the same parquet of battles (`model_a`, `model_b`, `winner`) in the same run, and end with
Bradley-Terry ratings and 95 % intervals. Rivals:

- arena-rank (``pip install arena-rank``), its sandwich intervals; in the interpreter ``--python``,
  if it is not installed in this one. What it compiles on its first call is not counted.
- FastChat's way, written anew from its description: scikit-learn's logistic regression, without
  regularisation, on one row a pair and winner, weighted by how often it occurred, and a bootstrap
  of 100 resampled sets of votes.

All take turns in every repeat; times are of the process (all its threads), so that other work on
the machine matters little. A ratio is the rival's time to ours: median, least and greatest.
Ratings must be those of a plain fit, scipy's root of the slope of the log-likelihood, within 1e-6
points, and ours five times faster than the fastest rival, or the benchmark fails. Last,
`botchat rank` itself, with all its tables, figures and the page.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

RESAMPLES = 100
LOGIT = 400 / math.log(10)

ARENA_RANK = """
import json, sys, time
import pandas as pd
from arena_rank.models.bradley_terry import BradleyTerry
from arena_rank.utils.data_utils import PairDataset

def rank(path):
    frame = pd.read_parquet(path, columns=["model_a", "model_b", "winner"])
    frame = frame.replace({"winner": {"tie (bothbad)": "tie"}})
    data = PairDataset.from_pandas(frame)
    model = BradleyTerry(n_competitors=len(data.competitors))
    return model.compute_ratings_and_cis(data)

rank(sys.argv[1])
for line in sys.stdin:
    begun = time.process_time()
    found = rank(sys.argv[1])
    seconds = time.process_time() - begun
    ratings = dict(zip(map(str, found["competitors"]), map(float, found["ratings"])))
    print(json.dumps({"seconds": seconds, "ratings": ratings}), flush=True)
"""


def made(votes: int, models: int) -> pa.Table:
    """Battles at random, of models whose strengths are spread as on a board of many."""
    rng = np.random.default_rng(0)
    strength = rng.normal(0, 0.6, models)
    a = rng.integers(models, size=votes)
    b = (a + rng.integers(1, models, size=votes)) % models
    won = rng.random(votes) < 1 / (1 + np.exp(strength[b] - strength[a]))
    winner = np.where(won, "model_a", "model_b").astype(object)
    tied = rng.random(votes)
    winner[tied < 0.2], winner[tied < 0.1] = "tie", "tie (bothbad)"
    names = np.array([f"model-{i:04}" for i in range(models)], dtype=object)
    return pa.table({"model_a": names[a], "model_b": names[b], "winner": winner})


def ours(path: Path) -> dict[str, float]:
    """Read, count, fit, with intervals and the places of ranks."""
    from botchat.boards.votes import compared
    from botchat.importers.vote_files import read_votes
    from botchat.ratings.bradley_terry import fit

    found = fit(compared(read_votes(path.read_bytes(), path.name).votes)[0])
    assert np.isfinite(found.low).all()
    assert len(found.rank_intervals) == 2
    return dict(zip(found.models, found.rating.tolist(), strict=True))


def fastchat(path: Path) -> dict[str, float]:
    """Logistic regression on counts, and on those of resampled votes."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    frame = pd.read_parquet(path)
    codes, names = pd.factorize(pd.concat([frame["model_a"], frame["model_b"]]), sort=True)
    first, second = codes[: len(frame)], codes[len(frame) :]
    m = len(names)
    result = frame["winner"].map({"model_a": 2, "model_b": 0}).fillna(1).to_numpy(np.intp)
    counts = np.bincount((first * m + second) * 3 + result, minlength=3 * m * m).astype(float)
    rows = np.arange(m * m)
    rows = rows[rows // m != rows % m]
    design = np.zeros((2 * len(rows), m))
    each = np.arange(len(rows))
    for half in (0, 1):
        design[each + half * len(rows), rows // m] = 1
        design[each + half * len(rows), rows % m] = -1
    sides = np.repeat([1, 0], len(rows))

    def fitted(counted: np.ndarray) -> np.ndarray:
        lost, tied, won = counted.reshape(-1, 3)[rows].T
        weight = np.concatenate([won + tied / 2, lost + tied / 2])
        kept = weight > 0
        model = LogisticRegression(fit_intercept=False, C=np.inf, tol=1e-9, max_iter=1000)
        model.fit(design[kept], sides[kept], sample_weight=weight[kept])
        return model.coef_[0] - model.coef_[0].mean()

    rng = np.random.default_rng(0)
    total = int(counts.sum())
    drawn = [fitted(rng.multinomial(total, counts / total).astype(float)) for _ in range(RESAMPLES)]
    assert np.isfinite(np.percentile(drawn, (2.5, 97.5), axis=0)).all()
    return dict(zip(map(str, names), (1000 + LOGIT * fitted(counts)).tolist(), strict=True))


def plain(path: Path) -> dict[str, float]:
    """A plain fit: where every model's score is what its ratings expect."""
    import pandas as pd
    from scipy.optimize import root
    from scipy.special import expit

    frame = pd.read_parquet(path)
    codes, names = pd.factorize(pd.concat([frame["model_a"], frame["model_b"]]), sort=True)
    first, second = codes[: len(frame)], codes[len(frame) :]
    m = len(names)
    result = frame["winner"].map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5).to_numpy()
    score = np.bincount(first * m + second, result, m * m).reshape(m, m)
    score = score + np.bincount(second * m + first, 1 - result, m * m).reshape(m, m)
    games = score + score.T

    def slope(theta: np.ndarray) -> np.ndarray:
        missed = score - games * expit(theta[:, None] - theta[None, :])
        return missed.sum(axis=1) / len(frame) - theta.sum()

    theta = root(slope, np.zeros(m), tol=1e-14).x
    return dict(zip(map(str, names), (1000 + LOGIT * (theta - theta.mean())).tolist(), strict=True))


def timed(work: Callable[[Path], dict[str, float]], path: Path) -> tuple[float, dict[str, float]]:
    """Seconds of the process, and ratings."""
    begun = time.process_time()
    found = work(path)
    return time.process_time() - begun, found


class ArenaRank:
    """arena-rank in an interpreter that has it."""

    def __init__(self, python: str, path: Path) -> None:
        self.process = subprocess.Popen(
            [python, "-c", ARENA_RANK, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def rank(self) -> tuple[float, dict[str, float]]:
        """Seconds of its process, and its ratings."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        mean = statistics.fmean(found["ratings"].values())
        return found["seconds"], {k: v - mean + 1000 for k, v in found["ratings"].items()}


def has_arena_rank(python: str) -> bool:
    """Whether an interpreter has it."""
    return not subprocess.run([python, "-c", "import arena_rank"], capture_output=True).returncode


def apart(one: dict[str, float], two: dict[str, float]) -> float:
    """The greatest difference of two ratings, in points."""
    return max(abs(one[name] - two[name]) for name in one)


def main() -> int:
    """Run all, print, compare; 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with arena-rank")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battles.parquet"
        parquet.write_table(made(arguments.votes, arguments.models), path)
        ours(path)  # imports
        rivals: dict[str, Callable[[], tuple[float, dict[str, float]]]] = {}
        if has_arena_rank(arguments.python):
            rivals["arena-rank"] = ArenaRank(arguments.python, path).rank
        else:
            print("arena-rank is not installed: left out (--python)")
        rivals["FastChat's way"] = lambda: timed(fastchat, path)
        right = plain(path)
        mine: list[float] = []
        theirs: dict[str, list[float]] = {name: [] for name in rivals}
        differences = dict.fromkeys(rivals, 0.0)
        for _ in range(arguments.repeats):
            seconds, ratings = timed(ours, path)
            mine.append(seconds)
            off = apart(ratings, right)
            for name, run in rivals.items():
                seconds, found = run()
                theirs[name].append(seconds)
                differences[name] = apart(found, ratings)
        print(f"{arguments.votes:,} votes, {arguments.models} models: read, rated, with intervals")
        print(
            f"botchat         {statistics.median(mine):8.3f} s   from a plain fit: {off:.1e} points"
        )
        least = math.inf
        for name, seconds in theirs.items():
            ratios = [one / two for one, two in zip(seconds, mine, strict=True)]
            least = min(least, statistics.median(ratios))
            print(
                f"{name:15} {statistics.median(seconds):8.3f} s   x{statistics.median(ratios):.1f} "
                f"({min(ratios):.1f}-{max(ratios):.1f})   from ours: {differences[name]:.1e} points"
            )
        begun = time.perf_counter()
        command = [sys.executable, "-m", "botchat", "rank", str(path), "--out", f"{folder}/out"]
        subprocess.run([*command, "--json"], check=True, capture_output=True)
        print(
            f"botchat rank, all tables, figures, page: {time.perf_counter() - begun:.1f} s (clock)"
        )
    good = off < 1e-6 and least >= 5
    print("held" if good else "MISSED: 1e-6 points and 5 times the fastest rival")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
