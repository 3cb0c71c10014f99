"""One run that calls models: names become models and judges with one ledger and one budget."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET, UnsetType

from botchat.errors import ConfigError, FatalModelError, LimitReached, did_you_mean, listed
from botchat.interfaces import ChatModel, Decoding, Judge, Subject
from botchat.languages import ENGLISH, Language
from botchat.metrics import lengths
from botchat.models.attempts import Offline, Sender
from botchat.models.bots import baseline
from botchat.models.learnt import Learnt
from botchat.models.limits import FREE, Budget, Prices, Retry, ServerLimit
from botchat.models.self_chat import Speaker
from botchat.models.stored import StoredModel, open_model, rough_tokens
from botchat.parallel import seldom_collected, stoppable, together
from botchat.pipeline.spending import JudgeName, Meter, Spending
from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.records import Seed
from botchat.workspace import config, panels
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import UTTERANCE_TOKENS, VERDICT_TOKENS, ModelSettings
from botchat.workspace.panels import PRESETS, PanelSettings

if TYPE_CHECKING:
    from botchat.models.connection import Server
    from botchat.models.endpoint import EndpointModel
    from botchat.models.executor import WorkerPool

log = logging.getLogger("botchat")

T = TypeVar("T")

DRAIN_S = 30.0
"""Longest that an interrupted run waits for replies in flight."""

LONGEST_CALL_S = 3600.0
"""Longest that any other run does: each call has its own deadline, ``timeout_s``."""

(RULES,) = config.OFFLINE
"""Names of the offline judges."""

_NO_BATCH = (
    "--batch: {} is on no endpoint and has no Batch API; leave --batch out, or name only models "
    "of endpoints"
)


def catalogue_of(workspace: Workspace, seed_set: str | None = None) -> Catalogue:
    """Return the protocols that can be named in a workspace, asked in the set's language."""
    language = ENGLISH if seed_set is None else workspace.language(seed_set)
    return catalogue(workspace.config.protocols, language)


@dataclass
class EarlyStop:
    """Reasons why items could not be done: models that cannot answer at all, a reached limit."""

    fatal: dict[str, FatalModelError] = field(default_factory=dict)
    limit: LimitReached | None = None

    def raise_first(self) -> None:
        """Raise what ended the run early, if anything did."""
        if self.limit is not None:
            raise self.limit
        if self.fatal:
            raise FatalModelError("; ".join(str(error) for error in self.fatal.values()))


def run_sync(job: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also where an event loop is running already, as in a notebook."""
    with seldom_collected():
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(job)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, job).result()


async def run_concurrently(
    items: Collection[T],
    do: Callable[[T], Awaitable[None]],
    parallel: int,
    stops: EarlyStop,
    model: str,
) -> None:
    """Do every item, ``parallel`` at a time.

    After a `FatalModelError` or `LimitReached`, noted in ``stops``, nothing new is begun, and what
    is under way is finished. Any other exception cancels the pool.
    """
    iterator = iter(items)

    async def worker() -> None:
        for item in iterator:
            if model in stops.fatal or stops.limit is not None:
                return
            try:
                await do(item)
            except FatalModelError as error:
                stops.fatal.setdefault(model, error)
            except LimitReached as error:
                stops.limit = error

    await together(worker() for _ in range(max(1, min(parallel, len(items)))))


class Session:
    """Resolves names; shares connections between models of one server."""

    def __init__(
        self,
        workspace: Workspace,
        seeds: Sequence[Seed],
        ledger: Ledger,
        spending: Spending,
        meter: Meter,
        language: Language = ENGLISH,
    ) -> None:
        """Use `run_session`."""
        self._language = language
        self.meter = meter
        self._batch = spending.batch
        self._config = workspace.config
        self._humans = tuple(seed.utterances for seed in seeds)
        self.ledger = ledger
        self.learnt = Learnt(ledger)
        self.budget = meter.budget = Budget(
            spending.max_usd, spending.max_calls, spending.max_tokens
        )
        self._pool: WorkerPool | None = None
        if spending.executor is not None:
            from botchat.models.executor import WorkerPool

            self._pool = WorkerPool(spending.executor)
        self._batches = workspace.hidden / "batches"
        self.count = lengths.counter().count if lengths.counter().unit == "tokens" else rough_tokens
        self._servers: dict[tuple[object, ...], tuple[Server, ServerLimit]] = {}
        self._models: dict[tuple[str, str, str], StoredModel] = {}

    def speaker(self, name: str, stage: str = "generate") -> Speaker:
        """Return a model that writes utterances; `ConfigError` for a name that cannot be used.

        ``stage``: where its calls are filed in the ledger.
        """
        resolved = config.model_name(name, self._config)
        if resolved.kind == "human":
            raise ConfigError(
                "human is not generated: the set's own dialogues are the contestant human already"
            )
        if (settings := resolved.settings) is None:
            return Speaker(self._model(resolved, stage, None), Decoding(), None)
        longest = _first_set(settings.max_tokens, UTTERANCE_TOKENS)
        model = self._model(resolved, stage, longest)
        return Speaker(model, Decoding(settings.temperature, longest), settings.system_prompt)

    def judge(self, judge: JudgeName, subject: Subject) -> Judge:
        """Return the judge of that name, for questions about ``subject``.

        Raises `ConfigError` if it cannot be used or be asked like this.
        """
        name, model = judge.name, judge.model
        if callable(name):
            from botchat.judges.single import FunctionJudge

            return FunctionJudge(name)
        panel = panels.find(name.removeprefix(panels.CONTROL), self._config.panels)
        if name.startswith(panels.CONTROL) or panel is not None:
            return self._panel(name, panel, model, subject)
        if model is not None:
            hint = did_you_mean(name, [*self._config.panels, *PRESETS])
            raise ConfigError(
                f"--judge-model is for panels and {name!r} is none{hint}; botchat models lists them"
            )
        if name not in config.OFFLINE:
            return self._single(name)
        if self._batch:
            raise ConfigError(_NO_BATCH.format(name))
        from botchat.judges.rules import RulesJudge

        if not self._language.english:
            raise ConfigError(
                f"the judge rules reads English only, and this set is {self._language.name} "
                f"({self._language.code}); name a model as the judge"
            )
        return RulesJudge(self._humans)

    def _panel(
        self, name: str, panel: PanelSettings | None, model: str | None, subject: Subject
    ) -> Judge:
        """Return a panel, or for ``control:PANEL`` single judges with as many calls."""
        from botchat.judges.panel import CALL_MATCHED, build_panel, equal_calls_panel

        base = name.removeprefix(panels.CONTROL)
        if panel is None:
            raise ConfigError(f"{name}: {base!r} is no panel; name one, as in models")
        if base != name:
            panel, by_name = equal_calls_panel(panel, model), config.model_name
            suffix = "" if model is None else f"@{by_name(model, self._config).name}"
            name, model, subject = f"{base}{suffix}{CALL_MATCHED}", None, "answers"
        longest = panel.max_tokens
        return build_panel(
            name, panel, lambda m: self._judge_model(m, longest), model, self._language, subject
        )

    def _single(self, name: str) -> Judge:
        from botchat.judges.single import SingleJudge, repeated_judge

        entry = self._config.judges.get(name)
        settings = entry or config.JudgeSettings(model=name)
        own = config.model_name(settings.model, self._config).settings
        longest = _first_set(settings.max_tokens, own.max_tokens if own else UNSET, VERDICT_TOKENS)
        model = self._judge_model(settings.model, longest)
        filed = name if entry else model.name
        decoding = Decoding(settings.temperature, longest)
        if settings.samples == 1:
            return SingleJudge(filed, model, decoding)
        return repeated_judge(filed, model, decoding, settings.samples)

    def _judge_model(self, name: str, max_tokens: int | None) -> ChatModel:
        resolved = config.model_name(name, self._config)
        if resolved.kind == "human":
            raise ConfigError("human is not a judge that can be asked; name a model, or rules")
        if resolved.kind == "bot":
            others = [*config.OFFLINE, *self._config.judges, *self._config.panels, *PRESETS]
            raise ConfigError(
                f"{name} talks and judges nothing; judges: a model (not bot:…), {listed(others)}"
            )
        return self._model(resolved, "judge", max_tokens)

    def stop(self) -> None:
        """Send nothing more."""
        for model in self._models.values():
            model.stop()

    async def close(self, longest_s: float) -> None:
        """Store every call in flight, waiting at most so long; then close every connection."""
        late = await asyncio.gather(*[each.drain(longest_s) for each in self._models.values()])
        if sum(late):
            log.warning(f"{sum(late)} replies under way were dropped; they may have been billed")
        for server, _ in self._servers.values():
            await server.aclose()
        if self._pool is not None:
            self._pool.close()

    @property
    def n_in_flight(self) -> int:
        """Calls that are out now."""
        return sum(len(model.in_flight) for model in tuple(self._models.values()))

    def _model(self, resolved: config.ModelName, stage: str, max_tokens: int | None) -> ChatModel:
        """Return the model, one for all callers; ``max_tokens`` is the limit of a reply.

        Raises `ConfigError` if a limit could not be kept.
        """
        place = (resolved.name, resolved.target, stage)
        if place not in self._models:
            self._models[place] = self._new(resolved, stage)
        self._models[place].paying.cost_bound(0, max_tokens)
        return self._models[place]

    def _new(self, resolved: config.ModelName, stage: str) -> StoredModel:
        model, limiter, prices = self._uncached(resolved)
        # Bots are free: limits on money, calls and tokens are about endpoints.
        budget = self.budget if limiter else Budget()
        if self._batch:
            from botchat.models.batch import BatchModel  # a second of CPU
            from botchat.models.endpoint import EndpointModel

            if not isinstance(model, EndpointModel):
                raise ConfigError(_NO_BATCH.format(model.name))
            prices, limiter = prices.in_batch(), None
            model = BatchModel(
                *(model.name, model.settings, model.server, model.learnt),
                ledger=self.ledger,
                folder=self._batches,
                stage=stage,
                prices=prices,
            )
        return open_model(
            model,
            self.ledger,
            stage,
            server_limit=limiter,
            prices=prices,
            budget=budget,
            retry=Retry(),
            on_reply=partial(self.meter.count, model.name),
            count=self.count,
        )

    def _uncached(self, resolved: config.ModelName) -> tuple[Sender, ServerLimit | None, Prices]:
        if resolved.kind == "bot":
            bot = baseline(resolved.target, self._humans, self._language)
            return Offline(bot), None, FREE
        settings = resolved.settings
        assert settings is not None, "humans have been turned away already"
        model, limiter = self._endpoint(resolved.name, settings)
        prices = Prices(settings.price_input, settings.price_output, settings.price_cached)
        return model, limiter, prices

    def _endpoint(self, name: str, settings: ModelSettings) -> tuple[EndpointModel, ServerLimit]:
        from botchat.models.connection import server_of  # imports aiohttp
        from botchat.models.endpoint import EndpointModel

        headers = sorted(settings.headers.items())
        place = (settings.base_url, settings.api_key_env, *headers)
        if place not in self._servers:
            server = server_of(settings)
            if self._pool is not None:
                from botchat.models.executor import WorkerServer

                server = WorkerServer(server.name, server.find_access, self._pool)
            most = config.server_concurrency(settings, self._config)
            self._servers[place] = (server, ServerLimit(most))
        server, limiter = self._servers[place]
        return EndpointModel(name, settings, server, self.learnt), limiter


def _first_set(*limits: int | UnsetType | None) -> int | None:
    """Return the first limit that is set; None is set, to no limit."""
    return next(limit for limit in limits if not isinstance(limit, UnsetType))


def run_session(
    workspace: Workspace,
    seeds: Sequence[Seed],
    spending: Spending | None,
    meter: Meter | None,
    ask: Callable[[Session, EarlyStop], Awaitable[list[T]]],
    language: Language = ENGLISH,
) -> list[T]:
    """Return the results of ``ask`` on the locked workspace; raise what it noted in the stops.

    Replies in flight are stored before it ends; batches are not waited for.
    """
    spending = spending or Spending()

    async def run() -> list[T]:
        stops, ledger = EarlyStop(), workspace.ledger()
        session = Session(workspace, seeds, ledger, spending, meter or Meter(), language)
        if not spending.batch and any((workspace.hidden / "batches").glob("*/*.jsonl")):
            log.warning(
                "some calls of this workspace are in batches that were not collected, and a run "
                "without --batch pays for them again"
            )
        interrupted = False
        try:
            results = await stoppable(ask(session, stops), session.stop)
            stops.raise_first()
        except asyncio.CancelledError:
            interrupted = True
            if n := session.n_in_flight:
                advice = "interrupt again to drop them"
                log.warning(f"waiting up to {DRAIN_S:.0f} s for {n} replies under way; {advice}")
            raise
        finally:
            try:
                await session.close(DRAIN_S if interrupted else LONGEST_CALL_S)
            finally:
                ledger.close()
        return results

    with workspace.locked():
        return run_sync(run())
