"""JSON in whatever frame a server sends it, and values in it by path, by kind, by name.

A new frame has an example in ``tests/integration/test_frames.py``. Files of the package are read
here, too: texts, templates, and TOML as a type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from botchat.errors import DataError, counted, listed

if TYPE_CHECKING:
    from jinja2 import Environment

T = TypeVar("T")
JsonObject: TypeAlias = dict[str, object]
"""Parsed JSON with names; what they hold is looked at before it is used."""


class TomlTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a TOML file; a key that it does not have is an error."""


Tables: TypeAlias = dict[str, Any]
"""A TOML file without a type of its own."""

# Name of the data of an event stream, or a field of it that tells nothing
_FIELD = re.compile(r"^(?:data: ?|(?:event|id|retry|):.*)", re.MULTILINE)
# Levels of a body that are looked through
_DEEPEST = 40


def package_text(path: str) -> str:
    """Return a text file of the package, by its path there."""
    return resources.files("botchat").joinpath(path).read_text("utf-8")


@lru_cache
def _templates() -> Environment:
    # Which no `--help` needs.
    from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FunctionLoader(package_text),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(counted=counted, listed=listed, json=json.dumps)
    return environment


def fill(path: str, **values: object) -> str:
    """Return a text of the package, a template of Jinja2, with values filled in as they are.

    In a page (html) what is filled in is shown as text.
    """
    return _templates().get_template(path).render(values)


def fill_text(path: str, **values: object) -> str:
    """Return a text of the package that is filled in as by `fill`, without outer blanks."""
    return fill(path, **values).strip()


def fill_lines(path: str, **values: object) -> list[str]:
    """Return the lines of a text of the package that is filled in as by `fill`."""
    return fill(path, **values).splitlines()


def package_toml(path: str, kind: type[T]) -> T:
    """Return a TOML file of the package as a type."""
    return msgspec.toml.decode(package_text(path), type=kind)


def read_text(data: bytes, where: object) -> str:
    """Decode UTF-8, with or without a byte order mark; raises `DataError`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{where}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file "
            "as UTF-8"
        ) from None


def read_json(content: bytes | str) -> object:
    """Return the JSON value of a body, however it is framed; None if there is none.

    A byte order mark, comments, NaN, raw line feeds and half a surrogate do no harm; of an event
    stream the chunks are put together.
    """
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        return msgspec.json.decode(content)
    text = content
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "replace")
    # Before it may stand a mark, a fence, or what keeps JSON from being run as a script.
    text = re.sub(r"^[\ufeff\s]*(?:```\w*\s|\)\]\}',?|//.*\n)?\s*", "", text)
    if _FIELD.match(text):
        text = _FIELD.sub("", text.replace("\r", "\n"))
    elif not text.startswith(("{", "[")):
        return None
    with suppress(RecursionError):
        whole = json.dumps(_join_chunks(text), ensure_ascii=False)
        # Pairs of surrogates are joined, also of two chunks, and half a pair is U+FFFD.
        units = whole.encode("utf-16", "surrogatepass")
        return json.loads(units.decode("utf-16", "replace"))
    return None


def _values(text: str) -> Iterator[object]:
    """Yield the objects and lists at the beginnings of lines; what is broken off is none.

    Nor is what stands behind one, such as "data: [DONE]".
    """
    end = 0
    for start in re.finditer(r"(?:\A|\n)(?=[{\[])", text):
        if start.end() >= end:
            with suppress(ValueError, RecursionError):
                value, end = json.JSONDecoder(strict=False).raw_decode(text, start.end())
                yield value


def _join_chunks(text: str) -> object:
    """Return the first whole value of a text, or the chunks of a stream put together."""
    whole: JsonObject = {}
    message: dict[str, str] = {}
    finish: object = None
    if "\n[DONE]" not in text:
        finish = "aborted"  # half a sentence, unless a chunk says that it ended
    for value in _values(text):
        choice = first_choice(value)
        chunk = of_kind(dict, value)
        if not chunk or "message" in choice or chunk.get("error"):
            return value
        # Of what a later chunk says nothing about, the earlier counts.
        whole.update({key: field for key, field in chunk.items() if field not in (None, [])})
        finish = choice.get("finish_reason") or finish
        _join_delta(message, of_kind(dict, choice, "delta"))
    if message:
        whole["choices"] = [{"message": message, "finish_reason": finish}]
    return whole or None


def _join_delta(message: dict[str, str], delta: JsonObject) -> None:
    """Add what a chunk says to the message until now."""
    for key, value in delta.items():
        if isinstance(value, list):
            value = message_text({"content": value})
        if isinstance(value, str):
            message[key] = message.get(key, "") + value


def json_get(value: object, path: str) -> object:
    """Return the value at a path of names with dots in parsed JSON; None if there is none."""
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def of_kind(kind: type[T], value: object, path: str = "") -> T:
    """Return a value, or what is at a path in it, if it is of a kind; else an empty one."""
    if path:
        value = json_get(value, path)
    if isinstance(value, kind):
        return value
    return kind()


def first_choice(parsed: object) -> JsonObject:
    """Return the choice of a completion with the index 0, or without any; empty if none is."""
    for choice in of_kind(list, parsed, "choices"):
        if isinstance(choice, dict) and choice.get("index") in (None, 0, "0"):
            return choice
    return {}


class Leaf(NamedTuple):
    """A text or a number somewhere in parsed JSON."""

    depth: int
    key: str
    """Name in small letters, words joined by ``_``; of a list's item the list's."""
    value: object


@lru_cache(maxsize=1 << 12)
def _snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key).lower()


def leaves(value: object, key: str = "", depth: int = 0) -> Iterator[Leaf]:
    """Yield all texts and numbers of parsed JSON, also of JSON within a text; no blank ones."""
    if isinstance(value, str) and re.match(r"\s*[{\[]", value):
        inner = read_json(value)
        if inner is not None:
            value = inner
    if type(value) in (str, int, float) and str(value).strip():
        yield Leaf(depth, _snake_case(key), value)
    elif depth < _DEEPEST:
        for name, each in of_kind(dict, value).items():
            yield from leaves(each, name, depth + 1)
        for each in of_kind(list, value):
            yield from leaves(each, key, depth + 1)


def message_text(message: object) -> str | None:
    """Return a message's text, a string or a list of parts; None if it is neither."""
    if not isinstance(message, dict):
        return None
    parts = message.get("content") or ""
    if isinstance(parts, str):
        parts = [parts]
    if not isinstance(parts, list):
        return None
    texts = []
    for part in parts:
        if isinstance(part, str):
            part = {"text": part}
        if json_get(part, "type") not in (None, "text", "output_text"):
            continue  # reasoning, or no text
        text = json_get(part, "text")
        if not isinstance(text, str):
            return None
        texts.append(text)
    return "".join(texts)
