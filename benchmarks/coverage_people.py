"""How often rates as people judge hold what people would say: made-up worlds, seeds fixed.

    python benchmarks/coverage_people.py [PART_OF_A_NAME ...]

A judge sees all dialogues, people a slice drawn at random. Printed beside each other are the
judge's own rate, the labels alone, Rogan and Gladen's correction (1978) and prediction-powered
inference. Only the last is promised to hold. docs/statistics.md quotes the table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from coverage_boards import Line, main, of

from botchat.measures.intervals import of_share
from botchat.measures.references import Corrected, Given, mean

RUNS = 800

Ends = list[tuple[float, float]]


def line(method: str, world: str, n: str, ends: Ends, truth: float, stated: float) -> Line:
    """A line from the ends of every run's interval."""
    low, high = np.array(ends).T
    held = (low <= truth + 1e-9) & (truth <= high + 1e-9)
    return of(method, world, n, held, float((high - low).mean()), stated)


def dialogues(
    rng: np.random.Generator, n: int, labels: int, truth: float, wrong: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """What a judge says of each, and people of the labelled ones (others nan).

    ``wrong``: the judge's share of failures among those that people pass (false alarms), and of
    passes among those that they do not (misses).
    """
    passes, luck = rng.random(n) < truth, rng.random(n)
    judged = np.where(passes, luck >= wrong[0], luck < wrong[1]).astype(float)
    people = np.full(n, np.nan)
    drawn = rng.choice(n, labels, replace=False)
    people[drawn] = passes[drawn]
    return judged, people


def rogan_gladen(judged: np.ndarray, people: np.ndarray) -> tuple[float, float]:
    """Rogan & Gladen's (1978) interval, with false alarms and misses from the labels."""
    drawn = ~np.isnan(people)
    passes, said, share = people[drawn] == 1, judged[drawn], judged.mean()
    if passes.all() or not passes.any():
        return 0.0, 1.0
    right, wrong = said[passes].mean(), said[~passes].mean()
    if right - wrong < 0.05:
        return 0.0, 1.0
    value, apart = (share - wrong) / (right - wrong), right - wrong
    variance = share * (1 - share) / len(judged)
    variance += value**2 * right * (1 - right) / passes.sum()
    variance += (1 - value) ** 2 * wrong * (1 - wrong) / (~passes).sum()
    reach = 1.96 * math.sqrt(variance) / apart
    return max(value - reach, 0.0), min(value + reach, 1.0)


def ends(found: Corrected) -> tuple[float, float]:
    """The ends of its interval."""
    return found.low, found.high


def success() -> Iterator[Line]:
    """The world of the issue, with fewer and more labels, better and worse judges."""
    worlds: tuple[tuple[str, int, float, tuple[float, float]], ...] = (
        ("8.6 % false alarms, 10 % misses", 60, 0.3, (0.086, 0.1)),
        ("8.6 % false alarms, 10 % misses", 20, 0.3, (0.086, 0.1)),
        ("8.6 % false alarms, 10 % misses", 150, 0.3, (0.086, 0.1)),
        ("8.6 % false alarms, 10 % misses", 540, 0.3, (0.086, 0.1)),
        ("2 % wrong", 20, 0.5, (0.02, 0.02)),
        ("2 % wrong", 60, 0.9, (0.02, 0.02)),
        ("passes too many", 60, 0.3, (0.02, 0.4)),
        ("passes too many", 20, 0.8, (0.05, 0.3)),
        ("always right", 20, 0.3, (0.0, 0.0)),
        ("always right", 60, 0.3, (0.0, 0.0)),
        ("tells nothing", 60, 0.5, (0.5, 0.5)),
        ("tells nothing", 20, 0.3, (0.7, 0.3)),
        ("more often wrong than right", 60, 0.3, (0.6, 0.7)),
    )
    for i, (judge, labels, truth, wrong) in enumerate(worlds):
        rng = np.random.default_rng([1, i])
        world = f"{truth:.2f} pass, judge {judge}, {labels} labels"
        corrected: Ends = []
        others: dict[str, Ends] = {"  the judge": [], "  labels alone": [], "  Rogan-Gladen": []}
        for _ in range(RUNS):
            judged, people = dialogues(rng, 547, labels, truth, wrong)
            corrected.append(ends(mean(judged, people)))
            others["  the judge"].append(of_share(judged.sum(), 547))
            others["  labels alone"].append(of_share(np.nansum(people), labels))
            others["  Rogan-Gladen"].append(rogan_gladen(judged, people))
        yield line("PPI++", world, "547", corrected, truth, 0.95)
        for method, found in others.items():
            yield line(method, world, "547", found, truth, math.nan)


def edges() -> Iterator[Line]:
    """One case in 20 passes, or does not: no interval of 20 labels holds everywhere."""
    for i, (labels, truth, wrong) in enumerate(
        ((20, 0.05, (0.086, 0.1)), (20, 0.95, (0.02, 0.3)), (20, 0.05, (0.0, 0.05)))
    ):
        rng = np.random.default_rng([2, i])
        drawn = (dialogues(rng, 547, labels, truth, wrong) for _ in range(RUNS))
        found = [ends(mean(judged, people)) for judged, people in drawn]
        world = f"{truth:.2f} pass, judge {wrong[0]:.2f} and {wrong[1]:.2f} wrong"
        yield line("PPI++, discrete", f"{world}, {labels} labels", "547", found, truth, 0.92)
    rng = np.random.default_rng([2, 9])
    for labels in (60, 150):
        drawn = (dialogues(rng, 547, labels, 0.05, (0.086, 0.1)) for _ in range(RUNS))
        found = [ends(mean(judged, people)) for judged, people in drawn]
        world = f"0.05 pass, judge 0.09 and 0.10 wrong, {labels} labels"
        yield line("PPI++", world, "547", found, 0.05, 0.95)


def wins() -> Iterator[Line]:
    """Win rates against seven others on shared ChatSEEDs, labels in one of the two orders."""
    worlds = ((40, 20, 0.3), (40, 60, 0.3), (40, 200, 0.3), (222, 60, 0.1), (222, 300, 0.6))
    for seeds, labels, alike in worlds:
        rng = np.random.default_rng([3, seeds, labels])
        truth, corrected, judges = 0.1 + 0.8 * 0.4, [], []
        for _ in range(RUNS):
            scale = (1 - alike) / alike
            chance = np.repeat(rng.beta(0.4 * scale, 0.6 * scale, seeds), 7)[:, None]
            tie, luck = rng.random((2, len(chance), 2))
            said = np.where(tie < 0.2, 0.5, luck < chance)
            # The judge is wrong in one of five, and then likes the model.
            wrong = rng.random(said.shape) < 0.2
            judged = np.where(wrong, rng.random(said.shape) < 0.7, said).mean(axis=1)
            people = np.full(len(judged), np.nan)
            drawn = rng.choice(len(judged), labels, replace=False)
            people[drawn] = said[drawn, 0]
            seed = np.repeat(np.arange(seeds), 7)
            corrected.append(ends(mean(judged, people, seed)))
            judges.append(ends(mean(judged, judged, seed)))
        world = f"win rates, 7 others, alike {alike:.1f}, {labels} labels"
        yield line("PPI++", world, str(seeds), corrected, truth, 0.95)
        yield line("  the judge", world, str(seeds), judges, truth, math.nan)


def strata() -> Iterator[Line]:
    """The mean of four models of unlike size of which as many were labelled of each."""
    shares, sizes = np.array([0.1, 0.3, 0.6, 0.9]), np.array([400, 200, 100, 100])
    model = np.repeat(np.arange(4), sizes)
    truth = float(shares @ sizes) / sizes.sum()
    for each in (10, 40):
        rng = np.random.default_rng([4, each])
        weighed, plain = [], []
        for _ in range(RUNS):
            passes, luck = rng.random(len(model)) < shares[model], rng.random(len(model))
            judged = np.where(passes, luck >= 0.086, luck < 0.1).astype(float)
            people = np.full(len(model), np.nan)
            for i in range(4):
                drawn = rng.choice(np.flatnonzero(model == i), each, replace=False)
                people[drawn] = passes[drawn]
            weighed.append(ends(mean(judged, people, chance=(each / sizes)[model])))
            plain.append(ends(mean(judged, people)))
        world = f"four models, {each} labels of each"
        yield line("PPI++", world, "800", weighed, truth, 0.95)
        yield line("  without their chances", world, "800", plain, truth, math.nan)


def scores() -> Iterator[Line]:
    """Means of scores from 1 to 5, as parts of the scale; the judge is half a point too kind."""
    worlds = {
        "in the middle": (0.1, 0.2, 0.4, 0.2, 0.1),
        "at the top": (0.01, 0.04, 0.1, 0.35, 0.5),
    }
    for (name, chances), labels in product(worlds.items(), (20, 60)):
        rng = np.random.default_rng([5, labels])
        truth = float(np.dot(np.arange(5) / 4, chances))
        corrected, judges = [], []
        for _ in range(RUNS):
            given = rng.choice(5, 547, p=chances)
            judged = np.clip(given + rng.integers(-1, 3, 547), 0, 4) / 4
            people = np.full(547, np.nan)
            drawn = rng.choice(547, labels, replace=False)
            people[drawn] = given[drawn] / 4
            corrected.append(ends(mean(judged, people)))
            judges.append(ends(mean(judged, judged)))
        world = f"mean of scores {name}, {labels} labels"
        yield line("PPI++", world, "547", corrected, truth, 0.95)
        yield line("  the judge", world, "547", judges, truth, math.nan)


def annotators() -> Iterator[Line]:
    """Other people: some are lenient, some strict (sd .8 logits); 60 dialogues that all label.

    Or each dialogue has one of them. The truth is of all people; the judge is one of them.
    """
    nodes, parts = np.polynomial.hermite_e.hermegauss(61)
    for everybody, people, labels in (
        *product((True,), (1, 2, 3, 5, 10), (60,)), *product((False,), (3, 10), (60, 150))
    ):  # fmt: skip
        rng = np.random.default_rng([6, people, labels, everybody])
        passes = 1 / (1 + np.exp(0.5 - nodes * math.hypot(0.8, 1.0)))
        truth = float(passes @ parts / parts.sum())
        these: Ends = []
        others: Ends = []
        for _ in range(RUNS):
            hard = rng.normal(size=547) - 0.5
            judged = (rng.random(547) < 1 / (1 + np.exp(-hard))).astype(float)
            drawn = rng.choice(547, labels, replace=False)
            if everybody:
                case, person = (part.ravel() for part in np.meshgrid(drawn, np.arange(people)))
            else:
                case, person = drawn, rng.integers(people, size=labels)
            lenient = 0.8 * rng.normal(size=people)
            said = rng.random(len(case)) < 1 / (1 + np.exp(-hard[case] - lenient[person]))
            given = Given(case, person, said.astype(float))
            reference = np.full(547, np.nan)
            reference[drawn] = (np.bincount(case, said) / np.maximum(np.bincount(case), 1))[drawn]
            found = mean(judged, reference, given=given)
            these.append(ends(found))
            others.append(found.others)
        how = "all label" if everybody else "one of them labels"
        world = f"{people} annotators, {how} each of {labels}"
        if people >= 3:
            yield line("PPI++, over people", world, "547", others, truth, 0.95)
        yield line("  these people", world, "547", these, truth, math.nan)


FAMILIES: list[Callable[[], Iterator[Line]]] = [success, edges, wins, strata, scores, annotators]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], FAMILIES))
