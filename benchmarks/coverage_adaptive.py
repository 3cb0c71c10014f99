"""How often the adaptive Arena keeps its promise, and what that costs: made-up boards, seeds fixed.

    python benchmarks/coverage_adaptive.py [PART OF A WORLD'S NAME] [--worlds N]

Every run stops by itself at a target (its gap/swaps stand beside the method) and states how sure it
is. It is right where no more pairs than that, further apart than the gap on the whole board, are in
the wrong order. A world is a board: one of BotChat's two published tables with its verdicts dealt
anew, or made up by `scale.World`. Exits with 1 where achieved is below the mean of what was stated
by more than two standard errors. docs/adaptive.md quotes the table at more worlds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, combinations
from pathlib import Path

import numpy as np
from scale import LOGIT, World
from simulate import Population, simulate, swaps

from botchat import parallel
from botchat.measures.statistics import Z
from botchat.ratings.adaptive import AdaptiveDesign, AdaptiveSettings, Target
from botchat.ratings.rate_table import comparisons_from_rates

PUBLISHED = Path(__file__).parents[1] / "leaderboards" / "botchat-2023"
CLOSE, EXACT = Target(10, 2), Target(20, 0)
FIRST_VERSION = {
    ("N = 8", CLOSE): 3095,
    ("N = 16", CLOSE): 3108,
    ("N = 8", EXACT): 4159,
    ("N = 16", EXACT): 4367,
}
"""Mean calls of the version that did not keep its promise."""


@dataclass(frozen=True)
class Kept:
    """How often runs on boards of one kind kept their promise."""

    method: str
    world: str
    runs: int
    stated: float
    """Mean over the runs, which say it themselves."""
    kept: int
    calls: float
    error_calls: float
    promised: bool = True
    first: int = 0
    """Calls of the first version on these boards, where they are known."""

    @property
    def achieved(self) -> float:
        """Share of the runs."""
        return self.kept / self.runs

    @property
    def error(self) -> float:
        """Standard error of `achieved` where what is stated holds."""
        return math.sqrt(max(self.stated * (1 - self.stated), 0.25 / self.runs) / self.runs)

    @property
    def holds(self) -> bool:
        """Whether no less is achieved than is stated."""
        return not self.promised or self.achieved >= self.stated - 2 * self.error

    def __str__(self) -> str:
        """A line of the table."""
        beside = f", {self.calls / self.first:.2f} x {self.first:,}" if self.first else ""
        return (
            f"{self.method:<24}{self.world:<44}{self.runs:>5}  {self.stated:.3f}  "
            f"{self.achieved:.3f}  {self.error:.3f} {self.calls:7,.0f} ± {self.error_calls:.0f}"
            f"{beside}{'' if self.promised else ', a limit'}"
            f"{'' if self.holds else '  <-- less than stated'}"
        )


@dataclass(frozen=True)
class Kind:
    """Boards of one kind."""

    name: str
    of: Callable[[int], Population]
    """A board from its number."""
    targets: tuple[Target, ...] = (EXACT,)
    weight: float = 1.0
    """How many boards of it are drawn, beside other kinds."""
    uniform: bool = False
    """Whether uniform choice with the same stop stands beside it."""
    promised: bool = True
    """False: a limit that docs/adaptive.md names, only shown."""


@cache
def table(n: int) -> Population:
    """BotChat's published Arena at N = ``n``."""
    path = PUBLISHED / f"arena_n{n}.csv"
    return Population.of(comparisons_from_rates(path.read_text("utf-8"), 444, path.name))


def same(board: Callable[[int], Population], of: int, _number: int) -> Population:
    """The same board always: a run deals it by its own number."""
    return board(of)


def made_up(m: int, unreadable: float, parts: dict[str, float], number: int) -> Population:
    """A board of `scale.World`, some of whose verdicts are unreadable."""
    world = World.of(m, number, key=number + 1, **parts)
    result = world.all_results()
    result[np.random.default_rng([number, 1]).random(result.shape) < unreadable] = np.nan
    return Population(tuple(f"m{i:02}" for i in range(m)), result, dealt=False)


@cache
def ladder(step: int) -> Population:
    """14 models, ``step`` Elo between neighbours, exactly: all just beyond the gap."""
    rows = ["model_a,model_b,win_rate,win_or_tie_rate"]
    for i, j in combinations(range(14), 2):
        score = 1 / (1 + math.exp((i - j) * step / LOGIT))
        tie = 1.6 * score * (1 - score)
        rows.append(f"m{i:02},m{j:02},{score - tie / 2:.6f},{score + tie / 2:.6f}")
    return Population.of(comparisons_from_rates("\n".join(rows), 444, "ladder"))


def of(m: int = 14, unreadable: float = 0.0, **parts: float) -> Callable[[int], Population]:
    """What makes boards of m models up, a number each."""
    return partial(made_up, m, unreadable, parts)


CIRCLES = {"misfit": 0.0, "circles": 0.8}
KINDS = (
    Kind("N = 8", partial(same, table, 8), (CLOSE, EXACT), uniform=True),
    Kind("N = 16", partial(same, table, 16), (CLOSE, EXACT), uniform=True),
    Kind("no misfit", of(misfit=0.0)),
    Kind("misfit .15", of(), (CLOSE, EXACT)),
    Kind("misfit .30", of(misfit=0.3)),
    Kind("misfit .15, seeds all alike", of(dialogue=0.0), (CLOSE, EXACT)),
    Kind("94 % ties", of(strength=0.2, tie=3.0)),
    Kind("94 % ties, further apart", of(strength=0.4, tie=3.1)),
    Kind("ladder of 22 Elo", partial(same, ladder, 22)),
    Kind("ladder of 11 Elo", partial(same, ladder, 11), (CLOSE,), promised=False),
    Kind("rock, paper, scissors", of(15, **CIRCLES), weight=0.5),
    Kind("40 seeds, strongly clustered", of(n_seeds=40, dialogue=1.6)),
    Kind("position bias", of(position=0.5)),
    Kind("10 % unreadable", of(unreadable=0.1)),
    Kind("all of these, misfit .30", of(unreadable=0.1, misfit=0.3, dialogue=1.2, position=0.5)),
    Kind("5 models, misfit .30", of(5, misfit=0.3)),
    Kind("40 models", of(40), weight=0.1),
)
ADDED = (
    Kind("N = 8", partial(same, table, 8)),
    Kind("N = 16", partial(same, table, 16)),
    Kind("misfit .15", of()),
    Kind("misfit .30, seeds all alike", of(misfit=0.3, dialogue=0.0)),
    Kind("94 % ties", of(strength=0.2, tie=3.0)),
)
"""Boards on which each model in turn is placed among the others."""


def one(
    kind: Kind, settings: AdaptiveSettings, target: Target, number: int, added: int | None
) -> tuple[float, bool, int]:
    """What a run stated, whether it was right, and its calls."""
    population = kind.of(number)
    state = simulate(population, settings, number, added)
    wrong = swaps(state.rating[None], population.truth, target.gap)[0]
    return state.probability, bool(wrong <= target.swaps), state.made


def runs(
    method: str,
    kind: Kind,
    target: Target,
    worlds: int,
    *,
    design: str = "adaptive",
    added: int | None = None,
) -> Kept:
    """A line of the table; ``added``: models that are left out in turn, run by run."""
    settings = AdaptiveSettings(target, design=design)
    tasks = [
        partial(one, kind, settings, target, k, None if added is None else k % added)
        for k in range(worlds)
    ]
    with parallel.workers() as working:
        stated, kept, calls = map(np.array, zip(*working.begin(tasks, worlds), strict=True))
    name = f"{method} {target.gap:g}/{target.swaps}"
    error = float(calls.std() / math.sqrt(worlds))
    return Kept(name, kind.name, worlds, stated.mean(), int(kept.sum()), calls.mean(), error)


def adaptive(wanted: str = "", worlds: int = 40) -> Iterator[Kept]:
    """All kinds of boards whose name has ``wanted`` in it, about ``worlds`` of each."""
    for kind in KINDS:
        for target in kind.targets if wanted in kind.name else ():
            n = max(4, round(kind.weight * worlds))
            first = FIRST_VERSION.get((kind.name, target), 0)
            line = runs("adaptive", kind, target, n)
            yield replace(line, first=first, promised=kind.promised)
            if kind.uniform:
                yield runs("  uniform", kind, target, n, design="uniform")
    for kind in ADDED:
        if wanted in kind.name:
            yield runs("adaptive --add", kind, EXACT, max(14, worlds), added=14)


OTHERS: tuple[tuple[str, int, dict[str, float]], ...] = (
    ("misfit .15", 14, {}),
    ("misfit .30", 14, {"misfit": 0.3}),
    ("seeds all alike", 14, {"dialogue": 0.0}),
    ("40 seeds, strongly clustered", 14, {"n_seeds": 40, "dialogue": 1.6}),
    ("5 models, 94 % ties", 5, {"strength": 0.2, "tie": 3.0}),
)
TRUE_SEEDS = 5000


def elsewhere(m: int, parts: dict[str, float], number: int) -> tuple[float, ...]:
    """A run to 20/0, held against this board and against one of 5,000 other seeds.

    What it states of the others and whether it is right, whether the whole board itself is; the
    share of ratings within their intervals: here, elsewhere, and elsewhere by those of here.
    """
    world = World.of(m, number, key=number + 1, **parts)
    seeds = np.arange(world.quality.shape[1])
    here = world.ratings()
    others = World.of(m, number, key=number + 1, **(parts | {"n_seeds": TRUE_SEEDS})).ratings()
    names = [f"m{i:02}" for i in range(m)]
    design = AdaptiveDesign(names, lambda *_: seeds, AdaptiveSettings(EXACT))
    while (asked := design.ask()) is not None:
        design.tell(world.result(asked.first, asked.second, asked.seed))
    state, other = design.state, design.elsewhere
    kept, whole = (swaps(one[None], others, 20)[0] == 0 for one in (state.rating, here))
    inside = (
        (abs(state.rating - truth) <= Z * error).mean()
        for truth, error in ((here, state.error), (others, other.error), (others, state.error))
    )
    return other.probability, kept, whole, *inside, state.made


def other_seeds(wanted: str = "", worlds: int = 100) -> Iterator[Kept]:
    """What is said of other seeds than those that were asked about."""
    for name, m, parts in OTHERS:
        if wanted not in name:
            continue
        with parallel.workers() as working:
            tasks = [partial(elsewhere, m, parts, k) for k in range(worlds)]
            found = np.array(list(working.begin(tasks, worlds)), dtype=float)
        stated, kept, whole, here, there, mixed, calls = found.T
        error = float(calls.std() / math.sqrt(worlds))

        def line(method, share, stated, promised=True, name=name, calls=calls, error=error):
            n = round(float(share.sum()))
            return Kept(method, name, worlds, stated, n, calls.mean(), error, promised)

        yield line("other seeds 20/0", kept, float(stated.mean()))
        yield line("  by the whole board", whole, math.nan, promised=False)
        yield line("ratings here", here, 0.95)
        yield line("ratings elsewhere", there, 0.95)
        yield line("  by the error here", mixed, math.nan, promised=False)


FAMILIES: list[Callable[[], Iterator[Kept]]] = [adaptive, other_seeds]


def main() -> int:
    """Print the table; 1 where a promise was not kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wanted", nargs="?", default="", metavar="PART OF A WORLD'S NAME")
    parser.add_argument("--worlds", type=int, default=40)
    asked = parser.parse_args()
    print(f"{'method':<24}{'world':<44}{'runs':>5}  stated  achieved  se   calls")
    broken = 0
    lines = chain(adaptive(asked.wanted, asked.worlds), other_seeds(asked.wanted))
    for line in lines:
        print(line, flush=True)
        broken += not line.holds
    print(f"{broken} promises not kept")
    return int(broken > 0)


if __name__ == "__main__":
    raise SystemExit(main())
