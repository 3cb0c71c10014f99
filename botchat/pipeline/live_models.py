"""Models that are asked: each behind the ledger and the budget, with the connections they share."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from botchat.errors import log
from botchat.interfaces import ChatModel
from botchat.metrics import lengths
from botchat.models.attempts import Sender
from botchat.models.limits import Budget, Prices, Retry, ServerLimit
from botchat.models.stored import StoredModel, open_model, rough_tokens
from botchat.pipeline.resolved import ModelUse, ResolvedRun
from botchat.pipeline.spending import Meter
from botchat.protocols.generation import TokenCounter
from botchat.workspace import config
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.secrets import public_url

if TYPE_CHECKING:
    from botchat.models.connection import Server
    from botchat.models.executor import WorkerPool


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
        self._budget = Budget(limits.max_usd, limits.max_calls, limits.max_tokens)
        meter.budget = self._budget
        self._pool: WorkerPool | None = None
        """Workers that make the calls, if there are any."""
        if limits.executor is not None:
            from botchat.models.executor import WorkerPool

            self._pool = WorkerPool(limits.executor)
        self._servers: dict[tuple[str | None, ...], Server] = {}
        """Servers with their connections, one for all entries of equal address, key and headers."""
        self._limits: dict[str, ServerLimit] = {}
        """Calls in flight that each URL allows."""
        self._models: dict[tuple[str, bool, str], StoredModel] = {}

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model; raises `ConfigError` if a limit of the run could not be kept."""
        place = (use.model.name, use.model.is_bot, use.stage)
        if place not in self._models:
            settings = use.model.settings
            if settings is None:
                # Bots are free: limits on money, calls and tokens are about endpoints.
                bot = self._run.seed_set.bot(use.model.name)
                self._models[place] = self._stored(bot, use.stage, None, use.prices, Budget())
            else:
                self._models[place] = self._new_endpoint(use, settings)
        self._models[place].paying.cost_bound(0, use.max_tokens)
        return self._models[place]

    def _new_endpoint(self, use: ModelUse, settings: ModelSettings) -> StoredModel:
        from botchat.models.endpoint import EndpointModel

        server = self._server(settings)
        if not self._run.limits.batch:
            model = EndpointModel(use.model.name, settings, server, self._ledger)
            return self._stored(model, use.stage, self._limit(settings), use.prices, self._budget)
        from botchat.models.batch import BatchModel  # a second of CPU

        prices = use.prices.in_batch()
        batch_model = BatchModel(
            name=use.model.name,
            settings=settings,
            server=server,
            ledger=self._ledger,
            folder=self._run.workspace.hidden / "batches",
            stage=use.stage,
            prices=prices,
        )
        return self._stored(batch_model, use.stage, None, prices, self._budget)

    def _server(self, settings: ModelSettings) -> Server:
        from botchat.models.connection import server_of  # imports aiohttp

        headers = [f"{name}: {value}" for name, value in sorted(settings.headers.items())]
        place = (settings.base_url, settings.api_key_env, *headers)
        if place not in self._servers:
            server = server_of(settings)
            if self._pool is not None:
                from botchat.models.executor import WorkerServer

                server = WorkerServer(server.name, server.find_access, self._pool)
            self._servers[place] = server
        return self._servers[place]

    def _limit(self, settings: ModelSettings) -> ServerLimit:
        url = public_url(settings.base_url)
        if url not in self._limits:
            n = config.server_concurrency(settings, self._run.workspace.config)
            self._limits[url] = ServerLimit(n)
        return self._limits[url]

    def _stored(
        self,
        sender: Sender,
        stage: str,
        limit: ServerLimit | None,
        prices: Prices,
        budget: Budget,
    ) -> StoredModel:
        return open_model(
            sender,
            self._ledger,
            stage,
            server_limit=limit,
            prices=prices,
            budget=budget,
            retry=Retry(),
            on_reply=partial(self._meter.count, sender.name),
            count=token_counter().estimate,
        )

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
        return sum(len(model.in_flight) for model in tuple(self._models.values()))
