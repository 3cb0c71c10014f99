"""The Batch API: another way to fill the ledger, at half the price.

A call of a `BatchModel` waits until no other task can make a further call; then all that wait go as
one file. So stage 1 takes one batch for each turn of all dialogues, and judging takes one in all.
What a batch leaves unanswered goes with the next one, because `RecordedModel` asks again.

Nothing is paid twice, wherever the process dies. Before a batch is sent, it is noted in the ledger
with its calls, under a random tag that is also in its metadata. A noted call is
first looked for in its batch; a batch whose id is not known is looked for in the endpoint's list,
by its tag. A note is dropped only when the batch has ended
without an answer to the call.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.endpoint.batch_endpoint import (
    Batch,
    BatchAnswer,
    BatchEndpoint,
    GivenUpError,
    Progress,
)
from botchat.models.endpoint.connection import HttpResponse
from botchat.models.endpoint.model import EndpointModel
from botchat.models.limits import Retry
from botchat.parallel import until_quiet
from botchat.workspace.ledger import Ledger, NotedBatch, request_json, request_key

MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
"""Limits of one batch, as OpenAI documents them."""

ROUNDS = Retry(attempts=3, first_s=0.0)
"""A request goes with at most three batches in a run."""

PRICE_FACTOR = 0.5
"""Price of a token in a batch / its price elsewhere, at OpenAI and most others."""

FIRST_POLL_S, LONGEST_POLL_S = 2.0, 60.0
"""First and longest wait between two looks at a batch; each is 1.5 times the one before."""

LONGEST_WAIT_S = 36 * 3600.0
"""Endpoints promise an end within 24 hours; a later one is left to the next run."""

MAX_REFUSALS = 8
"""Halvings in a row of a batch for which the endpoint has no room."""


class BatchModel:
    """One model of one endpoint through its Batch API, as a `botchat.interfaces.ChatModel`."""

    def __init__(self, model: EndpointModel, ledger: Ledger, under_way: Progress) -> None:
        """``under_way``: where its batches are shown."""
        self.name = model.name
        self.identity = model.identity
        self.context_window = model.context_window
        self.parallel = MAX_REQUESTS
        self._model = model
        self._endpoint = BatchEndpoint(model)
        self._ledger = ledger
        self._under_way = under_way
        self._waiting: dict[str, _Queued] = {}
        self._queue: list[_Queued] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._uploading = asyncio.Lock()
        self._alone = asyncio.Lock()
        self._most = MAX_REQUESTS
        self._refusals = 0

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """The reply from the batch that this request goes with, or went with in an earlier run.

        Raises `FatalModelError`: the endpoint has no Batch API, or none for this model or key.
        """
        if self._endpoint.stopped.is_set():
            raise asyncio.CancelledError
        key = request_key(request_json(self.identity, messages, decoding))
        request = self._waiting.get(key)
        if request is None:
            request = _Queued(key, messages, decoding, asyncio.get_running_loop().create_future())
            request.reply.add_done_callback(lambda _: self._waiting.pop(key, None))
            self._waiting[key] = request
            self._queue.append(request)
            if len(self._queue) == 1:
                self._begin(self._gather(), self._queue)
        return await asyncio.shield(request.reply)

    async def stop(self) -> None:
        """Wait for no batch any more; those under way stay noted for the next run."""
        self._endpoint.stopped.set()
        await asyncio.gather(*self._tasks)

    # --- from requests to batches ----------------------------------------------------------------

    async def _gather(self) -> None:
        """Wait until no task asks more, then collect what was sent and send the rest."""
        # If this is too early, it costs one more batch, nothing else.
        await until_quiet(lambda: len(self._queue))
        if self._endpoint.stopped.is_set():
            raise asyncio.CancelledError
        requests = {request.key: request for request in self._queue}
        self._queue = []
        for batch in self._ledger.batches_of(requests):
            part = [requests.pop(key) for key in batch.keys]
            self._begin(self._resume(batch, part), part)
        for part in self._parts(list(requests.values())):
            self._begin(self._send(part), part)

    def _begin(self, work: Coroutine[Any, Any, None], requests: Sequence[_Queued]) -> None:
        task = asyncio.create_task(_see_through(work, requests))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _parts(self, requests: Sequence[_Queued]) -> list[list[_Queued]]:
        """``requests`` in files of a size that the endpoint takes."""
        sent = self._model.quirks
        parts: list[list[_Queued]] = []
        room = 0
        for request in requests:
            size = len(self._line(request, sent))
            if not parts or size > room or len(parts[-1]) >= self._most:
                parts.append([])
                room = MAX_BYTES
            parts[-1].append(request)
            room -= size
        return parts

    def _line(self, request: _Queued, sent: Mapping[str, Any]) -> bytes:
        body = self._model.body(request.messages, request.decoding, sent)
        return self._endpoint.line(request.key, body)

    # --- one batch -------------------------------------------------------------------------------

    async def _send(self, requests: Sequence[_Queued]) -> None:
        """Send one file and collect its batch; in halves if there is no room for it."""
        async with self._alone if self._most < MAX_REQUESTS else nullcontext():
            if await self._collect(*await self._create(requests), requests):
                return
        await self._make_room(len(requests))
        rest = requests
        while rest:  # the limit may shrink again
            part = self._parts(rest[: self._most])[0]
            await self._send(part)
            rest = rest[len(part) :]

    async def _create(self, requests: Sequence[_Queued]) -> tuple[str, Mapping[str, Any]]:
        """Make a new batch: its id and the quirks of its requests."""
        tag, sent = secrets.token_hex(16), self._model.quirks
        keys = sorted(request.key for request in requests)
        self._ledger.note_batch(tag, keys, model=self.name, sent=sent)
        async with self._uploading:  # one file in memory at a time
            lines = [self._line(request, sent) for request in requests]
            id = await self._endpoint.create(tag, lines)
            self._ledger.name_batch(tag, id)
        return id, sent

    async def _resume(self, batch: NotedBatch, requests: Sequence[_Queued]) -> None:
        """Collect a batch that an earlier run sent, or send what it was about to send."""
        id = batch.id or await self._endpoint.find(batch.tag)
        if id is not None and batch.id is None:
            self._ledger.name_batch(batch.tag, id)
        if id is None:
            self._ledger.unbatch([request.key for request in requests])
        elif await self._collect(id, batch.sent, requests):
            return
        for part in self._parts(requests):
            await self._send(part)

    async def _collect(self, id: str, sent: Mapping[str, Any], requests: Sequence[_Queued]) -> bool:
        """Wait for the end of a batch and answer ``requests``; ``False``: there was no room for it.

        Raises `FatalModelError`: the endpoint refused the whole batch.
        """
        batch = await self._ended(id)
        if batch.refused is not None:
            self._ledger.unbatch([request.key for request in requests])
            if "token_limit" in batch.refused or "enqueued" in batch.refused.lower():
                return False
            raise FatalModelError(
                f"{self._model.where} refused batch {id}: "
                f"{self._model.clean(batch.refused)[:500]}; correct the settings, or run without "
                "--batch"
            )
        self._refusals = 0
        told = await self._endpoint.answers(batch)
        ends = [self._answer(told.get(one.key, BatchAnswer()), batch, sent) for one in requests]
        answers = list(zip(requests, ends, strict=True))
        # Answers stay noted until they are in the ledger.
        kept = {one.key for one, end in answers if isinstance(end, Reply) and end.final}
        self._ledger.unbatch([one.key for one in requests if one.key not in kept])
        for request, answer in answers:
            request.resolve(answer)
        return True

    async def _ended(self, id: str) -> Batch:
        pause_s, waited_s = FIRST_POLL_S, 0.0
        try:
            while not (batch := await self._endpoint.look(id)).ended:
                self._under_way[id] = (batch.done, batch.total)
                if waited_s >= LONGEST_WAIT_S:
                    hours = waited_s / 3600
                    raise GivenUpError(f"batch {id} is still {batch.status} after {hours:.0f} h")
                await self._endpoint.pause(pause_s)
                waited_s += pause_s
                pause_s = min(1.5 * pause_s, LONGEST_POLL_S)
        finally:
            self._under_way.pop(id, None)
        return batch

    def _answer(
        self, answer: BatchAnswer, batch: Batch, sent: Mapping[str, Any]
    ) -> Reply | FatalModelError:
        """The reply to one request."""
        if answer.status is None:
            why = f"batch {batch.id} {batch.status} without an answer"
            why = self._model.clean(f"{why}: {answer.why}")[:500] if answer.why else why
            return Reply("transport", detail=why, retry_after_s=0.0, sent=sent, reached=False)
        try:
            return self._model.read(HttpResponse(answer.status, {}, answer.body), sent)
        except FatalModelError as error:
            return error

    async def _make_room(self, n: int) -> None:
        """Wait; from now on send one batch at a time, of at most half of ``n`` requests."""
        self._refusals += 1
        if self._refusals > MAX_REFUSALS:
            raise GivenUpError(
                f"{self._model.where} has no room for a batch of {n}: the account's limit of "
                "enqueued tokens is used up"
            )
        self._most = max(1, min(self._most, n // 2))
        await self._endpoint.pause(min(FIRST_POLL_S * 2**self._refusals, LONGEST_POLL_S))


@dataclass(frozen=True, eq=False)
class _Queued:
    key: str
    messages: Sequence[Message]
    decoding: Decoding
    reply: asyncio.Future[Reply]

    def resolve(self, answer: Reply | Exception) -> None:
        """Give the caller its reply or error, unless it has one."""
        if self.reply.done():
            return
        if isinstance(answer, Reply):
            self.reply.set_result(answer)
        else:
            self.reply.set_exception(answer)
            self.reply.exception()  # asyncio prints one that nobody retrieves


async def _see_through(work: Coroutine[Any, Any, None], requests: Sequence[_Queued]) -> None:
    """Do ``work``; however it fails, every caller gets an end."""
    try:
        await work
    except GivenUpError as error:
        for request in requests:
            request.resolve(Reply("transport", detail=str(error)))
    except asyncio.CancelledError:
        for request in requests:
            request.reply.cancel()
    except Exception as error:
        for request in requests:
            request.resolve(error)
