"""JSON-lines stage files: appended one record a write, repaired after a crash, finished in order.

While a stage runs, each record is appended with one ``os.write``, so a kill can tear at most the
last line. The next run cuts a torn line off and makes its record again from the ledger. A finished
file is replaced whole, in canonical order: the same replies give the same bytes.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from botchat.errors import BotChatError, DataError

log = logging.getLogger("botchat")

MAX_BYTES = 2**31
"""Size of a file from elsewhere."""

# Windows would write other line ends in text mode.
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_BLOCK = 1 << 18
"""Bytes read at once; their records fit into a processor's cache."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

R = TypeVar("R", bound=msgspec.Struct)


def read(path: Path, record: type[R]) -> list[R]:
    """Read all records of a stage file, in file order; none if there is no file.

    A torn last line is left out and reported; any other that is no ``record`` raises DataError.
    """
    return list(chain.from_iterable(blocks(path, record)))


def content(path: Path) -> bytes:
    """Read a file of at most `MAX_BYTES` that is not ours; raises DataError."""
    data = b""
    try:
        with path.open("rb") as file:
            # Asked for all at once, Python sets aside all that is allowed.
            while len(data) <= MAX_BYTES and (block := file.read(max(_BLOCK, len(data)))):
                data += block
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; name a file") from None
    if len(data) > MAX_BYTES:
        raise DataError(f"{path}: more than the {MAX_BYTES:,} bytes allowed; split it")
    return data


def blocks(path: Path, record: type[R]) -> Iterator[list[R]]:
    """Yield the records of a stage file block by block, as `read`."""
    decoder = msgspec.json.Decoder(record)
    rest, n_lines = b"", 0
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                whole, newline, rest = (rest + block).rpartition(b"\n")
                if newline:
                    yield _decode(decoder, whole, path, n_lines)
                    n_lines += whole.count(b"\n") + 1
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    if rest:
        log.warning("%s: the last line is torn (%d bytes) and left out", path, len(rest))


def _decode(decoder: msgspec.json.Decoder[R], data: bytes, path: Path, n_before: int) -> list[R]:
    with suppress(*_UNREADABLE):
        return list(decoder.decode_lines(data))
    records = []
    for n, line in enumerate(data.split(b"\n"), n_before + 1):
        try:
            records += [decoder.decode(line)] if line.strip() else []
        except _UNREADABLE as error:
            fault = f"{' '.join(str(error).split())[:300]}; correct or delete this line"
            raise DataError(f"{path}:{n}: {fault} (it begins {line[:40]!r})") from None
    return records


class Appender(Generic[R]):
    """Appends records to one stage file, each whole or not at all; cuts off a torn last line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._is_ready = False

    def append(self, record: R) -> None:
        """Write one record as one line, or nothing and raise `BotChatError`."""
        fd, line = self._open(), msgspec.json.encode(record) + b"\n"
        before, written = os.fstat(fd).st_size, 0
        with suppress(OSError):
            written = os.write(fd, line)
        if written != len(line):
            os.ftruncate(fd, before)
            raise BotChatError(f"cannot write {self.path}; free some space and run it again")

    def ready(self) -> None:
        """Raise `BotChatError` if no record can be written; leaves no new file."""
        if self._is_ready:
            return
        make_folder(self.path.parent)
        try:
            if self.path.exists():
                self._open()
            with tempfile.TemporaryFile(dir=self.path.parent) as probe:
                probe.write(b"\n")
        except OSError as error:
            raise BotChatError(f"cannot write {self.path}: {error.strerror}") from None
        self._is_ready = True

    def __enter__(self) -> Appender[R]:
        """Return the appender."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            make_folder(self.path.parent)
            try:
                self._fd = os.open(self.path, _APPEND, 0o644)
                content = self.path.read_bytes()
            except OSError as error:
                raise BotChatError(f"cannot write {self.path}: {error.strerror}") from None
            if n_torn := len(content) - content.rfind(b"\n") - 1:
                os.ftruncate(self._fd, len(content) - n_torn)
                log.warning("%s: cut off a torn last line (%d bytes)", self.path, n_torn)
        return self._fd


def finish(path: Path, records: Iterable[R], order: Callable[[R], Any]) -> None:
    """Replace a file by ``records``, sorted by ``order``; an equal file is left alone."""
    data = msgspec.json.Encoder().encode_lines(sorted(records, key=order))
    if not (path.exists() and path.stat().st_size == len(data) and path.read_bytes() == data):
        write_atomic(path, data)


def write_atomic(path: Path, data: bytes | bytearray) -> None:
    """Write a file so that readers see the old or the new content, never a part."""
    make_folder(path.parent)
    temporary = None
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # noqa: PTH101 - mkstemp made it 0600
        os.replace(temporary, path)  # noqa: PTH105 - the atomic call itself
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise BotChatError(f"cannot write {path}: {error.strerror}") from None


def write_all(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write files by name, each as `write_atomic`; text in UTF-8."""
    for name, data in contents.items():
        write_atomic(folder / name, data.encode() if isinstance(data, str) else data)


def make_folder(path: Path) -> None:
    """Make a folder with its parents; raises `BotChatError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BotChatError(f"cannot make the folder {path}: {error.strerror}") from None
