"""The reader of whatever a server says: completions, errors, lists of models, lines of a batch.

It is lenient in what it takes and typed in what it gives, and asks for no frame that it does not
need. Names of fields are data, in ``fields.toml``; a new layout has an example in
``tests/integration/test_doors.py``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import unescape
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from botchat.interfaces import Reply, Usage, token_count, visible
from botchat.records import Outcome
from botchat.thoughts import strip_thoughts

_FIELDS: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("fields.toml").read_text("utf-8")
)
_ENDS: dict[str, Outcome] = {
    reason: outcome for outcome, reasons in _FIELDS["finish"].items() for reason in reasons
}
_LEAD = re.compile(r"(?:\s|\ufeff|:[^\n]*\n)*")
"""Leave before a JSON value: blanks, a byte order mark, comments of an event stream."""
_PAGE = re.compile(r"<(?:!doctype|html|head|body|\?xml|h1|center|pre|title)\b", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1|message|pre)\b[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_NUMBER = r"(?:\d+(?:\.\d+)?|\bone|\ba)"
_UNITS = _FIELDS["units"]
_SPAN = (
    rf"((?:{_NUMBER}\s*(?:{'|'.join(_UNITS)})(?![a-z])\s*(?:and\s*)?)+"
    r"|(?:\d+[hm])*\d+(?:\.\d+)?s\b)"
)
_WAITS = [
    re.compile(pattern.replace("SPAN", _SPAN).replace("NUMBER", _NUMBER), re.IGNORECASE)
    for pattern in _FIELDS["wait_words"]
]
_PART = re.compile(rf"({_NUMBER})\s*({'|'.join(_UNITS)})?(?![a-z])", re.IGNORECASE)
_LONGEST = 400
"""Characters of a reason."""
_DEEPEST = 40
"""Levels of a body that are looked through."""
SMALLEST_WINDOW = 256
"""Tokens; a smaller window that an endpoint names is a mistake of it."""


def read_json(content: bytes | str) -> Any:
    """Return the JSON value of a body, however it is framed; None if there is none.

    A byte order mark, comments, NaN, raw line feeds and half a surrogate do no harm; of an event
    stream the chunks are put together.
    """
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.json.decode(content)
    text = content
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "replace")
    text = _LEAD.sub("", text, count=1)
    if re.match(r"(?:data|event|id|retry):", text):
        return _join_chunks(_events(text))
    value = _first_value(text)
    return _join_chunks(text.splitlines()) if "delta" in first_choice(value) else value


def _first_value(text: str) -> Any:
    """Return the JSON value at the beginning of a text; None if there is none."""
    with suppress(ValueError, RecursionError):
        # What stands behind it, such as "data: [DONE]", is no part of it.
        return json.JSONDecoder(strict=False).raw_decode(text)[0]
    return None


def _events(text: str) -> list[str]:
    """Return the data of each event of a stream."""
    events = []
    for event in re.split(r"(?:\r\n|\r|\n){2,}", text):
        lines = re.split(r"[\r\n]+", event)
        data = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
        events.append("\n".join(data))
    return events


def _join_chunks(events: Iterable[str]) -> Any:
    """Return the whole object of a stream: its last one, or its chunks put together."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {}
    finish: Any = "aborted"  # half a sentence, unless the stream says that it ended
    for event in events:
        chunk = _first_value(event)
        if event == "[DONE]" and finish == "aborted":
            finish = None
        choice = first_choice(chunk)
        if isinstance(chunk, list) or "message" in choice or json_get(chunk, "error"):
            return chunk
        if isinstance(chunk, dict):
            whole |= {key: value for key, value in chunk.items() if value not in (None, [])}
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta")
        for key, value in delta.items() if isinstance(delta, dict) else ():
            text = _content(delta) if isinstance(value, list) else value
            if isinstance(text, str):
                message[key] = message.get(key, "") + text
    if message:
        whole["choices"] = [{"message": message, "finish_reason": finish}]
    return whole or None


def json_get(value: Any, path: str) -> Any:
    """Return the value at a path of names with dots in parsed JSON; None if there is none."""
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def first_choice(parsed: Any) -> Mapping[str, Any]:
    """Return the choice of a completion with the index 0, or without any; empty if none is."""
    choices = json_get(parsed, "choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and str(choice.get("index", 0)) in ("0", "0.0", "None"):
            return choice
    return {}


class Leaf(NamedTuple):
    """A text or a number somewhere in parsed JSON."""

    depth: int
    key: str
    """Name in small letters, words joined by ``_``; of a list's item the list's."""
    value: str | float


def leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[Leaf]:
    """Yield all texts and numbers of parsed JSON, also of JSON within a text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        inner = read_json(value)
        value = value if inner is None else inner
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield Leaf(depth, re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key).lower(), value)
    elif isinstance(value, dict) and depth < _DEEPEST:
        for name, each in value.items():
            yield from leaves(each, str(name), depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for each in value:
            yield from leaves(each, key, depth + 1)


def _named(body: Iterable[Leaf], field: str) -> Iterator[Leaf]:
    """Yield the leaves whose names stand in a list of ``fields.toml``."""
    return (leaf for leaf in body if leaf.key in _FIELDS[field])


def _first_count(body: Iterable[Leaf], field: str) -> int | None:
    """Return the first number of tokens with a name of ``fields.toml``; None if there is none."""
    for leaf in _named(body, field):
        count = _count(leaf.value)
        if count:
            return count
    return None


def _count(number: Any) -> int | None:
    """Return a number of tokens; None if it cannot be one."""
    if isinstance(number, float) and number.is_integer():
        return token_count(int(number))
    return token_count(number)


# --------------------------------------------------------------------------------- completions


class Completion(NamedTuple):
    """A chat completion; any field may have been missing, null or of another type."""

    reply: Reply
    is_cut: bool
    """Whether it ended at the limit of tokens."""
    has_reasoning: bool
    """Whether it holds reasoning, in a field, a part, a count, or between marks."""
    is_counted_empty: bool
    """Whether the endpoint says that it generated no token."""
    is_end_known: bool


def read_completion(parsed: Mapping[str, Any]) -> Completion:
    """Read a chat completion."""
    choice = first_choice(parsed)
    message = choice.get("message")
    usage = parsed.get("usage")
    model = parsed.get("model")
    text = _content(message)
    finish = None
    if "finish_reason" in choice:
        finish = str(choice["finish_reason"] or "null")
    end = _end(finish or "stop")
    ends = (end, _end(str(choice.get("native_finish_reason"))))
    refusal = str(json_get(message, "refusal") or "").strip()
    visible_text = strip_thoughts(text or "")
    outcome: Outcome = "truncated" if "truncated" in ends else "ok"
    if _is_blocked(parsed, choice) or "filtered" in ends:
        outcome = "filtered"
    elif refusal or "refused" in ends:
        outcome = "refused"
    elif text is None or "malformed" in ends:
        outcome = "malformed"
    elif not visible(visible_text):
        outcome = "empty"
    details: dict[Outcome, str] = {
        "ok": "" if end else f"unknown finish_reason {finish}",
        "refused": "refusal",
        "empty": f"no text (finish_reason {finish})",
    }
    detail = details.get(outcome, f"finish_reason {finish}")
    if text is None and outcome == "malformed":
        detail = f"no choice with a message (it has {', '.join(sorted(parsed))[:120]})"
    reply = Reply(
        outcome,
        refusal or text or "",
        finish,
        token_usage(usage),
        cost_usd=reported_cost(usage),
        detail=detail,
        model=model if isinstance(model, str) else "",
    )
    is_marked = visible_text != (text or "").strip()
    has_reasoning = is_marked or _has_reasoning(message) or _reasoning_count(usage) > 0
    is_counted_empty = json_get(usage, "completion_tokens") == 0
    return Completion(reply, "truncated" in ends, has_reasoning, is_counted_empty, end is not None)


def _end(reason: str) -> Outcome | None:
    """Return the outcome of a finish reason; None if it is unknown."""
    return _ENDS.get(re.sub(r"[^a-z]", "", reason.lower().rpartition(".")[2]))


def _is_blocked(parsed: Mapping[str, Any], choice: Mapping[str, Any]) -> bool:
    """Return whether a filter's own field says that it blocked prompt or reply."""
    filters = [choice.get("content_filter_results"), parsed.get("prompt_filter_results")]
    is_flagged = b'"filtered":true' in msgspec.json.encode(filters)
    return is_flagged or json_get(parsed, "promptFeedback.blockReason") is not None


def _content(message: Any) -> str | None:
    """Return a message's text, a string or a list of parts; None if it is neither."""
    content = json_get(message, "content")
    if not isinstance(message, dict) or not isinstance(content, str | list | None):
        return None
    if not isinstance(content, list):
        content = [content or ""]
    texts = []
    for part in content:
        text = part
        if isinstance(part, dict):
            if part.get("type", "text") not in ("text", "output_text"):
                continue  # reasoning, or what is no text
            text = part.get("text", "")
        if not isinstance(text, str):
            return None
        # Pairs of surrogates are joined, and half a pair is U+FFFD.
        texts.append(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return "".join(texts)


def _has_reasoning(message: Any) -> bool:
    """Return whether a message has reasoning beside its text."""
    if any(json_get(message, field) for field in _FIELDS["reasoning"]):
        return True
    content = json_get(message, "content")
    parts = content if isinstance(content, list) else []
    return any(re.search("think|reason", str(json_get(part, "type"))) for part in parts)


def token_usage(usage: Any) -> Usage:
    """Read the tokens that the endpoint counted; an impossible count is unknown."""
    n_prompt = _count(json_get(usage, "prompt_tokens"))
    n_reply = _count(json_get(usage, "completion_tokens"))
    total = _count(json_get(usage, "total_tokens"))
    cached = _count(json_get(usage, "prompt_tokens_details.cached_tokens"))
    if cached is None:
        cached = _count(json_get(usage, "prompt_cache_hit_tokens"))
    if not n_prompt:  # no prompt is empty: a server that counts zero tokens counts none
        return Usage(None, n_reply or None, cached)
    if total is not None:
        # Some providers count reasoning in the total only; they bill it as completion.
        n_reply = max(n_reply or 0, total - n_prompt)
    if cached is not None:
        cached = min(cached, n_prompt)
    return Usage(n_prompt, n_reply, cached)


def reported_cost(usage: Any) -> float | None:
    """Read the USD in a router's field ``cost``; None if it reports none."""
    cost = json_get(usage, "cost")
    if isinstance(cost, dict):
        cost = cost.get("total_cost")
    is_fee = json_get(usage, "is_byok") is True  # the router's own fee only
    if is_fee or isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < 1e9 else None


def reasoning_tokens(raw: str) -> int:
    """Return the tokens of reasoning that a stored body tells; 0 if it tells none."""
    return _reasoning_count(json_get(read_json(raw), "usage"))


def _reasoning_count(usage: Any) -> int:
    return _first_count(leaves(usage), "reasoning_tokens") or 0


# ------------------------------------------------------------------------------------- errors


class ErrorBody(NamedTuple):
    """An error, wherever its parts stand in a body."""

    message: str
    """The deepest reason, in one line; of a web page its title."""
    text: str
    """All reasons, joined by blanks."""
    code: str = ""
    """All codes and types, joined by blanks."""
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
    """Seconds to wait, in a field or in words."""


def read_error(content: bytes) -> ErrorBody:
    """Read an error from a body."""
    parsed = read_json(content)
    text = content[:100_000].decode("utf-8", "replace")
    is_json = isinstance(parsed, dict | list)
    if not is_json:
        line = _reason(parsed if isinstance(parsed, str) else text)
        return ErrorBody(line, line, is_page=bool(_PAGE.search(text)), wait_s=seconds_in(line))
    body = list(leaves(parsed))
    reasons = [leaf for leaf in _named(body, "reasons") if str(leaf.value).strip()]
    message = _reason(text)
    if reasons:
        deepest = max(reasons, key=lambda leaf: (leaf.depth, leaf.key not in _FIELDS["names"]))
        message = _reason(str(deepest.value))
    parameter = ""
    for leaf in _named(body, "parameters"):  # the last one of a path
        parameter = str(leaf.value).split(".")[0]
    if parameter and parameter not in message:
        message = f"{parameter}: {message}"
    reasons_text = "\n".join([message, *[str(leaf.value) for leaf in reasons[1:]]])
    waits = [_wait_of(leaf) for leaf in _named(body, "waits")]
    return ErrorBody(
        message,
        reasons_text,
        code=" ".join([str(leaf.value) for leaf in _named(body, "codes")]),
        parameter=parameter,
        is_json=True,
        window=_first_count(body, "windows"),
        prompt_tokens=_first_count(body, "prompt_tokens"),
        wait_s=max([seconds_in(reasons_text), *waits]),
    )


def has_error(parsed: Any) -> bool:
    """Return whether a body of status 200 is an error: it says so, or has nothing of an answer."""
    if isinstance(parsed, list):  # Google wraps it
        return any(json_get(part, "error") for part in parsed)
    if not isinstance(parsed, dict):
        return False
    if parsed.get("error") or first_choice(parsed).get("error"):
        return True
    if parsed.get("choices"):
        return False
    has_reason = any(_named(leaves(parsed), "reasons"))
    return has_reason or ("choices" not in parsed and "promptFeedback" not in parsed)


def _reason(text: str) -> str:
    """Return a text in one line; of a web page, that it is one, and its title."""
    page = _PAGE.search(text)
    if page is not None:
        title = _TITLE.search(text)
        words = title[2] if title else re.sub(r"<[^>]*>", " ", text[page.start() :])
        before = re.sub(r"\ufeff|<!--.*?-->", "", text[: page.start()], flags=re.DOTALL)
        text = f"{before} a web page: {unescape(words)}"
    return " ".join(text.split())[:_LONGEST]


def seconds_in(text: str) -> float:
    """Return the seconds that a text asks to wait; 0 if it names none."""
    for pattern in _WAITS:
        match = pattern.search(text)
        if match is not None:
            return _duration(match[1])
    return 0.0


def _duration(text: str) -> float:
    """Return the seconds of a text such as ``1m30.5s``, ``20 seconds`` or ``7``."""
    seconds = 0.0
    for number, unit in _PART.findall(text):
        value = 1.0 if number.isalpha() else float(number)
        seconds += value * _UNITS.get(unit.lower(), 1.0)
    return seconds


def _wait_of(leaf: Leaf) -> float:
    text = str(leaf.value)
    seconds = 0.0 if text.startswith("-") else _duration(text)
    return seconds / 1000 if leaf.key.endswith("_ms") else seconds


# ------------------------------------------------------------------- lists of models, batches


class ServedModel(NamedTuple):
    """A row of a server's list of models; prices in USD per million tokens."""

    id: str
    window: int | None
    price_input: float | None
    price_output: float | None


def read_models(content: bytes) -> list[ServedModel]:
    """Read a list of models, in a field or bare; rows that name none are left."""
    parsed = read_json(content)
    rows = parsed
    for field in ("result", "models", "data"):  # llama.cpp has the facts in the last
        rows = json_get(parsed, field) or rows
    if rows is not parsed and isinstance(rows, dict):  # of facts by name
        rows = [{"id": name, **facts} for name, facts in rows.items() if isinstance(facts, dict)]
    models = []
    for row in rows if isinstance(rows, list) else ():
        name = row if isinstance(row, str) else json_get(row, "id") or json_get(row, "name")
        label = json_get(row, "name")
        if isinstance(label, str) and "/" in label and "/" not in str(name):
            name = label  # the id is a number of the provider's own
        if isinstance(name, str) and name.strip():
            # A provider behind a router may have less than the model.
            counts = [_count(leaf.value) or 0 for leaf in _named(leaves(row), "windows")]
            window = min([count for count in counts if count >= SMALLEST_WINDOW], default=None)
            price_input = _price(row, "price_input")
            models.append(ServedModel(name, window, price_input, _price(row, "price_output")))
    return models


def _price(row: Any, field: str) -> float | None:
    """Return USD per million tokens.

    A text is per token (OpenRouter), a number above a thousandth is per million (Together).
    """
    prices = json_get(row, "pricing") or json_get(row, "metadata.pricing")
    per_token = [leaf for leaf in leaves(row) if leaf.key.endswith("_per_token")]
    for leaf in _named([*leaves(prices), *per_token], field):
        with suppress(ValueError):
            price = float(leaf.value)
            if isinstance(leaf.value, str) or price < 1e-3:
                price *= 1e6
            return round(price, 6) if 0 <= price < 1e6 else None
    return None


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
        parsed = read_json(line)
        key = json_get(parsed, "custom_id")
        if not isinstance(key, str):
            continue
        status = _count(json_get(parsed, "response.status_code"))
        body = json_get(parsed, "response.body")
        if not body:
            body = {"error": json_get(parsed, "error") or json_get(parsed, "response")}
            status = status or 500
        if not isinstance(body, str):
            body = json.dumps(body)
        yield BatchLine(key, status or 200, body.encode("utf-8", "surrogatepass"))


class BatchState(NamedTuple):
    """A batch as the endpoint describes it."""

    id: str
    status: str
    """State in small letters."""
    name: str
    """The file's name in its metadata; empty where the server keeps none."""
    files: list[str]
    """Ids of its output and error files."""
    faults: list[str]
    """Reasons why it was refused."""


def read_batches(content: bytes) -> list[BatchState]:
    """Read one batch, or a page of the list of batches."""
    parsed = read_json(content)
    rows = json_get(parsed, "data")
    batches = []
    for row in rows if isinstance(rows, list) else [parsed]:
        batch_id = json_get(row, "id")
        if not isinstance(batch_id, str):
            continue
        files = [json_get(row, "output_file_id"), json_get(row, "error_file_id")]
        faults = _named(leaves(json_get(row, "errors")), "reasons")
        batches.append(
            BatchState(
                batch_id,
                str(json_get(row, "status") or "").lower(),
                str(json_get(row, "metadata.botchat") or ""),
                [file for file in files if isinstance(file, str)],
                [_reason(str(leaf.value)) for leaf in faults],
            )
        )
    return batches
