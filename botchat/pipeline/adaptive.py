"""Stage 2 adaptively: as much of the Arena as its ranking takes, each batch chosen by the verdicts.

What is asked depends on dialogues, settings and verdicts only, so no state is kept: a run that goes
on asks the same again and finds the answers in the stage file. A case without an answer ends the
run at its batch, because the next batch depends on its verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Case, Judge
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline.adaptive_run import AdaptiveArena, AdaptiveResult, known_comparisons
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Questions, StageResult, filing_of, refuse_guarantee
from botchat.pipeline.run.contestants import at_each_n, pairwise_contestants, pick, too_short
from botchat.pipeline.run.results import LEVELS, Plan, Results
from botchat.pipeline.run.session import Session, catalogue_of, in_session
from botchat.pipeline.run.work import Meter, Stops
from botchat.protocols.kinds import Field
from botchat.ratings.adaptive import AdaptiveSettings, Target
from botchat.records import Seed
from botchat.requests import Judging
from botchat.requests.arguments import Spending
from botchat.workspace.folder import Workspace

ADD_BUDGET = 400
"""Comparisons that place a model, where nothing else is asked for."""

PLANNED = (
    "low and expected: one simulated run, on the ratings so far or, with none, on models as far "
    "apart as usual; high: all that may be asked"
)
"""How a plan is to be read."""

_TARGET = {"gap": float, "swaps": int, "confidence": float}


def plan_adaptively(request: Judging, workspace: Workspace, settings: AdaptiveSettings) -> Plan:
    """What `judge_adaptively` would send; see `PLANNED` and `AdaptiveArena.foresee`."""
    seeds, arenas = _resolved(request, workspace, settings)

    async def walk(session: plan.PlanningSession, _length: Length) -> None:
        most = session.level == len(LEVELS) - 1
        for one in arenas(session):
            await one.foresee(most=most)

    planned = plan.plan(workspace, seeds, walk, workspace.language(request.seed_set))
    planned.note = PLANNED
    return planned


def judge_adaptively(
    request: Judging,
    workspace: Workspace,
    settings: AdaptiveSettings,
    spending: Spending,
    meter: Meter | None,
) -> Results[StageResult]:
    """Judge as much as the ranking takes; one result for each N.

    Raises `MissingError`: no dialogues, or no board to add to; `LimitReached`: run it again.
    """
    seeds, arenas = _resolved(request, workspace, settings)
    language = workspace.language(request.seed_set)
    subject = catalogue_of(workspace, request.seed_set).named(request.protocol).subject

    async def ask(session: Session, stops: Stops) -> list[AdaptiveResult]:
        wanted = arenas(session)
        if (elsewhere := session.elsewhere) is not None:

            async def fill(cases: Sequence[Case]) -> None:
                asked = [partial(_made, case) for case in cases]
                await elsewhere.fill(
                    [Questions(request.judge_name, False, 0, subject, asked)], language
                )

            wanted = [replace(one, fill=fill) for one in wanted]
        for one in wanted:
            one.filing.ready()
        # A target may be reached any time: only a budget is a total.
        session.meter.begin("judge", sum(one.settings.budget or 0 for one in wanted))
        return await together(one.run(stops, session.meter) for one in wanted)

    made = in_session(workspace, seeds, spending, meter, ask, language)
    return Results(made, [part for one in made for part in one.parts])


def _resolved(
    request: Judging, workspace: Workspace, settings: AdaptiveSettings
) -> tuple[list[Seed], Callable[[Session], list[AdaptiveArena]]]:
    """The whole set, and what makes the judge's Arena at each N, with every name resolved."""
    protocol = catalogue_of(workspace, request.seed_set).named(request.protocol)
    refuse_guarantee(workspace, request.judge_name, "an adaptive Arena")
    seeds, models = workspace.seeds(request.seed_set), request.models
    named = pick(workspace, request.seed_set, seeds, models) if models else {}
    added, asked = None, [*models]
    if request.add is not None:
        (added,) = pick(workspace, request.seed_set, seeds, [request.add])
        asked = [*(models or workspace.all_dialogues(request.seed_set)), added]
    found = pick(workspace, request.seed_set, seeds, asked)
    contestants = pairwise_contestants(protocol, found, bool(asked))

    def at(n: int) -> Field | None:
        whole = Field(protocol.at(n), seeds, contestants)
        pairs = combinations(range(len(whole.contestants)), 2)
        there = {whole.contestants[i] for p in pairs if len(whole.seeds_of(*p)) for i in p}
        comparable = {name: contestants[name] for name in there}
        return Field(whole.protocol, seeds, comparable) if there else None

    fields = at_each_n(workspace, request.turns, at)

    def no_board(answering: Judge, n: int | None) -> MissingError:
        return MissingError(
            f"no board of {answering.name} at N = {n} to add {added} to; judge the others "
            f"first with: botchat judge {protocol.base} --seeds {request.seed_set} "
            f"--judge {answering.name} --adaptive"
        )

    def arena(answering: Judge, field: Field) -> AdaptiveArena | None:
        """``None``: there is no board to add to, and none was asked for by its N."""
        n = field.protocol.n
        filing = filing_of(workspace, request.seed_set, field.protocol, answering, "adaptive")
        if added is None:
            return AdaptiveArena(field, filing, settings, None, None)
        known = known_comparisons(field, filing, added)
        board = {known.models[i] for i in (*known.first.tolist(), *known.second.tolist())}
        if added not in field.contestants or not board:
            if not request.turns:
                return None
            raise too_short(n) if board else no_board(answering, n)
        if missing := sorted({*named} - board - {added}):
            raise MissingError(
                f"{answering.name} has not compared {', '.join(missing)} with the others at "
                f"N = {n}: judge them first, or leave them out of --model"
            )
        field = Field(field.protocol, seeds, {m: contestants[m] for m in (*board, added)})
        known = known_comparisons(field, filing, added)
        return AdaptiveArena(field, filing, settings, added, known)

    def arenas(session: Session) -> list[AdaptiveArena]:
        answering = session.judge(request.judge_name, protocol.subject)
        made = [arena(answering, field) for field in fields]
        if found := [one for one in made if one is not None]:
            return found
        raise no_board(answering, fields[-1].protocol.n)

    return seeds, arenas


def _made(case: Case) -> Case:
    return case


def settings_of(request: Judging, workspace: Workspace) -> AdaptiveSettings | None:
    """How the request's Arena is to choose what is asked; ``None``: everything is asked.

    Raises `ConfigError` for what does not go together, or a target that is none.
    """
    add, target, budget = request.add, request.target, request.budget
    given = {"--target": target, "--budget": budget, "--seed": request.rng_seed}
    named = [flag for flag, value in given.items() if value is not None]
    asked = ["--add"] * (add is not None) + ["--adaptive"] * (
        request.adaptive or request.settings is not None
    )
    if asked and request.limit is not None:
        raise ConfigError(
            "--limit is for asking everything about the first seeds; an adaptive Arena chooses "
            "what to ask: give --budget K in its place"
        )
    if asked and request.bridge_from is not None:
        raise ConfigError(f"--bridge-from draws cases at random, {asked[0]} does not; give one")
    if request.bridge_from is not None and target is None:
        return None
    if not asked and not named:
        return None
    if not asked:
        raise ConfigError(f"{named[0]} belongs to an adaptive Arena; give --adaptive or --add too")
    protocol = catalogue_of(workspace).named(request.protocol)
    if protocol.shows != "pair":
        raise ConfigError(
            f"{asked[0]} is for the arena: {protocol.name} judges each dialogue by itself or "
            f"beside its human one; leave {asked[0]} out"
        )
    if request.control:
        raise ConfigError(
            f"--control does not go with {asked[0]}: cases are chosen by the panel's own verdicts; "
            "leave one of the two out"
        )
    if request.settings is not None:
        return request.settings
    if budget is None and target is None and add is not None:
        budget = ADD_BUDGET
    return AdaptiveSettings(
        target=read_target(target) if budget is None or target is not None else None,
        budget=budget,
        seed=request.rng_seed or 0,
    )


def read_target(text: str | None) -> Target:
    """``gap=10,swaps=2,confidence=0.95``, or a part of that, as a target; ``None``: the default.

    Raises `ConfigError`, which names what, for anything else.
    """
    found: dict[str, float | int] = {}
    where = f"--target {text if text is None or len(text) < 60 else f'{text[:60]}…'!r}"
    for part in () if text is None else text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in _TARGET or not equals or key in found:
            what = "is given twice" if key in found else "is not known"
            raise ConfigError(
                f"{where}: {part.strip()!r} {what}; write it like gap=10,swaps=2,confidence=0.95"
            )
        try:
            found[key] = _TARGET[key](value)
        except ValueError:
            kind = "a whole number" if key == "swaps" else "a number"
            raise ConfigError(f"{where}: {key} {value[:60]!r} is not {kind}") from None
    try:
        return Target(**found)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
