"""``botchat run``: generate, judge and rank in one go, planned before anything is sent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from botchat.errors import ConfigError, FatalModelError, LimitReached, MissingDataError
from botchat.models.bots import BASELINES
from botchat.pipeline import generate as generating
from botchat.pipeline import judge as judging
from botchat.pipeline.contestants import seed_set_of, self_judged_models, stored_name
from botchat.pipeline.generate import Generated, Generating, first_seeds
from botchat.pipeline.judge import Judging
from botchat.pipeline.judging import JudgingJob, StageResult, ask_jobs
from botchat.pipeline.leaderboard import leaderboard
from botchat.pipeline.plan import DryRunSession, Plan, plan
from botchat.pipeline.session import RULES, EarlyStop, Session, catalogue_of, run_session
from botchat.pipeline.spending import JudgeName, Meter, Spending
from botchat.protocols.catalogue import RANKING
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Dialogues
from botchat.results import Result
from botchat.workspace.folder import SAMPLE, Workspace

MOST_USD = 5.0
"""Limit of a run from Python that names none."""


@dataclass(frozen=True)
class Running:
    """Settings of a whole run; options left out come from ``[run]`` of botchat.toml."""

    seed_set: str = ""
    models: Sequence[str] = ()
    judge: JudgeName = field(default_factory=partial(JudgeName, ""))
    protocols: Sequence[str] = ()
    limit: int | None = None
    replace: bool = False


def plan_run(request: Running, workspace: Workspace) -> Plan:
    """Return what `run` would send, with dialogues made up where there are none."""
    request = resolve(request, workspace)

    async def walk(session: DryRunSession) -> None:
        dialogues = await generating.walk(_generating(request), workspace, session)
        for job in _judging_jobs(request, workspace, dialogues)[0]:
            await job.walk(workspace, session)

    language = workspace.language(request.seed_set)
    return plan(workspace, workspace.seeds(request.seed_set), walk, language)


def title(request: Running, workspace: Workspace) -> str:
    """Return the subject of a run in words: models, dialogues, judge."""
    request = resolve(request, workspace)
    n_seeds = len(first_seeds(workspace.seeds(request.seed_set), request.limit))
    n_models = len(request.models)
    models = f"{n_models} model{'s' * (n_models != 1)}"
    return f"{models}, {n_seeds} dialogues of {request.seed_set}, judge {request.judge.name}"


def run(
    request: Running,
    workspace: Workspace,
    spending: Spending,
    meter: Meter | None,
    formats: Sequence[str] = (),
) -> Result:
    """Plan, generate, judge and rank, under one budget.

    From Python, which passes no meter, the plan is printed too, and a run that names no limit stops
    at `MOST_USD` where every price is known. Raises `LimitReached` before anything is sent where
    the plan is over a limit already.
    """
    request = resolve(request, workspace)
    planned = plan_run(request, workspace)
    if meter is None:
        meter = Meter(tell=partial(print, file=sys.stderr))
        limits = spending.max_usd, spending.max_calls, spending.max_tokens
        if not any(limits) and all(each.cost_usd is not None for each in planned.calls):
            spending = replace(spending, max_usd=MOST_USD)
    for model in self_judged_models(workspace, request.judge.name, request.models):
        meter.tell(f"{model} is a contestant and its own judge, whom it may favour; name another")
    if not meter.quiet:
        for line in planned.result(title(request, workspace), spending).lines:
            meter.tell(line)
    _refuse_more_than(spending, planned)
    seeds, language = workspace.seeds(request.seed_set), workspace.language(request.seed_set)
    generated: list[Generated] = []
    left_out: list[str] = []

    async def ask(session: Session, stops: EarlyStop) -> list[StageResult]:
        _check_judge(request, workspace, session)  # nothing is paid for if it cannot be asked
        generated.extend(await generating.ask(_generating(request), workspace, session, stops))
        if stops.limit is not None:
            raise stops.limit
        answering = _without_silent_models(request, workspace, stops, meter)
        jobs, lines = _judging_jobs(answering, workspace)
        left_out.extend(lines)
        for each in generated:
            if (error := stops.fatal.pop(each.model, None)) is not None:
                meter.failures[str(error)] += each.unanswered  # such as with a wrong key
        return await ask_jobs(jobs, workspace, session, stops)

    judged = run_session(workspace, seeds, spending, meter, ask, language)
    for line in left_out:
        meter.tell(line)
    board = _board(workspace, request.seed_set, judged[0].judge, formats, meter)
    data = {
        **board.data,
        "plan": planned.rows,
        "generated": [each.row for each in generated],
        "judged": [asdict(each) for each in judged],
        "left_out": left_out,
    }
    n_unanswered = sum(each.unanswered for each in generated)
    return Result(data, board.pieces, n_unanswered + sum(each.unanswered for each in judged))


def _board(
    workspace: Workspace, seed_set: str, judge: str, formats: Sequence[str], meter: Meter
) -> Result:
    try:
        return leaderboard(workspace, seed_set, [judge], formats=formats, meter=meter)
    except MissingDataError:
        if not meter.failures:
            raise
        ((failure, _),) = meter.failures.most_common(1)
        raise MissingDataError(
            f"{failure} ({judge} has judged nothing); run again when it answers"
        ) from None


def resolve(request: Running, workspace: Workspace) -> Running:
    """Return the request with what ``[run]`` of botchat.toml says of the rest, if it can work.

    Raises `ConfigError`: neither says, or what they say cannot work.
    """
    usual = workspace.config.run
    request = replace(
        request,
        seed_set=seed_set_of(workspace, request.seed_set),
        models=tuple(dict.fromkeys(request.models or usual.models)),
        judge=JudgeName(
            request.judge.name or usual.judge or "", request.judge.model or usual.judge_model
        ),
        protocols=tuple(dict.fromkeys(request.protocols or usual.protocols)),
        limit=usual.limit if request.limit is None else request.limit,
    )
    for flag, key, value in (
        ("--model MODEL", "models", request.models),
        ("--judge JUDGE", "judge", request.judge.name),
    ):
        if not value:
            raise ConfigError(
                f"run needs {flag}, or {key} in [run] of {workspace.root / 'botchat.toml'} "
                "(botchat init writes one)"
            )
    if set(request.models) <= {HUMAN}:
        raise ConfigError("run needs a --model besides human, which is judged in any case")
    _protocols(request, workspace)
    return request


def _without_silent_models(
    request: Running, workspace: Workspace, stops: EarlyStop, meter: Meter
) -> Running:
    """Return the request without models that have no dialogue; report each in a line.

    Raises `FatalModelError`, in the words of their endpoints, where none has any.
    """
    known = {HUMAN, *workspace.all_dialogues(request.seed_set)}
    reasons = meter.reasons | {name: str(error) for name, error in stops.fatal.items()}
    silent = {
        model: f"{reasons.get(name, 'no reply')} ({model} has no dialogue)"
        for model in request.models
        if (name := stored_name(model, workspace)) not in known
    }
    if not set(request.models) - {*silent, HUMAN}:
        raise FatalModelError("; ".join(silent.values()) + "; run again when it answers")
    for line in silent.values():
        meter.tell(f"{line}; the others are judged")
    return replace(request, models=tuple(name for name in request.models if name not in silent))


def _generating(request: Running) -> Generating:
    models = tuple(name for name in request.models if name != HUMAN)
    return Generating(request.seed_set, models, limit=request.limit, replace=request.replace)


def _protocols(request: Running, workspace: Workspace) -> list[Protocol]:
    """Return the protocols; by default the paper's."""
    catalogue = catalogue_of(workspace)
    return [catalogue.named(name) for name in request.protocols] or list(RANKING)


def _check_judge(request: Running, workspace: Workspace, session: Session) -> None:
    """Refuse a judge that cannot be asked."""
    for subject in {protocol.subject for protocol in _protocols(request, workspace)}:
        session.judge(request.judge, subject)


def _judging_jobs(
    request: Running, workspace: Workspace, dialogues: Dialogues | None = None
) -> tuple[list[JudgingJob], list[str]]:
    """Return the job of each protocol, and a line on each that has nothing to ask.

    ``dialogues`` of the contestants replace the stored ones.
    """
    jobs, left_out = [], []
    for protocol in _protocols(request, workspace):
        models = tuple(request.models)
        if protocol.shows == "one":
            models = tuple(dict.fromkeys((*models, HUMAN)))
        job = Judging(protocol.name, request.seed_set, request.judge, models, limit=request.limit)
        try:
            jobs.append(judging.judging_job(job, workspace, dialogues))
        except (ConfigError, MissingDataError) as error:
            if request.protocols:
                raise
            left_out.append(f"{protocol.name} is left out: {error}")
    if not jobs:
        raise MissingDataError("; ".join(left_out))
    return jobs, left_out


def _refuse_more_than(spending: Spending, planned: Plan) -> None:
    """Raise `LimitReached` where the expected calls are more than a limit allows."""
    expected = [each for each in planned.calls if each.level == "expected" and each.limited]
    for flag, limit, total, form in (
        ("--max-usd", spending.max_usd, sum(each.cost_usd or 0.0 for each in expected), "${:,.4f}"),
        ("--max-calls", spending.max_calls, sum(each.calls for each in expected), "{:,} calls"),
        ("--max-tokens", spending.max_tokens, sum(each.tokens for each in expected), "{:,} tokens"),
    ):
        if limit is not None and total > limit:
            raise LimitReached(
                f"nothing was sent: the plan comes to {form.format(total)}, over {flag} {limit}; "
                "raise it, or take fewer seeds with --limit"
            )


def demo(workspace: Workspace, meter: Meter | None = None) -> Result:
    """Run the whole pipeline on the sample seeds, as a user would; no key, no network."""
    models, free = [f"bot:{name}" for name in BASELINES], Spending()
    generating.generate(Generating(SAMPLE, models), workspace, free, meter)
    for protocol in RANKING:
        judging.judge(Judging(protocol.name, SAMPLE, JudgeName(RULES)), workspace, free, meter)
    return leaderboard(workspace, SAMPLE, [RULES], meter=meter)
