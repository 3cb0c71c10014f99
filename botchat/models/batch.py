"""The Batch API, at half the price: calls go as files, and a later run collects their replies.

A file is named by its content. It is on disk before it is sent, the id of its batch is on disk as
soon as there is one, and its name is in the batch's metadata: where an id was lost, the endpoint's
list is searched for the name before the file is sent. So nothing is paid twice, wherever a process
dies. A request's ``custom_id`` is its ledger key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import openai
from msgspec.structs import replace

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Reply, settings_digest
from botchat.models.attempts import (
    Again,
    Answered,
    Attempt,
    Call,
    Pending,
    Refused,
    map_replies,
)
from botchat.models.connection import HttpResponse
from botchat.models.endpoint import EndpointModel
from botchat.models.faults import Fault
from botchat.models.limits import Prices
from botchat.models.reader import BatchState, read_batch_lines, read_batches
from botchat.workspace.jsonl import write_atomic
from botchat.workspace.ledger import Ledger, request_key

MAX_REQUESTS = 50_000
"""Requests of a file; at OpenAI and most others."""
MAX_BYTES = 200_000_000
"""Bytes of a file, likewise."""
MAX_PAGES = 50
"""Pages of the list of batches that are searched."""
_PAGE = 100  # batches of a page

_FAILED = ("expired", "cancelled", "canceled", "failed")
_UNDER_WAY = ("validating", "in_progress", "finalizing", "cancelling", "queued", "running")
_URL: Final = "/v1/chat/completions"
_QUIET_PASSES = 32
"""Passes of the event loop without a new call, after which no task makes one."""


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
        # Key -> canonical request, of calls that wait for the next exchange.
        self._queue: dict[str, bytes] = {}
        # Key -> what came of a call of a batch that has ended.
        self._collected: dict[str, Attempt] = {}
        # States of the batches that are under way.
        self._states: set[str] = set()
        # Reasons why batches were refused.
        self._faults: list[str] = []
        self._exchange: asyncio.Task[None] | None = None

    async def attempt(self, call: Call) -> Attempt:
        """Return what came of a call in a batch that has ended; else it is pending."""
        self._queue[call.key] = call.request
        if self._exchange is None or self._exchange.done():
            self._exchange = asyncio.create_task(self._send_and_collect())
        await asyncio.shield(self._exchange)
        if call.key in self._collected:
            return self._collected.pop(call.key)
        states = ", ".join(sorted(self._states))
        how = "which takes minutes to 24 hours; run the same command again to collect them"
        return Pending(f"calls of {self.name} are in a batch ({states}), {how}")

    async def _send_and_collect(self) -> None:
        """File the replies of the batches that have ended, and send what no batch holds."""
        n_calls = -1
        while n_calls < len(self._queue):  # until no task makes another call
            n_calls = len(self._queue)
            for _ in range(_QUIET_PASSES):
                await asyncio.sleep(0)
        queue = self._queue
        self._queue = {}
        self._states = set()
        self._faults = []
        async with self.server.openai_client() as client:
            await self._advance_all(client, self._files())
            held = set(self._collected)
            for path in self._files():
                held.update(_requests(path))
            left = [queue[key] for key in queue if key not in held]
            if left:
                new = [self._write(requests) for requests in _chunks(left)]
                await self._advance_all(client, new)
        if self._faults:
            raise FatalModelError("; ".join(dict.fromkeys(self._faults)))

    def _files(self) -> list[Path]:
        """Return the files of requests that are at the endpoint, or on their way."""
        return sorted(self._folder.glob("*.jsonl"))

    def _write(self, requests: Sequence[bytes]) -> Path:
        """Write a file of requests, named by its content and how it is sent."""
        digest = hashlib.sha256(b"\n".join([*requests, msgspec.json.encode(self.quirks)]))
        path = self._folder / f"{digest.hexdigest()[:32]}.jsonl"
        write_atomic(path, b"\n".join(requests))
        return path

    async def _batches(
        self, client: openai.AsyncOpenAI, files: Sequence[Path]
    ) -> dict[str, BatchState]:
        """Return the newest batch of each file, by the file's name: by its id, or its metadata."""
        ids = {_id_path(path).read_text("utf-8"): path.stem for path in files if _has_id(path)}
        names = {path.stem for path in files}
        batches: dict[str, BatchState] = {}
        after: Any = openai.omit
        for _ in range(MAX_PAGES):
            response = await client.batches.with_raw_response.list(limit=_PAGE, after=after)
            page = read_batches(response.content)
            for batch in page:
                name = ids.get(batch.id, batch.name)
                if name in names:
                    batches.setdefault(name, batch)
            if len(page) < _PAGE or page[-1].id == after or names <= batches.keys():
                break
            after = page[-1].id
        for batch_id, name in ids.items():
            if name not in batches:
                one_batch = await client.batches.with_raw_response.retrieve(batch_id)
                for batch in read_batches(one_batch.content):
                    batches[name] = batch
        return batches

    async def _advance_all(self, client: openai.AsyncOpenAI, files: Sequence[Path]) -> None:
        """Send or collect files."""
        # Also of new ones: a workspace may have lost its files, or died before it kept an id.
        batches = await self._batches(client, files)
        for path in files:
            await self._advance(client, path, batches.get(path.stem))

    async def _advance(
        self, client: openai.AsyncOpenAI, path: Path, batch: BatchState | None
    ) -> None:
        """Send or collect a file."""
        is_sent = _has_id(path)
        if not is_sent and (batch is None or batch.status in _FAILED):
            batch = await self._send(client, path)
            self._states.add("sent")
        elif batch is None:  # it was sent, and the endpoint does not show it
            self._states.add("not listed")
        elif batch.status in ("completed", *_FAILED) or (
            batch.files and batch.status not in _UNDER_WAY
        ):
            await self._collect(client, batch, path)
            return
        else:
            self._states.add(batch.status or "under way")
        if batch is not None and not is_sent:
            write_atomic(_id_path(path), batch.id.encode())

    async def _send(self, client: openai.AsyncOpenAI, path: Path) -> BatchState | None:
        """Send a file; its batch is created at most once."""
        lines = []
        for key, request in _requests(path).items():
            call = msgspec.json.decode(request)
            body = self.body(call["messages"], Decoding(**call["sampling"]))
            line = {"custom_id": key, "method": "POST", "url": _URL, "body": body}
            lines.append(msgspec.json.encode(line))
        file = await client.files.create(file=(path.name, b"\n".join(lines)), purpose="batch")
        response = await client.with_options(max_retries=0).batches.with_raw_response.create(
            input_file_id=file.id,
            endpoint=_URL,
            completion_window="24h",
            metadata={"botchat": path.stem},
        )
        return next(iter(read_batches(response.content)), None)

    async def _collect(self, client: openai.AsyncOpenAI, batch: BatchState, path: Path) -> None:
        """File the replies of a batch that has ended."""
        requests = _requests(path)
        for fault in batch.faults:
            self._faults.append(f"batch {batch.id} was {batch.status}: {fault}")
        for file_id in batch.files:
            content = (await client.files.content(file_id)).content
            for line in read_batch_lines(content):
                if line.key not in requests:
                    continue
                attempt = self.read(HttpResponse(line.status, {}, line.body), self._sent())
                if isinstance(attempt, Again):
                    if batch.status in _FAILED:
                        continue  # it was not run, and goes with a new one
                    attempt = _settled(attempt)
                await self._keep(line.key, requests[line.key], attempt)
                if isinstance(attempt, Refused) and attempt.fatal:
                    self._faults.append(attempt.reply.detail)
        # Of a batch that failed, what it lacks goes with a new one; else it has failed itself.
        if batch.status not in _FAILED:
            detail = f"batch {batch.id} has {batch.status} without an answer that can be read"
            lost = Refused(Reply("malformed", detail=detail), Fault.UNREADABLE)
            for key in requests:
                self._collected.setdefault(key, lost)
        path.unlink()
        _id_path(path).unlink(missing_ok=True)

    async def _keep(self, key: str, request: bytes, attempt: Attempt) -> None:
        """Store an answer, also one that nobody waits for in this run."""

        def price(reply: Reply) -> Reply:
            return replace(reply, cost_usd=self.prices.cost_of(reply.usage, reply.cost_usd))

        attempt = map_replies(attempt, price)
        self._collected[key] = attempt
        if isinstance(attempt, Answered):
            await self.ledger.keep(key, request, attempt.reply, model=self.name, stage=self.stage)


def _settled(attempt: Again) -> Answered | Refused:
    """Return a call that was paid for as answered or failed: another run may ask again."""
    if attempt.kept is not None:
        return Answered(attempt.kept)
    return Refused(attempt.reply, attempt.fault, attempt.status)


def _requests(path: Path) -> dict[str, bytes]:
    """Return the requests of a file by their keys."""
    lines = path.read_bytes().splitlines()
    return {request_key(line): line for line in lines if line.strip()}


def _chunks(requests: Iterable[bytes]) -> list[list[bytes]]:
    """Return requests in files of as many lines and bytes as an endpoint takes."""
    chunks: list[list[bytes]] = []
    n_bytes = MAX_BYTES
    for request in requests:
        size = len(request) + 400  # with its key, and what is added to it
        n_bytes += size
        if n_bytes > MAX_BYTES or len(chunks[-1]) == MAX_REQUESTS:
            chunks.append([])
            n_bytes = size
        chunks[-1].append(request)
    return chunks


def _id_path(path: Path) -> Path:
    """Return the file that holds the id of a file's batch."""
    return path.with_suffix(".batch")


def _has_id(path: Path) -> bool:
    return _id_path(path).exists()
