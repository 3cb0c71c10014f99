"""The call ledger: every reply a model ever gave, whole, in one SQLite file per workspace.

A call is stored before anyone uses its reply, and is never sent again. Its key is the SHA-256 of
the canonical request: schema version, who was asked (model id, endpoint without credentials, fixed
parameters), messages, decoding and sample number.

``ledger.sql`` describes the tables. WAL mode with ``synchronous=NORMAL``: a commit survives the
death of the process at any moment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
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
from botchat.interfaces import MOST_TOKENS, Decoding, Message, Reply, Sent, Usage
from botchat.records import Outcome
from botchat.workspace.jsonl import make_folder

SCHEMA = 1

_PRAGMAS = (  # keys are in random order, so 64 MiB of pages are kept
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"
)
_TABLES = resources.files(__package__).joinpath("ledger.sql").read_text("utf-8")

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None
_Positive: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]
"""Also of the epoch's seconds, as far as calendars go."""


class StoredCall(msgspec.Struct, frozen=True):
    """A row of ``calls`` or ``superseded``; also a line of a published run's calls."""

    key: str
    model: str
    stage: str
    at: _Positive
    outcome: Outcome
    text: str
    finish_reason: str | None
    prompt_tokens: _Count
    completion_tokens: _Count
    cached_tokens: _Count
    latency_s: _Positive
    cost_usd: _Positive | None
    detail: str
    sent: Sent
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
        return (
            *astuple(self)[:-3],
            msgspec.json.encode(self.sent, order="sorted").decode(),
            *packed,
        )

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> StoredCall:
        """Read a row of the table. Raises ``ValueError`` or ``zlib.error`` if it is damaged."""
        *plain, sent, request, raw = row
        text = zlib.decompress(raw).decode("utf-8", "surrogatepass")
        values = (
            *plain,
            msgspec.json.decode(sent, type=Sent),
            msgspec.Raw(zlib.decompress(request)),
            text,
        )
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
        """Open or create the ledger at ``path``, or without one an empty one in memory.

        Raises `DataError` if the file is not a ledger of this version.
        """
        self.path = path
        self._keeping: list[tuple[tuple[Any, ...], asyncio.Future[None]]] = []
        self._failure: BotChatError | None = None
        mode = "mode=ro" if readonly else "mode=rwc"
        if readonly and path and not os.access(path.parent, os.W_OK):
            mode = "immutable=1"  # nothing can be written in its folder
        place = f"{path.absolute().as_uri()}?{mode}" if path else ""
        with self._reading():
            if path is not None and not readonly:
                make_folder(path.parent)
            self._db = sqlite3.connect(
                place or ":memory:", uri=True, isolation_level=None, check_same_thread=False
            )
            try:
                if not readonly:
                    self._db.executescript(_PRAGMAS + _TABLES)
                    self._db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA,))
                self._db.execute("SELECT key FROM calls LIMIT 1")
            except sqlite3.Error:
                self._db.close()
                raise

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
        end = (reply.outcome, reply.text, reply.finish_reason, *astuple(reply.usage))
        more = (reply.latency_s, reply.cost_usd, reply.detail, reply.sent)
        call = (key, model, stage, time.time(), *end, *more, msgspec.Raw(request), reply.raw)
        self._keeping.append((StoredCall(*call).row(), kept))
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

    def add_attempt(self, key: str, reply: Reply, *, model: str, status: int | None) -> None:
        """Store an attempt that brought no answer (it may have been billed)."""
        end = (reply.outcome, status, reply.detail, reply.latency_s)
        with self.transaction():
            row = (key, model, time.time(), *end)
            self._db.execute("INSERT INTO attempts VALUES (?,?,?,?,?,?,?)", row)

    def quirks(self, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Return what earlier runs learnt that this model's endpoint refuses."""
        rows = self.select("SELECT value FROM quirks WHERE identity=?", identity_key(identity))
        return json.loads(rows[0][0]) if rows else {}

    def set_quirks(self, identity: Mapping[str, Any], quirks: Mapping[str, Any]) -> None:
        """Store what a model's endpoint refuses, so that it refuses only once."""
        row = (identity_key(identity), json.dumps(dict(quirks), sort_keys=True))
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO quirks VALUES (?,?)", row)

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
        """Return the calls of ``keys`` that the ledger does not have."""
        unique = {*keys} - {""}
        sql = "SELECT calls.key FROM json_each(?) AS k CROSS JOIN calls ON calls.key = k.value"
        return unique - {key for (key,) in self.select(sql, json.dumps(sorted(unique)))}

    def add_calls(self, rows: Iterable[tuple[Any, ...]]) -> int:
        """Add the calls of a published run, all or none; return their number."""
        with self.transaction():
            return len([self._db.execute(_INSERT, row) for row in rows])

    def forget(self, keys: Iterable[str]) -> int:
        """Let these calls answer no more, so that they are asked again; return how many there were.

        They stay as superseded: spent, and never published.
        """
        which, listed = "WHERE key IN (SELECT value FROM json_each(?))", (json.dumps([*keys]),)
        moved = f"INSERT OR IGNORE INTO superseded ({_COLUMNS}) SELECT {_COLUMNS} FROM calls"
        with self.transaction():
            self._db.execute(f"{moved} {which}", listed)
            return self._db.execute(f"DELETE FROM calls {which}", listed).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write what is written inside whole or, if anything fails, not at all."""
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            self._failure = BotChatError(
                f"cannot write the ledger {self.path}: {error}; nothing before this call is lost"
            )
            raise self._failure from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError, TypeError, OSError) as error:
            line = " ".join(str(error).split())[:200]
            # With its folder: SQLite would put the log (-wal) of the old file into a new one.
            raise DataError(
                f"cannot read the ledger {self.path}: {line}; if it is damaged, move "
                f"{self.path and self.path.parent} away, and copy it back from a backup"
            ) from None


def _pack(data: bytes) -> bytes:
    # A window that holds all of the data finds all repeats; a larger one is memory to be fetched.
    window = max(9, min(15, len(data).bit_length() + 1))
    packer = zlib.compressobj(1, zlib.DEFLATED, window, window - 7)
    return packer.compress(data) + packer.flush()


def identity_key(identity: Mapping[str, Any]) -> str:
    """Return the key of a model's identity."""
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()
