"""Models that are asked: each behind the ledger and the budget, with the connections they share."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from botchat.errors import log
from botchat.interfaces import ChatModel
from botchat.metrics import lengths
from botchat.models.attempts import Sender
from botchat.models.limits import Budget, Retry, ServerLimit
from botchat.models.paying import PayingModel
from botchat.models.retrying import RetryingModel
from botchat.models.stored import StoredModel, rough_tokens
from botchat.pipeline.resolved import ModelUse, ResolvedRun
from botchat.pipeline.spending import Meter
from botchat.protocols.generation import TokenCounter
from botchat.workspace import config
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.secrets import public_url

if TYPE_CHECKING:
    from botchat.models.connection import Server
    from botchat.pipeline.executor import WorkerPool


def token_counter() -> TokenCounter:
    """Return how texts are counted: cl100k tokens, or a cautious guess where it cannot be had."""
    counter = lengths.counter()
    if counter.unit == "tokens":
        return TokenCounter(counter.count, counter.count)
    return TokenCounter(None, rough_tokens)


class LiveModels:
    """Opens models that are asked, each once for all that use it in a stage."""

    def __init__(self, run: ResolvedRun, ledger: Ledger, meter: Meter) -> None:
        """Spend within the limits of ``run``; ``meter`` counts the replies."""
        limits = run.limits
        self._run = run
        self._ledger = ledger
        self._meter = meter
        meter.budget = Budget(limits.max_usd, limits.max_calls, limits.max_tokens)
        self._pool: WorkerPool | None = None
        """Workers that make the calls, if there are any."""
        if limits.executor is not None:
            from botchat.pipeline.executor import WorkerPool

            self._pool = WorkerPool(limits.executor)
        self._servers: dict[tuple[str | None, ...], Server] = {}
        self._limits: dict[str, ServerLimit] = {}
        self._models: dict[tuple[str, bool, str], StoredModel] = {}

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model; raises `ConfigError` if a limit of the run could not be kept."""
        place = (use.model.name, use.model.is_bot, use.stage)
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

            prices = prices.in_batch()
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
        url = public_url(settings.base_url)
        if url not in self._limits:
            most = config.server_concurrency(settings, self._run.workspace.config)
            self._limits[url] = ServerLimit(most)
        return self._limits[url]

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
        return sum(len(model.paying.in_flight) for model in tuple(self._models.values()))
