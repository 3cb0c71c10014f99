"""Cases put to a judge, side by side, each stored when it is answered; part of all that judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Case, CaseRef, Judge, case_ref, quirks_suffix
from botchat.languages import ENGLISH, Language
from botchat.models.self_chat import TokenCounter
from botchat.parallel import together
from botchat.pipeline.run import plan
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.plan import Plan, PlanningSession
from botchat.pipeline.run.session import RULES, Session, in_session
from botchat.pipeline.run.spending import JudgeName, Spending
from botchat.pipeline.run.work import Stops, work_through
from botchat.protocols.protocol import Protocol
from botchat.records import SIGNED, UNANSWERED, Judgment, Seed
from botchat.results import Result
from botchat.workspace import jsonl, provenance
from botchat.workspace.folder import Workspace, judgment_key, stage_order
from botchat.workspace.ledger import Ledger

MOST_UNREADABLE = 20
"""Unreadable replies in a row after which a judge is asked no more; of the user's criteria 5."""


class Cases(NamedTuple):
    """Every case of one protocol on a set."""

    protocol: Protocol
    make: Sequence[Callable[[], Case]]


@dataclass(frozen=True)
class StageResult:
    """What a run made in one protocol."""

    protocol: str
    judge: str
    cases: int
    """Cases that were asked about."""
    new: int
    unreadable: int
    """Cases that were answered without a verdict, for whatever reason."""
    path: Path
    unanswered: int
    """Cases that another run may still get an answer for."""


def stage_result(stages: Sequence[StageResult]) -> Result:
    """Return a row a protocol."""
    rows = [{k: v for k, v in asdict(each).items() if k != "unanswered"} for each in stages]
    return Result({"rows": rows}, [rows], sum(each.unanswered for each in stages))


@dataclass(frozen=True)
class Asked:
    """Cases put to a judge: a part of every request that judges."""

    seed_set: str
    seeds: Sequence[Seed]
    """The whole set; of a benchmark none."""
    judge: JudgeName
    cases: Sequence[Cases]

    async def walk(self, workspace: Workspace, session: PlanningSession) -> None:
        """Answer every case as a plan does; nothing is stored."""
        for answering, cases in self.judges(session):
            step = cases.protocol.name
            session.about = (step, ())
            filing = filing_of(workspace, self.seed_set, cases.protocol, answering)
            for make in cases.make:
                case = make()
                session.about = (step, case.contestants)
                if answering.models and filing.stored(case) is None:
                    await answering.answer(case)

    async def ask(self, workspace: Workspace, session: Session, stops: Stops) -> list[StageResult]:
        """Ask, in a session that is there; one result for each protocol."""
        answerers = self.judges(session)
        n_cases = sum(len(cases.make) for cases in self.cases)
        asked = []
        for answering, cases in answerers:
            filing = filing_of(workspace, self.seed_set, cases.protocol, answering)
            asked.append((filing, cases))
        for filing, cases in asked:
            if len(filing.have) < len(cases.make):
                filing.ready()
        session.meter.begin("judge", n_cases)

        async def settle(filing: Filing, cases: Cases) -> StageResult:
            with filing:

                async def do(make: Callable[[], Case]) -> None:
                    await filing.settle(make())
                    session.meter.done += 1

                answering = filing.answering
                left = [make for make in cases.make if not filing.known(case_ref(make))]
                session.meter.done += len(cases.make) - len(left)
                await work_through(left, do, answering.parallel, stops, answering.name)
            return filing.result()

        made = await together(settle(*each) for each in asked)
        for filing, _ in asked:
            filing.note(session.ledger)
        return made

    def judges(self, session: Session) -> list[tuple[Judge, Cases]]:
        """The judge with the cases that it answers, as their protocol wants it."""
        for protocol in [one.protocol for one in self.cases] if self.judge.name == RULES else ():
            if protocol.template or not (protocol.about_ai or protocol.kind == "report"):
                raise ConfigError(
                    f"--judge {RULES} answers UniEval, Arena, GTEval and diagnosis, not "
                    f"{protocol.name}; name a model"
                )
        subjects = {cases.protocol.subject for cases in self.cases}
        of = {one: session.judge(self.judge, one) for one in subjects}
        return [(of[cases.protocol.subject], cases) for cases in self.cases]

    @property
    def language(self) -> Language:
        """Of what is asked."""
        return next((cases.protocol.language for cases in self.cases), ENGLISH)


def plan_all(asked: Sequence[Asked], workspace: Workspace) -> Plan:
    """What `ask_all` would send."""

    async def walk(session: PlanningSession, _counter: TokenCounter) -> None:
        for one in asked:
            await one.walk(workspace, session)

    return plan.plan(workspace, asked[0].seeds, walk, asked[0].language)


def ask_all(
    asked: Sequence[Asked], workspace: Workspace, spending: Spending, meter: Meter | None
) -> list[StageResult]:
    """Ask one after the other, of one set and language; judges are looked up before any is paid."""

    async def ask(session: Session, stops: Stops) -> list[StageResult]:
        for one in asked:
            one.judges(session)
        found = []
        for one in asked:
            found += await one.ask(workspace, session, stops)
            stops.raise_first()
        return found

    return in_session(workspace, asked[0].seeds, spending, meter, ask, asked[0].language)


def filing_of(workspace: Workspace, seed_set: str, protocol: Protocol, answering: Judge) -> Filing:
    """The stage file of a judge's answers in a protocol, with their signature (DESIGN §4)."""
    name = protocol.base if protocol.template else protocol.name.split("-")[0]
    n = f"|n:{protocol.n}" if protocol.n else ""
    signature = (
        f"{SIGNED}|{name}|set:{seed_set}{protocol.language.signed}{n}"
        f"|judge:{answering.name}@{answering.digest}"
        f"|prompt:{protocol.digest}|orders:{protocol.orders}"
    )
    most = 5 if protocol.template else MOST_UNREADABLE
    return Filing(workspace, seed_set, protocol.name, answering, signature, most)


class Filing(AbstractContextManager["Filing"]):
    """One judge's judgments in one protocol. Cases may be settled side by side."""

    def __init__(
        self,
        workspace: Workspace,
        seed_set: str,
        protocol: str,
        answering: Judge,
        signature: str,
        most_unreadable: int = MOST_UNREADABLE,
    ) -> None:
        """Read the stored judgments; those with another ``signature`` are made again."""
        self._workspace = workspace
        self.protocol, self.answering, self._asked_as = protocol, answering, signature
        self.signature = self._sign()
        self._seed_set = seed_set
        self.path = workspace.judgments_path(seed_set, protocol, answering.name)
        self.have = workspace.judgments(self.path)
        """All stored judgments, also of dialogues or settings that have changed."""
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._new = 0
        self._most_unreadable, self._unreadable = most_unreadable, 0
        self._file = jsonl.Appender[Judgment](self.path)

    def __exit__(self, *raised: object) -> None:
        """Close the file; put it into canonical order unless something was raised."""
        self._file.__exit__(None, None, None)
        if raised[0] is not None or not self.have:
            return
        if all(one.outcome in UNANSWERED for one in self.have.values()):
            self.path.unlink(missing_ok=True)  # nobody has judged as yet
        else:
            jsonl.finish(self.path, self.have.values(), stage_order)

    def ready(self) -> None:
        """Refuse, before anything is asked, a stage file that cannot be written."""
        self._file.ready()

    def _sign(self) -> str:
        """The signature, with what endpoints have refused by now."""
        return self._asked_as + quirks_suffix(self.answering.models)

    def stored(self, case: Case | CaseRef) -> Judgment | None:
        """The stored judgment of this case, if it is final."""
        found = self.have.get((case.seed_id, case.contestants))
        return found if found is not None and self.holds(found, case.digest) else None

    def known(self, case: Case | CaseRef) -> bool:
        """Whether a case is settled as it is: what is stored is taken, and counted."""
        if found := self.stored(case):
            self.asked.append(judgment_key(found))
        return found is not None

    def holds(self, judgment: Judgment, digest: str) -> bool:
        """Whether a judgment is a final answer to the case of that digest, as it is asked now."""
        return (
            judgment.case == digest
            and judgment.signature == self.signature
            and judgment.outcome not in UNANSWERED
        )

    async def settle(self, case: Case) -> None:
        """Ask about a case unless it is settled, and store the judgment.

        Raises `FatalModelError` if too many replies in a row are unreadable.
        """
        judgment = self.stored(case)
        if judgment is None:
            self.ready()
            answer = await self.answering.answer(case)
            self.signature = self._sign()
            judgment = Judgment(
                protocol=case.protocol,
                seed_id=case.seed_id,
                contestants=case.contestants,
                judge=self.answering.name,
                verdict=answer.verdict,
                reason=answer.reason,
                shown=len(case.dialogues[0].utterances),
                case=case.digest,
                signature=self.signature,
                outcome=answer.outcome,
                transcript=answer.transcript,
                calls=answer.calls,
            )
            self._file.append(judgment)
            self.have[judgment_key(judgment)] = judgment
            self._new += 1
        self.asked.append(judgment_key(judgment))
        if not self.answering.models:
            return
        is_unreadable = judgment.verdict is None and judgment.outcome == "ok"
        self._unreadable = self._unreadable + 1 if is_unreadable else 0
        if self._unreadable == self._most_unreadable:
            last = judgment.transcript[-1].text if judgment.transcript else judgment.reason
            raise FatalModelError(
                f"{self.protocol}: {self._unreadable} replies of {self.answering.name} in a row "
                f"are unreadable, so it is stopped; the last: {last[:200]!r}; name another judge "
                "(of a criterion: mend its prompt), or run again to go on"
            )

    def note(self, ledger: Ledger) -> None:
        """Record who was asked."""
        who = self.answering.name
        calls = {who: [key for one in self.have.values() for key in one.calls]}
        changed = {who} if self._new else ()
        provenance.note(self._workspace, ledger, self._seed_set, self.protocol, calls, changed)

    def result(self) -> StageResult:
        """What was asked and answered."""
        found = [self.have[key] for key in self.asked]
        return StageResult(
            protocol=self.protocol,
            judge=self.answering.name,
            cases=len(found),
            new=self._new,
            unreadable=sum(one.verdict is None and one.outcome not in UNANSWERED for one in found),
            path=self.path,
            unanswered=sum(judgment.outcome in UNANSWERED for judgment in found),
        )
