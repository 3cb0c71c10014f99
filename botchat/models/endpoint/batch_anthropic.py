"""Anthropic's Message Batches: requests go with the creation, results are one JSONL body.

A batch has no metadata. So one whose creation was not confirmed is looked for among those created
since it was noted, and is known by the ids that its results have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import httpx2
import msgspec
import openai

from botchat.models.endpoint.batch_endpoint import (
    TRANSFER_S,
    Answer,
    Batch,
    BatchExchanges,
    Found,
    Note,
)
from botchat.models.endpoint.replies import joined

STATUS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Type of an error -> HTTP status, as the API reference has them."""

CLOCKS_APART_S = 600.0
"""How far the endpoint's clock may be behind this machine's."""

_BATCHES = "/messages/batches"
_PAGE = 100


class AnthropicBatches(BatchExchanges):
    """The `botchat.models.endpoint.batch_endpoint.BatchApi` of Anthropic."""

    tagged = False

    def line(self, key: str, body: Mapping[str, Any]) -> bytes:
        """A request of a batch, whose result is found by ``key``."""
        params = {name: value for name, value in body.items() if name != "stream"}
        talk = params["messages"]
        if len(talk) > 1:
            # The next turn comes with another batch, when a cache of minutes is long gone.
            params["messages"] = [m | {"content": joined(m["content"])} for m in talk]
        return msgspec.json.encode({"custom_id": key, "params": params})

    async def create(self, note: Note, lines: Sequence[bytes], found: Found) -> str:
        """Id of a new batch."""
        data = b'{"requests":[%b]}' % b",".join(lines)
        return await self.ask(
            f"create a batch of {len(note.keys)} requests",
            lambda client: client.post(_BATCHES, content=data, cast_to=httpx2.Response),
            lambda body: _DECODED.decode(body).id,
            longer_s=TRANSFER_S,
            done_already=found,
        )

    async def find(self, note: Note) -> list[str]:
        """Batches of so many requests that were created since then, the oldest first."""
        first = note.since - CLOCKS_APART_S
        after, listed = "", []
        while True:
            page = await self.ask("list its batches", partial(_list, after), _PAGES.decode)
            new = [one for one in page.data if one.created >= first]
            listed += [one.id for one in new if one.counts.total >= len(note.keys)]
            if len(new) < len(page.data) or not page.data or not page.has_more:
                return listed[::-1]
            after = page.data[-1].id

    async def look(self, id: str) -> Batch:
        """The batch as it is now."""
        found = await self.ask(
            f"look at batch {id}",
            lambda client: client.get(f"{_BATCHES}/{id}", cast_to=httpx2.Response),
            _DECODED.decode,
            patient=True,
        )
        ended = found.processing_status == "ended"
        return Batch(
            id,
            found.processing_status,
            ended=ended,
            done=found.counts.total - found.counts.processing,
            total=found.counts.total,
            results=(found.results_url,) if ended and found.results_url else (),
        )

    async def answers(self, batch: Batch) -> dict[str, Answer]:
        """What each request got."""
        answers: dict[str, Answer] = {}
        for place in batch.results:
            url = httpx2.URL(place)
            ours = httpx2.URL(self.model.connection.base_url)
            # A key goes to no host that it is not meant for.
            same = (url.scheme, url.host, url.port) == (ours.scheme, ours.host, ours.port)
            here = place if same else f"{_BATCHES}/{batch.id}/results"
            fetch = partial(_fetch, here)
            what = "fetch the results of a batch"
            lines = await self.ask(what, fetch, _decoded, patient=True, longer_s=TRANSFER_S)
            for line in lines:
                answers.setdefault(line.custom_id, _answer(line.result))
        return answers


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        return sum(msgspec.structs.astuple(self))


class _MessageBatch(msgspec.Struct):
    id: str
    processing_status: str
    created_at: datetime | None = None
    results_url: str | None = None
    request_counts: _Counts | None = None

    @property
    def counts(self) -> _Counts:
        return self.request_counts or _Counts()

    @property
    def created(self) -> float:
        """In seconds of the epoch; of unknown time: now, so that it is not overlooked."""
        at = self.created_at or datetime.now(UTC)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


class _Page(msgspec.Struct):
    data: list[_MessageBatch]
    has_more: bool = False


class _Error(msgspec.Struct):
    type: str = ""
    message: str = ""


class _ErrorResponse(msgspec.Struct):
    error: _Error


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


_DECODED = msgspec.json.Decoder(_MessageBatch)
_PAGES = msgspec.json.Decoder(_Page)
_LINE = msgspec.json.Decoder(_Line)


def _decoded(body: bytes) -> list[_Line]:
    return _LINE.decode_lines(body.decode("utf-8", "replace"))


def _list(after: str, client: openai.AsyncOpenAI) -> Awaitable[httpx2.Response]:
    query = {"limit": _PAGE} | ({"after_id": after} if after else {})
    return client.get(_BATCHES, cast_to=httpx2.Response, options={"params": query})


def _fetch(place: str, client: openai.AsyncOpenAI) -> Awaitable[httpx2.Response]:
    return client.get(place, cast_to=httpx2.Response)


def _answer(result: _Result) -> Answer:
    if result.type == "succeeded":
        return Answer(200, bytes(result.message))
    if result.type != "errored":  # canceled or expired: it was not asked
        return Answer(why=result.type)
    data = bytes(result.error)
    try:
        kind = msgspec.json.decode(data, type=_ErrorResponse).error.type
    except msgspec.MsgspecError:
        kind = ""
    return Answer(STATUS.get(kind, 500), data)
