"""What a worker does: its part of a run's calls, on this machine or another (docs/cluster.md).

A shard is a small workspace: settings without keys, seeds, a part of what is to be asked, and the
answers there are to it. A worker asks the rest and gives back the rows of its ledger to the run
that gave it out (`botchat.cluster.head`). It hands in a segment now and then, so that little is
paid twice if it is killed; one whose head is gone, or has begun anew, stops.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from botchat.cluster import leases
from botchat.cluster.leases import Account, LeasedBudget
from botchat.errors import FatalModelError, LimitReached
from botchat.interfaces import ChatModel, Reply
from botchat.languages import Language
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline.run import plan
from botchat.pipeline.run.session import PartOfRun, Session, in_session
from botchat.pipeline.run.work import Stops, work_through
from botchat.records import Seed
from botchat.requests.arguments import Limits, Spending
from botchat.requests.meter import Meter
from botchat.workspace import segments
from botchat.workspace.config import Config
from botchat.workspace.folder import Workspace
from botchat.workspace.store import Store

WATCH_S = 0.5
"""Between two looks of a worker at who commands it."""

UNCOUNTED = Length(None, lambda text: plan.text_length().size(text))
"""Where no dialogue is stored: tokens are counted only to fit a context window."""


@dataclass(frozen=True)
class Shard:
    """What a worker gets."""

    id: str
    config: Config
    seeds: Sequence[Seed]
    """The whole set."""
    language: Language
    environment: dict[str, str]
    parts: Sequence[PartOfRun]
    known: bytes
    """Segment of the answers there are to it, and of what endpoints refuse."""
    lease: Limits
    places: int
    """Shards under way at a time."""
    place: str
    """Of the store."""
    home: str
    run: str
    """Its head, and the run that commands it; no run: nobody does."""

    def work(self, store: str) -> Sequence[str]:
        """Do it here, and leave segments in a store; their names. Begun anew, it goes on there."""
        work(replace(self, place=store))
        return segments.names(Store(store), self.id)


@dataclass(frozen=True)
class Done:
    """What a worker gives back."""

    id: str
    """Of the shard."""
    segment: bytes
    """What it has not handed in."""
    spent: tuple[float, int, int]
    """USD, calls and tokens, counted against its lease."""
    drawn: int
    """Instalments of its lease that these are of."""
    limited: bool
    """It ended because its lease was used up."""


class _HandingIn(Meter):
    """Calls ``hand_in`` after ``most`` replies, or so many seconds, that are stored here only."""

    def __init__(self, most: int, longest_s: float, hand_in: Callable[[], None]) -> None:
        super().__init__()
        self._most, self._longest_s, self._hand_in = most, longest_s, hand_in
        self._waiting, self._since = 0, time.monotonic()

    def count(self, reply: Reply, stored: bool) -> None:
        """As a meter."""
        super().count(reply, stored)
        if stored or not reply.answered:
            return
        self._waiting += 1
        # What is under way is lost with a worker, too.
        enough = max(self._most // 4, self._most - self.in_flight())
        if self._waiting >= enough or time.monotonic() - self._since > self._longest_s:
            self._hand_in()
            self._waiting, self._since = 0, time.monotonic()


_KEPT: dict[str, ChatModel] = {}
"""Local weights of this worker, for its next shards."""


def work(shard: Shard) -> Done:
    """Do a shard, in a worker."""
    os.environ.update(shard.environment)
    store = Store(shard.place)
    # It sees another disk if it knows of no head there: it hands in nothing before the end.
    seen = not shard.run or bool(leases.commander(store, shard.home))
    settings, budget = shard.config.cluster, LeasedBudget(lease=shard.lease)
    if shard.lease != Limits():
        budget.draw = Account(store, shard.home, shard.run, shard.id).drawer()
    with tempfile.TemporaryDirectory(prefix="botchat-") as folder:
        workspace = Workspace(Path(folder))
        workspace.config = shard.config
        with closing(workspace.ledger()) as ledger:
            segments.take(ledger, shard.known, learnt=True)
            # Of one who was given this shard before, and was killed.
            segments.taken(ledger, store, segments.names(store, shard.id) if seen else ())
            mark = segments.mark(ledger)

            def hand_in() -> None:
                nonlocal mark
                until = segments.mark(ledger)
                if until != mark:  # else it is handed in: several calls came at once
                    store.add(f"{segments.FOLDER}/{shard.id}", segments.since(ledger, mark))
                    mark = until

            async def ask(session: Session, stops: Stops) -> list[None]:
                session.budget = budget
                asking = asyncio.ensure_future(
                    together(
                        _through(part, session, stops, str(number))
                        for number, part in enumerate(shard.parts)
                    )
                )

                def end() -> None:
                    session.stop()
                    asking.cancel()

                watching = asyncio.create_task(
                    _watch(shard, store if seen and shard.run else None, end)
                )
                try:
                    await asking
                finally:
                    watching.cancel()
                    _KEPT.update(session.local)
                return []

            meter = _HandingIn(settings.hand_in_calls, settings.hand_in_s, hand_in)
            spending = Spending(shard.lease, leased=shard.places)
            limited = False
            try:
                in_session(
                    workspace, shard.seeds, spending, meter if seen else None, ask, shard.language
                )
            except LimitReached:
                limited = True
            except (FatalModelError, asyncio.CancelledError, KeyboardInterrupt):
                pass  # the head finds out for itself, or has gone
            if seen:
                hand_in()  # what it gives back may be lost with it
            spent = budget.usd, budget.calls, budget.tokens
            return Done(shard.id, segments.since(ledger, mark), spent, budget.drawn, limited)


async def _through(part: PartOfRun, session: Session, stops: Stops, name: str) -> None:
    ask, parallel = part.begun(session, UNCOUNTED)

    async def do(item: Any) -> None:
        await ask(item)

    await work_through(part.items, do, parallel, stops, name)


async def _watch(shard: Shard, store: Store | None, end: Callable[[], None]) -> None:
    """Call ``end()`` when the head is gone, or another run has begun."""
    parent = os.getppid()
    while os.getppid() == parent:
        if store is not None:
            commands = await asyncio.to_thread(leases.commander, store, shard.home)
            if commands != shard.run:
                break
        await asyncio.sleep(WATCH_S)
    end()
