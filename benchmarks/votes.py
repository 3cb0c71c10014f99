"""How fast and how right a million votes are ranked with intervals, beside other people's ways.

    python benchmarks/votes.py [--votes 1000000] [--models 100] [--repeats 3]

All read the same parquet of battles (`model_a`, `model_b`, `winner`) in the same run, and end with
Bradley-Terry ratings and 95 % intervals. Rivals:

- arena-rank, its sandwich intervals, where it is installed (``pip install arena-rank``). What it
  compiles on its first call is not counted.
- FastChat's way, written anew from its description: scikit-learn's logistic regression, without
  regularisation, on one row a pair and winner, weighted by how often it occurred, and a bootstrap
  of 100 resampled sets of votes.

All take turns in every repeat; times are CPU seconds of the process. A ratio is the rival's time to
ours. Fails where ours takes more than `SECONDS`, or is more than 1e-6 points from a plain fit,
scipy's root of the slope of the log-likelihood. Last, `botchat rank` itself, with all its tables,
figures and the page.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

SECONDS, POINTS = 3.0, 1e-6
RESAMPLES = 100
LOGIT = 400 / math.log(10)


def battles(votes: int, models: int) -> pd.DataFrame:
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
    return pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": winner})


def ours(path: Path) -> pd.Series:
    """Read, count, fit, with intervals and ranks."""
    from botchat.boards.votes import vote_comparisons
    from botchat.importers.vote_files import votes_in, votes_of
    from botchat.ratings.bradley_terry import fit, ranks_from_order

    fitted = fit(vote_comparisons(votes_of(votes_in(path)).votes))
    assert np.isfinite(fitted.low).all()
    assert len(ranks_from_order(fitted.significantly_better)) == 2
    return pd.Series(fitted.rating, fitted.models)


def arena_rank(path: Path) -> pd.Series:
    """arena-rank, as its manual shows it."""
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    frame = pd.read_parquet(path).replace({"winner": {"tie (bothbad)": "tie"}})
    data = PairDataset.from_pandas(frame)
    fitted = BradleyTerry(n_competitors=len(data.competitors)).compute_ratings_and_cis(data)
    return pd.Series(np.asarray(fitted["ratings"]), [*map(str, fitted["competitors"])])


def counts(path: Path) -> tuple[pd.Index, np.ndarray]:
    """Names, and losses, ties and wins of the row's model as the first, shape (m, m, 3)."""
    frame = pd.read_parquet(path)
    codes, names = pd.factorize(pd.concat([frame["model_a"], frame["model_b"]]), sort=True)
    (first, second), m = np.split(codes, 2), len(names)
    result = frame["winner"].map({"model_a": 2, "model_b": 0}).fillna(1).to_numpy(np.intp)
    return names, np.bincount((first * m + second) * 3 + result, minlength=3 * m * m).reshape(
        m, m, 3
    )


def fastchat(path: Path) -> pd.Series:
    """Logistic regression on counts, and on those of resampled votes."""
    from sklearn.linear_model import LogisticRegression

    names, counted = counts(path)
    first, second = np.nonzero(~np.eye(len(names), dtype=bool))
    design = np.tile(np.eye(len(names))[first] - np.eye(len(names))[second], (2, 1))
    sides = np.repeat([1, 0], len(first))

    def fitted(table: np.ndarray) -> np.ndarray:
        lost, tied, won = table[first, second].T
        weight = np.concatenate([won + tied / 2, lost + tied / 2])
        kept = weight > 0
        model = LogisticRegression(fit_intercept=False, C=np.inf, tol=1e-9, max_iter=1000)
        model.fit(design[kept], sides[kept], sample_weight=weight[kept])
        return model.coef_[0]

    rng, total = np.random.default_rng(0), int(counted.sum())
    drawn = rng.multinomial(total, counted.ravel() / total, RESAMPLES).reshape(-1, *counted.shape)
    ends = np.percentile([*map(fitted, drawn)], (2.5, 97.5), axis=0)
    assert np.isfinite(ends).all()
    return pd.Series(LOGIT * fitted(counted), names)


def plain(path: Path) -> pd.Series:
    """A plain fit: where every model's score is what its ratings expect."""
    from scipy.optimize import root
    from scipy.special import expit

    names, counted = counts(path)
    score = counted @ [0, 0.5, 1] + (counted @ [1, 0.5, 0]).T
    games = score + score.T

    def slope(theta: np.ndarray) -> np.ndarray:
        missed = score - games * expit(theta[:, None] - theta[None, :])
        return missed.sum(axis=1) / counted.sum() - theta.sum()

    return pd.Series(LOGIT * root(slope, np.zeros(len(names)), tol=1e-14).x, names)


def apart(ratings: pd.Series, others: pd.Series) -> float:
    """The greatest difference of two ratings, in points about their means."""
    return float(((ratings - ratings.mean()) - (others - others.mean())).abs().max())


def main() -> int:
    """Run all, print, compare; 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    ways: dict[str, Callable[[Path], pd.Series]] = {"BotChat": ours, "FastChat's way": fastchat}
    if importlib.util.find_spec("arena_rank"):
        ways["arena-rank"] = arena_rank
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    differences: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battles.parquet"
        battles(arguments.votes, arguments.models).to_parquet(path)
        right = plain(path)
        for name in ("BotChat", "arena-rank"):  # imports and compiles
            ways.get(name, ours)(path)
        for _ in range(arguments.repeats):
            for name, way in ways.items():
                begun = time.process_time()
                ratings = way(path)
                seconds[name].append(time.process_time() - begun)
                differences[name] = apart(ratings, right)
        print(f"{arguments.votes:,} votes, {arguments.models} models: read, rated, with intervals")
        for name, taken in seconds.items():
            ratios = [one / two for one, two in zip(taken, seconds["BotChat"], strict=True)]
            print(
                f"{name:15} {statistics.median(taken):8.3f} s   x{statistics.median(ratios):.1f} "
                f"({min(ratios):.1f}-{max(ratios):.1f})   "
                f"from a plain fit: {differences[name]:.1e} points"
            )
        begun = time.perf_counter()
        command = [sys.executable, "-m", "botchat", "rank", str(path), "--out", f"{folder}/out"]
        subprocess.run([*command, "--json"], check=True, capture_output=True)
        print(f"rank, with every file: {time.perf_counter() - begun:.1f} s (clock)")
    held = differences["BotChat"] < POINTS and statistics.median(seconds["BotChat"]) <= SECONDS
    print("held" if held else f"MISSED: {POINTS:g} points and {SECONDS:g} s")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
