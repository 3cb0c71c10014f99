"""The Batch API, at half the price: calls go as files, and a later run collects their replies.

A file is named by its content, and its name is in the metadata of its batch. It is stored under
``.botchat/batches`` before it is sent, and before it is sent the endpoint's list is searched for
its name: nothing is paid twice, wherever a process dies. It is deleted when the ledger holds the
replies. A request's ``custom_id`` is its ledger key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

import msgspec

from botchat.errors import BatchPending, FatalModelError
from botchat.interfaces import Decoding, Message, Reply, settings_digest
from botchat.models.endpoint import EndpointModel, HttpResponse
from botchat.models.limits import Prices
from botchat.workspace.jsonl import write_atomic
from botchat.workspace.ledger import Ledger, request_json, request_key

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000
"""Limits of one batch, as OpenAI documents them."""

PRICE_FACTOR = 0.5
"""Price of a token in a batch / its price elsewhere, at OpenAI and most others."""

QUIET_PASSES = 32
"""Passes of the event loop without a new call after which no task is about to make one."""

PATH: Literal["/v1/chat/completions"] = "/v1/chat/completions"
TAG = "botchat"
"""Key of a file's name in the metadata of its batch."""

FAILED = ("expired", "cancelled", "failed")


class _BatchRequest(msgspec.Struct):
    """A line of a stored file: key in the ledger, canonical request, body."""

    key: str
    request: msgspec.Raw
    body: msgspec.Raw

    @property
    def line(self) -> bytes:
        """The line that is sent."""
        line = {"custom_id": self.key, "method": "POST", "url": PATH, "body": self.body}
        return msgspec.json.encode(line) + b"\n"


class _BatchResponse(msgspec.Struct):
    status_code: int
    body: msgspec.Raw


class _Answer(msgspec.Struct):
    """A line of an output or error file."""

    custom_id: str
    response: _BatchResponse | None = None


class BatchModel:
    """A model of an endpoint through its Batch API, as a `botchat.interfaces.ChatModel`."""

    def __init__(
        self, model: EndpointModel, ledger: Ledger, folder: Path, stage: str, prices: Prices
    ) -> None:
        """Keep files of requests under ``folder``; file replies in the ledger under ``stage``."""
        self.name, self.identity = model.name, model.identity
        self.context_window, self.parallel = model.context_window, MAX_REQUESTS
        self._model, self._ledger, self._stage, self._prices = model, ledger, stage, prices
        self._folder = folder / settings_digest(model.identity, stage)
        self._pending: set[str] = set()
        self._queue: list[_BatchRequest] = []
        self._collecting: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Return the reply that an ended batch held; any other call joins the next batch.

        That is sent when no other task makes a further call. Raises `BatchPending` then, and
        `FatalModelError` if the Batch API cannot be used.
        """
        request = request_json(self.identity, messages, decoding)
        key = request_key(request)
        self._collecting = self._collecting or asyncio.create_task(self._collect())
        await asyncio.shield(self._collecting)
        if (reply := self._ledger.get(key)) is not None:
            return reply
        body = msgspec.json.encode(self._model.body(messages, decoding, self._model.quirks))
        self._queue.append(_BatchRequest(key, msgspec.Raw(request), msgspec.Raw(body)))
        self._sending = self._sending or asyncio.create_task(self._send_waiting())
        await asyncio.shield(self._sending)
        raise BatchPending(
            f"calls of {self.name} are in a batch, which takes minutes to 24 hours; "
            "run the same command again to collect them"
        )

    async def _collect(self) -> None:
        """File the replies of ended batches; send the files that a dead process did not."""
        if not (paths := sorted(self._folder.glob("*.jsonl"))):
            return
        async with self._client() as client:
            batches = await _list_batches(client)
            for path in paths:
                lines = path.read_bytes().splitlines()
                requests = {
                    r.key: r for r in (msgspec.json.decode(x, type=_BatchRequest) for x in lines)
                }
                batch = batches.get(path.stem) or await _create(
                    client, path.stem, requests.values()
                )
                if batch.status not in ("completed", *FAILED):
                    self._pending.update(requests)
                    continue
                for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
                    for line in (await client.files.content(file_id)).content.splitlines():
                        self._file_reply(msgspec.json.decode(line, type=_Answer), requests)
                self._ledger.set_quirks(self.identity, self._model.quirks)
                path.unlink()
                if batch.status == "failed":
                    problems = (batch.errors and batch.errors.data) or []
                    why = "; ".join(str(problem.message) for problem in problems[:3])
                    raise self._error(f"refused batch {batch.id}: {why}; correct the settings")

    def _file_reply(self, answer: _Answer, requests: Mapping[str, _BatchRequest]) -> None:
        model, key = self._model, answer.custom_id
        if answer.response is None or key not in requests:
            return
        response = HttpResponse(answer.response.status_code, {}, bytes(answer.response.body))
        reply = model.read(response, model.quirks)
        usd = self._prices.cost_of(reply)
        reply = msgspec.structs.replace(reply, sent=model.quirks, cost_usd=usd)
        if reply.final:
            request = bytes(requests[key].request)
            self._ledger.put(key, request, reply, model=self.name, stage=self._stage)
        else:
            self._ledger.add_attempt(key, reply, model=self.name)

    async def _send_waiting(self) -> None:
        """Wait until no task makes a further call, then send what no batch holds."""
        quiet = n_calls = 0
        while quiet < QUIET_PASSES:
            await asyncio.sleep(0)
            quiet = quiet + 1 if n_calls == len(self._queue) else 0
            n_calls = len(self._queue)
        requests = [request for request in self._queue if request.key not in self._pending]
        if not requests:
            return
        async with self._client() as client:
            batches = await _list_batches(client)
            for part in _parts(requests):
                digest = hashlib.sha256(b"".join(request.line for request in part)).hexdigest()[:32]
                same = [tag for tag in batches if tag.startswith(digest)]
                # A batch that failed may be sent again; any other one holds the replies.
                is_new = not same or batches[same[0]].status in FAILED
                tag = f"{digest}-{len(same)}" if is_new else same[0]
                content = b"".join(msgspec.json.encode(request) + b"\n" for request in part)
                write_atomic(self._folder / f"{tag}.jsonl", content)
                if is_new:
                    await _create(client, tag, part)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AsyncOpenAI]:
        """Open a client that sends what lets our own requests in, and nothing else."""
        import openai  # a second of CPU

        access = self._model.server.open()
        own = ("Authorization", "OpenAI-Organization", "OpenAI-Project")
        headers: dict[str, Any] = dict.fromkeys(own, openai.Omit())
        headers |= {name.title(): value for name, value in access.headers.items()}
        try:
            async with openai.AsyncOpenAI(
                api_key="none",
                base_url=access.base_url,
                default_query=dict(parse_qsl(access.query[1:], keep_blank_values=True)),
                default_headers=headers,
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            ) as client:
                yield client
        except (openai.OpenAIError, msgspec.MsgspecError) as error:
            raise self._error(f"failed in its Batch API: {error}; run it again") from None

    def _error(self, why: str) -> FatalModelError:
        line = " ".join(f"{self._model.where} {why}, or leave --batch out".split())
        return FatalModelError(self._model.server.clean(line)[:600])


async def _list_batches(client: AsyncOpenAI) -> dict[str, Batch]:
    """Return BotChat's batches by tag, the newest first; every page of the list is read."""
    batches: dict[str, Batch] = {}
    async for batch in client.batches.list(limit=100):
        batches.setdefault((batch.metadata or {}).get(TAG, ""), batch)
    return batches


async def _create(client: AsyncOpenAI, tag: str, requests: Iterable[_BatchRequest]) -> Batch:
    """Send a file; the batch is created at most once, since its tag is looked for first."""
    content = b"".join(request.line for request in requests)
    file = await client.files.create(file=(f"{TAG}-{tag}.jsonl", content), purpose="batch")
    return await client.with_options(max_retries=0).batches.create(
        input_file_id=file.id,
        endpoint=PATH,
        completion_window="24h",
        metadata={TAG: tag},
    )


def _parts(requests: Sequence[_BatchRequest]) -> Iterator[list[_BatchRequest]]:
    """Divide requests into files of a size that the endpoint takes."""
    part: list[_BatchRequest] = []
    size = 0
    for request in requests:
        size += len(request.line)
        if part and (size > MAX_BYTES or len(part) == MAX_REQUESTS):
            yield part
            part, size = [], len(request.line)
        part.append(request)
    yield part
