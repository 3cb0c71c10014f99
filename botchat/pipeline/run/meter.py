"""How far a command is: calls, money, failures, for a display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from botchat.interfaces import Reply
from botchat.models.limits import Budget

LONGEST = 300
"""Characters kept of what was said of a failure."""


@dataclass
class Meter:
    """What a command has done so far."""

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
    """Why calls were given up -> how many."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Model -> what was said of its last failure."""
    budget: Budget = field(default_factory=Budget)
    """What the run may spend; it knows what is estimated, beside ``cost_usd`` and ``tokens``."""
    quiet: bool = False
    """No plan is told before a run."""
    tell: Callable[[str], None] = lambda _: None
    """Says a line beside the result."""

    def begin(self, label: str, total: int, *, by_replies: bool = False) -> None:
        """Start counting a new step."""
        self.label, self.total, self.done, self.by_replies = label, total, 0, by_replies

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
