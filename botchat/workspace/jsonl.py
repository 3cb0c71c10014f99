"""JSON-lines stage files: appended one record a write, repaired after a crash, finished in order.

While a stage runs, each record is appended with one write, so a kill can tear at most the
last line. The next run cuts a torn line off and makes its record again from the ledger. A last line
that only lacks its newline is whole: an editor left it so. A finished file is replaced whole, in
canonical order: the same replies give the same bytes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from itertools import chain, islice
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from botchat.errors import BotChatError, DataError, NotWritten, log, one_line

MAX_BYTES = 2**31
"""Size of a file from elsewhere."""

# Bytes read at once; their records fit into a processor's cache
_BLOCK = 1 << 18
# Byte order mark, which some editors write
_MARK = b"\xef\xbb\xbf"

R = TypeVar("R", bound=msgspec.Struct)


def read(path: Path, record: type[R]) -> list[R]:
    """Read all records of a stage file, in file order; none if there is no file.

    A torn last line is left out and reported; any other that is no ``record`` raises DataError, a
    whole last line without its newline too.
    """
    return list(chain.from_iterable(blocks(path, record)))


def content(path: Path) -> bytes:
    """Read a file of at most `MAX_BYTES` that is not ours; raises DataError."""
    try:
        with path.open("rb") as file:
            # Asked for all at once, Python sets aside all that is allowed.
            pieces = iter(partial(file.read, _BLOCK), b"")
            data = b"".join(islice(pieces, MAX_BYTES // _BLOCK + 1))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; name a file") from None
    if len(data) > MAX_BYTES:
        raise DataError(f"{path}: more than the {MAX_BYTES:,} bytes allowed; split it")
    return data


def blocks(path: Path, record: type[R], size: int = _BLOCK) -> Iterator[list[R]]:
    """Yield the records of a stage file block by block, each of ``size`` bytes, as `read`."""
    decoder = msgspec.json.Decoder(record)
    rest = b""
    n_lines = 0
    for block in _file_blocks(path, size):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            yield _decode(decoder, whole, path, n_lines)
            n_lines += whole.count(b"\n") + 1
    if _is_whole(rest):
        yield _decode(decoder, rest, path, n_lines)
    elif rest:
        log.warning(f"{path}: the last line is torn ({len(rest)} bytes) and left out")


def records(data: bytes, record: type[R], place: str) -> list[R]:
    """Read the lines of a stage file that is in memory; raises DataError with place and line."""
    return _decode(msgspec.json.Decoder(record), data.removeprefix(_MARK), place, 0)


def whole_lines(data: bytes) -> bytes:
    """Return the lines of a stage file, each with its newline; a torn last one is left out."""
    end = data.rfind(b"\n") + 1
    if _is_whole(data[end:]):
        return data + b"\n"
    return data[:end]


def _file_blocks(path: Path, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file, if there is one, without a byte order mark."""
    try:
        with path.open("rb") as file:
            yield file.read(size).removeprefix(_MARK)
            yield from iter(partial(file.read, size), b"")
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _is_whole(line: bytes) -> bool:
    """Return whether a last line without its newline is all of a record: no torn one is JSON."""
    with suppress(Exception):  # whatever else it is, it is torn
        msgspec.json.decode(line.removeprefix(_MARK), type=dict[str, msgspec.Raw])
        return True
    return False


def _decode(
    decoder: msgspec.json.Decoder[R], data: bytes, path: Path | str, n_before: int
) -> list[R]:
    with suppress(Exception):  # faster, but names no line
        return list(decoder.decode_lines(data))
    records = []
    for n, line in enumerate(data.split(b"\n"), n_before + 1):
        if not line.strip():
            continue
        try:
            records.append(decoder.decode(line))
        except Exception as error:
            raise DataError(
                f"{path}:{n}: {one_line(error)}; correct or delete this line (it begins "
                f"{line[:40]!r})"
            ) from None
    return records


class Appender(Generic[R]):
    """Appends records to one stage file, each whole or not at all; cuts off a torn last line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._is_ready = False

    def append(self, record: R) -> None:
        """Write one record as one line, or nothing and raise `BotChatError`."""
        line = msgspec.json.encode(record) + b"\n"
        file = self._open()
        before = file.seek(0, os.SEEK_END)
        written = 0
        with suppress(OSError):
            written = file.write(line)
        if written != len(line):
            file.truncate(before)
            raise BotChatError(f"cannot write {self.path}; free some space and run it again")

    def ready(self) -> None:
        """Raise `BotChatError` if no record can be written; leaves no new file."""
        if self._is_ready:
            return
        make_folder(self.path.parent)
        with doing(f"write {self.path}"):
            if self.path.exists():
                self._open()
            with tempfile.TemporaryFile(dir=self.path.parent) as probe:
                probe.write(b"\n")
        self._is_ready = True

    def __enter__(self) -> Appender[R]:
        """Return the appender."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> FileIO:
        if self._file is None:
            make_folder(self.path.parent)
            with doing(f"write {self.path}"):
                self._file = self.path.open("ab", buffering=0)
                self._end_last_line(self._file)
        return self._file

    def _end_last_line(self, file: FileIO) -> None:
        content = self.path.read_bytes()
        lines = whole_lines(content)
        n_torn = len(content) - len(lines)
        if n_torn < 0:
            file.write(b"\n")
        elif n_torn:
            file.truncate(len(lines))
            log.warning(f"{self.path}: cut off a torn last line ({n_torn} bytes)")


def finish(path: Path, records: Iterable[R], order: Callable[[R], tuple[object, ...]]) -> None:
    """Replace a file by ``records``, sorted by ``order``; an equal file is left alone."""
    data = msgspec.json.Encoder().encode_lines(sorted(records, key=order))
    with suppress(OSError):  # it is not there, or cannot be read
        if path.read_bytes() == data:
            return
    write_atomic(path, data)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old or the new content, never a part."""
    make_folder(path.parent)
    temporary = path.parent / f".{path.name[:40]}.{os.urandom(8).hex()}"
    with doing(f"write {path}"):
        try:
            # Not `tempfile`, whose files are 0600: who may read this one is for the umask to say.
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise


def write_all(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write files by name, each as `write_atomic`; text in UTF-8."""
    for name, data in contents.items():
        write_atomic(folder / name, data.encode() if isinstance(data, str) else data)


def make_folder(path: Path) -> None:
    """Make a folder with its parents; raises `BotChatError`."""
    with doing(f"make the folder {path}"):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Raise `BotChatError` where the system does not let us do what is done inside."""
    try:
        yield
    except OSError as error:
        raise NotWritten(f"cannot {what}: {error.strerror}") from None
