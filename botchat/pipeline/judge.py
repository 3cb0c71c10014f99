"""Stage 2 on a workspace: cases without a judgment are asked side by side, stored one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from botchat.errors import ConfigError, MissingDataError
from botchat.interfaces import MakeCase, case_ref
from botchat.pipeline.generate import first_seeds
from botchat.pipeline.run.ask import Asked, Cases, ask_all, plan_all, stage_result
from botchat.pipeline.run.contestants import (
    at_each_n,
    of_people,
    pairwise_contestants,
    pick,
)
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.plan import Plan
from botchat.pipeline.run.session import catalogue_of
from botchat.pipeline.run.spending import JudgeName, Spending
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Dialogues, Seed
from botchat.results import Result
from botchat.workspace.folder import Workspace


@dataclass(frozen=True)
class Judging:
    """Which verdicts are to be there."""

    protocol: str
    seed_set: str
    judge: JudgeName
    models: Sequence[str] = ()
    """Contestants; none: all."""
    turns: Sequence[int] = ()
    """The first N utterances alone."""
    comparisons: int | None = None
    """So many at each N, drawn at random."""
    limit: int | None = None
    """Only the first seeds; None: those of the generated dialogues."""


def plan_judge(request: Judging, workspace: Workspace) -> Plan:
    """What `judge` would send."""
    return plan_all([asked(request, workspace)], workspace)


def judge(
    request: Judging, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Result:
    """Ask and store; one row a protocol and N."""
    stages = ask_all([asked(request, workspace)], workspace, spending, meter)
    return stage_result(stages)


def asked(request: Judging, workspace: Workspace, generated: Dialogues | None = None) -> Asked:
    """Everything that the protocol asks about the dialogues there are, or about ``generated``.

    Raises `ConfigError`: N too small, too few contestants; `MissingDataError`: nothing to ask.
    """
    protocol = catalogue_of(workspace, request.seed_set).named(request.protocol)
    whole = workspace.seeds(request.seed_set)
    contestants: Dialogues = pick(workspace, request.seed_set, whole, request.models, generated)
    if request.limit is not None:
        seeds = first_seeds(whole, request.limit)
    else:  # human dialogues only where a model was given the seed
        begun = {id_ for name, by in contestants.items() if name != HUMAN for id_ in by}
        seeds = [seed for seed in whole if seed.id in begun] or whole
    among = {seed.id for seed in seeds}
    contestants = {
        name: {id_: each for id_, each in by_seed.items() if id_ in among}
        for name, by_seed in contestants.items()
    }
    if protocol.shows == "pair":
        compared = pairwise_contestants(protocol, contestants, bool(request.models))

        def at(n: int) -> Cases | None:
            makers = list(protocol.at(n).cases(seeds, compared))
            if request.comparisons is not None:
                makers = _some(makers, request.comparisons)
            return Cases(protocol.at(n), makers) if makers else None

        contestants, cases = compared, at_each_n(workspace, request.turns, at)
    else:
        if request.comparisons is not None:
            raise ConfigError(f"--comparisons is for pairs of models; {protocol.name} has none")
        contestants, cases = _one_by_one(request, protocol, seeds, contestants)
    return Asked(request.seed_set, whole, request.judge, cases)


def _some(makers: Sequence[MakeCase], k: int) -> list[MakeCase]:
    """At most ``k`` comparisons: both orders of seeds drawn at random, as many of each pair.

    The draw is the same every time, and a larger ``k`` holds the smaller.
    """
    if k < 2:
        raise ConfigError(f"--comparisons {k}: give at least 2, both orders of a pair")
    orders: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for i, make in enumerate(makers):
        case = case_ref(make)
        pair = orders.setdefault(tuple(sorted(case.contestants)), {})
        pair.setdefault(case.seed_id, []).append(i)
    draws = []
    for names, by_seed in orders.items():
        digests = {
            seed: hashlib.sha256("\0".join((*names, seed)).encode()).digest() for seed in by_seed
        }
        turns = enumerate(sorted(by_seed, key=digests.__getitem__))
        draws += [(turn, digests[seed], by_seed[seed]) for turn, seed in turns]
    kept: list[int] = []
    for _, _, both in sorted(draws):
        if len(kept) + len(both) > k:
            break
        kept += both
    return [makers[i] for i in sorted(kept)]


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
    protocols = [protocol.at(n) for n in request.turns] or [protocol]
    cases = [Cases(each, list(each.cases(seeds, contestants))) for each in protocols]
    if short := next((each.n for each, makers in cases if each.n and not makers), None):
        raise MissingDataError(f"--turns {short}: no dialogue of {request.seed_set} is so long")
    if not cases[0].make and protocol.shows == "human":
        raise MissingDataError(
            f"{protocol.title} has nothing to compare: no generated dialogue is as long as its "
            "human one; generate with more --turns, or import seeds with 4 and more utterances"
        )
    return contestants, cases
