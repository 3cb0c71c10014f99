"""The Batch API, at half the price: calls go as files, and a later run collects their replies.

A file is named by its content, and its name is in the metadata of its batch. It is stored first;
then the endpoint's list is searched for its name, and only then is it sent. So nothing is paid
twice, wherever a process dies. A request's ``custom_id`` is its ledger key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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

MAX_REQUESTS = 20_000  # of a file; OpenAI takes 200 MB, so each may have 10 kB

FAILED = ("expired", "cancelled", "failed")
_URL: Final = "/v1/chat/completions"


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
        self.parallel = MAX_REQUESTS
        self._folder = self.folder / settings_digest(self.identity, self.stage)
        self._queue: list[bytes] = []
        self._exchange: asyncio.Task[None] | None = None

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Return the reply of an ended batch; raise `BatchPending` when the others are sent."""
        request = request_json(self.identity, messages, decoding)
        self._queue.append(request)
        if self._exchange is None or self._exchange.done():
            self._exchange = asyncio.create_task(self._send_and_collect())
        await asyncio.shield(self._exchange)
        if (reply := self.ledger.get(request_key(request))) is not None:
            return reply
        how = "which takes minutes to 24 hours; run the same command again to collect them"
        raise BatchPending(f"calls of {self.name} are in a batch, {how}")

    async def _send_and_collect(self) -> None:
        """Send what no file holds, and file the replies of the batches that have ended."""
        for _ in range(32):  # passes of the event loop, until no task makes a call
            await asyncio.sleep(0)
        files = self._folder.glob("*.jsonl")
        held = {line for path in files for line in path.read_bytes().splitlines()}
        queue, self._queue = [each for each in self._queue if each not in held], []
        digest = hashlib.sha256(b"\n".join([*queue, msgspec.json.encode(self.quirks)]))
        new = self._folder / f"{digest.hexdigest()[:32]}.jsonl"
        if queue:
            write_atomic(new, b"\n".join(queue))
        async with self.server.openai_client() as client:
            batches: dict[str, Batch] = {}  # the newest of each name
            async for listed in client.batches.list(limit=100):
                batches.setdefault((listed.metadata or {}).get("botchat", ""), listed)
            for path in sorted(self._folder.glob("*.jsonl")):
                batch = batches.get(path.stem)
                if batch is None or (path == new and batch.status in FAILED):
                    await self._send(client, path)
                elif batch.status in ("completed", *FAILED):
                    await self._collect(client, batch, path)

    async def _send(self, client: openai.AsyncOpenAI, path: Path) -> None:
        """Send a file; its batch is created at most once, since its name is looked for first."""
        lines = []
        for request in path.read_bytes().splitlines():
            call = msgspec.json.decode(request)
            body = self.body(call["messages"], Decoding(**call["sampling"]))
            line = {"custom_id": request_key(request), "method": "POST", "url": _URL, "body": body}
            lines.append(msgspec.json.encode(line))
        file = await client.files.create(file=(path.name, b"\n".join(lines)), purpose="batch")
        name = {"botchat": path.stem}
        await client.with_options(max_retries=0).batches.create(
            input_file_id=file.id, endpoint=_URL, completion_window="24h", metadata=name
        )

    async def _collect(self, client: openai.AsyncOpenAI, batch: Batch, path: Path) -> None:
        """File the replies of a batch that has ended; the next run asks again for what it lacks."""
        requests = {request_key(line): line for line in path.read_bytes().splitlines()}
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            for line in (await client.files.content(file_id)).content.splitlines():
                answer = msgspec.json.decode(line)
                key, response = answer["custom_id"], answer.get("response")
                if response and key in requests:
                    body = msgspec.json.encode(response["body"])
                    reply = self.read(HttpResponse(response["status_code"], {}, body), self.quirks)
                    reply = msgspec.structs.replace(reply, cost_usd=self.prices.cost_of(reply))
                    await self.ledger.store(key, requests[key], reply, self.name, self.stage)
                    if reply.fatal:
                        raise FatalModelError(reply.fatal)
        self.ledger.set_quirks(self.identity, self.quirks)
        path.unlink()
        if batch.errors:
            why = [error.message for error in batch.errors.data or ()]
            raise FatalModelError(f"batch {batch.id} of {self.where} was refused: {why}")
