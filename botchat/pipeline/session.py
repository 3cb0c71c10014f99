"""One run that calls models: names become speakers and judges, with one ledger and one budget.

Models are asked behind both, with the connections that they share.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
import typing
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from msgspec import UnsetType

from botchat.errors import ConfigError, did_you_mean, listed, log, one_line
from botchat.interfaces import ChatModel, Decoding, Judge, Row
from botchat.judges.function import JudgeFunction
from botchat.judges.panel import build_panel, calls
from botchat.metrics import lengths
from botchat.models.attempts import Sender
from botchat.models.limits import Budget, Retry, ServerLimit
from botchat.models.paying import PayingModel
from botchat.models.retrying import RetryingModel
from botchat.models.stored import StoredModel, rough_tokens
from botchat.parallel import EarlyStop, run_sync, stoppable
from botchat.pipeline.resolved import ModelUse, ResolvedRun
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.generation import Speaker, TokenCounter
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, RULES, JudgeId
from botchat.results import Result
from botchat.workspace import config, panels, usage
from botchat.workspace.config import Config, JudgeSettings, ModelName
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import UTTERANCE_TOKENS, VERDICT_TOKENS, ModelSettings
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings
from botchat.workspace.secrets import public_url

if TYPE_CHECKING:
    from botchat.models.connection import Server
    from botchat.pipeline.executor import WorkerPool

T = TypeVar("T")

DRAIN_S = 30.0
"""Longest that an interrupted run waits for replies in flight."""

LONGEST_CALL_S = 3600.0
"""Longest that any other run waits: each call has its own deadline, ``timeout_s``."""


def stage_result(results: Iterable[typing.NamedTuple]) -> Result:
    """Return a row a contestant or protocol of a stage, and what is unanswered in sum."""
    rows: list[Row] = [each._asdict() for each in results]
    unanswered = sum(row.pop("unanswered") for row in rows)
    return Result({"rows": rows}, unanswered=unanswered)


def token_counter() -> TokenCounter:
    """Return how texts are counted: cl100k tokens, or a cautious guess where it cannot be had."""
    counter = lengths.counter()
    if counter.unit == "tokens":
        return TokenCounter(counter.count, counter.count)
    lengths.warn_of_words()
    return TokenCounter(None, rough_tokens)


class OpenModels(typing.Protocol):
    """Opens the models of a run: to ask them, or to plan what they would be asked."""

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model; raises `ConfigError` if it cannot be used."""


class Session(typing.NamedTuple):
    """A resolved run with its models, open for a stage."""

    run: ResolvedRun
    models: OpenModels
    ledger: Ledger
    meter: Meter

    def speaker(self, name: str, stage: str = "generate") -> Speaker:
        """Return a model that writes utterances; `ConfigError` for a name that cannot be used.

        ``stage``: where its calls are filed in the ledger.
        """
        model = config.model_name(name, self.run.workspace.config)
        if model.name == HUMAN:
            raise ConfigError(
                "human is not generated: the set's own dialogues are the contestant human already"
            )
        decoding = Decoding()
        system = None
        if model.settings is not None:
            longest = first_set(model.settings.max_tokens, UTTERANCE_TOKENS)
            decoding = Decoding(model.settings.temperature, longest)
            system = model.settings.system_prompt
        return Speaker(
            self._open(ModelUse(model, stage, stage, decoding.max_tokens)), decoding, system
        )

    def judge(self, judge: JudgeName, protocol: Protocol, step: str = "") -> Judge:
        """Return the judge of that name, for the cases of a protocol.

        ``step``: of a plan, by default the protocol. Raises `ConfigError` if it cannot be used or
        be asked like this.
        """
        step = step or protocol.name
        name = judge.name
        if not isinstance(name, str):
            return name
        settings = self.run.workspace.config
        function = _function_named(name, settings)
        if function is not None:
            return function
        asked = JudgeId.asked(name)
        panel = panels.find(asked.name, settings.panels)
        if asked.role == "equal_calls":  # single judges with as many calls as a panel makes
            if panel is None:
                raise ConfigError(f"{name}: {asked.name!r} is no panel; name one, as in models")
            if judge.model is not None:
                asked = asked.of_model(config.model_name(judge.model, settings).name)
            equal = equal_calls_panel(panel, judge.model)
            return self._panel(str(asked), equal, None, protocol, step)
        if panel is not None:
            return self._panel(name, panel, judge.model, protocol, step)
        if judge.model is not None:
            known = [*settings.panels, *PRESETS]
            raise ConfigError(
                f"--judge-model is for panels and {name!r} is none{did_you_mean(name, known)}; "
                "botchat models lists them"
            )
        if name != RULES:
            return self._single(name, step)
        if protocol.template or not protocol.about_ai:
            raise ConfigError(
                f"--judge {RULES} answers UniEval, Arena, GTEval and diagnosis, not "
                f"{protocol.name}; name a model"
            )
        self._refuse_batch(RULES)
        return self.run.seed_set.rules

    def _single(self, name: str, step: str) -> Judge:
        from botchat.judges.single import SingleJudge, repeated_judge

        settings = self.run.workspace.config
        entry = settings.judges.get(name)
        judge = entry or JudgeSettings(model=name)
        model = _judge_model(judge.model, settings)
        if entry is None:
            name = model.name
        assert model.settings is not None, model.name
        longest = first_set(judge.max_tokens, model.settings.max_tokens, VERDICT_TOKENS)
        decoding = Decoding(judge.temperature, longest)
        opened = self._open(ModelUse(model, "judge", step, longest))
        if judge.samples == 1:
            return SingleJudge(name, opened, decoding)
        return repeated_judge(name, opened, decoding, judge.samples)

    def _panel(
        self, name: str, panel: PanelSettings, model: str | None, protocol: Protocol, step: str
    ) -> Judge:
        """Return a panel; ``model``: of agents that name none."""

        def open_agent(agent: str) -> ChatModel:
            settings = _judge_model(agent, self.run.workspace.config)
            return self._open(ModelUse(settings, "judge", step, panel.max_tokens))

        language = self.run.seed_set.language
        return build_panel(name, panel, open_agent, model, language, protocol.subject)

    def _open(self, use: ModelUse) -> ChatModel:
        if use.model.is_bot:
            self._refuse_batch(use.model.name)
        return self.models.open(use)

    def _refuse_batch(self, name: str) -> None:
        """Raise `ConfigError` if a run by the Batch API asks who is on no endpoint."""
        if self.run.limits.batch:
            raise ConfigError(
                f"--batch: {name} is on no endpoint and has no Batch API; leave --batch out, or "
                "name only models of endpoints"
            )


class LiveModels:
    """Opens models that are asked, each once for all that use it in a stage."""

    def __init__(self, run: ResolvedRun, ledger: Ledger, meter: Meter) -> None:
        """Spend within the limits of ``run``; ``meter`` counts the replies."""
        limits = run.limits
        self._run = run
        self._ledger = ledger
        self._meter = meter
        meter.budget = Budget(limits.max_usd, limits.max_calls, limits.max_tokens)
        self._pool: WorkerPool | None = None  # workers that make the calls, if there are any
        if limits.executor is not None:
            from botchat.pipeline.executor import WorkerPool

            self._pool = WorkerPool(limits.executor)
        self._servers: dict[tuple[str | None, ...], Server] = {}
        self._limits: dict[str, ServerLimit] = {}
        self._models: dict[tuple[str, str], StoredModel] = {}

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model; raises `ConfigError` if a limit of the run could not be kept."""
        place = (use.model.name, use.stage)
        if place not in self._models:
            paying = self._paying(use)
            self._models[place] = StoredModel(
                RetryingModel(paying, Retry()),
                partial(self._meter.count, paying.sender.name),
                token_counter().estimate,
            )
        self._models[place].paying.cost_bound(0, use.max_tokens)
        return self._models[place]

    def _paying(self, use: ModelUse) -> PayingModel:
        name = use.model.name
        settings = use.model.settings
        if settings is None:
            # Bots are free: limits on money, calls and tokens are about endpoints.
            bot = self._run.seed_set.bot(name)
            return PayingModel(bot, self._ledger, use.stage, None, use.prices)
        server = self._server(settings)
        sender: Sender
        limit = None
        prices = use.prices
        if self._run.limits.batch:
            from botchat.models.batch import BatchModel  # a second of CPU

            # The Batch API is half the price, at OpenAI and most others.
            prices = prices._replace(share=0.5)
            sender = BatchModel(
                name=name,
                settings=settings,
                server=server,
                ledger=self._ledger,
                folder=self._run.workspace.hidden / "batches",
                stage=use.stage,
                prices=prices,
            )
        else:
            from botchat.models.endpoint import EndpointModel

            limit = self._limit(settings)
            sender = EndpointModel(name, settings, self._ledger, server)
        return PayingModel(sender, self._ledger, use.stage, limit, prices, self._meter.budget)

    def _server(self, settings: ModelSettings) -> Server:
        """Return the server of an entry, one for all entries of equal address, key and headers."""
        from botchat.models.connection import server_of  # imports aiohttp

        headers = [f"{name}: {value}" for name, value in sorted(settings.headers.items())]
        place = (settings.base_url, settings.api_key_env, *headers)
        if place not in self._servers:
            server = server_of(settings)
            if self._pool is not None:
                from botchat.pipeline.executor import WorkerServer

                server = WorkerServer(server.name, server.find_access, self._pool)
            self._servers[place] = server
        return self._servers[place]

    def _limit(self, settings: ModelSettings) -> ServerLimit:
        """Return the calls in flight that a server allows, one limit for all entries of its URL."""
        most = config.server_concurrency(settings, self._run.workspace.config)
        return self._limits.setdefault(public_url(settings.base_url), ServerLimit(most))

    def stop(self) -> None:
        """Send nothing more."""
        for model in self._models.values():
            model.stop()

    async def close(self, longest_s: float) -> None:
        """Store every call in flight, waiting at most so long; then close every connection."""
        drains = [model.drain(longest_s) for model in self._models.values()]
        n_late = sum(await asyncio.gather(*drains))
        if n_late:
            log.warning(f"{n_late} replies under way were dropped; they may have been billed")
        for server in self._servers.values():
            await server.aclose()
        if self._pool is not None:
            self._pool.close()

    @property
    def n_in_flight(self) -> int:
        """Calls that are out now."""
        return sum(len(model.paying.in_flight) for model in self._models.values())


def _function_named(name: str, settings: Config) -> JudgeFunction | None:
    """Return the judge PACKAGE:FUNCTION, of the current folder too, unless the name is another's.

    Raises `ConfigError` if there is none.
    """
    place = re.fullmatch(r"(?!(?:human|bot|control|openai):)([\w.]+):(\w+)", name)
    if place is None or name in (*settings.models, *settings.judges, *settings.panels):
        return None
    if "" not in sys.path:
        sys.path.append("")
    try:
        function = getattr(import_module(place[1]), place[2])
    except (Exception, SystemExit) as error:  # somebody's own code runs here
        fault = f"{type(error).__name__}: {one_line(error)}"
        raise ConfigError(
            f"--judge {name}: {fault}; name a function of a module as PACKAGE:FUNCTION"
        ) from None
    return JudgeFunction.of(function)


def _judge_model(name: str, settings: Config) -> ModelName:
    """Return a model that judges; raises `ConfigError` for human and bots."""
    model = config.model_name(name, settings)
    if model.name == HUMAN:
        raise ConfigError("human is not a judge that can be asked; name a model, or rules")
    if model.is_bot:
        others = [RULES, *settings.judges, *settings.panels, *PRESETS]
        raise ConfigError(
            f"{name} talks and judges nothing; judges: a model (not bot:…), {listed(others)}"
        )
    return model


def first_set(*limits: int | UnsetType | None) -> int | None:
    """Return the first limit that is set; None is set, to no limit."""
    return next(limit for limit in limits if not isinstance(limit, UnsetType))


def equal_calls_panel(settings: PanelSettings, model: str | None) -> PanelSettings:
    """Return the panel with as many calls as ``settings``, without roles and debate.

    Each model, ``model`` for agents that name none, gives as many samples as the others.
    """
    models = list(dict.fromkeys(member.model or model for member in settings.members))
    return PanelSettings(
        strategy="ensemble",
        agents=tuple(AgentSettings(model=name) for name in models),
        samples=-(-calls(settings) // len(models)),
        temperature=1.0,
        max_tokens=settings.max_tokens,
        aggregation="majority" if settings.decides == "majority" else "auto",
        position_calibration=settings.position_calibration,
    )


def run_session(
    run: ResolvedRun,
    meter: Meter,
    ask: Callable[[Session, EarlyStop], Awaitable[T]],
) -> T:
    """Return the result of ``ask`` on the locked workspace; raise what it noted in the stops.

    Replies in flight are stored before it ends; batches are not waited for.
    """
    workspace = run.workspace

    async def ask_in_session() -> T:
        if not run.limits.batch and any((workspace.hidden / "batches").glob("*/*.jsonl")):
            log.warning(
                "some calls of this workspace are in batches that were not collected, and a run "
                "without --batch pays for them again"
            )
        stops = EarlyStop()
        started = time.time()
        with closing(workspace.ledger()) as ledger:
            models = LiveModels(run, ledger, meter)
            session = Session(run, models, ledger, meter)
            longest_s = LONGEST_CALL_S
            try:
                result = await stoppable(ask(session, stops), models.stop)
                stops.raise_first()
            except asyncio.CancelledError:
                longest_s = DRAIN_S
                n = models.n_in_flight
                if n:
                    log.warning(
                        f"waiting up to {DRAIN_S:.0f} s for {n} replies under way; "
                        "interrupt again to drop them"
                    )
                raise
            finally:
                await models.close(longest_s)
            usage.keep_pace(ledger, started)
            return result

    return run_sync(ask_in_session, workspace.locked)
