"""What an adaptive Arena would have cost and found, had only a part of a finished one been asked.

    python benchmarks/simulate.py --rates leaderboards/botchat-2023/arena_n8.csv --per-pair 444
    python benchmarks/simulate.py --seeds SET --judge J --turns 8 --gap 20 --swaps 0 --budget 1000
    python benchmarks/simulate.py --rates FILE.csv --gap 20 --swaps 0 --add     # each model in turn

The board is the whole truth: its results answer for the judge, and its Bradley-Terry ratings are
what runs are held against. So the numbers say how well a part of this board represents the whole;
docs/adaptive.md has their meaning.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from botchat import parallel
from botchat.boards.coverage import of_pairs
from botchat.boards.results import comparisons_of
from botchat.boards.tables import frame_of
from botchat.errors import BotChatError, ConfigError, MissingError
from botchat.interfaces import Row
from botchat.measures.intervals import of_share
from botchat.measures.statistics import kendall
from botchat.pipeline.adaptive import ADD_BUDGET
from botchat.pipeline.run.read_set import only_judge, read
from botchat.protocols.catalogue import ARENA
from botchat.ratings.adaptive import AdaptiveDesign, AdaptiveSettings, BoardSoFar, Target
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import bootstrap_elo
from botchat.ratings.rate_table import MAX_RATES_BYTES, PER_PAIR, comparisons_from_rates
from botchat.verdicts import Floats, Indices
from botchat.workspace import files
from botchat.workspace.folder import Workspace
from botchat.workspace.rows import utf8

ALL = "all"
"""``--add``: every model in turn."""

_UNFINISHED = 0.05
"""Share of an Arena's comparisons that may be missing for it to stand for the whole."""


@dataclass(frozen=True, eq=False)
class Population:
    """Every comparison of a full board.

    ``result``: of model i shown before model j on each of s seeds, shape (m, m, s), or nan.
    ``dealt``: seed and order were not recorded; each run deals the results to them at random.
    """

    models: tuple[str, ...]
    result: Floats
    dealt: bool

    @classmethod
    def of(cls, comparisons: Comparisons) -> Population:
        """From comparisons, at most one a seed and order; `MissingError` if there is none."""
        comparisons.need_some()
        m, first, second = len(comparisons.models), comparisons.first, comparisons.second
        seed, result = comparisons.cluster, comparisons.result
        if seed is None:
            low, high, result = comparisons.oriented()
            pair = low * m + high
            order = np.argsort(pair, kind="stable")
            pair, result = pair[order], result[order]
            seed, swapped = np.divmod(np.arange(len(pair)) - np.searchsorted(pair, pair), 2)
            low, high = pair // m, pair % m
            first, second = np.where(swapped, high, low), np.where(swapped, low, high)
            result = np.where(swapped, 1 - result, result)
        cells = np.full((m, m, int(seed.max()) + 1), np.nan)
        cells[first, second, seed] = result
        return cls(comparisons.models, cells, comparisons.cluster is None)

    @property
    def comparisons(self) -> Comparisons:
        """All comparisons, with seeds."""
        first, second, seed = np.nonzero(~np.isnan(self.result))
        return Comparisons(self.models, first, second, self.result[first, second, seed], seed)

    @cached_property
    def truth(self) -> Floats:
        """The full board's Bradley-Terry ratings, shape (m,)."""
        return fit(self.comparisons).rating

    def seeds_of(self, i: int, j: int) -> Indices:
        """Seeds on which two models were compared in at least one order."""
        return np.flatnonzero(~np.isnan(self.result[i, j]) | ~np.isnan(self.result[j, i]))

    def deal(self, rng: np.random.Generator) -> Population:
        """The same comparisons; if ``dealt``, each pair's results dealt again."""
        if not self.dealt:
            return self
        low, high = np.triu_indices(len(self.models), 1)
        cells = np.concatenate([self.result[low, high], 1 - self.result[high, low]], axis=1)
        one, other = np.split(rng.permuted(cells, axis=1), 2, axis=1)
        result = self.result.copy()
        result[low, high], result[high, low] = one, 1 - other
        return replace(self, result=result)


def simulate(
    population: Population, settings: AdaptiveSettings, run: int, added: int | None = None
) -> BoardSoFar:
    """How run number ``run`` of a design ends; ``added``: a model to place on the others' board."""
    rng = np.random.default_rng([settings.seed, run])
    population = population.deal(rng)
    known = None
    if added is not None:
        board = population.result.copy()
        board[added] = board[:, added] = np.nan
        known = replace(population, result=board).comparisons
    settings = replace(settings, seed=int(rng.integers(1 << 32)))
    design = AdaptiveDesign(population.models, population.seeds_of, settings, known, added)
    while (asked := design.ask()) is not None:
        design.tell(population.result[asked.first, asked.second, asked.seed])
    return design.state


def swaps(ratings: Floats, truth: Floats, gap: float) -> Indices:
    """Pairs more than ``gap`` apart in truth, in another order in ratings (n, m); shape (n,)."""
    low, high = np.triu_indices(len(truth), 1)
    apart = truth[low] - truth[high]
    wrong = (ratings[:, low] - ratings[:, high]) * np.sign(apart) <= 0
    return np.asarray((wrong & (np.abs(apart) > gap)).sum(axis=1))


def order_kept(ratings: Floats, truth: Floats) -> Floats:
    """Kendall's tau-b of ratings (n, m) with the truth, shape (n,); 0 where all are equal."""
    return np.nan_to_num(kendall(ratings, np.broadcast_to(truth, ratings.shape)))


def designs(
    comparisons: Comparisons,
    target: Target,
    budgets: Sequence[int],
    add: str | None,
    runs: int,
    seed: int,
) -> list[Row]:
    """A row for each design, run ``runs`` times until ``target`` and to each of ``budgets``.

    With ``add`` a model, or `ALL` in turn, is placed on the board of the others to ``budgets``.
    """
    population = Population.of(comparisons)
    trials = _trials(population.models, target, budgets, add, seed)
    truths = population.truth, bootstrap_elo(comparisons).rating
    tasks = [
        partial(simulate, population, settings, run, place)
        for settings, place in trials
        for run in range(runs)
    ]
    with parallel.workers() as working:
        done = list(working.begin(tasks, len(tasks) * _SECONDS_A_RUN))
    rows = []
    if add is None:
        # All comparisons: Bradley-Terry is the truth, Elo may differ from it.
        n, error = len(comparisons), np.zeros(len(truths[0]))
        whole = BoardSoFar(n, n, truths[0], error, 0, 1.0, "", "")
        certain = {"success_low": 1.0, "kendall_mean": 1.0}
        rows.append(_row("full", None, None, [whole], truths, target) | certain)
    for i, (settings, place) in enumerate(trials):
        those = done[i * runs : (i + 1) * runs]
        added = None if place is None else population.models[place]
        rows.append(_row(settings.design, settings.budget, added, those, truths, target))
    return [*rows, *(_over_models(rows) if add == ALL else ())]


_SECONDS_A_RUN = 0.1


def _trials(
    models: Sequence[str],
    target: Target,
    budgets: Sequence[int],
    add: str | None,
    seed: int,
) -> list[tuple[AdaptiveSettings, int | None]]:
    """Each design to run, and the index of the model to be placed."""
    if add is not None:
        if add not in (ALL, *models):
            raise ConfigError(f"--add {add}: not on this board; it has {', '.join(models)}")
        return [
            (AdaptiveSettings(None, budget, seed=seed), i)
            for budget in budgets or [ADD_BUDGET]
            for i, model in enumerate(models)
            if add in (ALL, model)
        ]
    stops: list[tuple[Target | None, int | None]] = [(target, None)]
    stops += [(None, budget) for budget in budgets]
    return [
        (AdaptiveSettings(until, budget, design, seed), None)
        for until, budget in stops
        for design in ("adaptive", "uniform")
    ]


def _row(
    design: str,
    budget: int | None,
    added: str | None,
    made: Sequence[BoardSoFar],
    truths: tuple[Floats, Floats],
    target: Target,
) -> Row:
    ratings = np.stack([run.rating for run in made])
    calls = np.array([run.made for run in made])
    # A run to a budget states what it would have, had it stopped by the target.
    wrong, by_elo = (swaps(ratings, truth, target.gap) for truth in truths)
    hits = int((wrong <= target.swaps).sum())
    low, high = of_share(hits, len(made))
    return {
        "design": design,
        "budget": budget,
        "added": added,
        "runs": len(made),
        "calls_mean": float(calls.mean()),
        "calls_std": float(calls.std()),
        "share": float(np.mean([run.made / run.population for run in made])),
        "success": hits / len(made),
        "success_low": low,
        "success_high": high,
        "success_elo": float((by_elo <= target.swaps).mean()),
        "stated": float(np.mean([run.probability for run in made])),
        "swaps_mean": float(wrong.mean()),
        "kendall_mean": float(order_kept(ratings, truths[0]).mean()),
    }


def _over_models(rows: Sequence[Row]) -> list[Row]:
    """Rows of one model each, put together for each budget."""
    found = []
    for budget in dict.fromkeys(row["budget"] for row in rows):
        some = [row for row in rows if row["budget"] == budget]
        n = sum(row["runs"] for row in some)
        low, high = of_share(round(sum(row["success"] * row["runs"] for row in some)), n)
        means = {
            key: float(np.mean([row[key] for row in some]))
            for key, value in some[0].items()
            if isinstance(value, float)
        }
        of_all = {"added": ALL, "runs": n, "success_low": low, "success_high": high}
        found.append({**some[0], **means, **of_all})
    return found


def _finished(
    workspace: Workspace, seed_set: str, judge: str | None, turns: int | None
) -> Comparisons:
    """The readable verdicts of one judge's whole Arena at one N."""
    chosen = only_judge(workspace, seed_set, judge)
    found = read(workspace, seed_set, chosen, in_columns=True)
    name = next(iter(found.judged))
    columns = found.columns[name]
    arenas = {
        protocol.n: (protocol, columns[filed])
        for filed, protocol in found.catalogue.among(columns).items()
        if protocol.base == ARENA.name
    }
    if not arenas:
        raise MissingError(
            f"{name} has judged no Arena of {seed_set}; make one with: "
            f"botchat judge arena --seeds {seed_set} --judge {name}"
        )
    n = next(iter(arenas)) if turns is None else turns
    if n not in arenas or (turns is None and len(arenas) > 1):
        asked = "several Arenas" if turns is None else f"no Arena at N = {turns}"
        known = ", ".join(str(at) for at in sorted(n for n in arenas if n))
        raise ConfigError(f"{asked} of {seed_set} by {name}: name one with --turns: {known}")
    protocol, verdicts = arenas[n]
    made = verdicts.on({seed.id for seed in protocol.eligible(found.seeds)})
    gaps = of_pairs(protocol, found.seeds, found.dialogues, made).values()
    missing = sum(lacking["not_judged"] for lacking in gaps) // 2  # a comparison is on two accounts
    if missing > _UNFINISHED * (missing + len(made)):
        raise MissingError(
            f"the Arena at N = {n} of {seed_set} by {name} is no truth to compare with: "
            f"{missing:,} of {missing + len(made):,} comparisons are not judged; finish it with: "
            f"botchat judge arena --seeds {seed_set} --judge {name} --turns {n}"
        )
    return comparisons_of(made.only(made.readable))


def main() -> int:
    """Print a row for each design, and what success means."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=Path, help="the board: a table as of leaderboard")
    parser.add_argument("--per-pair", type=int, default=PER_PAIR, help="comparisons a pair (444)")
    parser.add_argument("--dir", type=Path, default=Path(), help="the board: of this workspace")
    parser.add_argument("--seeds", help="the finished Arena of this set")
    parser.add_argument("--judge", help="by whom (needed if there are two)")
    parser.add_argument("--turns", type=int, help="at N (needed if there are two)")
    parser.add_argument("--gap", type=float, default=10.0, help="Elo; nearer pairs do not count")
    parser.add_argument("--swaps", type=int, default=2, help="at most so many in the wrong order")
    parser.add_argument("--confidence", type=float, default=0.95, help="this surely")
    parser.add_argument("--budget", type=int, action="append", default=[], help="repeatable")
    parser.add_argument("--add", nargs="?", const=ALL, help="place this model, or each in turn")
    parser.add_argument("--runs", type=int, default=200, help="of each design")
    parser.add_argument("--seed", type=int, default=0, help="of all runs")
    asked = parser.parse_args()
    if (asked.rates is None) == (asked.seeds is None):
        parser.error("give either --rates FILE.csv or --seeds SET")
    try:
        target = Target(asked.gap, asked.swaps, asked.confidence)
        if asked.rates:
            text = utf8(files.content(asked.rates, MAX_RATES_BYTES), str(asked.rates))
            comparisons = comparisons_from_rates(text, asked.per_pair, str(asked.rates))
        else:
            comparisons = _finished(Workspace(asked.dir), asked.seeds, asked.judge, asked.turns)
        rows = designs(comparisons, target, asked.budget, asked.add, asked.runs, asked.seed)
    except BotChatError as error:
        parser.error(str(error))
    print(frame_of(rows).to_string(index=False, float_format="{:.3f}".format))
    print(
        f"{len(comparisons):,} comparisons of {len(comparisons.models)} models. Success: at most "
        f"{target.swaps} pairs more than {target.gap:g} Elo apart in the wrong order, beside the "
        "full board's Bradley-Terry. Stated: what the runs themselves took its probability for."
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
