"""Stage 2 on a workspace: cases without a judgment are asked side by side, stored one by one."""

from __future__ import annotations

from typing import TypeVar

from botchat.errors import ConfigError, MissingError
from botchat.judges.cascade import MakeCase
from botchat.measures.references import draw
from botchat.pipeline import adaptive
from botchat.pipeline.generate import first_seeds
from botchat.pipeline.run.ask import Asked, Cases, StageResult
from botchat.pipeline.run.contestants import (
    at_each_n,
    full_name,
    judge_named,
    of_people,
    pairwise_contestants,
    pick,
)
from botchat.pipeline.run.results import Plan, Results
from botchat.pipeline.run.session import catalogue_of
from botchat.pipeline.run.work import Meter
from botchat.records import HUMAN, Dialogues
from botchat.requests import Judging
from botchat.requests.arguments import Spending
from botchat.workspace.folder import Workspace

T = TypeVar("T")


def plan_judge(request: Judging, workspace: Workspace) -> Plan:
    """What `judge` would send."""
    if (settings := adaptive.settings_of(request, workspace)) is not None:
        return adaptive.plan_adaptively(request, workspace, settings)
    return asked(request, workspace).plan(workspace)


def judge(
    request: Judging, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Results[StageResult]:
    """Ask and store; one result a protocol and N, and all again for the control."""
    if (settings := adaptive.settings_of(request, workspace)) is not None:
        return adaptive.judge_adaptively(request, workspace, settings, spending, meter)
    made = asked(request, workspace).run(workspace, spending, meter)
    return Results(
        made, [[one.shown for one in made], *(line for one in made for line in one.lines)]
    )


def asked(request: Judging, workspace: Workspace, generated: Dialogues | None = None) -> Asked:
    """Everything that the protocol asks about the dialogues there are, or about ``generated``.

    Raises `ConfigError`: N too small, too few contestants; `MissingError`: nothing to ask.
    """
    protocol = catalogue_of(workspace, request.seed_set).named(request.protocol)
    whole = workspace.seeds(request.seed_set)
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
            at_n = protocol.at(n)
            makers = list(at_n.cases(seeds, compared))
            return Cases(at_n, makers) if makers else None

        asked = at_each_n(workspace, request.turns, at)
        asked = _drawn(request, workspace, asked)
        return Asked(request.seed_set, whole, request.judge_name, asked, request.control)
    if request.turns:
        raise ConfigError(f"--turns belongs to the arena; {protocol.name} has no N of its own")
    if protocol.shows == "human":
        if set(contestants) <= {HUMAN}:
            raise ConfigError(
                f"{protocol.title} compares models with human: name a model besides human"
            )
        contestants = {**contestants, HUMAN: of_people(seeds)}
    makers = list(protocol.cases(seeds, contestants))
    if not makers and protocol.shows == "human":
        raise MissingError(
            f"{protocol.title} has nothing to compare: no generated dialogue is as long as its "
            "human one; generate with more --turns, or import seeds with 4 and more utterances"
        )
    cases = _drawn(request, workspace, [Cases(protocol, makers)])
    return Asked(request.seed_set, whole, request.judge_name, cases, request.control)


def _drawn(request: Judging, workspace: Workspace, cases: list[Cases]) -> list[Cases]:
    """All of them, or of those that ``bridge_from`` has judged as many as the budget says.

    Drawn are cases with a readable verdict, as many of each contestant, of pairs of each pair.
    """
    if request.bridge_from is None:
        return cases
    if request.budget is None or request.budget < 1:
        raise ConfigError(f"--bridge-from needs --budget K, at least 1; it is {request.budget}")
    old = judge_named(workspace, request.seed_set, request.bridge_from)
    if old in (request.judge, full_name(request.judge, workspace)):
        raise ConfigError(
            f"--bridge-from {request.bridge_from}: it is the judge itself; name another"
        )
    strata, digests, known = [], [], []
    for protocol, makers in cases:
        path = workspace.judgments_path(request.seed_set, protocol.name, old)
        judged = workspace.judgments(path)
        for make in makers:
            case = make()
            said = judged.get((case.seed_id, case.contestants))
            if said is not None and said.case == case.digest and said.verdict is not None:
                strata.append((protocol.name, frozenset(case.contestants)))
                digests.append(case.digest)
                known.append(make)
    if not known:
        raise MissingError(
            f"{old} has no readable verdict on what {request.protocol} asks of {request.seed_set}: "
            "judge with it first, or leave --bridge-from out"
        )
    chosen: dict[str, list[MakeCase]] = {}
    for i in draw(strata, digests, request.budget, request.rng_seed or 0):
        chosen.setdefault(strata[i][0], []).append(known[i])
    return [Cases(one, chosen[one.name]) for one, _ in cases if one.name in chosen]
