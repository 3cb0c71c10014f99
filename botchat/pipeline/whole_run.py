"""``botchat run``: generate, judge and rank in one go, planned before anything is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from botchat.errors import (
    ConfigError,
    FatalModelError,
    LimitReached,
    MissingDataError,
)
from botchat.models.bots import BASELINES
from botchat.models.self_chat import TokenCounter
from botchat.pipeline import generate as generating
from botchat.pipeline import judge as judging
from botchat.pipeline.generate import Generated, Generating
from botchat.pipeline.judge import Judging
from botchat.pipeline.leaderboard import leaderboard
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked, StageResult
from botchat.pipeline.run.contestants import full_name, own_models, seed_set_of
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.plan import Plan, PlanningSession
from botchat.pipeline.run.session import RULES, Session, catalogue_of, in_session
from botchat.pipeline.run.spending import JudgeName, Spending
from botchat.pipeline.run.work import Stops
from botchat.protocols.catalogue import RANKING
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Dialogues
from botchat.results import Result
from botchat.workspace.folder import SAMPLE, Workspace

MOST_USD = 5.0
"""Of a run from Python that names no limit."""


@dataclass(frozen=True)
class Running:
    """What a whole run is about; what is left out, ``[run]`` of botchat.toml says."""

    seed_set: str = ""
    models: Sequence[str] = ()
    judge: JudgeName = field(default_factory=partial(JudgeName, ""))
    protocols: Sequence[str] = ()
    limit: int | None = None
    replace: bool = False


def plan_run(request: Running, workspace: Workspace) -> Plan:
    """What `run` would send, with dialogues made up where there are none."""
    wanted = resolved(request, workspace)

    async def walk(session: PlanningSession, counter: TokenCounter) -> None:
        _judged_by(wanted, workspace, session)
        made = await generating.walk(_generating(wanted), workspace, session, counter)
        for asked in _asked(wanted, workspace, made)[0]:
            await asked.walk(workspace, session)

    language = workspace.language(wanted.seed_set)
    return plan.plan(workspace, workspace.seeds(wanted.seed_set), walk, language)


def title(request: Running, workspace: Workspace) -> str:
    """Return what a run is about, in words: models, dialogues, judge."""
    wanted = resolved(request, workspace)
    n_seeds = len(generating.first_seeds(workspace.seeds(wanted.seed_set), wanted.limit))
    n_models = len(wanted.models)
    models = f"{n_models} model{'s' * (n_models != 1)}"
    return f"{models}, {n_seeds} dialogues of {wanted.seed_set}, judge {wanted.judge.name}"


def run(
    request: Running,
    workspace: Workspace,
    spending: Spending,
    meter: Meter | None,
    formats: Sequence[str] = (),
) -> Result:
    """Plan, generate, judge and rank, under one budget.

    Python, which passes no meter, is told the price, too, and stopped at `MOST_USD` where it names
    no limit and every price is known. Raises `LimitReached` before anything is sent where the plan
    is over a limit already.
    """
    wanted = resolved(request, workspace)
    planned = plan_run(wanted, workspace)
    if meter is None:
        meter = Meter(tell=partial(print, file=sys.stderr))
        if not spending.limited and all(each.cost_usd is not None for each in planned.planned):
            spending = replace(spending, max_usd=MOST_USD)
    for own in own_models(workspace, wanted.judge.name, wanted.models):
        meter.tell(f"{own} is a contestant and its own judge, whom it may favour; name another")
    plan_lines = planned.result(title(wanted, workspace), spending).lines
    for line in [] if meter.quiet else [*plan_lines, *_replayed(wanted, workspace, planned)]:
        meter.tell(line)
    _refuse_more_than(spending, planned)
    seeds, language = workspace.seeds(wanted.seed_set), workspace.language(wanted.seed_set)
    generated: list[Generated] = []
    left_out: list[str] = []
    lost: list[int] = []

    async def ask(session: Session, stops: Stops) -> list[StageResult]:
        _judged_by(wanted, workspace, session)  # nothing is paid for if it cannot be asked
        generated.extend(await generating.ask(_generating(wanted), workspace, session, stops))
        if stops.limit is not None:
            raise stops.limit
        stages, out = _asked(_answering(wanted, workspace, stops, meter), workspace)
        left_out.extend(out)
        judged = []
        n_seeds = len(generating.first_seeds(seeds, wanted.limit))
        for each in generated:
            if (why := stops.fatal.pop(each.model, None)) is not None:
                lost.append(n_seeds - each.complete - sum(each.stopped.values()))
                meter.failures[str(why)] += lost[-1]
        for stage in stages:
            judged += await stage.ask(workspace, session, stops)
            stops.raise_first()
        return judged

    judged = in_session(workspace, seeds, spending, meter, ask, language)
    for line in left_out:
        meter.tell(line)
    judge_name = judged[0].judge
    try:
        board = leaderboard(workspace, wanted.seed_set, [judge_name], formats=formats, meter=meter)
    except MissingDataError:
        if not meter.failures:
            raise
        ((why, _),) = meter.failures.most_common(1)
        raise MissingDataError(
            f"{why} ({judge_name} has judged nothing); run again when it answers"
        ) from None
    data = {
        **board.data,
        "plan": planned.rows,
        "generated": [asdict(each) for each in generated],
        "judged": [asdict(each) for each in judged],
        "left_out": left_out,
    }
    # Lost: dialogues of models that could not answer at all, such as with a wrong key.
    missing = sum(lost) + sum(each.unanswered for each in generated)
    missing += sum(each.unanswered for each in judged)
    return Result(data, board.shown, missing)


def resolved(request: Running, workspace: Workspace) -> Running:
    """Return the request with what ``[run]`` of botchat.toml says of the rest, if it can work.

    Raises `ConfigError`: neither says, or what they say cannot work.
    """
    known = workspace.config.run
    judge = JudgeName(
        request.judge.name or known.judge or "", request.judge.model or known.judge_model
    )
    wanted = replace(
        request,
        seed_set=seed_set_of(workspace, request.seed_set),
        models=tuple(dict.fromkeys(request.models or known.models)),
        judge=judge,
        protocols=tuple(dict.fromkeys(request.protocols or known.protocols)),
        limit=known.limit if request.limit is None else request.limit,
    )
    for flag, key, value in (
        ("--model MODEL", "models", wanted.models),
        ("--judge JUDGE", "judge", wanted.judge.name),
    ):
        if not value:
            raise ConfigError(
                f"run needs {flag}, or {key} in [run] of {workspace.root / 'botchat.toml'} "
                "(botchat init writes one)"
            )
    if set(wanted.models) <= {HUMAN}:
        raise ConfigError("run needs a --model besides human, which is judged in any case")
    _named(wanted, workspace)
    return wanted


def _answering(request: Running, workspace: Workspace, stops: Stops, meter: Meter) -> Running:
    """The request without the models that have no dialogue, each told in its endpoint's words.

    Raises `FatalModelError`, in these words, where none has any.
    """
    there = {HUMAN, *workspace.all_dialogues(request.seed_set)}
    said = meter.reasons | {name: str(error) for name, error in stops.fatal.items()}
    silent = {name: full_name(name, workspace) for name in request.models}
    silent = {name: full for name, full in silent.items() if full not in there}
    told = [
        f"{said.get(full, 'no reply')} ({name} has no dialogue)" for name, full in silent.items()
    ]
    if set(request.models) - {*silent, HUMAN}:
        for line in told:
            meter.tell(f"{line}; the others are judged")
        return replace(request, models=tuple(n for n in request.models if n not in silent))
    raise FatalModelError("; ".join(told) + "; run again when it answers")


def _generating(request: Running) -> Generating:
    models = tuple(name for name in request.models if name != HUMAN)
    return Generating(request.seed_set, models, limit=request.limit, replace=request.replace)


def _named(request: Running, workspace: Workspace) -> list[Protocol]:
    """The protocols; by default the paper's."""
    known = catalogue_of(workspace)
    return [known.named(name) for name in request.protocols] or list(RANKING)


def _judged_by(request: Running, workspace: Workspace, session: Session) -> None:
    """Refuse a judge that cannot be asked."""
    for subject in {protocol.subject for protocol in _named(request, workspace)}:
        session.judge(request.judge, subject)


def _asked(
    request: Running, workspace: Workspace, made: Dialogues | None = None
) -> tuple[list[Asked], list[str]]:
    """What each protocol asks about the contestants, and which ask nothing.

    ``made``: their dialogues, in place of those that are stored.
    """
    found, left_out = [], []
    for protocol in _named(request, workspace):
        models = tuple(request.models)
        if protocol.shows == "one":
            models = tuple(dict.fromkeys((*models, HUMAN)))
        wanted = Judging(
            protocol.name, request.seed_set, request.judge, models, limit=request.limit
        )
        try:
            found.append(judging.asked(wanted, workspace, made))
        except (ConfigError, MissingDataError) as error:
            if request.protocols:
                raise
            left_out.append(f"{protocol.name} is left out: {error}")
    if not found:
        raise MissingDataError("; ".join(left_out))
    return found, left_out


def _replayed(request: Running, workspace: Workspace, planned: Plan) -> Iterator[str]:
    """A line on each model with an entry whose dialogues are all there: of which day they are."""
    parts = [part for each in planned.planned for part in each.parts]
    asked = {name for step, names in parts if step == "generate" for name in names}
    measured = workspace.measured(request.seed_set).items()
    days = {name: row.last for (stage, name, _), row in measured if stage == "generate"}
    for name in request.models:
        called = full_name(name, workspace)
        if name in workspace.config.models and called in days and called not in asked:
            yield f"{called}: nothing is asked, its dialogues are of {days[called]}"


def _refuse_more_than(spending: Spending, planned: Plan) -> None:
    """`LimitReached` where what is to be expected is more than a limit allows."""
    expected = [each for each in planned.planned if each.level == "expected" and each.limited]
    for flag, most, much, shown in (
        ("--max-usd", spending.max_usd, sum(each.cost_usd or 0.0 for each in expected), "${:,.4f}"),
        ("--max-calls", spending.max_calls, sum(each.calls for each in expected), "{:,} calls"),
        ("--max-tokens", spending.max_tokens, sum(each.tokens for each in expected), "{:,} tokens"),
    ):
        if most is not None and much > most:
            raise LimitReached(
                f"nothing was sent: the plan comes to {shown.format(much)}, over {flag} {most}; "
                "raise it, or take fewer seeds with --limit"
            )


def demo(workspace: Workspace, meter: Meter | None = None) -> Result:
    """The whole pipeline on the sample seeds, as a user would run it; no key, no network."""
    models, free = [f"bot:{name}" for name in BASELINES], Spending()
    generating.generate(Generating(SAMPLE, models), workspace, free, meter)
    for protocol in RANKING:
        wanted = Judging(protocol.name, SAMPLE, JudgeName(RULES))
        judging.judge(wanted, workspace, free, meter)
    return leaderboard(workspace, SAMPLE, [RULES], meter=meter)
