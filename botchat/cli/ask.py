"""Commands that ask models, from run to evaluate."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, TypeVar

from botchat.cli.output import formats_of, note, progress, say, unanswered, workspace_of
from botchat.errors import ConfigError
from botchat.leaves import leaf

if TYPE_CHECKING:
    from botchat.arguments import JudgeName, Spending
    from botchat.pipeline.agree import Compared
    from botchat.pipeline.run.plan import Plan
    from botchat.pipeline.run.work import Meter
    from botchat.workspace.folder import Workspace

Result_co = TypeVar("Result_co", covariant=True)


class _Request(Protocol[Result_co]):
    def plan(self, workspace: Workspace) -> Plan: ...

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Result_co: ...


def _ask(
    arguments: argparse.Namespace, request: _Request[Result_co]
) -> tuple[Result_co, Meter] | None:
    """Plan or run a request; ``None``: it was planned, and the plan is printed."""
    workspace = workspace_of(arguments)
    if arguments.plan:
        planned = request.plan(workspace)
        say(arguments, planned.whole, *planned.shown)
        return None
    with progress(arguments) as meter:
        return request.run(workspace, _spending(arguments), meter), meter


def _spending(arguments: argparse.Namespace) -> Spending:
    from botchat.arguments import Limits, Spending

    limits = Limits(arguments.max_usd, arguments.max_calls, arguments.max_tokens)
    cluster = workspace_of(arguments).config.cluster.where(
        arguments.engine, arguments.workers, arguments.store
    )
    return Spending(limits, arguments.batch, cluster)


def bench(arguments: argparse.Namespace) -> None:
    """Let a judge answer a benchmark of judges, or a model take part in a paper's experiment."""
    from botchat.boards.writers import Formats
    from botchat.pipeline.agree import Options

    judge = None if arguments.judge is None else _judge_of(arguments)
    options = Options(arguments.resamples, arguments.seed, formats_of(arguments) or Formats())
    request: _Request[Compared] | None = leaf("papers.reproduce", "bench").reproducing(
        arguments.benchmark,
        arguments.data,
        judge,
        table=arguments.table,
        figure=arguments.figure,
        runs=arguments.runs,
        grid=arguments.grid,
        stands_for=arguments.stands_for,
        limit=arguments.limit,
        out=arguments.out,
        options=options,
    )
    if request is None:
        request = leaf("papers.bench", "bench").Benching(
            arguments.benchmark,
            arguments.data,
            judge,
            arguments.recorded,
            arguments.control,
            arguments.out,
            options,
            arguments.limit,
        )
    elif arguments.recorded or arguments.control:
        raise ConfigError(
            "--recorded and --control do not go with --table, --figure, --runs and --grid"
        )
    if (asked := _ask(arguments, request)) is not None:
        made, meter = asked
        say(arguments, made.whole, *made.shown, meter=meter)


def inject(arguments: argparse.Namespace) -> None:
    """Let a model put errors into stories."""
    request = leaf("papers.inject", "inject").Injecting(
        arguments.file,
        arguments.model,
        arguments.out,
        arguments.language,
        arguments.words,
        arguments.limit,
        arguments.seed,
    )
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    for line in made.left_out:
        note(f"left out: {line}")
    say(
        arguments,
        asdict(made),
        list(made.rows),
        f"stories: {made.rows[-1]['stories']}, in {made.path}",
        meter=meter,
    )
    unanswered(made.unanswered, "stories", meter)


def _judge_of(arguments: argparse.Namespace) -> JudgeName:
    from botchat.arguments import JudgeName

    return JudgeName(arguments.judge, arguments.judge_model, arguments.samples)
