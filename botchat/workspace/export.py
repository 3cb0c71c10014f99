"""Moving a ledger: every call as a line of JSON, written whole and taken in whole or not at all."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from botchat.errors import BotChatError, DataError
from botchat.interfaces import Message
from botchat.records import UNANSWERED
from botchat.workspace.calls import Damaged, StoredCall
from botchat.workspace.ledger import Ledger, request_key

MAX_LINE = 64 << 20
"""Bytes of the longest line that is read; an endpoint's body has at most a quarter of them."""


class _CanonicalRequest(msgspec.Struct):
    """What every canonical request is made of."""

    schema: int
    identity: dict[str, Any]
    messages: list[Message]
    sampling: dict[str, Any]


def export(ledger: Ledger, path: Path, since: float = -math.inf) -> int:
    """Write every call as one JSON line (gzip if the name ends in ``.gz``); how many.

    ``since``: only those stored then or later, in seconds of the epoch.

    Raises:
        DataError: some are damaged; they are named, and all others are in the file. A file that was
            there before, and may hold these, is then kept instead.
        BotChatError: the file cannot be written.
    """
    count, damaged = 0, []
    there = path.exists()
    try:
        with _written(path) as (file, part):
            for superseded in (False, True):
                for call in ledger.readable(superseded=superseded):
                    if isinstance(call, Damaged):
                        damaged.append(call.key)
                    elif call.at >= since:
                        file.write(msgspec.json.encode(call) + b"\n")
                        count += 1
            if damaged and there and part != path:
                raise DataError(
                    f"calls of the ledger {ledger.path} are damaged ({_few(damaged)}), and {path} "
                    f"may hold them, so it is kept; export the other {count} to another file"
                )
    except OSError as error:
        raise BotChatError(f"cannot write {path}: {error.strerror or error}") from None
    if damaged:
        raise DataError(
            f"calls of the ledger {ledger.path} are damaged and left out ({_few(damaged)}); the "
            f"other {count} are in {path}"
        )
    return count


def import_(ledger: Ledger, path: Path) -> tuple[int, int]:
    """Add the calls of an exported ledger, all or none: (added, already here).

    Every key is checked against its request, so a damaged or edited request cannot answer for
    another. Raises `DataError`, with file and line.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return ledger.add(_calls(file, path))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from None


def _calls(file: IO[bytes] | gzip.GzipFile, path: Path) -> Iterator[StoredCall]:
    n = 0
    while line := file.readline(MAX_LINE + 1):
        n += 1
        if len(line) > MAX_LINE:
            raise DataError(
                f"{path}:{n}: longer than {MAX_LINE >> 20} MiB, which no call of an exported "
                "ledger is"
            )
        yield checked(line, f"{path}:{n}")


def checked(line: bytes, where: str) -> StoredCall:
    """The call that a line holds, whose key is that of its request; else a `DataError`."""
    try:
        call = msgspec.json.decode(line, type=StoredCall)
        request = bytes(call.request)
        if request_key(request) != call.key:
            raise DataError(f"{where}: the request does not match its key {call.key[:12]}…")
        msgspec.json.decode(request, type=_CanonicalRequest)
        if call.outcome in UNANSWERED:
            raise ValueError(f"the outcome {call.outcome} is no answer")
        json.dumps(call.sent)  # fails on lists inside lists without end
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(f"{where}: not a call of an exported ledger: {why}") from None
    return call


@contextmanager
def _written(path: Path) -> Iterator[tuple[IO[bytes] | gzip.GzipFile, Path]]:
    """A file that takes the place of ``path`` when it is whole, and its path while it is not.

    A device or a pipe is written as it is.
    """
    whole = path.resolve()
    as_is = whole.exists() and not whole.is_file()
    part = path if as_is else whole.with_name(f".{whole.name}.part")
    try:
        with part.open("wb") as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile(path.name, "wb", fileobj=plain) as zipped:
                    yield zipped, part
            else:
                yield plain, part
        if not as_is:
            part.replace(whole)
    finally:
        if not as_is:
            part.unlink(missing_ok=True)


def _few(keys: list[str]) -> str:
    shown = ", ".join(key[:12] if len(key) == 64 else key for key in keys[:3])
    return f"{len(keys)}: {shown}{', …' if len(keys) > 3 else ''}"
