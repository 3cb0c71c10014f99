"""Leases: parts of what a run may spend, for workers that may die (docs/cluster.md).

A lease is spent in instalments. A worker notes in the store that it has drawn one, and looks that
nobody else has, before it spends anything of it. So whatever becomes of a worker, what it has drawn
is the most that it was billed, and the run counts that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from botchat.errors import BotChatError, ConfigError
from botchat.models.limits import Budget, Spent
from botchat.requests.arguments import Limits
from botchat.workspace.store import Store

INSTALMENTS = 10
"""Of a lease: its dollars, calls and tokens alike."""

CLOSED = "closed"
"""Who draws what nobody may draw any more."""

Amount: TypeAlias = tuple[float | None, int | None, int | None]
"""USD, calls and tokens; ``None``: no limit."""


def part(lease: Limits, n: int) -> Amount:
    """``n`` instalments of a lease."""
    calls, tokens = (
        None if most is None else most * n // INSTALMENTS
        for most in (lease.max_calls, lease.max_tokens)
    )
    return None if lease.max_usd is None else lease.max_usd * n / INSTALMENTS, calls, tokens


def lease_of(budget: Budget, shards: int) -> Limits | None:
    """One of so many equal parts of what is left; ``None``: nothing is."""
    if shards < 1:
        return None
    usd, calls, tokens = budget.left
    usd = None if usd is None else usd / shards
    calls, tokens = (None if n is None else n // shards for n in (calls, tokens))
    gone = any(most is not None and most <= 0 for most in (usd, calls, tokens))
    return None if gone else Limits(usd, calls, tokens)


def commander(store: Store, home: str) -> str:
    """The run that commands the workers of a workspace; empty: none is known here."""
    return (store.get(f"heads/{home}") or b"").decode()


def command(store: Store, home: str, run: str) -> None:
    """Let ``run`` command the workers of a workspace: those of any other stop."""
    store.put(f"heads/{home}", run.encode())


def end_command(store: Store, home: str) -> None:
    """Let no run command the workers of a workspace: all stop. No lease is known any more."""
    store.remove(f"heads/{home}")
    store.remove(*store.files(f"leases/{home}"))


@dataclass(frozen=True)
class Account:
    """Where it stands who has drawn how much of a shard's lease."""

    store: Store
    home: str
    run: str
    """Its head, and the run that commands it; no run: nobody does."""
    shard: str

    def note(self, what: str) -> None:
        """Note that something of the lease is drawn."""
        self.store.put(f"leases/{self.home}/{self.shard}/{what}", b"drawn")

    def notes(self) -> list[str]:
        """All such notes."""
        found = self.store.files(f"leases/{self.home}/{self.shard}")
        return [path.rpartition("/")[2] for path in found]

    def drawer(self) -> Callable[[int], bool]:
        """For one worker: draws so many instalments in all; whether it may spend them.

        It may not when others have drawn too much (the shard was given out twice), or when the head
        is gone or has closed the lease. Raises `ConfigError`: the store is not seen from here.
        """
        if self.run and not commander(self.store, self.home):
            raise ConfigError(
                "a limit holds over workers only where all of them see the store, and one does not "
                f"see {self.store.place}; name a place that they see: --store, or store in "
                "[cluster] of botchat.toml"
            )
        me = secrets.token_hex(8)
        others = drawn(self.notes())

        def draw(n: int) -> bool:
            if n + others > INSTALMENTS:
                return False
            with suppress(BotChatError):
                # Of two who write first and look then, one at least sees the other.
                self.note(f"{me}-{n}")
                fits = drawn(self.notes()) <= INSTALMENTS
                return fits and (not self.run or commander(self.store, self.home) == self.run)
            return False

        return draw

    def close(self) -> int:
        """Let nobody draw any more; how many instalments may have been spent."""
        self.note(f"{CLOSED}-{INSTALMENTS}")
        notes = (name for name in self.notes() if not name.startswith(CLOSED))
        return min(INSTALMENTS, drawn(notes))  # what goes beyond was refused


def drawn(notes: Iterable[str]) -> int:
    """Instalments by the notes on them, each ``WHO-N``: N in all by then."""
    most: dict[str, int] = {}
    for note in notes:
        who, _, n = note.rpartition("-")
        most[who] = max(most.get(who, 0), int(n))
    return sum(most.values())


def unknown(usd: float, calls: float, tokens: float) -> str:
    """What is said of amounts that were drawn by workers that are gone, and not handed in."""
    amounts = {f"${usd:.4f}": usd, f"{calls:.0f} calls": calls, f"{tokens:.0f} tokens": tokens}
    said = " and ".join(said for said, amount in amounts.items() if amount)
    return f" ({said} of it drawn by workers that were lost, perhaps not billed)" if said else ""


@dataclass(eq=False)
class LeasedBudget(Budget):
    """What a worker may spend: as many instalments as it needs, and can draw."""

    lease: Limits = field(default_factory=Limits)
    draw: Callable[[int], bool] = lambda _: True
    drawn: int = 0
    """Instalments."""

    def __post_init__(self) -> None:
        """Nothing is drawn yet."""
        super().__post_init__()
        self._allow(self.drawn)

    def _allow(self, n: int) -> None:
        self.max_usd, self.max_calls, self.max_tokens = part(self.lease, n)

    def _reached(self, most: Spent) -> str:
        for n in range(self.drawn, INSTALMENTS + 1):
            self._allow(n)
            if not super()._reached(most):
                if n == self.drawn or self.draw(n):
                    self.drawn = n
                    return ""
                break
        self._allow(self.drawn)
        return super()._reached(most)
