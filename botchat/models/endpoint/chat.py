"""Requests and replies of chat completions: OpenAI, vLLM, Ollama and nearly all others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from botchat.interfaces import Decoding, Message, Reply
from botchat.models.endpoint.replies import (
    at,
    ended,
    joined,
    money,
    used_tokens,
)
from botchat.workspace.config import ModelSettings, public_url

PATH = "/chat/completions"
"""Where requests go, after the base URL."""

PARAMETERS = {
    name: re.compile(said, re.I)
    for name, said in {
        "max_tokens": r"\bmax_tokens\b",
        "temperature": r"\btemperature\b",
        "seed": r"\bseed\b",
    }.items()
}
"""Optional field of a request's body -> how an error names it."""

RENAMED = {"max_tokens": "max_completion_tokens"}
"""Optional field -> the name under which some endpoints want it instead."""


def identity(settings: ModelSettings) -> dict[str, Any]:
    """What decides an endpoint model's answers besides the request; free of secrets."""
    asked: dict[str, Any] = {
        "model": settings.model,
        "base_url": settings.identity or public_url(settings.base_url),
        "temperature": settings.temperature is not None,
        "layout": settings.layout,
        "system": settings.system,
        "extra": settings.extra,
    }
    # Only where they are set: ledgers made before these existed keep their keys.
    if settings.revision is not None:
        asked["revision"] = settings.revision
    if plain := {name: value for name, value in settings.headers.items() if "$" not in value}:
        asked["headers"] = plain
    return asked


def body(
    messages: Sequence[Message], decoding: Decoding, settings: ModelSettings
) -> dict[str, Any]:
    """The JSON body of a request.

    The messages are arranged already; `Decoding.max_tokens` fits into the context window. ``extra``
    of the settings is added by the caller.
    """
    made: dict[str, Any] = {"model": settings.model, "messages": list(messages)}
    if decoding.temperature is not None and settings.temperature is not None:
        made["temperature"] = decoding.temperature
    if decoding.max_tokens is not None:
        made["max_tokens"] = decoding.max_tokens
    if decoding.sample:
        # A server that caches by seed would repeat the first draw.
        made["seed"] = decoding.sample
    return made


def read(parsed: dict[str, Any], raw: str) -> Reply:
    """The reply in the body of a response with status 200; ``raw`` is the same as text.

    Any field may be missing or of another type. Raises nothing.
    """
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
        usage=used_tokens(parsed.get("usage")),
        billed_usd=money(parsed, "usage"),
        raw=raw,
    )
