"""The wire format ``anthropic``: Anthropic's Messages.

As in the API reference of version 2023-06-01: the next one, 2026-10-21, has no temperature, which
the papers' settings need. The API has no seed (a sample is simply asked again) and no
log-probabilities. The answer to a request with a JSON schema is text that follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from botchat.interfaces import Decoding, Message, Reply, Usage
from botchat.models.endpoint import Refusal, WireFormat
from botchat.models.endpoint.batch_anthropic import STATUS, AnthropicBatches
from botchat.models.endpoint.replies import at, count, ended, error_parts, joined
from botchat.models.self_chat import ARRANGEMENTS
from botchat.workspace.config import ModelSettings
from botchat.workspace.entries import OPENAI_URL

CACHED = 4096
"""Characters from which a prefix is worth caching: about 1,024 tokens, below which no model does.
A write costs more than input, so only what later requests begin with is marked."""

MARK: Final = {"cache_control": {"type": "ephemeral"}}

HOTTEST = 1.0
"""Highest temperature that the API takes."""


def check(settings: ModelSettings) -> str:
    """What cannot be asked so (`WireFormat.check`)."""
    if settings.base_url == OPENAI_URL:
        return (
            'base_url: set it for api = "anthropic"; Anthropic\'s is https://api.anthropic.com/v1'
        )
    if settings.max_tokens is None:
        return 'max_tokens: api = "anthropic" cannot leave it out; give a number'
    if settings.temperature is not None and settings.temperature > HOTTEST:
        return f'temperature: {settings.temperature:g}: api = "anthropic" takes 0 to {HOTTEST:g}'
    if settings.layout == "natural":
        return 'layout: api = "anthropic" wants the user first; use merge-leading or leave it out'
    return ""


def body(
    messages: Sequence[Message], decoding: Decoding, settings: ModelSettings
) -> dict[str, Any]:
    """The request (`WireFormat.body`)."""
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    made: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": decoding.max_tokens or settings.max_tokens,
        "messages": _marked(_alternating(messages), decoding.shared, len(system)),
    }
    if system.strip():
        made["system"] = [_text(system) | MARK] if len(system) >= CACHED else system
    if decoding.temperature is not None and settings.temperature is not None:
        made["temperature"] = decoding.temperature
    if decoding.schema is not None:
        made["output_config"] = {"format": {"type": "json_schema", "schema": decoding.schema}}
    return made


def _alternating(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of user and assistant in turn: those of one in a row are made one."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += f"\n\n{message['content']}"
        elif message["role"] != "system":
            merged.append({"role": message["role"], "content": message["content"]})
    return merged


def _marked(talk: list[dict[str, Any]], shared: int, before: int) -> list[dict[str, Any]]:
    """The messages with the end of what later requests begin with marked, where it is long.

    ``before``: characters of the system prompt. A talk goes on, so all of it is such a beginning;
    of a single question it is the first ``shared`` characters.
    """
    if len(talk) > 1 and before + sum(len(m["content"]) for m in talk) >= CACHED:
        talk[-1]["content"] = [_text(talk[-1]["content"]) | MARK]
    elif len(talk) == 1 and shared and before + shared >= CACHED:
        asked = talk[0]["content"]
        # No text block may be blank.
        parts = [asked[:shared], asked[shared:]] if asked[shared:].strip() else [asked]
        talk[0]["content"] = [_text(parts[0]) | MARK, *map(_text, parts[1:])]
    return talk


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def read(parsed: dict[str, Any], raw: str) -> Reply:
    """A message (`WireFormat.read`); thoughts are blocks of another type than text."""
    content: Any = parsed.get("content")
    listed = isinstance(content, list)
    said = [one for one in content if at(one, "type") == "text"] if listed else []
    explained = at(parsed, "stop_details", "explanation")
    used = parsed.get("usage")
    return ended(
        joined(said) if listed else None,
        # A whole message always says why it stopped.
        str(parsed.get("stop_reason")),
        refusal="" if said or not isinstance(explained, str) else explained,
        usage=_usage(used),
        tier=at(used, "service_tier"),
        raw=raw,
    )


def _usage(used: Any) -> Usage:
    fresh, read = count(used, "input_tokens"), count(used, "cache_read_input_tokens")
    written = count(used, "cache_creation_input_tokens")
    # Here, and nowhere else, the input does not include what went through the cache.
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(prompt, count(used, "output_tokens"), read, written)


def refusal(parsed: Any, raw: str) -> Refusal:
    """An error (`WireFormat.refusal`); its type stands for a status, which a stream lacks."""
    said = error_parts(parsed, raw)
    detail = at(parsed, "error", "details", "error_code")
    # The details tell a limit on money, which no waiting cures, from one on rates.
    code = detail if isinstance(detail, str) and detail else said.code
    status = STATUS.get(said.code)
    return said._replace(code=f"{code} {status}" if status else code)


_HOLDS: Final = {
    "message_start": "message",
    "content_block_start": "content_block",
    "content_block_delta": "delta",
    "message_delta": "delta",
}
"""Event of a stream -> the field with what it says."""


def assemble(events: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The message that the events of a stream make up (`WireFormat.assemble`)."""
    message: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("error"):  # a gateway's own has no type
            return event
        kind, index = str(event.get("type")), str(event.get("index"))
        held = event.get(_HOLDS.get(kind, ""))
        told: dict[str, Any] = held if isinstance(held, dict) else {}
        if kind in _HOLDS and told is not held:
            if "content" in kind:
                return None  # a part of the text is lost
            continue
        match kind:
            case "message_start":
                message = dict(told)
                usage |= _counted(message)
            case "content_block_start":
                blocks[index] = dict(told)
            case "content_block_delta":
                if index not in blocks:
                    return None  # nobody knows where in the text it stands
                block = blocks[index]
                for name, value in told.items():
                    if name != "type" and isinstance(value, str):
                        before = block.get(name)
                        block[name] = (before if isinstance(before, str) else "") + value
            case "message_delta" if message:
                message |= told
                # Cumulative; what did not change may be left out or null.
                usage |= {n: value for n, value in _counted(event).items() if value is not None}
            case "message_stop" if message:
                return message | {"content": list(blocks.values()), "usage": usage}
    return None


def _counted(value: dict[str, Any]) -> dict[str, Any]:
    used = value.get("usage")
    return used if isinstance(used, dict) else {}


WIRE = WireFormat(
    path="/messages",
    body=body,
    read=read,
    refusal=refusal,
    assemble=assemble,
    parameters={
        "temperature": r"\btemperature\b",
        "output_config": r"output.?(?:config|format)|json.?schema|structured.?output",
    },
    # The user speaks first.
    arrangements=[one for one in ARRANGEMENTS if one[0] != "natural"],
    key_header="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
    check=check,
    batches=AnthropicBatches,
)
