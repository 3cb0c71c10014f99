"""Stage 2 on a workspace: cases without a judgment are judged at once and stored one by one.

Each answer is stored when it arrives; benchmarks are judged here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from botchat.errors import ConfigError, MissingDataError, UnreadableReplies, UsageError
from botchat.frames import fill_text
from botchat.interfaces import Case, Judge, KnownCase, MakeCase, case_ref, quirks_suffix
from botchat.metrics.statistics import LEAST
from botchat.parallel import EarlyStop, run_concurrently, together
from botchat.pipeline.contestants import (
    begun_seeds,
    dialogues_on,
    human_dialogues,
    in_turn,
    select_dialogues,
)
from botchat.pipeline.ledger import record_provenance
from botchat.pipeline.plan import DryRunModels, ask_or_plan
from botchat.pipeline.resolved import ResolvedRun
from botchat.pipeline.session import Session
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.catalogue import GTEVAL, catalogue
from botchat.protocols.controls import control_cases
from botchat.protocols.protocol import Protocol
from botchat.records import (
    HUMAN,
    LOOKED_UP_AGAIN,
    N_SEED,
    NO_ROOM,
    RULES,
    SIGNED,
    UNANSWERED,
    Dialogues,
    Judgment,
    Names,
    Outcomes,
    Seeds,
)
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import CaseKey, judgment_key, settle
from botchat.workspace.usage import judged_calls

JUDGE_TEST = "judge test"
"""Step of a plan: cases on controls."""

MOST_UNREADABLE = 20
MOST_UNREADABLE_OWN = 5
"""Unreadable replies in a row after which a judge is asked no more; the same of a criterion."""

UNREADABLE: Outcomes = ("ok", *NO_ROOM)
"""Outcomes of a reply that was paid for and should have had a verdict."""


# Cases of a protocol that a plan answers.
WALKED = 250


class ProtocolCases(NamedTuple):
    """Every case of one protocol on a set."""

    protocol: Protocol
    make: Sequence[MakeCase]
    controls: Sequence[MakeCase] = ()
    """Cases on shuffled dialogues and the human ones beside them, which test the judge."""


class StageResult(NamedTuple):
    """Verdicts of a run in one protocol."""

    protocol: str
    judge: str
    cases: int
    """Cases that were asked about."""
    new: int
    unreadable: int
    """Cases that were answered without a verdict, for whatever reason."""
    path: Path
    unanswered: int
    """Verdicts that another run may still get."""


class JudgingJob(NamedTuple):
    """Cases put to a judge: a part of every request that judges."""

    judge: JudgeName
    cases: Sequence[ProtocolCases]

    def writers(self, session: Session) -> list[JudgmentWriter]:
        """Return the file of each protocol's judgments."""
        return [JudgmentWriter(session, self.judge, cases) for cases in self.cases]


async def walk_jobs(jobs: Sequence[JudgingJob], session: Session, models: DryRunModels) -> None:
    """Answer the cases of the jobs as a plan does; nothing is stored."""
    for job in jobs:
        for writer in job.writers(session):
            if not writer.judge.models:
                continue
            tested = session.judge(job.judge, writer.protocol, JUDGE_TEST)
            for judge, makers in ((writer.judge, writer.cases), (tested, writer.controls)):
                left = [make for make in makers if not writer.is_final(case_ref(make))]
                await models.walk(left, WALKED, partial(_answer, judge))


async def _answer(judge: Judge, make: MakeCase) -> None:
    """Answer as a plan does: no made-up reply has a verdict, and none is looked for."""
    await judge.answer(replace(make(), read=lambda text: (None, text)))


async def ask_jobs(
    jobs: Sequence[JudgingJob], session: Session, stops: EarlyStop
) -> list[StageResult]:
    """Ask one after the other; one result for each protocol. Judges are looked up before."""
    for job in jobs:
        for cases in job.cases:
            session.judge(job.judge, cases.protocol)
    meter = session.meter
    results = []
    for job in jobs:
        writers = job.writers(session)
        for writer in writers:
            if len(writer.judgments) < len(writer.makers):
                writer.file.ready()
        n_cases = sum(len(writer.makers) for writer in writers)
        meter.begin(f"{job.cases[-1].protocol.name} · {job.judge.text}", n_cases)
        results += await together(writer.judge_cases(meter, stops) for writer in writers)
        for writer in writers:
            writer.note()
        if stops.fatal or stops.limit is not None:
            break
    return results


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
    contestants = select_dialogues(run, generated)
    seeds = run.first_seeds
    if run.limit is None:
        seeds = begun_seeds(seeds, contestants)
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
        controls = []
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
    run: ResolvedRun, protocol: Protocol, seeds: Seeds, contestants: Dialogues
) -> Dialogues:
    """Return what is judged: of pairs ``human`` only if it was named, of GTEval in any case.

    Raises `ConfigError` where one is left alone.
    """
    compared = dialogues_on(seeds, contestants)
    if protocol.is_pair:
        if not run.models:
            compared.pop(HUMAN, None)
        if len(compared) < 2:
            raise ConfigError(
                f"the {protocol.label} needs at least two contestants; there is "
                f"{', '.join(compared) or 'none'}: name what it is compared with by --model as "
                "well, or all in [run] models of botchat.toml; generate --model MODEL makes another"
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
    return list(control_cases(protocol, run.seed_set.seeds, run.shuffled_dialogues()))


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


class JudgmentWriter:
    """The stage file of a judge's answers in a protocol. Cases may be judged side by side."""

    def __init__(self, session: Session, name: JudgeName, cases: ProtocolCases) -> None:
        """Read the stored judgments; a judgment with another signature is made again.

        Raises `ConfigError` if the judge cannot be asked.
        """
        protocol = cases.protocol
        run = session.run
        seed_set = run.seed_set.name
        judge = session.judge(name, protocol)
        self._session = session
        self.protocol = protocol
        self.cases = cases.make
        self.controls = cases.controls
        gteval = run.workspace.judgments_path(seed_set, GTEVAL.name, judge.name)
        if protocol.is_pair and gteval.exists():
            self.controls = []  # GTEval's are the same dialogues, in both orders too
        self.makers = [*self.cases, *self.controls]
        """Makers of every case."""
        self.judge = judge
        base = protocol.base if protocol.template else protocol.name.split("-")[0]
        n = ""
        if protocol.n:
            n = f"|n:{protocol.n}"
        self._signature = (
            f"{SIGNED}|{base}|set:{seed_set}{protocol.language.signed}{n}"
            f"|judge:{judge.name}@{judge.digest}"
            f"|prompt:{protocol.digest}|orders:{protocol.orders}"
        )
        self.path = run.workspace.judgments_path(seed_set, protocol.name, judge.name)
        self.judgments = run.workspace.judgments(self.path)
        """All stored judgments, also of dialogues or settings that have changed."""
        self._asked: list[CaseKey] = []
        self._new = self._unreadable = 0
        self.file = jsonl.Appender[Judgment](self.path)
        self.signature = self._sign()

    def _sign(self) -> str:
        """Return the signature, with what endpoints have refused by now."""
        return self._signature + quirks_suffix(self.judge.models)

    def is_final(self, case: KnownCase) -> bool:
        """Return whether a final judgment of this case as it is asked now is stored."""
        judgment = self.judgments.get(judgment_key(case))
        if judgment is None or judgment.outcome in LOOKED_UP_AGAIN:
            return False
        return (judgment.case, judgment.signature) == (case.digest, self.signature)

    async def judge_cases(self, meter: Meter, stops: EarlyStop) -> StageResult:
        """Judge what is not stored; then put the file into canonical order."""
        left = []
        for make in self.makers:
            case = case_ref(make)
            if self.is_final(case):
                self._asked.append(judgment_key(case))
            else:
                left.append(make)
        meter.done += len(self.makers) - len(left)

        async def judge_next(make: MakeCase) -> None:
            await self.judge_case(make())
            meter.done += 1

        with self.file:
            await run_concurrently(
                left,
                judge_next,
                self.judge.parallel,
                stops,
                self.judge.name,
                self.protocol.base,  # its prompt is the same at every N
            )
        settle(self.path, self.judgments.values())
        judgments = [self.judgments[key] for key in self._asked]
        answered = [judgment for judgment in judgments if judgment.outcome not in UNANSWERED]
        return StageResult(
            self.protocol.name,
            self.judge.name,
            cases=len(judgments),
            new=self._new,
            unreadable=sum(judgment.verdict is None for judgment in answered),
            path=self.path,
            unanswered=len(self.makers) - len(answered),
        )

    async def judge_case(self, case: Case) -> None:
        """Ask about a case, unless another maker's was the same, and store the judgment.

        Raises `UnreadableReplies` if too many replies in a row are unreadable.
        """
        key = judgment_key(case)
        if self.is_final(case):
            self._asked.append(key)
            return
        self.file.ready()  # before anything is paid
        answer = await self.judge.answer(case)
        self._asked.append(key)
        self.signature = self._sign()
        judgment = Judgment(
            protocol=case.protocol,
            seed_id=case.seed_id,
            contestants=case.contestants,
            judge=self.judge.name,
            verdict=answer.verdict,
            reason=answer.reason,
            shown=len(case.dialogues[0].utterances),
            case=case.digest,
            signature=self.signature,
            outcome=answer.outcome,
            transcript=answer.transcript,
            calls=answer.calls,
        )
        if judgment == self.judgments.get(key):
            return  # it was looked up again, and nothing was paid
        self.file.append(judgment)
        self.judgments[key] = judgment
        self._new += 1
        if self.judge.models:
            self._stop_if_unreadable(judgment)

    def _stop_if_unreadable(self, judgment: Judgment) -> None:
        if judgment.verdict is not None or judgment.outcome not in UNREADABLE:
            self._unreadable = 0
            return
        self._unreadable += 1
        most = MOST_UNREADABLE
        if self.protocol.template:
            most = MOST_UNREADABLE_OWN
        if self._unreadable != most:
            return
        raise UnreadableReplies(
            fill_text(
                "pipeline/unreadable.txt",
                protocol=self.protocol.name,
                judgment=judgment,
                most=most,
            )
        )

    def note(self) -> None:
        """Record the models that were asked."""
        judge = self.judge.name
        calls = judged_calls(self.judgments.values())
        changed = [judge] if self._new else []
        record_provenance(self._session, self.protocol.name, {judge: calls}, changed)
