"""How far a run is: what it tells in ``.botchat/progress.json``, and what follows from it.

The terminal and the live page only format it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

Number = TypeVar("Number", int, float)

QUIET_S = 30.0
"""Without a reply, after which a run that goes on is said to wait."""


class StepCounts(msgspec.Struct, eq=False):
    """What a part of a run that is planned and paid by itself has come to."""

    seed_set: str
    protocol: str
    """Empty: dialogues are generated."""
    by: str
    """The judge, or the contestant."""
    items: int = 0
    """Cases or dialogues."""
    done: int = 0
    """Items that are there, those that were there before included."""
    calls: int = 0
    """Replies received; likewise all numbers below, of this run."""
    replayed: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    failures: dict[str, tuple[int, str]] = {}
    """Kind -> how many, and what was said of the last one."""


class StepProgress(StepCounts):
    """A step as it is now."""

    left: int | None = None
    """Calls; ``None``: not known."""
    usd_left: float | None = None
    """What they will cost, as far as those made tell."""
    planned_usd: float | None = None
    """What the plan of the whole run expects of the step."""
    begun: bool = True

    @property
    def counted(self) -> int:
        """Calls that are done: sent, or answered by the ledger, or given up."""
        given_up = sum(self.failures.get(kind, (0, ""))[0] for kind in ("transport", "malformed"))
        return self.calls + self.replayed + given_up

    def to_come(self, used: float, unknown: int) -> float | None:
        """What the calls left will take, at the mean of those made; ``None``: not known."""
        if self.left == 0:
            return 0.0
        if self.left is None or unknown or not self.calls:
            return None
        return self.left * used / self.calls


class Progress(msgspec.Struct, frozen=True):
    """A run as it is now, or as it ended."""

    process: int
    host: str
    command: str
    """Without keys and logins."""
    started: float
    """Seconds of the epoch, as all times."""
    at: float
    """When this was written."""
    heard: float
    """When the last reply came, as far as was looked; at first the start."""
    state: str
    """``running``, ``done``, ``stopped`` (by a limit), ``failed``, ``interrupted``; ``killed``."""
    why: str
    rate: float | None
    """Calls a second lately; ``None``: too early."""
    steps: list[StepProgress]
    spent_usd: float
    """What the limits have counted, estimates included; likewise the others."""
    spent_calls: int
    spent_tokens: int
    max_usd: float | None
    max_calls: int | None
    max_tokens: int | None
    estimated: int
    """Tries whose cost is an estimate."""
    batches: dict[str, tuple[int, int]]
    """Batches that are waited for: id -> requests done, requests in all."""

    @property
    def seed_set(self) -> str:
        """What it works on."""
        return next((step.seed_set for step in self.steps), "")

    @property
    def seconds(self) -> float:
        """Since it began, or until it ended."""
        return self.at - self.started

    @property
    def by_calls(self) -> bool:
        """Whether it is counted in calls; rules decide by themselves."""
        left = calls_left(self.steps)
        return left is None or sum(step.counted for step in self.steps) + left > 0

    @property
    def unit(self) -> str:
        """What is counted."""
        return "calls" if self.by_calls else "verdicts"

    @property
    def done(self) -> int:
        """Of `unit`; likewise the next two."""
        return sum(step.counted if self.by_calls else step.done for step in self.steps)

    @property
    def planned(self) -> int | None:
        """All; ``None``: not known, as everywhere below."""
        if not self.by_calls:
            return total(step.items for step in self.steps)
        left = calls_left(self.steps)
        return None if left is None else self.done + left

    @property
    def pace(self) -> float | None:
        """So many a second."""
        if self.by_calls:
            return self.rate
        return self.done / self.seconds if self.seconds > 0 else None

    @property
    def percent(self) -> int | None:
        """Of the plan, rounded down."""
        if self.state == "done":
            return 100
        return 100 * self.done // self.planned if self.planned else None

    @property
    def left_s(self) -> float | None:
        """Seconds until it is done."""
        if self.planned is None or not self.pace:
            return None
        return (self.planned - self.done) / self.pace

    @property
    def projected_usd(self) -> float | None:
        """What is spent, and what is to come."""
        usd = usd_to_come(self.steps)
        return None if usd is None else self.spent_usd + usd

    @property
    def limit_s(self) -> float | None:
        """Seconds until a limit stops it; ``None``: none will."""
        tokens = total(step.to_come(step.tokens, 0) for step in self.steps)
        limits = (
            (self.max_usd, self.spent_usd, usd_to_come(self.steps)),
            (self.max_calls, self.spent_calls, calls_left(self.steps)),
            (self.max_tokens, self.spent_tokens, tokens),
        )
        # The part of what is left that can be done before a limit is reached.
        within = [
            max(0.0, most - spent) / more
            for most, spent, more in limits
            if most is not None and more and spent + more > most
        ]
        return min(within) * self.left_s if within and self.left_s is not None else None

    @property
    def unpriced(self) -> int:
        """Calls whose price is not known."""
        return sum(step.unpriced for step in self.steps)

    @property
    def line(self) -> str:
        """Set, done of planned, money and time left, in one line."""
        planned = f" of {self.planned:,}" if self.planned is not None else ""
        usd = money(self.spent_usd, self.unpriced)
        about = f" of about {money(self.projected_usd)}" if self.projected_usd else ""
        left = f"{duration(self.left_s)} left" if self.left_s else ""
        end = left if self.state == "running" else self.state
        parts = (self.seed_set, f"{self.done:,}{planned} {self.unit}", usd + about, end)
        return " · ".join(filter(None, parts))

    @property
    def failures(self) -> list[tuple[int, str, str]]:
        """How many failed, how, and what was said of the last one; the commonest first."""
        counts: dict[str, tuple[int, str]] = {}
        for step in self.steps:
            for kind, (n, said) in step.failures.items():
                counts[kind] = (counts.get(kind, (0, ""))[0] + n, said)
        return sorted(((n, kind, said) for kind, (n, said) in counts.items()),
                      key=lambda one: (-one[0], one[1]))  # fmt: skip

    @property
    def waiting(self) -> tuple[int, int, int]:
        """Batches that are waited for, requests in them that are done, and all."""
        done, of = (sum(pair[i] for pair in self.batches.values()) for i in (0, 1))
        return len(self.batches), done, of


def calls_left(steps: Sequence[StepProgress]) -> int | None:
    """Of some steps; ``None``: not known."""
    return total(step.left for step in steps)


def usd_to_come(steps: Sequence[StepProgress]) -> float | None:
    """What the calls left of some steps will cost; ``None``: not known.

    Of a step that has told too little that is its part of the plan, times what the other steps are
    found to cost beside theirs.
    """
    told = [(step.cost_usd + step.usd_left, step.planned_usd) for step in steps
            if step.usd_left is not None and step.planned_usd]  # fmt: skip
    factor = sum(found for found, _ in told) / sum(usd for _, usd in told) if told else 1.0

    def of(step: StepProgress) -> float | None:
        if step.left == 0 or step.unpriced:
            return step.to_come(0, step.unpriced)
        if step.usd_left is not None:
            return step.usd_left
        if step.planned_usd is not None:
            return max(0.0, step.planned_usd * factor - step.cost_usd)
        return step.to_come(step.cost_usd, 0)

    return total(map(of, steps))


def total(numbers: Iterable[Number | None]) -> Number | None:
    """The sum; ``None``: one is not known."""
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def duration(seconds: float) -> str:
    """``1 h 05 min``, ``2 min 03 s``, ``7 s``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def money(usd: float | None, unpriced: int = 0) -> str:
    """Dollars as people read them; what is not known is "–"."""
    if usd is None:
        return "–"
    shown = f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:,.4f}"
    return shown + (f" + {unpriced:,} calls of unknown price" if unpriced else "")
