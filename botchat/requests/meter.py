"""How far a request is: calls, money, failures, and what each of its steps still needs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import add

import msgspec

from botchat.interfaces import Reply
from botchat.models.limits import Spent
from botchat.workspace.progress import StepCounts

LONGEST = 300
"""Characters kept of what was said of a failure."""


LEAST_PAID = 10
"""Calls from which it is told what the others of a step will cost."""


class Item:
    """A dialogue or a case that is asked for inside a ``with`` block.

    Without an exception one more is done; with one it stays under way: what it has asked is stored,
    the rest is still to be asked.
    """

    __slots__ = ("_before", "calls", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.calls = 0

    def __enter__(self) -> Item:
        """Count the calls that are made from here."""
        self.step.under_way.add(self)
        self._before = _ITEM.set(self)
        return self

    def __exit__(self, *raised: object) -> None:
        """Count the item itself."""
        _ITEM.reset(self._before)
        if raised[0] is None:
            self.step.settle(self)


_ITEM: ContextVar[Item | None] = ContextVar("item", default=None)
"""What the calls of this task belong to; the tasks that it starts know it too."""


class Step(StepCounts, eq=False):
    """A part of a run that is planned and paid by itself: a protocol, or a model's dialogues."""

    each: int | None = None
    """Calls of an item, if all goes well; ``None``: known when the first one is done."""
    curve: tuple[float, ...] = (0, 0, 0, 0, 0)
    """Of calls that were paid, each the k-th of its item from 0: sums of 1, k, k², USD, k · USD."""
    under_way: set[Item] = msgspec.field(default_factory=set)
    asked: tuple[int, int] = (0, 0)
    """Items that are done and had calls, and these calls."""

    def item(self) -> Item:
        """The next dialogue or case."""
        return Item(self)

    def settle(self, item: Item) -> None:
        """One more is done."""
        self.under_way.discard(item)
        self.done += 1
        if item.calls:
            self.asked = (self.asked[0] + 1, self.asked[1] + item.calls)

    def count(self, item: Item, reply: Reply, stored: bool) -> None:
        """Count one reply, or a call that was given up."""
        k = item.calls
        item.calls += 1
        if not reply.usable:
            self.fail(reply.outcome, reply.detail)
            if not reply.answered:
                return
        _pay(self, reply, stored)
        if not stored and (usd := reply.cost_usd) is not None:
            self.curve = tuple(map(add, self.curve, (1, k, k * k, usd, k * usd)))

    def fail(self, kind: str, why: str) -> None:
        """Count a failure."""
        self.failures[kind] = (self.failures.get(kind, (0, ""))[0] + 1, why[:LONGEST])

    @property
    def left(self) -> int | None:
        """Calls that are still to be made, if no item ends early; ``None``: not known yet."""
        calls = self._rest(1.0, 0.0)
        return None if calls is None else round(calls)

    @property
    def usd_left(self) -> float | None:
        """USD of these, on the line through what first, second, … calls of an item cost so far.

        A dialogue's calls cost more and more. ``None``: there are too few to draw it.
        """
        n, k, kk, usd, kusd = self.curve
        spread = n * kk - k * k
        if n < LEAST_PAID or (self.each != 1 and not spread):
            return None
        slope = max(0.0, (n * kusd - k * usd) / spread) if spread else 0.0
        return self._rest((usd - slope * k) / n, slope)

    def _rest(self, start: float, slope: float) -> float | None:
        """The sum of start + slope · k over the calls that are still to be made."""
        if self.done >= self.items:
            return 0.0
        finished, asked = self.asked
        each = self.each if self.each is not None else asked / finished if finished else None
        if each is None:
            return None
        under_way = tuple(self.under_way)  # another thread may ask
        unbegun = max(0, self.items - self.done - len(under_way))

        def after(made: int) -> float:
            more = max(0.0, each - made)
            return more * (start + slope * (made + each - 1) / 2)

        return unbegun * after(0) + sum(after(item.calls) for item in under_way)


@dataclass
class Meter:
    """What a long step has done so far, for a display."""

    label: str = ""
    total: int = 0
    done: int = 0
    calls: int = 0
    """Replies received in this run."""
    replayed: int = 0
    """Replies that came from the ledger, at no cost."""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Why calls were given up -> how many."""
    estimates: Counter[str] = field(default_factory=Counter)
    """Why the cost of a try is an estimate -> how many."""
    estimated_usd: float = 0.0
    """What these were counted at by the limits, beside ``cost_usd``; likewise the tokens."""
    estimated_tokens: int = 0
    batches: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Batches that are waited for: id -> requests done, requests in all."""
    steps: list[Step] = field(default_factory=list)
    ahead: dict[tuple[str, str], tuple[int, float | None]] = field(default_factory=dict)
    """The plan of the whole run: protocol and judge, or no protocol and the contestant -> calls and
    USD."""
    heard: float = field(default_factory=time.monotonic)
    """When the last call ended."""
    started: float = field(default_factory=time.monotonic)
    in_flight: Callable[[], int] = lambda: 0
    """Calls that are out now."""
    tell: Callable[[str], None] = lambda _: None
    """Says a line beside the result."""
    watch: Callable[[], None] = lambda: None
    """Called when a step begins, and at each `advance`."""

    def begin(self, label: str, total: int) -> None:
        """Start counting a new step."""
        self.label, self.total, self.done, self.started = label, total, 0, time.monotonic()
        self.heard = self.started
        self.watch()

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        self.watch()

    def count(self, reply: Reply, stored: bool) -> None:
        """Count one reply, or a call that was given up."""
        self.heard = time.monotonic()
        if (item := _ITEM.get()) is not None:
            item.step.count(item, reply, stored)
        if not reply.answered:
            self.failures[reply.detail] += 1
            return
        _pay(self, reply, stored)

    def estimate(self, counted: Spent, why: str) -> None:
        """Count one try whose cost the endpoint did not say."""
        self.estimates[why] += 1
        self.estimated_usd += counted.usd or 0.0
        self.estimated_tokens += counted.tokens or 0


def _pay(counts: Step | Meter, reply: Reply, stored: bool) -> None:
    """Count what a call took; one of the ledger took nothing."""
    counts.replayed += stored
    if not stored:
        counts.calls += 1
        counts.tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)
        counts.unpriced += reply.cost_usd is None
        counts.cost_usd += reply.cost_usd or 0.0
