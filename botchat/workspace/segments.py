"""Segments: rows of a ledger as immutable files, named by their content, in any place.

A segment is JSON lines under gzip: calls as in an exported ledger, tries that brought no answer,
and quirks. ``PLACE/ledger/<SHA-256 of the file>.jsonl.gz``, where PLACE is a folder or whatever
fsspec knows (``s3://…``, ``gs://…``, ``file://…``); credentials are its backends' own affair. A
segment whose bytes do not have its name is not whole yet and is passed over, so a writer that is
killed does no harm. Any number of ledgers that read the same segments, in any order, hold the
same answers (`Ledger.merge`); the SQLite file is only an index over them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import fsspec
import msgspec
from fsspec.implementations.local import LocalFileSystem

from botchat.errors import BotChatError, ConfigError, DataError
from botchat.workspace.calls import StoredCall
from botchat.workspace.export import checked
from botchat.workspace.ledger import TABLE_OF, Ledger
from botchat.workspace.secrets import public

log = logging.getLogger("botchat")

ENDING = ".jsonl.gz"

MOST_ROWS = 20_000
"""Calls of one segment that `push` writes."""

Mark: TypeAlias = tuple[int, int, int]
"""How far a ledger's tables of calls, superseded calls and attempts are filled."""


@dataclass(frozen=True)
class Taken:
    """What was new in segments."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Calls of unknown price."""

    def __add__(self, other: Taken) -> Taken:
        """Both together."""
        return Taken(*(getattr(self, name) + getattr(other, name) for name in vars(self)))


def mark(ledger: Ledger) -> Mark:
    """How far it is filled now."""
    tables = (*TABLE_OF.values(), "attempts")
    sums = ", ".join(f"(SELECT coalesce(max(rowid), 0) FROM {table})" for table in tables)
    ((calls, superseded, attempts),) = ledger.select(f"SELECT {sums}")
    return calls, superseded, attempts


def since(ledger: Ledger, at: Mark = (0, 0, 0)) -> bytes:
    """The segment of what was written after ``at``, and of all quirks."""
    return _segment(ledger, *(("rowid > ?", (one,)) for one in at))


def of_calls(ledger: Ledger, keys: Iterable[str]) -> bytes:
    """The segment of these calls, as far as they were answered, and of all quirks."""
    which = "key IN (SELECT value FROM json_each(?))"
    return _segment(ledger, (which, (json.dumps(list(keys)),)), ("false", ()), ("false", ()))


def _segment(ledger: Ledger, *which: tuple[str, tuple[Any, ...]]) -> bytes:
    lines = []
    for superseded, (sql, values) in zip(TABLE_OF, which, strict=False):
        calls = ledger.calls(f"WHERE {sql}", *values, superseded=superseded)
        lines += [msgspec.json.encode(call) for call in calls]
    sql, values = which[-1]
    for row in ledger.select(f"SELECT * FROM attempts WHERE {sql}", *values):
        lines.append(msgspec.json.encode({"attempt": row}))
    for row in ledger.select("SELECT identity, value FROM quirks"):
        lines.append(msgspec.json.encode({"quirks": row}))
    return gzip.compress(b"\n".join(lines), 6, mtime=0)


def named(segment: bytes) -> str:
    """The name of a segment."""
    return hashlib.sha256(segment).hexdigest() + ENDING


def take(ledger: Ledger, segment: bytes) -> Taken:
    """Merge a segment into a ledger; what was new. Raises `DataError`: it is none."""
    name = named(segment)
    calls: list[StoredCall] = []
    others: dict[str, list[Any]] = {"attempt": [], "quirks": []}
    try:
        lines = gzip.decompress(segment).splitlines()
        for n, line in enumerate(lines, 1):
            if line.startswith((b'{"attempt"', b'{"quirks"')):
                ((kind, row),) = msgspec.json.decode(line).items()
                others[kind].append(row)
            else:
                calls.append(checked(line, f"{name}:{n}"))
        new = ledger.merge(calls, others["attempt"], others["quirks"], name)
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise DataError(f"{name} is no segment of a ledger: {error}") from None
    return Taken(
        len(new),
        sum((call.prompt_tokens or 0) + (call.completion_tokens or 0) for call in new),
        sum(call.cost_usd or 0.0 for call in new),
        sum(call.cost_usd is None for call in new),
    )


_PART = re.compile(
    r"stages/((?:[A-Za-z0-9_][\w.+-]*/)+)([0-9a-f]{64}" + re.escape(ENDING) + ")", re.A
)
"""Path of a part of a stage file: its stage file, its name."""


class Store:
    """A place with segments of ledgers, and with parts of stage files (`workspace.stages`)."""

    def __init__(self, place: str) -> None:
        """``place``: a folder or a URL of fsspec. Raises `ConfigError`: it cannot be one."""
        self.place = place
        if public(place) != place:
            raise ConfigError(
                f"the store {public(place)}: a secret stands in it; leave it to the backend's own "
                "ways, such as environment variables"
            )
        try:
            self._fs, root = fsspec.url_to_fs(place)
        except (ValueError, ImportError) as error:
            raise ConfigError(f"the store {place}: {error}") from None
        self._root = root.rstrip("/")
        self.url: str = self._fs.unstrip_protocol(self._root)
        """The place, however it was named."""
        self.files_read = self.bytes_read = 0

    def ready(self) -> None:
        """Find out whether it can be written, before anything is paid for; `BotChatError`."""
        probe = f"ledger/.{secrets.token_hex(8)}"
        self._write(probe, b"\n")
        with suppress(BotChatError), _reaching(self.place):  # some may write, and not remove
            self._fs.rm_file(f"{self._root}/{probe}")

    def names(self, under: str = "") -> list[str]:
        """Segments by name, with the folder of their shard if they have one."""
        at = len(f"{self._root}/ledger/")
        found = self._found(f"ledger/{under}")
        return sorted(path[at:] for path in found if path.endswith(ENDING))

    def parts(self, under: str = "") -> dict[str, list[str]]:
        """Stage file -> names of its parts; ``under``: only in a folder, or of one file."""
        found: dict[str, list[str]] = {}
        at = len(f"{self._root}/")
        for path in sorted(self._found(f"stages/{under}")):
            if part := _PART.fullmatch(path[at:]):
                found.setdefault(part[1].rstrip("/"), []).append(part[2])
        return found

    def folders(self, path: str) -> list[str]:
        """Names of what is in a folder of stage files."""
        with _reaching(self.place), suppress(FileNotFoundError):
            listed = self._fs.ls(f"{self._root}/stages/{path}", detail=False)
            return sorted(one.rstrip("/").rpartition("/")[2] for one in listed)
        return []

    def read_parts(self, of: Iterable[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        """The content of parts, (stage file, name) each; what is not whole is left out."""
        paths = {f"{self._root}/stages/{file}/{name}": (file, name) for file, name in of}
        with _reaching(self.place):
            got = self._fs.cat(list(paths), on_error="return") if paths else {}
        found = {}
        for path, data in got.items():
            file, name = paths[path]
            if isinstance(data, Exception) and not isinstance(data, FileNotFoundError):
                with _reaching(self.place):
                    raise data
            if isinstance(data, bytes):
                self.files_read += 1
                self.bytes_read += len(data)
            if isinstance(data, bytes) and named(data) == name:
                found[file, name] = data
            else:
                log.warning(
                    "the store %s: stages/%s/%s is not whole, and passed over",
                    self.place,
                    file,
                    name,
                )
        return found

    def write_part(self, file: str, part: bytes) -> str:
        """Store a part of a stage file; its name."""
        self._write(f"stages/{file}/{named(part)}", part)
        return named(part)

    def read(self, name: str) -> bytes | None:
        """A segment; ``None``: it is not whole (yet), or gone."""
        data = self._read(f"ledger/{name}")
        return data if data is not None and named(data) == name.rpartition("/")[2] else None

    def write(self, segment: bytes, under: str = "") -> str:
        """Store a segment; its name."""
        name = f"{under}/{named(segment)}".lstrip("/")
        self._write(f"ledger/{name}", segment)
        return name

    def remove(self, names: Sequence[str]) -> None:
        """Remove segments."""
        with _reaching(self.place):
            for name in names:
                self._fs.rm_file(f"{self._root}/ledger/{name}")

    def command(self, workspace: str) -> str:
        """The run that commands the workers of a workspace; empty: none is known here."""
        return (self._read(f"heads/{workspace}") or b"").decode()

    def take_command(self, workspace: str, run: str) -> None:
        """Let ``run`` command the workers of a workspace: those of any other stop."""
        self._write(f"heads/{workspace}", run.encode())

    def end_command(self, workspace: str) -> None:
        """Let no run command the workers of a workspace: all stop. No lease is known any more."""
        for path in (f"heads/{workspace}", f"leases/{workspace}"):  # in this order
            with _reaching(self.place), suppress(FileNotFoundError):
                self._fs.rm(f"{self._root}/{path}", recursive=True)

    def draw(self, workspace: str, shard: str, note: str) -> None:
        """Note that something of a shard's lease is drawn."""
        self._write(f"leases/{workspace}/{shard}/{note}", b"drawn")

    def drawn(self, workspace: str, shard: str) -> list[str]:
        """All such notes."""
        return [path.rpartition("/")[2] for path in self._found(f"leases/{workspace}/{shard}")]

    def _found(self, path: str) -> list[str]:
        """Paths of the files in a folder and below; none where it is not."""
        with _reaching(self.place):
            self._fs.invalidate_cache()
            found: list[str] = self._fs.find(f"{self._root}/{path}".rstrip("/"))
            return found

    def _read(self, path: str) -> bytes | None:
        with _reaching(self.place):
            try:
                data: bytes = self._fs.cat_file(f"{self._root}/{path}")
            except FileNotFoundError:
                return None
            return data

    def _write(self, path: str, data: bytes) -> None:
        whole = f"{self._root}/{path}"
        with _reaching(self.place):
            # Where there are no folders, it would make a bucket of a misspelt name.
            if isinstance(self._fs, LocalFileSystem) or whole.startswith("/"):
                self._fs.makedirs(whole.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(whole, data)


def pull(ledger: Ledger, store: Store) -> Taken:
    """Merge the segments of a store that were not read before; what was new."""
    read = {name for (name,) in ledger.select("SELECT name FROM segments")}
    new = Taken()
    for name in store.names():
        if name.rpartition("/")[2] not in read and (segment := store.read(name)) is not None:
            new += take(ledger, segment)
    return new


def push(ledger: Ledger, store: Store) -> int:
    """Merge a store's segments, then write what it lacks; how many calls that is."""
    pull(ledger, store)
    there = json.dumps([name.rpartition("/")[2] for name in store.names()])
    n = 0
    while True:
        which = []
        for table in (*TABLE_OF.values(), "attempts"):
            lacking = (
                f"rowid IN (SELECT rowid FROM {table} AS row WHERE NOT EXISTS (SELECT 1 FROM"
                f" segment_rows JOIN segments ON id=segment WHERE key=row.key AND at=row.at"
                f" AND kind='{table}' AND name IN (SELECT value FROM json_each(?)))"
                f" ORDER BY rowid LIMIT {MOST_ROWS})"
            )
            which.append((lacking, (there,)))
        segment = _segment(ledger, *which)
        lines = gzip.decompress(segment).splitlines()
        rows = sum(not line.startswith(b'{"quirks"') for line in lines)
        if not rows:
            return n
        there = json.dumps([*json.loads(there), store.write(segment)])
        take(ledger, segment)
        n += sum(not line.startswith((b'{"quirks"', b'{"attempt"')) for line in lines)


@contextmanager
def _reaching(place: str) -> Iterator[None]:
    """Turn whatever a backend raises into one line."""
    try:
        yield
    except Exception as error:
        told = error.strerror if isinstance(error, OSError) else None
        said = " ".join((told or str(error)).split())[:200]
        raise BotChatError(
            f"cannot use the store {place}: {said or type(error).__name__}"
        ) from None
