"""Stage 2 on a workspace: cases without a judgment are asked side by side, stored one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import product

from botchat import __version__
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Case, Judge
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline import plan
from botchat.pipeline.run import Meter, Stops, work_through
from botchat.pipeline.session import JudgeName, Session, Spending, catalogue_of, in_session
from botchat.pipeline.stage_file import Filing, Judged
from botchat.protocols.kinds import Protocol
from botchat.records import HUMAN, N_SEED, Dialogue, Dialogues, Seed, human_dialogue
from botchat.workspace import config
from botchat.workspace.folder import Workspace


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
        protocol = catalogue_of(workspace).named(self.protocol)
        seeds = workspace.seeds(self.seed_set)
        cases = self._cases(workspace, protocol, seeds)
        return Asked(self.seed_set, seeds, self.judge, cases, self.control)

    def _cases(
        self, workspace: Workspace, protocol: Protocol, seeds: Sequence[Seed]
    ) -> list[Cases]:
        """Everything that the protocol asks about the dialogues there are.

        Raises:
            ConfigError: N too small, or too few contestants.
            MissingError: there is nothing to ask.
        """
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
            return asked
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
        return [Cases(protocol, makers)]


@dataclass(frozen=True)
class Cases:
    """Every case of one protocol on a set, and what their judgments are signed with."""

    protocol: Protocol
    make: Sequence[Callable[[], Case]]

    def signature(self, seed_set: str, answering: Judge) -> str:
        """Of every judgment of these cases (DESIGN §4)."""
        protocol = self.protocol
        name = protocol.base if protocol.template else protocol.name.split("-")[0]
        n = f"|n:{protocol.n}" if protocol.n else ""
        return (
            f"botchat:{__version__}|{name}|set:{seed_set}{n}"
            f"|judge:{answering.name}@{answering.digest}"
            f"|prompt:{protocol.digest}|orders:{protocol.orders}"
        )


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
                filing = self._filing(workspace, answering, cases)
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
            session.meter.begin("judge", len(answerers) * n_cases)
            return await together(
                _settle(self._filing(workspace, answering, cases), cases, stops, session.meter)
                for answering, cases in product(answerers, self.cases)
            )

        return in_session(workspace, self.seeds, spending, meter, ask)

    def _filing(self, workspace: Workspace, answering: Judge, cases: Cases) -> Filing:
        signature = cases.signature(self.seed_set, answering)
        return Filing(workspace, self.seed_set, cases.protocol.name, answering, signature)


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
