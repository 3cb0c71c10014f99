"""What a request is (`Call`) and what can be done with it (`Answer`)."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from http import HTTPStatus
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
    repeat: int = 1
    """1 for the first request with exactly these bytes."""
    answered: bool = False
    """The whole answer was sent while the client was there; false for answers that are cut."""

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
    pace_s: float = 0.0
    """Seconds to wait before each single byte of the body."""
    cut: Cut | None = None
    chunked: bool = False
    """No Content-Length: the client cannot know the size beforehand."""
    raw: bool = False
    """``body`` is all that is sent, in the place of status line, headers and body."""

    def held(self, gate: Gate) -> Answer:
        """The same answer, not sent before ``gate`` lets it through."""
        return replace(self, gate=gate)

    @property
    def plain(self) -> bool:
        """Whether it can be written in one go."""
        waits = self.latency_s or self.gate or self.pace_s
        return not (waits or self.cut or self.chunked or self.raw)


Script = Callable[[Call], Answer]

COUNT: Mapping[str, Any] = {"count": "by the server"}
"""Usage to be counted when the answer is sent."""


def text(
    content: Any,
    *,
    finish_reason: str | None = "stop",
    usage: Mapping[str, Any] | None = COUNT,
    **message: Any,
) -> Answer:
    """A chat completion with one choice.

    Args:
        content: a string, ``None`` or a list of parts.
        finish_reason: ``stop``, ``length``, ``content_filter`` …
        usage: counted by the server unless given; ``None`` leaves it out.
        message: ``refusal``, ``reasoning_content`` and other fields beside the content.
    """
    message = {"role": "assistant", "content": content} | message
    return completion(
        [{"index": 0, "message": message, "finish_reason": finish_reason}], usage=usage
    )


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
        body = msgspec.json.encode(_completed(body, call, created))
    if answer.raw:
        return b"", body
    headers = {"content-type": "application/json", "x-request-id": f"req-{call.n}"}
    if answer.chunked:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(len(body))
    headers |= {name.lower(): value for name, value in answer.headers}
    reason = HTTPStatus(answer.status).phrase if answer.status in _KNOWN else "Status"
    lines = [f"HTTP/1.1 {answer.status} {reason}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1"), body


def n_tokens(text: str) -> int:
    """About how many tokens ``text`` has: 1.3 a word."""
    return math.ceil(1.3 * len(text.split()))


def n_prompt_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of a prompt, 4 a message for the chat template included."""
    return sum(4 + n_tokens(content_text(message.get("content"))) for message in messages)


def content_text(content: Any) -> str:
    """The text of a message's content: a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _completed(body: Mapping[str, Any], call: Call, created: int) -> Mapping[str, Any]:
    """``body`` with what every chat completion has: id, time, model and, where asked, usage."""
    if body.get("object") != "chat.completion":
        return body
    whole = {"id": f"chatcmpl-{call.n}", "created": created, "model": call.model, **body}
    if body.get("usage") == COUNT:
        n_prompt = n_prompt_tokens(call.messages)
        messages = [choice.get("message") or {} for choice in body["choices"] or []]
        n_reply = sum(n_tokens(content_text(message.get("content"))) for message in messages)
        whole["usage"] = {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_reply,
            "total_tokens": n_prompt + n_reply,
        }
    return whole


_KNOWN = frozenset(status.value for status in HTTPStatus)
