"""Means as a reference judges, from a judge's values on all cases and the reference's on a slice.

A *reference* is what a judge is held against: people, or another judge, known for a part of the
cases (the slice), which was drawn at random (`draw`). Prediction-powered inference (Angelopoulos,
Duchi & Zrnic 2023, "PPI++", §3 and §6), about the truth on other cases of the same kind:

    mean = reference on the slice + power · (judge on all - judge on the slice)

With power 0 the judge plays no part; with power 1 the mean difference is taken off it. The best
power follows from how the two vary together (the paper's lambda is power · (1 - slice / all)).

The interval is that of a share (`botchat.measures.intervals`), with the variance of the sum of both
parts by seed, Student's t for the seeds of the slice, and half a seed more with each disagreement
that a short slice may not have met. It is at most as wide as that of people alone, and never as if
there were more cases than all.
"""

from __future__ import annotations

import math
from bisect import bisect_left as bisect
from collections import Counter
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from botchat.interfaces import settings_digest
from botchat.measures import intervals
from botchat.measures.intervals import Shares, of_shares
from botchat.measures.statistics import LEVEL, Z, student_t
from botchat.verdicts import Floats, Indices

UNSEEN = 0.5
"""Seeds of the slice that are added with either disagreement; 0 covers .80 to .90 with few."""

_NOTHING = 1e-12
"""A variance that is only rounding."""


@dataclass(frozen=True)
class Corrected:
    """A mean as the reference judges, with its 95 % interval, 0 to 1."""

    value: float
    low: float
    high: float
    power: float
    """How far the judge is used, 0 to 1."""
    labels: int
    """Cases of the slice."""
    seeds: int = field(default=0, compare=False)
    """Seeds of the slice."""
    moved: Floats = field(default_factory=lambda: np.zeros(0), compare=False, repr=False)
    """How far each group of ``seed`` moves it, in their order, shape (groups,)."""
    others: tuple[float, float] = (math.nan, math.nan)
    """The ends of its interval as other people judge; nan of fewer than `PEOPLE`."""


@dataclass(frozen=True, eq=False)
class Given:
    """What each person said of the cases of a slice: its case, who, 0 to 1; shape (labels,)."""

    case: Indices
    person: Indices
    value: Floats

    @property
    def people(self) -> int:
        """How many."""
        return len(np.unique(self.person))


PEOPLE = 3
"""From so many on it can be told what other people like them would say."""


def mean(
    judged: Floats,
    reference: Floats,
    seed: Indices | None = None,
    weight: Floats | None = None,
    chance: Floats | None = None,
    power: float | None = None,
    given: Given | None = None,
) -> Corrected:
    """The mean of what the reference would say of cases of the same kind.

    All arrays have shape (cases,). ``judged``: the judge's values, 0 to 1. ``reference``: the
    same of the reference, nan outside the slice; a mean of several people is one value. ``seed``:
    numbers of groups of cases that are alike; ``None``: cases are independent. ``weight``: of each
    case in the mean, default 1. ``chance``: with which it was drawn into the slice, in any unit,
    default all alike. ``power``: default the one that makes the interval narrowest. ``given``: what
    each of several people said; the variance between them, beyond that of their labels, is added
    to that between seeds (two ways, as in `intervals`) for the interval of other people.

    All numbers are nan where nothing is in the slice.
    """
    slice_ = ~np.isnan(reference)
    labels = int(slice_.sum())
    if not labels:
        return Corrected(math.nan, math.nan, math.nan, 0.0, 0)
    of_all = np.ones(len(judged)) if weight is None else weight
    of_slice = np.where(slice_, of_all if chance is None else of_all / chance, 0.0)
    of_all, of_slice = of_all / of_all.sum(), of_slice / of_slice.sum()
    said = np.where(slice_, reference, 0.0)
    middle = float(of_all @ judged)
    if power is None:
        power = _power(judged, said, of_all, of_slice, middle)
    apart = said - power * judged
    off = float(of_slice @ apart)
    value = round(float(min(max(power * middle + off, 0.0), 1.0)), 12)

    group = np.arange(len(judged)) if seed is None else np.unique(seed, return_inverse=True)[1]
    moved = np.bincount(group, of_all * power * (judged - middle))
    differs = np.bincount(group, of_slice * (apart - off))
    share = np.bincount(group, of_slice)
    n = int((share > 0).sum())
    # How far the mean is off, squared: either part's, the chance of what was not met, and both's.
    low, high = _ends(np.concatenate([judged, reference[slice_]]))
    unseen = UNSEEN * ((high - power * low - off) ** 2 + (low - power * high - off) ** 2) / n**2
    few = n / (n - 1) if n > 1 else math.inf
    many = len(moved) / (len(moved) - 1) if len(moved) > 1 else math.inf
    with np.errstate(invalid="ignore"):
        of_both = many * (moved @ moved + 2 * moved @ differs) + few * (differs @ differs + unseen)
        variance, most = float(of_both), float(share @ share)
    # Of values in between, a case has less variance than one of yes or no.
    single = float(of_slice @ (said - of_slice @ said) ** 2) / max(value * (1 - value), _NOTHING)
    least = of_all @ of_all * (min(single, 1.0) if single > _NOTHING else 1.0)

    def ends(variance: float, n: int, most: float) -> tuple[float, float]:
        t = student_t(LEVEL, n - 1) if n > 1 else math.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            each = t**2 / Z**2 * np.float64(variance) / (value * (1 - value))
        each = np.clip(np.nan_to_num(each, nan=math.inf), least, most)
        lower, upper = of_shares(np.array([value]), np.array([each]))
        return float(lower[0]), float(upper[0])

    moves, others = np.asarray(moved + differs, dtype=np.float64), (math.nan, math.nan)
    if given is not None and (people := given.people) >= PEOPLE:
        part = of_slice[given.case] / np.bincount(given.case)[given.case]
        each = part * (given.value - power * judged[given.case] - off)
        by_person = np.bincount(given.person, each)
        more = people / (people - 1) * float(by_person @ by_person) - float(each @ each)
        parts = np.bincount(given.person, part)
        widest = most + float(parts @ parts) - float(part @ part)
        others = ends(variance + max(more, 0.0), min(n, people), widest)
    low, high = ends(variance, n, most)
    return Corrected(value, low, high, power, labels, n, moves, others)


def _ends(values: Floats) -> tuple[float, float]:
    """The least and the greatest value that there are; 0 and 1 where all are the same."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (0.0, 1.0)


def _power(judged: Floats, said: Floats, of_all: Floats, of_slice: Floats, middle: float) -> float:
    """The power with the least variance (paper §6); 1 for a judge that was right throughout.

    Of a judge that said one thing of the whole slice nothing is known: 0.
    """
    drawn = of_slice > 0
    if np.ptp(judged[drawn]) > 0 and np.array_equal(judged[drawn], said[drawn]):
        return 1.0
    spread = float(of_all @ (judged - middle) ** 2)
    if spread < _NOTHING:
        return 0.0
    together = float(of_slice @ ((judged - of_slice @ judged) * said))
    return min(max(together / spread * float(1 - of_all @ of_all), 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class Side:
    """The cases of one contestant; all arrays have shape (cases,), and are those of `mean`."""

    judged: Floats
    reference: Floats
    seed: Indices
    weight: Floats
    chance: Floats
    given: Given | None = None

    @property
    def known(self) -> Indices:
        """Which cases are of the slice."""
        return np.flatnonzero(~np.isnan(self.reference))

    @property
    def by_judge(self) -> Shares:
        """The judge's own mean, a row."""
        return _mean_of(self.seed, self.judged, self.weight)

    @property
    def by_reference(self) -> Corrected:
        """The mean as the reference judges."""
        of = self.judged, self.reference, self.seed, self.weight, self.chance
        return mean(*of, given=self.given)

    @property
    def slice_alone(self) -> Shares:
        """The reference's mean of the slice, a row."""
        at = self.known
        return _mean_of(self.seed[at], self.reference[at], self.weight[at] / self.chance[at])

    @property
    def reach(self) -> Reach:
        """How near to the truth labels would bring the mean."""
        return Reach.of(self.judged, self.seed, self.weight)


def _mean_of(seed: Indices, values: Floats, weight: Floats) -> Shares:
    return intervals.by_seed(np.zeros(len(values), dtype=np.intp), seed, values, 1, weight)


@dataclass(frozen=True, eq=False)
class Means:
    """Means of m contestants by one judge, and how their errors go together."""

    value: Floats
    covariance: Floats
    """Shape (m, m)."""
    freedom: int
    """Seeds less 1, of a slice those of the contestant with the fewest."""


def means(sides: Sequence[Side]) -> tuple[Means, Means]:
    """Of all contestants by the judge, and as the reference judges; each has cases in the slice.

    Every seed moves the means of all contestants that have cases on it, so its moves, multiplied
    and summed, are the covariance.
    """
    n_seeds = 1 + max(int(side.seed.max()) for side in sides)
    own, corrected = [side.by_judge for side in sides], [side.by_reference for side in sides]
    moved = np.zeros((2, n_seeds, len(sides)))
    for i, side in enumerate(sides):
        apart = side.weight * (side.judged - own[i].value[0]) / side.weight.sum()
        moved[0, :, i] = np.bincount(side.seed, apart, n_seeds)
        moved[1, np.unique(side.seed), i] = corrected[i].moved
    ends = [(float(one.value[0]), float(one.low[0]), float(one.high[0])) for one in own]
    return (
        _means(moved[0], ends, n_seeds),
        _means(
            moved[1],
            [(one.value, one.low, one.high) for one in corrected],
            min(one.seeds for one in corrected),
        ),
    )


def _means(moved: Floats, ends: Sequence[tuple[float, float, float]], seeds: int) -> Means:
    """Means that each seed moves so, (seeds, m); none varies less than its interval says."""
    (value, low, high), freedom = np.array(ends).T, max(seeds - 1, 1)
    found = moved.T @ moved * (len(moved) / max(len(moved) - 1, 1))
    least = ((high - low) / 2 / student_t(LEVEL, freedom)) ** 2
    return Means(value, found + np.diag(np.maximum(least - np.diag(found), 0)), freedom)


@dataclass(frozen=True)
class Reach:
    """How near so many labels bring a mean, before there are any; the truth is in between.

    Known are only the judge's values. At best the reference always agrees with them; at worst they
    tell nothing about what it says, and its mean is the judge's.
    """

    cases: int
    share: float
    """The judge's mean."""
    single: float
    """The variance of one case, in parts of the greatest that it can have."""
    each: float
    """That of the mean of all, by seed, in the same parts."""
    squares: float
    """1 / the cases, if all weigh alike."""
    ends: tuple[float, float]
    """The least and the greatest value of a case."""

    @classmethod
    def of(cls, judged: Floats, seed: Indices, weight: Floats) -> Reach:
        """From the judge's values; arguments as of `mean`."""
        weight = weight / weight.sum()
        middle, squares = float(weight @ judged), float(weight @ weight)
        apart, spread = judged - middle, middle * (1 - middle)
        if spread < _NOTHING:
            return cls(len(judged), middle, 1.0, squares, squares, _ends(judged))
        moved = np.bincount(seed, weight * apart)
        single, each = float(weight @ apart**2) / spread, float(moved @ moved) / spread
        each = max(each, single * squares)
        return cls(len(judged), middle, single, each, squares, _ends(judged))

    def within(self, labels: int) -> tuple[float, float]:
        """Half the width of the interval with so many labels, at best and at worst."""
        n = min(labels, self.cases)
        if n < 1:
            return math.nan, math.nan
        left = max(1 / n - self.squares, 0.0)
        best = worst = most = left + max(self.each, self.squares)
        if n > 1:
            spread = max(self.share * (1 - self.share), _NOTHING)
            beyond, few = student_t(LEVEL, n - 1) ** 2 / Z**2, UNSEEN / (n * (n - 1)) / spread
            opposed = sum((end - self.share) ** 2 for end in self.ends)
            best = min(beyond * (self.each + 2 * np.ptp(self.ends) ** 2 * few), most)
            worst = min(beyond * (self.single * left + self.each + opposed * few), most)
        low, high = of_shares(np.full(2, self.share), np.array([best, worst]))
        return float(high[0] - low[0]) / 2, float(high[1] - low[1]) / 2

    def needed(self, within: float) -> tuple[int | None, int | None]:
        """Labels that bring it so near, at best and at worst; ``None``: all would not."""
        best, worst = (
            None
            if self.within(self.cases)[which] > within
            else 1 + bisect(range(1, self.cases), -within, key=lambda n: -self.within(n)[which])
            for which in (0, 1)
        )
        return best, worst


def draw(strata: Sequence[Hashable], cases: Sequence[str], n: int, rng_seed: int) -> list[int]:
    """Numbers of ``n`` cases, as many of each stratum as of any other while it has some.

    At random and always the same: a stratum's cases are in the order of a digest. ``cases``: their
    digests; ``strata``: what each belongs to.
    """
    dealt: Counter[Hashable] = Counter()
    rounds: list[tuple[int, int, int]] = []
    for i in _in_order(cases, rng_seed):
        rounds.append((dealt[strata[i]], len(rounds), i))
        dealt[strata[i]] += 1
    return sorted(i for _, _, i in sorted(rounds)[:n])


def is_draw(
    strata: Sequence[Hashable], cases: Sequence[str], chosen: Set[str], rng_seed: int
) -> bool:
    """Whether what was chosen of each stratum are the first that `draw` gives of it."""
    ended = set()
    for i in _in_order(cases, rng_seed):
        if cases[i] not in chosen:
            ended.add(strata[i])
        elif strata[i] in ended:
            return False
    return True


def _in_order(cases: Sequence[str], rng_seed: int) -> list[int]:
    """Numbers of the cases as they are drawn."""
    return sorted(range(len(cases)), key=lambda i: settings_digest("bridge", rng_seed, cases[i]))
