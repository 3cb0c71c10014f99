"""Anthropic's Message Batches: requests go with the creation, results are one JSONL body.

A batch has no metadata. So one whose creation was not confirmed is looked for among those created
since it was noted, and is known by the ids that its results have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from botchat.models.endpoint.batch_endpoint import (
    TRANSFER_S,
    Batch,
    BatchAnswer,
    BatchApi,
    Found,
    Note,
)
from botchat.models.endpoint.connection import HttpRequest
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


class AnthropicBatches(BatchApi):
    """The `botchat.models.endpoint.batch_endpoint.BatchApi` of Anthropic."""

    tagged = False

    def line(self, key: str, body: Mapping[str, Any]) -> bytes:
        """A request of a batch, whose result is found by ``key``."""
        params = {name: value for name, value in body.items() if name != "stream"}
        talk = params["messages"]
        if len(talk) > 1:
            # The next turn comes with another batch, when a cache of minutes is long gone.
            params["messages"] = [m | {"content": joined(m["content"]) or ""} for m in talk]
        return msgspec.json.encode({"custom_id": key, "params": params})

    async def create(self, note: Note, lines: Sequence[bytes], found: Found) -> str:
        """Id of a new batch."""
        data = b'{"requests":[%b]}' % b",".join(lines)
        return await self.ask(
            f"create a batch of {len(note.keys)} requests",
            HttpRequest(_BATCHES, data),
            lambda body: _DECODED.decode(body).id,
            longer_s=TRANSFER_S,
            done_already=found,
        )

    async def find(self, note: Note) -> list[str]:
        """Batches of so many requests that were created since then, the oldest first."""
        first = note.since - CLOCKS_APART_S
        query, listed = {"limit": str(_PAGE)}, []
        while True:
            asked = HttpRequest(_BATCHES, query=query)
            page = await self.ask("list its batches", asked, _PAGES.decode)
            new = [one for one in page.data if one.created >= first]
            listed += [one.id for one in new if one.counts.total >= len(note.keys)]
            if len(new) < len(page.data) or not page.data or not page.has_more:
                return listed[::-1]
            query["after_id"] = page.data[-1].id

    async def look(self, id: str) -> Batch:
        """The batch as it is now."""
        found = await self.ask(
            f"look at batch {id}",
            HttpRequest(f"{_BATCHES}/{quote(id, safe='')}"),
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

    async def answers(self, batch: Batch) -> dict[str, BatchAnswer]:
        """What each request got."""
        answers: dict[str, BatchAnswer] = {}
        for place in batch.results:
            # A key goes to no host that it is not meant for.
            same = _host(place) == _host(self.model.connection.base_url)
            fetch = HttpRequest(place if same else f"{_BATCHES}/{quote(batch.id, safe='')}/results")
            what = "fetch the results of a batch"
            lines = await self.ask(what, fetch, _decoded, patient=True, longer_s=TRANSFER_S)
            for line in lines:
                answers.setdefault(line.custom_id, _answer(line.result))
        return answers


class _ResultCounts(msgspec.Struct):
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
    request_counts: _ResultCounts | None = None

    @property
    def counts(self) -> _ResultCounts:
        return self.request_counts or _ResultCounts()

    @property
    def created(self) -> float:
        """In seconds of the epoch; of unknown time: now, so that it is not overlooked."""
        at = self.created_at or datetime.now(UTC)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


class _MessageBatches(msgspec.Struct):
    data: list[_MessageBatch]
    has_more: bool = False


class _ErrorObject(msgspec.Struct):
    type: str = ""
    message: str = ""


class _ErrorResponse(msgspec.Struct):
    error: _ErrorObject


class _BatchResult(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _ResultLine(msgspec.Struct):
    custom_id: str
    result: _BatchResult


_DECODED = msgspec.json.Decoder(_MessageBatch)
_PAGES = msgspec.json.Decoder(_MessageBatches)
_LINE = msgspec.json.Decoder(_ResultLine)


def _decoded(body: bytes) -> list[_ResultLine]:
    return _LINE.decode_lines(body.decode("utf-8", "replace"))


def _host(url: str) -> tuple[str, str | None, int | None]:
    """Whom a URL reaches; that of no URL reaches nobody."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", None, None


_PORTS = {"http": 80, "https": 443}


def _answer(result: _BatchResult) -> BatchAnswer:
    if result.type == "succeeded":
        return BatchAnswer(200, bytes(result.message))
    if result.type != "errored":  # canceled or expired: it was not asked
        return BatchAnswer(why=result.type)
    data = bytes(result.error)
    try:
        kind = msgspec.json.decode(data, type=_ErrorResponse).error.type
    except msgspec.MsgspecError:
        kind = ""
    return BatchAnswer(STATUS.get(kind, 500), data)
