"""Every command, which is also a function of Python: its parameters are the flags.

A new command is a function here, a new flag a parameter with a type of its own below. What is heavy
is imported inside, so that ``--help`` is quick. In Python the workspace is a folder, or the current
one; everything gives a `Result`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Group, Parameter
from cyclopts.help import DefaultFormatter, PanelSpec
from rich import box

from botchat.pipeline.spending import NO_LIMITS, JudgeName, Meter, Spending

if TYPE_CHECKING:
    from botchat.results import Result
    from botchat.workspace.folder import Workspace
else:  # annotations are read when a command line is, and these are not imported for that
    Result = Workspace = object


def _version() -> str:
    from botchat.records import VERSION

    return f"botchat {VERSION}"


FLAGS = Group("Flags", sort_key=8)
app = App(
    name="botchat",
    help="Can this model hold a human conversation over many turns, who is best, and can the judge "
    "be trusted?",
    help_epilogue="Everywhere: --dir PATH (workspace), --json (one object), --quiet (no progress)",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    version=_version,
    version_flags=["--version"],
    help_flags=["--help"],
    default_parameter=Parameter(negative=(), show_default=False),
    help_formatter=DefaultFormatter(panel_spec=PanelSpec(box=box.SIMPLE_HEAD, padding=0)),
    group_parameters=FLAGS,
    group_arguments=Group("Arguments", sort_key=7),
)
app["--help"].group = app["--version"].group = FLAGS
DAILY, BEGIN, STEPS, JUDGES, SHARE = (
    Group(name, sort_key=i)
    for i, name in enumerate(("Every day", "Begin", "Step by step", "Judges", "Share"))
)


def _flag(text: str, name: str | None = None) -> Parameter:
    return Parameter(name=name, help=text)


Several = Sequence[str]
Here = Annotated[Workspace | str | Path | None, Parameter(parse=False)]
Progress = Annotated[Meter | None, Parameter(parse=False)]
Judge = Annotated[str, _flag("rules, an entry, a preset panel, control:PANEL, or any model")]
JudgeModel = Annotated[str | None, _flag("model of a panel's agents without one")]
Judges = Annotated[Several, _flag("repeatable; only these judges", "--judge")]
Models = Annotated[Several, _flag("repeatable; see models", "--model")]
Seeds = Annotated[str, _flag("seed set ([run] seeds, or the only one)")]
Protocol = Annotated[str | None, _flag("such as unieval, arena-n16, gteval")]
Limit = Annotated[int | None, _flag("only the first K seeds or items ([run] limit)")]
Replace = Annotated[bool, _flag("overwrite stored dialogues that differ")]
Turns = Annotated[int | None, _flag("utterances, the two of the seed included (16)")]
Out = Annotated[Path | None, _flag("output folder (a folder of leaderboards)")]
Formats = Annotated[
    Sequence[Literal["csv", "md", "json", "tex", "parquet"]],
    _flag("repeatable; files of tables (csv)", "--format"),
]
Costs = Annotated[Spending, Parameter(name="*", group=Group("Cost", sort_key=9))]


def _workspace(workspace: Workspace | str | Path | None) -> Workspace:
    from botchat.workspace.folder import Workspace as Folder

    if isinstance(workspace, Folder):
        return workspace
    return Folder(Path(workspace or ""))


def _set(workspace: Workspace, name: str) -> str:
    from botchat.pipeline.contestants import seed_set_of

    return seed_set_of(workspace, name)


def _path(place: Path | str | None) -> Path | None:
    return None if place is None else Path(place)


def _each(values: Any) -> tuple[Any, ...]:
    """Return several values also where one was given alone."""
    if isinstance(values, str | Path | int) or callable(values):
        return (values,)
    return tuple(values)


def _judges(values: Any) -> list[str]:
    """Return the names of judges; a function has its own."""
    return [JudgeName(judge).text for judge in _each(values)]


@app.command(group=DAILY)
def run(
    *,
    seeds: Seeds = "",
    model: Models = (),
    judge: Judge = "",
    judge_model: JudgeModel = None,
    protocol: Annotated[Several, _flag("repeatable (the paper's three)", "--protocol")] = (),
    limit: Limit = None,
    replace: Replace = False,
    format: Formats = (),
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Generate, judge and rank; print the price first.

    Stored dialogues and verdicts are reused. Options that you omit come from [run] of botchat.toml.
    """
    from botchat.pipeline.resolved import ResolvedRun, read_seed_set
    from botchat.pipeline.run import resolve
    from botchat.pipeline.run import run as run_all

    place = _workspace(workspace)
    asked = ResolvedRun(
        place,
        read_seed_set(place, _set(place, seeds)),
        spending.within(place),
        models=_each(model),
        judge=JudgeName(judge, judge_model),
        limit=limit,
        replace=replace,
    )
    return run_all(resolve(asked, _each(protocol)), meter, _each(format))


@app.command(group=DAILY)
def leaderboard(
    *,
    seeds: Seeds = "",
    judge: Annotated[Several, _flag("repeatable; the first leads the page", "--judge")] = (),
    out: Out = None,
    format: Formats = (),
    open: Annotated[bool, _flag("show the page in the browser")] = False,
    keep: Annotated[str | None, _flag("keep it as SET/NAME too, for compare")] = None,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Tables, figures and a page of a judge's verdicts."""
    from botchat.pipeline.leaderboard import leaderboard as rank_set

    place = _workspace(workspace)
    return rank_set(
        place,
        _set(place, seeds),
        _judges(judge),
        meter or Meter(),
        formats=_each(format),
        opens=open,
        keep=keep,
        out=_path(out),
    )


@app.command(group=DAILY)
def figure(
    name: Annotated[str, _flag("such as ratings (all); a wrong name lists them")] = "",
    /,
    *,
    seeds: Seeds = "",
    judge: Annotated[str | None, _flag("judge to show (needed if several have judged)")] = None,
    format: Annotated[Literal["svg", "png", "pdf"], _flag("of the files (svg)")] = "svg",
    size: Annotated[str, _flag("inches: 7x4.5, or the width: 3.3 (half a page wide)")] = "",
    out: Out = None,
    workspace: Here = None,
) -> Result:
    """Figures of a board, as svg, png or pdf."""
    from botchat.pipeline.figure import write_figures

    place = _workspace(workspace)
    return write_figures(
        place, _set(place, seeds), name, judge, form=format, size=size, out=_path(out)
    )


@app.command(group=DAILY)
def agree(
    *files: Annotated[Path, _flag("files of votes, as rank reads them (docs/rank.md)")],
    seeds: Seeds = "",
    protocol: Protocol = None,
    judge: Judges = (),
    truth: Annotated[
        str | None, _flag("annotators: human (and human:…), a name, or built-in: the writer")
    ] = None,
    out: Out = None,
    format: Formats = (),
    workspace: Here = None,
) -> Result:
    """Compare judges with human labels, with each other, and by price."""
    from botchat.pipeline.agree import agree as compare_judges

    place = _workspace(workspace)
    seed_set = None
    if seeds or protocol or not files:
        seed_set = _set(place, seeds)
    return compare_judges(
        place,
        [Path(each) for each in files],
        seed_set=seed_set,
        protocol=protocol,
        judges=_judges(judge),
        truth=truth,
        out=_path(out),
        formats=_each(format),
    )


@app.command(group=DAILY)
def compare(
    before: Annotated[str, _flag("SET, SET/NAME (leaderboard --keep), a board's folder or json")],
    after: Annotated[str, _flag("the later one, named in the same ways")],
    /,
    *,
    model: Annotated[Several, _flag("repeatable; models (all but bots)", "--model")] = (),
    alpha: Annotated[float, _flag("rate of false alarms, over all models together")] = 0.05,
    gate: Annotated[bool, _flag("exit 4 if a model fell")] = False,
    workspace: Here = None,
) -> Result:
    """Compare two boards: what changed, and is a model worse?"""
    from dataclasses import replace

    from botchat.pipeline.compare import compare as compare_boards

    changes = compare_boards(_workspace(workspace), before, after, models=_each(model), alpha=alpha)
    if gate:
        return changes
    return replace(changes, failure=None)


@app.command(group=BEGIN)
def demo(*, workspace: Here = None, meter: Progress = None) -> Result:
    """Everything offline: sample seeds, bots, rules judge, a board."""
    from botchat.pipeline.run import demo as show_demo

    return show_demo(_workspace(workspace or "botchat-demo"), meter or Meter())


@app.command(group=BEGIN)
def init(
    *providers: Annotated[
        str, _flag("URL of a server, or a provider; a wrong one lists them (none: bots, offline)")
    ],
    data: Annotated[str | None, _flag("dialogues: mutual, or a source as of import")] = None,
    workspace: Here = None,
) -> Result:
    """Write a botchat.toml, with comments."""
    from botchat.pipeline.models import init as write_settings

    return write_settings(_workspace(workspace), providers, data)


@app.command(name="models", group=BEGIN)
def models_(
    *,
    check: Annotated[bool, _flag("ask each configured model; exit 1 if one fails")] = False,
    workspace: Here = None,
) -> Result:
    """List what --model and --judge can name."""
    from botchat.pipeline.models import models as list_models

    return list_models(_workspace(workspace), check=check)


@app.command(group=BEGIN)
def seeds(
    name: Annotated[str, _flag("a set (all sets)")] = "",
    dialogue: Annotated[str, _flag("one of its dialogues")] = "",
    /,
    *,
    workspace: Here = None,
) -> Result:
    """Show the seed sets, one of them, or one dialogue."""
    from botchat.pipeline.seeds import show_seeds

    return show_seeds(_workspace(workspace), name, dialogue)


@app.command(name="import", group=BEGIN)
def import_(
    source: Annotated[str, _flag("a file, a folder, hf://ORG/NAME[@REVISION], or mutual")],
    /,
    *,
    seeds: Annotated[str, _flag("name of the set")] = "",
    model: Annotated[str | None, _flag("import dialogues of this model, made elsewhere")] = None,
    language: Annotated[str, _flag("of dialogues and prompts: en, es, zh, or your own")] = "en",
    replace: Replace = False,
    workspace: Here = None,
) -> Result:
    """Import human dialogues as a set; with --model, those of a model.

    Intervals take dialogues as independent, but those with the same value in a column topic.
    """
    from botchat.pipeline.seeds import import_dialogues, import_seeds, name_of

    place = _workspace(workspace)
    if model is not None:
        return import_dialogues(place, source, seeds or name_of(source), model, replace=replace)
    return import_seeds(place, source, seeds, language=language, replace=replace)


@app.command(group=STEPS)
def generate(
    *,
    seeds: Seeds = "",
    model: Models = (),
    partner: Annotated[str | None, _flag("second speaker (cross-play)")] = None,
    turns: Turns = None,
    limit: Limit = None,
    replace: Replace = False,
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Stage 1: let models continue the seeds; stored dialogues are reused."""
    from botchat.pipeline.generate import generate as extend
    from botchat.pipeline.resolved import ResolvedRun, read_seed_set

    place = _workspace(workspace)
    if limit is None:
        limit = place.config.run.limit
    wanted = ResolvedRun(
        place,
        read_seed_set(place, _set(place, seeds)),
        spending.within(place),
        models=_each(model) or place.config.run.models,
        limit=limit,
        replace=replace,
        partner=partner,
        turns=turns,
    )
    return extend(wanted, meter or Meter())


@app.command(group=STEPS)
def judge(
    protocol: Annotated[str, _flag("unieval, arena, gteval, diagnosis, or one of your own")],
    /,
    *,
    seeds: Seeds = "",
    judge: Judge = "",
    judge_model: JudgeModel = None,
    model: Annotated[Several, _flag("repeatable; contestants (all)", "--model")] = (),
    turns: Annotated[Sequence[int], _flag("repeatable; the first N (8 and 16)", "--turns")] = (),
    comparisons: Annotated[int | None, _flag("arena: K at each N, drawn at random (all)")] = None,
    limit: Limit = None,
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Stage 2: judge the dialogues; stored verdicts are reused."""
    from botchat.pipeline import judge as stage

    place = _workspace(workspace)
    name = JudgeName(judge, judge_model).or_usual(place.config.run)
    wanted = stage.Judging(
        protocol, _set(place, seeds), name, _each(model), _each(turns), comparisons, limit
    )
    return stage.judge(wanted, place, spending.within(place), meter or Meter())


@app.command(group=STEPS)
def rank(
    *files: Annotated[Path, _flag("votes or win rates: csv, json, jsonl, … (docs/rank.md)")],
    judge: Judges = (),
    per_pair: Annotated[
        int | None, _flag("comparisons a pair of a table of win rates (444)")
    ] = None,
    out: Out = None,
    format: Formats = (),
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Rank models from files of votes or win rates."""
    from botchat.pipeline.rank import rank as rank_votes

    return rank_votes(
        _workspace(workspace),
        [Path(each) for each in files],
        _judges(judge),
        per_pair=per_pair,
        out=_path(out),
        formats=_each(format),
        meter=meter or Meter(),
    )


@app.command(group=JUDGES)
def bench(
    benchmark: Annotated[str, _flag("faireval, mateval, topicalchat, turing, botchat, or a FILE")],
    /,
    *,
    data: Annotated[Path | None, _flag("folder of the benchmark's files")] = None,
    judge: Annotated[
        Several,
        _flag("repeatable; single: --judge-model alone (none: all that have judged)", "--judge"),
    ] = (),
    judge_model: JudgeModel = None,
    published: Annotated[bool, _flag("mateval: the replies that the paper published")] = False,
    limit: Limit = None,
    out: Out = None,
    format: Formats = (),
    spending: Costs = NO_LIMITS,
    workspace: Here = None,
    meter: Progress = None,
) -> Result:
    """Compare judges on a benchmark with human labels and the papers."""
    from botchat.papers import bench as stage

    place = _workspace(workspace)
    names = [stage.judge_name(name, judge_model, place) for name in _each(judge)]
    return stage.bench(
        place,
        benchmark,
        names,
        spending.within(place),
        meter or Meter(),
        data=_path(data),
        published=published,
        limit=limit,
        out=_path(out),
        formats=_each(format),
    )


@app.command(group=JUDGES)
def label(
    *files: Annotated[Path, _flag("exports of the page (none: make the page)")],
    seeds: Seeds = "",
    protocol: Protocol = None,
    cases: Annotated[int, _flag("on the page, drawn at random (100)")] = 100,
    workspace: Here = None,
) -> Result:
    """Make a page of blind cases for annotators, or store its exports."""
    from botchat.pipeline.label import label as label_cases

    place = _workspace(workspace)
    return label_cases(
        place,
        _set(place, seeds),
        [Path(each) for each in files],
        protocol=protocol,
        most=cases,
    )


@app.command(group=SHARE)
def publish(
    name: Annotated[str, _flag("ORG/NAME on the hub")],
    /,
    *,
    seeds: Seeds = "",
    dry_run: Annotated[bool, _flag("list the files; send nothing")] = False,
    private: Annotated[bool, _flag("only your organisation sees it")] = False,
    workspace: Here = None,
) -> Result:
    """Send a set's run to the Hugging Face hub, its page as a Space."""
    from botchat.hub.repository import publish as send

    place = _workspace(workspace)
    return send(place, _set(place, seeds), name, dry_run=dry_run, private=private)


@app.command(group=SHARE)
def fetch(
    source: Annotated[str, _flag("ORG/NAME[@REVISION]")], /, *, workspace: Here = None
) -> Result:
    """Copy a published run into this workspace."""
    from botchat.hub.repository import fetch as receive

    return receive(_workspace(workspace), source)


@app.command(group=SHARE)
def ledger(
    *,
    forget: Annotated[bool, _flag("ask the calls of --outcome or --model again")] = False,
    outcome: Annotated[
        Sequence[Literal["filtered", "overflow", "refused", "truncated", "empty", "ok"]],
        _flag("repeatable; calls that ended so", "--outcome"),
    ] = (),
    model: Annotated[Several, _flag("repeatable; calls of this model", "--model")] = (),
    workspace: Here = None,
) -> Result:
    """Calls, tokens and money by model."""
    from botchat.pipeline import ledger as calls

    place = _workspace(workspace)
    if forget:
        return calls.forget(place, _each(outcome), _each(model))
    return calls.stats(place)
