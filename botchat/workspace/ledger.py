"""The call ledger: every reply a model ever gave, whole, in one SQLite file per workspace.

A call is stored before anyone uses it and is never sent again. Its key is the SHA-256 of the
canonical request: schema version, who was asked (model id, endpoint without credentials, fixed
parameters), messages, decoding and sample number. Tries that brought no answer are in ``attempts``,
what an endpoint refused (a role layout, a parameter) in ``quirks``, what is on its way in a batch
(`botchat.models.endpoint.batch`) in ``batches`` and ``batched``.

WAL mode with ``synchronous=NORMAL``: a commit survives the death of the process at any moment.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from botchat.errors import BotChatError, DataError
from botchat.interfaces import Decoding, Message, Reply, Usage
from botchat.records import Outcome
from botchat.workspace.files import make_folder

SCHEMA = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    stage TEXT NOT NULL,
    outcome TEXT NOT NULL,
    text TEXT NOT NULL,
    finish_reason TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cached_tokens INTEGER,
    cost_usd REAL,
    latency_s REAL NOT NULL,
    at REAL NOT NULL,
    detail TEXT NOT NULL,
    sent TEXT NOT NULL,
    request BLOB NOT NULL,
    raw BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER,
    detail TEXT NOT NULL,
    latency_s REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS quirks (identity TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    tag TEXT PRIMARY KEY,
    id TEXT,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    sent TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batched (key TEXT PRIMARY KEY, tag TEXT NOT NULL) WITHOUT ROWID;
"""

_ANSWER = "outcome, text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, "
_ANSWER += "latency_s, cost_usd, detail, raw, sent"


class StoredCall(msgspec.Struct, frozen=True):
    """A call with its answer, as `botchat.workspace.ledger_archive` moves it between ledgers."""

    key: str
    model: str
    stage: str
    at: float
    request: msgspec.Raw
    """As it was made, byte for byte: the key is its digest."""
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


@dataclass(frozen=True)
class NotedBatch:
    """A batch that was sent, or was about to be when its process died."""

    tag: str
    """Stands in the batch's metadata, so that the endpoint's list tells whether it was sent."""
    id: str | None
    """The endpoint's name for it; ``None``: not known."""
    sent: Mapping[str, Any]
    """Quirks its requests were made with (see `Reply.sent`)."""
    keys: frozenset[str]
    """The calls asked about that are in it."""


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

        Raises:
            DataError: the file is not a ledger of this version.
        """
        self.path = path
        if path is None:
            uri = "file::memory:"
        else:
            if not readonly:
                make_folder(path.parent)
            uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
        try:
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            if not readonly:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.executescript(_TABLES)
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
        with self._reading():
            row = self._db.execute(f"SELECT {_ANSWER} FROM calls WHERE key=?", (key,)).fetchone()
            return None if row is None else _reply(key, row)

    def put(self, key: str, request: bytes, reply: Reply, *, model: str, stage: str) -> None:
        """Store one answer; durable against the death of the process when this returns."""
        self._write(_INSERT, _row(key, request, reply, model=model, stage=stage, at=time.time()))

    def add_attempt(self, key: str, reply: Reply, *, model: str) -> None:
        """Note a try that brought no answer (it may have been billed)."""
        self._write(
            "INSERT INTO attempts VALUES (?,?,?,?,?,?,?)",
            (key, model, time.time(), reply.outcome, reply.status, reply.detail, reply.latency_s),
        )

    def quirks(self, identity: Mapping[str, Any]) -> dict[str, Any]:
        """What was learnt about an endpoint's model in earlier runs."""
        sql = "SELECT value FROM quirks WHERE identity=?"
        found = self.select(sql, _identity_key(identity))
        return json.loads(found[0][0]) if found else {}

    def set_quirks(self, identity: Mapping[str, Any], value: Mapping[str, Any]) -> None:
        """Remember what an endpoint's model refuses, so that it is asked only once."""
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
            self._write_all(
                ("DELETE FROM batched WHERE key IN (SELECT key FROM calls)", [()]),
                ("INSERT INTO batches VALUES (?,NULL,?,?,?)", [note]),
                ("INSERT OR REPLACE INTO batched VALUES (?,?)", [(key, tag) for key in keys]),
            )
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def name_batch(self, tag: str, id: str) -> None:
        """Note what the endpoint calls a noted batch."""
        self._write("UPDATE batches SET id=? WHERE tag=?", (id, tag))

    def batches_of(self, keys: Iterable[str]) -> list[NotedBatch]:
        """The noted batches that may still answer some of the calls ``keys``."""
        by_tag: dict[str, set[str]] = {}
        for key in keys:
            for (tag,) in self.select("SELECT tag FROM batched WHERE key=?", key):
                by_tag.setdefault(tag, set()).add(key)
        return [
            NotedBatch(tag, id, json.loads(sent), frozenset(by_tag[tag]))
            for tag, id, sent in self.select("SELECT tag, id, sent FROM batches ORDER BY at")
            if tag in by_tag
        ]

    def unbatch(self, keys: Sequence[str]) -> None:
        """Note that no batch will answer these calls any more."""
        self._write_all(("DELETE FROM batched WHERE key=?", [(key,) for key in keys]))

    def n_batched(self, since: float) -> int:
        """Unanswered calls in batches noted after ``since`` (seconds of the epoch)."""
        ((n,),) = self.select(
            "SELECT count(*) FROM batched JOIN batches USING (tag) WHERE at > ?"
            " AND NOT EXISTS (SELECT 1 FROM calls WHERE key=batched.key)",
            since,
        )
        return int(n)

    def select(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds.

        Raises:
            DataError: the file is damaged.
        """
        with self._reading():
            return self._db.execute(sql, values).fetchall()

    def recent(self, model: str, stage: str, n: int) -> list[tuple[list[Message], Reply]]:
        """The last ``n`` answers of known size of a model in a stage, with their messages."""
        with self._reading():
            rows = self._db.execute(
                f"SELECT key, request, {_ANSWER} FROM calls WHERE model=? AND stage=?"
                " AND prompt_tokens IS NOT NULL AND completion_tokens IS NOT NULL"
                " ORDER BY at DESC LIMIT ?",
                (model, stage, n),
            )
            return [
                (json.loads(zlib.decompress(request))["messages"], _reply(key, tuple(answer)))
                for key, request, *answer in rows
            ]

    def stored(self) -> Iterator[StoredCall]:
        """Every call, by key."""
        columns = ", ".join(StoredCall.__struct_fields__)
        with self._reading():
            for row in self._db.execute(f"SELECT {columns} FROM calls ORDER BY key"):
                yield _stored(row)

    def add(self, calls: Iterable[StoredCall]) -> tuple[int, int]:
        """Take in calls of another ledger, all or none: (added, already here).

        What ``calls`` raises, this raises.
        """
        added = known = 0
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for call in calls:
                if self._db.execute(_INSERT, _row_of(call)).rowcount == 1:
                    added += 1
                else:
                    known += 1
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise self._failed(error) from None
        except BaseException:
            self._rollback()
            raise
        return added, known

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        try:
            self._db.execute(sql, values)
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def _write_all(self, *steps: tuple[str, Sequence[tuple[Any, ...]]]) -> None:
        """Each statement once for each of its rows; all or nothing."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for sql, rows in steps:
                self._db.executemany(sql, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise self._failed(error) from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Whatever is read here may be damaged."""
        try:
            yield
        except (sqlite3.Error, zlib.error, ValueError) as error:
            raise DataError(
                f"cannot read the ledger {self.path}: {error}; if it is damaged, move it away and "
                "bring back what was exported, with: botchat ledger import FILE"
            ) from None

    def _failed(self, error: sqlite3.Error) -> BotChatError:
        return BotChatError(
            f"cannot write the ledger {self.path}: {error}; nothing before this call is lost"
        )

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


_INSERT = "INSERT OR IGNORE INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"


def _row(
    key: str, request: bytes, reply: Reply, *, model: str, stage: str, at: float
) -> tuple[Any, ...]:
    """A call as the table keeps it."""
    usage = reply.usage
    return (
        key,
        model,
        stage,
        reply.outcome,
        reply.text,
        reply.finish_reason,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        reply.cost_usd,
        reply.latency_s,
        at,
        reply.detail,
        json.dumps(dict(reply.sent), sort_keys=True),
        zlib.compress(request, 1),
        zlib.compress(reply.raw.encode("utf-8", "surrogatepass"), 1),
    )


def _row_of(call: StoredCall) -> tuple[Any, ...]:
    reply = Reply(
        call.outcome,
        text=call.text,
        finish_reason=call.finish_reason,
        usage=Usage(call.prompt_tokens, call.completion_tokens, call.cached_tokens),
        latency_s=call.latency_s,
        cost_usd=call.cost_usd,
        detail=call.detail,
        raw=call.raw,
        sent=call.sent,
    )
    request = bytes(call.request)
    return _row(call.key, request, reply, model=call.model, stage=call.stage, at=call.at)


def _stored(row: tuple[Any, ...]) -> StoredCall:
    facts: dict[str, Any] = dict(zip(StoredCall.__struct_fields__, row, strict=True))
    facts["request"] = msgspec.Raw(zlib.decompress(facts["request"]))
    facts["raw"] = zlib.decompress(facts["raw"]).decode("utf-8", "surrogatepass")
    facts["sent"] = json.loads(facts["sent"])
    return StoredCall(**facts)


def _reply(key: str, row: tuple[Any, ...]) -> Reply:
    outcome, text, finish, prompt, completion, cached, latency, cost, detail, raw, sent = row
    return Reply(
        outcome=outcome,
        text=text,
        finish_reason=finish,
        usage=Usage(prompt, completion, cached),
        latency_s=latency,
        cost_usd=cost,
        detail=detail,
        raw=zlib.decompress(raw).decode("utf-8", "surrogatepass"),
        sent=json.loads(sent),
        key=key,
    )


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
    """Of prompt and completion."""
    cost_usd: float | None
    latency_s: float


def bills(ledger: Ledger, keys: Iterable[str]) -> dict[str, Bill]:
    """What each of the calls ``keys`` took, as far as they are in the ledger.

    A failed call of which the endpoint counted no tokens is taken to have cost nothing.
    """
    rows = ledger.select(
        "SELECT key, outcome IN ('ok', 'truncated'), prompt_tokens, completion_tokens,"
        " cost_usd, latency_s FROM calls WHERE key IN (SELECT value FROM json_each(?))",
        json.dumps(list(keys)),
    )
    found = {}
    for key, usable, prompt, completion, cost, latency in rows:
        if prompt is None and completion is None and not usable:
            found[key] = Bill(0, 0.0, latency)
        else:
            known = prompt is not None and completion is not None
            found[key] = Bill(prompt + completion if known else None, cost, latency)
    return found


def stats(ledger: Ledger) -> list[ModelStats]:
    """Calls, tokens, money and outcomes by model and stage, sorted by name."""
    failed = dict(ledger.select("SELECT model, count(*) FROM attempts GROUP BY model"))
    outcomes: dict[tuple[str, str], dict[str, int]] = {}
    for model, stage, outcome, n in ledger.select(
        "SELECT model, stage, outcome, count(*) FROM calls GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    ):
        outcomes.setdefault((model, stage), {})[outcome] = n
    rows = ledger.select(
        "SELECT model, stage, count(*), coalesce(sum(prompt_tokens), 0),"
        " coalesce(sum(completion_tokens), 0), coalesce(sum(cached_tokens), 0),"
        " sum(cost_usd), sum(cost_usd IS NULL), sum(latency_s)"
        " FROM calls GROUP BY 1, 2 ORDER BY 1, 2"
    )
    result = [
        ModelStats(
            model=model,
            stage=stage,
            calls=calls,
            # Attempts are counted by model; shown once, beside its first stage.
            failed_attempts=failed.pop(model, 0),
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=cached,
            cost_usd=cost,
            unpriced_calls=unpriced,
            latency_s=latency,
            outcomes=outcomes[model, stage],
        )
        for model, stage, calls, prompt, completion, cached, cost, unpriced, latency in rows
    ]
    result += [
        ModelStats(model, "", 0, n, 0, 0, 0, None, 0, 0.0, {})
        for model, n in sorted(failed.items())
    ]
    return result


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
