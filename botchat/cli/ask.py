"""Commands that ask models: generate, judge (adaptively too), probe, bench."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from botchat.cli.output import (
    escalated,
    print_json,
    print_table,
    progress,
    say,
    say_compared,
    say_plan,
    spending_of,
    spent,
    spent_line,
    unanswered,
    workspace_of,
)
from botchat.interfaces import Row

if TYPE_CHECKING:
    from botchat.pipeline.judge import Judged
    from botchat.pipeline.plan import Planned
    from botchat.pipeline.run import Meter
    from botchat.pipeline.session import JudgeName, Spending
    from botchat.ratings.adaptive import AdaptiveSettings
    from botchat.workspace.folder import Workspace

Result_co = TypeVar("Result_co", covariant=True)


class _Request(Protocol[Result_co]):
    def plan(self, workspace: Workspace) -> list[Planned]: ...

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Result_co: ...


def _ask(
    arguments: argparse.Namespace, request: _Request[Result_co]
) -> tuple[Result_co, Meter] | None:
    """Plan or run a request; ``None``: it was planned, and the plan is printed."""
    workspace = workspace_of(arguments)
    if arguments.plan:
        say_plan(arguments, request.plan(workspace))
        return None
    with progress(arguments) as meter:
        return request.run(workspace, spending_of(arguments), meter), meter


def generate(arguments: argparse.Namespace) -> None:
    """Stage 1."""
    from botchat.pipeline.generate import Generating

    request = Generating(
        arguments.seeds,
        tuple(dict.fromkeys(arguments.model)),
        arguments.partner,
        arguments.turns,
        arguments.limit,
    )
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    say(arguments, {"rows": [asdict(one) for one in made]}, meter=meter)
    unanswered(sum(one.unanswered for one in made), "dialogues", meter)


def judge(arguments: argparse.Namespace) -> None:
    """Stage 2."""
    from botchat.pipeline.adaptive import adaptive_settings
    from botchat.pipeline.judge import Judging
    from botchat.pipeline.session import catalogue_of

    settings = adaptive_settings(
        catalogue_of(workspace_of(arguments)).named(arguments.protocol),
        adaptive=arguments.adaptive,
        target=arguments.target,
        budget=arguments.budget,
        add=arguments.add,
        seed=arguments.seed,
        control=arguments.control,
    )
    if settings is not None:
        _judge_adaptively(arguments, settings)
        return
    request = Judging(
        arguments.seeds,
        arguments.protocol,
        _judge_of(arguments),
        tuple(arguments.model),
        tuple(arguments.turns),
        arguments.control,
    )
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    shown = ("protocol", "judge", "cases", "new", "unreadable", "path")
    rows = [{key: getattr(one, key) for key in shown} for one in made]
    whole = [row | about(one) for row, one in zip(rows, made, strict=True)]
    lines = []
    for one in made:
        lines += [f"{one.protocol}: {escalated(one.escalations)}"] if one.escalations else []
        lines += [f"{one.protocol}: {one.stability}"] if one.stability else []
    say(arguments, {"rows": whole}, rows, meter, lines)
    _complete(made, meter)


def _judge_adaptively(arguments: argparse.Namespace, settings: AdaptiveSettings) -> None:
    """Stage 2, as much of it as the ranking takes."""
    from botchat.pipeline.adaptive import PLANNED, Adaptive

    request = Adaptive(
        arguments.seeds,
        _judge_of(arguments),
        settings,
        arguments.add,
        tuple(arguments.model),
        tuple(arguments.turns),
        arguments.protocol,
    )
    if (asked := _ask(arguments, request)) is None:
        if not arguments.json:
            print(PLANNED)
        return
    made, meter = asked
    if arguments.json:
        print_json({"rows": [one.json | about(one.judged) for one in made], **spent(meter)})
    else:
        for one in made:
            print_table(one.shown)
            print("\n".join(one.lines))
            if one.judged.escalations:
                print(escalated(one.judged.escalations))
            print()
        if line := spent_line(meter):
            print(line)
    _complete((one.judged for one in made), meter)


def probe(arguments: argparse.Namespace) -> None:
    """Plant faults and see whether a judge finds them."""
    from botchat.pipeline.probe import Probing

    request = Probing(arguments.seeds, _judge_of(arguments), arguments.limit, arguments.seed)
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    whole = {
        "judge": made.judge,
        "rows": made.rows,
        "untouched": made.untouched,
        "signature": made.signature,
        "path": str(made.path),
    }
    say(arguments, {**whole, **spent(meter)}, made.shown, meter)
    if not arguments.json:
        print(made.signature)
    unanswered(made.unanswered, "verdicts", meter)


def bench(arguments: argparse.Namespace) -> None:
    """Let a judge answer a benchmark of judges."""
    from botchat.pipeline.agree import Options
    from botchat.pipeline.bench import Benching

    request = Benching(
        arguments.benchmark,
        arguments.data,
        None if arguments.judge is None else _judge_of(arguments),
        arguments.recorded,
        arguments.control,
        arguments.out,
        Options(arguments.resamples, arguments.seed),
    )
    if (asked := _ask(arguments, request)) is not None:
        say_compared(arguments, *asked)


def about(judged: Judged) -> Row:
    """What a cascade did, and how steady a judge is that was sampled, where there is such."""
    found: dict[str, Any] = {"escalations": judged.escalations, "stability": judged.stability}
    return {name: asdict(value) for name, value in found.items() if value}


def _complete(made: Iterable[Judged], meter: Meter) -> None:
    unanswered(sum(one.unanswered for one in made), "verdicts", meter)


def _judge_of(arguments: argparse.Namespace) -> JudgeName:
    from botchat.pipeline.session import JudgeName

    return JudgeName(arguments.judge, arguments.judge_model, arguments.samples)
