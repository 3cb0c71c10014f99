"""JSON in whatever frame a server sends it, and values in it by path, by kind, by name.

A new frame has an example in ``tests/integration/test_frames.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")
_LEAD = re.compile(r"(?:\s|\ufeff|:[^\n]*\n)*")
"""Leave before a JSON value: blanks, a byte order mark, comments of an event stream."""
_DATA = re.compile(r"(?:^|[\r\n])data:[ \t]*([^\r\n]*)")
_DEEPEST = 40
"""Levels of a body that are looked through."""


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
        events = re.split(r"(?:\r\n|\r|\n){2,}", text)
        return _join_chunks(["\n".join(_DATA.findall(event)) for event in events])
    value = _first_value(text)
    if "delta" in first_choice(value):
        return _join_chunks(text.splitlines())
    return value


def _first_value(text: str) -> Any:
    """Return the JSON value at the beginning of a text; None if there is none."""
    with suppress(ValueError, RecursionError):
        # What stands behind it, such as "data: [DONE]", is no part of it.
        return json.JSONDecoder(strict=False).raw_decode(text)[0]
    return None


def _join_chunks(events: list[str]) -> Any:
    """Return the whole object of a stream: its last one, or its chunks put together."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {}
    finish = None
    if "[DONE]" not in events:
        finish = "aborted"  # half a sentence, unless a chunk says that it ended
    for event in events:
        chunk = _first_value(event)
        choice = first_choice(chunk)
        if isinstance(chunk, list) or "message" in choice or json_get(chunk, "error"):
            return chunk
        for key, value in of_kind(dict, chunk).items():
            if value not in (None, []):
                whole[key] = value
        finish = choice.get("finish_reason") or finish
        delta = of_kind(dict, choice, "delta")
        for key, value in delta.items():
            text = value
            if isinstance(value, list):
                text = message_text(delta)
            if isinstance(text, str):
                message[key] = message.get(key, "") + text
    if message:
        whole["choices"] = [{"message": message, "finish_reason": finish}]
    return whole or None


def json_get(value: Any, path: str) -> Any:
    """Return the value at a path of names with dots in parsed JSON; None if there is none."""
    for key in path.split("."):
        value = of_kind(dict, value).get(key)
    return value


def of_kind(kind: type[T], value: Any, path: str = "") -> T:
    """Return a value, or what is at a path in it, if it is of a kind; else an empty one."""
    if path:
        value = json_get(value, path)
    if isinstance(value, kind):
        return value
    return kind()


def first_choice(parsed: Any) -> Mapping[str, Any]:
    """Return the choice of a completion with the index 0, or without any; empty if none is."""
    for choice in of_kind(list, parsed, "choices"):
        index = str(json_get(choice, "index") or 0)
        if index in ("0", "0.0") and isinstance(choice, dict):
            return choice
    return {}


class Leaf(NamedTuple):
    """A text or a number somewhere in parsed JSON."""

    depth: int
    key: str
    """Name in small letters, words joined by ``_``; of a list's item the list's."""
    value: str | float


def leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[Leaf]:
    """Yield all texts and numbers of parsed JSON, also of JSON within a text; no blank ones."""
    if isinstance(value, str) and re.match(r"\s*[{\[]", value):
        inner = read_json(value)
        value = value if inner is None else inner
    if type(value) in (str, int, float) and str(value).strip():
        yield Leaf(depth, re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key).lower(), value)
    elif isinstance(value, dict) and depth < _DEEPEST:
        for name, each in value.items():
            yield from leaves(each, str(name), depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for each in value:
            yield from leaves(each, key, depth + 1)


def message_text(message: Any) -> str | None:
    """Return a message's text, a string or a list of parts; None if it is neither."""
    parts = json_get(message, "content")
    if parts is None or isinstance(parts, str):
        parts = [parts or ""]
    if not isinstance(message, dict) or not isinstance(parts, list):
        return None
    texts = []
    for part in parts:
        text = part
        if isinstance(part, dict):
            if part.get("type", "text") not in ("text", "output_text"):
                continue  # reasoning, or what is no text
            text = part.get("text", "")
        if not isinstance(text, str):
            return None
        texts.append(text)
    # Pairs of surrogates are joined, and half a pair is U+FFFD.
    return "".join(texts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
