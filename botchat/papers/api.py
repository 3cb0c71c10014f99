"""The requests of this part as functions: ``botchat.bench(workspace, "faireval", folder)``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from botchat.arguments import JudgeName, Limits, Spending
from botchat.languages import EN
from botchat.papers.bench import Benching
from botchat.papers.inject import WORDS, Injecting, Made
from botchat.papers.reproduce import Reproducing, reproducing
from botchat.pipeline.agree import Compared, Options
from botchat.pipeline.run.work import Meter
from botchat.workspace.folder import Workspace


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
