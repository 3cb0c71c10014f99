"""Commands about judges: agree, bench."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from botchat.cli.output import limits_of, progress, say_plan, spent, workspace_of

if TYPE_CHECKING:
    from botchat.pipeline.agree import Compared
    from botchat.pipeline.run import Meter


def agree(arguments: argparse.Namespace) -> None:
    """Compare judges with people and with each other."""
    from botchat.pipeline import agree as agreeing
    from botchat.pipeline.agree import Options

    found = agreeing.agree(
        workspace_of(arguments),
        arguments.files,
        seed_set=arguments.seeds,
        protocol=arguments.protocol,
        judges=arguments.judge,
        truth=arguments.truth,
        out=arguments.out,
        options=Options(arguments.resamples, arguments.seed),
    )
    _show(arguments, found)


def bench(arguments: argparse.Namespace) -> None:
    """Let a judge answer a benchmark of judges."""
    from botchat.pipeline import bench as benching
    from botchat.pipeline.agree import Options

    if arguments.plan:
        planned = benching.plan_bench(
            workspace_of(arguments),
            arguments.benchmark,
            arguments.data,
            arguments.judge,
            judge_model=arguments.judge_model,
            samples=arguments.samples,
            control=arguments.control,
        )
        say_plan(arguments, planned)
        return
    with progress(arguments) as meter:
        found = benching.bench(
            workspace_of(arguments),
            arguments.benchmark,
            arguments.data,
            arguments.judge,
            judge_model=arguments.judge_model,
            samples=arguments.samples,
            from_recorded=arguments.recorded,
            control=arguments.control,
            out=arguments.out,
            options=Options(arguments.resamples, arguments.seed),
            limits=limits_of(arguments),
            batch=arguments.batch,
            meter=meter,
        )
    _show(arguments, found, meter)


def _show(arguments: argparse.Namespace, found: Compared, meter: Meter | None = None) -> None:
    from botchat.cli.output import print_json, print_table, spent_line

    if arguments.json:
        print_json({**found.whole, **(spent(meter) if meter else {})})
        return
    for part in found.tables:
        print(f"{part.title}\n")
        print_table(part.rows_for_people)
        print(f"\n{part.note}\n" if part.note else "")
    for line in found.lines:
        print(line)
    if meter is not None and (line := spent_line(meter)):
        print(line)
