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

from botchat import prompts
from botchat.concurrency import together
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Judge
from botchat.models.self_chat import Length
from botchat.pipeline import judge as judging
from botchat.pipeline import plan as planning
from botchat.pipeline.rounds import Round, known_comparisons, on_board
from botchat.pipeline.run import Meter, Stops, run_now
from botchat.pipeline.sampled import Sampled
from botchat.pipeline.session import Limits, open_session
from botchat.pipeline.stage_file import Filing
from botchat.protocols import arena
from botchat.ratings.adaptive import AdaptiveSettings, Target
from botchat.records import Dialogue, Seed
from botchat.workspace.folder import Workspace

ADD_BUDGET = 400
"""Comparisons that place a model, where nothing else is asked for."""

PLANNED = (
    "low and expected: one simulated run, on the ratings so far or, with none, on models as far "
    "apart as usual; high: all that may be asked"
)
"""How a plan is to be read."""

_TARGET = {"gap": float, "swaps": int, "confidence": float}


def judge_adaptively(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    settings: AdaptiveSettings | None = None,
    *,
    add: str | None = None,
    judge_model: str | None = None,
    models: Sequence[str] = (),
    turns: Sequence[int] = (),
    samples: int = 1,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> list[Sampled]:
    """Judge as much of the Arena as its ranking takes; see ``docs/adaptive.md``.

    Judgments go to the stage files of the whole Arena, so a later whole run keeps them all. What
    is judged already is not asked again.

    Args:
        workspace: where the dialogues are and the judgments go.
        seed_set: name of the set.
        judge_name: as of `botchat.pipeline.judge.judge`.
        settings: when to stop. Default: at most 2 pairs more than 10 Elo apart in the wrong
            order, with 95 % confidence; with ``add`` after 400 comparisons.
        add: a model to place on the board that this judge's verdicts make of the others: only
            comparisons with it are asked.
        judge_model: model of a panel's agents that name none.
        models: contestants; empty: all there are, with ``add`` all that are on the board.
        turns: N of the Arena; empty: botchat.toml's, as far as dialogues and boards reach.
        samples: how often a single judge is asked about each case; the majority decides.
        limits: what the run may cost.
        batch: send every call through its endpoint's Batch API.
        meter: told of the progress, and how the ranking stands.

    Returns:
        One result for each N.

    Raises:
        MissingError: no dialogues, or no board to add to.
        LimitReached: a limit of the run; it can be resumed.
    """
    wanted = _Wanted.of(workspace, seed_set, models, turns, settings, add)

    async def run() -> list[Sampled]:
        stops = Stops()
        async with opened as session:
            rounds = wanted.rounds(session.judge(judge_name, judge_model, samples))
            # A target may be reached any time: only a budget is a total.
            session.meter.begin("judge", (wanted.settings.budget or 0) * len(rounds))
            results = await together(one.run(stops, session.meter) for one in rounds)
        stops.raise_first()
        return results

    with workspace.locked():
        opened = open_session(
            workspace, wanted.seeds, limits or Limits(), meter or Meter(), batch=batch
        )
        return run_now(run())


def plan_adaptively(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    settings: AdaptiveSettings | None = None,
    *,
    add: str | None = None,
    judge_model: str | None = None,
    models: Sequence[str] = (),
    turns: Sequence[int] = (),
    samples: int = 1,
) -> list[planning.Planned]:
    """What `judge_adaptively` with these arguments would send.

    Low and expected are what one simulated run asks (`botchat.pipeline.rounds.Round.foresee`); high
    is all that may be asked: the budget, or every comparison there is.
    """
    wanted = _Wanted.of(workspace, seed_set, models, turns, settings, add)

    async def walk(session: planning.PlanningSession, _length: Length) -> None:
        most = session.level == len(planning.LEVELS) - 1
        for one in wanted.rounds(session.judge(judge_name, judge_model, samples)):
            await one.foresee(most=most)

    return planning.plan(workspace, wanted.seeds, walk)


def adaptive_settings(
    protocol: str,
    *,
    adaptive: bool,
    target: str | None,
    budget: int | None,
    add: str | None,
    seed: int | None,
    control: bool,
) -> AdaptiveSettings | None:
    """Settings from the flags of ``botchat judge``; ``None`` where nothing adaptive is asked.

    Raises:
        ConfigError: flags that do not go together, or a target that is none.
    """
    given = {"--target": target, "--budget": budget, "--seed": seed}
    named = [flag for flag, value in given.items() if value is not None]
    asked = ["--add"] * (add is not None) + ["--adaptive"] * adaptive
    if not asked and not named:
        return None
    if not asked:
        raise ConfigError(f"{named[0]} belongs to an adaptive Arena; give --adaptive or --add too")
    if protocol != "arena":
        raise ConfigError(
            f"{asked[0]} is for the arena: {protocol} judges each dialogue by itself or beside "
            f"its human one; leave {asked[0]} out"
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

    Raises:
        ConfigError: anything else; names what.
    """
    found: dict[str, float | int] = {}
    for part in (text or "").split(",") if text is not None else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        where = f"--target {text!r}"
        if key not in _TARGET or not equals or key in found:
            what = "is given twice" if key in found else "is not known"
            raise ConfigError(
                f"{where}: {part.strip()!r} {what}; write it like gap=10,swaps=2,confidence=0.95"
            )
        try:
            found[key] = _TARGET[key](value)
        except ValueError:
            kind = "a whole number" if key == "swaps" else "a number"
            raise ConfigError(f"{where}: {key} {value!r} is not {kind}") from None
    try:
        return Target(**found)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"--target {text!r}: {error}") from None


@dataclass(frozen=True)
class _Wanted:
    """What is to be compared, as far as it is known without a judge."""

    workspace: Workspace
    seed_set: str
    seeds: list[Seed]
    players: Mapping[str, Mapping[str, Dialogue]]
    turns: list[int]
    """Each N at which two players can be compared."""
    settings: AdaptiveSettings
    added: str | None
    named: frozenset[str]
    """Players asked for by name: they must be on the board that one is added to."""
    all_turns: bool
    """Whether there must be a board at each N."""

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        seed_set: str,
        models: Sequence[str],
        turns: Sequence[int],
        settings: AdaptiveSettings | None,
        add: str | None,
    ) -> _Wanted:
        seeds = workspace.seeds(seed_set)
        named = frozenset(judging.pick(workspace, seed_set, seeds, models) if models else ())
        added = None
        asked = [*models]
        if add is not None:
            (added,) = judging.pick(workspace, seed_set, seeds, [add])
            asked = [*(models or workspace.all_dialogues(seed_set)), added]
        found = judging.pick(workspace, seed_set, seeds, asked)
        players = judging.arena_players(found, bool(asked))
        reached = []
        for n in judging.arena_turns(workspace, turns):
            if len(_taking_part(seeds, players, n)) > 1:
                reached.append(n)
            elif turns:
                raise judging.too_short(n)
        if not reached:
            raise judging.too_short()
        if settings is None:
            settings = (
                AdaptiveSettings()
                if added is None
                else AdaptiveSettings(target=None, budget=ADD_BUDGET)
            )
        return cls(
            workspace, seed_set, seeds, players, reached, settings, added, named, bool(turns)
        )

    def rounds(self, answering: Judge) -> list[Round]:
        """One for each N.

        Raises:
            MissingError: no board to add to.
            ConfigError: players that nothing connects.
        """
        found = [one for n in self.turns if (one := self._round(answering, n)) is not None]
        if not found:
            raise self._no_board(answering, self.turns[-1])
        return found

    def _round(self, answering: Judge, n: int) -> Round | None:
        """``None``: there is no board to add to, and none was asked for by its N."""
        players, added = _taking_part(self.seeds, self.players, n), self.added
        name = arena.protocol(n)
        asked = judging.Questions(name, (), prompts.digest(*arena.PROMPTS), 2, n)
        signature = asked.signature(self.seed_set, answering)
        filing = Filing(self.workspace, self.seed_set, name, answering, signature, "adaptive")
        field = arena.Field(self.seeds, players, n)
        if added is None:
            return Round(field, filing, self.settings, None, None)
        board = on_board(known_comparisons(field, filing, added))
        if added not in players or not board:
            if not self.all_turns:
                return None
            raise judging.too_short(n) if board else self._no_board(answering, n)
        if missing := sorted(self.named - board - {added}):
            raise MissingError(
                f"{answering.name} has not compared {', '.join(missing)} with the others at "
                f"N = {n}: judge them first, or leave them out of --model"
            )
        field = arena.Field(self.seeds, {name: players[name] for name in (*board, added)}, n)
        known = known_comparisons(field, filing, added)
        return Round(field, filing, self.settings, added, known)

    def _no_board(self, answering: Judge, n: int) -> MissingError:
        return MissingError(
            f"no board of {answering.name} at N = {n} to add {self.added} to; judge the others "
            f"first with: botchat judge arena --seeds {self.seed_set} --judge {answering.name} "
            "--adaptive"
        )


def _taking_part(
    seeds: Sequence[Seed], players: Mapping[str, Mapping[str, Dialogue]], n: int
) -> dict[str, Mapping[str, Dialogue]]:
    """The players that can be compared with another one at N = ``n``."""
    field = arena.Field(seeds, players, n)
    pairs = combinations(range(len(field.players)), 2)
    there = {player for pair in pairs if len(field.seeds_of(*pair)) for player in pair}
    return {field.players[i]: players[field.players[i]] for i in sorted(there)}
