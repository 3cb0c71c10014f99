"""The call ledger: every reply a model ever gave, whole, in one SQLite file per workspace.

A call is stored before anyone uses its reply, and is never sent again. Its key is the SHA-256 of
the canonical request: schema version, who was asked (model id, endpoint without credentials, fixed
parameters), messages, decoding and sample number.

``ledger.sql`` says what a row of each table is. WAL mode with ``synchronous=NORMAL``: a commit
survives the death of the process at any moment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from botchat.errors import BotChatError, DataError
from botchat.interfaces import Decoding, Message, Reply
from botchat.workspace.calls import (
    COLUMNS,
    FIELDS,
    REPLY,
    TABLES,
    Copy,
    StoredCall,
    call_of,
    connect,
    opened_to_read,
    row_of,
)
from botchat.workspace.jsonl import make_folder

SCHEMA = 1

CACHE_KB = 64 << 10
"""Most memory for pages of the file, taken as it is used."""

_Keeping: TypeAlias = tuple[tuple[Any, ...], "asyncio.Future[None]"]
"""A row, and who waits until it is stored."""

TABLE_OF = {False: "calls", True: "superseded"}
_INSERT = {
    # The same call, made at the same time, is in one of the two tables only.
    table: f"INSERT OR IGNORE INTO {table} ({COLUMNS}) "
    f"SELECT {', '.join(f'?{n + 1}' for n in range(len(FIELDS)))} WHERE NOT EXISTS "
    f"(SELECT 1 FROM {other} WHERE key=?{FIELDS.index('key') + 1} AND at=?{FIELDS.index('at') + 1})"
    for table, other in (("calls", "superseded"), ("superseded", "calls"))
}


@dataclass(frozen=True)
class NotedBatch:
    """A batch that was sent, or was about to be sent when its process died."""

    tag: str
    """Is in the batch's metadata, so the endpoint's list shows whether the batch was sent."""
    id: str | None
    """The endpoint's name for the batch; ``None``: not known."""
    sent: Mapping[str, Any]
    """Quirks its requests were made with (see `Reply.sent`)."""
    keys: frozenset[str]
    """Those of the calls asked about that are in the batch."""
    at: float
    """When it was noted, in seconds of the epoch."""


def request_json(
    identity: Mapping[str, Any], messages: Sequence[Message], decoding: Decoding
) -> bytes:
    """The canonical request: what decides the answer, in one byte order."""
    return msgspec.json.encode(
        {
            "schema": SCHEMA,
            "identity": identity,
            "messages": messages,
            "sampling": decoding.settings,
        },
        order="deterministic",
    )


def request_key(request: bytes) -> str:
    """SHA-256 of a canonical request, 64 hex digits."""
    return hashlib.sha256(request).hexdigest()


class Ledger:
    """One workspace's calls. Not shared between threads; one writing process at a time."""

    _copy: Copy | None = None

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        """Open or create the ledger at ``path``; ``None``: an empty one in memory.

        Raises `DataError` if the file is not a ledger of this version.
        """
        self.path = path
        self._keeping: list[_Keeping] = []
        try:
            if path is None:
                self._db = connect(None)
            elif readonly:
                self._db, self._copy = opened_to_read(path)
            else:
                make_folder(path.parent)
                self._db = connect(path, "mode=rwc")
            if path is None or not readonly:
                self._prepare()
            (found,) = self._db.execute("SELECT value FROM meta WHERE name='schema'").fetchone()
        except (sqlite3.Error, OSError, TypeError) as error:
            self._let_go()
            raise DataError(f"cannot open the ledger {path}: {error}; {self._advice}") from None
        if found != str(SCHEMA):
            self._let_go()
            raise DataError(
                f"{path} is a ledger of schema {found}; this BotChat reads schema {SCHEMA}"
            )

    def _prepare(self) -> None:
        """Make what a ledger of an older version, or a new one, does not have."""
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        # Keys are in random order: what does not fit is read and written again for each.
        self._db.execute(f"PRAGMA cache_size=-{CACHE_KB}")
        self._db.executescript(TABLES)
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))

    def close(self) -> None:
        """Close the file."""
        self._keep_all()
        self._let_go()

    def _let_go(self) -> None:
        with suppress(AttributeError):  # nothing could be opened
            self._db.close()
        if self._copy is not None:
            self._copy.cleanup()

    def get(self, key: str) -> Reply | None:
        """The stored reply of a call, or ``None`` if it was never answered."""
        return next((call.reply() for call in self.calls("WHERE key=?", key)), None)

    def put(self, key: str, request: bytes, reply: Reply, *, model: str, stage: str) -> None:
        """Store one answer; durable against the death of the process when this returns."""
        self._write(_INSERT["calls"], _row(key, request, reply, model, stage))

    def keep(
        self, key: str, request: bytes, reply: Reply, *, model: str, stage: str
    ) -> asyncio.Future[None]:
        """`put` when awaited, in one transaction with all others of this turn of the event loop."""
        loop = asyncio.get_running_loop()
        row, kept = _row(key, request, reply, model, stage), loop.create_future()
        if not self._keeping:
            loop.call_soon(self._keep_all)
        self._keeping.append((row, kept))
        return kept

    def _keep_all(self) -> None:
        keeping, self._keeping = self._keeping, []
        groups = [keeping] if keeping else []
        while groups:
            group, failed = groups.pop(), None
            try:
                with self.transaction():
                    self._db.executemany(_INSERT["calls"], [row for row, _ in group])
            except BotChatError as error:
                if len(group) > 1:  # each that can be stored is
                    groups += [[one] for one in group]
                    continue
                failed = error
            for kept in (one for _, one in group if not one.done()):
                if failed is None:
                    kept.set_result(None)
                else:
                    kept.set_exception(failed)

    def add_attempt(self, key: str, reply: Reply, *, model: str) -> None:
        """Note a try that brought no answer (it may have been billed)."""
        self._write(
            "INSERT INTO attempts VALUES (?,?,?,?,?,?,?)",
            (key, model, time.time(), reply.outcome, reply.status, reply.detail, reply.latency_s),
        )

    def quirks(self, identity: Mapping[str, Any]) -> dict[str, Any]:
        """What earlier runs learnt that this model's endpoint refuses."""
        sql = "SELECT value FROM quirks WHERE identity=?"
        found = self.select(sql, _identity_key(identity))
        return json.loads(found[0][0]) if found else {}

    def set_quirks(self, identity: Mapping[str, Any], value: Mapping[str, Any]) -> None:
        """Remember what a model's endpoint refuses, so that it refuses only once."""
        self._write(
            "INSERT OR REPLACE INTO quirks VALUES (?,?)",
            (_identity_key(identity), json.dumps(dict(value), sort_keys=True)),
        )

    def note_batch(
        self, tag: str, keys: Sequence[str], *, model: str, sent: Mapping[str, Any]
    ) -> None:
        """Note a batch before it is sent; durable even against a power cut when this returns."""
        note = (tag, model, time.time(), json.dumps(dict(sent), sort_keys=True))
        self._db.execute("PRAGMA synchronous=FULL")
        try:
            with self.transaction():
                self._db.execute("DELETE FROM batched WHERE key IN (SELECT key FROM calls)")
                self._db.execute("INSERT INTO batches VALUES (?,NULL,?,?,?)", note)
                pairs = [(key, tag) for key in keys]
                self._db.executemany("INSERT OR REPLACE INTO batched VALUES (?,?)", pairs)
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def name_batch(self, tag: str, id: str) -> None:
        """Note what the endpoint calls a noted batch."""
        self._write("UPDATE batches SET id=? WHERE tag=?", (id, tag))

    def batches_of(self, keys: Iterable[str]) -> list[NotedBatch]:
        """The noted batches that may still answer some of the calls ``keys``."""
        rows = self.select(
            "SELECT tag, id, sent, json_group_array(key), at FROM batched JOIN batches USING (tag)"
            " WHERE key IN (SELECT value FROM json_each(?)) GROUP BY tag ORDER BY at",
            json.dumps(list(keys)),
        )
        return [
            NotedBatch(tag, id, json.loads(sent), frozenset(json.loads(found)), at)
            for tag, id, sent, found, at in rows
        ]

    def unbatch(self, keys: Sequence[str]) -> None:
        """Note that no batch will answer these calls any more."""
        with self.transaction():
            self._db.executemany("DELETE FROM batched WHERE key=?", [(key,) for key in keys])

    def n_batched(self, since: float) -> int:
        """Unanswered calls in batches noted after ``since`` (seconds of the epoch)."""
        ((n,),) = self.select(
            "SELECT count(*) FROM batched JOIN batches USING (tag) WHERE at > ?"
            " AND NOT EXISTS (SELECT 1 FROM calls WHERE key=batched.key)",
            since,
        )
        return int(n)

    def select(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds. Raises `DataError`: the file is damaged."""
        with self._reading():
            return self._db.execute(sql, values).fetchall()

    def calls(self, which: str, *values: Any, superseded: bool = False) -> Iterator[StoredCall]:
        """The stored calls that ``which``, the rest of a query with its ``values``, selects.

        Raises `DataError`: the file is damaged.
        """
        sql = f"SELECT {COLUMNS} FROM {TABLE_OF[superseded]} {which}"
        with self._reading():
            for row in self._db.execute(sql, values):
                yield call_of(row, superseded)

    def recent(self, model: str, stage: str, n: int) -> list[tuple[list[Message], Reply]]:
        """The last ``n`` answers of known size of a model in a stage, with their messages."""
        calls = self.calls(
            "WHERE model=? AND stage=? AND prompt_tokens IS NOT NULL"
            " AND completion_tokens IS NOT NULL ORDER BY at DESC LIMIT ?",
            model,
            stage,
            n,
        )
        return [(json.loads(bytes(call.request))["messages"], call.reply()) for call in calls]

    def add(self, calls: Iterable[StoredCall]) -> tuple[int, int]:
        """Take in calls of another ledger, all or none: (added, already here).

        What ``calls`` raises, this raises.
        """
        added = known = 0
        with self.transaction():
            for call in calls:
                table = TABLE_OF[call.superseded]
                new = bool(self._db.execute(_INSERT[table], row_of(call)).rowcount)
                added, known = added + new, known + (not new)
        return added, known

    def forget(self, keys: Iterable[str]) -> int:
        """Let these calls answer no more, so that they are asked again; how many there were.

        They stay as superseded; no batch that holds them answers them again either.
        """
        which, listed = "WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),)
        moved = f"INSERT OR IGNORE INTO superseded ({COLUMNS}) SELECT {COLUMNS} FROM calls {which}"
        with self.transaction():
            self._db.execute(moved, listed)
            self._db.execute(f"DELETE FROM batched {which}", listed)
            return self._db.execute(f"DELETE FROM calls {which}", listed).rowcount

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        with self.transaction():
            self._db.execute(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written inside is written whole or, if anything fails, not at all."""
        part = self._db.in_transaction  # of another
        begin, end = ("SAVEPOINT part", "RELEASE part") if part else ("BEGIN IMMEDIATE", "COMMIT")
        try:
            self._db.execute(begin)
            try:
                yield
                self._db.execute(end)
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK TO part" if part else "ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise BotChatError(
                f"cannot write the ledger {self.path}: {error}; nothing before this call is lost"
            ) from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what a damaged file causes into a `DataError`."""
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            raise DataError(
                f"cannot read the ledger {self.path}: {' '.join(str(error).split())[:200]}; "
                f"{self._advice}"
            ) from None

    @property
    def _advice(self) -> str:
        # With its folder: SQLite would put the log (-wal) of the old file into a new one.
        return (
            f"if it is damaged, move {self.path and self.path.parent} away, and bring back what "
            "was exported with: botchat ledger import FILE"
        )


def _row(key: str, request: bytes, reply: Reply, model: str, stage: str) -> tuple[Any, ...]:
    """An answer as ``calls`` keeps it."""
    return row_of(
        StoredCall(
            model=model,
            stage=stage,
            at=time.time(),
            request=msgspec.Raw(request),
            **msgspec.structs.asdict(reply.usage),
            **{name: getattr(reply, name) for name in REPLY} | {"key": key},
        )
    )


def _identity_key(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()
