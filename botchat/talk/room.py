"""The room to talk in, of `botchat view --talk`: one utterance at a time, by any model offered.

Every call goes the way of `botchat generate`: the same prompt and settings, through the ledger and
under limits, which count for all calls of one start of the server. What is asked for again is a new
sample. The page holds the conversation; here nothing of it is kept but the ledger, and the seeds
that are saved.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, TypeVar

import msgspec

from botchat.errors import BotChatError, ConfigError, DataError, FatalModelError, MissingError
from botchat.models.bots import BASELINES
from botchat.models.self_chat import PROMPT, Length, say
from botchat.pipeline.generate import MOST_TURNS
from botchat.pipeline.models import described
from botchat.pipeline.run import plan
from botchat.pipeline.run.session import Session
from botchat.records import N_SEED, Seed, human_dialogue
from botchat.report import joined, policy, template, text
from botchat.report.live import STYLES
from botchat.requests.arguments import Limits, Spending
from botchat.requests.meter import Meter, Step
from botchat.workspace import config, files
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.progress import money

_SCRIPT = text("talk.js", __package__)

_LISTED = 1_000
"""Seeds whose ids are offered while one types; others can be typed."""

TURNS = 16
"""Utterances after which two models stop by themselves."""


T = TypeVar("T")
Request = TypeVar("Request", bound=msgspec.Struct)

MOST_USD = 1.0
"""What all calls of one start may cost where no limit is named."""

OWN = "talk-"
"""What the id of a seed that was saved here begins with."""

LONGEST = 20_000
"""Characters of an utterance that is sent."""

_Text = Annotated[str, msgspec.Meta(max_length=LONGEST, pattern=r"\S")]
_Name = Annotated[str, msgspec.Meta(max_length=500)]


class _Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for: what ``model`` says next."""

    model: _Name
    utterances: Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1, max_length=MOST_TURNS)]
    again: bool = False
    """A new sample, not what the ledger may have."""


class _Save(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ChatSEED, and the set that it is added to."""

    set: _Name
    utterances: Annotated[tuple[_Text, ...], msgspec.Meta(min_length=N_SEED, max_length=N_SEED)]


class _Find(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A seed of the set; without an id any."""

    id: _Name = ""


class TalkRoom:
    """Answers the room's page; may be asked by several threads.

    One event loop in a thread of its own holds the session, so that connections stay open and local
    weights are loaded once. The workspace is locked while a call is out, not in between.
    """

    def __init__(
        self,
        workspace: Workspace,
        seed_set: str,
        limits: Limits | None = None,
        models: Sequence[str] = (),
    ) -> None:
        """``limits``: of all calls together, default `MOST_USD`; ``models``: offered, too.

        Raises `ConfigError`: a model that cannot be named; `MissingError`: no such seed set.
        """
        self.seed_set = seed_set
        self.limits = Limits(MOST_USD) if limits in (None, Limits()) else limits
        there = workspace.seeds(seed_set)
        self.seeds = [seed for seed in there if not human_dialogue(seed).spoken_by]
        self._workspace = workspace
        self._models = _offers(workspace, models)
        self._n_writing, self._lock = 0, ExitStack()
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Session | None = None
        self._language = workspace.language(seed_set)
        self._ledger: Ledger | None = None

    @property
    def answers(self) -> dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
        """Path of a POST -> what answers it."""
        return {"/talk/say": self._say, "/talk/seed": self._seed, "/talk/save": self._save}

    @property
    def policy(self) -> str:
        """What the browser lets the page do: its own script, which asks this server."""
        return policy(_SCRIPT, "connect-src 'self'")

    def page(self, board: str, live: str) -> str:
        """The page as HTML text; address of the set's page, if there is one, and of ``/live``."""
        limits = self.limits
        most = {
            "max_usd": f" of {money(limits.max_usd)}" if limits.max_usd else "",
            "max_calls": f" of {limits.max_calls:,}" if limits.max_calls else "",
            "max_tokens": f" of {limits.max_tokens:,}" if limits.max_tokens else "",
        }
        return template("talk.html", __package__).render(
            seed_set=self.seed_set,
            offers=[{"name": name, "what": what} for name, (_, what) in self._models.items()],
            seed_ids=[seed.id for seed in self.seeds[:_LISTED]],
            n_seed=N_SEED,
            turns=TURNS,
            most=most,
            page=board,
            live=live,
            style=joined(STYLES) + text("talk.css", __package__),
            script=_SCRIPT,
        )

    def close(self) -> None:
        """Store what is under way, and end."""

        async def end() -> None:
            if self._session is not None:
                await self._session.close()
            if self._ledger is not None:
                self._ledger.close()

        if self._loop is not None:
            self._here(end())
            self._loop.call_soon_threadsafe(self._loop.stop)

    # -------------------------------------------------------------------------------- requests

    def _say(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """The next utterance. Raises `LimitReached`, and `BotChatError` where there is none."""
        asked = _read(sent, _Say)
        if asked.model not in self._models:
            raise ConfigError(
                f"{asked.model[:80]!r} is not offered in this room; name it in botchat.toml or "
                "with: botchat view --talk --model"
            )
        return self._here(self._asked(asked))

    def _seed(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """The first two utterances of a seed."""
        wanted = _read(sent, _Find).id
        found = next((seed for seed in self.seeds if seed.id == wanted), None)
        if found is None and wanted:
            raise MissingError(f"no dialogue {wanted[:80]!r} in the set {self.seed_set}")
        found = found or secrets.choice(self.seeds)
        return {"id": found.id, "utterances": found.utterances[:N_SEED]}

    def _save(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add a ChatSEED to a set of one's own; nothing that is there is changed."""
        return self._here(self._saved(_read(sent, _Save)))

    # ----------------------------------------------------------------------- in the loop's thread

    async def _asked(self, asked: _Say) -> dict[str, Any]:
        with self._writing():
            session = self._in_session()
            speaker = session.speaker(self._models[asked.model][0])
            if asked.again:
                sample = 1 + secrets.randbelow(2**31 - 1)
                speaker = replace(speaker, decoding=replace(speaker.decoding, sample=sample))
            step = Step(self.seed_set, "", asked.model)
            try:
                with step.item():
                    reply, dropped = await say(
                        speaker, self._language.text(PROMPT), asked.utterances, 0, self._length
                    )
            except FatalModelError:
                session.drop(speaker.model)  # so that it can be tried when it answers again
                raise
        if not reply.usable:
            why = f": {reply.detail}" if reply.detail else ""
            raise BotChatError(f"{asked.model} said nothing, {reply.outcome}{why}")
        budget = session.budget
        return {
            "text": reply.text,
            "cut": reply.outcome == "truncated",
            "dropped": dropped,
            "replayed": not step.calls,
            "seconds": reply.latency_s,
            "cost_usd": reply.cost_usd,
            "spent": {"usd": budget.usd, "calls": budget.calls, "tokens": budget.tokens},
        }

    async def _saved(self, asked: _Save) -> dict[str, Any]:
        with self._writing():
            path = self._workspace.seeds_path(asked.set)
            known = self._workspace.seed_sets()
            there = files.read(known[asked.set], Seed) if asked.set in known else []
            if any(not seed.id.startswith(OWN) for seed in there):
                raise ConfigError(
                    f"the set {asked.set} was not made in this room, so nothing is added to it; "
                    "give another name"
                )
            found = next((one.id for one in there if one.utterances == asked.utterances), None)
            if found is None:
                numbers = [n for one in there if (n := one.id.removeprefix(OWN)).isdecimal()]
                seed = Seed(f"{OWN}{max(map(int, numbers), default=0) + 1}", asked.utterances)
                if path.exists():
                    with files.Appender[Seed](path) as file:
                        file.append(seed)
                else:
                    self._workspace.write_seeds(asked.set, [seed], self._language.code)
            return {
                "set": asked.set,
                "id": found or seed.id,
                "n_seeds": len(there) + (found is None),
                "new": found is None,
            }

    def _here(self, job: Coroutine[Any, Any, T]) -> T:
        """Do it in the loop, which runs in a thread of its own until it is stopped."""
        with self._starting:
            if (loop := self._loop) is None:
                loop = self._loop = asyncio.new_event_loop()

                def run(loop: asyncio.AbstractEventLoop = loop) -> None:
                    loop.run_forever()
                    loop.close()

                threading.Thread(target=run, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(job, loop).result()

    @cached_property
    def _length(self) -> Length:
        return plan.text_length()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only process that writes, while any call of the room is out."""
        if not self._n_writing:
            self._lock.enter_context(self._workspace.locked())
        self._n_writing += 1
        try:
            yield
        finally:
            self._n_writing -= 1
            if not self._n_writing:
                self._lock.close()

    def _in_session(self) -> Session:
        if self._session is None:
            self._ledger = self._workspace.ledger()
            spending = Spending(self.limits)
            self._session = Session(
                self._workspace, self.seeds, self._ledger, spending, Meter(), self._language
            )
        return self._session


def _offers(workspace: Workspace, models: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Name as it is filed -> as it was given, and what it is; nobody else is asked from the page.

    Named on the command line, entries of botchat.toml, and the bots.
    """
    bots = {f"bot:{name}": what for name, what in BASELINES.items()}
    found: dict[str, tuple[str, str]] = {}
    for given in (*models, *workspace.config.models, *bots):
        named = config.model_name(given, workspace.config)
        if named.kind == "human":
            raise ConfigError("--model human: people need no model; take a side yourself")
        what = bots.get(given, "") if named.kind == "bot" else described(named)
        found.setdefault(named.name, (given, what))
    return found


def _read(sent: Mapping[str, Any], kind: type[Request]) -> Request:
    try:
        return msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"the room asks for something else: {error}") from None
