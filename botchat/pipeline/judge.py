"""Stage 2 on a workspace: cases without a judgment are asked side by side, stored one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Self

import msgspec

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Case, Judge
from botchat.judges.cascade import Escalations, escalations
from botchat.judges.samples import Stability, stability
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline import plan
from botchat.pipeline.run import Meter, Stops, work_through
from botchat.pipeline.session import JudgeName, Session, Spending, catalogue_of, in_session
from botchat.protocols.kinds import Protocol
from botchat.records import (
    HUMAN,
    N_SEED,
    UNANSWERED,
    VERSION,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    human_dialogue,
)
from botchat.workspace import config, files
from botchat.workspace.folder import Workspace, judgment_key, judgment_order


@dataclass(frozen=True)
class Judging:
    """The request of ``botchat judge``; what is judged already is not asked again."""

    seed_set: str
    protocol: str
    """As on the command line; the Arena is judged at each of its N."""
    judge: JudgeName
    models: tuple[str, ...] = ()
    """Contestants; empty: all there are, where dialogues are judged alone ``human`` too."""
    turns: tuple[int, ...] = ()
    """N of a pairwise protocol; empty: botchat.toml's, as far as the dialogues reach."""
    control: bool = False
    """Beside a panel, let a single judge vote that is asked as often."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        return self._asked(workspace).plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> list[Judged]:
        """Ask and store; one result a protocol and N, and all again for the control.

        Raises as `botchat.pipeline.generate.Generating.run`.
        """
        return self._asked(workspace).run(workspace, spending, meter)

    def _asked(self, workspace: Workspace) -> Asked:
        """Everything that the protocol asks about the dialogues there are.

        Raises:
            ConfigError: N too small, or too few contestants.
            MissingError: there is nothing to ask.
        """
        protocol = catalogue_of(workspace).named(self.protocol)
        seeds = workspace.seeds(self.seed_set)
        contestants: Dialogues = pick(workspace, self.seed_set, seeds, self.models)
        if protocol.shows == "pair":
            compared = pairwise_contestants(protocol, contestants, bool(self.models))
            asked = []
            for n in pairwise_turns(workspace, self.turns):
                at_n = protocol.at(n)
                makers = list(at_n.cases(seeds, compared))
                if makers:
                    asked.append(Cases(at_n, makers))
                elif self.turns:
                    raise too_short(n)
            if not asked:
                raise too_short()
            return Asked(self.seed_set, seeds, self.judge, asked, self.control)
        if self.turns:
            raise ConfigError(f"--turns belongs to the arena; {protocol.name} has no N of its own")
        if protocol.shows == "human":
            if set(contestants) <= {HUMAN}:
                raise ConfigError(
                    f"{protocol.title} compares models with human: name a model besides human"
                )
            human = {seed.id: human_dialogue(seed) for seed in seeds}
            contestants = {**contestants, HUMAN: human}
        makers = list(protocol.cases(seeds, contestants))
        if not makers and protocol.shows == "human":
            raise MissingError(
                f"{protocol.title} has nothing to compare: no generated dialogue is as long as its "
                "human one; generate with more --turns, or import seeds with 4 and more utterances"
            )
        cases = [Cases(protocol, makers)]
        return Asked(self.seed_set, seeds, self.judge, cases, self.control)


@dataclass(frozen=True)
class Cases:
    """Every case of one protocol on a set, and what their judgments are signed with."""

    protocol: Protocol
    make: Sequence[Callable[[], Case]]

    def filing(
        self, workspace: Workspace, seed_set: str, answering: Judge, chosen: str = ""
    ) -> Filing:
        """The stage file of a judge's answers, with their signature (DESIGN §4)."""
        protocol = self.protocol
        name = protocol.base if protocol.template else protocol.name.split("-")[0]
        n = f"|n:{protocol.n}" if protocol.n else ""
        signature = (
            f"botchat:{VERSION}|{name}|set:{seed_set}{n}"
            f"|judge:{answering.name}@{answering.digest}"
            f"|prompt:{protocol.digest}|orders:{protocol.orders}"
        )
        return Filing(workspace, seed_set, protocol.name, answering, signature, chosen)


@dataclass(frozen=True)
class Asked:
    """Cases put to a judge: a part of every request that judges."""

    seed_set: str
    seeds: Sequence[Seed]
    """The whole set; of a benchmark none."""
    judge: JudgeName
    cases: Sequence[Cases]
    control: bool = False

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send."""

        async def walk(session: Session, _length: Length) -> None:
            for answering, cases in product(session.judges(self.judge, self.control), self.cases):
                filing = cases.filing(workspace, self.seed_set, answering)
                for make in cases.make:
                    case = make()
                    if filing.stored(case) is None:
                        await answering.answer(case)

        return plan.plan(workspace, self.seeds, walk)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> list[Judged]:
        """One result for each judge and protocol."""

        async def ask(session: Session, stops: Stops) -> list[Judged]:
            answerers = session.judges(self.judge, self.control)
            n_cases = sum(len(cases.make) for cases in self.cases)
            asked = [
                (cases.filing(workspace, self.seed_set, answering), cases)
                for answering, cases in product(answerers, self.cases)
            ]
            for filing, cases in asked:
                if len(list(filing.judgments)) < len(cases.make):
                    filing.ready()
            session.meter.begin("judge", len(answerers) * n_cases)
            return await together(
                _settle(filing, cases, stops, session.meter) for filing, cases in asked
            )

        return in_session(workspace, self.seeds, spending, meter, ask)


async def _settle(filing: Filing, cases: Cases, stops: Stops, meter: Meter) -> Judged:
    answering = filing.answering
    with filing:

        async def do(make: Callable[[], Case]) -> None:
            await filing.settle(make())
            meter.done += 1

        await work_through(cases.make, do, answering.parallel, stops, answering.name)
        if filing.n_asked == len(cases.make):
            filing.whole()
    return filing.judged()


def pick(
    workspace: Workspace, seed_set: str, seeds: Sequence[Seed], models: Sequence[str]
) -> dict[str, dict[str, Dialogue]]:
    """Dialogues of the contestants asked for; empty ``models``: of all, ``human`` among them.

    `MissingError` for a model without dialogues, or no dialogues at all.
    """
    generated = workspace.all_dialogues(seed_set)
    human = {seed.id: human_dialogue(seed) for seed in seeds}
    if not generated:
        raise MissingError(
            f"no dialogues in {workspace.root / 'generations' / seed_set}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    if not models:
        return {HUMAN: human, **generated}
    found = {}
    for name in models:
        known = generated.get(name) or generated.get(full_name(name, workspace))
        if name == HUMAN:
            found[HUMAN] = human
        elif known is None:
            raise MissingError(
                f"no dialogues of {name!r} on the set {seed_set!r} (there are: "
                f"{', '.join(generated)}); make them with: botchat generate --seeds {seed_set} "
                f"--model {name}"
            )
        else:
            found[next(iter(known.values())).contestant] = known
    return found


def pairwise_contestants(protocol: Protocol, contestants: Dialogues, chosen: bool) -> Dialogues:
    """Who is compared in pairs, people only if ``chosen``; `ConfigError` for fewer than two."""
    found = {name: d for name, d in contestants.items() if chosen or name != HUMAN}
    if len(found) < 2:
        title = "Arena" if protocol.about_ai else protocol.title
        raise ConfigError(
            f"the {title} needs at least two contestants; there is {', '.join(found) or 'none'}"
        )
    return found


def pairwise_turns(workspace: Workspace, turns: Collection[int]) -> list[int]:
    """Each N of a pairwise protocol, asked for or of botchat.toml; `ConfigError` if below 3."""
    found = list(dict.fromkeys(turns or workspace.config.arena.turns))
    for n in found:
        if n <= N_SEED:
            raise ConfigError(
                f"--turns {n}: the first {N_SEED} utterances are human in every dialogue, so at "
                f"least {N_SEED + 1} are needed"
            )
    return found


def too_short(n: int | None = None) -> MissingError:
    """Nothing can be compared at N = ``n``, or at any."""
    if n is None:
        return MissingError("no two dialogues are long enough to compare; see --turns")
    return MissingError(
        f"no two dialogues of one seed have {n} utterances (and a human dialogue of at "
        f"least 4); generate with --turns {n}"
    )


def full_name(name: str, workspace: Workspace) -> str:
    """A model's name as it is filed (an endpoint's without credentials)."""
    try:
        return config.model_name(name, workspace.config).name
    except ConfigError:
        return name


@dataclass(frozen=True)
class Judged:
    """What a run made in one protocol."""

    protocol: str
    judge: str
    path: Path
    cases: int
    """Cases that the dialogues allow; of an adaptive run, those asked."""
    new: int
    unreadable: int
    """Cases without a verdict, for whatever reason."""
    unanswered: int
    """Of these, the ones another run may still get an answer for."""
    escalations: Escalations | None = None
    """What a cascade did with its cases."""
    stability: Stability | None = None
    """How far the answers of a judge that was sampled agree."""


class Filing:
    """One judge's judgments in one protocol. Cases may be settled side by side."""

    def __init__(
        self,
        workspace: Workspace,
        seed_set: str,
        protocol: str,
        answering: Judge,
        signature: str,
        chosen: str = "",
    ) -> None:
        """Read the stored judgments; those with another ``signature`` are made again.

        ``chosen``: of `botchat.records.Judgment`, for new ones.
        """
        self.protocol, self.answering, self.signature = protocol, answering, signature
        self.path = workspace.judgments_path(seed_set, protocol, answering.name)
        self._have = workspace.judgments(self.path)
        self._asked: list[tuple[str, tuple[str, ...]]] = []
        self._new = 0
        self._chosen = chosen
        self._file = files.Appender[Judgment](self.path)

    def __enter__(self) -> Self:
        """Open for new judgments."""
        self._file.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the file; put it into canonical order unless something was raised."""
        self._file.__exit__(None, None, None)
        if raised[0] is not None or not self._have:
            return
        if all(one.outcome in UNANSWERED for one in self._have.values()):
            self.path.unlink(missing_ok=True)  # nobody has judged as yet
        else:
            files.finish(self.path, self._have.values(), judgment_order)

    def ready(self) -> None:
        """Refuse, before anything is asked, a stage file that cannot be written."""
        self._file.ready()

    @property
    def judgments(self) -> Iterable[Judgment]:
        """All stored judgments, also of dialogues or settings that have changed."""
        return self._have.values()

    def stored(self, case: Case) -> Judgment | None:
        """The stored judgment of this case, if it is final."""
        found = self._have.get((case.seed_id, case.contestants))
        return found if found is not None and self.holds(found, case.digest) else None

    def holds(self, judgment: Judgment, digest: str) -> bool:
        """Whether a judgment is a final answer to the case of that digest, as it is asked now."""
        return (
            judgment.case == digest
            and judgment.signature == self.signature
            and judgment.outcome not in UNANSWERED
        )

    async def settle(self, case: Case) -> Judgment:
        """The stored judgment, or a new one, which is stored."""
        judgment = self.stored(case)
        if judgment is None:
            self.ready()
            answer = await self.answering.answer(case)
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
                chosen=self._chosen,
                confidence=msgspec.UNSET if answer.confidence is None else answer.confidence,
            )
            self._file.append(judgment)
            self._have[judgment_key(judgment)] = judgment
            self._new += 1
        self._asked.append(judgment_key(judgment))
        return judgment

    @property
    def n_asked(self) -> int:
        """Cases settled."""
        return len(self._asked)

    def whole(self) -> None:
        """Every case has been settled: remove the mark of those that an adaptive run chose.

        So a file has the same bytes whether an adaptive run came first or not.
        """
        for key in self._asked:
            if self._have[key].chosen:
                self._have[key] = msgspec.structs.replace(self._have[key], chosen="")

    def judged(self) -> Judged:
        """What was asked and answered."""
        found = [self._have[key] for key in self._asked]
        account = escalations(judgment.transcript for judgment in found)
        return Judged(
            protocol=self.protocol,
            judge=self.answering.name,
            path=self.path,
            cases=len(found),
            new=self._new,
            unreadable=sum(judgment.verdict is None for judgment in found),
            unanswered=sum(judgment.outcome in UNANSWERED for judgment in found),
            escalations=account if account.n else None,
            stability=stability(judgment.transcript for judgment in found),
        )
