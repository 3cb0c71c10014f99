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
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec.structs import astuple

from botchat.errors import BotChatError, DataError
from botchat.interfaces import MOST_TOKENS, Decoding, Message, Reply, Usage
from botchat.records import UNANSWERED, Outcome
from botchat.workspace.jsonl import make_folder

SCHEMA = 1

MAX_LINE = 64 << 20
"""Bytes of the longest line that is imported; a reply's body has at most a quarter of them."""

_PRAGMAS = (  # keys are in random order, so 64 MiB of pages are kept
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"
)
_TABLES = resources.files(__package__).joinpath("ledger.sql").read_text("utf-8")

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None
_Positive: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
_Time: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]
"""Seconds of the epoch, as far as calendars go."""


class StoredCall(msgspec.Struct, frozen=True):
    """A row of ``calls`` or ``superseded``; also a line of a published run's calls."""

    key: str
    model: str
    stage: str
    at: _Time
    outcome: Outcome
    text: str
    finish_reason: str | None
    prompt_tokens: _Count
    completion_tokens: _Count
    cached_tokens: _Count
    latency_s: _Positive
    cost_usd: _Positive | None
    detail: str
    sent: dict[str, Any]
    request: msgspec.Raw
    """The canonical request, byte for byte: the key is its digest."""
    raw: str

    def reply(self) -> Reply:
        """Return the reply as it was stored."""
        usage = Usage(self.prompt_tokens, self.completion_tokens, self.cached_tokens)
        named = {name: getattr(self, name) for name in ("detail", "raw", "sent", "key")}
        end = (self.outcome, self.text, self.finish_reason)
        return Reply(*end, usage, self.latency_s, self.cost_usd, **named)

    def row(self) -> tuple[Any, ...]:
        """Return a value for each column of the table."""
        packed = map(_pack, (bytes(self.request), self.raw.encode("utf-8", "surrogatepass")))
        return (*astuple(self)[:-3], json.dumps(self.sent, sort_keys=True), *packed)

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> StoredCall:
        """Read a row of the table. Raises ``ValueError`` or ``zlib.error`` if it is damaged."""
        *plain, sent, request, raw = row
        text = zlib.decompress(raw).decode("utf-8", "surrogatepass")
        values = (*plain, json.loads(sent), msgspec.Raw(zlib.decompress(request)), text)
        return cls(*values)


_COLUMNS = ", ".join(StoredCall.__struct_fields__)
_SLOTS = ", ".join(f"?{n}" for n, _ in enumerate(StoredCall.__struct_fields__, 1))
_INSERT = (  # a published run brings no forgotten answer back
    f"INSERT OR IGNORE INTO calls ({_COLUMNS}) SELECT {_SLOTS}"
    " WHERE NOT EXISTS (SELECT 1 FROM superseded WHERE key=?1 AND at=?4)"
)


def request_json(
    identity: Mapping[str, Any], messages: Sequence[Message], decoding: Decoding
) -> bytes:
    """Return the canonical request: what decides the answer, in one byte order."""
    request = {"schema": SCHEMA, "identity": identity, "messages": messages}
    return msgspec.json.encode(request | {"sampling": decoding.settings}, order="deterministic")


def request_key(request: bytes) -> str:
    """Return the SHA-256 of a canonical request, 64 hex digits."""
    return hashlib.sha256(request).hexdigest()


class Ledger:
    """One workspace's calls. Not shared between threads; one writing process at a time."""

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        """Open or create the ledger at ``path``; None: an empty one in memory.

        Raises `DataError` if the file is not a ledger of this version.
        """
        self.path = path
        self._keeping: list[tuple[tuple[Any, ...], asyncio.Future[None]]] = []
        self._failure: BotChatError | None = None
        try:
            if path is not None and not readonly:
                make_folder(path.parent)
            self._db = _connect(path, readonly and path is not None)
            (schema,) = self._db.execute("SELECT value FROM meta WHERE name='schema'").fetchone()
        except (sqlite3.Error, OSError, TypeError) as error:
            raise DataError(f"cannot open the ledger {path}: {error}; {self._advice}") from None
        if schema != str(SCHEMA):
            self._db.close()
            raise DataError(
                f"{path} is a ledger of schema {schema}; this BotChat reads schema {SCHEMA}"
            )

    def close(self) -> None:
        """Store what waits, and close the file."""
        if self._keeping:
            self._keep_all()
        self._db.close()

    def get(self, key: str) -> Reply | None:
        """Return the stored reply of a call, or None if it was never answered."""
        return next((call.reply() for call in self.calls("WHERE key=?", key)), None)

    def keep(
        self, key: str, request: bytes, reply: Reply, *, model: str, stage: str
    ) -> asyncio.Future[None]:
        """Store an answer, in one transaction with all others of this turn of the event loop.

        It is durable against the death of the process when the result is awaited.
        """
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        if not self._keeping:
            loop.call_soon(self._keep_all)
        self._keeping.append((_row(key, request, reply, model, stage), kept))
        return kept

    def _keep_all(self) -> None:
        keeping, self._keeping = self._keeping, []
        failure: BotChatError | None = None
        try:
            with self.transaction():
                self._db.executemany(_INSERT, [row for row, _ in keeping])
        except BotChatError as error:
            failure = error
        for kept in (kept for _, kept in keeping if not kept.done()):
            kept.set_exception(failure) if failure else kept.set_result(None)

    def check_writable(self) -> None:
        """Raise the error of the first write that failed: what is sent after it may be lost."""
        if self._failure is not None:
            raise self._failure

    def add_attempt(self, key: str, reply: Reply, *, model: str) -> None:
        """Store an attempt that brought no answer (it may have been billed)."""
        self._write(
            "INSERT INTO attempts VALUES (?,?,?,?,?,?,?)",
            (key, model, time.time(), reply.outcome, reply.status, reply.detail, reply.latency_s),
        )

    def quirks(self, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Return what earlier runs learnt that this model's endpoint refuses."""
        rows = self.select("SELECT value FROM quirks WHERE identity=?", _identity_key(identity))
        return json.loads(rows[0][0]) if rows else {}

    def set_quirks(self, identity: Mapping[str, Any], quirks: Mapping[str, Any]) -> None:
        """Store what a model's endpoint refuses, so that it refuses only once."""
        value = json.dumps(dict(quirks), sort_keys=True)
        self._write("INSERT OR REPLACE INTO quirks VALUES (?,?)", (_identity_key(identity), value))

    def select(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises `DataError` if the file is damaged."""
        with self._reading():
            return self._db.execute(sql, values).fetchall()

    def calls(self, which: str, *values: Any) -> Iterator[StoredCall]:
        """Yield the stored calls that ``which``, the rest of a query with its ``values``, selects.

        Raises `DataError` if the file is damaged.
        """
        with self._reading():
            for row in self._db.execute(f"SELECT {_COLUMNS} FROM calls {which}", values):
                yield StoredCall.from_row(row)

    def recent(self, model: str, stage: str, n: int) -> list[tuple[list[Message], Reply]]:
        """Return the last ``n`` answers of known size of a model in a stage, with messages."""
        known = "prompt_tokens IS NOT NULL AND completion_tokens IS NOT NULL"
        which = f"WHERE model=? AND stage=? AND {known} ORDER BY at DESC LIMIT ?"
        calls = self.calls(which, model, stage, n)
        return [(json.loads(bytes(call.request))["messages"], call.reply()) for call in calls]

    def missing(self, keys: Iterable[str]) -> set[str]:
        """Return those of the calls ``keys`` that the ledger does not have."""
        unique = {*keys} - {""}
        sql = "SELECT calls.key FROM json_each(?) AS k CROSS JOIN calls ON calls.key = k.value"
        return unique - {key for (key,) in self.select(sql, json.dumps(sorted(unique)))}

    def import_calls(self, path: Path) -> int:
        """Add the calls of a published run, JSON lines in gzip, all or none; return their number.

        Every key is checked against its request, so a damaged or edited request cannot answer for
        another. Raises `DataError`, with file and line.
        """
        n = 0
        try:
            with gzip.open(path) as file, self.transaction():
                for n, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
                    self._db.execute(_INSERT, _published_call(line, f"{path}:{n}").row())
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"cannot read {path}: {error}") from None
        return n

    def forget(self, keys: Iterable[str]) -> int:
        """Let these calls answer no more, so that they are asked again; return how many there were.

        They stay as superseded: spent, and never published.
        """
        which, listed = "WHERE key IN (SELECT value FROM json_each(?))", (json.dumps([*keys]),)
        moved = f"INSERT OR IGNORE INTO superseded ({_COLUMNS}) SELECT {_COLUMNS} FROM calls"
        with self.transaction():
            self._db.execute(f"{moved} {which}", listed)
            return self._db.execute(f"DELETE FROM calls {which}", listed).rowcount

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        with self.transaction():
            self._db.execute(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what is written inside whole or, if anything fails, not at all."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            self._failure = BotChatError(
                f"cannot write the ledger {self.path}: {error}; nothing before this call is lost"
            )
            raise self._failure from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            line = " ".join(str(error).split())[:200]
            raise DataError(f"cannot read the ledger {self.path}: {line}; {self._advice}") from None

    @property
    def _advice(self) -> str:
        # With its folder: SQLite would put the log (-wal) of the old file into a new one.
        return (
            f"if it is damaged, move {self.path and self.path.parent} away, and copy it back from "
            "a backup"
        )


def _connect(path: Path | None, readonly: bool) -> sqlite3.Connection:
    uri = path.absolute().as_uri() if path else "file::memory:"

    def connect(mode: str) -> sqlite3.Connection:
        address = f"{uri}?{mode}" if path else uri
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    db = connect("mode=ro" if readonly else "mode=rwc")
    try:
        if readonly:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        else:
            db.executescript(_PRAGMAS + _TABLES)
            db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
    except sqlite3.DatabaseError as error:
        db.close()
        if readonly and error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return connect("immutable=1")  # in a folder where nothing can be written
        raise
    return db


def _row(key: str, request: bytes, reply: Reply, model: str, stage: str) -> tuple[Any, ...]:
    end = (reply.outcome, reply.text, reply.finish_reason, *astuple(reply.usage))
    more = (reply.latency_s, reply.cost_usd, reply.detail, dict(reply.sent))
    call = (key, model, stage, time.time(), *end, *more, msgspec.Raw(request), reply.raw)
    return StoredCall(*call).row()


def _pack(data: bytes) -> bytes:
    # A window that holds all of the data finds all repeats; a larger one is memory to be fetched.
    window = max(9, min(15, len(data).bit_length() + 1))
    packer = zlib.compressobj(1, zlib.DEFLATED, window, window - 7)
    return packer.compress(data) + packer.flush()


def _identity_key(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()


class _CanonicalRequest(msgspec.Struct):
    schema: int
    identity: dict[str, Any]
    messages: list[Message]
    sampling: dict[str, Any]


def _published_call(line: bytes, place: str) -> StoredCall:
    """Read a line of a published run's calls; raises `DataError` if it is none."""
    try:
        if len(line) > MAX_LINE:
            raise ValueError(f"longer than {MAX_LINE >> 20} MiB")
        call = msgspec.json.decode(line, type=StoredCall)
        if request_key(bytes(call.request)) != call.key:
            raise ValueError(f"the request does not match its key {call.key[:12]}…")
        if call.outcome in UNANSWERED:
            raise ValueError(f"the outcome {call.outcome} is no answer")
        msgspec.json.decode(call.request, type=_CanonicalRequest)
        json.dumps(call.sent)  # fails on lists inside lists without end
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(f"{place}: not a call of a published run: {why}") from None
    return call
