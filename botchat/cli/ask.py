"""Commands that ask models, from run to evaluate."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from botchat.cli.output import formats_of, note, progress, say, unanswered, workspace_of
from botchat.errors import ConfigError

if TYPE_CHECKING:
    from botchat.interfaces import Row
    from botchat.pipeline.agree import Compared
    from botchat.pipeline.run.plan import Planned
    from botchat.pipeline.run.session import JudgeName, Spending
    from botchat.pipeline.run.work import Meter
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
        from botchat.pipeline.run.plan import by_contestant

        planned = request.plan(workspace)
        rows, about = [one.shown for one in planned], by_contestant(planned)
        shown: list[str | list[Row]] = [_priced(rows)]
        if len(about) > 1:
            shown += ["", _priced(about)]
        say(arguments, {"rows": rows, "contestants": about}, *shown)
        return None
    with progress(arguments) as meter:
        return request.run(workspace, _spending(arguments), meter), meter


def _spending(arguments: argparse.Namespace) -> Spending:
    from botchat.pipeline.run.session import Limits, Spending

    limits = Limits(arguments.max_usd, arguments.max_calls, arguments.max_tokens)
    cluster = workspace_of(arguments).config.cluster.where(
        arguments.engine, arguments.workers, arguments.store
    )
    return Spending(limits, arguments.batch, cluster)


def _priced(rows: list[Row]) -> list[Row]:
    """Rows with their dollars as people read them."""

    def cell(key: str, value: Any) -> Any:
        if not key.startswith("cost_usd"):
            return value
        return "unknown price" if value is None else f"${value:,.4f}"

    return [{key: cell(key, value) for key, value in row.items()} for row in rows]


def run(arguments: argparse.Namespace) -> None:
    """Plan, generate, judge and rank."""
    from botchat.pipeline.run.plan import by_contestant, by_step
    from botchat.pipeline.whole_run import Running

    workspace = workspace_of(arguments)
    request = Running.of(
        workspace,
        arguments.seeds,
        arguments.model,
        arguments.judge,
        arguments.judge_model,
        arguments.protocol,
        arguments.limit,
        arguments.samples,
    )
    planned = request.plan(workspace)
    steps, about = by_step(planned), by_contestant(planned)
    if arguments.plan:
        say(arguments, {"rows": steps, "contestants": about}, _priced(steps), "", _priced(about))
        return
    for row in _priced(steps):
        note(f"plan: {row['step']}: {row['calls']} calls, {row['cost_usd']}")
    with progress(arguments) as meter:
        ran = request.run(workspace, _spending(arguments), meter, planned, formats_of(arguments))
    for line in ran.left_out:
        note(line)
    whole = {
        **ran.board.whole,
        "plan": steps,
        "generated": [asdict(one) for one in ran.generated],
        "judged": [one.shown | one.account for one in ran.judged],
        "left_out": ran.left_out,
    }
    say(arguments, whole, ran.board.table, *ran.board.lines, meter=meter)
    unanswered(ran.unanswered, "dialogues and verdicts", meter)


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
    from botchat.pipeline.run.session import catalogue_of

    if arguments.limit is not None and (arguments.adaptive or arguments.add):
        raise ConfigError(
            "--limit is for asking everything about the first seeds; an adaptive Arena chooses "
            "what to ask: give --budget K in its place"
        )
    settings = adaptive_settings(
        catalogue_of(workspace_of(arguments)).named(arguments.protocol),
        adaptive=arguments.adaptive,
        target=arguments.target,
        budget=arguments.budget,
        add=arguments.add,
        seed=arguments.seed,
        control=arguments.control,
        bridge_from=arguments.bridge_from,
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
        arguments.bridge_from,
        arguments.budget,
        arguments.seed or 0,
        arguments.limit,
    )
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    rows, lines = [one.shown for one in made], [line for one in made for line in one.lines]
    whole = {"rows": [one.shown | one.account for one in made]}
    say(arguments, whole, rows, *lines, meter=meter)
    unanswered(sum(one.unanswered for one in made), "verdicts", meter)


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
    shown: list[str | list[Row]] = []
    for one in made:
        shown += [one.shown, *one.lines, *one.judged.lines, ""]
    say(arguments, {"rows": [one.json for one in made]}, *shown, meter=meter)
    unanswered(sum(one.judged.unanswered for one in made), "verdicts", meter)


def probe(arguments: argparse.Namespace) -> None:
    """Plant faults and see whether a judge finds them."""
    from botchat.pipeline.probe import Probing
    from botchat.workspace.folder import SAMPLE

    if arguments.language is not None:
        if arguments.polarity:
            raise ConfigError("--language audits a pack, --polarity a judge: leave one out")
        _probe_language(arguments)
        return
    if arguments.judge is None:
        raise ConfigError("probe asks a judge: name one with --judge, or a pack with --language")
    seeds = arguments.seeds or SAMPLE
    if arguments.polarity:
        _probe_polarity(arguments, seeds)
        return
    request = Probing(seeds, _judge_of(arguments), arguments.limit, arguments.seed)
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    whole = {key: value for key, value in vars(made).items() if key != "unanswered"}
    say(arguments, whole, made.shown, made.signature, meter=meter)
    unanswered(made.unanswered, "verdicts", meter)


def _probe_polarity(arguments: argparse.Namespace, seeds: str) -> None:
    """See which way a panel's roles pull."""
    from botchat.pipeline.probe_polarity import ProbingPolarity

    if arguments.seed:
        raise ConfigError("--seed says where faults go, and --polarity plants none; leave it out")
    request = ProbingPolarity(seeds, _judge_of(arguments), arguments.limit)
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    table = made.table
    whole = {
        "judge": made.judge,
        "rows": table.records,
        "lines": made.lines,
        "signature": table.signature,
        "path": made.path,
    }
    say(arguments, whole, table, table.note, *made.lines, table.signature, meter=meter)
    unanswered(made.unanswered, "verdicts", meter)


def _probe_language(arguments: argparse.Namespace) -> None:
    """Audit a language pack."""
    from botchat.pipeline import probe_language
    from botchat.pipeline.probe import shown

    if arguments.judge is not None:
        raise ConfigError("--language audits a pack and asks no judge; leave --judge out")
    made = probe_language.audit(
        workspace_of(arguments),
        arguments.language,
        arguments.seeds,
        arguments.limit,
        arguments.seed,
    )
    say(arguments, asdict(made), *made.lines, *([shown(made.rows)] if made.rows else []))


def bench(arguments: argparse.Namespace) -> None:
    """Let a judge answer a benchmark of judges, or a model take part in a paper's experiment."""
    from botchat.boards.tables import Formats
    from botchat.pipeline.agree import Options
    from botchat.pipeline.bench import Benching
    from botchat.pipeline.reproduce import reproducing

    judge = None if arguments.judge is None else _judge_of(arguments)
    options = Options(arguments.resamples, arguments.seed, formats_of(arguments) or Formats())
    request: _Request[Compared] | None = reproducing(
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
        request = Benching(
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
    from botchat.pipeline.inject import Injecting

    request = Injecting(
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


def evaluate(arguments: argparse.Namespace) -> None:
    """Let a judge report on somebody's own texts or pairs."""
    from botchat.pipeline.evaluate import Evaluating

    request = Evaluating(
        arguments.file,
        _judge_of(arguments),
        tuple(arguments.criteria),
        arguments.out,
        formats_of(arguments),
    )
    if (asked := _ask(arguments, request)) is None:
        return
    made, meter = asked
    say(arguments, made.whole, *made.shown, meter=meter)
    unanswered(made.unanswered, "verdicts", meter)


def _judge_of(arguments: argparse.Namespace) -> JudgeName:
    from botchat.pipeline.run.session import JudgeName

    return JudgeName(arguments.judge, arguments.judge_model, arguments.samples)
