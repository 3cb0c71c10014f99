"""What an endpoint's response holds: a completion, an error, a pause it asks for.

Any field may be missing, ``null`` or of another type.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from botchat.interfaces import Reply, TokenLogprobs, Usage
from botchat.records import Outcome

LONGEST_PAUSE_S = 600.0
"""Longest Retry-After that is kept; a call gives up long before, and the next run asks again."""


def read_completion(parsed: dict[str, Any], raw: str) -> Reply:
    """A chat completion (``raw``, and the same parsed) as a typed reply."""
    choices = parsed.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        detail = "the reply holds no choice with a message"
        return Reply("malformed", detail=detail, raw=raw, status=200, retry_after_s=0.0)
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else None
    text = _content(message.get("content"))
    refusal = message.get("refusal")
    outcome: Outcome = "ok"
    detail = ""
    if finish == "content_filter":
        outcome, detail = "filtered", "finish_reason content_filter"
    elif isinstance(refusal, str) and refusal.strip():
        outcome, detail, text = "refused", "refusal", refusal
    elif not text.strip():
        outcome, detail = "empty", f"no text (finish_reason {finish})"
    elif finish == "length":
        outcome, detail = "truncated", "finish_reason length"
    usage = _usage(parsed.get("usage"))
    return Reply(outcome, text, finish, usage=usage, detail=detail, raw=raw, status=200)


def token_logprobs(raw: str) -> TokenLogprobs:
    """Tokens of a completion's first choice; empty: the body ``raw`` holds no log-probabilities."""
    try:
        told = msgspec.json.decode(raw, type=_Completion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    listed = told.choices[0].logprobs if told.choices else None
    return tuple(
        # A token may be part of a character; then only its bytes are exact.
        (token.token.encode() if token.bytes is None else bytes(token.bytes), token.logprob)
        for token in (listed.content or () if listed else ())
    )


class _Token(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[Annotated[int, msgspec.Meta(ge=0, le=255)]] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


def _content(value: Any) -> str:
    """Text of a message's content: a string, or a list of parts, some of them text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _usage(value: Any) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        _count(value.get("prompt_tokens")), _count(value.get("completion_tokens")), _count(cached)
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def error_parts(parsed: Any, raw: str) -> tuple[str, str, str]:
    """Code, one-line message and parameter of an error body of any shape."""
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if isinstance(error, str):
        return "", " ".join(error.split()), ""
    if not isinstance(error, dict):
        return "", " ".join(raw[:200].split()), ""
    message = error.get("message") or error.get("detail") or ""
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    codes = (error.get("code"), error.get("type"))
    code = " ".join(str(c) for c in codes if c not in (None, ""))
    parameter = error.get("param")
    first = str(codes[0]) if codes[0] not in (None, "") else code
    return (
        first if first.isdigit() else code,
        " ".join(message.split()),
        parameter if isinstance(parameter, str) else "",
    )


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds in ``retry-after-ms`` or ``retry-after`` (number or date); 0 if there are none."""
    try:
        return _bounded(float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    value = headers.get("retry-after", "").strip()
    try:
        return _bounded(float(value))
    except ValueError:
        pass
    try:
        return _bounded(email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _bounded(seconds: float) -> float:
    # NaN compares false, so it ends as 0 too.
    return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else 0.0
