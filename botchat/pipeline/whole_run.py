"""``botchat run``: generate, judge and rank in one go, planned before anything is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from botchat.pipeline import judge
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked
from botchat.pipeline.run.contestants import full_name, own_models
from botchat.pipeline.run.plan import PlanningSession
from botchat.pipeline.run.session import RULES, Session, catalogue_of, in_session
from botchat.pipeline.run.work import Stops
from botchat.protocols.catalogue import RANKING
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Dialogues
from botchat.requests import Demo, Generating, Judging, Leaderboard, Running
from botchat.requests.arguments import Limits, Spending
from botchat.requests.meter import Meter
from botchat.requests.results import (
    Generated,
    Plan,
    Planned,
    Ran,
    StageResult,
    Told,
    priced,
)
from botchat.workspace.folder import INVENTED, SAMPLE, Workspace

MOST_USD = 5.0
"""Of a run from Python that names no limit."""


def plan_run(request: Running, workspace: Workspace) -> Plan:
    """What `run` would send, with dialogues made up where there are none."""
    wanted = _resolved(request, workspace)

    async def walk(session: PlanningSession, counter: TokenCounter) -> None:
        _judged_by(wanted, workspace, session)
        made = await generating.walk(_generating(wanted), workspace, session, counter)
        for asked in _asked(wanted, workspace, made)[0]:
            await asked.walk(workspace, session)

    language = workspace.language(wanted.seed_set)
    planned = plan.plan(workspace, workspace.seeds(wanted.seed_set), walk, language)
    planned.by_steps = True
    return planned


def run(request: Running, workspace: Workspace, spending: Spending, meter: Meter | None) -> Ran:
    """Plan, generate, judge and rank, under one budget.

    Python, which passes no meter, is told the price, too, and stopped at `MOST_USD` where it names
    no limit and every price is known. Raises as `Generating.run` and `Judging.run`; `LimitReached`
    before anything is sent where the plan is over a limit already.
    """
    wanted = _resolved(request, workspace)
    planned = plan_run(wanted, workspace)
    if meter is None:
        meter = Meter(tell=partial(print, file=sys.stderr))
        if spending.limits == Limits() and all(one.cost_usd is not None for one in planned):
            spending = replace(spending, limits=Limits(max_usd=MOST_USD))
    if workspace.about(wanted.seed_set).invented:
        meter.tell(INVENTED.format(wanted.seed_set))
    for own in own_models(workspace, wanted.judge_name.name, wanted.models):
        meter.tell(f"{own} is a contestant and its own judge, whom it may favour; name another")
    for row in priced(planned.rows):
        meter.tell(f"plan: {row['step']}: {row['calls']} calls, {row['cost_usd']}")
    if planned.note:
        meter.tell(planned.note)
    for line in _replayed(wanted, workspace, planned):
        meter.tell(line)
    _refuse_more_than(spending.limits, planned)
    seeds, language = workspace.seeds(wanted.seed_set), workspace.language(wanted.seed_set)
    generated: list[Generated] = []
    left_out: list[str] = []
    lost: list[int] = []

    async def ask(session: Session, stops: Stops) -> list[StageResult]:
        _judged_by(wanted, workspace, session)  # nothing is paid for if it cannot be asked
        generated.extend(await generating.ask(_generating(wanted), workspace, session, stops))
        if stops.limit is not None:
            raise stops.limit
        found, out = _asked(_answering(wanted, workspace, stops, meter), workspace)
        left_out.extend(out)
        judged = []
        n_seeds = len(generating.first_seeds(seeds, wanted.limit))
        for one in generated:
            if (why := stops.fatal.pop(one.model, None)) is not None:
                lost.append(n_seeds - one.complete - sum(one.stopped.values()))
                meter.failures[str(why)] += lost[-1]
        for asked in found:
            judged += await asked.ask(workspace, session, stops)
            stops.raise_first()
        return judged

    judged = in_session(workspace, seeds, spending, meter, ask, language)
    for line in left_out:
        meter.tell(line)
    judge_name = judged[0].judge
    ranking = Leaderboard(wanted.seed_set, judge_name, formats=request.formats)
    try:
        board = ranking.run(workspace, meter=meter)
    except MissingDataError:
        if not meter.failures:
            raise
        ((why, _),) = meter.failures.most_common(1)
        raise MissingDataError(
            f"{why} ({judge_name} has judged nothing); run again when it answers"
        ) from None
    whole = {
        **board.whole,
        "plan": planned.rows,
        "generated": [one.row for one in generated],
        "judged": [one.row for one in judged],
        "left_out": left_out,
    }
    # Lost: dialogues of models that could not answer at all, such as with a wrong key.
    missing = sum(lost) + sum(one.unanswered for one in generated)
    missing += sum(one.unanswered for one in judged)
    what = "dialogues and verdicts"
    return Ran(whole, board.shown, missing, what, board=board, generated=generated, judged=judged)


def _resolved(request: Running, workspace: Workspace) -> Running:
    """The request with what ``[run]`` of botchat.toml says of the rest, if it can work.

    Raises `ConfigError`: neither says, or what they say cannot work.
    """
    known = workspace.config.run
    wanted = replace(
        request,
        seed_set=request.seed_set or known.seeds or "",
        models=tuple(dict.fromkeys(request.models or known.models)),
        judge=request.judge or known.judge or "",
        judge_model=request.judge_model or known.judge_model,
        protocols=tuple(dict.fromkeys(request.protocols or known.protocols)),
        limit=known.limit if request.limit is None else request.limit,
    )
    for flag, key, value in (
        ("--seeds SET", "seeds", wanted.seed_set),
        ("--model MODEL", "models", wanted.models),
        ("--judge JUDGE", "judge", wanted.judge),
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
    said = {step.by: step.why for step in meter.steps if step.failed}
    said |= {name: str(error) for name, error in stops.fatal.items()}
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
        session.judge(request.judge_name, subject)


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
        judging = Judging(
            protocol.name,
            request.seed_set,
            request.judge,
            models,
            judge_model=request.judge_model,
            limit=request.limit,
        )
        try:
            found.append(judge.asked(judging, workspace, made))
        except (ConfigError, MissingDataError) as error:
            if request.protocols:
                raise
            left_out.append(f"{protocol.name} is left out: {error}")
    if not found:
        raise MissingDataError("; ".join(left_out))
    return found, left_out


def _replayed(request: Running, workspace: Workspace, planned: Plan) -> Iterator[str]:
    """A line on each model with an entry whose dialogues are all there: of which day they are."""
    parts = [part for one in planned for part in one.parts]
    asked = {name for step, names in parts if step == "generate" for name in names}
    days = {name: one.last for (stage, name, _), one in workspace.measured(request.seed_set).items()
            if stage == "generate"}  # fmt: skip
    for name in request.models:
        called = full_name(name, workspace)
        if name in workspace.config.models and called in days and called not in asked:
            yield f"{called}: nothing is asked, its dialogues are of {days[called]}"


def _refuse_more_than(limits: Limits, planned: Sequence[Planned]) -> None:
    """`LimitReached` where what is to be expected is more than a limit allows."""
    expected = [one for one in planned if one.level == "expected" and one.limited]
    tokens = sum(one.prompt_tokens + one.completion_tokens for one in expected)
    calls = sum(one.calls for one in expected)
    usd = sum(one.cost_usd or 0.0 for one in expected)
    for flag, most, much, shown in (
        ("--max-usd", limits.max_usd, usd, "${:,.4f}"),
        ("--max-calls", limits.max_calls, calls, "{:,} calls"),
        ("--max-tokens", limits.max_tokens, tokens, "{:,} tokens"),
    ):
        if most is not None and much > most:
            raise LimitReached(
                f"nothing was sent: the plan comes to {shown.format(much)}, over {flag} {most}; "
                "raise it, or take fewer seeds with --limit"
            )


def demo(_: Demo, workspace: Workspace, meter: Meter | None = None) -> Told:
    """The whole pipeline on the sample seeds, as a user would run it; no key, no network."""
    bots = tuple(f"bot:{name}" for name in BASELINES)
    Generating(SAMPLE, bots).run(workspace, meter=meter)
    for protocol in RANKING:
        Judging(protocol.name, SAMPLE, RULES).run(workspace, meter=meter)
    return Leaderboard(SAMPLE, RULES).run(workspace, meter=meter)
