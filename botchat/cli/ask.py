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

from dataclasses import asdict

from botchat.cli.output import (
    counts,
    say,
)


def settings_of(arguments: argparse.Namespace) -> AdaptiveSettings | None:
    """How comparisons are chosen; ``None``: all are made."""
    from botchat.pipeline import adaptive as decoding

    return decoding.adaptive_settings(
        arguments.protocol,
        adaptive=arguments.adaptive,
        target=arguments.target,
        budget=arguments.budget,
        add=arguments.add,
        seed=arguments.seed,
        control=arguments.control,
    )


def judge_adaptively(arguments: argparse.Namespace, settings: AdaptiveSettings) -> None:
    """Stage 2, as much of it as the ranking takes."""
    from botchat.cli.output import print_json, print_table, spent_line
    from botchat.pipeline import adaptive as decoding

    if arguments.plan:
        planned = decoding.plan_adaptively(
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
            print(decoding.PLANNED)
        return
    try:
        with progress(arguments) as meter:
            made = decoding.judge_adaptively(
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


def generate(arguments: argparse.Namespace) -> None:
    """Stage 1."""
    from botchat.pipeline import generate as generation

    if arguments.plan:
        planned = generation.plan_generate(
            workspace_of(arguments),
            arguments.seeds,
            arguments.model,
            partner=arguments.partner,
            turns=arguments.turns,
            limit=arguments.limit,
        )
        say_plan(arguments, planned)
        return
    with progress(arguments) as meter:
        made = generation.generate(
            workspace_of(arguments),
            arguments.seeds,
            arguments.model,
            partner=arguments.partner,
            turns=arguments.turns,
            limit=arguments.limit,
            limits=limits_of(arguments),
            batch=arguments.batch,
            meter=meter,
        )
    rows = [
        {
            "model": one.model,
            "complete": one.complete,
            "stopped": one.stopped,
            "new": one.new,
            "path": str(one.path),
        }
        for one in made
    ]
    shown = [row | {"stopped": counts(one.stopped)} for row, one in zip(rows, made, strict=True)]
    say(arguments, {"rows": rows, **spent(meter)}, shown, meter)
    unanswered(sum(one.unanswered for one in made), "dialogues", meter)


def judge(arguments: argparse.Namespace) -> None:
    """Stage 2."""
    from botchat.cli import ask
    from botchat.pipeline import judge as judging

    settings = ask.settings_of(arguments)
    if settings is not None:
        ask.judge_adaptively(arguments, settings)
        return
    if arguments.plan:
        planned = judging.plan_judge(
            workspace_of(arguments),
            arguments.protocol,
            arguments.seeds,
            arguments.judge,
            judge_model=arguments.judge_model,
            models=arguments.model,
            turns=arguments.turns,
            samples=arguments.samples,
            control=arguments.control,
        )
        say_plan(arguments, planned)
        return
    with progress(arguments) as meter:
        made = judging.judge(
            workspace_of(arguments),
            arguments.protocol,
            arguments.seeds,
            arguments.judge,
            judge_model=arguments.judge_model,
            models=arguments.model,
            turns=arguments.turns,
            samples=arguments.samples,
            control=arguments.control,
            limits=limits_of(arguments),
            batch=arguments.batch,
            meter=meter,
        )
    rows = [
        {
            "protocol": one.protocol,
            "judge": one.judge,
            "cases": one.cases,
            "new": one.new,
            "unreadable": one.unreadable,
            "path": str(one.path),
        }
        for one in made
    ]
    whole = [
        row
        | ({"escalations": asdict(one.escalations)} if one.escalations else {})
        | ({"stability": asdict(one.stability)} if one.stability else {})
        for row, one in zip(rows, made, strict=True)
    ]
    say(arguments, {"rows": whole, **spent(meter)}, rows, meter)
    if not arguments.json:
        for one in made:
            if one.escalations:
                print(f"{one.protocol}: {escalated(one.escalations)}")
            if one.stability:
                print(f"{one.protocol}: {one.stability}")
    unanswered(sum(one.unanswered for one in made), "verdicts", meter)


def probe(arguments: argparse.Namespace) -> None:
    """Plant faults and see whether a judge finds them."""
    from botchat.pipeline import probe as probing

    if arguments.plan:
        planned = probing.plan_probe(
            workspace_of(arguments),
            arguments.seeds,
            arguments.judge,
            judge_model=arguments.judge_model,
            samples=arguments.samples,
            limit=arguments.limit,
            rng_seed=arguments.seed,
        )
        say_plan(arguments, planned)
        return
    with progress(arguments) as meter:
        made = probing.probe(
            workspace_of(arguments),
            arguments.seeds,
            arguments.judge,
            judge_model=arguments.judge_model,
            samples=arguments.samples,
            limit=arguments.limit,
            rng_seed=arguments.seed,
            limits=limits_of(arguments),
            batch=arguments.batch,
            meter=meter,
        )
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
