"""Stage 2 on a workspace: cases without a judgment are asked side by side, stored one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from botchat.errors import ConfigError, MissingError
from botchat.pipeline.generate import first_seeds
from botchat.pipeline.run import plan, slices
from botchat.pipeline.run.ask import Asked, Cases, StageResult
from botchat.pipeline.run.contestants import full_name, of_people, pick
from botchat.pipeline.run.session import JudgeName, Spending, catalogue_of
from botchat.pipeline.run.work import Meter
from botchat.protocols.kinds import Protocol
from botchat.records import (
    HUMAN,
    N_SEED,
    Dialogues,
)
from botchat.workspace.folder import Workspace

T = TypeVar("T")


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
    bridge_from: str | None = None
    """A judge that has judged these cases: a drawn part of them is asked (`agree --bridge`)."""
    budget: int | None = None
    """How many of them."""
    rng_seed: int = 0
    """Decides which."""
    limit: int | None = None
    """Only the first so many seeds of the set: those that `Generating` takes with this limit."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        return self.asked(workspace).plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> list[StageResult]:
        """Ask and store; one result a protocol and N, and all again for the control.

        Raises as `botchat.pipeline.generate.Generating.run`.
        """
        return self.asked(workspace).run(workspace, spending, meter)

    def asked(self, workspace: Workspace, generated: Dialogues | None = None) -> Asked:
        """Everything that the protocol asks about the dialogues there are, or about ``generated``.

        Raises `ConfigError`: N too small, too few contestants; `MissingError`: nothing to ask.
        """
        protocol = catalogue_of(workspace, self.seed_set).named(self.protocol)
        whole = workspace.seeds(self.seed_set)
        seeds = whole if self.limit is None else first_seeds(whole, self.limit)
        contestants: Dialogues = pick(workspace, self.seed_set, whole, self.models, generated)
        if self.limit is not None:
            among = {seed.id for seed in seeds}
            contestants = {
                name: {id_: one for id_, one in by_seed.items() if id_ in among}
                for name, by_seed in contestants.items()
            }
        if protocol.shows == "pair":
            compared = pairwise_contestants(protocol, contestants, bool(self.models))

            def at(n: int) -> Cases | None:
                at_n = protocol.at(n)
                makers = list(at_n.cases(seeds, compared))
                return Cases(at_n, makers) if makers else None

            asked = at_each_n(workspace, self.turns, at)
            asked = self._drawn(workspace, asked)
            return Asked(self.seed_set, whole, self.judge, asked, self.control)
        if self.turns:
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
        cases = self._drawn(workspace, [Cases(protocol, makers)])
        return Asked(self.seed_set, whole, self.judge, cases, self.control)

    def _drawn(self, workspace: Workspace, cases: list[Cases]) -> list[Cases]:
        """All of them, or of those that ``bridge_from`` has judged as many as the budget says."""
        if self.bridge_from is None:
            return cases
        if self.budget is None or self.budget < 1:
            raise ConfigError(f"--bridge-from needs --budget K, at least 1; it is {self.budget}")
        old = judge_named(workspace, self.seed_set, self.bridge_from)
        if old in (self.judge.name, full_name(self.judge.name, workspace)):
            raise ConfigError(
                f"--bridge-from {self.bridge_from}: it is the judge itself; name another"
            )
        judged = [
            workspace.judgments(workspace.judgments_path(self.seed_set, protocol.name, old))
            for protocol, _ in cases
        ]
        makes = [make for _, make in cases]
        chosen = slices.drawn(makes, judged, self.budget, self.rng_seed)
        if not any(chosen):
            raise MissingError(
                f"{old} has no readable verdict on what {self.protocol} asks of {self.seed_set}: "
                "judge with it first, or leave --bridge-from out"
            )
        found = zip(cases, chosen, strict=True)
        return [Cases(protocol, make) for (protocol, _), make in found if make]


def pairwise_contestants(protocol: Protocol, contestants: Dialogues, chosen: bool) -> Dialogues:
    """Who is compared in pairs, people only if ``chosen``; `ConfigError` for fewer than two."""
    found = {name: d for name, d in contestants.items() if chosen or name != HUMAN}
    if len(found) < 2:
        title = "Arena" if protocol.about_ai else protocol.title
        raise ConfigError(
            f"the {title} needs at least two contestants; there is {', '.join(found) or 'none'}: "
            "make another with generate --model MODEL, or name one more with --model"
        )
    return found


def at_each_n(
    workspace: Workspace, turns: Collection[int], at: Callable[[int], T | None]
) -> list[T]:
    """What there is to compare at each N of ``turns``, by default as far as there is any.

    Raises `ConfigError` for an N below 3, `MissingError` where there is nothing.
    """
    asked = list(dict.fromkeys(turns or workspace.config.arena.turns))
    if low := [n for n in asked if n <= N_SEED]:
        raise ConfigError(
            f"--turns {low[0]}: the first {N_SEED} utterances are human in every dialogue, so at "
            f"least {N_SEED + 1} are needed"
        )
    found = []
    for n in asked:
        if (made := at(n)) is not None:
            found.append(made)
        elif turns:
            raise too_short(n)
    if not found:
        raise MissingError("no two dialogues are long enough to compare; see --turns")
    return found


def too_short(n: int | None) -> MissingError:
    """Nothing can be compared at N = ``n``."""
    return MissingError(
        f"no two dialogues of one seed have {n} utterances (and a human dialogue of at "
        f"least 4); generate with --turns {n}"
    )


def judge_named(workspace: Workspace, seed_set: str, name: str) -> str:
    """A judge's name as its judgments on a set are filed; `MissingError` where it has none."""
    known = workspace.judgment_files(seed_set)
    found = next((one for one in (name, full_name(name, workspace)) if one in known), None)
    if found is None:
        who = ", ".join(sorted(known)) or "nobody"
        raise MissingError(f"{name!r} has not judged {seed_set}; judges who have: {who}")
    return found
