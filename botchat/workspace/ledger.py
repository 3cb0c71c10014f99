"""The call ledger: every reply a model ever gave, whole, in one SQLite file per workspace.

A call is stored before anyone uses its reply, and is never sent again. Its key is the SHA-256 of
the canonical request: schema version, who was asked (model id, endpoint without credentials, fixed
parameters), messages, decoding and sample number.

``ledger.sql`` says what a row of each table is. WAL mode with ``synchronous=NORMAL``: a commit
survives the death of the process at any moment.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import IO, Any

import msgspec

from botchat.errors import BotChatError, DataError
from botchat.interfaces import Decoding, Message, Reply, Usage
from botchat.records import Outcome
from botchat.workspace.files import make_folder

SCHEMA = 1

_TABLES = resources.files(__package__).joinpath("ledger.sql").read_text("utf-8")


class StoredCall(msgspec.Struct, frozen=True):
    """A row of ``calls``; also a line of an exported ledger."""

    key: str
    model: str
    stage: str
    at: float
    request: msgspec.Raw
    """The canonical request, byte for byte: the key is its digest."""
    outcome: Outcome
    text: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    latency_s: float
    cost_usd: float | None
    detail: str
    raw: str
    sent: dict[str, Any]
    cache_write_tokens: int | None = None

    def reply(self) -> Reply:
        """The answer, as it was when it was stored."""
        told = msgspec.structs.asdict(self)
        return Reply(
            usage=Usage(*(told[name] for name in _COUNTS)),
            **{name: told[name] for name in _REPLY},
        )


_FIELDS = StoredCall.__struct_fields__
_COUNTS = [field.name for field in fields(Usage)]
_REPLY = [field.name for field in fields(Reply) if field.name in _FIELDS]
_INSERT = (
    f"INSERT OR IGNORE INTO calls ({', '.join(_FIELDS)}) "
    f"VALUES ({', '.join(f':{name}' for name in _FIELDS)})"
)


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

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        """Open or create the ledger at ``path``; ``None``: an empty one in memory.

        Raises `DataError` if the file is not a ledger of this version.
        """
        self.path = path
        uri = "file::memory:"
        if path is not None:
            uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
            if not readonly:
                make_folder(path.parent)
        try:
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            if not readonly:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.executescript(_TABLES)
                columns = self._db.execute("SELECT name FROM pragma_table_info('calls')")
                if ("cache_write_tokens",) not in columns.fetchall():
                    self._db.execute("ALTER TABLE calls ADD COLUMN cache_write_tokens INTEGER")
                self._db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
            (found,) = self._db.execute("SELECT value FROM meta WHERE name='schema'").fetchone()
        except (sqlite3.Error, TypeError) as error:
            raise DataError(f"cannot open the ledger {path}: {error}") from None
        if found != str(SCHEMA):
            raise DataError(
                f"{path} is a ledger of schema {found}; this BotChat reads schema {SCHEMA}"
            )

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def get(self, key: str) -> Reply | None:
        """The stored reply of a call, or ``None`` if it was never answered."""
        return next((call.reply() for call in self.calls("WHERE key=?", key)), None)

    def put(self, key: str, request: bytes, reply: Reply, *, model: str, stage: str) -> None:
        """Store one answer; durable against the death of the process when this returns."""
        call = StoredCall(
            model=model,
            stage=stage,
            at=time.time(),
            request=msgspec.Raw(request),
            **vars(reply.usage),
            **{name: getattr(reply, name) for name in _REPLY} | {"key": key},
        )
        self._write(_INSERT, _row(call))

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
            with self._transaction():
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

    def batch_ids(self) -> frozenset[str]:
        """What endpoints call the noted batches, where that is known."""
        return frozenset(id for (id,) in self.select("SELECT id FROM batches WHERE id IS NOT NULL"))

    def unbatch(self, keys: Sequence[str]) -> None:
        """Note that no batch will answer these calls any more."""
        with self._transaction():
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

    def calls(self, which: str, *values: Any) -> Iterator[StoredCall]:
        """The stored calls that ``which``, the rest of a query with its ``values``, selects."""
        with self._reading():
            sql = f"SELECT {', '.join(_FIELDS)} FROM calls {which}"
            for row in self._db.execute(sql, values):
                facts: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
                facts["request"] = msgspec.Raw(zlib.decompress(facts["request"]))
                facts["raw"] = zlib.decompress(facts["raw"]).decode("utf-8", "surrogatepass")
                facts["sent"] = json.loads(facts["sent"])
                yield StoredCall(**facts)

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
        with self._transaction():
            new = [self._db.execute(_INSERT, _row(call)).rowcount == 1 for call in calls]
        return sum(new), len(new) - sum(new)

    def _write(self, sql: str, values: tuple[Any, ...] | dict[str, Any]) -> None:
        with self._transaction():
            self._db.execute(sql, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """What is written inside is written whole or, if anything fails, not at all."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise BotChatError(
                f"cannot write the ledger {self.path}: {error}; nothing before this call is lost"
            ) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what a damaged file causes into a `DataError`."""
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError) as error:
            raise DataError(
                f"cannot read the ledger {self.path}: {error}; if it is damaged, move it away and "
                "bring back what was exported, with: botchat ledger import FILE"
            ) from None


def _row(call: StoredCall) -> dict[str, Any]:
    """A call as its table keeps it: column -> value."""
    return msgspec.structs.asdict(call) | {
        "request": zlib.compress(bytes(call.request), 1),
        "raw": zlib.compress(call.raw.encode("utf-8", "surrogatepass"), 1),
        "sent": json.dumps(call.sent, sort_keys=True),
    }


def _identity_key(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()


@dataclass(frozen=True)
class ModelStats:
    """What one model has cost so far in one stage. ``cost_usd`` counts known prices only."""

    model: str
    stage: str
    calls: int
    failed_attempts: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost_usd: float | None
    unpriced_calls: int
    latency_s: float
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bill:
    """What one call took; ``None`` where the endpoint did not count or the price is unknown."""

    tokens: int | None
    """Prompt and completion together."""
    cost_usd: float | None
    latency_s: float


def bills(ledger: Ledger, keys: Iterable[str]) -> dict[str, Bill]:
    """What each of the calls ``keys`` took, as far as they are in the ledger.

    A failed call for which the endpoint counted no tokens is taken to have cost nothing.
    """
    rows = ledger.select(
        "SELECT key, prompt_tokens + completion_tokens, cost_usd, latency_s,"
        " coalesce(prompt_tokens, completion_tokens) IS NULL"
        " AND outcome NOT IN ('ok', 'truncated')"
        " FROM calls WHERE key IN (SELECT value FROM json_each(?))",
        json.dumps(list(keys)),
    )
    return {
        key: Bill(0, 0.0, latency) if free else Bill(tokens, cost, latency)
        for key, tokens, cost, latency, free in rows
    }


def stats(ledger: Ledger) -> list[ModelStats]:
    """Calls, tokens, money and outcomes by model and stage, sorted by name."""
    failed = dict(ledger.select("SELECT model, count(*) FROM attempts GROUP BY model"))
    rows = ledger.select(
        "SELECT model, stage, count(*), 0, coalesce(sum(prompt_tokens), 0),"
        " coalesce(sum(completion_tokens), 0), coalesce(sum(cached_tokens), 0),"
        " sum(cost_usd), sum(cost_usd IS NULL), sum(latency_s), json_group_array(outcome)"
        " FROM calls GROUP BY 1, 2 ORDER BY 1, 2"
    )
    # Failed attempts are counted by model; they are shown once, beside its first stage.
    result = [
        replace(
            ModelStats(*row),
            failed_attempts=failed.pop(row[0], 0),
            outcomes=dict(Counter(sorted(json.loads(row[-1])))),
        )
        for row in rows
    ]
    never_answered = sorted(failed.items())
    return result + [ModelStats(m, "", 0, n, 0, 0, 0, None, 0, 0.0, {}) for m, n in never_answered]


def export(ledger: Ledger, path: Path) -> int:
    """Write every call as one JSON line (gzip if the name ends in ``.gz``); how many."""
    count = 0
    try:
        with _open(path, "wb") as file:
            for call in ledger.calls("ORDER BY key"):
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
