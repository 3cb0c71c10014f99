"""Do intervals hold what they state? Simulated worlds with a known truth, seeds fixed.

    python benchmarks/coverage.py [PART OF A FAMILY'S NAME]

Prints a line a world and fails where an interval (or test) achieves less than it states, by more
than two standard errors: of a hundred lines that hold exactly, two would by chance.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import numpy as np

from botchat.estimates import Flags, Floats
from botchat.metrics import statistics
from botchat.metrics.agreement import compare
from botchat.metrics.statistics import proportion
from botchat.metrics.verdicts import PairVerdict, PairVerdicts
from botchat.ratings.bradley_terry import fit, ranks_from_order
from botchat.ratings.comparisons import Comparisons

RUNS = 300
SCALE = 400 / np.log(10)
"""Points of a rating for one logit."""

Line = tuple[str, str, int, Sequence[bool], float]
"""Method, world, independent items, whether each run held, and what is stated."""


def chances(rng: np.random.Generator, rate: float, alike: float, n: int) -> Floats:
    """Each item's chance of a yes, mean ``rate``; ``alike``: correlation within an item."""
    if not alike:
        return np.full(n, rate)
    scale = (1 - alike) / alike
    return rng.beta(rate * scale, (1 - rate) * scale, n)


def verdicts(rng: np.random.Generator, rate: float, alike: float, n: int, each: int) -> Floats:
    """Yes (1) or no (0), shape (n · each,)."""
    return (rng.random((n, each)) < chances(rng, rate, alike, n)[:, None]).ravel().astype(float)


def shares() -> Iterator[Line]:
    """Rates of a board and accuracies: independent items, and clusters such as topics."""
    worlds = (*product((20, 60, 222), (1,), (0.0,)), *product((20, 60, 222), (4, 10), (0.1, 0.4)))
    for (n, each, alike), rate in product(worlds, (0.03, 0.1, 0.3, 0.5, 0.9)):
        rng = np.random.default_rng([1, n, each, int(10 * alike), int(100 * rate)])
        item, held = np.repeat(np.arange(n), each), []
        for _ in range(RUNS):
            share = proportion(verdicts(rng, rate, alike, n, each), item)
            held.append(share.low <= rate <= share.high)
        yield "share", f"{rate:.2f}, {each} an item, alike {alike:.1f}", n, held, 0.95


def judges() -> Iterator[Line]:
    """Cohen's kappa of a judge with labels, and the difference of two judges' skill."""
    for n, (a, b) in product((20, 60, 222), ((0.5, 0.5), (0.7, 0.6), (0.9, 0.8), (0.98, 0.9))):
        rng = np.random.default_rng([2, n, int(100 * a)])
        kappas, differences = [], []
        for _ in range(RUNS // 2):
            truth = rng.integers(2, size=n)
            rows = [
                PairVerdict(str(i), "a", "b", "human", 1.0 - label) for i, label in enumerate(truth)
            ]
            for judge, right in (("j", a), ("k", b)):
                wrong = rng.random(n) >= right
                rows += [
                    PairVerdict(str(i), "a", "b", judge, 1.0 - label)
                    for i, label in enumerate(truth ^ wrong)
                ]
            found = compare(PairVerdicts.of(rows))
            kappa = found.judges[0].kappa
            if kappa.is_bounded:
                kappas.append(kappa.low <= 2 * a - 1 <= kappa.high)
            lead = found.pairs[0].skill_difference
            held = lead.low - 1e-9 <= 2 * (a - b) <= lead.high + 1e-9
            differences.append(held or lead.low == lead.high)
        yield "kappa", f"right {a:.2f}", n, kappas, 0.95
        yield "skill, difference", f"right {a:.2f} and {b:.2f}", n, differences, 0.95


def board(
    rng: np.random.Generator,
    ratings: Floats,
    n: int,
    ties: float,
    alike: float,
    each: int = 1,
    is_named: bool = True,
) -> Comparisons:
    """Every pair on every seed in both orders, ``each`` seeds of n topics, named or not.

    ``alike``: points by which topics favour models.
    """
    m = len(ratings)
    pairs = np.array(list(combinations(range(m), 2)))
    seed = np.repeat(np.arange(n * each), 2 * len(pairs))
    topic = seed // each
    first, second = np.tile(np.concatenate([pairs, pairs[:, ::-1]]), (n * each, 1)).T
    shift = rng.normal(0, alike, (n, m))
    edge = ratings[first] - ratings[second] + shift[topic, first] - shift[topic, second]
    win = rng.random(len(seed)) < 1 / (1 + np.exp(-edge / SCALE))
    result = np.where(rng.random(len(seed)) < ties, 0.5, win)
    names = tuple(f"m{i}" for i in range(m))
    return Comparisons(names, first, second, result, topic if is_named else seed, None, seed)


def ratings() -> Iterator[Line]:
    """Bradley-Terry ratings and simultaneous rank intervals of boards, also with 90 % ties."""
    for n, m, ties in product((20, 60, 222), (4, 14), (0.1, 0.9)):
        rng = np.random.default_rng([3, n, m, int(10 * ties)])
        truth = np.linspace(-60, 60, m)
        rank = np.arange(m, 0, -1)
        held, ranks = [], []
        for _ in range(RUNS if m < 10 else RUNS // 5):
            found = fit(board(rng, truth, n, ties, 0.0))
            order = [int(name[1:]) for name in found.models]
            if ties < 0.5:  # ties draw ratings together; their order stays
                shrunk = _shrunk(truth, ties)[order]
                held += [bool(x) for x in (found.low <= shrunk) & (shrunk <= found.high)]
            low, high = ranks_from_order(found.significantly_better)
            ranks.append(bool(((low <= rank[order]) & (rank[order] <= high)).all()))
        if held:
            yield "Bradley-Terry rating", f"{m} models, {ties:.0%} ties", n, held, 0.95
        yield "ranks, all at once", f"{m} models, {ties:.0%} ties", n, ranks, 0.95


def sparse() -> Iterator[Line]:
    """Few comparisons a pair, seeds not known; width: of the interval, beside 3.92 true errors."""
    for m, each, ties in product((3, 5, 14, 30), (2, 4, 8), (0.1, 0.95, 0.98)):
        rng = np.random.default_rng([8, m, each, int(100 * ties)])
        truth = np.linspace(-60, 60, m)
        pairs = np.array(list(combinations(range(m), 2)))
        first, second = np.repeat(pairs, each, axis=0).T
        names = tuple(f"m{i:02}" for i in range(m))
        rate = 1 / (1 + np.exp(-(truth[first] - truth[second]) / SCALE))
        expected = fit(Comparisons(names, first, second, rate * (1 - ties) + ties / 2)).rating
        held, errors, widths = [], [], []
        for _ in range(max(40, RUNS // m)):
            win = rng.random(len(first)) < rate
            result = np.where(rng.random(len(first)) < ties, 0.5, win)
            found = fit(Comparisons(names, first, second, result))
            held += ((found.low <= expected) & (expected <= found.high)).tolist()
            errors.append(found.rating - expected)
            widths.append(found.high - found.low)
        width = np.mean(widths) / (3.92 * np.sqrt(np.mean(np.square(errors))))
        yield (
            "Bradley-Terry, sparse",
            f"{m} models, {ties:.0%} ties, width {width:.2f}",
            each,
            held,
            0.95,
        )


def topics() -> Iterator[Line]:
    """Ratings of 4 models on topics of ten seeds; not named, they hold less, as is known."""
    truth = np.linspace(-60, 60, 4)
    expected = fit(board(np.random.default_rng(0), truth, 5000, 0.1, 60.0)).rating
    for n, is_named in product((3, 5, 8, 20), (True, False)):
        rng = np.random.default_rng([9, n])
        held = []
        for _ in range(3 * RUNS // (1 + n // 10)):
            found = fit(board(rng, truth, n, 0.1, 60.0, each=10, is_named=is_named))
            held += ((found.low <= expected) & (expected <= found.high)).tolist()
        named = "named" if is_named else "not named"
        yield "Bradley-Terry, topics", f"4 models, {named}", n, held, 0.95 * is_named


def leads() -> Iterator[Line]:
    """Nobody "leads clearly" where two are equally good, by ratings and by rates."""
    for n, m in product((20, 60), (3, 8, 14)):
        rng = np.random.default_rng([10, n, m])
        truth = np.array([40.0, 40.0] + [-40.0] * (m - 2))
        ratings, rates = [], []
        level = statistics.level_of_best(m)
        for _ in range(RUNS):
            found = fit(board(rng, truth, n, 0.1, 30.0))
            ratings.append(not _leads(found.above(found.models, level)))
        for _ in range(10 * RUNS):
            share = rng.binomial(n, 0.5 + truth / 400) / n
            low, high = statistics.wilson(share, np.full(m, 1 / n))
            value, low, high = 2 * np.arcsin(np.sqrt(np.array([share, low, high])))
            rates.append(not _leads(statistics.separated(value, low, high, level)))
        yield "no leader of 2, ratings", f"{m} models", n, ratings, 0.95
        yield "no leader of 2, rates", f"{m} models", n, rates, 0.95


def _leads(above: Flags) -> bool:
    """Whether one is above every other."""
    return bool((above.sum(axis=1) == len(above) - 1).any())


def _shrunk(truth: Floats, ties: float) -> Floats:
    """Ratings that fit the expected results, a tie counted as half a win."""
    rng = np.random.default_rng(0)
    found = fit(board(rng, truth, 20_000 // len(truth), ties, 0.0))
    order = [found.models.index(f"m{i}") for i in range(len(truth))]
    return np.asarray(found.rating)[order]


def sign_flips() -> Iterator[Line]:
    """`agree` and `compare`: judges equally good, each on its own items, by the sign-flip test."""
    for (n, each), alike in product(((80, 20), (40, 2), (20, 20)), (0.05, 0.3)):
        rng = np.random.default_rng([7, n, each])
        held = []
        for _ in range(1000):
            one, other = (verdicts(rng, 0.64, alike, n, each) for _ in range(2))
            held.append(statistics.sign_flip((one - other).reshape(n, each).sum(1)) >= 0.05)
        yield "sign-flip test", f"level, {each} an item, alike {alike:.2f}", n, held, 0.95


FAMILIES: Sequence[Callable[[], Iterator[Line]]] = (
    shares,
    judges,
    ratings,
    sparse,
    topics,
    leads,
    sign_flips,
)


def main() -> int:
    """Print every family's lines; 1 if something holds less than it states."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'method':<24}{'world':<44}{'items':>6}  stated  achieved")
    failed = 0
    for family in FAMILIES:
        for method, world, n, held, stated in family() if wanted in family.__name__ else ():
            share, runs = float(np.mean(held)), len(held)
            is_less = share < stated - 2 * (stated * (1 - stated) / runs) ** 0.5
            failed += is_less
            mark = "  less" if is_less else ""
            print(f"{method:<24}{world:<44}{n:>6}  {stated:.2f}    {share:.3f}{mark}", flush=True)
    print(f"{failed} hold less than they state" if failed else "All hold what they state.")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
