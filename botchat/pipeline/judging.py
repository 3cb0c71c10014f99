"""Concurrent judging: each answer is stored when it arrives; all commands that judge use this."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from botchat.errors import UnreadableReplies
from botchat.interfaces import Case, KnownCase, MakeCase, case_ref, quirks_suffix
from botchat.parallel import EarlyStop, run_concurrently, together
from botchat.pipeline.ledger import record_provenance
from botchat.pipeline.session import Session
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.catalogue import GTEVAL
from botchat.protocols.protocol import Protocol
from botchat.records import LOOKED_UP_AGAIN, NO_ROOM, SIGNED, UNANSWERED, Judgment, Outcome
from botchat.workspace import jsonl
from botchat.workspace.folder import CaseKey, judgment_key, settle

JUDGE_TEST = "judge test"
"""Step of a plan: cases on controls."""

MOST_UNREADABLE = 20
MOST_UNREADABLE_OWN = 5
"""Unreadable replies in a row after which a judge is asked no more; the same of a criterion."""

UNREADABLE: tuple[Outcome, ...] = ("ok", *NO_ROOM)
"""Outcomes of a reply that was paid for and should have had a verdict."""


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


async def walk_jobs(jobs: Sequence[JudgingJob], session: Session) -> None:
    """Answer every case of the jobs as a plan does; nothing is stored."""
    for job in jobs:
        for writer in job.writers(session):
            if not writer.judge.models:
                continue
            tested = session.judge(job.judge, writer.protocol, JUDGE_TEST)
            for judge, makers in ((writer.judge, writer.cases), (tested, writer.controls)):
                for make in makers:
                    case = make()
                    if writer.stored(case) is None:
                        await judge.answer(case)


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
        meter.begin("judge", sum(len(writer.makers) for writer in writers))
        results += await together(writer.judge_cases(meter, stops) for writer in writers)
        for writer in writers:
            writer.note()
        if stops.fatal or stops.limit is not None:
            break
    return results


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
        self.controls = list(cases.controls)
        gteval = run.workspace.judgments_path(seed_set, GTEVAL.name, judge.name)
        if protocol.is_pair and gteval.exists():
            self.controls = []  # GTEval's are the same dialogues, in both orders too
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

    @property
    def makers(self) -> list[MakeCase]:
        """Makers of every case."""
        return [*self.cases, *self.controls]

    def _sign(self) -> str:
        """Return the signature, with what endpoints have refused by now."""
        return self._signature + quirks_suffix(self.judge.models)

    def stored(self, case: KnownCase) -> Judgment | None:
        """Return the stored judgment of this case as it is asked now, if it is final."""
        judgment = self.judgments.get(judgment_key(case))
        if (
            judgment is None
            or judgment.case != case.digest
            or judgment.signature != self.signature
            or judgment.outcome in LOOKED_UP_AGAIN
        ):
            return None
        return judgment

    async def judge_cases(self, meter: Meter, stops: EarlyStop) -> StageResult:
        """Judge what is not stored; then put the file into canonical order."""
        left = []
        for make in self.makers:
            judgment = self.stored(case_ref(make))
            if judgment is None:
                left.append(make)
            else:
                self._asked.append(judgment_key(judgment))
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
        if self.stored(case) is not None:
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
        last = judgment.reason
        outcomes = {judgment.outcome}
        for remark in judgment.transcript:
            last = remark.text
            outcomes.add(remark.outcome)
        advice = "name another judge (of a criterion: mend its prompt), or run again to go on"
        if "truncated" in outcomes:
            advice = "it was cut: set a larger max_tokens in the judge's entry"
        elif "empty" in outcomes:
            advice = "a model that thinks first needs a larger max_tokens in the judge's entry"
        raise UnreadableReplies(
            f"{self.protocol.name}: {most} replies of {self.judge.name} in a row are unreadable, "
            f"so it is stopped; the last: {last[:200]!r}; {advice}"
        )

    def note(self) -> None:
        """Record the models that were asked."""
        judge = self.judge.name
        calls = list(chain.from_iterable(each.calls for each in self.judgments.values()))
        changed = [judge] if self._new else []
        run = self._session.run
        record_provenance(
            run.workspace,
            self._session.ledger,
            run.seed_set.name,
            self.protocol.name,
            {judge: calls},
            changed,
        )
