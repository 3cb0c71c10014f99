"""Do promises about judges hold? A cascade's, a bridge's, the best of several, other wordings.

A cascade's guarantee; a judge's rates by another's verdicts; the set that surely holds the best.
Families for `coverage.py`, which prints and checks them; worlds with a known truth, seeds fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from coverage_boards import Line, of

from botchat.judges import cascade
from botchat.judges.cascade import Guarantee, loosest, strict_to_loose
from botchat.measures.best import contest
from botchat.measures.facts import sharpness
from botchat.measures.intervals import share
from botchat.measures.references import Side, draw, means
from botchat.measures.variance import Crossed
from botchat.ratings import places

RUNS = 500
GUARANTEE = Guarantee(alpha=0.1, delta=0.05, seeds=100)


@dataclass(frozen=True)
class Answers:
    """A world of a cheap judge's answers, and how often a strong judge disagrees."""

    world: str
    levels: tuple[float, ...]
    """How sure the cheap judge can be of an answer, each as often."""
    disagree: tuple[float, ...]
    """Chance that the strong judge disagrees with such an answer."""
    alike: float = 0.5
    """Chance that an answer has the level and the chance that its seed has."""
    slice_seeds: int = 100
    seeds: int = 222
    questions: int = 4
    uneven: bool = False
    """Whether seeds without disagreement have but one question, as where dialogues stop early."""

    def made(self, rng: np.random.Generator, seeds: int) -> tuple[np.ndarray, ...]:
        """How sure (nan: never accepted), whether the strong one disagrees, and which are there."""
        shape = seeds, self.questions
        alike = rng.random(shape) < self.alike
        places = rng.integers(0, len(self.levels), shape)
        level = np.where(alike, places[:, :1], places)
        chance = rng.random(shape)
        apart = np.where(alike, chance[:, :1], chance) < np.array(self.disagree)[level]
        there = np.ones(shape, bool)
        if self.uneven:
            there[~apart.any(1), 1:] = False
        sure = np.where(rng.random(shape) < 0.8, np.array(self.levels)[level], np.nan)
        return sure, apart, there


_LEVELS = tuple(np.linspace(0.5, 1.0, 21).round(3).tolist())
_VOTES = (0.6, 0.8, 1.0)
_TELLS = tuple(np.linspace(0.2, 0.0, 21))
CASCADES = (
    Answers("equally sure, .105 disagree", (1.0,), (0.105,)),
    Answers("equally sure, .105, alike .95", (1.0,), (0.105,), alike=0.95, questions=20),
    Answers(
        "disagreement where seeds have more questions",
        (1.0,),
        (0.033,),
        slice_seeds=60,
        uneven=True,
    ),
    Answers("equally sure, .03 disagree", (1.0,), (0.03,)),
    Answers("equally sure, .03 disagree", (1.0,), (0.03,), slice_seeds=60),
    Answers("sureness says nothing, .105 disagree", _LEVELS, (0.105,) * 21),
    *(
        Answers(
            f"sureness says nothing, {one:.2f} disagree",
            _LEVELS,
            (one,) * 21,
            slice_seeds=300,
            seeds=547,
        )
        for one in (0.03, 0.06, 0.09)
    ),
    Answers("sureness tells, .20 to 0 disagree", _LEVELS, _TELLS, slice_seeds=300, seeds=547),
    Answers(
        "votes of 3: .30, .10, .02 disagree", _VOTES, (0.3, 0.1, 0.02), slice_seeds=300, seeds=547
    ),
    Answers("the surest disagree most, .20 to .05", _LEVELS, tuple(np.linspace(0.05, 0.2, 21))),
    Answers("votes of 3: .30, .10, .02 disagree", _VOTES, (0.3, 0.1, 0.02)),
    Answers("votes of 3: .30, .10, .02 disagree", _VOTES, (0.3, 0.1, 0.02), slice_seeds=200),
    Answers("sureness tells, .20 to 0 disagree", _LEVELS, _TELLS),
    Answers("sureness tells, .20 to 0 disagree", _LEVELS, _TELLS, slice_seeds=200),
    Answers("equally sure, .105, every seed drawn", (1.0,), (0.105,), slice_seeds=60, seeds=60),
)


def cascades() -> Iterator[Line]:
    """Calibrations after which at most alpha of the accepted verdicts truly disagree."""
    for number, world in enumerate(CASCADES):
        rng = np.random.default_rng([30, number])
        every, wrong, real = (one.ravel() for one in world.made(rng, 400_000 // world.questions))
        every, wrong = every[real], wrong[real]
        found = [_calibrated(rng, world) for _ in range(RUNS)]

        def kept(which: int, found=found, every=every, wrong=wrong) -> np.ndarray:
            share = {t: t is None or wrong[every >= t].mean() <= GUARANTEE.alpha for t in
                     {one[which] for one in found}}  # fmt: skip
            return np.array([share[one[which]] for one in found])

        n, said = world.slice_seeds, world.world
        yield of("cascade keeps alpha = .1", said, n, kept(0), math.nan)
        yield of("  by the slice's own share", said, n, kept(1), math.nan, math.nan)
        accepted = np.array([0.0 if t is None else (every >= t).mean() for t, _ in found])
        yield of("  share of verdicts accepted", said, n, accepted, math.nan, math.nan)


def _calibrated(rng: np.random.Generator, world: Answers) -> tuple[float | None, float | None]:
    """Thresholds of one made-up set: with the guarantee, and the loosest that looks as if."""
    sure, apart, there = world.made(rng, world.seeds)
    salt = rng.integers(1 << 40)
    cases = {f"{salt} {i} {j}": (i, j) for i, j in np.argwhere(there).tolist()}
    by_seed = [(f"{salt} {i}", case) for case, (i, _) in cases.items()]
    drawn = [cases[one] for one in cascade.draw(by_seed, world.slice_seeds)]
    inside = {i for i, _ in drawn}
    outside = [float(sure[one]) for one in cases.values() if one[0] not in inside]
    seen = [(float(sure[one]), bool(apart[one])) for one in drawn if not np.isnan(sure[one])]
    guarantee = Guarantee(GUARANTEE.alpha, GUARANTEE.delta, world.slice_seeds)
    tried = strict_to_loose([None if np.isnan(one) else one for one in outside], guarantee)
    looks = []
    for threshold in tried:
        of_it = [disagrees for one, disagrees in seen if one >= threshold]
        looks += [threshold] if of_it and np.mean(of_it) <= guarantee.alpha else []
    return loosest(tried, seen, guarantee)[0], min(looks, default=None)


BY_CONTESTANT = (
    # How often verdicts of each contestant disagree; contestants shown in a case, ChatSEEDs drawn.
    ("all .03", (0.03,) * 14, 1, 300),
    ("one .54, others .01", (0.54, *(0.01,) * 13), 1, 300),
    ("one .54, others .01", (0.54, *(0.01,) * 13), 2, 300),
    ("two .25, others .02", (0.25, 0.25, *(0.02,) * 12), 1, 150),
    ("0 to .20, mean .10", tuple(np.linspace(0, 0.2, 14)), 1, 300),
    ("all .105", (0.105,) * 14, 2, 300),
)


def refusals() -> Iterator[Line]:
    """Contestants apart: the promise behind refusals, and whether the worst one is refused."""
    for number, (world, apart, shown, n) in enumerate(BY_CONTESTANT):
        rng = np.random.default_rng([33, number])
        m, kept, refused, share = len(apart), [], [], []
        # Of two contestants the worse one decides how often a case disagrees.
        sides = np.array(list(combinations(range(m), shown)))
        chance = np.array(apart)[sides].max(axis=1)
        for _ in range(RUNS):
            drawn = rng.integers(len(sides), size=n)
            disagrees = rng.random(n) < chance[drawn]
            seen = [(1.0, bool(hit), tuple(map(str, sides[i])))
                    for i, hit in zip(drawn.tolist(), disagrees.tolist(), strict=True)]  # fmt: skip
            guarantee = Guarantee(GUARANTEE.alpha, GUARANTEE.delta, n)
            found = loosest([1.0], [one[:2] for one in seen], guarantee)[0]
            rows = cascade.by_contestant(seen, found, guarantee.alpha)
            gone = [int(row["contestant"]) for row in rows if row["refused"]]
            left = ~np.isin(sides, gone).any(axis=1) & (found is not None)
            kept.append(not left.any() or chance[left].mean() <= guarantee.alpha)
            refused.append(found is None or 0 in gone)
            share.append(left.mean())
        said = f"{m} contestants, {shown} a case, {world}"
        yield of("cascade keeps alpha = .1", said, n, np.array(kept), math.nan)
        yield of("  first contestant refused", said, n, np.array(refused), math.nan, math.nan)
        yield of("  share of verdicts accepted", said, n, np.array(share), math.nan, math.nan)


# A bridge between judges -------------------------------------------------------------------------

BRIDGES = (
    # The new judge passes what the old one passes, and what it fails, so often; budget; seeds.
    ("alike .9 and .1", 0.9, 0.1, 300, 222),
    ("alike .9 and .1", 0.9, 0.1, 120, 60),
    ("stricter: .6 and .02", 0.6, 0.02, 300, 547),
    ("says nothing: .5 and .5", 0.5, 0.5, 300, 222),
    ("nearly the same: .98 and .02", 0.98, 0.02, 300, 222),
)


def bridges() -> Iterator[Line]:
    """Means by a new judge and their places: of 6 models' dialogues, and of pairs of 6 models."""
    for number, (world, yes, no, budget, seeds) in enumerate(BRIDGES):
        rng = np.random.default_rng([31, number])
        passed = np.linspace(0.25, 0.85, 6)
        truth = passed * yes + (1 - passed) * no
        made = [_dialogues(rng, passed, yes, no, budget, seeds) for _ in range(300)]
        yield from _bridged(f"6 models, {world}", f"{budget} of {6 * seeds}", truth, made)
    for number, (alike, budget) in enumerate(((0.9, 300), (0.9, 1200), (0.5, 600))):
        rng = np.random.default_rng([32, number])
        strength = np.linspace(0.8, -0.8, 6)
        win = 1 / (1 + np.exp(0.6 * (strength[None, :] - strength[:, None])))
        truth = (win.sum(axis=1) - 0.5) / 5
        made = [_pairs(rng, strength, alike, budget) for _ in range(150)]
        yield from _bridged(f"pairs of 6, errors alike {alike}", f"{budget} of 3600", truth, made)


Made = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _bridged(world: str, n: str, truth: np.ndarray, made: list[Made]) -> Iterator[Line]:
    found = [_sides(*one) for one in made]
    corrected = [[side.by_reference for side in sides] for sides in found]
    new = [[(one.low, one.high) for one in each] for each in corrected]
    shares = [[side.slice_alone for side in sides] for sides in found]
    alone = [[(one.low[0], one.high[0]) for one in each] for each in shares]
    for method, stated, ends in (
        ("bridge", 0.95, np.array(new)),
        ("  the slice alone", math.nan, np.array(alone)),
    ):
        held = (ends[..., 0] <= truth + 1e-12) & (truth <= ends[..., 1] + 1e-12)
        yield of(method, world, n, held, float(np.diff(ends).mean()), stated)
    order, first_last = 1 + (truth[:, None] < truth[None, :] - 1e-9).sum(axis=1), []
    least = len(truth) - (truth[:, None] > truth[None, :] + 1e-9).sum(axis=1)
    for sides in found:
        _, by_new = means(sides)
        first_last.append(places.of_ratings(by_new.value, by_new.covariance, by_new.freedom))
    held = np.array([((first <= least) & (order <= last)).all() for first, last in first_last])
    spread = float(np.mean([(last - first).mean() for first, last in first_last]))
    yield of("bridge, all places", world, n, held, spread)


def _sides(
    row: np.ndarray, seed: np.ndarray, old: np.ndarray, new: np.ndarray, stratum: np.ndarray
) -> list[Side]:
    """The cases of each model, its slice drawn alike of each stratum."""
    chance = (np.bincount(stratum, ~np.isnan(new)) / np.bincount(stratum))[stratum]
    own = [row == i for i in range(row.max() + 1)]
    return [Side(old[i], new[i], seed[i], np.ones(i.sum()), chance[i]) for i in own]


def _dialogues(
    rng: np.random.Generator, passed: np.ndarray, yes: float, no: float, budget: int, seeds: int
) -> Made:
    """A dialogue of each model on each seed; hard seeds are hard for all models."""
    m = len(passed)
    alike = rng.random((seeds, m)) < 0.3
    drawn = np.where(alike, rng.random((seeds, 1)), rng.random((seeds, m)))
    old = (drawn < passed).ravel()
    new = (rng.random(seeds * m) < np.where(old, yes, no)).astype(float)
    row, seed = np.tile(np.arange(m), seeds), np.repeat(np.arange(seeds), m)
    salt = rng.integers(1 << 40)
    asked = draw(row.tolist(), [f"{salt} {i}" for i in range(len(row))], budget, 0)
    return row, seed, old.astype(float), _only(new, asked), row


def _pairs(rng: np.random.Generator, strength: np.ndarray, alike: float, budget: int) -> Made:
    """Every pair of models on 120 seeds in both orders; the new judge is less sure of them."""
    m, seeds = len(strength), 120
    low, high = np.triu_indices(m, 1)
    first, second = np.tile(np.r_[low, high], seeds), np.tile(np.r_[high, low], seeds)
    seed = np.repeat(np.arange(seeds), 2 * len(low))
    n, apart = len(seed), strength[first] - strength[second]
    # Both orders of a pair on a seed, and both judges, share a part of what decides.
    one, other = np.minimum(first, second), np.maximum(first, second)
    shared = rng.uniform(size=(seeds, m, m))[seed, one, other]
    shared = np.where(first < second, shared, 1 - shared)

    def says(scale: float, own: np.ndarray) -> np.ndarray:
        chance = np.where(own < alike, shared, rng.uniform(size=n))
        return (chance < 1 / (1 + np.exp(-scale * apart))).astype(float)

    old, new = says(1.0, rng.random(n)), says(0.6, rng.random(n))
    pair = one * m + other
    salt = rng.integers(1 << 40)
    asked = draw(pair.tolist(), [f"{salt} {i}" for i in range(n)], budget, 0)
    new = _only(new, asked)
    stratum = np.unique(pair, return_inverse=True)[1]
    both = (np.r_[a, b] for a, b in ((first, second), (seed, seed), (old, 1 - old), (new, 1 - new)))
    return (*both, np.r_[stratum, stratum])


def _only(values: np.ndarray, asked: list[int]) -> np.ndarray:
    found = np.full(len(values), np.nan)
    found[asked] = values[asked]
    return found


# The best of several judges ----------------------------------------------------------------------


@dataclass(frozen=True)
class Judges:
    """Judges who are right so often, on items of 1 to ``most`` verdicts that are loosely alike."""

    world: str
    right: tuple[float, ...]
    """The first is the best, or one of the best."""
    most: int = 1
    clones: float = 0.0
    """Chance that a judge says what the first says."""
    answered: tuple[float, float] = (1.0, 1.0)
    """Least and most share of the items that a judge has answered."""

    def made(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Right (1), wrong (0) or not answered (nan), shape (judges, verdicts); items."""
        item = np.repeat(np.arange(n), rng.integers(1, self.most + 1, n))
        chance = np.array(self.right)[:, None]
        # Hard items are hard for all: a part of what decides is theirs.
        hard = np.where(rng.random(len(item)) < 0.3, rng.random(n)[item], np.nan)
        own = rng.random((len(self.right), len(item)))
        drawn = np.where(rng.random(own.shape) < self.clones, own[0], own)
        right = (np.where(np.isnan(hard), drawn, hard) < chance).astype(float)
        share = rng.uniform(*self.answered, len(self.right))[:, None]
        return np.where(rng.random((len(self.right), n))[:, item] < share, right, np.nan), item


_SPREAD = tuple(np.linspace(0.7, 0.5, 20).round(3).tolist())
CONTESTS = (
    Judges("3 judges, equal", (0.7,) * 3),
    Judges("3 judges, .75 .70 .60", (0.75, 0.7, 0.6)),
    Judges("3 judges, equal, 1 to 20 verdicts", (0.7,) * 3, most=20),
    Judges("20 judges, equal", (0.7,) * 20),
    Judges("20 judges, .70 to .50", _SPREAD),
    Judges("20 judges, equal, 1 to 20 verdicts", (0.7,) * 20, most=20),
    Judges("20 judges, equal, nearly clones", (0.7,) * 20, clones=0.95),
    Judges("20 judges, equal, clones", (0.7,) * 20, clones=1.0),
    Judges("20 judges, near 1, 1 to 4 verdicts", (0.97,) * 10 + (0.95,) * 10, most=4),
    Judges("3 judges on .3 to 1 of the items", (0.7,) * 3, answered=(0.3, 1.0)),
    Judges("20 judges on .3 to 1 of the items", (0.7,) * 20, most=5, answered=(0.3, 1.0)),
)


def best_judges() -> Iterator[Line]:
    """The best is in the set, and no judge of all is worse than the best by more than its bound."""
    for number, world in enumerate(CONTESTS):
        gap = world.right[0] - np.array(world.right)
        for n in (20, 80, 200):
            rng = np.random.default_rng([33, number, n])
            found = [contest(*world.made(rng, n)) for _ in range(300)]
            held = np.array([one.may_be_best[0] for one in found])
            size = float(np.mean([one.may_be_best.sum() for one in found]))
            yield of("best judge is in the set", world.world, n, held, size)
            bound = np.array([(one.at_most_worse >= gap - 1e-12).all() for one in found])
            most = float(np.mean([one.at_most_worse.mean() for one in found]))
            yield of("  bounds on what is lost, all", world.world, n, bound, most)


# Another wording, another person ------------------------------------------------------------------

WORLDS = (
    # Standard deviations: questions, wordings, persons; questions by either; both; what is left.
    ("all of them", (0.3, 0.1, 0.1, 0.2, 0.2, 0.1, 0.7)),
    ("questions alone", (0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9)),
    ("wordings above all", (0.3, 0.3, 0.02, 0.1, 0.1, 0.05, 0.7)),
    ("wordings and persons above all", (0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.7)),
)


def another_person() -> Iterator[Line]:
    """The mean over all wordings and persons there could be, and that of other questions alone."""
    for number, (world, spread) in enumerate(WORLDS):
        for shape in ((80, 2, 2), (80, 3, 3), (80, 5, 5), (30, 3, 5), (80, 5, 20)):
            rng, found = np.random.default_rng([34, number, *shape]), []
            for _ in range(400):
                values = np.zeros((*shape, 1))
                parts = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
                for levels, sd in zip(parts, spread, strict=True):
                    each = [n if axis in levels else 1 for axis, n in enumerate(shape)]
                    values = values + sd * rng.normal(size=(*each, 1))
                one = Crossed(("question", "wording", "person"), values)
                found.append([one.interval()[1:], one.interval(["question"])[1:]])
            ends = np.array(found)
            held = (ends[..., 0] <= 0) & (ends[..., 1] >= 0)
            wide, n = np.diff(ends)[..., 0].mean(0), " x ".join(map(str, shape))
            yield of("another wording, another person", world, n, held[:, 0], wide[0])
            yield of("  questions alone", world, n, held[:, 1], wide[1], math.nan)


# How sharply a judge tells machines ---------------------------------------------------------------


def sharpness_of_judges() -> Iterator[Line]:
    """d′ and criterion, of machines on one and four dialogues a seed that are loosely alike."""
    place = NormalDist().inv_cdf
    for caught, accused in ((0.6, 0.2), (0.9, 0.05), (0.98, 0.02), (0.5, 0.5), (0.8, 0.3)):
        for n, k, alike in ((20, 1, 0.0), (80, 4, 0.9), (222, 4, 0.3)):
            rng, found = np.random.default_rng([35, n, k, int(100 * caught)]), []
            seed = np.repeat(np.arange(n), k)
            for _ in range(2000):
                own = rng.random(n * k)
                hit = np.where(rng.random(n * k) < alike, rng.random(n)[seed], own) < caught
                row = share(hit, seed, "machines_caught")
                row |= share(rng.random(n) < accused, np.arange(n), "people_accused")
                found.append(sharpness(row, n * k, n))
            truth = {"d_prime": place(caught) - place(accused)}
            truth["criterion"] = -(place(caught) + place(accused)) / 2
            for name, true in truth.items():
                low, high = (np.array([one[f"{name}_{end}"] for one in found]) for end in LOW_HIGH)
                world = f"{caught:.0%} caught, {accused:.0%} of people; {k} a seed"
                held = (low <= true) & (true <= high)
                yield of(f"signal detection, {name}", world, n, held, (high - low).mean())


LOW_HIGH = ("low", "high")


FAMILIES: list[Callable[[], Iterator[Line]]] = [
    cascades,
    refusals,
    bridges,
    best_judges,
    another_person,
]
