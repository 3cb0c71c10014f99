"""The Batch API, at half the price: calls go as files, and a later run collects their replies.

A file is named by its content. It is on disk before it is sent, the id of its batch is on disk as
soon as there is one, and its name is in the batch's metadata: where there is no id, the endpoint's
list is searched for the name before the file is sent. So nothing is paid twice, wherever a process
dies. A request's ``custom_id`` is its ledger key.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import openai
from msgspec.structs import replace

from botchat.errors import BatchPending
from botchat.interfaces import Decoding, Reply, settings_digest
from botchat.models.attempts import Again, Answered, Attempt, Call, Refused
from botchat.models.connection import HttpResponse
from botchat.models.endpoint import EndpointModel
from botchat.models.faults import Fault
from botchat.models.reader import BatchState, read_batch_lines, read_batches
from botchat.workspace.jsonl import write_atomic
from botchat.workspace.ledger import request_key
from botchat.workspace.model_settings import Prices

MAX_REQUESTS = 50_000
"""Requests of a file; at OpenAI and most others."""
MAX_BYTES = 200_000_000
"""Bytes of a file, likewise."""
MAX_PAGES = 50
"""Pages of the list of batches that are searched."""
_PAGE = 100  # batches of a page

_FAILED = ("expired", "cancelled", "canceled", "failed")
_ENDED = ("completed",) + _FAILED
_UNDER_WAY = ("validating", "in_progress", "finalizing", "cancelling", "queued", "running")
_URL: Final = "/v1/chat/completions"
# Passes of the event loop without a new call, after which no task makes one
_QUIET_PASSES = 32


@dataclass(eq=False, kw_only=True)
class BatchModel(EndpointModel):
    """A model of an endpoint through its Batch API; ``folder`` keeps files of requests."""

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
        self._exchange: asyncio.Task[None] | None = None

    async def attempt(self, call: Call) -> Attempt:
        """Return what came of a call in a batch that has ended; raises `BatchPending`."""
        self._queue[call.key] = call.request
        if self._exchange is None or self._exchange.done():
            self._exchange = asyncio.create_task(self._send_and_collect())
        await asyncio.shield(self._exchange)
        if call.key in self._collected:
            return self._collected.pop(call.key)
        states = ", ".join(sorted(self._states))
        raise BatchPending(
            f"calls of {self.name} are in a batch ({states}), which takes minutes to 24 hours; run "
            "the same command again to collect them"
        )

    async def _send_and_collect(self) -> None:
        """File the replies of the batches that have ended, and send what no batch holds."""
        n_calls = -1
        while n_calls < len(self._queue):  # until no task makes another call
            n_calls = len(self._queue)
            for _ in range(_QUIET_PASSES):
                await asyncio.sleep(0)
        queue = self._queue
        self._queue = {}
        async with self.server.openai_client() as self._client:
            for path in self._files():
                await self._advance(path)
            held = set(self._collected)
            for path in self._files():
                held.update(_requests(path))
            left = [queue[key] for key in queue if key not in held]
            for requests in _chunks(left):
                await self._advance(self._write(requests))

    def _files(self) -> list[Path]:
        """Return the files of requests that are at the endpoint, or on their way."""
        return sorted(self._folder.glob("*.jsonl"))

    def _write(self, requests: list[bytes]) -> Path:
        """Write a file of requests, named by its content and how it is sent."""
        digest = hashlib.sha256(b"\n".join(requests + [msgspec.json.encode(self.quirks)]))
        path = self._folder / f"{digest.hexdigest()[:32]}.jsonl"
        write_atomic(path, b"\n".join(requests))
        return path

    async def _advance(self, path: Path) -> None:
        """Send a file that is in no batch; collect its replies if its batch has ended."""
        id_path = path.with_suffix(".batch")
        if id_path.exists():
            batches = self._client.batches.with_raw_response
            response = await batches.retrieve(id_path.read_text("utf-8"))
            batch = read_batches(response.content)[0]
        else:
            batch = await self._find_or_send(path)
            if batch.id:
                write_atomic(id_path, batch.id.encode())
        has_files = batch.files and batch.status not in _UNDER_WAY
        if has_files or batch.status in _ENDED:
            await self._collect(batch, _requests(path))
            path.unlink()
            id_path.unlink(missing_ok=True)
        else:
            self._states.add(batch.status or "under way")

    async def _find_or_send(self, path: Path) -> BatchState:
        """Return the batch of a file whose id is unknown: the newest with its name, or a new one.

        Also of a new file: a workspace may have lost its files, or died before it kept an id.
        """
        after: Any = openai.omit
        for _ in range(MAX_PAGES):
            response = await self._client.batches.with_raw_response.list(limit=_PAGE, after=after)
            page = read_batches(response.content)
            for batch in page:
                if batch.name == path.stem and batch.status not in _FAILED:
                    return batch
            if len(page) < _PAGE or page[-1].id == after:  # it knows of no pages
                break
            after = page[-1].id
        return await self._send(path)

    async def _send(self, path: Path) -> BatchState:
        """Send a file; its batch is created at most once."""
        lines = []
        for key, request in _requests(path).items():
            call = msgspec.json.decode(request)
            decoding = msgspec.convert(call["sampling"], Decoding)
            body = self.body(call["messages"], decoding)
            line = {"custom_id": key, "method": "POST", "url": _URL, "body": body}
            lines.append(msgspec.json.encode(line))
        file = await self._client.files.create(file=(path.name, b"\n".join(lines)), purpose="batch")
        client = self._client.with_options(max_retries=0)
        response = await client.batches.with_raw_response.create(
            input_file_id=file.id,
            endpoint=_URL,
            completion_window="24h",
            metadata={"botchat": path.stem},
        )
        return read_batches(response.content)[0]

    async def _collect(self, batch: BatchState, requests: Mapping[str, bytes]) -> None:
        """File the replies of a batch that has ended, also those that nobody waits for."""
        for file_id in batch.files:
            content = await self._client.files.content(file_id)
            for key, status, body in read_batch_lines(content.content):
                if key not in requests:
                    continue
                attempt = self.read(HttpResponse(status, {}, body), self._sent())
                if isinstance(attempt, Again):
                    if batch.status in _FAILED:
                        continue  # it was not run, and goes with a new one
                    # It was paid for: another run may ask again.
                    if attempt.kept is None:
                        attempt = Refused(attempt.reply, attempt.fault, attempt.status)
                    else:
                        attempt = Answered(attempt.kept)
                self._collected[key] = attempt
                if isinstance(attempt, Answered):
                    reply = attempt.reply
                    cost_usd = self.prices.cost_of(reply.usage, reply.cost_usd)
                    reply = replace(reply, cost_usd=cost_usd)
                    await self.ledger.keep(
                        key, requests[key], reply, model=self.name, stage=self.stage
                    )
        fault: Fault = "unreadable"
        if batch.fault:  # as it refused the file, it would refuse every other
            fault = "setting"
        elif batch.status in _FAILED:
            return  # what it lacks goes with a new one
        detail = f"batch {batch.id} has {batch.status}: {batch.fault or 'no answer can be read'}"
        lost = Refused(Reply("malformed", detail=detail), fault)
        for key in requests:
            self._collected.setdefault(key, lost)


def _requests(path: Path) -> dict[str, bytes]:
    """Return the requests of a file by their keys."""
    return {request_key(line): line for line in path.read_bytes().splitlines()}


def _chunks(requests: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield requests in files of as many lines and bytes as an endpoint takes."""
    chunk: list[bytes] = []
    n_bytes = 0
    for request in requests:
        size = len(request) + 400  # with its key, and what is added to it
        n_bytes += size
        if chunk and (n_bytes > MAX_BYTES or len(chunk) == MAX_REQUESTS):
            yield chunk
            chunk = []
            n_bytes = size
        chunk.append(request)
    if chunk:
        yield chunk
