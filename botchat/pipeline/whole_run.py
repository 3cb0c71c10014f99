"""``botchat run``: generate, judge and rank in one go, planned before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, LimitReached, MissingError
from botchat.models.self_chat import Length
from botchat.pipeline.generate import Generated, Generating
from botchat.pipeline.judge import Judging
from botchat.pipeline.leaderboard import Published, leaderboard
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked, StageResult
from botchat.pipeline.run.plan import Planned, PlanningSession
from botchat.pipeline.run.session import (
    JudgeName,
    Limits,
    Session,
    Spending,
    catalogue_of,
    in_session,
)
from botchat.pipeline.run.work import Meter, Stops
from botchat.protocols.catalogue import RANKING
from botchat.protocols.kinds import Protocol
from botchat.records import HUMAN, Dialogues
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.tables import Formats


@dataclass(frozen=True)
class Ran:
    """What a whole run made."""

    planned: Sequence[Planned]
    """What was to be sent."""
    generated: Sequence[Generated]
    judged: Sequence[StageResult]
    left_out: Sequence[str]
    """Protocols that nobody asked for by name and that had nothing to ask, with the reason."""
    board: Published

    @property
    def unanswered(self) -> int:
        """Dialogues and verdicts that another run may still get."""
        dialogues = sum(one.unanswered for one in self.generated)
        return dialogues + sum(one.unanswered for one in self.judged)


@dataclass(frozen=True)
class Running:
    """The request of ``botchat run``; what is there already is not asked again."""

    seed_set: str
    models: tuple[str, ...]
    """Contestants, as on the command line; people are judged beside them."""
    judge: JudgeName
    protocols: tuple[str, ...] = ()
    """Empty: the three of BotChat, as far as they have something to ask."""
    limit: int | None = None
    """Only the first so many seeds, for everybody."""

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        seed_set: str | None = None,
        models: Sequence[str] = (),
        judge: str | None = None,
        judge_model: str | None = None,
        protocols: Sequence[str] = (),
        limit: int | None = None,
        samples: int = 1,
    ) -> Running:
        """What is given, the rest from ``[run]`` of botchat.toml; `ConfigError`: neither says."""
        known = workspace.config.run
        seed_set, models = seed_set or known.seeds, models or known.models
        named = judge or known.judge
        for flag, key, value in (
            ("--seeds SET", "seeds", seed_set),
            ("--model MODEL", "models", models),
            ("--judge JUDGE", "judge", named),
        ):
            if not value:
                raise ConfigError(
                    f"run needs {flag}, or {key} in [run] of {workspace.root / 'botchat.toml'} "
                    "(botchat init writes one)"
                )
        assert seed_set
        assert named
        return cls(
            seed_set,
            tuple(dict.fromkeys(models)),
            JudgeName(named, judge_model or known.judge_model, samples),
            tuple(dict.fromkeys(protocols or known.protocols)),
            known.limit if limit is None else limit,
        )

    def plan(self, workspace: Workspace) -> list[Planned]:
        """What `run` would send, with dialogues made up where there are none; errors as there."""
        generating = self._generating

        async def walk(session: PlanningSession, length: Length) -> None:
            self._judged_by(workspace, session)
            made = await generating.walk(workspace, session, length)
            for asked in self._asked(workspace, made)[0]:
                await asked.walk(workspace, session)

        self._check(workspace)
        language = workspace.language(self.seed_set)
        return plan.plan(workspace, workspace.seeds(self.seed_set), walk, language)

    def run(
        self,
        workspace: Workspace,
        spending: Spending | None = None,
        meter: Meter | None = None,
        planned: Sequence[Planned] | None = None,
        formats: Formats | None = None,
    ) -> Ran:
        """Plan, generate, judge and rank, under one budget.

        ``planned``: of `plan`, where it is known. ``formats``: as of `leaderboard`. Raises as
        `Generating.run` and `Judging.run`;
        `LimitReached` before anything is sent where the plan is over a limit already.
        """
        planned = self.plan(workspace) if planned is None else planned
        spending, meter = spending or Spending(), meter or Meter()
        limits = spending.limits
        if limits.max_usd is None:
            limits = replace(limits, max_usd=workspace.config.run.max_usd)
        _refuse_more_than(limits, planned)
        self._check(workspace)
        generated: list[Generated] = []
        left_out: list[str] = []

        async def ask(session: Session, stops: Stops) -> list[StageResult]:
            self._judged_by(workspace, session)  # nothing is paid for if it cannot be asked
            generated.extend(await self._generating.ask(workspace, session, stops))
            stops.raise_first()
            found, out = self._asked(workspace)
            left_out.extend(out)
            judged = []
            for asked in found:
                judged += await asked.ask(workspace, session, stops)
                stops.raise_first()
            return judged

        seeds = workspace.seeds(self.seed_set)
        spending = replace(spending, limits=limits)
        language = workspace.language(self.seed_set)
        judged = in_session(workspace, seeds, spending, meter, ask, language)
        board = leaderboard(workspace, self.seed_set, judged[0].judge, meter=meter, formats=formats)
        return Ran(planned, generated, judged, left_out, board)

    @property
    def _generating(self) -> Generating:
        models = tuple(name for name in self.models if name != HUMAN)
        return Generating(self.seed_set, models, limit=self.limit)

    def _check(self, workspace: Workspace) -> None:
        """Refuse what cannot work before a model is asked."""
        if set(self.models) <= {HUMAN}:
            raise ConfigError("run needs a --model besides human, which is judged in any case")
        self._named(workspace)

    def _named(self, workspace: Workspace) -> list[Protocol]:
        """The protocols; by default the paper's."""
        known = catalogue_of(workspace)
        return [known.named(name) for name in self.protocols] or list(RANKING)

    def _judged_by(self, workspace: Workspace, session: Session) -> None:
        """Refuse a judge that cannot be asked."""
        for subject in {protocol.subject for protocol in self._named(workspace)}:
            session.judge(self.judge, subject)

    def _asked(
        self, workspace: Workspace, made: Dialogues | None = None
    ) -> tuple[list[Asked], list[str]]:
        """What each protocol asks about the contestants, and which ask nothing.

        ``made``: their dialogues, in place of those that are stored.
        """
        found, left_out = [], []
        for protocol in self._named(workspace):
            models = tuple(dict.fromkeys(self.models))
            if protocol.shows == "one":
                models = tuple(dict.fromkeys((*models, HUMAN)))
            judging = Judging(self.seed_set, protocol.name, self.judge, models, limit=self.limit)
            try:
                found.append(judging.asked(workspace, made))
            except (ConfigError, MissingError) as error:
                if self.protocols:
                    raise
                left_out.append(f"{protocol.name} is left out: {error}")
        if not found:
            raise MissingError("; ".join(left_out))
        return found, left_out


def _refuse_more_than(limits: Limits, planned: Sequence[Planned]) -> None:
    """`LimitReached` where what is to be expected is more than a limit allows."""
    expected = [one for one in planned if one.level == "expected"]
    tokens = sum(one.prompt_tokens + one.completion_tokens for one in expected if one.cost_usd != 0)
    calls = sum(one.calls for one in expected if one.cost_usd != 0)
    usd = sum(one.cost_usd or 0.0 for one in expected)
    for flag, most, much, shown in (
        ("--max-usd", limits.max_usd, usd, "${:,.4f}"),
        ("--max-calls", limits.max_calls, calls, "{:,} calls"),
        ("--max-tokens", limits.max_tokens, tokens, "{:,} tokens"),
    ):
        if most is not None and much > most:
            raise LimitReached(
                f"nothing was sent: the plan comes to {shown.format(much)}, over {flag} {most}; "
                "raise it, or take fewer seeds with --limit"
            )
