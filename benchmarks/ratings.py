"""How fast bootstrap Elo is, beside other people's ways of making it.

    python benchmarks/ratings.py [--repeats 3]

Data: the published N = 8 rates in leaderboards/botchat-2023, 40,404 comparisons of 14 models; the
work is the paper's whole protocol, 10 runs of 1000 shuffles. The rival is FastChat's vectorised
bootstrap, written anew from what it does (one numpy step a game for all resamples at once), which
does a part of the work and is scaled up. Both take turns; times are CPU seconds. Fails below `AIM`
times FastChat's way, or where the ratings of the same orders differ. `votes.py` does the same for
Bradley-Terry.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RATES = ROOT / "leaderboards" / "botchat-2023" / "arena_n8.csv"
RUNS, SHUFFLES = 10, 1000
LOGIT = 400 / math.log(10)
AIM = 20


def stopwatch(work: Callable[[], object]) -> float:
    """CPU seconds that a call takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def comparisons():
    """The benchmark's comparisons."""
    from botchat.importers.tables import rows
    from botchat.ratings.comparisons import comparisons_from_rates

    return comparisons_from_rates(rows(RATES.read_bytes(), RATES.name), 444, RATES.name)


def fastchat_elo(data, n_resamples: int, seed: int = 0) -> np.ndarray:
    """Median ratings of resamples, one numpy step a game."""
    from scipy.special import expit

    pairs = np.stack([data.first, data.second], axis=1).astype(np.int32)
    n, rows = len(data), np.arange(n_resamples)
    rating = np.zeros((n_resamples, len(data.models)))
    for game in np.random.RandomState(seed).randint(0, n, (n, n_resamples)):
        first, second = pairs[game, 0], pairs[game, 1]
        expected = expit((rating[rows, first] - rating[rows, second]) / LOGIT)
        change = 32 * (data.result[game] - expected)
        rating[rows, first] += change
        rating[rows, second] -= change
    return np.median(1000 + rating, axis=0)


def plain_elo(data, orders: np.ndarray) -> np.ndarray:
    """Final ratings of each order by the definition's loop."""
    ends = []
    first, second, result = (c.tolist() for c in (data.first, data.second, data.result))
    for order in orders.tolist():
        rating = [1000.0] * len(data.models)
        for game in order:
            i, j = first[game], second[game]
            expected = 1 / (1 + 10 ** ((rating[j] - rating[i]) / 400))
            change = 32 * (result[game] - expected)
            rating[i] += change
            rating[j] -= change
        ends.append(rating)
    return np.array(ends)


def main() -> None:
    """Compare ratings, then times."""
    from botchat.ratings.elo import EloSettings, bootstrap_elo, play

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    data = comparisons()
    print(f"{len(data):,} comparisons of {len(data.models)} models, Elo of {RUNS} x {SHUFFLES}")
    rng = np.random.default_rng(1)
    orders = np.stack([rng.permutation(len(data)) for _ in range(3)])
    level = np.zeros(len(data.models))
    apart = np.abs(play(data, orders, EloSettings(), level) - plain_elo(data, orders)).max()
    print(f"greatest difference to the plain loop: {apart:.1e} points")
    assert apart <= 1e-9
    ways: dict[str, tuple[Callable[[], object], float]] = {
        "botchat": (lambda: bootstrap_elo(data), 1),
        "FastChat's way": (lambda: fastchat_elo(data, SHUFFLES), RUNS),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, (work, times) in ways.items():
            seconds[name].append(times * stopwatch(work))
    ratios = {}
    for name, taken in seconds.items():
        each = [theirs / ours for theirs, ours in zip(taken, seconds["botchat"], strict=True)]
        ratios[name] = statistics.median(each)
        print(
            f"  {name:16s} {statistics.median(taken):8.2f} s of CPU   x {ratios[name]:7.2f}  "
            f"[{min(each):.2f} .. {max(each):.2f}]"
        )
    if ratios["FastChat's way"] < AIM:
        sys.exit(f"less than {AIM} times as fast as FastChat's way")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
