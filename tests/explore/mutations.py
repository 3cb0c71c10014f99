"""Small changes at random, as broken programs and disks make them: of JSON values and of bytes."""

import json
import random
from collections.abc import Callable
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 10**30, -(10**30), 2**63, 1e308, float("nan"), float("inf"),
    "", " ", "x", "0", "null", "\0", "\ud800", "\u202e", "\n", "é" * 300, "9" * 400, [], [[]],
    [None], [{}], {}, {"": None}, {"text": 5}, [{"type": "text", "text": None}], ["a", 1],
)  # fmt: skip
"""Values that stand where others are expected."""

WORDS = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n\r\n", b'"', b"'", b",", b";", b"\t",
    b"{", b"}", b"[" * 2000, b"[]", b"null", b"NaN", b"1e999", b"9" * 5000, b"-",
    b"\\", b"\\ud800", b"\xed\xa0\x80",
    b"\xe2\x80\xa8", b"<", b"&#0;", b"=cmd|' /C calc'!A0", b"#", b" " * 999,
    b"PK\x03\x04", b"\x1f\x8b\x08",
)  # fmt: skip
"""Bytes that mean something to one of the readers."""


def of_json(draw: random.Random, value: Any) -> Any:
    """``value`` with one place in it changed, left out, doubled, renamed or wrapped."""
    copied = json.loads(json.dumps(value))
    places = list(_places(copied))
    if not places or draw.random() < 0.03:
        return draw.choice(ODD)
    holder, key = draw.choice(places)
    change = draw.randrange(7)
    if change == 0:
        del holder[key]
    elif change == 1:
        holder[key] = [holder[key]]
    elif change == 2:
        other, place = draw.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    elif change == 3 and isinstance(holder, dict):
        holder[draw.choice((key.upper(), f"{key} ", "id", "error", "type", "text"))] = holder[key]
    elif change == 4 and isinstance(holder[key], str):
        holder[key] = of_text(draw, holder[key])
    elif change == 5 and isinstance(holder, list):
        holder.insert(key, draw.choice(ODD))
    else:
        holder[key] = draw.choice(ODD)
    return copied


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def of_text(draw: random.Random, text: str) -> str:
    """A text with a part gone, doubled, or something odd in it."""
    at = draw.randrange(len(text) + 1)
    odd = draw.choice(("", "\0", "\ud800", "\u202e", "\n", "<think>", "</think>", "|", "é", text))
    return text[:at] + odd + text[draw.randrange(at, len(text) + 1) :]


def encoded(value: Any) -> bytes:
    """JSON as careless programs write it: NaN, halves of characters."""
    return json.dumps(value).encode("utf-8", "surrogatepass")


def of_bytes(draw: random.Random, data: bytes) -> bytes:
    """Bytes changed in one to four places."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice(_CHANGES)(draw, data, draw.randrange(len(data) + 1))
    return data


def _end(draw: random.Random, data: bytes, at: int) -> int:
    return min(len(data), at + int(2 ** draw.uniform(0, 12)))


def _flipped(draw: random.Random, data: bytes, at: int) -> bytes:
    flipped = bytes(byte ^ 1 << draw.randrange(8) for byte in data[at : at + 1])
    return data[:at] + flipped + data[at + 1 :]


def _swapped(draw: random.Random, data: bytes, at: int) -> bytes:
    lines = data.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


_CHANGES: tuple[Callable[[random.Random, bytes, int], bytes], ...] = (
    _flipped,
    _flipped,
    _swapped,
    lambda draw, data, at: data[:at],
    lambda draw, data, at: data[:at] + data[_end(draw, data, at) :],
    lambda draw, data, at: data[: _end(draw, data, at)] + data[at:],
    lambda draw, data, at: data[:at] + draw.choice(WORDS) + data[at:],
    lambda draw, data, at: data[:at] + draw.choice(WORDS) + data[_end(draw, data, at) :],
    lambda draw, data, at: data[:at] + draw.randbytes(draw.randrange(1, 64)) + data[at:],
    lambda draw, data, at: data[:at] + bytes(len(data[at : at + 512])) + data[at + 512 :],
)  # fmt: skip
