"""An endpoint that speaks Anthropic's Messages in front of the scripts of a `Server`.

    with MessagesServer() as server:
        ...                              # api = "anthropic", base_url = server.url

Requests are held to the published rules: the key in ``x-api-key``, a version, ``max_tokens``, a
user who speaks first, roles in turn, no field unknown. What a script answers as a chat completion
is said as a message, whole or as a stream of events; any other answer is given as it is. Prefixes
marked for the cache are kept, and usage says what was read and written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.openai_server.answers import Answer, Call, Script, content_text, n_tokens, render
from tests.openai_server.replies import converse
from tests.openai_server.server import BatchingServer

KNOWN = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "temperature",
    "top_k",
    "top_p",
    "stop_sequences",
    "stream",
    "metadata",
    "output_config",
    "service_tier",
    "thinking",
}
STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
STOPS = {"stop": "end_turn", "length": "max_tokens"}


def said(content: Any, stop_reason: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    """A message; ``content`` is a text, or blocks."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": blocks,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }


def failed(kind: str, message: str, **details: str) -> dict[str, Any]:
    """The body of an error."""
    error = {"type": kind, "message": message} | ({"details": details} if details else {})
    return {"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


def error(kind: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """An error with its documented status."""
    return Answer(STATUS[kind], failed(kind, message), headers)


def events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a stream that says ``message``, in pieces of three characters."""
    usage = message["usage"]
    begun = {**usage, "output_tokens": 1}
    started = {**message, "content": [], "stop_reason": None, "usage": begun}
    yield {"type": "message_start", "message": started}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        name = "thinking" if block["type"] == "thinking" else "text"
        whole = block[name]
        yield {"type": "content_block_start", "index": index, "content_block": block | {name: ""}}
        for start in range(0, len(whole), 3):
            delta = {"type": f"{name}_delta", name: whole[start : start + 3]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    told = {"output_tokens": usage["output_tokens"]}
    yield {"type": "message_delta", "delta": delta, "usage": told}
    yield {"type": "message_stop"}


def streamed(parts: Sequence[Mapping[str, Any]]) -> Answer:
    """Server-sent events."""
    lines = [
        b"event: %b\ndata: %b\n\n" % (one["type"].encode(), msgspec.json.encode(one))
        for one in parts
    ]
    return Answer(
        body=b"".join(lines), headers=(("content-type", "text/event-stream"),), chunked=True
    )


@dataclass(frozen=True)
class Ending:
    """What becomes of one batch."""

    looks: int = 0
    """Looks at it that find it under way before one finds it ended."""
    expired: int = 0
    canceled: int = 0
    """So many of the last requests are not run."""


@dataclass
class MessageBatch:
    """One batch."""

    id: str
    ending: Ending
    requests: list[dict[str, Any]]
    created_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    looks: int = 0
    results: bytes | None = None
    counts: Counter[str] = field(default_factory=Counter)


class MessagesServer(BatchingServer):
    """An endpoint with Messages and Message Batches."""

    def __init__(
        self,
        script: Script | Answer = converse,
        *,
        endings: Sequence[Ending] = (),
        **more: Any,
    ) -> None:
        """Make a server.

        Args:
            script: what to answer, in chat completions.
            endings: of the first, second, … batch; the last one is that of all later ones.
            more: as for `Server`.
        """
        super().__init__(script, endings or [Ending()], **more)
        self.batches: list[MessageBatch] = []
        self.used: Counter[str] = Counter()
        """Tokens billed: of whole prompts, said, read from and written to the cache."""
        self.results_host = ""
        """In the place of the server's own address in ``results_url``."""
        self._cache: set[str] = set()

    def answer(self, call: Call) -> Answer:
        """What to do with a request."""
        path = urlsplit(call.path).path.removeprefix("/v1")
        if self.api_key and call.headers.get("x-api-key") != self.api_key:
            return error("authentication_error", "invalid x-api-key")
        if call.headers.get("anthropic-version") != "2023-06-01":
            return error("invalid_request_error", "anthropic-version: header is required")
        if (call.method, path) == ("POST", "/messages"):
            return self._message(call)
        if path.startswith("/messages/batches"):
            return self._batch(call, path.removeprefix("/messages/batches").strip("/").split("/"))
        return error("not_found_error", "Not found")

    def _message(self, call: Call) -> Answer:
        wrong = _wrong(call.body)
        if wrong:
            return error("invalid_request_error", wrong)
        if self.models and call.model not in self.models:
            return error("not_found_error", f"model: {call.model}")
        form = call.body.get("output_config", {}).get("format")
        chat: dict[str, Any] = {"model": call.model, "messages": list(_as_chat(call.body))}
        chat |= {"response_format": form} if form else {}
        found = self._script(replace(call, body=chat))
        if not isinstance(found.body, Mapping) or found.body.get("object") != "chat.completion":
            return found
        (choice,) = found.body["choices"]
        content = content_text(choice["message"]["content"])
        message = said(content, STOPS.get(choice["finish_reason"], choice["finish_reason"]))
        message |= {"model": call.model, "usage": self._usage(call.body, n_tokens(content))}
        if call.body.get("stream"):
            return streamed(list(events(message)))
        return replace(found, body=message)

    def _usage(self, body: Mapping[str, Any], n_said: int) -> dict[str, Any]:
        """The longest prefix in the cache is read, what is marked beyond it is written."""
        so_far, total, read, marked = "", 0, 0, 0
        system = body.get("system", "")
        blocks = [
            block
            for said in (system, *(m["content"] for m in body["messages"]))
            for block in _blocks(said)
        ]
        for block in blocks:
            so_far += f"\0{block['text']}"
            total += n_tokens(block["text"])
            if so_far in self._cache:
                read = total
            if block.get("cache_control"):
                marked = total
                self._cache.add(so_far)
        written = max(0, marked - read)
        self.used.update(prompt=total, said=n_said, read=read, written=written)
        return {
            "input_tokens": total - read - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": n_said,
            "service_tier": "standard",
        }

    # --- batches ---------------------------------------------------------------------------------

    def _batch(self, call: Call, parts: list[str]) -> Answer:
        step = "create" if call.method == "POST" else "fetch" if parts[-1] == "results" else "look"
        step = "list" if step == "look" and parts == [""] else step
        return self.exchange(step, lambda: getattr(self, f"_{step}")(call, parts[0]))

    def _create(self, call: Call, _: str) -> Answer:
        requests = call.body.get("requests")
        ids = [request["custom_id"] for request in requests or ()]
        if not ids or len(set(ids)) < len(ids) or len(ids) > 100_000:
            return error("invalid_request_error", "requests: custom_ids must be unique")
        ending = self.fate(len(self.batches))
        made = MessageBatch(f"msgbatch_{len(self.batches) + 1:03}", ending, requests)
        self.batches.append(made)
        return Answer(body=self._shown(made))

    def _look(self, call: Call, name: str) -> Answer:
        found = next((one for one in self.batches if one.id == name), None)
        if found is None:
            return error("not_found_error", "No such batch")
        found.looks += 1
        if found.looks > found.ending.looks and found.results is None:
            self._run_all(found)
        return Answer(body=self._shown(found))

    def _list(self, call: Call, _: str) -> Answer:
        query = parse_qs(urlsplit(call.path).query)
        newest = self.batches[::-1]
        after = query.get("after_id", [""])[0]
        start = next((n + 1 for n, one in enumerate(newest) if one.id == after), 0)
        page = newest[start : start + 2]  # fewer than asked for is allowed
        more = start + 2 < len(newest)
        return Answer(body={"data": [self._shown(one) for one in page], "has_more": more})

    def _fetch(self, call: Call, name: str) -> Answer:
        found = next((one for one in self.batches if one.id == name), None)
        if found is None or found.results is None:
            return error("not_found_error", "No results")
        return Answer(body=found.results, headers=(("content-type", "application/x-jsonl"),))

    def _shown(self, batch: MessageBatch) -> dict[str, Any]:
        ended = batch.results is not None
        host = self.results_host or self.url
        kinds = ("succeeded", "errored", "canceled", "expired")
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "created_at": batch.created_at,
            "request_counts": {
                "processing": 0 if ended else len(batch.requests),
                **{kind: batch.counts[kind] for kind in kinds},
            },
            "results_url": f"{host}/messages/batches/{batch.id}/results" if ended else None,
        }

    def _run_all(self, batch: MessageBatch) -> None:
        """Answer the requests, in another order than they came in."""
        n = len(batch.requests)
        first_expired = n - batch.ending.expired
        first_canceled = first_expired - batch.ending.canceled
        lines = []
        for place, request in enumerate(batch.requests):
            if place >= first_expired:
                result: dict[str, Any] = {"type": "expired"}
            elif place >= first_canceled:
                result = {"type": "canceled"}
            else:
                result = self._result(request)
            batch.counts[result["type"]] += 1
            lines.append({"custom_id": request["custom_id"], "result": result})
        batch.results = b"".join(msgspec.json.encode(line) + b"\n" for line in lines[::-1])

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        params = request["params"]
        if "stream" in params:
            return {"type": "errored", "error": failed("invalid_request_error", "stream: not here")}
        raw = msgspec.json.encode(params)
        call = Call(0, "POST", "/v1/messages", {}, raw, params, 0)
        answer = self._message(call)
        body = msgspec.json.decode(render(answer, call)[1])
        if answer.status != 200:
            return {"type": "errored", "error": body}
        self.paid[request["custom_id"]] += 1
        return {"type": "succeeded", "message": body}


def _wrong(body: Mapping[str, Any]) -> str:
    """What the API has against a request, in its words; empty: nothing."""
    if unknown := sorted(set(body) - KNOWN):
        return f"{unknown[0]}: Extra inputs are not permitted"
    for name in ("model", "messages", "max_tokens"):
        if not body.get(name):
            return f"{name}: Field required"
    temperature = body.get("temperature", 1)
    if not 0 <= temperature <= 1:
        return "temperature: range: 0..1"
    roles = [message["role"] for message in body["messages"]]
    if set(roles) - {"user", "assistant"}:
        return 'messages: Unexpected role "system". The Messages API accepts a top-level `system`'
    if roles[0] != "user":
        return 'messages: first message must use the "user" role'
    if any(one == other for one, other in pairwise(roles)):
        return 'messages: roles must alternate between "user" and "assistant"'
    said = (body.get("system", "x"), *(message["content"] for message in body["messages"]))
    if not all(block["text"].strip() for one in said for block in _blocks(one)):
        return "messages: text content blocks must contain non-whitespace text"
    return ""


def _as_chat(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if body.get("system"):
        yield {"role": "system", "content": content_text(body["system"])}
    for message in body["messages"]:
        yield {"role": message["role"], "content": content_text(message["content"])}


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)
