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
    Named,
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

_PORTS = {"http": 80, "https": 443}


class _ResultCounts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        return sum(msgspec.structs.astuple(self))


class _MessageBatch(Named, kw_only=True):
    processing_status: str
    created_at: datetime | None = None
    results_url: str | None = None
    request_counts: _ResultCounts | None = None

    @property
    def counts(self) -> _ResultCounts:
        return self.request_counts or _ResultCounts()

    def fits(self, note: Note) -> bool | None:
        """As of so many requests, and of unknown time: so that it is not overlooked."""
        at = self.created_at or datetime.now(UTC)
        created = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if created < note.since - CLOCKS_APART_S:
            return None
        return self.counts.total >= len(note.keys)

    def now(self, id: str) -> Batch:
        ended = self.processing_status == "ended"
        return Batch(
            id,
            self.processing_status,
            ended=ended,
            done=self.counts.total - self.counts.processing,
            total=self.counts.total,
            results=(self.results_url,) if ended and self.results_url else (),
        )


class _ErrorObject(msgspec.Struct):
    type: str = ""


class _ErrorResponse(msgspec.Struct):
    error: _ErrorObject


class _BatchResult(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _ResultLine(msgspec.Struct):
    custom_id: str
    result: _BatchResult

    @property
    def answer(self) -> BatchAnswer:
        if self.result.type == "succeeded":
            return BatchAnswer(200, bytes(self.result.message))
        if self.result.type != "errored":  # canceled or expired: it was not asked
            return BatchAnswer(why=self.result.type)
        data = bytes(self.result.error)
        try:
            kind = msgspec.json.decode(data, type=_ErrorResponse).error.type
        except msgspec.MsgspecError:
            kind = ""
        return BatchAnswer(STATUS.get(kind, 500), data)


class AnthropicBatches(BatchApi):
    """The `botchat.models.endpoint.batch_endpoint.BatchApi` of Anthropic."""

    tagged, path, after = False, "/messages/batches", "after_id"
    listed, looked_at, line_of = _MessageBatch, _MessageBatch, _ResultLine

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
        decode = msgspec.json.Decoder(_MessageBatch).decode
        return await self.ask(
            f"create a batch of {len(note.keys)} requests",
            HttpRequest(self.path, data),
            lambda body: decode(body).id,
            longer_s=TRANSFER_S,
            done_already=found,
        )

    def place(self, result: str, batch: Batch) -> str:
        """Its address; where that is another host's, which gets no key, the batch's own."""
        same = _host(result) == _host(self.model.connection.base_url)
        return result if same else f"{self.path}/{quote(batch.id, safe='')}/results"


def _host(url: str) -> tuple[str, str | None, int | None]:
    """Whom a URL reaches; that of no URL reaches nobody."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", None, None
