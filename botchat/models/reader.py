"""The reader of whatever a server says: completions, errors, lists of models, lines of a batch.

It is lenient in what it takes and typed in what it gives, it asks for no frame that it does not
need, and it never raises. A new layout is a branch here, with an example in
``tests/unit/test_reader.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from botchat.interfaces import Usage, token_count

_STREAM_LINE = re.compile(r"(?:data|event|id|retry):")
_LEAD = re.compile(r"(?:\s|\ufeff|:[^\n]*\n)*")
"""Leave before a JSON value: blanks, a byte order mark, comments of an event stream."""
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_PAGE = re.compile(r"\s*(?:<!doctype|<html|<head|<body|<\?xml|<h1)", re.IGNORECASE)
_REASONS = (
    *("error", "errors", "message", "msg", "error_msg", "error_message", "errorMessage"),
    *("status_msg", "detail", "base_resp", "metadata", "raw", "title", "failure", "cause"),
)
"""Keys below which the reason of an error stands."""
_CODES = ("code", "type", "status", "error_type", "error_code", "status_code", "reason")
_LONGEST_REASON = 400
_MOST_REASONS = 64


def read_json(content: bytes) -> Any:
    """Return the JSON value of a body, however it is framed; None if there is none.

    A byte order mark, comments, NaN, raw line feeds and half a surrogate do no harm; of an event
    stream the chunks are put together.
    """
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.json.decode(content)
    text = content.decode("utf-8", "replace")
    text = text[_match_length(text) :]
    with suppress(ValueError, RecursionError):
        if _STREAM_LINE.match(text):
            return _join_stream(text)
        # What stands behind the value, such as "data: [DONE]", is no part of it.
        return json.JSONDecoder(strict=False).raw_decode(text)[0]
    return None


def _match_length(text: str) -> int:
    match = _LEAD.match(text)
    return match.end() if match else 0


def _join_stream(text: str) -> Any:
    """Return the whole object of an event stream: its last one, or its chunks put together."""
    chunks = []
    for line in text.splitlines():
        if line.startswith("data:") and line[5:].strip() not in ("", "[DONE]"):
            chunks.append(json.loads(line[5:], strict=False))
    whole: dict[str, Any] = {}
    texts: dict[str, str] = {}
    finish: Any = None
    for chunk in chunks:
        if not isinstance(chunk, dict) or json_get(chunk, "error"):
            return chunk
        whole |= {key: value for key, value in chunk.items() if value is not None}
        choice = first_choice(chunk)
        if "message" in choice:
            return chunk
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta")
        for key, value in delta.items() if isinstance(delta, dict) else ():
            if isinstance(value, str) and key != "role":
                texts[key] = texts.get(key, "") + value
    if not whole:
        return None
    message = {"role": "assistant", "content": None, **texts}
    return whole | {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def json_get(value: Any, *path: str) -> Any:
    """Return the value at this place of parsed JSON; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def first_choice(parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the choice of a completion with the index 0, or without any; empty if none is."""
    choices = parsed.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and str(choice.get("index", 0)) in ("0", "0.0", "None"):
            return choice
    return {}


def whole_text(text: str) -> str:
    """Return valid Unicode: pairs of surrogates are joined, and half a pair is U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --------------------------------------------------------------------------------- completions


class Completion(NamedTuple):
    """A chat completion; any field may have been missing, null or of another type."""

    text: str | None
    """Visible text, with marks of reasoning if it has any; None if there is no message."""
    refusal: str = ""
    """The model's own field for a refusal."""
    finish: str | None = None
    """Reason of the end; None if the field is missing, ``"null"`` if it is null."""
    native_finish: str = ""
    """Reason in the words of the provider behind a router."""
    reasons: bool = False
    """Whether a field or a part beside the text holds reasoning."""
    blocked: bool = False
    """Whether a filter says that it blocked the reply."""
    usage: Usage = Usage()
    reasoning_tokens: int = 0
    is_counted_empty: bool = False
    """Whether the endpoint says that it generated no token."""
    reported_usd: float | None = None
    """Cost in USD as a router reports it."""
    model: str = ""


def read_completion(parsed: Mapping[str, Any]) -> Completion:
    """Read a chat completion."""
    choice = first_choice(parsed)
    usage = parsed.get("usage")
    message = choice.get("message")
    refusal = json_get(message, "refusal")
    finish = None
    if "finish_reason" in choice:
        finish = str(choice["finish_reason"] or "null")
    reasoning = token_count(
        _whole(json_get(usage, "completion_tokens_details", "reasoning_tokens"))
    )
    if reasoning is None:
        reasoning = token_count(_whole(json_get(usage, "reasoning_tokens")))
    model = parsed.get("model")
    return Completion(
        text=_content(message),
        refusal=refusal if isinstance(refusal, str) else "",
        finish=finish,
        native_finish=str(choice.get("native_finish_reason") or ""),
        reasons=_has_reasoning(message),
        blocked=_is_blocked(parsed, choice),
        usage=token_usage(usage),
        reasoning_tokens=reasoning or 0,
        is_counted_empty=json_get(usage, "completion_tokens") == 0,
        reported_usd=reported_cost(usage),
        model=model if isinstance(model, str) else "",
    )


def _content(message: Any) -> str | None:
    """Return a message's text, a string or a list of parts; None if it is neither."""
    if not isinstance(message, dict):
        return None
    content = message.get("content") or ""
    if isinstance(content, str):
        return whole_text(content)
    if not isinstance(content, list):
        return None
    texts = []
    for part in content:
        if not isinstance(part, dict):
            return None
        if part.get("type", "text") not in ("text", "output_text"):
            continue  # reasoning, or what is no text
        text = part.get("text", "")
        if not isinstance(text, str):
            return None
        texts.append(whole_text(text))
    return "".join(texts)


def _has_reasoning(message: Any) -> bool:
    """Return whether a message has reasoning beside its text."""
    fields = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thoughts")
    if any(json_get(message, field) for field in fields):
        return True
    content = json_get(message, "content")
    if not isinstance(content, list):
        return False
    kinds = [str(json_get(part, "type")) for part in content]
    return any("think" in kind or "reason" in kind for kind in kinds)


def _is_blocked(parsed: Mapping[str, Any], choice: Mapping[str, Any]) -> bool:
    """Return whether a filter's own field says that it blocked prompt or reply."""
    if json_get(parsed, "promptFeedback", "blockReason") is not None:
        return True
    results = [choice.get("content_filter_results"), parsed.get("prompt_filter_results")]
    return '"filtered":true' in msgspec.json.encode(results).decode()


def reasoning_tokens(raw: str) -> int:
    """Return the tokens of reasoning that a stored body tells; 0 if it tells none."""
    parsed = read_json(raw.encode("utf-8", "surrogatepass"))
    if not isinstance(parsed, dict):
        return 0
    return read_completion(parsed).reasoning_tokens


def token_usage(usage: Any) -> Usage:
    """Read the tokens that the endpoint counted; an impossible count is unknown."""
    n_prompt = token_count(_whole(json_get(usage, "prompt_tokens")))
    n_reply = token_count(_whole(json_get(usage, "completion_tokens")))
    total = token_count(_whole(json_get(usage, "total_tokens")))
    cached = token_count(_whole(json_get(usage, "prompt_tokens_details", "cached_tokens")))
    if cached is None:
        cached = token_count(_whole(json_get(usage, "prompt_cache_hit_tokens")))
    if not n_prompt:  # no prompt is empty: a server that counts zero tokens counts none
        return Usage(None, n_reply or None, cached)
    if total is not None:
        # Some providers count reasoning in the total only; they bill it as completion.
        n_reply = max(n_reply or 0, total - n_prompt)
    if cached is not None:
        cached = min(cached, n_prompt)
    return Usage(n_prompt, n_reply, cached)


def _whole(number: Any) -> Any:
    """Return a number without its fraction, where that is zero."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number


def reported_cost(usage: Any) -> float | None:
    """Read the USD in a router's field ``cost``; None if it reports none."""
    cost = json_get(usage, "cost")
    if isinstance(cost, dict):
        cost = cost.get("total_cost")
    is_fee = json_get(usage, "is_byok") is True  # the router's own fee only
    if is_fee or isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < 1e9 else None


# ------------------------------------------------------------------------------------- errors


class ErrorBody(NamedTuple):
    """An error, wherever its parts stand in a body."""

    message: str
    """The deepest reason, in one line; of a web page its title."""
    code: str = ""
    """All codes and types, joined by blanks."""
    text: str = ""
    """All reasons, joined by blanks."""
    parameter: str = ""
    """Parameter that it names."""
    is_json: bool = False
    is_page: bool = False
    """Whether it is a web page."""
    window: int | None = None
    """Context window in tokens, in a field of its own."""
    prompt_tokens: int | None = None
    """Tokens of the prompt, in a field of its own."""
    wait_s: float = 0.0
    """Seconds to wait, in a field of its own."""


class _Parts:
    """Parts of an error, as they are found on the way down."""

    def __init__(self) -> None:
        self.reasons: list[tuple[int, str]] = []
        """Depth and text of each reason."""
        self.codes: list[str] = []
        self.parameter = ""
        self.numbers: dict[str, Any] = {}

    def walk(self, value: Any, depth: int) -> None:
        """Take in a value; its depth decides which reason is the deepest."""
        if len(self.reasons) > _MOST_REASONS or depth > _MOST_REASONS:
            return
        if isinstance(value, str):
            self._walk_text(value, depth)
        elif isinstance(value, list):
            for item in value:
                self.walk(item, depth + 1)
        elif isinstance(value, dict):
            self._walk_object(value, depth)

    def _walk_text(self, text: str, depth: int) -> None:
        if text.lstrip()[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                self.walk(json.loads(text, strict=False), depth + 1)
                return
        if text.strip():
            self.reasons.append((depth, _page_title(text) or " ".join(text.split())))

    def _walk_object(self, value: Mapping[str, Any], depth: int) -> None:
        for key in _CODES:
            code = value.get(key)
            if isinstance(code, str | int) and not isinstance(code, bool) and code != "":
                self.codes.append(str(code))
        parameter = value.get("param")
        location = value.get("loc")
        if isinstance(location, list) and location:  # pydantic's
            parameter = location[-1]
            if isinstance(value.get("msg"), str):
                self.reasons.append((depth + 1, f"{parameter}: {value['msg']}"))
        elif isinstance(parameter, str):
            parameter = parameter.split(".")[0]
        if isinstance(parameter, str) and parameter:
            self.parameter = self.parameter or parameter
        for key, number in value.items():
            if isinstance(number, int | float | str):
                self.numbers.setdefault(key, number)
            elif isinstance(number, list):
                self._walk_details(number)
        for key in _REASONS:
            if key in value and not (key == "msg" and location):
                self.walk(value[key], depth + 1)

    def _walk_details(self, details: Sequence[Any]) -> None:
        for detail in details:  # Google's, with "retryDelay"
            if isinstance(detail, dict):
                self.numbers |= {k: v for k, v in detail.items() if isinstance(v, str)}


def read_error(content: bytes, parsed: Any = None) -> ErrorBody:
    """Read an error from a body, whose JSON value is ``parsed`` if that is known."""
    text = content[:100_000].decode("utf-8", "replace")
    if parsed is None:
        parsed = read_json(content)
    if not isinstance(parsed, dict | list):
        reason = parsed if isinstance(parsed, str) else text
        line = _page_title(reason) or " ".join(reason.split())[:200]
        return ErrorBody(line, text=line, is_page=_PAGE.match(text) is not None)
    parts = _Parts()
    parts.walk(parsed, 0)
    if isinstance(parsed, dict):
        # A filter's or a gateway's own field in the place of a choice.
        parts.walk(first_choice(parsed).get("error"), 1)
    message = max(parts.reasons, key=lambda reason: reason[0], default=(0, ""))[1]
    if not message:
        message = " ".join(text.split())[:200]
    known = [" ".join(reason for _, reason in parts.reasons)]
    return ErrorBody(
        message=message[:_LONGEST_REASON],
        code=" ".join(parts.codes),
        text=" ".join(known),
        parameter=parts.parameter,
        is_json=True,
        window=_first_count(parts.numbers, ("n_ctx", "max_context_length", "context_window")),
        prompt_tokens=_first_count(parts.numbers, ("n_prompt_tokens", "prompt_tokens")),
        wait_s=_wait_in_fields(parts.numbers),
    )


def has_error(parsed: Any) -> bool:
    """Return whether a body of status 200 is an error: it says so, or has nothing of an answer."""
    if isinstance(parsed, list):
        parsed = parsed[0] if len(parsed) == 1 else None
    if not isinstance(parsed, dict):
        return False
    if parsed.get("error") or first_choice(parsed).get("error"):
        return True
    return "choices" not in parsed and not parsed.get("promptFeedback")


def _page_title(text: str) -> str:
    """Return the title of a web page, or that it is one; empty if it is none."""
    if not _PAGE.match(text):
        return ""
    title = _TITLE.search(text)
    words = " ".join(title[1].split()) if title else ""
    return f"a web page: {words[:120]}" if words else "a web page"


def _first_count(numbers: Mapping[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        count = token_count(_whole(numbers.get(name)))
        if count:
            return count
    return None


# -------------------------------------------------------------------------------------- waits

_WAIT = re.compile(
    r"(?:retry|again|wait|reset|available)[^\d\n]{0,40}?((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|"
    r"secs?|seconds?|m|mins?|minutes?|h|hours?)\b\s*(?:and\s*)?)+|(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s\b)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|s|m|h)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_in(text: str) -> float:
    """Return the seconds that a text asks to wait; 0 if it names none."""
    match = _WAIT.search(text)
    return _duration(match[1]) if match else 0.0


def _duration(text: str) -> float:
    """Return the seconds of a text such as ``1m30.5s`` or ``20 seconds``."""
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(text))


def _wait_in_fields(numbers: Mapping[str, Any]) -> float:
    """Return the seconds that a field of an error asks to wait; 0 if none does."""
    for name, value in numbers.items():
        words = name.lower().replace("-", "_")
        is_wait = words in ("retrydelay", "retry_delay", "estimated_time") or "retry_after" in words
        if not is_wait or isinstance(value, bool):
            continue
        if isinstance(value, str):
            seconds = _duration(value) or _number(value)
        else:
            seconds = float(value)
        if seconds > 0:
            return seconds / 1000 if words.endswith("_ms") else seconds
    return 0.0


def _number(text: str) -> float:
    with suppress(ValueError):
        return float(text)
    return 0.0


# ------------------------------------------------------------------------------ lists of models


class ServedModel(NamedTuple):
    """A row of a server's list of models; prices in USD per million tokens."""

    id: str
    window: int | None = None
    price_input: float | None = None
    price_output: float | None = None


_WINDOWS = (
    *("max_model_len", "context_length", "context_window", "max_context_length"),
    *("max_input_tokens", "max_sequence_length", "n_ctx"),
)


def read_models(content: bytes) -> list[ServedModel]:
    """Read a list of models, under ``data`` or ``models`` or bare; rows that name none are left."""
    parsed = read_json(content)
    if isinstance(parsed, dict):
        parsed = parsed.get("data") or parsed.get("models")
    models = []
    for row in parsed if isinstance(parsed, list) else ():
        name = row if isinstance(row, str) else json_get(row, "id") or json_get(row, "name")
        if isinstance(name, str) and name.strip():
            models.append(_served_model(name, row))
    return models


def _served_model(name: str, row: Any) -> ServedModel:
    sizes = [json_get(row, "meta", "n_ctx"), json_get(row, "top_provider", "context_length")]
    sizes += [json_get(row, key) for key in _WINDOWS]
    window = None
    for size in sizes:
        count = token_count(_whole(size))
        if count is not None and count >= 256:  # a smaller one is a mistake
            window = count
            break
    prices = json_get(row, "pricing")
    return ServedModel(
        name,
        window,
        _price(prices, ("prompt", "input")),
        _price(prices, ("completion", "output")),
    )


def _price(prices: Any, names: Sequence[str]) -> float | None:
    """Return USD per million tokens.

    A text is per token (OpenRouter), a number above a thousandth is per million (Together).
    """
    for name in names:
        value = json_get(prices, name)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        with suppress(ValueError):
            price = float(value)
            if not 0 <= price < 1e6:
                return None
            per_token = isinstance(value, str) or price < 1e-3
            return round(price * 1e6, 6) if per_token else price
    return None


# ---------------------------------------------------------------------------------- the Batch API


class BatchLine(NamedTuple):
    """A line of a batch's output: the answer to one request."""

    key: str
    """Value of ``custom_id``."""
    status: int
    body: bytes


def read_batch_lines(content: bytes) -> Iterator[BatchLine]:
    """Yield the lines of a batch's output or error file that name a request.

    What has no status counts as 200 with a body, and else as a 500 with the line's own error.
    """
    for line in content.splitlines():
        parsed = read_json(line) if line.strip() else None
        key = json_get(parsed, "custom_id")
        if not isinstance(key, str):
            continue
        response = json_get(parsed, "response")
        body = json_get(response, "body")
        status = token_count(_whole(json_get(response, "status_code")))
        if isinstance(body, str):
            content_ = body.encode("utf-8", "surrogatepass")
        elif isinstance(body, dict | list):
            content_ = json.dumps(body).encode("utf-8", "surrogatepass")
        else:
            content_ = json.dumps({"error": json_get(parsed, "error") or response}).encode()
            status = status or 500
        yield BatchLine(key, status or 200, content_)


class BatchState(NamedTuple):
    """A batch as the endpoint describes it."""

    id: str
    status: str
    """State in small letters."""
    name: str = ""
    """The file's name in its metadata; empty where the server keeps none."""
    files: tuple[str, ...] = ()
    """Ids of its output and error files."""
    faults: tuple[str, ...] = ()
    """Reasons why it was refused."""
    n_done: int | None = None
    n_requests: int | None = None


class BatchPage(NamedTuple):
    """A page of the list of batches."""

    batches: list[BatchState]
    has_more: bool


def read_batch(parsed: Any) -> BatchState | None:
    """Read a batch; None if it has no id."""
    name = json_get(parsed, "metadata", "botchat")
    batch_id = json_get(parsed, "id")
    if not isinstance(batch_id, str) or not batch_id:
        return None
    files = [json_get(parsed, key) for key in ("output_file_id", "error_file_id")]
    faults = json_get(parsed, "errors", "data")
    messages = [json_get(fault, "message") for fault in faults] if isinstance(faults, list) else []
    return BatchState(
        id=batch_id,
        status=str(json_get(parsed, "status") or "").lower(),
        name=name if isinstance(name, str) else "",
        files=tuple([file for file in files if isinstance(file, str) and file]),
        faults=tuple(
            [" ".join(message.split()) for message in messages if isinstance(message, str)]
        ),
        n_done=token_count(_whole(json_get(parsed, "request_counts", "completed"))),
        n_requests=token_count(_whole(json_get(parsed, "request_counts", "total"))),
    )


def read_batches(content: bytes) -> BatchPage:
    """Read a page of the list of batches."""
    parsed = read_json(content)
    rows = parsed if isinstance(parsed, list) else json_get(parsed, "data")
    batches = []
    for row in rows if isinstance(rows, list) else ():
        batch = read_batch(row)
        if batch is not None:
            batches.append(batch)
    return BatchPage(batches, json_get(parsed, "has_more") is True)
