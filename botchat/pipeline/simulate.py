"""``botchat simulate``: what the Arena would have cost, had only a part of it been asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from botchat import parallel
from botchat.boards.coverage import of_pairs
from botchat.boards.results import comparisons_of
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Row
from botchat.measures.statistics import wilson
from botchat.pipeline.adaptive import ADD_BUDGET
from botchat.pipeline.leaderboard import read_rates
from botchat.pipeline.read_set import only_judge, read
from botchat.pipeline.run import Meter
from botchat.protocols.catalogue import ARENA
from botchat.ratings import simulation
from botchat.ratings.adaptive import AdaptiveSettings, State, Target
from botchat.ratings.comparisons import Comparisons, Floats
from botchat.ratings.elo import EloSettings, bootstrap_elo
from botchat.ratings.simulation import Population
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = "all"
"""``--add all``: every model in turn."""

_UNFINISHED = 0.05
"""Share of an Arena's comparisons that may be missing for it to stand for the whole."""

_SECONDS_A_RUN = 0.1


@dataclass(frozen=True)
class Simulated:
    """What each design came to."""

    rows: Sequence[Row]
    """A design each, with the columns of ``docs/scale.md``."""
    note: str

    @property
    def frame(self) -> DataFrame:
        """The rows as a data frame."""
        from botchat.boards.frames import frame_of  # pandas, which no run needs

        return frame_of(self.rows)

    @property
    def shown(self) -> list[Row]:
        """The same for people."""
        return [
            {
                "design": row["design"],
                **({"added": row["added"]} if row["added"] else {}),
                "stops": f"at {row['budget']:,}" if row["budget"] else "target",
                "calls": f"{row['calls_mean']:,.0f}",
                "of all": f"{100 * row['share']:.1f} %",
                "success": f"{100 * row['success']:.1f} %",
                "95 %": f"{100 * row['success_low']:.0f}–{100 * row['success_high']:.0f}",
                "stated": f"{100 * row['stated']:.1f} %",
                "by Elo": f"{100 * row['success_elo']:.1f} %",
                "Kendall": f"{row['kendall_mean']:.3f}",
            }
            for row in self.rows
        ]


def simulate(
    workspace: Workspace | None = None,
    *,
    rates: Path | None = None,
    per_pair: int | None = None,
    seed_set: str | None = None,
    judge: str | None = None,
    turns: int | None = None,
    target: Target | None = None,
    budgets: Sequence[int] = (),
    add: str | None = None,
    runs: int = 200,
    seed: int = 0,
    elo: EloSettings | None = None,
    n_jobs: int | None = None,
    meter: Meter | None = None,
) -> Simulated:
    """Run designs on a rate table or a finished Arena, and compare them with all of it.

    The board is either the Arena of ``seed_set``, by ``judge`` at N = ``turns`` (default: the only
    one), or the table ``rates`` of ``leaderboard --pairwise-rates``, each pair of which stands for
    ``per_pair`` comparisons (444). Each design runs ``runs`` times until ``target``, and to each of
    ``budgets`` comparisons. With ``add`` a model, or with ``all`` each in turn, is placed on the
    board of the others instead, to ``budgets`` (400).
    """
    target, meter = target or Target(), meter or Meter()
    if runs < 1:
        raise ConfigError(f"runs {runs}: give at least 1")
    if (rates is None) == (seed_set is None):
        raise ConfigError("simulate needs either --rates FILE.csv or --seeds SET")
    if rates is not None:
        comparisons, name = read_rates(rates, per_pair), rates.name
    else:
        comparisons = _finished(workspace or Workspace(Path()), str(seed_set), judge, turns)
        name = str(seed_set)
    population = Population.of(comparisons)
    if add is not None and len(population.models) < 3:
        raise ConfigError("--add needs a board of at least two other models")
    trials = _trials(population.models, target, budgets, add, seed)
    meter.begin("rate the full board", 0)
    truths = population.truth, bootstrap_elo(comparisons, elo, n_jobs=n_jobs).rating
    meter.begin("simulate", len(trials) * runs)
    done: list[State] = []
    tasks = [
        partial(simulation.simulate, population, settings, run, place)
        for settings, place in trials
        for run in range(runs)
    ]
    with parallel.workers(n_jobs) as working:
        for made in working.begin(tasks, len(tasks) * _SECONDS_A_RUN):
            done.append(made)
            meter.advance()
    rows = []
    if add is None:
        # All comparisons: Bradley-Terry is the truth, Elo may differ from it.
        whole = State(
            len(comparisons), len(comparisons), truths[0], np.zeros(len(truths[0])), 0, 1.0, "", ""
        )
        certain = {"success_low": 1.0, "kendall_mean": 1.0}
        rows.append(_row("full", None, None, [whole], truths, target) | certain)
    for i, (settings, place) in enumerate(trials):
        those = done[i * runs : (i + 1) * runs]
        added = None if place is None else population.models[place]
        rows.append(_row(settings.design, settings.budget, added, those, truths, target))
    if add == ALL:
        rows += _over_models(rows)
    dealt = " Seeds are not recorded: each run deals a pair's outcomes anew." * population.dealt
    return Simulated(
        rows,
        f"{name}: {len(comparisons):,} comparisons of {len(population.models)} models. Success: at "
        f"most {target.swaps} pairs more than {target.gap:g} Elo apart in the wrong order, beside "
        "the full board's Bradley–Terry (by Elo: beside its Elo). Stated: what the runs themselves "
        f"took its probability for.{dealt}",
    )


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
    designs: tuple[Literal["adaptive", "uniform"], ...] = ("adaptive", "uniform")
    stops: list[tuple[Target | None, int | None]] = [(target, None)]
    stops += [(None, budget) for budget in budgets]
    return [
        (AdaptiveSettings(until, budget, design, seed), None)
        for until, budget in stops
        for design in designs
    ]


def _row(
    design: str,
    budget: int | None,
    added: str | None,
    made: Sequence[State],
    truths: tuple[Floats, Floats],
    target: Target,
) -> Row:
    ratings = np.stack([run.rating for run in made])
    calls = np.array([run.made for run in made])
    # A run to a budget states what it would have, had it stopped by the target.
    swaps, by_elo = (simulation.swaps(ratings, truth, target.gap) for truth in truths)
    hits = int((swaps <= target.swaps).sum())
    low, high = wilson(hits, len(made))
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
        "swaps_mean": float(swaps.mean()),
        "kendall_mean": float(simulation.order_kept(ratings, truths[0]).mean()),
    }


def _over_models(rows: Sequence[Row]) -> list[Row]:
    """Rows of one model each, put together for each budget."""
    found = []
    for budget in dict.fromkeys(row["budget"] for row in rows):
        some = [row for row in rows if row["budget"] == budget]
        n = sum(row["runs"] for row in some)
        low, high = wilson(round(sum(row["success"] * row["runs"] for row in some)), n)
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
