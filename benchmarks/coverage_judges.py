"""Do promises about judges hold? A cascade's guarantee, and a judge's rates by another's verdicts.

Families for `coverage.py`, which prints and checks them; worlds with a known truth, seeds fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from coverage_boards import Line, of

from botchat.judges.calibration import Guarantee, draw, loosest, strict_to_loose

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
    drawn = [cases[one] for one in draw(by_seed, world.slice_seeds)]
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


FAMILIES: list[Callable[[], Iterator[Line]]] = [cascades]
