"""What a Batch API is to BotChat, and OpenAI's: ``/files`` and ``/batches``, exchange by exchange.

Every exchange has a deadline, is tried again a bounded number of times if that may help, and stops
the model if it cannot. What is used of a response is checked. A batch is created only once: before
another attempt, the endpoint's list is searched for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from botchat.errors import FatalModelError
from botchat.interfaces import Reply
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

Found: TypeAlias = Callable[[], Awaitable[str | None]]
"""Looks for a batch that is perhaps made: its id, if it is."""


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


class Note(NamedTuple):
    """What is known of a batch before it is made."""

    tag: str
    keys: Set[str]
    """Of its requests, or some of them."""
    since: float
    """It was noted then, in seconds of the epoch, and sent later."""


class Named(msgspec.Struct):
    """A batch or a file, as the endpoint lists it."""

    id: str
    metadata: dict[str, Any] | None = None

    def fits(self, note: Note) -> bool | None:
        """Whether it may be the noted batch; ``None``: nor may any that is listed after it."""
        return (self.metadata or {}).get(TAG) == note.tag


class _Listed(msgspec.Struct, Generic[T]):
    data: list[T]
    has_more: bool = False


@dataclass(eq=False)
class BatchApi(ABC):
    """The Batch API of one model's endpoint.

    Every exchange may raise `FatalModelError` (no attempt can help), `GivenUpError` (all attempts
    failed) and, once it is stopped, ``CancelledError``.
    """

    model: EndpointModel
    """Makes the exchanges and reads errors."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    """Once set, no exchange begins and every `pause` ends; an exchange under way is not cut."""
    tagged: ClassVar[bool]
    """Whether a batch is known by its tag; otherwise only by the requests that it answers."""
    path: ClassVar[str]
    """Where its batches are."""
    after: ClassVar[str]
    """Parameter that begins a list behind an id."""
    listed: ClassVar[type[Named]] = Named
    """A batch in a list."""
    looked_at: ClassVar[type[msgspec.Struct]]
    """One that is looked at; its ``now(id)`` is a `Batch`."""
    line_of: ClassVar[type[msgspec.Struct]]
    """A line of results; ``custom_id`` is the key of a request, ``answer`` what it got."""

    @abstractmethod
    def line(self, key: str, body: Mapping[str, Any]) -> bytes:
        """The request ``body`` as a batch holds it; its answer is found by ``key``."""

    @abstractmethod
    async def create(self, note: Note, lines: Sequence[bytes], found: Found) -> str:
        """Id of a new batch; made once, however often it is tried.

        ``found``: id of the batch if an attempt whose response was lost has made it.
        """

    @abstractmethod
    def place(self, result: str, batch: Batch) -> str:
        """Where one of `Batch.results` is."""

    async def find(self, note: Note) -> list[str]:
        """Batches that may be the noted one, the oldest first."""
        query, found = {"limit": "100"}, list[str]()
        page_of: Any = _Listed
        decode = msgspec.json.Decoder(page_of[self.listed]).decode
        while True:
            page: Any = await self.ask(
                "list its batches", HttpRequest(self.path, query=query), decode
            )
            fits = [one.fits(note) for one in page.data]
            found += [one.id for one, may_be in zip(page.data, fits, strict=True) if may_be]
            done = (self.tagged and found) or None in fits or not page.data
            if done or not page.has_more:
                return found[::-1]
            query[self.after] = page.data[-1].id

    async def look(self, id: str) -> Batch:
        """The batch as it is now."""
        there = HttpRequest(f"{self.path}/{quote(id, safe='')}")
        decode = msgspec.json.Decoder(self.looked_at).decode
        found: Any = await self.ask(f"look at batch {id}", there, decode, patient=True)
        now: Batch = found.now(id)
        return now

    async def answers(self, batch: Batch) -> dict[str, BatchAnswer]:
        """Key of a request -> what it got; all that an ended batch says.

        One damaged line makes them all unreadable: its call may have been paid for.
        """
        decoder = msgspec.json.Decoder(self.line_of)
        answers: dict[str, BatchAnswer] = {}
        for result in batch.results:
            lines: list[Any] = await self.ask(
                "fetch the results of a batch",
                HttpRequest(self.place(result, batch)),
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


class BatchEndpoint(BatchApi):
    """OpenAI's `BatchApi`, and that of most others."""

    tagged, path, after = True, "/batches", "after"
    looked_at, line_of = _BatchObject, _OutputLine

    @property
    def _url(self) -> str:
        return f"/v1{self.model.wire.path}"

    def line(self, key: str, body: Mapping[str, Any]) -> bytes:
        """A line of an input file."""
        plain = {name: body[name] for name in body if name not in ("stream", "stream_options")}
        line = {"custom_id": key, "method": "POST", "url": self._url, "body": plain}
        return msgspec.json.encode(line) + b"\n"

    async def create(self, note: Note, lines: Sequence[bytes], found: Found) -> str:
        """Id of a new batch with the tag in its metadata."""
        decode = msgspec.json.Decoder(Named).decode
        content = (f"botchat-{note.tag}.jsonl", b"".join(lines))
        file = await self.ask(
            "upload a batch file", HttpRequest("/files", file=content), decode, longer_s=TRANSFER_S
        )
        asked = {
            "input_file_id": file.id,
            "endpoint": self._url,
            "completion_window": "24h",
            "metadata": {TAG: note.tag},
        }
        request = HttpRequest(self.path, msgspec.json.encode(asked))
        return await self.ask(
            "create a batch", request, lambda body: decode(body).id, done_already=found
        )

    def place(self, result: str, batch: Batch) -> str:
        """A file."""
        del batch
        return f"/files/{quote(result, safe='')}/content"
