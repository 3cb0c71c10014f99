"""Moving a ledger: every call as one JSON line, and back in on another machine.

There the whole run replays from it, with no key and no network.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from botchat.errors import BotChatError, DataError
from botchat.workspace.ledger import Ledger, StoredCall, request_key


def export(ledger: Ledger, path: Path) -> int:
    """Write every call as one JSON line (gzip if the name ends in ``.gz``); how many."""
    count = 0
    try:
        with _open(path, "wb") as file:
            for call in ledger.stored():
                file.write(msgspec.json.encode(call) + b"\n")
                count += 1
    except OSError as error:
        raise BotChatError(f"cannot write {path}: {error.strerror or error}") from None
    return count


def import_(ledger: Ledger, path: Path) -> tuple[int, int]:
    """Add the calls of an exported ledger: (added, already here).

    Every key is checked against its request, so a damaged or edited request cannot answer for
    another. All or nothing.

    Raises:
        DataError: a line that is not an exported call; names file and line.
    """
    try:
        with _open(path, "rb") as file:
            return ledger.add(_calls(file, path))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from None


def _calls(file: IO[bytes], path: Path) -> Iterator[StoredCall]:
    for n, line in enumerate(file, 1):
        try:
            call = msgspec.json.decode(line, type=StoredCall)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DataError(f"{path}:{n}: not a call of an exported ledger: {error}") from None
        if request_key(bytes(call.request)) != call.key:
            raise DataError(f"{path}:{n}: the request does not match its key {call.key[:12]}…")
        yield call


def _open(path: Path, mode: str) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, mode)  # type: ignore[return-value]
    return path.open(mode)
