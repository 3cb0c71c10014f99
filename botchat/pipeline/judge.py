"""Stage 2 on a workspace: cases without a judgment are judged at once and stored one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

from botchat.errors import ConfigError, MissingDataError, UsageError
from botchat.interfaces import MakeCase, case_ref
from botchat.metrics.statistics import LEAST
from botchat.pipeline.contestants import (
    begun_seeds,
    dialogues_on,
    human_dialogues,
    in_turn,
    select_dialogues,
)
from botchat.pipeline.judging import JudgingJob, ProtocolCases, ask_jobs, walk_jobs
from botchat.pipeline.plan import ask_or_plan
from botchat.pipeline.resolved import ResolvedRun, first_seeds
from botchat.pipeline.spending import Meter
from botchat.protocols.catalogue import GTEVAL, catalogue
from botchat.protocols.controls import control_cases
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, N_SEED, RULES, Dialogues, Names, Seed
from botchat.results import Result
from botchat.workspace.folder import judgment_key


def judge(run: ResolvedRun, protocol: str, meter: Meter) -> Result:
    """Ask about the stored dialogues and store, or plan; one row a protocol and N.

    Raises `ConfigError` for an unknown protocol, and as `judging_job`.
    """
    known = catalogue(run.workspace.config.protocols, run.seed_set.language)
    run = replace(run, protocols=[known.named(protocol)])
    jobs = [judging_job(run, run.protocols[0], run.stored_dialogues())]
    subject = f"{protocol} on {run.seed_set.name}, judge {run.judge.text}"
    return ask_or_plan(run, meter, subject, partial(walk_jobs, jobs), partial(ask_jobs, jobs))


def judging_job(run: ResolvedRun, protocol: Protocol, generated: Dialogues) -> JudgingJob:
    """Return every case of one protocol of a run on dialogues that were generated.

    Raises `ConfigError`: N too small, too few contestants; `MissingDataError`: nothing to ask.
    """
    seed_set = run.seed_set.seeds
    contestants = select_dialogues(run, generated)
    seeds: Sequence[Seed] = begun_seeds(seed_set, contestants)
    if run.limit is not None:
        seeds = first_seeds(seed_set, run.limit)
    asked = _asked(run, protocol)
    compared = _compared(run, protocol, seeds, contestants)
    cases = []
    for each in asked:
        makers = list(each.cases(seeds, compared))
        if run.comparisons is not None:
            makers = _draw(makers, run.comparisons)
        if run.at and not makers:
            raise MissingDataError(
                f"--turns {each.n}: no dialogues of {run.seed_set.name} that {protocol.name} can "
                f"be asked about are so long; generate with --turns {each.n}"
            )
        controls: list[MakeCase] = []
        if each == max(asked, key=lambda at: at.n or 0):
            controls = _controls(run, each, len(seeds))
        if makers or protocol.is_alone:
            cases.append(ProtocolCases(each, makers, _without(controls, makers)))
    if not cases:
        raise MissingDataError(
            f"{protocol.title} has nothing to compare: no two dialogues of one seed are long "
            "enough; generate with more --turns, or import seeds with 4 and more utterances"
        )
    return JudgingJob(run.judge, cases)


def _compared(
    run: ResolvedRun, protocol: Protocol, seeds: Sequence[Seed], contestants: Dialogues
) -> Dialogues:
    """Return what is judged: of pairs ``human`` only if it was named, of GTEval in any case.

    Raises `ConfigError` where one is left alone.
    """
    compared = dialogues_on(seeds, contestants)
    if protocol.is_pair and not run.models:
        compared.pop(HUMAN, None)
    if protocol.is_pair and len(compared) < 2:
        raise ConfigError(
            f"the {protocol.label} needs at least two contestants; there is "
            f"{', '.join(compared) or 'none'}: make another with generate --model MODEL, or name "
            "one more with --model"
        )
    if protocol.against_human:
        if set(compared) <= {HUMAN}:
            raise ConfigError(
                f"{protocol.title} compares models with human: name a model besides human"
            )
        compared[HUMAN] = human_dialogues(seeds)
    return compared


def _controls(run: ResolvedRun, protocol: Protocol, n_seeds: int) -> list[MakeCase]:
    """Return the cases that test the judge: of runs that are large enough to conclude anything."""
    if run.judge.name == RULES or not protocol.tests_judges or n_seeds < LEAST:
        return []
    if protocol.is_pair and GTEVAL.name in [each.name for each in run.protocols]:
        return []  # GTEval's are the same dialogues, in both orders too
    seed_set = run.seed_set
    shuffled = seed_set.shuffled(run.workspace.config.run.shuffled)
    return list(control_cases(protocol, seed_set.seeds, shuffled))


def _without(controls: Sequence[MakeCase], makers: Sequence[MakeCase]) -> list[MakeCase]:
    """Return the controls that are no case already, as human dialogues are."""
    asked = set()
    for case in map(case_ref, makers):
        if HUMAN in case.contestants:
            asked.add(judgment_key(case))
    return [make for make in controls if judgment_key(case_ref(make)) not in asked]


def _draw(makers: Sequence[MakeCase], k: int) -> list[MakeCase]:
    """Return at most ``k`` comparisons: both orders of seeds drawn at random, pairs in turn.

    The draw is the same every time, and a larger ``k`` holds the smaller.
    """
    if k < 2:
        raise UsageError(f"--comparisons {k}: give at least 2, both orders of a pair")
    orders: dict[tuple[bytes, Names], list[int]] = {}
    for i, make in enumerate(makers):
        case = case_ref(make)
        names = tuple(sorted(case.contestants))
        draw = sha256("\0".join((*names, case.seed_id)).encode()).digest()
        orders.setdefault((draw, names), []).append(i)
    drawn = sorted(orders.items())
    kept: list[int] = []
    for both in in_turn((names, both) for (_, names), both in drawn):
        if len(kept) + len(both) > k:
            break
        kept += both
    return [makers[i] for i in sorted(kept)]


def _asked(run: ResolvedRun, protocol: Protocol) -> list[Protocol]:
    """Return the protocol at each N, of pairs by default the settings'; else the protocol itself.

    Raises `UsageError` for what only pairs of models, or protocols with an N, have.
    """
    turns = run.at
    least = 1
    rule = "judge the first 1, 2, … utterances of a chat"
    if protocol.is_pair:
        turns = turns or run.workspace.config.arena.turns
        least = N_SEED + 1
        rule = (
            f"the first {N_SEED} utterances of every dialogue are given, so at least {least} are "
            "needed"
        )
    elif run.comparisons is not None:
        raise UsageError(f"--comparisons is for pairs of models; {protocol.name} has none")
    if turns and not protocol.has_n:
        raise UsageError(
            f"--turns belongs to the arena, or to one chat; {protocol.name} has no N of its own"
        )
    for n in turns:
        if n < least:
            raise UsageError(f"--turns {n}: {rule}")
    return [protocol.at(n) for n in dict.fromkeys(turns)] or [protocol]
