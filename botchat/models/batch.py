"""The Batch API, at half the price: calls go as files, and a later run collects their replies.

A file is named by its content, and its name is in the metadata of its batch. It is stored under
``.botchat/batches`` before it is sent, and before it is sent the endpoint's list is searched for
its name: nothing is paid twice, wherever a process dies. It is deleted when the ledger holds the
replies. A request's ``custom_id`` is its ledger key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import openai
from openai.types import Batch

from botchat.errors import BatchPending, FatalModelError
from botchat.interfaces import Decoding, Message, Reply, settings_digest
from botchat.models.connection import HttpResponse
from botchat.models.endpoint import EndpointModel
from botchat.models.limits import Prices
from botchat.workspace.jsonl import write_atomic
from botchat.workspace.ledger import Ledger, request_json, request_key
from botchat.workspace.model_settings import Access

MAX_REQUESTS = 10_000
"""Requests of a file; OpenAI takes 50,000 and 200 MB, so each may have 20 kB."""

PRICE_FACTOR = 0.5
"""Price of a token in a batch / its price elsewhere, at OpenAI and most others."""

FAILED = ("expired", "cancelled", "failed")


@dataclass(eq=False, kw_only=True)
class BatchModel(EndpointModel):
    """A model of an endpoint through its Batch API; ``folder`` keeps files of requests."""

    ledger: Ledger
    folder: Path
    stage: str
    prices: Prices

    def __post_init__(self) -> None:
        """Send nothing yet."""
        super().__post_init__()
        self.parallel = 50_000
        self._folder = self.folder / settings_digest(self.identity, self.stage)
        self._pending: set[str] = set()
        self._queue: list[bytes] = []
        self._tasks: dict[bool, asyncio.Task[None]] = {}

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Return the reply of an ended batch; raise `BatchPending` when the others are sent."""
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        for sending in (False, True):  # each once, for all callers
            if sending and key not in self._pending:
                self._queue.append(request)
            if sending not in self._tasks:
                self._tasks[sending] = asyncio.create_task(self._exchange(sending))
            await asyncio.shield(self._tasks[sending])
            if (reply := self.ledger.get(key)) is not None:
                return reply
        how = "which takes minutes to 24 hours; run the same command again to collect them"
        raise BatchPending(f"calls of {self.name} are in a batch, {how}")

    async def _exchange(self, sending: bool) -> None:
        """Collect ended batches, and write and send what no batch holds if ``sending``."""
        for _ in range(32 * sending):  # passes of the event loop, until no task makes a call
            await asyncio.sleep(0)
        new, quirks = [], msgspec.json.encode(self.quirks)
        for start in range(0, len(self._queue), MAX_REQUESTS):
            content = b"\n".join(self._queue[start : start + MAX_REQUESTS])
            new.append(self._folder / f"{hashlib.sha256(content + quirks).hexdigest()[:32]}.jsonl")
            write_atomic(new[-1], content)
        paths = sorted(self._folder.glob("*.jsonl"))
        if not (new if sending else paths):
            return
        try:
            async with _client(self.server.open()) as client:
                batches: dict[str, Batch] = {}  # the newest of each name
                async for batch in client.batches.list(limit=100):
                    batches.setdefault((batch.metadata or {}).get("botchat", ""), batch)
                for path in paths:
                    requests = {request_key(line): line for line in path.read_bytes().splitlines()}
                    held = batches.get(path.stem)
                    if held is None or (path in new and held.status in FAILED):
                        held = await self._create(client, path.stem, requests)
                    if held.status not in ("completed", *FAILED):
                        self._pending.update(requests)
                        continue
                    await self._collect(client, held, requests)
                    path.unlink()
                    if held.status == "failed":
                        why = [error.message for error in (held.errors and held.errors.data) or ()]
                        raise openai.OpenAIError(f"batch {held.id} was refused: {why}")
        except (openai.OpenAIError, msgspec.MsgspecError) as error:
            fault = " ".join(self.server.clean(f"in its Batch API: {error}").split())[:500]
            advice = "run it again, or leave --batch out"
            raise FatalModelError(f"{self.where} failed {fault}; {advice}") from None

    async def _create(
        self, client: openai.AsyncOpenAI, name: str, requests: Mapping[str, bytes]
    ) -> Batch:
        """Send a file; its batch is created at most once, since its name is looked for first."""
        sent, lines = {"method": "POST", "url": "/v1/chat/completions"}, []
        for key, request in requests.items():
            call = msgspec.json.decode(request)
            body = self.body(call["messages"], Decoding(**call["sampling"]))
            lines.append(msgspec.json.encode(sent | {"custom_id": key, "body": body}))
        content = (f"{name}.jsonl", b"\n".join(lines))
        file = await client.files.create(file=content, purpose="batch")
        return await client.with_options(max_retries=0).batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"botchat": name},
        )

    async def _collect(
        self, client: openai.AsyncOpenAI, batch: Batch, requests: Mapping[str, bytes]
    ) -> None:
        """File the replies of a batch that has ended; what it lacks is asked again."""
        filed = {"model": self.name, "stage": self.stage}
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            for line in (await client.files.content(file_id)).content.splitlines():
                answer = msgspec.json.decode(line)
                key, response = answer["custom_id"], answer.get("response")
                if not response or key not in requests:
                    continue
                body = msgspec.json.encode(response["body"])
                reply = self.read(HttpResponse(response["status_code"], {}, body), self.quirks)
                usd = self.prices.cost_of(reply)
                reply = msgspec.structs.replace(reply, sent=self.quirks, cost_usd=usd)
                if reply.final:
                    await self.ledger.keep(key, requests[key], reply, **filed)
                else:
                    self.ledger.add_attempt(key, reply, model=self.name)
        self.ledger.set_quirks(self.identity, self.quirks)


def _client(access: Access) -> openai.AsyncOpenAI:
    own = ("Authorization", "OpenAI-Organization", "OpenAI-Project")  # from no variable
    headers: dict[str, Any] = dict.fromkeys(own, openai.Omit())
    return openai.AsyncOpenAI(
        api_key="none",
        base_url=access.base_url,
        default_query=dict(parse_qsl(access.query[1:], keep_blank_values=True)),
        default_headers=headers | {k.title(): v for k, v in access.headers.items()},
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
    )
