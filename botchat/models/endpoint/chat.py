"""The wire format ``chat``: chat completions of OpenAI, vLLM, Ollama and most other servers."""

from __future__ import annotations

from collections.abc import Sequence
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


def body(
    messages: Sequence[Message], decoding: Decoding, settings: ModelSettings
) -> dict[str, Any]:
    """The request (`WireFormat.body`)."""
    made: dict[str, Any] = {"model": settings.model, "messages": list(messages)}
    if decoding.temperature is not None and settings.temperature is not None:
        made["temperature"] = decoding.temperature
    if decoding.max_tokens is not None:
        made["max_tokens"] = decoding.max_tokens
    if decoding.sample:
        # A server that caches by seed would repeat the first draw.
        made["seed"] = decoding.sample
    if decoding.schema is not None:
        form = {"name": "reply", "strict": True, "schema": decoding.schema}
        made["response_format"] = {"type": "json_schema", "json_schema": form}
    if decoding.logprobs is not None:
        made["logprobs"] = True
    if decoding.logprobs:
        made["top_logprobs"] = decoding.logprobs
    if settings.stream:
        made["stream_options"] = {"include_usage": True}
    return made


def read(parsed: dict[str, Any], raw: str) -> Reply:
    """A chat completion (`WireFormat.read`)."""
    choices = parsed.get("choices")
    listed = choices if isinstance(choices, list) else []
    choice = next((one for one in listed if at(one, "index") in (0, None)), None)
    message = at(choice, "message")
    # A reply whose end is told as null has not ended; many servers leave the field out.
    finish = "null" if choice and choice.get("finish_reason", "") is None else None
    finish = finish or at(choice, "finish_reason")
    refusal = at(message, "refusal")
    # A completion of no choices is how some providers say that they filtered them all.
    filtered = choices == [] or at(parsed, "promptFeedback", "blockReason") is not None
    return ended(
        joined(at(message, "content")) if isinstance(message, dict) else None,
        "content_filter" if filtered else finish if isinstance(finish, str) else None,
        also=at(choice, "native_finish_reason"),
        refusal=refusal if isinstance(refusal, str) else "",
        usage=used_tokens(parsed.get("usage"), "prompt", "completion"),
        billed_usd=money(parsed, "usage"),
        tier=at(parsed, "service_tier"),
        raw=raw,
    )


def assemble(events: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The completion that the chunks of a stream make up (`WireFormat.assemble`)."""
    whole: dict[str, Any] = {}
    said: dict[str, list[str]] = {"content": []}
    choice: dict[str, Any] = {}
    listed: list[Any] = []
    for event in events:
        if event.get("error"):
            return event
        whole |= {name: value for name, value in event.items() if value is not None}
        chunks = event.get("choices")
        for chunk in chunks if isinstance(chunks, list) else ():
            if not isinstance(chunk, dict) or chunk.get("index") not in (0, None):
                continue
            delta = chunk.get("delta")
            for name, value in delta.items() if isinstance(delta, dict) else ():
                text = joined(value) if name == "content" else value
                if name == "content" and text is None:
                    return None  # a part of the text is lost
                if isinstance(text, str) and text and name != "role":
                    said.setdefault(name, []).append(text)
            tokens = at(chunk, "logprobs", "content")
            listed += tokens if isinstance(tokens, list) else []
            # A later chunk may repeat a field and say nothing in it.
            choice |= {n: v for n, v in chunk.items() if n not in ("delta", "logprobs") and v}
    if not choice.get("finish_reason"):
        return None
    if any(said.values()) or not isinstance(choice.get("message"), dict):
        message = {name: "".join(texts) for name, texts in said.items()}
        choice["message"] = {"role": "assistant", **message}
    if listed:
        choice["logprobs"] = {"content": listed}
    return whole | {"object": "chat.completion", "choices": [choice]}


WIRE = WireFormat(
    path="/chat/completions",
    body=body,
    read=read,
    refusal=error_parts,
    assemble=assemble,
    parameters={
        "max_tokens": r"\bmax_tokens\b",
        "temperature": r"\btemperature\b",
        "seed": r"\bseed\b",
        "logprobs": r"\blogprobs\b",
        "top_logprobs": r"\btop_logprobs\b",
        "response_format": r"response.?format|json.?schema|structured.?output",
        "stream_options": r"\bstream_options\b",
    },
    renamed={"max_tokens": "max_completion_tokens"},
    needs={"top_logprobs": "logprobs"},
    token_logprobs=token_logprobs(lambda parsed: parsed["choices"][0]["logprobs"]["content"]),
    batches=BatchEndpoint,
)
