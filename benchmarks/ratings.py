"""How fast and how right the ratings are, beside other people's ways of making them.

    python benchmarks/ratings.py [--quick] [--repeats 5]

Data: the published N = 8 rates in leaderboards/botchat-2023, 40,404 comparisons of 14 models; Elo
is the paper's whole protocol, 10 runs of 1000 shuffles. Rivals:

- FastChat's vectorised bootstraps, written anew from what they do: Elo as one numpy step a game
  for all resamples at once; Bradley-Terry by scipy's L-BFGS on reweighted result counts.
- the definition's loop in plain Python, evalica, and, where installed, choix and arena-rank
  (``pip install choix arena-rank``; the latter's bootstrap is left out: it hangs).

Rivals that would take minutes play fewer shuffles and are scaled up; those times are marked ~.
All take turns in every repeat. A ratio is the rival's time to ours: median, least and greatest.
The numbers must agree, and Elo in one process be ``AIM`` times as fast as FastChat's way,
or the benchmark fails.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RATES = ROOT / "leaderboards" / "botchat-2023" / "arena_n8.csv"
RUNS, SHUFFLES, RESAMPLES = 10, 1000, 1000
LOGIT = 400 / math.log(10)
AIM = 38


@dataclass
class Rival:
    """One way of making a rating.

    ``share``: of the whole work that it does. ``start``: what it does once, however much work.
    """

    name: str
    work: Callable[[], object]
    share: float = 1.0
    start: Callable[[], object] | None = None

    def seconds(self) -> float:
        """Time of the whole work, scaled up from the share that is done."""
        done = stopwatch(self.work)
        if self.share == 1:
            return done
        start = stopwatch(self.start) if self.start else 0.0
        return start + (done - start) / self.share


def stopwatch(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a call takes."""
    begun = clock()
    work()
    return clock() - begun


def comparisons():
    """The benchmark's comparisons."""
    from botchat.importers.tables import rows
    from botchat.ratings.rate_table import comparisons_from_rates

    return comparisons_from_rates(rows(RATES.read_bytes(), RATES.name), 444, RATES.name)


def fastchat_elo(data, runs: int, n_resamples: int, seed: int = 0) -> np.ndarray:
    """Mean over runs of median ratings of resamples, one numpy step a game."""
    from scipy.special import expit

    pairs = np.stack([data.first, data.second], axis=1).astype(np.int32)
    n, m = len(data), len(data.models)
    rng = np.random.RandomState(seed)
    rows = np.arange(n_resamples)
    medians = []
    for _ in range(runs):
        games = rng.randint(0, n, (n, n_resamples))
        rating = np.zeros((n_resamples, m))
        for game in games:
            first, second = pairs[game, 0], pairs[game, 1]
            expected = expit((rating[rows, first] - rating[rows, second]) / LOGIT)
            change = 32 * (data.result[game] - expected)
            rating[rows, first] += change
            rating[rows, second] -= change
        medians.append(np.median(1000 + rating, axis=0))
    return np.mean(medians, axis=0)


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


def evalica_columns(data) -> tuple[list[str], list[str], list]:
    """Comparisons as evalica takes them."""
    import evalica

    verdict = {1.0: evalica.Winner.X, 0.5: evalica.Winner.Draw, 0.0: evalica.Winner.Y}
    names = np.array(data.models)
    return (
        names[data.first].tolist(),
        names[data.second].tolist(),
        [verdict[result] for result in data.result.tolist()],
    )


def evalica_elo(data, order: np.ndarray) -> np.ndarray:
    """Final ratings of one order by evalica."""
    import evalica

    columns = [[column[i] for i in order.tolist()] for column in evalica_columns(data)]
    scores = evalica.elo(*columns, initial=1000, base=10, scale=400, k=32).scores
    return np.array([scores[name] for name in data.models])


def evalica_bradley_terry(data, columns) -> np.ndarray:
    """Bradley-Terry ratings by evalica, average 1000."""
    import evalica

    scores = evalica.bradley_terry(*columns, tolerance=1e-14, limit=100_000).scores
    return average_1000(np.log([scores[name] for name in data.models]))


def average_1000(logits: np.ndarray) -> np.ndarray:
    """Logits on the Elo scale."""
    return 1000 + LOGIT * (logits - logits.mean())


def fastchat_bradley_terry(data, n_resamples: int, seed: int = 0) -> np.ndarray:
    """Ratings of the data and of resamples, L-BFGS on the counts of (pair, result)."""
    from scipy.optimize import minimize
    from scipy.special import expit

    m, n = len(data.models), len(data)
    kinds, counts = np.unique(
        np.stack([data.first, data.second, (2 * data.result).astype(np.intp)], axis=1),
        axis=0,
        return_counts=True,
    )
    first, second, result = kinds[:, 0], kinds[:, 1], kinds[:, 2] / 2

    def loss_and_slope(theta: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
        rate = expit(theta[first] - theta[second])
        loss = -(weight * (result * np.log(rate) + (1 - result) * np.log1p(-rate))).sum()
        residual = weight * (rate - result)
        slope = np.bincount(first, residual, m) - np.bincount(second, residual, m)
        return loss, slope

    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=n_resamples)
    fits = [
        minimize(
            loss_and_slope,
            np.zeros(m),
            args=(weight / n,),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": 1e-9, "ftol": 1e-15},
        ).x
        for weight in [counts, *drawn]
    ]
    return np.array([average_1000(theta) for theta in fits])


def elo_rivals(data, quick: bool) -> tuple[Rival, list[Rival]]:
    """Ours and the others, each making ``RUNS`` x ``SHUFFLES`` shuffles or a share of them."""
    from botchat.ratings.elo import bootstrap_elo

    rng = np.random.default_rng(0)
    orders = np.stack([rng.permutation(len(data)) for _ in range(3)])
    share = 1 / RUNS if quick else 1.0
    return Rival("botchat", lambda: bootstrap_elo(data)), [
        Rival("FastChat's way", lambda: fastchat_elo(data, int(RUNS * share), SHUFFLES), share),
        Rival("plain loop", lambda: plain_elo(data, orders), len(orders) / RUNS / SHUFFLES),
        Rival("evalica", lambda: evalica_elo(data, orders[0]), 1 / RUNS / SHUFFLES),
    ]


def process_rivals(quick: bool) -> tuple[Rival, list[Rival]]:
    """Whole processes, from the interpreter's start to ratings printed."""
    share = 1 / RUNS if quick else 1.0
    started = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]\n"
    ours = "import ratings; from botchat.ratings.elo import bootstrap_elo\n"
    ours += "print(bootstrap_elo(ratings.comparisons()).rating)"
    load = "import pandas, scipy.optimize, ratings; data = ratings.comparisons()\n"
    theirs = load + f"print(ratings.fastchat_elo(data, {int(RUNS * share)}, {SHUFFLES}))"

    def run(code: str) -> Callable[[], object]:
        command = [sys.executable, "-c", started + code]
        return lambda: subprocess.run(command, check=True, capture_output=True)

    return Rival("botchat", run(ours)), [Rival("FastChat's way", run(theirs), share, run(load))]


def bradley_terry_rivals(data, quick: bool) -> tuple[Rival, list[Rival]]:
    """Ratings with 95 % intervals from ``RESAMPLES`` resamples."""
    from botchat.ratings.bradley_terry import fit

    few = 20 if quick else 200
    columns = evalica_columns(data)

    return Rival("botchat", lambda: fit(data)), [
        Rival("FastChat's way", lambda: fastchat_bradley_terry(data, few), few / RESAMPLES),
        Rival("evalica", lambda: evalica_bradley_terry(data, columns), 1 / RESAMPLES),
        *choix_rivals(data),
    ]


def choix_rivals(data) -> list[Rival]:
    """Choix's iterative Luce spectral ranking, which is maximum likelihood, if installed."""
    try:
        import choix
    except ImportError:
        print("choix is not installed: left out")
        return []
    work = lambda: choix.ilsr_pairwise_dense(scores(data), tol=1e-12)  # noqa: E731
    return [Rival("choix", work, 1 / RESAMPLES)]


def scores(data) -> np.ndarray:
    """What the row's model scored against the column's."""
    m = len(data.models)
    table = np.zeros((m, m))
    np.add.at(table, (data.first, data.second), data.result)
    np.add.at(table, (data.second, data.first), 1 - data.result)
    return table


def times_fastchat(data) -> float:
    """How many times FastChat's way takes our CPU seconds: the median of three turns."""
    from botchat.ratings.elo import bootstrap_elo

    ratios = []
    for _ in range(3):
        ours = stopwatch(lambda: bootstrap_elo(data), time.process_time)
        theirs = stopwatch(lambda: fastchat_elo(data, 1, SHUFFLES), time.process_time)
        ratios.append(RUNS * theirs / ours)
    return statistics.median(ratios)


def race(title: str, rivals: tuple[Rival, list[Rival]], repeats: int) -> None:
    """Time all in turn and print medians and ratios to the first."""
    ours, others = rivals
    taken: dict[str, list[float]] = {rival.name: [] for rival in [ours, *others]}
    for _ in range(repeats):
        for rival in [ours, *others]:
            taken[rival.name].append(rival.seconds())
    print(f"\n{title}")
    for rival in [ours, *others]:
        seconds = taken[rival.name]
        ratios = sorted(b / a for a, b in zip(taken[ours.name], seconds, strict=True))
        mark = "" if rival.share == 1 else "~"
        print(
            f"  {rival.name:24s} {mark + format(statistics.median(seconds), '.4g'):>9s} s"
            f"   x {statistics.median(ratios):8.2f}  [{ratios[0]:.2f} .. {ratios[-1]:.2f}]"
        )


def agree(what: str, ours: np.ndarray, theirs: np.ndarray, within: float) -> None:
    """Print and assert the greatest difference."""
    worst = float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())
    print(f"  {what:58s} {worst:8.2g}  (at most {within:g})")
    assert worst <= within, f"{what}: {worst} > {within}"


def check_agreement(data) -> None:
    """The same numbers from all, in Elo points."""
    from botchat.ratings.bradley_terry import fit
    from botchat.ratings.elo import EloSettings, play

    print("\nAgreement: greatest difference in points")
    rng = np.random.default_rng(1)
    orders = np.stack([rng.permutation(len(data)) for _ in range(3)])
    ends = play(data, orders, EloSettings())
    agree("Elo of shared shuffles: plain loop", ends, plain_elo(data, orders), 1e-9)
    agree("Elo of a shared shuffle: evalica", ends[0], evalica_elo(data, orders[0]), 1e-9)
    result = fit(data)
    evalica = evalica_bradley_terry(data, evalica_columns(data))
    agree("Bradley-Terry: evalica", result.rating, evalica, 1e-6)
    fastchat = fastchat_bradley_terry(data, 200)
    agree("Bradley-Terry: FastChat's way", result.rating, fastchat[0], 1e-2)
    agree("standard errors: FastChat's way", fastchat[1:].std(axis=0), result.std_error, 0.8)
    try:
        import choix
    except ImportError:
        pass
    else:
        theirs = average_1000(choix.ilsr_pairwise_dense(scores(data), tol=1e-12))
        agree("Bradley-Terry: choix", result.rating, theirs, 1e-6)
    check_arena_rank(data, result)


def check_arena_rank(data, result) -> None:
    """arena-rank's ratings and sandwich intervals, if installed; its time with compilation."""
    try:
        import pandas as pd
        from arena_rank.models.bradley_terry import BradleyTerry
        from arena_rank.utils.data_utils import PairDataset
    except ImportError:
        print("  arena-rank is not installed: left out")
        return
    names = np.array(data.models)
    winner = np.array(["model_b", "tie", "model_a"])[(2 * data.result).astype(int)]
    frame = pd.DataFrame(
        {"model_a": names[data.first], "model_b": names[data.second], "winner": winner}
    )
    begun = time.perf_counter()
    dataset = PairDataset.from_pandas(frame)
    fitted = BradleyTerry(len(names)).compute_ratings_and_cis(dataset)
    taken = time.perf_counter() - begun
    half = (np.asarray(fitted["rating_upper"]) - np.asarray(fitted["rating_lower"])) / 2
    theirs = np.asarray(fitted["ratings"])
    agree("Bradley-Terry: arena-rank", result.rating, theirs + 1000 - theirs.mean(), 1e-2)
    agree("sandwich intervals: arena-rank", (result.high - result.low) / 2, half, 1e-2)
    print(f"  (arena-rank took {taken:.2f} s for one fit with sandwich, compilation included)")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the slow rivals' work")
    parser.add_argument("--repeats", type=int, default=5, help="turns of every rival (default 5)")
    options = parser.parse_args()
    repeats = min(options.repeats, 2) if options.quick else options.repeats
    data = comparisons()
    print(f"{len(data)} comparisons of {len(data.models)} models, {repeats} turns each")
    check_agreement(data)
    race(
        f"Bootstrap Elo {RUNS} x {SHUFFLES}, in a process", elo_rivals(data, options.quick), repeats
    )
    race("The same as a whole process", process_rivals(options.quick), repeats)
    race(
        f"Bradley-Terry and intervals from {RESAMPLES} resamples",
        bradley_terry_rivals(data, options.quick),
        repeats,
    )
    times = times_fastchat(data)
    print(f"\nElo in one process is {times:.1f} times as fast as FastChat's way, in CPU seconds")
    if times < AIM:
        sys.exit(f"less than {AIM} times")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
