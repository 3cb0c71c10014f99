"""Every command, which is also a function of Python: its parameters are the flags.

A new command is a function here, a new flag a parameter, described under ``Args`` or, as one of
several commands, by its type. What is heavy is imported inside, so that ``--help`` is quick. In
Python the workspace is a folder, or the current one; everything gives a `Result`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from botchat.cli.flags import (
    BEGIN,
    DAILY,
    JUDGES,
    SHARE,
    STEPS,
    Costs,
    Formats,
    Here,
    Judge,
    JudgeModel,
    Judges,
    Limit,
    Models,
    Out,
    Progress,
    Protocol,
    Replace,
    Result,
    Seeds,
    describe,
    each_of,
    judge_names,
    path_of,
    run_at,
    set_named,
    workspace_at,
)
from botchat.cli.flags import app as app
from botchat.pipeline.spending import NO_LIMITS, JudgeName, Meter
from botchat.records import Texts


@app.command(group=DAILY)
def run(
    *,
    seeds: Seeds = "",
    model: Models = (),
    judge: Judge = "",
    judge_model: JudgeModel = None,
    protocol: Texts = (),
    limit: Limit = None,
    replace: Replace = False,
    format: Formats = (),
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Generate, judge and rank; print the price first.

    Stored dialogues and verdicts are reused. Options that you omit come from [run] of botchat.toml.

    Args:
        protocol: repeatable (the paper's three)
    """
    from botchat.pipeline import run as stage

    asked = run_at(workspace, seeds, spending, model, limit)
    asked = dataclasses.replace(asked, judge=JudgeName(judge, judge_model), replace=replace)
    return stage.run(stage.resolve(asked, each_of(protocol)), meter, each_of(format))


@app.command(group=DAILY)
def leaderboard(
    *,
    seeds: Seeds = "",
    judge: Texts = (),
    out: Out = None,
    format: Formats = (),
    open: bool = False,
    keep: str | None = None,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Tables, figures and a page of a judge's verdicts.

    Args:
        judge: repeatable; the first leads the page
        open: show the page in the browser
        keep: keep it as SET/NAME too, for compare
    """
    from botchat.pipeline.leaderboard import leaderboard as rank_set

    place = workspace_at(workspace)
    return rank_set(
        place,
        set_named(place, seeds),
        judge_names(judge),
        meter or Meter(),
        formats=each_of(format),
        opens=open,
        keep=keep,
        out=path_of(out),
    )


@app.command(group=DAILY)
def figure(
    name: str = "",
    /,
    *,
    seeds: Seeds = "",
    judge: str | None = None,
    format: Literal["svg", "png", "pdf"] | None = None,
    size: str = "",
    no_title: bool = False,
    out: Out = None,
    workspace: Here = None,
) -> Result:
    """Figures of a board, as svg, png or pdf.

    Args:
        name: such as ratings (all); a wrong name lists some
        judge: judge to show (needed if several have judged)
        format: of the files (as --out ends, or svg)
        size: inches: 7x4.5, or the width: 3.3 (half a page wide)
        no_title: captions.md and captions.tex have the titles
    """
    from botchat.cli.notebook import write_figures
    from botchat.pipeline.leaderboard import charts_of

    place = workspace_at(workspace)
    seed_set = set_named(place, seeds)
    charts = charts_of(place, seed_set, name, judge)
    folder = path_of(out) or place.out(seed_set)
    return write_figures(charts, folder, form=format, size=size, titled=not no_title)


@app.command(group=DAILY)
def agree(
    *files: Path,
    seeds: Seeds = "",
    protocol: Protocol = None,
    judge: Judges = (),
    truth: str | None = None,
    out: Out = None,
    format: Formats = (),
    workspace: Here = None,
) -> Result:
    """Compare judges with human labels, with each other, and by price.

    Args:
        files: files of votes, as rank reads them (docs/rank.md)
        truth: annotators: human (and human:…), a name, or built-in: the writer
    """
    from botchat.pipeline.agree import agree as compare_judges

    place = workspace_at(workspace)
    seed_set = None
    if seeds or protocol or not files:
        seed_set = set_named(place, seeds)
    return compare_judges(
        place,
        [Path(file) for file in files],
        seed_set=seed_set,
        protocol=protocol,
        judges=judge_names(judge),
        truth=truth,
        out=path_of(out),
        formats=each_of(format),
    )


@app.command(group=DAILY)
def compare(
    before: str,
    after: str,
    /,
    *,
    model: Texts = (),
    alpha: float = 0.05,
    gate: bool = False,
    workspace: Here = None,
) -> Result:
    """Compare two boards: what changed, and is a model worse?

    Args:
        before: SET, SET/NAME (leaderboard --keep), a board's folder or json
        after: the later one, named in the same ways
        model: repeatable; models (all but bots)
        alpha: rate of false alarms, over all models together
        gate: exit 4 if a model fell
    """
    from botchat.pipeline.compare import compare as compare_boards

    place = workspace_at(workspace)
    changes = compare_boards(place, before, after, models=each_of(model), alpha=alpha)
    if gate:
        return changes
    return dataclasses.replace(changes, failure=None)


@app.command(group=BEGIN)
def demo(*, workspace: Here = None, meter: Progress = None) -> Result:
    """Everything offline: sample seeds, bots, rules judge, a board."""
    from botchat.pipeline.run import demo as show_demo

    return show_demo(workspace_at(workspace or "botchat-demo"), meter or Meter())


@app.command(group=BEGIN)
def init(*providers: str, data: str | None = None, workspace: Here = None) -> Result:
    """Write a botchat.toml, with comments.

    Args:
        providers: URL of a server, or a provider; a wrong one lists some (none: bots, offline)
        data: dialogues: mutual, or a source as of import
    """
    from botchat.pipeline.models import init as write_settings

    return write_settings(workspace_at(workspace), providers, data)


@app.command(name="models", group=BEGIN)
def models_(*, check: bool = False, workspace: Here = None) -> Result:
    """List what --model and --judge can name.

    Args:
        check: ask each configured model; exit 1 if one fails
    """
    from botchat.pipeline.models import models as list_models

    return list_models(workspace_at(workspace), check=check)


@app.command(group=BEGIN)
def seeds(name: str = "", dialogue: str = "", /, *, workspace: Here = None) -> Result:
    """Show the seed sets, one of them, or one dialogue.

    Args:
        name: a set (all sets)
        dialogue: one of its dialogues
    """
    from botchat.pipeline.seeds import show_seeds

    return show_seeds(workspace_at(workspace), name, dialogue)


@app.command(name="import", group=BEGIN)
def import_(
    source: str,
    /,
    *,
    seeds: str = "",
    model: str | None = None,
    language: str = "en",
    replace: Replace = False,
    workspace: Here = None,
) -> Result:
    """Import human dialogues as a set; with --model, those of a model.

    Intervals take dialogues as independent, but those with the same value in a column topic.

    Args:
        source: a file, a folder, hf://ORG/NAME[@REVISION], or mutual
        seeds: name of the set
        model: import dialogues of this model, made elsewhere
        language: of dialogues and prompts: en, es, zh, or your own
    """
    from botchat.pipeline.seeds import import_dialogues, import_seeds, name_of

    place = workspace_at(workspace)
    if model is not None:
        return import_dialogues(place, source, seeds or name_of(source), model, replace=replace)
    return import_seeds(place, source, seeds, language=language, replace=replace)


@app.command(group=STEPS)
def generate(
    *,
    seeds: Seeds = "",
    model: Models = (),
    partner: str | None = None,
    turns: int | None = None,
    limit: Limit = None,
    replace: Replace = False,
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Stage 1: let models continue the seeds; stored dialogues are reused.

    Args:
        partner: second speaker (cross-play)
        turns: utterances, the two of the seed included (16)
    """
    from botchat.pipeline.generate import generate as extend

    asked = run_at(workspace, seeds, spending, model, limit).with_usual()
    wanted = dataclasses.replace(asked, replace=replace, partner=partner, turns=turns)
    return extend(wanted, meter or Meter())


@app.command(group=STEPS)
def judge(
    protocol: str,
    /,
    *,
    seeds: Seeds = "",
    judge: Judge = "",
    judge_model: JudgeModel = None,
    model: Texts = (),
    turns: Sequence[int] = (),
    comparisons: int | None = None,
    limit: Limit = None,
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Stage 2: judge the dialogues; stored verdicts are reused.

    Args:
        protocol: unieval, arena, gteval, diagnosis, or one of your own
        model: repeatable; contestants (all)
        turns: repeatable; the first N (8 and 16)
        comparisons: arena: K at each N, drawn at random (all)
    """
    from botchat.pipeline import judge as stage

    asked = run_at(workspace, seeds, spending, model, limit)
    name = JudgeName(judge, judge_model).or_usual(asked.workspace.config.run)
    wanted = dataclasses.replace(asked, judge=name, at=each_of(turns), comparisons=comparisons)
    return stage.judge(wanted, protocol, meter or Meter())


@app.command(group=STEPS)
def rank(
    *files: Path,
    judge: Judges = (),
    per_pair: int | None = None,
    out: Out = None,
    format: Formats = (),
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Rank models from files of votes or win rates.

    Args:
        files: votes or win rates: csv, json, jsonl, … (docs/rank.md)
        per_pair: comparisons a pair of a table of win rates (444)
    """
    from botchat.pipeline.rank import rank as rank_votes

    return rank_votes(
        workspace_at(workspace),
        [Path(file) for file in files],
        judge_names(judge),
        per_pair=per_pair,
        out=path_of(out),
        formats=each_of(format),
        meter=meter or Meter(),
    )


@app.command(group=JUDGES)
def bench(
    benchmark: str,
    /,
    *,
    data: Path | None = None,
    judge: Texts = (),
    judge_model: JudgeModel = None,
    published: bool = False,
    limit: Limit = None,
    out: Out = None,
    format: Formats = (),
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Compare judges on a benchmark with human labels and the papers.

    Args:
        benchmark: faireval, mateval, topicalchat, turing, botchat, or a FILE
        data: folder of the benchmark's files
        judge: repeatable; single: --judge-model alone (none: all that have judged)
        published: mateval: the replies that the paper published
    """
    from botchat.papers import bench as stage

    place = workspace_at(workspace)
    return stage.bench(
        place,
        benchmark,
        [stage.judge_name(name, judge_model, place) for name in each_of(judge)],
        spending.within(place),
        meter or Meter(),
        data=path_of(data),
        published=published,
        limit=limit,
        out=path_of(out),
        formats=each_of(format),
    )


@app.command(group=JUDGES)
def label(
    *files: Path,
    seeds: Seeds = "",
    protocol: Protocol = None,
    cases: int = 100,
    workspace: Here = None,
) -> Result:
    """Make a page of blind cases for annotators, or store its exports.

    Args:
        files: exports of the page (none: make the page)
        cases: on the page, drawn at random (100)
    """
    from botchat.pipeline.label import label as label_cases

    place = workspace_at(workspace)
    return label_cases(
        place,
        set_named(place, seeds),
        [Path(file) for file in files],
        protocol=protocol,
        most=cases,
    )


@app.command(group=SHARE)
def publish(
    name: str,
    /,
    *,
    seeds: Seeds = "",
    dry_run: bool = False,
    private: bool = False,
    workspace: Here = None,
) -> Result:
    """Send a set's run to the Hugging Face hub, its page as a Space.

    Args:
        name: ORG/NAME on the hub
        dry_run: list the files; send nothing
        private: only your organisation sees it
    """
    from botchat.hub.repository import publish as send

    place = workspace_at(workspace)
    return send(place, set_named(place, seeds), name, dry_run=dry_run, private=private)


@app.command(group=SHARE)
def fetch(source: str, /, *, workspace: Here = None) -> Result:
    """Copy a published run into this workspace.

    Args:
        source: ORG/NAME[@REVISION]
    """
    from botchat.hub.repository import fetch as receive

    return receive(workspace_at(workspace), source)


@app.command(group=SHARE)
def ledger(
    *,
    forget: bool = False,
    outcome: Sequence[Literal["filtered", "overflow", "refused", "truncated", "empty", "ok"]] = (),
    model: Texts = (),
    workspace: Here = None,
) -> Result:
    """Calls, tokens and money by model.

    Args:
        forget: ask the calls of --outcome or --model again
        outcome: repeatable; calls that ended so
        model: repeatable; calls of this model
    """
    from botchat.pipeline import ledger as calls

    place = workspace_at(workspace)
    if forget:
        return calls.forget(place, each_of(outcome), each_of(model))
    return calls.stats(place)


for _name in app:
    _command = app[_name].default_command
    if _command is not None and not _name.startswith("-"):
        describe(_command)
