"""Stage 2 on a workspace: cases without a judgment are asked side by side, stored one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations

from botchat.errors import ConfigError, Fell, MissingError
from botchat.interfaces import Case, Judge, known_of
from botchat.judges.cascade import MakeCase
from botchat.measures.references import draw
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline.adaptive import AdaptiveArena, AdaptiveResult, known_comparisons, settings_of
from botchat.pipeline.generate import first_seeds
from botchat.pipeline.run.ask import Asked, Cases, filing_of, refuse_guarantee
from botchat.pipeline.run.contestants import (
    at_each_n,
    full_name,
    judge_named,
    of_people,
    pairwise_contestants,
    pick,
    refuse_edited,
    too_short,
)
from botchat.pipeline.run.plan import PlanningSession, plan
from botchat.pipeline.run.read_set import anchors, drifts
from botchat.pipeline.run.session import Session, catalogue_of, in_session
from botchat.pipeline.run.work import Stops
from botchat.protocols.kinds import Field, Protocol
from botchat.ratings.adaptive import AdaptiveSettings
from botchat.records import HUMAN, Dialogues, Seed
from botchat.requests import Judging
from botchat.requests.arguments import JudgeName, Spending
from botchat.requests.meter import Meter
from botchat.requests.results import LEVELS, Plan, Results, StageResult
from botchat.workspace.config import OFFLINE
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import run_of


def plan_judge(request: Judging, workspace: Workspace) -> Plan:
    """What `judge` would send."""
    place = workspace if request.anchors is None else workspace.anchors()
    if request.anchors is None and (settings := settings_of(request, workspace)) is not None:
        return _plan_adaptively(request, workspace, settings)
    return asked(request, workspace).plan(place)


def judge(
    request: Judging, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Results[StageResult]:
    """Ask and store; one result a protocol and N, and all again for the control.

    Raises `Fell`: by its anchors the judge has changed.
    """
    if request.anchors is not None:
        return _anchored(request, workspace, spending, meter)
    if (settings := settings_of(request, workspace)) is not None:
        return _judge_adaptively(request, workspace, settings, spending, meter)
    made = asked(request, workspace).run(workspace, spending, meter)
    by_contestant = [list(one.calibrated.contestants) for one in made if one.calibrated]
    lines = (line for one in made for line in one.lines)
    return Results(made, [[one.shown for one in made], *filter(None, by_contestant), *lines])


def _anchored(
    request: Judging, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Results[StageResult]:
    """Ask today's anchors, and say what all days come to."""
    made = asked(request, workspace).run(workspace.anchors(), spending, meter)
    catalogue, judge = catalogue_of(workspace, request.seed_set), run_of(made[0].judge)[0]
    found = drifts(workspace, request.seed_set, judge, catalogue)
    lines = [f"{name}: {one}" for name, one in found.items()]
    if any(one.alarm for one in found.values()):
        raise Fell(f"{judge} by its {'; '.join(lines)}")
    return Results(made, [[one.shown for one in made], *lines])


def _judge(request: Judging) -> JudgeName:
    """The judge that is asked; its anchors are a run of every day, with draws of their own."""
    if request.anchors is None:
        return request.judge_name
    beside = {"--control": request.control, "--bridge-from": request.bridge_from, "--add":
              request.add, "--adaptive": request.adaptive, "--budget": request.budget}  # fmt: skip
    if given := [flag for flag, value in beside.items() if value]:
        raise ConfigError(f"--anchors asks again what is judged; leave {given[0]} out")
    if request.anchors < 1:
        raise ConfigError(f"--anchors {request.anchors}: give a number of cases, such as 60")
    if request.judge in OFFLINE:
        raise ConfigError(f"--anchors: the {request.judge} judge never changes; name another")
    return replace(request.judge_name, run=datetime.now(UTC).toordinal())


def asked(request: Judging, workspace: Workspace, generated: Dialogues | None = None) -> Asked:
    """Everything that the protocol asks about the dialogues there are, or about ``generated``.

    Raises `ConfigError`: N too small, too few contestants; `MissingError`: nothing to ask.
    """
    protocol = catalogue_of(workspace, request.seed_set).named(request.protocol)
    whole, judge = workspace.seeds(request.seed_set), _judge(request)
    seeds = whole if request.limit is None else first_seeds(whole, request.limit)
    contestants: Dialogues = pick(workspace, request.seed_set, whole, request.models, generated)
    if request.limit is not None:
        among = {seed.id for seed in seeds}
        contestants = {
            name: {id_: one for id_, one in by_seed.items() if id_ in among}
            for name, by_seed in contestants.items()
        }
    if protocol.shows == "pair":
        compared = pairwise_contestants(protocol, contestants, bool(request.models))

        def at(n: int) -> Cases | None:
            made = Cases(protocol.at(n), list(protocol.at(n).cases(seeds, compared)))
            return made if made.make else None

        contestants, cases = compared, at_each_n(workspace, request.turns, at)
    else:
        contestants, cases = _one_by_one(request, protocol, seeds, contestants)
    cases = _drawn(request, workspace, cases)
    if generated is None and not request.edited:
        refuse_edited(workspace, contestants)
    return Asked(request.seed_set, whole, judge, cases, request.control)


def _one_by_one(
    request: Judging, protocol: Protocol, seeds: Sequence[Seed], contestants: Dialogues
) -> tuple[Dialogues, list[Cases]]:
    """Who is asked about, and what, of each by itself or beside the human dialogue."""
    if request.turns and not protocol.has_n:
        raise ConfigError(
            f"--turns belongs to the arena, or to one chat; {protocol.name} has no N of its own"
        )
    if low := [n for n in request.turns if n < 1]:
        raise ConfigError(f"--turns {low[0]}: judge the first 1, 2, … utterances of a chat")
    if protocol.shows == "human":
        if set(contestants) <= {HUMAN}:
            raise ConfigError(
                f"{protocol.title} compares models with human: name a model besides human"
            )
        contestants = {**contestants, HUMAN: of_people(seeds)}
    each = [protocol.at(n) for n in request.turns] or [protocol]
    cases = [Cases(one, list(one.cases(seeds, contestants))) for one in each]
    if short := next((one.n for one, makers in cases if one.n and not makers), None):
        raise MissingError(f"--turns {short}: no dialogue of {request.seed_set} is so long")
    if not cases[0].make and protocol.shows == "human":
        raise MissingError(
            f"{protocol.title} has nothing to compare: no generated dialogue is as long as its "
            "human one; generate with more --turns, or import seeds with 4 and more utterances"
        )
    return contestants, cases


def _drawn(request: Judging, workspace: Workspace, cases: list[Cases]) -> list[Cases]:
    """All of them, or some with a readable verdict: anchors, or a bridge to ``bridge_from``.

    As many of each contestant, of pairs of each pair; anchors of another day are taken again.
    """
    if request.anchors is not None:
        judge, model, samples = request.judge, request.judge_model, request.samples
        old = full_name(judge, workspace) + (f"@{full_name(model, workspace)}" if model else "")
        old += f" ({samples} samples)" * (samples > 1)
        n = request.anchors
    elif request.bridge_from is None:
        return cases
    else:
        if request.budget is None or request.budget < 1:
            raise ConfigError(f"--bridge-from needs --budget K, at least 1; it is {request.budget}")
        old, n = judge_named(workspace, request.seed_set, request.bridge_from), request.budget
        if old in (request.judge, full_name(request.judge, workspace)):
            raise ConfigError(
                f"--bridge-from {request.bridge_from}: it is the judge itself; name another"
            )
    strata, digests, known = [], [], []
    for protocol, makers in cases:
        judged = workspace.judgments(workspace.judgments_path(request.seed_set, protocol.name, old))
        for make in makers:
            case = known_of(make)
            said = judged.get((case.seed_id, case.contestants))
            if said is not None and said.case == case.digest and said.verdict is not None:
                strata.append((protocol.name, frozenset(case.contestants)))
                digests.append(case.digest)
                known.append(make)
    if not known:
        raise MissingError(
            f"{old} has no readable verdict on what {request.protocol} asks of {request.seed_set}: "
            "judge with it first, or leave --bridge-from and --anchors out"
        )
    before = anchors(workspace, request.seed_set, old) if request.anchors else {}
    again = {
        one.case for days in before.values() for said in days.values() for one in said.values()
    }
    drawn = [i for i, digest in enumerate(digests) if digest in again]
    if len(drawn) < n:
        drawn = sorted({*drawn, *draw(strata, digests, n, request.rng_seed or 0)})
    chosen: dict[str, list[MakeCase]] = {}
    for i in drawn:
        chosen.setdefault(strata[i][0], []).append(known[i])
    return [Cases(one, chosen[one.name]) for one, _ in cases if one.name in chosen]


def _plan_adaptively(request: Judging, workspace: Workspace, settings: AdaptiveSettings) -> Plan:
    """What `_judge_adaptively` would send; see `AdaptiveArena.foresee`."""
    seeds, arenas = _resolved(request, workspace, settings)

    async def walk(session: PlanningSession, _length: Length) -> None:
        most = session.level == len(LEVELS) - 1
        for one in arenas(session):
            await one.foresee(most=most)

    planned = plan(workspace, seeds, walk, workspace.language(request.seed_set))
    how = (
        "low and expected: one simulated run, on the ratings so far or, with none, on models as "
        "far apart as usual; high: all that may be asked"
    )
    planned.note = f"{how} {planned.note}".strip()
    return planned


def _judge_adaptively(
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

    async def ask(session: Session, stops: Stops) -> list[AdaptiveResult]:
        wanted = arenas(session)
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
    if not request.edited:
        refuse_edited(workspace, found)
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


def _same(case: Case) -> Case:
    return case
