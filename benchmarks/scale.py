"""What an adaptive Arena takes with 14, 100 and 1,000 models: calls, time, memory.

    python benchmarks/scale.py [--models 14 100 1000] [--seed 0]
    python benchmarks/scale.py --choice --models 200 400 700 1000

The models are made up. On every seed each has a quality: its strength (normal, standard deviation
110 Elo), plus how well its dialogue came out there (shared by all its pairs), plus what this pair
has of its own (misfit), plus what the judge makes of these two dialogues (shared by both orders)
and of this order. The better one wins; where they are close, it is a tie. So verdicts on one seed
hang together, and pairs do not follow one number a model. The truth is the Bradley-Terry fit of the
whole board, every comparison of it, and every row is a process of its own.

With ``--choice`` only a few batches are chosen: CPU seconds a batch, peak memory, and a digest of
what was chosen, which a faster way must not change. Fails above `CHOICE` at 1,000 models.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import multiprocessing
import resource
import sys
import time
from dataclasses import dataclass

import numpy as np

from botchat.ratings.adaptive import AdaptiveDesign, AdaptiveSettings, Target
from botchat.ratings.bradley_terry import maximise

LOGIT = 400 / math.log(10)
N_SEEDS = 222
STRENGTH, DIALOGUE, MISFIT, JUDGE, ORDER, TIE = 1.1, 0.8, 0.15, 0.8, 0.6, 0.9
"""Standard deviations of the parts of a difference in quality, and below which one it is a tie; a
judge's own taste makes the score's slope flatter than the strengths' would be."""
TARGETS = {14: [(10, 2), (20, 0)], 100: [(20, 50)], 1000: [(20, 5000)]}
"""Models -> (gap, swaps): nearly all pairs, all but 1 %."""
MANY = 500
CHOICE = 1.0, 300
"""CPU seconds and MB of a choice among 1,000 models."""


@dataclass(frozen=True)
class World:
    """Made-up models and all verdicts on them, none of which is stored."""

    quality: np.ndarray
    """Of each model on each seed, shape (m, seeds)."""
    misfit: np.ndarray
    """Of each pair, shape (m, m), antisymmetric."""
    tie: float = TIE
    position: float = 0.0
    """What being shown first adds."""
    key: int = 0
    """Of the judge's noise; the same in all worlds of the table in docs/adaptive.md."""

    @classmethod
    def of(
        cls,
        m: int,
        seed: int,
        *,
        n_seeds: int = N_SEEDS,
        strength: float | np.ndarray = STRENGTH,
        dialogue: float = DIALOGUE,
        misfit: float = MISFIT,
        circles: float = 0.0,
        circle: int = 3,
        **verdicts: float,
    ) -> World:
        """A world of m models.

        ``strength``: standard deviation, or each model's. ``circles``: each ``circle`` models in
        turn beat the next half of their circle by so much beyond their strengths.
        """
        rng = np.random.default_rng([seed, m])
        strengths = rng.normal(0, strength, m) if np.ndim(strength) == 0 else strength
        pairs = np.triu(rng.normal(0, misfit, (m, m)), 1)
        quality = strengths[:, None] + rng.normal(0, dialogue, (m, n_seeds))
        i, j = np.indices((m, m))
        ahead, behind = (j - i) % circle, (i - j) % circle
        beats = np.where(i // circle == j // circle, np.sign(behind - ahead), 0)
        return cls(quality, pairs - pairs.T + circles * beats, **verdicts)

    def result(self, first: np.ndarray, second: np.ndarray, seed: np.ndarray) -> np.ndarray:
        """1, ½ or 0 for ``first``; the same whenever it is asked."""
        m, n_seeds = self.quality.shape
        low, high = np.minimum(first, second), np.maximum(first, second)
        case = ((low * m + high) * n_seeds + seed + self.key * m * m * n_seeds).astype(np.uint64)
        liked = JUDGE * noise(3 * case) * np.where(first < second, 1, -1)
        shown = ORDER * noise(3 * case + np.where(first < second, 1, 2).astype(np.uint64))
        edge = self.quality[first, seed] - self.quality[second, seed] + self.misfit[first, second]
        edge = edge + liked + shown + self.position
        return np.where(np.abs(edge) < self.tie, 0.5, (edge > 0).astype(float))

    def all_results(self) -> np.ndarray:
        """Of every model beside every other, on every seed, shape (m, m, seeds); nan of itself."""
        m, n_seeds = self.quality.shape
        result = self.result(*np.indices((m, m, n_seeds)))
        result[np.arange(m), np.arange(m)] = np.nan
        return result

    def ratings(self) -> np.ndarray:
        """Of the whole board, a model's pairs at a time."""
        m, n_seeds = self.quality.shape
        score = np.zeros((m, m))
        for i in range(m):
            j, seed = (part.ravel() for part in np.indices((m, n_seeds)))
            there = j > i
            j, seed = j[there], seed[there]
            mine = np.full_like(j, i)
            won = self.result(mine, j, seed) + 1 - self.result(j, mine, seed)
            score[i] += np.bincount(j, won, m)
            score[:, i] += np.where(np.arange(m) > i, 2 * n_seeds, 0) - np.bincount(j, won, m)
        games = 2.0 * n_seeds * (1 - np.eye(m))
        return 1000 + LOGIT * maximise(games[None], score[None])[0]


def noise(key: np.ndarray) -> np.ndarray:
    """Logistic noise of standard deviation 1 for every key (splitmix64)."""
    z = (key + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54
    return np.log(uniform / (1 - uniform)) * math.sqrt(3) / math.pi


def run(m: int, target: Target, design: str, seed: int) -> str:
    """One row of the table."""
    from simulate import order_kept, swaps  # and all that it reads a board with

    world, all_seeds = World.of(m, seed), np.arange(N_SEEDS)
    truth = world.ratings()
    began, waited, looks = time.perf_counter(), 0.0, 0
    names = [f"model-{i}" for i in range(m)]
    # A look at 1,000 models takes seconds, so there are fewer.
    batch = m * 10 if m >= MANY else None
    settings = AdaptiveSettings(target, design=design, seed=seed, batch=batch)
    asking = AdaptiveDesign(names, lambda *_: all_seeds, settings)
    while (asked := asking.ask()) is not None:
        judging = time.perf_counter()
        result = world.result(asked.first, asked.second, asked.seed)
        waited += time.perf_counter() - judging
        asking.tell(result)
        looks += 1
    state = asking.state
    seconds = time.perf_counter() - began - waited
    wrong = swaps(state.rating[None], truth, target.gap)[0]
    tau = order_kept(state.rating[None], truth)[0]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| {m:,} | {design} | {target.gap:g} | {target.swaps:,} | {state.made:,} "
        f"| {100 * state.made / state.population:.2f} % | {2 * state.made / m:,.0f} | {wrong:,} "
        f"| {tau:.3f} | {looks} | {seconds:,.1f} s | {memory:,.0f} MB |"
    )


def choose(m: int, seed: int) -> tuple[str, bool]:
    """A line on four batches after the first, and whether they took too much."""
    world, seeds, spent, said = World.of(m, seed), np.arange(N_SEEDS), [], hashlib.sha256()
    target = Target(20, m * (m - 1) // 200)
    names = [str(n) for n in range(m)]
    design = AdaptiveDesign(names, lambda *_: seeds, AdaptiveSettings(target=target))
    for _ in range(5):
        before = time.process_time()
        asked = design.ask()
        spent.append(time.process_time() - before)
        assert asked is not None
        for told in (asked.first, asked.second, asked.seed):
            said.update(told.astype(np.int64).tobytes())
        design.tell(world.result(asked.first, asked.second, asked.seed))
    cpu = float(np.median(spent[1:]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line = f"{m:5} models: {cpu:5.2f} s CPU a batch, {memory} MB, chosen {said.hexdigest()[:12]}"
    return line, m == 1000 and (cpu > CHOICE[0] or memory > CHOICE[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--choice", action="store_true", help="only a few batches")
    arguments = parser.parse_args()
    if arguments.choice:
        slow = False
        for m in arguments.models:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                line, above = pool.apply(choose, (m, arguments.seed))
            print(line, flush=True)
            slow |= above
        sys.exit(f"above {CHOICE[0]:g} s or {CHOICE[1]} MB" if slow else None)
    print(
        "| models | design | gap | swaps | calls | share | a model | wrong | tau | batches |",
        end="",
    )
    print(" sampler | memory |\n" + "| ---: | --- " + "| ---: " * 10 + "|")
    for m in arguments.models:
        for gap, most in TARGETS[m]:
            for design in ("adaptive", "uniform") if m < MANY else ("adaptive",):
                # A process of its own: its peak of memory is its own too.
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    row = (m, Target(gap, most), design, arguments.seed)
                    print(pool.apply(run, row), flush=True)


if __name__ == "__main__":
    main()
