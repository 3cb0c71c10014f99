"""The run that has its calls made by workers (`botchat.cluster.shards`), on this machine or many.

It finds what is not in the ledger, gives it out in shards, and merges what comes back. Then it goes
through everything as ever: it finds each call in the ledger, sends nothing, and writes the same
bytes. What workers could not do, it does itself.

Shards get parts of the run's limits (`botchat.cluster.leases`), and of each endpoint's capacity
and rates.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from botchat.cluster import leases
from botchat.cluster.leases import Account
from botchat.cluster.shards import UNCOUNTED, Done, Shard, work
from botchat.errors import BotChatError, ConfigError, LimitReached
from botchat.languages import ENGLISH, Language
from botchat.models.limits import Reservation, Spent
from botchat.models.recorded import DRAIN_S
from botchat.parallel import Engine
from botchat.pipeline.run.plan import PlannedModel, PlanningSession
from botchat.pipeline.run.session import PartOfRun, Session
from botchat.records import Seed
from botchat.requests.arguments import Limits, Spending
from botchat.workspace import segments
from botchat.workspace.config import ClusterSettings, Config
from botchat.workspace.entries import ModelSettings
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.secrets import public_url
from botchat.workspace.segments import Merged
from botchat.workspace.store import Store

log = logging.getLogger("botchat")

R = TypeVar("R")

SHARDS_A_WORKER = 4
"""So that one which takes longer than others does not hold up the end."""

LEAST_CALLS, MOST_CALLS = 25, 2_000
"""Of a shard, about."""

STALLED = 3
"""Times in a row that workers may be lost without a single reply."""

ENOUGH = 1_400
"""Calls at a time that one process keeps under way: it makes about 2,800 a second, of half a second
each (`benchmarks/client_overhead.py`)."""

QUIET_S = 120.0
"""After which without anything from any shard it is said what a run waits for."""

Lent: TypeAlias = tuple[Shard, Reservation]
"""A shard that was given out, and what of the run's budget is held for it."""

Heard: TypeAlias = Done | BrokenProcessPool | None
"""What comes from an engine; ``None``: that was all."""


class Missing(NamedTuple):
    """An item with calls that are not in the ledger."""

    part: int
    item: Any
    calls: int
    """That are not, about."""
    known: Sequence[str]
    """Keys of those that are."""


class Elsewhere:
    """Makes a session's calls on the workers of an engine."""

    def __init__(
        self,
        workspace: Workspace,
        seeds: Sequence[Seed],
        ledger: Ledger,
        session: Session,
        engine: Engine,
        settings: ClusterSettings,
    ) -> None:
        """Command the workers of ``workspace``, and read what they have handed in."""
        self._workspace, self._seeds, self._ledger = workspace, seeds, ledger
        self._session, self._engine, self._settings = session, engine, settings
        self._told = _travelling(workspace.config)
        self._own = None if settings.store else workspace.hidden.absolute() / "spool"
        self._store = Store(settings.store or str(self._own))
        where = f"{socket.gethostname()}:{workspace.root.absolute()}"
        self._home = hashlib.sha256(where.encode()).hexdigest()[:16]
        self._run = secrets.token_hex(8)
        leases.end_command(self._store, self._home)  # of a run that was killed
        leases.command(self._store, self._home, self._run)
        self._turn = asyncio.Lock()
        self._lost, self._compared = [0.0, 0.0, 0.0], False
        if self._own:  # what a run that was killed has left
            self._read(segments.names(self._store))

    async def fill(self, parts: Sequence[PartOfRun], language: Language = ENGLISH) -> None:
        """Have the calls that ``parts`` take, and that the ledger lacks, made by workers.

        It ends when nothing is missing, or only what a limit or an endpoint keeps it from.
        """
        stalled = 0
        async with self._turn:  # another N's batch of an adaptive run
            while missing := await self._missing(parts, language):
                before = self._session.meter.calls
                shards = self._shards(parts, missing, language)
                lost, again = await self._round(shards)
                self._session.learn()
                came = self._session.meter.calls > before
                if lost is None and not (again and came):
                    return
                stalled = 0 if came else stalled + 1
                if stalled >= STALLED:
                    why = " ".join(str(lost).split())[:200]
                    raise BotChatError(
                        f"workers were lost {STALLED} times without a reply ({why}); everything "
                        "received is stored; run it without --engine to see what is wrong"
                    ) from lost
                if lost is not None:
                    log.warning(
                        "workers were lost; their shards are given out again, from what they have "
                        "handed in (%s)",
                        type(lost).__name__,
                    )

    def stop(self) -> None:
        """Let every worker store what is under way and end."""
        self._run = f"{self._run} stopped"
        with suppress(BotChatError):
            leases.command(self._store, self._home, self._run)

    def close(self) -> None:
        """Command nobody any more: the run is over, whatever ended it."""
        with suppress(BotChatError):
            leases.end_command(self._store, self._home)
            if self._own is not None and not segments.names(self._store):
                shutil.rmtree(self._own, ignore_errors=True)

    async def _missing(self, parts: Sequence[PartOfRun], language: Language) -> list[Missing]:
        """What is not in the ledger, found as by a plan."""
        session = PlanningSession(self._workspace, self._seeds, self._ledger, 1, len, language)
        found = []
        for number, part in enumerate(parts):
            ask, _ = part.begun(session, UNCOUNTED)
            for item in part.items:
                before = {name: len(m.asked) for name, m in session.planned.items()}
                for model in session.planned.values():
                    model.answered.clear()
                await ask(item)
                models = session.planned.items()
                if calls := sum(len(m.asked) - before.get(name, 0) for name, m in models):
                    known = [key for _, model in models for key in model.answered]
                    found.append(Missing(number, item, calls, known))
        asked = {n: model for (_, n), model in session.planned.items() if model.asked}
        self._told = _travelling(self._workspace.config, [*asked])
        self._compare(asked)
        return found

    def _compare(self, asked: Mapping[str, PlannedModel]) -> None:
        """Say, before the first shard, that one process can ask all that endpoints let through."""
        models = {model.label or name: model for name, model in self._told.models.items()}
        room = sum(models.get(one, ModelSettings(model=one)).max_concurrency for one in asked)
        urls = [str(model.identity.get("base_url", "")) for model in asked.values()]
        if (
            urls
            and not self._compared
            and room <= ENOUGH
            and all(u.startswith("http") for u in urls)
        ):
            log.warning(
                "one process is enough for these endpoints, which take %d calls at a time; "
                "workers pay where the model, or a rate, is on their nodes (docs/cluster.md)",
                room,
            )
        self._compared = True

    def _shards(
        self, parts: Sequence[PartOfRun], missing: Sequence[Missing], language: Language
    ) -> Iterator[Shard]:
        """Shards of about as many calls each: contestants, protocols and seeds in their order."""
        budget, places = self._session.budget, self._engine.workers
        total = sum(one.calls for one in missing)
        # A limit is divided anew when all have come back.
        several = min(places * SHARDS_A_WORKER, total // LEAST_CALLS)
        alone = budget.limited or budget.max_calls is not None or self._engine.exactly
        wanted = places if alone else max(places, several, total // MOST_CALLS)
        _, calls, _ = budget.left
        wanted = min(wanted, len(missing), wanted if calls is None else calls)
        if (lease := leases.lease_of(budget, wanted)) is None:
            return
        before = 0
        chunks: list[list[Missing]] = [[] for _ in range(wanted)]
        for one in missing:
            chunks[before * wanted // total].append(one)
            before += one.calls
        for chunk in filter(None, chunks):
            yield Shard(
                secrets.token_hex(8),
                self._told,
                self._seeds,
                language,
                {name: os.environ[name] for name in _TOLD if name in os.environ},
                [
                    replace(parts[number], items=[one.item for one in group])
                    for number, group in groupby(chunk, lambda one: one.part)
                ],
                segments.of_calls(self._ledger, [key for one in chunk for key in one.known]),
                lease,
                places,
                self._store.place,
                self._home,
                self._run,
            )

    async def _round(self, shards: Iterator[Shard]) -> tuple[Exception | None, bool]:
        """Have shards done: what lost a worker, and whether any used up its lease."""
        limited, lent = False, {shard.id: (shard, self._lend(shard)) for shard in shards}
        results = self._engine.each([partial(work, shard) for shard, _ in lent.values()])
        lost: Exception | None = None
        try:
            while True:
                coming = asyncio.ensure_future(asyncio.to_thread(next, results, None))
                try:
                    done = await self._heard(coming, lent)
                except asyncio.CancelledError:
                    self.stop()
                    await self._drained(results, coming, lent)
                    raise
                if isinstance(done, BrokenProcessPool):
                    lost = done
                elif done is None:
                    break
                else:
                    self._take(lent.pop(done.id), done)
                    limited |= done.limited
        except BotChatError:
            raise
        except Exception as error:  # each backend has its own for this
            lost = error
        for one in lent.values():
            self._take(one, None)
        return lost, limited or lost is not None

    async def _heard(self, coming: asyncio.Future[Heard], lent: dict[str, Lent]) -> Heard:
        """What comes next; where nothing does for long, it is said what is waited for."""
        before: list[list[str]] = []
        while not (await asyncio.wait([coming], timeout=QUIET_S))[0]:
            each = [asyncio.to_thread(segments.names, self._store, shard) for shard in lent]
            handed_in = await asyncio.gather(*each)
            if handed_in == before:
                log.warning(
                    "%d shards are out, and nothing came from them for %.0f s (%s): look whether "
                    "their workers live; after Ctrl-C the same command goes on from here",
                    len(lent),
                    QUIET_S,
                    ", ".join(id[:8] for id in lent),
                )
            before = handed_in
        return coming.result()

    async def _drained(
        self, results: Iterator[Heard], coming: asyncio.Future[Heard], lent: dict[str, Lent]
    ) -> None:
        """Take what workers that were stopped give back."""
        with suppress(Exception):
            until = time.monotonic() + DRAIN_S
            while (done := await asyncio.wait_for(coming, until - time.monotonic())) is not None:
                if isinstance(done, Done):
                    self._take(lent.pop(done.id), done)
                coming = asyncio.ensure_future(asyncio.to_thread(next, results, None))

    def _lend(self, shard: Shard) -> Reservation:
        """Its lease is not to be spent by anyone else."""
        budget, lease = self._session.budget, shard.lease
        budget.calls += lease.max_calls or 0
        return budget.lend(Spent(lease.max_usd or 0.0, lease.max_tokens or 0))

    def _take(self, lent: Lent, done: Done | None) -> None:
        """Merge what a shard's worker gives back (``None``: it was lost), and count what is spent.

        Of a worker that was lost what it had drawn counts, also where the backend has replaced it.
        """
        (shard, held), budget, meter = lent, self._session.budget, self._session.meter
        account = Account(self._store, self._home, self._run, shard.id)
        lost = account.close() if shard.lease != Limits() else 0
        new, spent = self._read(segments.names(self._store, shard.id)), (0.0, 0, 0)
        if done is not None:
            new = new.and_of(segments.take(self._ledger, done.segment, learnt=True))
            spent, lost = done.spent, lost - done.drawn
        budget.settle(held)
        budget.calls -= shard.lease.max_calls or 0
        found = (new.cost_usd, new.calls, new.tokens)
        drawn = [n or 0 for n in leases.part(shard.lease, lost)]
        counted = [max(a + b, c) for a, b, c in zip(spent, drawn, found, strict=True)]
        budget.usd += counted[0]
        budget.calls += int(counted[1])
        budget.tokens += int(counted[2])
        if lost:
            unknown = (max(0, a - b) for a, b in zip(counted, found, strict=True))
            self._lost = [a + b for a, b in zip(self._lost, unknown, strict=True)]
            budget.note = leases.unknown(*self._lost)
        meter.calls += new.calls
        meter.tokens += new.tokens
        meter.cost_usd += new.cost_usd
        meter.unpriced += new.unpriced
        meter.watch()

    def _read(self, names: Sequence[str]) -> Merged:
        """Merge what a worker has handed in; what was new."""
        new = segments.taken(self._ledger, self._store, names)
        if self._own:
            self._store.remove(*names)
        return new


_TOLD = ("OPENAI_BASE_URL",)
"""Environment variables that decide what a name stands for."""


def _travelling(config: Config, asked: Collection[str] = ()) -> Config:
    """The settings that workers get, without commands.

    Raises `ConfigError`: a URL holds a login, or a model that is ``asked`` needs a command.
    """
    models = {}
    for name, model in config.models.items():
        if public_url(model.base_url) != model.base_url.rstrip("/"):
            raise ConfigError(
                f"models.{name}.base_url holds a login or a query, which would travel to every "
                'worker: write headers = { Authorization = "$NAME" } in its place'
            )
        if model.api_key_command is not None and (model.label or name) in asked:
            raise ConfigError(
                f"models.{name}.api_key_command: commands do not travel to workers; put the key "
                "into a variable there and name it in api_key_env, or leave out --engine"
            )
        models[name] = msgspec.structs.replace(model, api_key_command=None)
    return msgspec.structs.replace(config, models=models)


HOME = "jobs"
"""Where a store keeps what jobs have drawn of their leases."""


class Divided(LimitReached):
    """Nothing more can be done here before the shards are done."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        super().__init__(f"{len(shards)} shards are to be done elsewhere")
        self.shards = shards


@dataclass(frozen=True)
class Jobs(Engine):
    """Makes no call: raises `Divided` with the shards."""

    def each(self, tasks: Sequence[Callable[[], R]]) -> Iterator[R | BrokenProcessPool]:
        """Give the shards to whoever asked for them; nobody commands them."""
        shards = [task.args[0] for task in tasks]  # type: ignore[attr-defined]
        raise Divided([replace(shard, home=HOME, run="") for shard in shards])


def shards(
    request: Any, workspace: Workspace, n: int, *, limits: Limits | None = None
) -> Sequence[Shard]:
    """What a request (`Generating`, `Judging`, `Running` …) would ask now, in at most ``n`` shards.

    They can be pickled. Do each, anywhere and in any order, with `Shard.work`; then ``ledger pull``
    what they have left in the store. What is asked only when that is known (a next batch, judgments
    after dialogues) comes when this is called again. It gives none when the request is done: it is
    run here then, and nothing is sent but what no shard can do. ``limits`` are divided by the
    shards.
    """
    if n < 1:
        raise ConfigError(f"{n} shards: give at least 1")
    engine = Jobs(None, n, exactly=True)
    try:
        request.run(workspace, Spending(limits or Limits(), engine=engine))
    except Divided as divided:
        return divided.shards
    return []
