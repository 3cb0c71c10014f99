"""The wire format ``responses``: OpenAI's Responses API, for models that have nothing else.

Written from its published schema (``openai.types.responses``). Nothing is kept at the endpoint
(``store``), and it has no seed: samples differ by temperature alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from botchat.interfaces import Decoding, Message, Reply
from botchat.models.endpoint import WireFormat
from botchat.models.endpoint.batch_endpoint import BatchEndpoint
from botchat.models.endpoint.replies import (
    at,
    ended,
    error_parts,
    joined,
    money,
    token_logprobs,
    used_tokens,
)
from botchat.workspace.config import ModelSettings

SMALLEST_OUTPUT = 16
"""Tokens; the endpoint takes no lower ``max_output_tokens``."""

LOGPROBS = "message.output_text.logprobs"

_LAST = ("response.completed", "response.incomplete", "response.failed", "response.done")
"""Events that hold the whole response."""


def body(
    messages: Sequence[Message], decoding: Decoding, settings: ModelSettings
) -> dict[str, Any]:
    """The request (`WireFormat.body`); a leading system message goes as ``instructions``."""
    made: dict[str, Any] = {"model": settings.model, "store": False}
    if messages and messages[0]["role"] == "system":
        made["instructions"], messages = messages[0]["content"], messages[1:]
    made["input"] = [{"type": "message", **message} for message in messages]
    if decoding.temperature is not None and settings.temperature is not None:
        made["temperature"] = decoding.temperature
    if decoding.max_tokens is not None:
        made["max_output_tokens"] = max(SMALLEST_OUTPUT, decoding.max_tokens)
    if decoding.schema is not None:
        form = {"type": "json_schema", "name": "reply", "strict": True, "schema": decoding.schema}
        made["text"] = {"format": form}
    if decoding.logprobs is not None:
        made["include"] = [LOGPROBS]
    if decoding.logprobs:
        made["top_logprobs"] = decoding.logprobs
    return made


def read(parsed: dict[str, Any], raw: str) -> Reply:
    """A response object (`WireFormat.read`)."""
    output, finish = parsed.get("output"), parsed.get("status")
    if finish == "incomplete":
        finish = at(parsed, "incomplete_details", "reason") or finish
    # What the model says between its thoughts is no part of its answer.
    said = [one for one in _messages(output) if one.get("phase") != "commentary"]
    refusals = [
        part["refusal"]
        for part in _parts(said)
        if part.get("type") == "refusal" and isinstance(part.get("refusal"), str)
    ]
    # Thoughts alone are an answer that says nothing; a completed response of nothing is none.
    nothing = not isinstance(output, list) or (not output and finish == "completed")
    texts = [joined(one.get("content")) for one in said]
    return ended(
        None if nothing or None in texts else "".join(text or "" for text in texts),
        finish if isinstance(finish, str) else None,
        refusal="".join(refusals),
        usage=used_tokens(parsed.get("usage"), "input", "output"),
        billed_usd=money(parsed, "usage"),
        tier=at(parsed, "service_tier"),
        raw=raw,
    )


def _messages(output: Any) -> Iterator[dict[str, Any]]:
    for item in output if isinstance(output, list) else ():
        if isinstance(item, dict) and item.get("type", "message") == "message":
            yield item


def _parts(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict):
                yield part


def assemble(events: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The response object in the last event of a stream (`WireFormat.assemble`)."""
    items: list[Any] = []
    for event in events:
        kind, whole = event.get("type"), event.get("response")
        if kind == "error" or event.get("error"):
            error = event.get("error")
            return {"error": error if isinstance(error, dict) else event}
        if kind == "response.output_item.done":
            items.append(event.get("item"))
        if kind in _LAST and isinstance(whole, dict):
            # Some gateways leave out of the last event what went before.
            return whole if whole.get("output") or not items else whole | {"output": items}
    return None


def _tokens(parsed: Any) -> list[Any]:
    said = list(_messages(at(parsed, "output")))
    return [token for part in _parts(said) for token in part.get("logprobs") or []]


WIRE = WireFormat(
    path="/responses",
    body=body,
    read=read,
    refusal=error_parts,
    assemble=assemble,
    parameters={
        "max_output_tokens": r"\bmax_output_tokens\b",
        "temperature": r"\btemperature\b",
        "text": r"\btext\.format\b|json.?schema|structured.?output",
        "include": r"\blogprobs\b|\binclude\b",
        "top_logprobs": r"\btop_logprobs\b",
        "store": r"\bstore\b",
    },
    needs={"top_logprobs": "include"},
    token_logprobs=token_logprobs(_tokens),
    batches=BatchEndpoint,
)
