"""The call ledger: every reply a model ever gave, whole, in one SQLite file per workspace.

A call is stored before anyone uses its reply, and is never sent again. Its key is the SHA-256 of
the canonical request: schema version, who was asked (model id, endpoint without credentials, fixed
parameters), messages, decoding and sample number.

``ledger.sql`` describes the tables. WAL mode with ``synchronous=NORMAL``: a commit survives the
death of the process at any moment.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from botchat.errors import BotChatError, DataError, one_line
from botchat.frames import package_text
from botchat.interfaces import (
    MOST_TOKENS,
    Decoding,
    Identity,
    Message,
    Quirks,
    Reply,
    Sent,
    Usage,
)
from botchat.records import UNANSWERED, Outcome
from botchat.workspace.jsonl import make_folder

SCHEMA = 1

LEAST_FREE = 1 << 24
"""Bytes of free space below which no call is sent: as much as the replies in flight may take."""

MAX_LINE = 64 << 20
"""Bytes of a call of a published run; a reply's body has at most a quarter of them."""

_PRAGMAS = (  # keys are in random order, so 64 MiB of pages are kept
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"
)
_TABLES = package_text("workspace/ledger.sql")

# 0 or more: of seconds of the epoch, as far as calendars go
_Positive: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None


Cells: TypeAlias = tuple[Any, ...]
"""A row of a table, as SQLite has it."""


class CanonicalRequest(msgspec.Struct):
    """The parts of a stored request that its readers rely on; see `request_json`."""

    schema: int
    identity: dict[str, msgspec.Raw]
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    sampling: dict[str, float | None]


class StoredCall(msgspec.Struct, frozen=True):
    """A row of ``calls`` or ``superseded``; also a line of a published run's calls."""

    key: str
    model: str
    stage: str
    at: _Positive
    outcome: Outcome
    text: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    latency_s: float
    cost_usd: float | None
    detail: str
    sent: Sent
    request: msgspec.Raw
    """The canonical request, byte for byte: the key is its digest."""
    raw: str

    def reply(self) -> Reply:
        """Return the reply as it was stored."""
        usage = msgspec.convert(self, Usage, from_attributes=True)
        reply = msgspec.convert(self, Reply, from_attributes=True)
        # Of a reply, `model` is who answered.
        return msgspec.structs.replace(reply, usage=usage, model="")

    def row(self) -> Cells:
        """Return a value for each column of the table, in the order of the fields."""
        cells = msgspec.structs.asdict(self)
        cells["sent"] = msgspec.json.encode(self.sent, order="sorted").decode()
        cells["request"] = zlib.compress(bytes(self.request), 1)
        cells["raw"] = zlib.compress(self.raw.encode("utf-8", "surrogatepass"), 1)
        return tuple(cells.values())

    @classmethod
    def from_row(cls, row: Cells) -> StoredCall:
        """Read a row of the table.

        A damaged one raises whatever its cells make zlib, JSON or msgspec raise.
        """
        cells = dict(zip(cls.__struct_fields__, row, strict=True))
        request = zlib.decompress(cells["request"])
        msgspec.json.decode(request, type=CanonicalRequest)
        cells["request"] = msgspec.Raw(request)
        cells["raw"] = zlib.decompress(cells["raw"]).decode("utf-8", "surrogatepass")
        cells["sent"] = json.loads(cells["sent"])
        return msgspec.convert(cells, cls)


class PublishedCall(StoredCall, frozen=True):
    """A line of a published run's calls: what no provider can have counted is refused."""

    prompt_tokens: _Count
    completion_tokens: _Count
    cached_tokens: _Count
    latency_s: _Positive
    cost_usd: _Positive | None


_COLUMNS = ", ".join(StoredCall.__struct_fields__)
_INSERT = package_text("workspace/keep_call.sql")
_PACKED = {"sent": str, "request": bytes, "raw": bytes, "value": str}
# Name of a column -> type of its cells; a damaged file may hold anything
_CELLS = {field.name: field.type for field in msgspec.structs.fields(StoredCall)} | _PACKED


def request_json(identity: Identity, messages: Sequence[Message], decoding: Decoding) -> bytes:
    """Return the canonical request: what decides the answer, in one byte order."""
    request = {
        "schema": SCHEMA,
        "identity": identity,
        "messages": messages,
        "sampling": decoding.settings,
    }
    return msgspec.json.encode(request, order="deterministic")


def request_key(request: bytes) -> str:
    """Return the SHA-256 of a canonical request, 64 hex digits."""
    return hashlib.sha256(request).hexdigest()


def read_calls(path: Path) -> Iterator[StoredCall]:
    """Yield a published run's calls. Raises DataError, with file and line.

    Every key is checked against its request: an edited request cannot answer for another.
    """
    n = 0
    try:
        with gzip.open(path) as file:
            for line in iter(partial(file.readline, MAX_LINE + 1), b""):
                n += 1
                if len(line) > MAX_LINE:
                    raise ValueError(f"longer than {MAX_LINE >> 20} MiB")
                call = msgspec.json.decode(line, type=PublishedCall)
                if request_key(bytes(call.request)) != call.key:
                    raise ValueError(f"the request does not match its key {call.key[:12]}…")
                if call.outcome in UNANSWERED:
                    raise ValueError(f"the outcome {call.outcome} is no answer")
                msgspec.json.decode(call.request, type=CanonicalRequest)
                yield call
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    except Exception as error:
        raise DataError(f"{path}:{n}: not a call of a published run: {one_line(error)}") from None


class Ledger:
    """One workspace's calls. Not shared between threads; one writing process at a time."""

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        """Open or create the ledger at ``path``, or without one an empty one in memory.

        Raises `DataError` if the file is not a ledger of this version.
        """
        self.path = path
        self._keeping: list[Cells] = []
        self._kept: asyncio.Future[None]  # whether the rows that wait are stored
        self._failure: BotChatError | None = None
        self._quirks: dict[str, Quirks] = {}
        with self._reading():
            if path is not None and not readonly:
                make_folder(path.parent)
            self._db = sqlite3.connect(
                _address(path, readonly), uri=True, isolation_level=None, check_same_thread=False
            )
            try:
                self._check_schema()
                if not readonly:
                    self._db.executescript(_PRAGMAS + _TABLES)
                    self._db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA,))
                self._db.execute("SELECT key FROM calls LIMIT 1")
            except BaseException:  # it would stay open
                self._db.close()
                raise

    def _check_schema(self) -> None:
        """Raise `DataError` for a ledger of another version, before anything is changed in it."""
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchall():
            return  # a new file
        sql = "SELECT value FROM meta WHERE name = 'schema' AND value != ?"
        for (schema,) in self._db.execute(sql, (str(SCHEMA),)).fetchall():
            raise DataError(
                f"the ledger {self.path} has schema {schema!r}, and this version of BotChat reads "
                f"{SCHEMA}; use the version that wrote it"
            )

    def close(self) -> None:
        """Store what waits, and close the file."""
        if self._keeping:
            self._keep_all()
        self._db.close()

    def get(self, key: str) -> Reply | None:
        """Return the stored reply of a call, or None if it was never answered."""
        for call in self.calls("WHERE key=?", key):
            return call.reply()
        return None

    def keep(
        self, key: str, request: bytes, reply: Reply, *, model: str, stage: str
    ) -> asyncio.Future[None]:
        """Store an answer, in one transaction with all others of this turn of the event loop.

        It is durable against the death of the process when the result is awaited.
        """
        if not self._keeping:
            loop = asyncio.get_running_loop()
            self._kept = loop.create_future()
            loop.call_soon(self._keep_all)
        cells = msgspec.structs.asdict(reply) | msgspec.structs.asdict(reply.usage)
        cells |= {"key": key, "model": model, "stage": stage, "at": max(time.time(), 0.0)}
        cells["request"] = msgspec.Raw(request)
        self._keeping.append(msgspec.convert(cells, StoredCall).row())
        return asyncio.shield(self._kept)  # a caller that is cancelled is not the only one

    def _keep_all(self) -> None:
        rows = self._keeping
        self._keeping = []
        try:
            with self.transaction():
                self._db.executemany(_INSERT, rows)
            self._kept.set_result(None)
        except BaseException as error:  # whatever it is, nobody may wait for ever
            self._failed(error)
            self._kept.set_exception(error)
            self._kept.exception()  # if nobody waits any more, asyncio has nothing to say
            if not isinstance(error, Exception):
                raise  # an interrupt is not only the waiters'

    def check_writable(self) -> None:
        """Raise `BotChatError` where a reply may be lost: a write failed, or the disk is full."""
        if self._failure is not None:
            raise self._failure
        if self.path is not None:
            free = shutil.disk_usage(self.path.parent).free
            if free < LEAST_FREE:
                raise BotChatError(
                    f"only {free:,} bytes are free at {self.path.parent}, and nothing was sent; "
                    "free some space and run it again"
                )

    def add_attempt(self, key: str, reply: Reply, *, model: str, status: int | None) -> None:
        """Store an attempt that brought no answer (it may have been billed)."""
        row = (key, model, time.time(), reply.outcome, status, reply.detail, reply.latency_s)
        with self.transaction():
            self._db.execute("INSERT INTO attempts VALUES (?,?,?,?,?,?,?)", row)

    def quirks(self, key: str) -> Quirks:
        """Return what is known that the endpoint of a model (`identity_key`) refuses."""
        if key not in self._quirks:
            quirks = Quirks()
            with self._reading(), suppress(msgspec.ValidationError):  # it is learnt again
                for (value,) in self.select("SELECT value FROM quirks WHERE identity=?", key):
                    quirks = msgspec.json.decode(value, type=Quirks)
            self._quirks[key] = quirks
        return self._quirks[key]

    def set_quirks(self, key: str, quirks: Quirks) -> None:
        """Store what a model's endpoint refuses, so that it refuses only once."""
        value = json.dumps(msgspec.to_builtins(quirks), sort_keys=True)
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO quirks VALUES (?,?)", (key, value))
        self._quirks[key] = quirks

    def select(self, sql: str, *values: object) -> list[Cells]:
        """Return the rows of a query; a column that has the name of one of `calls` has its type.

        Raises `DataError` if the file is damaged.
        """
        with self._reading():
            cursor = self._db.execute(sql, values)
            cells = tuple(_CELLS.get(column[0], object) for column in cursor.description or ())
            return msgspec.convert(cursor.fetchall(), list[tuple[cells]])  # type: ignore[valid-type]

    def calls(self, which: str, *values: object) -> Iterator[StoredCall]:
        """Yield the stored calls that ``which``, the rest of a query with its ``values``, selects.

        Raises `DataError` if the file is damaged.
        """
        with self._reading():
            for row in self._db.execute(f"SELECT {_COLUMNS} FROM calls {which}", values):
                yield StoredCall.from_row(row)

    def recent(self, model: str, stage: str, n: int) -> list[tuple[list[Message], Reply]]:
        """Return the last ``n`` answers of known size of a model in a stage, with messages."""
        which = (
            "WHERE model=? AND stage=? AND prompt_tokens IS NOT NULL"
            " AND completion_tokens IS NOT NULL ORDER BY at DESC LIMIT ?"
        )
        calls = self.calls(which, model, stage, n)
        return [(json.loads(bytes(call.request))["messages"], call.reply()) for call in calls]

    def missing(self, keys: Iterable[str]) -> set[str]:
        """Return the calls of ``keys`` that the ledger does not have."""
        sql = (
            "SELECT value FROM json_each(?) AS k WHERE value != ''"
            " AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.key = k.value)"
        )
        return {key for (key,) in self.select(sql, json.dumps(list(keys)))}

    def add_calls(self, rows: Iterable[Cells]) -> int:
        """Add the calls of a published run, all or none; return their number."""
        n_calls = 0
        with self.transaction():
            for row in rows:
                self._db.execute(_INSERT, row)
                n_calls += 1
        return n_calls

    def forget(self, keys: Iterable[str]) -> int:
        """Let these calls answer no more, so that they are asked again; return how many there were.

        They stay as superseded: spent, and never published.
        """
        which = "WHERE key IN (SELECT value FROM json_each(?))"
        listed = (json.dumps(list(keys)),)
        with self.transaction():
            self._db.execute(
                f"INSERT OR IGNORE INTO superseded ({_COLUMNS})"
                f" SELECT {_COLUMNS} FROM calls {which}",
                listed,
            )
            return self._db.execute(f"DELETE FROM calls {which}", listed).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what is written inside whole or, if anything fails, not at all."""
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                yield
        except BotChatError:  # of the rows, not of the file
            raise
        except sqlite3.Error as error:
            raise self._failed(error) from None
        except Exception as error:
            self._failed(error)
            raise

    def _failed(self, error: BaseException) -> BotChatError:
        """Return the error of the first write that failed, for `check_writable`."""
        if self._failure is None:
            self._failure = BotChatError(
                f"cannot write the ledger {self.path}: {one_line(error)}; nothing before this call "
                "is lost"
            )
        return self._failure

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except BotChatError:
            raise
        except Exception as error:  # of SQLite, zlib and JSON, or of a cell of another type
            # With its folder: SQLite would put the log (-wal) of the old file into a new one.
            raise DataError(
                f"cannot read the ledger {self.path}: {one_line(error)}; if it is damaged, move "
                f"{self.path and self.path.parent} away, and copy it back from a backup"
            ) from None


def _address(path: Path | None, readonly: bool) -> str:
    """Return the address of a file as SQLite opens it; without one, of a ledger in memory."""
    if path is None:
        return ":memory:"
    mode = "mode=rwc"
    if readonly:
        mode = "mode=ro"
        if not os.access(path.parent, os.W_OK):
            mode = "immutable=1"  # nothing can be written in its folder
    return f"{path.absolute().as_uri()}?{mode}"


def identity_key(identity: Identity) -> str:
    """Return the key of a model's identity."""
    return request_key(msgspec.json.encode(identity, order="deterministic"))
