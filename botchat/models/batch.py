"""The Batch API, at half the price: calls go as files, and a later run collects their replies.

A file is named by its content, and its name is in the metadata of its batch. It is stored under
``.botchat/batches`` before it is sent, and before it is sent the endpoint's list is searched for
its name: nothing is paid twice, wherever a process dies. It is deleted when the ledger holds the
replies. A request's ``custom_id`` is its ledger key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
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

MAX_REQUESTS = 10_000
"""Requests of a file; OpenAI takes 50,000 and 200 MB, so each may have 20 kB."""

PRICE_FACTOR = 0.5
"""Price of a token in a batch / its price elsewhere, at OpenAI and most others."""

FAILED = ("expired", "cancelled", "failed")


class BatchModel:
    """A model of an endpoint through its Batch API, as a `botchat.interfaces.ChatModel`."""

    parallel = 50_000

    def __init__(
        self, model: EndpointModel, ledger: Ledger, folder: Path, stage: str, prices: Prices
    ) -> None:
        """Keep files of requests under ``folder``; file replies in the ledger under ``stage``."""
        self.name, self.identity = model.name, model.identity
        self.context_window = model.context_window
        self._model, self._ledger, self._stage, self._prices = model, ledger, stage, prices
        self._folder = folder / settings_digest(model.identity, stage)
        self._pending: set[str] = set()
        self._queue: list[bytes] = []
        self._collecting: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Return the reply of an ended batch; raise `BatchPending` when the others are sent."""
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        self._collecting = self._collecting or asyncio.create_task(self._exchange())
        await asyncio.shield(self._collecting)
        if (reply := self._ledger.get(key)) is not None:
            return reply
        if key not in self._pending:
            body = self._model.body(messages, decoding, self._model.quirks)
            call = {"key": key, "request": msgspec.Raw(request), "body": body}
            self._queue.append(msgspec.json.encode(call))
        self._sending = self._sending or asyncio.create_task(self._send())
        await asyncio.shield(self._sending)
        raise BatchPending(
            f"calls of {self.name} are in a batch, which takes minutes to 24 hours; "
            "run the same command again to collect them"
        )

    async def _send(self) -> None:
        """Send what no batch holds, once no task is about to make a further call."""
        for _ in range(32):  # passes of the event loop
            await asyncio.sleep(0)
        new = []
        for start in range(0, len(self._queue), MAX_REQUESTS):
            content = b"\n".join(self._queue[start : start + MAX_REQUESTS])
            new.append(self._folder / f"{hashlib.sha256(content).hexdigest()[:32]}.jsonl")
            write_atomic(new[-1], content)
        if new:
            await self._exchange(new)

    async def _exchange(self, new: Sequence[Path] = ()) -> None:
        """Send files that no batch holds, or only one that failed; collect ended batches."""
        if not (paths := sorted(self._folder.glob("*.jsonl"))):
            return
        access = self._model.server.open()
        own = ("Authorization", "OpenAI-Organization", "OpenAI-Project")
        headers: dict[str, Any] = dict.fromkeys(own, openai.Omit())
        try:
            async with openai.AsyncOpenAI(
                api_key="none",
                base_url=access.base_url,
                default_query=dict(parse_qsl(access.query[1:], keep_blank_values=True)),
                default_headers=headers | {k.title(): v for k, v in access.headers.items()},
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            ) as client:
                batches: dict[str, Batch] = {}  # the newest of each name
                async for batch in client.batches.list(limit=100):
                    batches.setdefault((batch.metadata or {}).get("botchat", ""), batch)
                for path in paths:
                    held = batches.get(path.stem)
                    if held is None or (path in new and held.status in FAILED):
                        held = await _create(client, path)
                    await self._collect(client, held, path)
        except (openai.OpenAIError, msgspec.MsgspecError) as error:
            why = " ".join(self._model.server.clean(f"in its Batch API: {error}").split())[:500]
            advice = "run it again, or leave --batch out"
            raise FatalModelError(f"{self._model.where} failed {why}; {advice}") from None

    async def _collect(self, client: openai.AsyncOpenAI, batch: Batch, path: Path) -> None:
        """File the replies of a batch if it has ended."""
        model, ledger = self._model, self._ledger
        requests = {call["key"]: call["request"] for call in _read(path.read_bytes())}
        if batch.status not in ("completed", *FAILED):
            self._pending.update(requests)
            return
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            for answer in _read((await client.files.content(file_id)).content):
                key, response = answer["custom_id"], answer.get("response")
                if not response or key not in requests:
                    continue
                body = msgspec.json.encode(response["body"])
                reply = model.read(HttpResponse(response["status_code"], {}, body), model.quirks)
                usd = self._prices.cost_of(reply)
                reply = msgspec.structs.replace(reply, sent=model.quirks, cost_usd=usd)
                if reply.final:
                    request = msgspec.json.encode(requests[key])
                    ledger.put(key, request, reply, model=self.name, stage=self._stage)
                else:
                    ledger.add_attempt(key, reply, model=self.name)
        ledger.set_quirks(self.identity, model.quirks)
        path.unlink()
        if batch.status == "failed":
            problems = (batch.errors and batch.errors.data) or []
            why = "; ".join(str(problem.message) for problem in problems)
            raise openai.OpenAIError(f"batch {batch.id} was refused: {why}")


async def _create(client: openai.AsyncOpenAI, path: Path) -> Batch:
    """Send a file; its batch is created at most once, since its name is looked for first."""
    sent = {"method": "POST", "url": "/v1/chat/completions"}
    calls = _read(path.read_bytes())
    lines = [sent | {"custom_id": call["key"], "body": call["body"]} for call in calls]
    content = b"\n".join(map(msgspec.json.encode, lines))
    file = await client.files.create(file=(path.name, content), purpose="batch")
    return await client.with_options(max_retries=0).batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"botchat": path.stem},
    )


def _read(content: bytes) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in content.splitlines()]
