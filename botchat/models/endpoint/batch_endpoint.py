"""The Batch API of an endpoint: ``/files`` and ``/batches``, exchange by exchange.

Every exchange has a deadline, is tried again a bounded number of times if that may help, and stops
the model if it cannot. What is used of a response is checked. A batch is created only once: before
another attempt, the endpoint's list is searched for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import httpx2
import msgspec
import openai

from botchat.errors import FatalModelError
from botchat.interfaces import Reply
from botchat.models.endpoint.model import EndpointModel
from botchat.models.limits import Retry

URL: Final = "/v1/chat/completions"

MAX_OUTPUT = 1 << 30
"""Bytes read of an output file."""

RETRY = Retry()
"""For an exchange that sends something."""

PATIENT = Retry(attempts=12, first_s=1.0, longest_s=120.0)
"""For one that looks at or fetches what was sent, which takes minutes to hours anyway."""

TRANSFER_S = 1800.0
"""Longest transfer of a file, added to the ``timeout_s`` of a call."""

_TAG = "botchat"
"""Key of BotChat's tag in a batch's metadata."""

T = TypeVar("T")


class GivenUpError(Exception):
    """The endpoint could not be reached or was not done in time; the next run asks again."""


class Problem(msgspec.Struct):
    """An error object of a line or of a whole batch."""

    code: Any = None
    message: Any = None

    def __str__(self) -> str:
        """Code and message in one line."""
        parts = [str(part) for part in (self.code, self.message) if part not in (None, "")]
        return " ".join(": ".join(parts).split())


class Problems(msgspec.Struct):
    """Why a batch was refused."""

    data: list[Problem] | None = None


class Counts(msgspec.Struct):
    """Progress of a batch in requests."""

    total: int = 0
    completed: int = 0
    failed: int = 0


class Batch(msgspec.Struct):
    """A batch as it is now."""

    id: str
    status: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: Problems | None = None
    request_counts: Counts | None = None

    @property
    def ended(self) -> bool:
        """Whether its status is final."""
        return self.status in ("completed", "expired", "cancelled", "failed")


class Response(msgspec.Struct):
    """The response that the request would have got outside a batch."""

    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class Line(msgspec.Struct):
    """One line of an output or error file."""

    custom_id: str
    response: Response | None = None
    error: Problem | None = None


@dataclass(frozen=True, eq=False)
class BatchEndpoint:
    """The Batch API of one model's endpoint.

    Every exchange may raise `FatalModelError` (no attempt can help), `GivenUpError` (all attempts
    failed) and, once it is stopped, ``CancelledError``.
    """

    model: EndpointModel
    """Makes the exchanges and reads errors."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    """Once set, no exchange begins and every `pause` ends; an exchange under way is not cut."""

    async def pause(self, seconds: float) -> None:
        """Wait, unless stopped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)

    async def upload(self, name: str, data: bytes) -> str:
        """Id of a new input file."""
        return await self._ask(
            "upload a batch file",
            lambda client: client.files.with_raw_response.create(
                file=(f"{name}.jsonl", data), purpose="batch"
            ),
            lambda body: _NAMED.decode(body).id,
            longer_s=TRANSFER_S,
        )

    async def create(self, file: str, tag: str) -> str:
        """Id of a new batch with ``tag`` in its metadata; made once, however often it is tried."""
        return await self._ask(
            "create a batch",
            lambda client: client.batches.with_raw_response.create(
                input_file_id=file,
                endpoint=URL,
                completion_window="24h",
                metadata={_TAG: tag},
            ),
            lambda body: _NAMED.decode(body).id,
            # An attempt whose response was lost may have made it.
            done_already=lambda: self.find(tag),
        )

    async def find(self, tag: str) -> str | None:
        """Id of the batch with ``tag`` in its metadata, if there is one."""
        after: str | openai.Omit = openai.omit
        while True:
            page = await self._ask("list its batches", partial(_list, after=after), _PAGE.decode)
            for batch in page.data:
                if (batch.metadata or {}).get(_TAG) == tag:
                    return batch.id
            if not page.data or not page.has_more:
                return None
            after = page.data[-1].id

    async def look(self, id: str) -> Batch:
        """The batch as it is now."""
        return await self._ask(
            f"look at batch {id}",
            lambda client: client.batches.with_raw_response.retrieve(id),
            _BATCH.decode,
            patient=True,
        )

    async def lines(self, file: str) -> list[Line]:
        """The lines of an output or error file.

        One damaged line makes the whole file unreadable: its call may have been paid for.
        """
        return await self._ask(
            "fetch the output of a batch",
            lambda client: client.files.with_raw_response.content(file),
            lambda body: _LINE.decode_lines(body.decode("utf-8", "replace")),
            patient=True,
            longer_s=TRANSFER_S,
        )

    async def _ask(
        self,
        what: str,
        send: Callable[[openai.AsyncOpenAI], Awaitable[_RawResponse]],
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

        async def response(client: openai.AsyncOpenAI) -> httpx2.Response:
            return (await send(client)).http_response

        failures, waited_s = 0, 0.0
        while True:
            if self.stopped.is_set():
                raise asyncio.CancelledError
            found = await self.model.exchange(response, longer_s)
            if isinstance(found, Reply):
                failure = found
            elif found.status_code >= 300:
                failure = self._failure(what, found)
            else:
                try:
                    return read(found.content)
                except (msgspec.MsgspecError, RecursionError):
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

    def _failure(self, what: str, response: httpx2.Response) -> Reply:
        """The error that a response is; raises `FatalModelError` if no further attempt can help."""
        without = f"while BotChat tried to {what}; without --batch it need not"
        try:
            failure = self.model.read(response, self.model.quirks)
        except FatalModelError as error:
            raise FatalModelError(f"{error} ({without})") from None
        if failure.retry_after_s is None:
            raise FatalModelError(f"{self.model.where}: {failure.detail} ({without})")
        return failure


class _RawResponse(Protocol):
    http_response: httpx2.Response


class _Named(msgspec.Struct):
    id: str
    metadata: dict[str, Any] | None = None


class _Page(msgspec.Struct):
    data: list[_Named]
    has_more: bool = False


_NAMED = msgspec.json.Decoder(_Named)
_PAGE = msgspec.json.Decoder(_Page)
_BATCH = msgspec.json.Decoder(Batch)
_LINE = msgspec.json.Decoder(Line)


def input_line(key: str, body: Mapping[str, Any]) -> bytes:
    """A line of an input file: the request ``body``, whose reply is found by ``key``."""
    line = {"custom_id": key, "method": "POST", "url": URL, "body": body}
    return msgspec.json.encode(line) + b"\n"


def _list(client: openai.AsyncOpenAI, after: str | openai.Omit) -> Awaitable[_RawResponse]:
    return client.batches.with_raw_response.list(after=after, limit=100)
