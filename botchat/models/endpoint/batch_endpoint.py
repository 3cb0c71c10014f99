"""OpenAI's Batch API, and that of most others: ``/files`` and ``/batches``, exchange by exchange.

Every exchange has a deadline, is tried again a bounded number of times if that may help, and stops
the model if it cannot. What is used of a response is checked. A batch is created only once: before
another attempt, the endpoint's list is searched for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from botchat.errors import FatalModelError
from botchat.interfaces import Reply
from botchat.models.endpoint.chat import PATH
from botchat.models.endpoint.connection import HttpRequest, HttpResponse
from botchat.models.endpoint.model import EndpointModel
from botchat.models.limits import Retry

MAX_OUTPUT = 1 << 30
"""Bytes read of an output file."""

RETRY = Retry()
"""For an exchange that sends something."""

PATIENT = Retry(attempts=12, first_s=1.0, longest_s=120.0)
"""For one that looks at or fetches what was sent, which takes minutes to hours anyway."""

TRANSFER_S = 1800.0
"""Longest transfer of a file, added to the ``timeout_s`` of a call."""

TAG = "botchat"
"""Key of BotChat's tag in a batch's metadata."""

T = TypeVar("T")

Progress: TypeAlias = MutableMapping[str, tuple[int, int]]
"""Batches under way: id -> requests done, requests in all."""


class GivenUpError(Exception):
    """The endpoint could not be reached or was not done in time; the next run asks again."""


@dataclass(frozen=True)
class Batch:
    """A batch as it is now."""

    id: str
    status: str
    """In the endpoint's word."""
    ended: bool
    """Whether its status is final."""
    done: int = 0
    total: int = 0
    """Requests."""
    refused: str | None = None
    """Why the endpoint takes no request of it."""
    results: tuple[str, ...] = ()
    """Where its results are."""


class BatchAnswer(NamedTuple):
    """What a request of a batch got: the response that it would have got outside."""

    status: int | None = None
    """``None``: it was not answered."""
    body: bytes = b"null"
    why: str = ""
    """It was not answered."""


class Named(msgspec.Struct):
    """A batch or a file, as the endpoint lists it."""

    id: str
    metadata: dict[str, Any] | None = None


class _Listed(msgspec.Struct):
    data: list[Named]
    has_more: bool = False


class _Problem(msgspec.Struct):
    """An error object of a line or of a whole batch."""

    code: Any = None
    message: Any = None

    def __str__(self) -> str:
        """Code and message in one line."""
        parts = [str(part) for part in (self.code, self.message) if part not in (None, "")]
        return " ".join(": ".join(parts).split())


class _Problems(msgspec.Struct):
    data: list[_Problem] | None = None


class _RequestCounts(msgspec.Struct):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _BatchObject(msgspec.Struct):
    id: str
    status: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Problems | None = None
    request_counts: _RequestCounts | None = None

    def now(self, id: str) -> Batch:
        refused = None
        if self.status == "failed":
            problems = (self.errors.data if self.errors else None) or [_Problem()]
            refused = str(problems[0]) or "no reason given"
        counts = self.request_counts or _RequestCounts()
        return Batch(
            id,
            self.status,
            ended=self.status in ("completed", "expired", "cancelled", "failed"),
            done=counts.completed + counts.failed,
            total=counts.total,
            refused=refused,
            results=tuple(file for file in (self.output_file_id, self.error_file_id) if file),
        )


class _LineResponse(msgspec.Struct):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class _OutputLine(msgspec.Struct):
    """One line of an output or error file."""

    custom_id: str
    response: _LineResponse | None = None
    error: _Problem | None = None

    @property
    def answer(self) -> BatchAnswer:
        if self.response is None:
            return BatchAnswer(why=str(self.error) if self.error else "")
        return BatchAnswer(self.response.status_code, bytes(self.response.body))


@dataclass(eq=False)
class BatchEndpoint:
    """The Batch API of one model's endpoint.

    Every exchange may raise `FatalModelError` (no attempt can help), `GivenUpError` (all attempts
    failed) and, once it is stopped, ``CancelledError``.
    """

    model: EndpointModel
    """Makes the exchanges and reads errors."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    """Once set, no exchange begins and every `pause` ends; an exchange under way is not cut."""

    def line(self, key: str, body: Mapping[str, Any]) -> bytes:
        """A line of an input file: the request ``body``; its answer is found by ``key``."""
        line = {"custom_id": key, "method": "POST", "url": f"/v1{PATH}", "body": body}
        return msgspec.json.encode(line) + b"\n"

    async def create(self, tag: str, lines: Sequence[bytes]) -> str:
        """Id of a new batch with the tag in its metadata; made once, however often it is tried."""
        decode = msgspec.json.Decoder(Named).decode
        content = (f"botchat-{tag}.jsonl", b"".join(lines))
        file = await self.ask(
            "upload a batch file", HttpRequest("/files", file=content), decode, longer_s=TRANSFER_S
        )
        asked = {
            "input_file_id": file.id,
            "endpoint": f"/v1{PATH}",
            "completion_window": "24h",
            "metadata": {TAG: tag},
        }
        return await self.ask(
            "create a batch",
            HttpRequest("/batches", msgspec.json.encode(asked)),
            lambda body: decode(body).id,
            done_already=partial(self.find, tag),
        )

    async def find(self, tag: str) -> str | None:
        """Id of the batch with this tag; ``None``: the endpoint lists none."""
        query = {"limit": "100"}
        decode = msgspec.json.Decoder(_Listed).decode
        while True:
            page = await self.ask("list its batches", HttpRequest("/batches", query=query), decode)
            found = [one.id for one in page.data if (one.metadata or {}).get(TAG) == tag]
            if found:
                return found[-1]
            if not page.data or not page.has_more:
                return None
            query["after"] = page.data[-1].id

    async def look(self, id: str) -> Batch:
        """The batch as it is now."""
        there = HttpRequest(f"/batches/{quote(id, safe='')}")
        decode = msgspec.json.Decoder(_BatchObject).decode
        return (await self.ask(f"look at batch {id}", there, decode, patient=True)).now(id)

    async def answers(self, batch: Batch) -> dict[str, BatchAnswer]:
        """Key of a request -> what it got; all that an ended batch says.

        One damaged line makes them all unreadable: its call may have been paid for.
        """
        decoder = msgspec.json.Decoder(_OutputLine)
        answers: dict[str, BatchAnswer] = {}
        for file in batch.results:
            lines = await self.ask(
                "fetch the results of a batch",
                HttpRequest(f"/files/{quote(file, safe='')}/content"),
                lambda body: decoder.decode_lines(body.decode("utf-8", "replace")),
                patient=True,
                longer_s=TRANSFER_S,
            )
            for line in lines:
                answers.setdefault(line.custom_id, line.answer)
        return answers

    async def pause(self, seconds: float) -> None:
        """Wait, unless stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)

    async def ask(
        self,
        what: str,
        request: HttpRequest,
        read: Callable[[bytes], T],
        *,
        patient: bool = False,
        longer_s: float = 0.0,
        done_already: Callable[[], Awaitable[T | None]] | None = None,
    ) -> T:
        """One exchange, to do ``what``, tried again if that may help.

        ``read`` finds the result in the body, and raises what msgspec raises. ``longer_s`` is added
        to the ``timeout_s`` of a call. ``done_already`` is called before another attempt; its
        result, if any, is the result.
        """
        failures, waited_s = 0, 0.0
        while True:
            if self.stopped.is_set():
                raise asyncio.CancelledError
            found = await self.model.exchange(request, longer_s)
            if isinstance(found, Reply):
                failure = found
            elif found.status_code >= 300:
                failure = self._failure(what, found)
            else:
                try:
                    return read(found.content)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    failure = Reply("malformed", detail="unreadable answer", retry_after_s=0.0)
            failures += 1
            retry = PATIENT if patient else RETRY
            wait_s = retry.wait_s(failures, failure.retry_after_s or 0.0, waited_s)
            if wait_s is None:
                raise GivenUpError(f"cannot {what}: {failure.detail} (tried {failures} times)")
            waited_s += wait_s
            await self.pause(wait_s)
            if done_already is not None and (result := await done_already()) is not None:
                return result

    def _failure(self, what: str, response: HttpResponse) -> Reply:
        """The error that a response is; raises `FatalModelError` if no further attempt can help."""
        without = f"while BotChat tried to {what}; without --batch it need not"
        try:
            failure = self.model.read(response, self.model.quirks)
        except FatalModelError as error:
            raise FatalModelError(f"{error} ({without})") from None
        if failure.retry_after_s is None:
            raise FatalModelError(f"{self.model.where}: {failure.detail} ({without})")
        return failure
