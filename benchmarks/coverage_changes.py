"""Families of `coverage.py`: what changed between two boards of the same ChatSEEDs (`compare`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
from coverage_lines import Measured, covered

from botchat.measures.changes import Change, Estimate, correlation, holm
from botchat.measures.intervals import mean, of_shares
from botchat.ratings.bradley_terry import fit, influence
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import Floats

ALPHA = 0.05


def outcomes(
    rng: np.random.Generator, before: float, after: float, alike: float, copied: float, n: int
) -> tuple[Floats, Floats]:
    """Results of a model on the same seeds twice, shape (n,); seeds are hard for both alike.

    ``alike``: correlation of two dialogues of a seed. ``copied``: share of dialogues that are the
    same in both, of equal rates only.
    """
    hard = rng.normal(size=n) * math.sqrt(alike)
    of_own = math.sqrt(1 - alike)
    limits = [_normal_quantile(rate) for rate in (before, after)]
    one, other = (hard + of_own * rng.normal(size=n) < limit for limit in limits)
    if copied:
        other = np.where(rng.random(n) < copied, one, other)
    return one.astype(np.float64), other.astype(np.float64)


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def share(results: Floats) -> Estimate:
    """A share of independent dialogues, with its interval."""
    low, high = of_shares(np.array([results.mean()]), np.array([1 / len(results)]))
    return Estimate(float(results.mean()), float(low[0]), float(high[0]))


def changes() -> Iterator[Measured]:
    """`compare`: change of a rate, paired by seed; beside it as if boards were strangers."""
    worlds = ((0.5, 0.5), (0.5, 0.4), (0.9, 0.9), (0.95, 0.8), (0.3, 0.45))
    for n, (before, after), (alike, copied) in product(
        (20, 80, 300), worlds, ((0.0, 0.0), (0.4, 0.0), (0.8, 0.0), (0.4, 0.8))
    ):
        if copied and before != after:
            continue
        rng = np.random.default_rng([n, round(100 * before), round(100 * after), int(10 * alike)])
        paired, strangers = [], []
        for _ in range(600):
            one, other = outcomes(rng, before, after, alike, copied, n)
            for found, r in ((paired, correlation(one, other)), (strangers, 0.0)):
                change = Change(share(one), share(other), r)
                found.append((after - before, change.low, change.high))
        world = f"{before:.2f} to {after:.2f}, alike {alike:.1f}, copied {copied:.1f}"
        # Of few seeds no interval of few values holds everywhere.
        stated = 0.93 if n == 20 else 0.95
        yield covered("rate, change by seed", world, n, iter(paired), stated)
        yield covered("  as of strangers", world, n, iter(strangers), 0)


def false_alarms() -> Iterator[Measured]:
    """`compare --gate`: five models that did not change; how often none is blamed."""
    rates = (0.15, 0.3, 0.5, 0.7, 0.9)
    for n, (alike, copied) in product((20, 80, 300), ((0.0, 0.0), (0.4, 0.0), (0.4, 0.8))):
        rng = np.random.default_rng([n, int(10 * alike), int(10 * copied)])
        quiet, runs = 0, 600
        for _ in range(runs):
            p = []
            for rate in rates:
                one, other = outcomes(rng, rate, rate, alike, copied, n)
                p.append(Change(share(one), share(other), correlation(one, other)).fell)
            quiet += min(holm(p)) > ALPHA
        world = f"5 models, alike {alike:.1f}, copied {copied:.1f}"
        yield Measured("gate, no false alarm", world, n, 1 - ALPHA, quiet, runs, math.nan)


def rating_changes() -> Iterator[Measured]:
    """`compare`: Bradley-Terry of models on the same seeds, judged twice."""
    skill = np.array([-0.8, -0.3, 0.0, 0.4, 0.7])
    pairs = np.array([p for a, b in combinations(range(5), 2) for p in ((a, b), (b, a))])
    for n, alike in product((30, 100), (0.0, 1.0)):
        rng = np.random.default_rng([n, int(alike)])
        first, second = (np.tile(side, n) for side in pairs.T)
        seed = np.repeat(np.arange(n), len(pairs))
        ends, quiet, runs = [], 0, 150
        for _ in range(runs):
            # A model may be good at a seed; that stays.
            good = skill + alike * rng.normal(size=(n, 5))
            made = [
                _rated(rng, good[seed, first] - good[seed, second], first, second, seed)
                for _ in range(2)
            ]
            found = [
                Change(before, after, correlation(*(moves[:, i] for _, moves in made)))
                for i, (before, after) in enumerate(zip(*(one for one, _ in made), strict=True))
            ]
            ends.append((0.0, found[3].low, found[3].high))
            quiet += min(holm([one.fell for one in found])) > ALPHA
        world = f"5 models, a seed's own strength {alike:.1f}"
        yield covered("rating, change by seed", world, n, iter(ends), 0.95)
        yield Measured("gate, no false alarm", world, n, 1 - ALPHA, quiet, runs, math.nan)


def _rated(
    rng: np.random.Generator, lead: Floats, first: Floats, second: Floats, seed: Floats
) -> tuple[list[Estimate], Floats]:
    won = rng.random(len(first)) < 1 / (1 + np.exp(-lead))
    made = Comparisons(tuple("abcde"), first, second, won.astype(float), seed)
    fitted = fit(made)
    told = zip(fitted.rating, fitted.low, fitted.high, strict=True)
    return [Estimate(*map(float, one)) for one in told], influence(made, fitted)[1]


# ------------------------------------------------------------- by which number a model falls

N = 16
"""Utterances of a dialogue, the first two of which are people's."""

PUBLISHED = {
    "GPT-4": (0.861, 0.651, 1167),
    "Vicuna-13B": (0.804, 0.550, 1113),
    "Qwen-14B": (0.775, 0.260, 1047),
    "Vicuna-7B": (0.647, 0.294, 1051),
    "ChatGLM2-6B": (0.430, 0.053, 949),
    "LLaMA2-13B": (0.234, 0.077, 843),
}
"""Success @8 and @16, and Elo @16, of models on BotChat's leaderboard."""

FALLS = (
    ("GPT-4", "Vicuna-13B"),
    ("Vicuna-13B", "Vicuna-7B"),
    ("GPT-4", "Qwen-14B"),
    ("Vicuna-7B", "ChatGLM2-6B"),
    ("ChatGLM2-6B", "LLaMA2-13B"),
)

OPPONENTS = ("GPT-4", "Qwen-14B", "Vicuna-7B", "LLaMA2-13B")
TIE, OF_DIALOGUE = 1.0, 0.7
"""Logits within which an Arena ties (46 % of published comparisons); spread of dialogues."""


def accused(good: Floats, name: str) -> Floats:
    """Utterance accused first, shape of ``good`` (standard normal): Weibull through both rates."""
    from scipy.stats import norm

    early, late, _ = PUBLISHED[name]
    shape = math.log(math.log(late) / math.log(early)) / math.log((N - 2) / (8 - 2))
    scale = (N - 2) / (-math.log(late)) ** (1 / shape)
    return 2 + np.ceil(scale * (-norm.logsf(good)) ** (1 / shape))


def arena(rng: np.random.Generator, good: Floats, name: str, others: Floats) -> Floats:
    """Mean result of each seed over opponents and orders, 0 to 1, shape (seeds,)."""
    points = math.log(10) / 400
    lead = np.array([PUBLISHED[name][2] - PUBLISHED[other][2] for other in OPPONENTS]) * points
    apart = lead + OF_DIALOGUE * (good[:, None] - others)
    said = apart[None] + rng.logistic(size=(2, *apart.shape))
    return np.where(said > TIE, 1, np.where(said < -TIE, 0, 0.5)).mean(axis=(0, 2))


def numbers(rng: np.random.Generator, good: Floats, name: str, others: Floats) -> dict[str, Floats]:
    """What each seed says of a model by every number that could be the gate's."""
    ends = accused(good, name)
    return {
        "survived": np.minimum(ends - 1, N),
        **{f"success_n{n}": (ends > n).astype(float) for n in (16, 4)},
        "arena": arena(rng, good, name, others),
    }


def boards(
    rng: np.random.Generator, n: int, before: str, after: str, alike: float
) -> list[dict[str, Floats]]:
    """The numbers of a model on ``n`` seeds twice; its opponents' dialogues stay."""
    hard = math.sqrt(alike) * rng.normal(size=(n, 1))
    good = hard + math.sqrt(1 - alike) * rng.normal(size=(n, 2 + len(OPPONENTS)))
    return [numbers(rng, good[:, i], name, good[:, 2:]) for i, name in enumerate((before, after))]


def changed(key: str, one: Floats, other: Floats) -> Change:
    """As `compare` takes it."""
    most = N if key == "survived" else 1
    before, after = (Estimate(float(v.mean()), *mean(v, 0, most)) for v in (one, other))
    return Change(before, after, correlation(one, other))


def powers() -> Iterator[Measured]:
    """`compare --gate`: how often each number finds a fall of one model, and cries wolf of none."""
    runs = 600
    same = [(name, name) for name in ("GPT-4", "Vicuna-7B", "LLaMA2-13B")]
    for n, (before, after) in product((20, 40, 100), (*same, *FALLS)):
        rng = np.random.default_rng([n, *map(ord, before + after)])
        found: dict[str, int] = {}
        for _ in range(runs):
            one, other = boards(rng, n, before, after, alike=0.3)
            for key in one:
                p = changed(key, one[key], other[key]).fell
                found[key] = found.get(key, 0) + (p <= ALPHA)
        for key, count in found.items():
            if before == after:
                quiet = runs - count
                # Only what the gate goes by is held to what it states.
                stated = 1 - ALPHA if key == "survived" else 0
                yield Measured(f"quiet, {key}", before, n, stated, quiet, runs, math.nan)
            else:
                yield Measured(f"finds, {key}", f"{before} to {after}", n, 0, count, runs, math.nan)


FAMILIES: list[Callable[[], Iterator[Measured]]] = [
    changes,
    false_alarms,
    rating_changes,
    powers,
]
