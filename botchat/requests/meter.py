"""How far a request is: calls, money, failures, and the calls that each step still needs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from botchat.interfaces import Reply
from botchat.models.limits import Budget

LONGEST = 300
"""Characters kept of what was said of a failure."""


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


@dataclass(eq=False)
class Step:
    """A part of a run: a protocol, or a model's dialogues."""

    by: str
    """The judge, or the contestant."""
    items: int = 0
    """Cases or dialogues."""
    each: int | None = None
    """Calls of an item, if all goes well; ``None``: known when the first one is done."""
    done: int = 0
    """Items that are there, those that were there before included."""
    calls: int = 0
    """Calls that were answered, by the endpoint or the ledger, or given up."""
    failed: int = 0
    why: str = ""
    """What was said of the last failure."""
    under_way: set[Item] = field(default_factory=set)
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

    def count(self, item: Item, reply: Reply) -> None:
        """Count one reply, or a call that was given up."""
        item.calls += 1
        self.calls += 1
        if not reply.usable:
            self.fail(reply.detail)

    def fail(self, why: str) -> None:
        """Count a failure."""
        self.failed += 1
        self.why = why[:LONGEST]

    @property
    def left(self) -> int | None:
        """Calls that are still to be made, if no item ends early; ``None``: not known yet."""
        if self.done >= self.items:
            return 0
        finished, asked = self.asked
        each = self.each if self.each is not None else asked / finished if finished else None
        if each is None:
            return None
        under_way = tuple(self.under_way)  # another thread may ask
        unbegun = max(0, self.items - self.done - len(under_way))
        return round(unbegun * each + sum(max(0.0, each - item.calls) for item in under_way))


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
    budget: Budget = field(default_factory=Budget)
    """What the run may spend; it knows what is estimated, beside ``cost_usd`` and ``tokens``."""
    steps: list[Step] = field(default_factory=list)
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
            item.step.count(item, reply)
        if not reply.answered:
            self.failures[reply.detail] += 1
            return
        self.replayed += stored
        if not stored:
            self.calls += 1
            self.tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)
            self.unpriced += reply.cost_usd is None
            self.cost_usd += reply.cost_usd or 0.0
