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
from botchat.workspace.calls import StoredCall
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
        DataError: the ledger is damaged; a file that was there before is kept.
        BotChatError: the file cannot be written.
    """
    count = 0
    try:
        with _written(path) as file:
            for superseded in (False, True):
                for call in ledger.calls(
                    "WHERE at>=? ORDER BY key, at", since, superseded=superseded
                ):
                    file.write(msgspec.json.encode(call) + b"\n")
                    count += 1
    except OSError as error:
        raise BotChatError(f"cannot write {path}: {error.strerror or error}") from None
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
def _written(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file that takes the place of ``path`` when it is whole.

    A device or a pipe is written as it is.
    """
    whole = path.resolve()
    as_is = whole.exists() and not whole.is_file()
    part = path if as_is else whole.with_name(f".{whole.name}.part")
    try:
        with part.open("wb") as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile(path.name, "wb", fileobj=plain) as zipped:
                    yield zipped
            else:
                yield plain
        if not as_is:
            part.replace(whole)
    finally:
        if not as_is:
            part.unlink(missing_ok=True)
