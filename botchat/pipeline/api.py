"""The requests as functions: ``botchat.judge(workspace, "arena", "sample", "rules")``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.boards.frames import Results
from botchat.languages import EN
from botchat.pipeline.adaptive import Adaptive
from botchat.pipeline.adaptive_run import AdaptiveResult
from botchat.pipeline.agree import Compared, Options
from botchat.pipeline.bench import Benching
from botchat.pipeline.evaluate import Evaluated, Evaluating
from botchat.pipeline.generate import Generated, Generating
from botchat.pipeline.inject import Injecting, Made
from botchat.pipeline.judge import Judging
from botchat.pipeline.probe import Probed, Probing
from botchat.pipeline.probe_polarity import Polarity, ProbingPolarity
from botchat.pipeline.reproduce import Reproducing, reproducing
from botchat.pipeline.run.ask import StageResult
from botchat.pipeline.run.session import JudgeName, Limits, Spending
from botchat.pipeline.run.work import Meter
from botchat.pipeline.whole_run import Ran, Running
from botchat.protocols.catalogue import ARENA
from botchat.protocols.injection import WORDS
from botchat.ratings.adaptive import AdaptiveSettings
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.tables import Formats


def run(
    workspace: Workspace,
    seed_set: str | None = None,
    models: Sequence[str] = (),
    judge_name: str | None = None,
    *,
    judge_model: str | None = None,
    protocols: Sequence[str] = (),
    limit: int | None = None,
    samples: int = 1,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Ran:
    """Generate, judge and rank in one go; see `Running`. What is left out, botchat.toml says."""
    names = tuple(dict.fromkeys([models] if isinstance(models, str) else models))
    request = Running.of(
        workspace, seed_set, names, judge_name, judge_model, protocols, limit, samples
    )
    return request.run(workspace, Spending(limits or Limits(), batch), meter)


def generate(
    workspace: Workspace,
    seed_set: str,
    models: Sequence[str],
    *,
    partner: str | None = None,
    turns: int | None = None,
    limit: int | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Results[Generated]:
    """Extend every ChatSEED of a set by each model; see `Generating`."""
    names = tuple(dict.fromkeys([models] if isinstance(models, str) else models))
    request = Generating(seed_set, names, partner, turns, limit)
    made = request.run(workspace, Spending(limits or Limits(), batch), meter)
    return Results(made, map(asdict, made))


def judge(
    workspace: Workspace,
    protocol: str,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    models: Sequence[str] = (),
    turns: Sequence[int] = (),
    samples: int = 1,
    control: bool = False,
    bridge_from: str | None = None,
    budget: int | None = None,
    rng_seed: int = 0,
    limit: int | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Results[StageResult]:
    """Judge the dialogues of a set in one protocol; see `Judging`."""
    named = JudgeName(judge_name, judge_model, samples)
    request = Judging(
        seed_set,
        protocol,
        named,
        tuple(models),
        tuple(turns),
        control,
        bridge_from,
        budget,
        rng_seed,
        limit,
    )
    made = request.run(workspace, Spending(limits or Limits(), batch), meter)
    return Results(made, (one.shown | one.account for one in made))


def judge_adaptively(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    settings: AdaptiveSettings | None = None,
    *,
    add: str | None = None,
    judge_model: str | None = None,
    models: Sequence[str] = (),
    turns: Sequence[int] = (),
    protocol: str = ARENA.name,
    samples: int = 1,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Results[AdaptiveResult]:
    """Judge as much of an Arena as its ranking takes; see `Adaptive`."""
    named = JudgeName(judge_name, judge_model, samples)
    request = Adaptive(seed_set, named, settings, add, tuple(models), tuple(turns), protocol)
    made = request.run(workspace, Spending(limits or Limits(), batch), meter)
    return Results(made, (one.json for one in made))


def probe(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    limit: int | None = None,
    rng_seed: int = 0,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Probed:
    """Plant every fault in every dialogue that it fits, see what is found; see `Probing`."""
    named = JudgeName(judge_name, judge_model, samples)
    request = Probing(seed_set, named, limit, rng_seed)
    return request.run(workspace, Spending(limits or Limits(), batch), meter)


def probe_polarity(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    limit: int | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Polarity:
    """Put a floor bot beside people, see which way a panel's roles pull; see `ProbingPolarity`."""
    named = JudgeName(judge_name, judge_model, samples)
    request = ProbingPolarity(seed_set, named, limit)
    return request.run(workspace, Spending(limits or Limits(), batch), meter)


def bench(
    workspace: Workspace,
    benchmark: str,
    data: Path,
    judge_name: str | None = None,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    from_recorded: bool = False,
    control: bool = False,
    out: Path | None = None,
    options: Options | None = None,
    limit: int | None = None,
    table: str | None = None,
    figure: str | None = None,
    runs: int | None = None,
    grid: Sequence[str] = (),
    stands_for: str | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Compared:
    """Let a judge answer a benchmark and compare it with people; see `Benching`.

    ``table``, ``figure``, ``runs``, ``grid``: a paper's experiment; see `Reproducing`.
    """
    named = None if judge_name is None else JudgeName(judge_name, judge_model, samples)
    data, options = Path(data), options or Options()
    request: Benching | Reproducing | None = reproducing(
        benchmark,
        data,
        named,
        table=table,
        figure=figure,
        runs=runs,
        grid=grid,
        stands_for=stands_for,
        limit=limit,
        out=out,
        options=options,
    )
    if request is None:
        request = Benching(benchmark, data, named, from_recorded, control, out, options, limit)
    return request.run(workspace, Spending(limits or Limits(), batch), meter)


def inject(
    workspace: Workspace,
    file: Path,
    model: str,
    out: Path,
    *,
    language: str = EN,
    words: int = WORDS,
    limit: int | None = None,
    rng_seed: int = 0,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Made:
    """Let a model put errors into the stories of a file; see `Injecting`."""
    request = Injecting(Path(file), model, Path(out), language, words, limit, rng_seed)
    return request.run(workspace, Spending(limits or Limits(), batch), meter)


def evaluate(
    workspace: Workspace,
    file: Path,
    judge_name: str,
    *,
    criteria: Sequence[str] = (),
    judge_model: str | None = None,
    samples: int = 1,
    out: Path | None = None,
    formats: Formats | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Evaluated:
    """Let a judge report on the texts, or decide on the pairs, of a file; see `Evaluating`."""
    named = JudgeName(judge_name, judge_model, samples)
    request = Evaluating(Path(file), named, tuple(criteria), out, formats)
    return request.run(workspace, Spending(limits or Limits(), batch), meter)
