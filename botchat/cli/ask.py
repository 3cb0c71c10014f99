"""The adaptive Arena: `botchat judge arena --adaptive`, `--add MODEL`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from botchat.cli.output import (
    escalated,
    limits_of,
    progress,
    say_plan,
    spent,
    unanswered,
    workspace_of,
)
from botchat.errors import LimitReached

if TYPE_CHECKING:
    from botchat.ratings.adaptive import AdaptiveSettings


def settings_of(arguments: argparse.Namespace) -> AdaptiveSettings | None:
    """How comparisons are chosen; ``None``: all are made."""
    from botchat.pipeline import adaptive as sampling

    return sampling.adaptive_settings(
        arguments.protocol,
        adaptive=arguments.adaptive,
        target=arguments.target,
        budget=arguments.budget,
        add=arguments.add,
        seed=arguments.seed,
        control=arguments.control,
    )


def judge(arguments: argparse.Namespace, settings: AdaptiveSettings) -> None:
    """Stage 2, as much of it as the ranking takes."""
    from botchat.cli.display import print_json, print_table, spent_line
    from botchat.pipeline import adaptive as sampling

    if arguments.plan:
        planned = sampling.plan_adaptively(
            workspace_of(arguments),
            arguments.seeds,
            arguments.judge,
            settings,
            add=arguments.add,
            judge_model=arguments.judge_model,
            models=arguments.model,
            turns=arguments.turns,
            samples=arguments.samples,
        )
        say_plan(arguments, planned)
        if not arguments.json:
            print(sampling.PLANNED)
        return
    try:
        with progress(arguments) as meter:
            made = sampling.judge_adaptively(
                workspace_of(arguments),
                arguments.seeds,
                arguments.judge,
                settings,
                add=arguments.add,
                judge_model=arguments.judge_model,
                models=arguments.model,
                turns=arguments.turns,
                samples=arguments.samples,
                limits=limits_of(arguments),
                batch=arguments.batch,
                meter=meter,
            )
    except LimitReached:
        for line in () if arguments.json else meter.notes.values():
            print(line)
        raise
    if arguments.json:
        print_json({"rows": [one.json for one in made], **spent(meter)})
    else:
        for one in made:
            print_table(one.shown)
            print("\n".join(one.lines))
            if one.judged.escalations:
                print(escalated(one.judged.escalations))
            print()
        if line := spent_line(meter):
            print(line)
    unanswered(sum(one.judged.unanswered for one in made), "verdicts", meter)
