"""What an endpoint's response holds: a completion, an error, a pause it asks for.

Any field may be missing, ``null`` or of another type.
"""

from __future__ import annotations

import contextlib
import email.utils
import time
from collections.abc import Callable, Mapping
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
    message = _at(choice, "message")
    if not isinstance(message, dict):
        detail = "the reply holds no choice with a message"
        return Reply("malformed", detail=detail, raw=raw, status=200, retry_after_s=0.0)
    finish = _at(choice, "finish_reason")
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
    usage = Usage(
        _count(parsed, "prompt_tokens"),
        _count(parsed, "completion_tokens"),
        _count(parsed, "prompt_tokens_details", "cached_tokens"),
    )
    return Reply(outcome, text, finish, usage=usage, detail=detail, raw=raw, status=200)


def token_logprobs(raw: str) -> TokenLogprobs:
    """Tokens of a completion's first choice; empty: the body ``raw`` holds no log-probabilities."""
    try:
        listed = msgspec.json.decode(raw)["choices"][0]["logprobs"]["content"]
        tokens = msgspec.convert(listed, list[_Token])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, LookupError, TypeError):
        return ()
    # A token may be part of a character; then only its bytes are exact.
    return tuple(
        (token.token.encode() if token.bytes is None else bytes(token.bytes), token.logprob)
        for token in tokens
    )


class _Token(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[Annotated[int, msgspec.Meta(ge=0, le=255)]] | None = None


def _content(value: Any) -> str:
    """Text of a message's content: a string, or a list of parts, some of them text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _at(value: Any, *path: str) -> Any:
    """What is at this place of parsed JSON; ``None``: nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _count(parsed: dict[str, Any], *path: str) -> int | None:
    value = _at(parsed, "usage", *path)
    return value if isinstance(value, int) and value >= 0 else None


def error_parts(parsed: Any, raw: str) -> tuple[str, str, str]:
    """Code, one-line message and parameter of an error body of any shape."""
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else raw[:200]}
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
    ways: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("retry-after-ms", lambda value: float(value) / 1000),
        ("retry-after", float),
        ("retry-after", lambda v: email.utils.parsedate_to_datetime(v).timestamp() - time.time()),
    )
    for name, read in ways:
        with contextlib.suppress(KeyError, ValueError, TypeError, OverflowError):
            return _bounded(read(headers[name].strip()))
    return 0.0


def _bounded(seconds: float) -> float:
    # NaN compares false, so it ends as 0 too.
    return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else 0.0
