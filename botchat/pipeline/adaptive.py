"""Stage 2 adaptively: as much of the Arena as its ranking takes, each batch chosen by the verdicts.

What is asked depends on the dialogues, the settings and the verdicts only. So there is no state to
keep: a run that goes on asks the same questions again and finds the answers in the stage file. A
case that the endpoint did not answer ends the run at its batch, because without its verdict the
next batch would be another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Judge
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline import plan
from botchat.pipeline.adaptive_run import AdaptiveArena, AdaptiveResult, known_comparisons
from botchat.pipeline.judge import (
    Cases,
    pairwise_contestants,
    pairwise_turns,
    pick,
    too_short,
)
from botchat.pipeline.run import Meter, Stops
from botchat.pipeline.session import JudgeName, Session, Spending, catalogue_of, in_session
from botchat.protocols.catalogue import ARENA
from botchat.protocols.kinds import Protocol
from botchat.protocols.pairs import Field
from botchat.ratings.adaptive import AdaptiveSettings, Target
from botchat.records import Dialogue, Dialogues, Seed
from botchat.workspace.folder import Workspace

ADD_BUDGET = 400
"""Comparisons that place a model, where nothing else is asked for."""

PLANNED = (
    "low and expected: one simulated run, on the ratings so far or, with none, on models as far "
    "apart as usual; high: all that may be asked"
)
"""How a plan is to be read."""

_TARGET = {"gap": float, "swaps": int, "confidence": float}


@dataclass(frozen=True)
class Adaptive:
    """The request of ``botchat judge --adaptive``; see ``docs/adaptive.md``.

    Judgments go to the stage files of the whole protocol, so a later whole run keeps them all. What
    is judged already is not asked again.
    """

    seed_set: str
    judge: JudgeName
    settings: AdaptiveSettings | None = None
    """When to stop. Default: at most 2 pairs more than 10 Elo apart in the wrong order, with 95 %
    confidence; with ``add`` after 400 comparisons."""
    add: str | None = None
    """A model to place on the board that this judge's verdicts make of the others: only comparisons
    with it are asked."""
    models: tuple[str, ...] = ()
    """Contestants; empty: all there are, with ``add`` all that are on the board."""
    turns: tuple[int, ...] = ()
    """N; empty: botchat.toml's, as far as dialogues and boards reach."""
    protocol: str = ARENA.name
    """One that compares pairs of models."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send.

        Low and expected are what one simulated run asks (`AdaptiveArena.foresee`); high is all that
        may be asked: the budget, or every comparison there is.
        """
        wanted = _Wanted.of(self, workspace)

        async def walk(session: plan.PlanningSession, _length: Length) -> None:
            most = session.level == len(plan.LEVELS) - 1
            for one in wanted.arenas(session.judge(self.judge)):
                await one.foresee(most=most)

        return plan.plan(workspace, wanted.seeds, walk)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> list[AdaptiveResult]:
        """Judge as much as the ranking takes; one result for each N.

        Raises `MissingError`: no dialogues, or no board to add to; `LimitReached`: a limit of the
        run, from which the same request goes on.
        """
        wanted = _Wanted.of(self, workspace)

        async def ask(session: Session, stops: Stops) -> list[AdaptiveResult]:
            arenas = wanted.arenas(session.judge(self.judge))
            for one in arenas:
                one.filing.ready()
            # A target may be reached any time: only a budget is a total.
            session.meter.begin("judge", (wanted.settings.budget or 0) * len(arenas))
            return await together(one.run(stops, session.meter) for one in arenas)

        return in_session(workspace, wanted.seeds, spending, meter, ask)


def adaptive_settings(
    protocol: Protocol,
    *,
    adaptive: bool,
    target: str | None,
    budget: int | None,
    add: str | None,
    seed: int | None,
    control: bool,
) -> AdaptiveSettings | None:
    """Settings from the flags of ``botchat judge``; ``None`` where nothing adaptive is asked.

    Raises `ConfigError` for flags that do not go together, or a target that is none.
    """
    given = {"--target": target, "--budget": budget, "--seed": seed}
    named = [flag for flag, value in given.items() if value is not None]
    asked = ["--add"] * (add is not None) + ["--adaptive"] * adaptive
    if not asked and not named:
        return None
    if not asked:
        raise ConfigError(f"{named[0]} belongs to an adaptive Arena; give --adaptive or --add too")
    if protocol.shows != "pair":
        raise ConfigError(
            f"{asked[0]} is for the arena: {protocol.name} judges each dialogue by itself or "
            f"beside its human one; leave {asked[0]} out"
        )
    if control:
        raise ConfigError(
            f"--control does not go with {asked[0]}: cases are chosen by the panel's own verdicts; "
            "leave one of the two out"
        )
    if budget is None and target is None and add is not None:
        budget = ADD_BUDGET
    return AdaptiveSettings(
        target=read_target(target) if budget is None or target is not None else None,
        budget=budget,
        seed=seed or 0,
    )


def read_target(text: str | None) -> Target:
    """``gap=10,swaps=2,confidence=0.95``, or a part of that, as a target; ``None``: the default.

    Raises `ConfigError`, which names what, for anything else.
    """
    found: dict[str, float | int] = {}
    where = f"--target {text if text is None or len(text) < 60 else f'{text[:60]}…'!r}"
    for part in () if text is None else text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in _TARGET or not equals or key in found:
            what = "is given twice" if key in found else "is not known"
            raise ConfigError(
                f"{where}: {part.strip()!r} {what}; write it like gap=10,swaps=2,confidence=0.95"
            )
        try:
            found[key] = _TARGET[key](value)
        except ValueError:
            kind = "a whole number" if key == "swaps" else "a number"
            raise ConfigError(f"{where}: {key} {value[:60]!r} is not {kind}") from None
    try:
        return Target(**found)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


@dataclass(frozen=True)
class _Wanted:
    """What is to be compared, as far as it is known without a judge."""

    request: Adaptive
    workspace: Workspace
    protocols: list[Protocol]
    """The protocol at each N at which two contestants can be compared."""
    seeds: list[Seed]
    contestants: Dialogues
    settings: AdaptiveSettings
    added: str | None
    named: frozenset[str]
    """Contestants asked for by name: they must be on the board that one is added to."""

    @classmethod
    def of(cls, request: Adaptive, workspace: Workspace) -> _Wanted:
        """A request with its names resolved and its dialogues read."""
        protocol = catalogue_of(workspace).named(request.protocol)
        seeds, models = workspace.seeds(request.seed_set), request.models
        named = frozenset(pick(workspace, request.seed_set, seeds, models) if models else ())
        added, asked = None, [*models]
        if request.add is not None:
            (added,) = pick(workspace, request.seed_set, seeds, [request.add])
            asked = [*(models or workspace.all_dialogues(request.seed_set)), added]
        found = pick(workspace, request.seed_set, seeds, asked)
        contestants = pairwise_contestants(protocol, found, bool(asked))
        reached = []
        for n in pairwise_turns(workspace, request.turns):
            if len(_taking_part(protocol.at(n), seeds, contestants)) > 1:
                reached.append(protocol.at(n))
            elif request.turns:
                raise too_short(n)
        if not reached:
            raise too_short()
        by_default = AdaptiveSettings(target=None, budget=ADD_BUDGET) if added else None
        settings = request.settings or by_default or AdaptiveSettings()
        return cls(request, workspace, reached, seeds, contestants, settings, added, named)

    def arenas(self, answering: Judge) -> list[AdaptiveArena]:
        """One for each N; `MissingError` if there is no board to add to."""
        made = (self._arena(answering, protocol) for protocol in self.protocols)
        if found := [one for one in made if one is not None]:
            return found
        raise self._no_board(answering, self.protocols[-1])

    def _arena(self, answering: Judge, protocol: Protocol) -> AdaptiveArena | None:
        """``None``: there is no board to add to, and none was asked for by its N."""
        contestants = _taking_part(protocol, self.seeds, self.contestants)
        added, n = self.added, protocol.n
        seed_set = self.request.seed_set
        filing = Cases(protocol, ()).filing(self.workspace, seed_set, answering, "adaptive")
        field = Field(protocol, self.seeds, contestants)
        if added is None:
            return AdaptiveArena(field, filing, self.settings, None, None)
        known = known_comparisons(field, filing, added)
        board = {known.models[i] for i in (*known.first.tolist(), *known.second.tolist())}
        if added not in contestants or not board:
            if not self.request.turns:
                return None
            raise too_short(n) if board else self._no_board(answering, protocol)
        if missing := sorted(self.named - board - {added}):
            raise MissingError(
                f"{answering.name} has not compared {', '.join(missing)} with the others at "
                f"N = {n}: judge them first, or leave them out of --model"
            )
        kept = {name: contestants[name] for name in (*board, added)}
        field = Field(protocol, self.seeds, kept)
        known = known_comparisons(field, filing, added)
        return AdaptiveArena(field, filing, self.settings, added, known)

    def _no_board(self, answering: Judge, protocol: Protocol) -> MissingError:
        return MissingError(
            f"no board of {answering.name} at N = {protocol.n} to add {self.added} to; judge the "
            f"others first with: botchat judge {protocol.base} --seeds {self.request.seed_set} "
            f"--judge {answering.name} --adaptive"
        )


def _taking_part(
    protocol: Protocol, seeds: Sequence[Seed], contestants: Dialogues
) -> dict[str, Mapping[str, Dialogue]]:
    """Those who can be compared with another one."""
    field = Field(protocol, seeds, contestants)
    pairs = combinations(range(len(field.contestants)), 2)
    there = {i for pair in pairs if len(field.seeds_of(*pair)) for i in pair}
    return {field.contestants[i]: contestants[field.contestants[i]] for i in sorted(there)}
