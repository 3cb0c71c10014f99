"""What a request is (`Call`) and what can be done with it (`Answer`)."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from tests.openai_server.gates import Gate


@dataclass(eq=False)
class Call:
    """One request as it was received, and what became of it."""

    n: int
    """1 for the first request of the server's life."""
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    body: Mapping[str, Any]
    """The JSON object sent; empty if it was none."""
    connection: int
    """1 for the first connection of the server's life; the same number: kept alive."""
    repeat: int = 1
    """1 for the first request with exactly these bytes."""
    status: int | None = None
    """Of the answer; ``None`` until it is begun and for resets before the headers."""
    sent: int = 0
    """Bytes of the answer that the client's side has taken."""
    answered: bool = False
    """The whole answer was sent while the client was there; false for answers that are cut."""
    lost: bool = False
    """The client hung up before its answer was complete."""

    @property
    def model(self) -> str:
        """The model asked for."""
        name = self.body.get("model")
        return name if isinstance(name, str) else ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The chat messages sent."""
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @cached_property
    def digest(self) -> str:
        """16 hex digits of the exact bytes sent."""
        return hashlib.blake2b(self.raw, digest_size=8).hexdigest()


@dataclass(frozen=True)
class Cut:
    """The connection ends early: by a reset, or quietly as if the answer were complete."""

    after: int | None
    """Bytes of the body that are sent first; ``None``: not even the status line."""
    reset: bool = True


@dataclass(frozen=True)
class Answer:
    """Everything the server does with one request."""

    status: int = 200
    body: bytes | Mapping[str, Any] = b""
    """A mapping is sent as JSON; a chat completion gets its id, time, model and usage then."""
    headers: tuple[tuple[str, str], ...] = ()
    """Added to, and by name replacing, Content-Type and Content-Length."""
    latency_s: float = 0.0
    gate: Gate | None = None
    """Nothing is sent before this lets it through."""
    pace: Gate | float | None = None
    """Before each single byte of the body: a gate to pass, or seconds to wait."""
    cut: Cut | None = None
    chunked: bool = False
    """No Content-Length: the client cannot know the size beforehand."""
    raw: bool = False
    """``body`` is all that is sent, in the place of status line, headers and body."""
    then: Answer | None = None
    """A second, unasked answer on the same connection."""

    def held(self, gate: Gate) -> Answer:
        """The same answer, not sent before ``gate`` lets it through."""
        return replace(self, gate=gate)

    def late(self, latency_s: float) -> Answer:
        """The same answer, ``latency_s`` later."""
        return replace(self, latency_s=latency_s)

    @property
    def plain(self) -> bool:
        """Whether it can be written in one go."""
        return not (
            self.latency_s
            or self.gate
            or self.pace
            or self.cut
            or self.chunked
            or self.raw
            or self.then
        )


Script = Callable[[Call], Answer]

COUNT: Mapping[str, Any] = {"count": "by the server"}
"""Usage to be counted when the answer is sent."""


def text(
    content: Any,
    *,
    finish_reason: str | None = "stop",
    usage: Mapping[str, Any] | None = COUNT,
    reasoning_content: str | None = None,
    refusal: str | None = None,
    reasoning_tokens: int | None = None,
) -> Answer:
    """A chat completion with one choice.

    Args:
        content: a string, ``None`` or a list of parts.
        finish_reason: ``stop``, ``length``, ``content_filter`` …
        usage: counted by the server unless given; ``None`` leaves it out.
        reasoning_content: what a reasoning model thought, beside the content.
        refusal: what a refusing model said instead.
        reasoning_tokens: reported within the completion tokens.
    """
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if refusal is not None:
        message["refusal"] = refusal
    if reasoning_content is not None:
        message["reasoning_content"] = reasoning_content
    if reasoning_tokens is not None:
        usage = {**COUNT, "reasoning_tokens": reasoning_tokens}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish_reason}
    return completion([choice], usage=usage)


def completion(choices: Any, *, usage: Mapping[str, Any] | None = COUNT) -> Answer:
    """A chat completion whose ``choices`` are anything at all."""
    body: dict[str, Any] = {"object": "chat.completion", "choices": choices}
    if usage is not None:
        body["usage"] = usage
    return Answer(body=body)


def render(answer: Answer, call: Call, created: int | None = None) -> tuple[bytes, bytes]:
    """Head and body of ``answer`` to ``call``, made now unless told otherwise."""
    body = answer.body
    if not isinstance(body, bytes):
        created = int(time.time()) if created is None else created
        body = msgspec.json.encode(completed(body, call, created))
    if answer.raw:
        return b"", body
    headers = {"content-type": "application/json", "x-request-id": f"req-{call.n}"}
    if answer.chunked:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(len(body))
    headers |= {name.lower(): value for name, value in answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1"), body


def n_tokens(text: str) -> int:
    """About how many tokens ``text`` has: 1.3 a word."""
    return math.ceil(1.3 * len(text.split()))


def n_prompt_tokens(
    messages: Sequence[Mapping[str, Any]], count: Callable[[str], int] = n_tokens
) -> int:
    """Tokens of a prompt, 4 a message for the chat template included."""
    return sum(4 + count(content_text(message.get("content"))) for message in messages)


def content_text(content: Any) -> str:
    """The text of a message's content: a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def completed(body: Mapping[str, Any], call: Call, created: int) -> Mapping[str, Any]:
    """``body`` with what every chat completion has: id, time, model and, where asked, usage."""
    if body.get("object") != "chat.completion":
        return body
    whole = {"id": f"chatcmpl-{call.n}", "created": created, "model": call.model, **body}
    usage = body.get("usage")
    if usage is not None and "count" in usage:
        n_prompt = n_prompt_tokens(call.messages)
        n_reply = sum(_n_said(choice) for choice in body["choices"] or [])
        whole["usage"] = {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_reply,
            "total_tokens": n_prompt + n_reply,
        }
        if "reasoning_tokens" in usage:
            n_thought = usage["reasoning_tokens"]
            whole["usage"]["completion_tokens"] += n_thought
            whole["usage"]["total_tokens"] += n_thought
            whole["usage"]["completion_tokens_details"] = {"reasoning_tokens": n_thought}
    return whole


def _n_said(choice: Mapping[str, Any]) -> int:
    message = choice.get("message") or {}
    return n_tokens(content_text(message.get("content")))


_REASONS = {
    200: "OK",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
