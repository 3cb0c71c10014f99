"""Limits of a run, its progress so far, and its judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from botchat.errors import UsageError
from botchat.frames import fill_lines

if TYPE_CHECKING:  # `--help` needs none of them
    from botchat.interfaces import Reply
    from botchat.judges.function import JudgeFunction
    from botchat.models.limits import Budget
    from botchat.workspace.config import RunSettings
    from botchat.workspace.folder import Workspace

LONGEST = 300
"""Characters kept of the reason of a failure."""


@dataclass(frozen=True)
class Spending:
    """Limits of a run (None: no limit), and how its calls are made."""

    max_usd: float | None = None
    """Stop cleanly (exit 3) at this cost; the same command goes on."""
    max_calls: int | None = None
    """Stop cleanly after this many calls."""
    max_tokens: int | None = None
    """Stop cleanly after this many tokens."""
    batch: bool = False
    """Use the Batch API: half the price, minutes to hours."""
    executor: Any = None
    """Let workers make the calls: loky:N, dask://HOST:PORT, or a Python executor."""
    plan: bool = False
    """Print calls and dollars; send nothing."""

    def __post_init__(self) -> None:
        """Refuse limits of 0 and below, NaN and infinity."""
        for flag, value in (
            ("--max-usd", self.max_usd),
            ("--max-calls", self.max_calls),
            ("--max-tokens", self.max_tokens),
        ):
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{flag} {value}: give a number above 0, or leave it out")

    def within(self, workspace: Workspace) -> Spending:
        """Return the same with the workspace's limit of money where it has none of its own."""
        if self.max_usd is not None:
            return self
        return replace(self, max_usd=workspace.config.run.max_usd)


NO_LIMITS = Spending()


@dataclass(frozen=True)
class JudgeName:
    """A judge as it is named on the command line."""

    name: str | JudgeFunction
    """``rules``, a ``[judges]`` or ``[panels]`` entry, a preset, any model; or a function from a
    case to the text of a reply, which becomes a `JudgeFunction`."""
    model: str | None = None
    """Model of a panel's agents that name none (``--judge-model``)."""

    def __post_init__(self) -> None:
        """Check a judge that is no name; None names none. Raises `ConfigError`."""
        judge: object = self.name
        if isinstance(judge, str):
            return
        if judge is None:
            object.__setattr__(self, "name", "")
            return
        from botchat.judges.function import JudgeFunction

        function = JudgeFunction.of(judge)
        object.__setattr__(self, "name", function)
        if self.model is not None:
            raise UsageError(
                f"--judge-model {self.model}: the judge {function.name} is a function and asks no "
                "model of ours; leave it out"
            )

    def or_usual(self, usual: RunSettings) -> JudgeName:
        """Return the same, with the judge and the model of ``[run]`` where it names none."""
        if not isinstance(self.name, str):
            return self
        return JudgeName(self.name or usual.judge or "", self.model or usual.judge_model)

    @property
    def text(self) -> str:
        """The name for messages."""
        return str(self.name)


NO_JUDGE = JudgeName("")
"""The judge where none is named."""


def _no_budget() -> Budget:
    from botchat.models.limits import Budget

    return Budget()


@dataclass
class Meter:
    """Progress of a command for a display: calls, cost, failures."""

    label: str = ""
    total: int = 0
    done: int = 0
    by_replies: bool = False
    """``done`` counts replies; else it is counted by who does the step."""
    calls: int = 0
    """Replies received in this run."""
    replayed: int = 0
    """Replies that came from the ledger, at no cost."""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Reason why calls were given up -> number of calls."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Model -> reason of its last failure."""
    budget: Budget = field(default_factory=_no_budget)
    """Budget of the run, with estimates in addition to ``cost_usd`` and ``tokens``."""
    quiet: bool = False
    """No plan is printed before a run."""
    tell: Callable[[str], None] = lambda _: None
    """Prints a line on stderr."""

    def begin(self, label: str, total: int, *, by_replies: bool = False) -> None:
        """Start counting a new step."""
        self.label = label
        self.total = total
        self.done = 0
        self.by_replies = by_replies

    def count(self, model: str, reply: Reply, stored: bool) -> None:
        """Count one reply, or a call that was given up."""
        self.done += self.by_replies
        if not reply.usable:
            self.reasons[model] = reply.detail[:LONGEST]
        if not reply.answered:
            self.failures[reply.detail] += 1
            return
        self.replayed += stored
        if not stored:
            self.calls += 1
            self.tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)
            self.unpriced += reply.cost_usd is None
            self.cost_usd += reply.cost_usd or 0.0

    @property
    def bill(self) -> str:
        """Calls and money of a run in words; empty if no model was asked."""
        return ", ".join(fill_lines("pipeline/spent.txt", meter=self))
