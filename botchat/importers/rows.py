"""Rows and JSON values with their places in a file, for messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from botchat.errors import DataError


class FileRow(NamedTuple):
    """One row of a table, or one JSON value, with its place for messages."""

    place: str
    fields: Any


def json_rows(data: bytes, where: str) -> list[FileRow]:
    """Read a JSON array, JSON lines, or one JSON object."""
    text = read_text(data, where)
    if text.lstrip()[:1] == "[":
        values = json_value(text, where)
    elif text.lstrip()[:2].rstrip() == "{":
        return [FileRow(where, json_value(text, where))]
    else:
        lines = filter(str.strip, text.split("\n"))
        values = [json_value(line, f"{where} row {n}") for n, line in enumerate(lines, 1)]
    return [FileRow(f"{where} row {n}", value) for n, value in enumerate(values, 1)]


def json_value(text: str | bytes, place: str) -> Any:
    """Decode a JSON value."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DataError(f"{place}: {quoted(text)} is not JSON ({error}); correct it") from None


def read_text(data: bytes, where: str) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise DataError(f"{where}: line {line}: {fault}") from None


def named(value: object, place: str) -> Mapping[str, Any]:
    """Return a JSON object; anything else is a `DataError`."""
    if not isinstance(value, Mapping):
        raise DataError(f"{place}: {quoted(value)} is not an object with named fields; make it one")
    return value


def quoted(value: object) -> str:
    """Show a value in a message, shortened where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def column_name(name: object) -> str:
    """Return a name in small letters, words joined by ``_``; ``dialogueId`` is two words."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return re.sub(r"\W+", "_", words.lower()).strip("_")
