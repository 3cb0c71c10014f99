"""``botchat run``: generate, judge and rank in one go, planned before anything is sent."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from botchat.errors import ConfigError, FatalModelError, LimitReached, MissingDataError
from botchat.frames import fill_lines, fill_text
from botchat.models.bots import BASELINES
from botchat.parallel import EarlyStop
from botchat.pipeline import generate as generating
from botchat.pipeline.contestants import self_judged_models, stored_name
from botchat.pipeline.generate import Generated
from botchat.pipeline.judge import JudgingJob, StageResult, ask_jobs, judge, judging_job, walk_jobs
from botchat.pipeline.leaderboard import leaderboard
from botchat.pipeline.plan import DryRunModels, plan, resolution
from botchat.pipeline.resolved import ResolvedRun, read_seed_set
from botchat.pipeline.session import Session, run_session, stage_result
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.catalogue import RANKING, catalogue
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, RULES, Dialogues, Texts, is_bare
from botchat.results import Result
from botchat.workspace.folder import SAMPLE, Workspace, shipped
from botchat.workspace.jsonl import write_all
from botchat.workspace.model_settings import api_key

MOST_USD = 5.0
"""Limit of a run from Python that names none."""


def resolve(asked: ResolvedRun, protocols: Texts) -> ResolvedRun:
    """Return a run with its protocols, and with what ``[run]`` of botchat.toml says of the rest.

    Raises `ConfigError`: neither says, or what they say cannot work.
    """
    workspace = asked.workspace
    run = asked.with_usual()
    for flag, key, value in (
        ("--model MODEL", "models", run.models),
        ("--judge JUDGE", "judge", run.judge.name),
    ):
        if not value:
            raise ConfigError(
                f"run needs {flag}, or {key} in [run] of {workspace.root / 'botchat.toml'} "
                "(botchat init writes one)"
            )
    if set(run.models) <= {HUMAN}:
        raise ConfigError("run needs a --model besides human, which is judged in any case")
    settings = workspace.config
    known = catalogue(settings.protocols, run.seed_set.language)
    names = dict.fromkeys(protocols or settings.run.protocols)
    return replace(run, protocols=[known.named(name) for name in names])


async def _walk(session: Session, models: DryRunModels) -> None:
    """Do as `_ask`, with dialogues made up where there are none."""
    run = session.run
    dialogues = await generating.walk(_for_models(session), models)
    jobs, _ = _judging_jobs(run, run.models, dialogues)
    await walk_jobs(jobs, session, models)


def run(resolved: ResolvedRun, meter: Meter | None, formats: Texts) -> Result:
    """Plan, generate, judge and rank, under one budget.

    Without a meter nobody has seen a price: the plan is printed, and a run that names no limit
    stops at `MOST_USD` if every price is known. Raises `LimitReached` before anything is sent where
    the plan is over a limit already.
    """
    limits = resolved.limits
    planned = plan(resolved, _walk)
    planned = planned._replace(notes=[*planned.notes, *resolution(resolved, planned)])
    is_limited = limits.plan or limits.max_usd or limits.max_calls or limits.max_tokens
    is_priced = all(each.cost_usd is not None for each in planned.expected)
    if meter is None and is_priced and not is_limited:
        limits = replace(limits, max_usd=MOST_USD)
        resolved = replace(resolved, limits=limits)
    # A line for a plan and one for a run, if the expected calls are more than a limit.
    over = fill_lines("pipeline/over.txt", plan=planned, spending=limits)
    subject = fill_text("pipeline/subject.txt", run=resolved)
    plan_lines = planned.result(subject, limits, over)
    if limits.plan:
        return plan_lines
    meter = meter or Meter(tell=partial(print, file=sys.stderr))
    for model in self_judged_models(resolved.workspace, resolved.judge.name, resolved.models):
        meter.tell(f"{model} is a contestant and its own judge, whom it may favour; name another")
    if not meter.quiet:
        for line in plan_lines.lines:
            meter.tell(line)
    if over:
        raise LimitReached(over[-1])
    for each in planned.expected:
        if each.settings is not None:
            api_key(each.settings)  # raises before anything is sent
    generated, judged, left_out = run_session(resolved, meter, _ask)
    for line in left_out:
        meter.tell(line)
    board = _board(resolved, judged[0].judge, formats, meter)
    stage = stage_result(generated)
    data = {
        **board.data,
        "plan": planned.rows,
        "generated": stage.rows,
        "judged": [each._asdict() for each in judged],
        "left_out": left_out,
    }
    unanswered = stage.unanswered + sum(each.unanswered for each in judged)
    return Result(data, board.pieces, unanswered, is_billed=True)


async def _ask(
    session: Session, stops: EarlyStop
) -> tuple[list[Generated], list[StageResult], list[str]]:
    """Generate, then judge what every model has generated.

    Returns dialogues, verdicts, and a line on each protocol that has nothing to ask, or was
    stopped.
    """
    run = session.run
    meter = session.meter
    for protocol in _protocols(run):  # nothing is paid for if the judge cannot be asked
        session.judge(run.judge, protocol)
    generated = await generating.ask(_for_models(session), stops)
    if stops.limit is not None:
        raise stops.limit
    dialogues = run.stored_dialogues()
    models = _speaking_models(run, dialogues, stops, meter)
    jobs, left_out = _judging_jobs(run, models, dialogues)
    for each in generated:
        error = stops.fatal.pop(each.model, None)
        if error is not None:
            meter.failures[str(error)] += each.unanswered  # such as with a wrong key
    judged = await ask_jobs(jobs, session, stops)
    # A judge that died on the way has a board of what it judged until then.
    if any(each.new and each.path.exists() for each in judged):
        for error in stops.fatal.values():
            meter.failures[str(error)] += sum(each.unanswered for each in judged)
        stops.fatal.clear()
    # What is wrong with a protocol ends that protocol; the board has the others.
    left_out += [str(error) for error in stops.unreadable.values()]
    stops.unreadable.clear()
    return generated, judged, left_out


def _board(run: ResolvedRun, judge: str, formats: Texts, meter: Meter) -> Result:
    try:
        return leaderboard(
            run.workspace,
            run.seed_set.name,
            [judge],
            meter,
            formats=formats,
            seeds=run.seed_set.seeds,
        )
    except MissingDataError:
        if not meter.failures:
            raise
        ((failure, _),) = meter.failures.most_common(1)
        raise MissingDataError(
            f"{failure} ({judge} has judged nothing); run again when it answers"
        ) from None


def _speaking_models(
    run: ResolvedRun, dialogues: Dialogues, stops: EarlyStop, meter: Meter
) -> list[str]:
    """Return the models that have a dialogue; report each of the others in a line.

    Raises `FatalModelError`, in the words of their endpoints, where none has any.
    """
    reasons = meter.reasons | {name: str(error) for name, error in stops.fatal.items()}
    speaking = []
    silent = []
    for model in run.models:
        name = stored_name(model, run.workspace)
        if name == HUMAN or name in dialogues:
            speaking.append(model)
        else:
            silent.append(f"{reasons.get(name, 'no reply')} ({model} has no dialogue)")
    if set(speaking) <= {HUMAN}:
        raise FatalModelError("; ".join(silent))
    for line in silent:
        meter.tell(f"{line}; the others are judged")
    return speaking


def _for_models(session: Session) -> Session:
    """Return the session without ``human``, whose dialogues are there."""
    models = [name for name in session.run.models if name != HUMAN]
    return session._replace(run=replace(session.run, models=models))


def _protocols(run: ResolvedRun) -> Sequence[Protocol]:
    """Return the protocols; by default the paper's."""
    return run.protocols or [each.spoken(run.seed_set.language) for each in RANKING]


def _judging_jobs(
    run: ResolvedRun, models: Texts, dialogues: Dialogues
) -> tuple[list[JudgingJob], list[str]]:
    """Return the job of each protocol, and a line on each that has nothing to ask."""
    jobs = []
    left_out = []
    for protocol in _protocols(run):
        judged = list(models)
        if protocol.is_alone and HUMAN not in judged and not is_bare(run.seed_set.seeds):
            judged.append(HUMAN)
        asked = replace(run, models=judged, protocols=_protocols(run))
        try:
            jobs.append(judging_job(asked, protocol, dialogues))
        except (ConfigError, MissingDataError) as error:
            if run.protocols:
                raise
            left_out.append(f"{protocol.name} is left out: {error}")
    if not jobs:
        raise MissingDataError("; ".join(left_out))
    return jobs, left_out


def demo(workspace: Workspace, meter: Meter) -> Result:
    """Run the whole pipeline on the sample seeds, as a user would; no key, no network."""
    from botchat.pipeline.rank import rank

    models = [f"bot:{name}" for name in BASELINES]
    run = ResolvedRun(workspace, read_seed_set(workspace, SAMPLE), judge=JudgeName(RULES))
    generating.generate(replace(run, models=models), meter)
    for protocol in RANKING:
        judge(run, protocol.name, meter)
    board = leaderboard(workspace, SAMPLE, [RULES], meter)
    # The paper's models, ranked from its table as anybody's table is.
    folder = workspace.out("botchat-2023")
    rates = folder / "botchat-2023.csv"
    write_all(folder, {rates.name: shipped(PAPERS_RATES).read_bytes()})
    paper = rank(workspace, [rates], (), per_pair=None, out=folder, formats=(), meter=meter)
    line = f"The paper's 14 models, by its win rates in the Arena @16: {paper.lines[0]}"
    return replace(board, pieces=[*board.pieces, line, paper.lines[-1]])


PAPERS_RATES = "leaderboards/botchat-2023/arena_n16.csv"
"""Win rates of BotChat's 14 models at N = 16 (Figure 5)."""
