"""Segments: rows of a ledger as immutable files, named by their content, in any store.

A segment is JSON lines under gzip: calls as in an exported ledger, and tries that brought no
answer. What a head and its own workers give each other has quirks too, which change what is asked:
from a place that others can write to they are never taken. ``PLACE/ledger/<SHA-256 of the
file>.jsonl.gz``, a worker's in a folder of its shard.
Any number of ledgers that read the same segments, in any order, hold the same answers
(`Ledger.merge`); the SQLite file is only an index over them.
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from botchat.errors import DataError
from botchat.records import Outcome
from botchat.workspace.calls import Moment, Positive, StoredCall
from botchat.workspace.export import checked
from botchat.workspace.ledger import TABLE_OF, Ledger
from botchat.workspace.store import ENDING, Store, named, unpacked

log = logging.getLogger("botchat")

FOLDER = "ledger"
"""Of a store, with its segments."""

MOST_ROWS = 5_000
"""Calls of one segment that `push` writes."""

_KINDS: Mapping[str, Any] = {
    "attempt": tuple[str, str, Moment, Outcome, int | None, str, Positive],
    "quirks": tuple[str, str],
}
"""Rows that are no calls."""


Mark: TypeAlias = tuple[int, int, int]
"""How far a ledger's tables of calls, superseded calls and attempts are filled."""


class Merged(NamedTuple):
    """What was new in segments."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Calls of unknown price."""

    def and_of(self, other: Merged) -> Merged:
        """Both together."""
        calls, tokens, cost_usd, unpriced = other
        return Merged(
            self.calls + calls,
            self.tokens + tokens,
            self.cost_usd + cost_usd,
            self.unpriced + unpriced,
        )


def mark(ledger: Ledger) -> Mark:
    """How far it is filled now."""
    tables = (*TABLE_OF.values(), "attempts")
    sums = ", ".join(f"(SELECT coalesce(max(rowid), 0) FROM {table})" for table in tables)
    ((calls, superseded, attempts),) = ledger.select(f"SELECT {sums}")
    return calls, superseded, attempts


def since(ledger: Ledger, at: Mark = (0, 0, 0)) -> bytes:
    """The segment of what was written after ``at``, and of all quirks."""
    return _segment(ledger, "rowid > ?", at, learnt=True)


def of_calls(ledger: Ledger, keys: Iterable[str]) -> bytes:
    """The segment of these calls, as far as they were answered, and of all quirks."""
    listed = (json.dumps(list(keys)), "[]", "[]")
    return _segment(ledger, "key IN (SELECT value FROM json_each(?))", listed, learnt=True)


def _segment(ledger: Ledger, which: str, values: Sequence[Any], *, learnt: bool = False) -> bytes:
    """Of the rows that ``which`` selects, with a value for each of the tables of a `Mark`."""
    *of_calls, of_attempts = values
    found: list[Any] = []
    for superseded, value in zip(TABLE_OF, of_calls, strict=True):
        found += ledger.calls(f"WHERE {which}", value, superseded=superseded)
    tries = ledger.select(f"SELECT * FROM attempts WHERE {which}", of_attempts)
    found += [{"attempt": row} for row in tries]
    refused = ledger.select("SELECT identity, value FROM quirks") if learnt else ()
    found += [{"quirks": row} for row in refused]
    return gzip.compress(b"\n".join(map(msgspec.json.encode, found)), 6, mtime=0)


def take(ledger: Ledger, segment: bytes, *, learnt: bool = False) -> Merged:
    """Merge a segment into a ledger; what was new. Raises `DataError`: it is none.

    ``learnt``: with its quirks, as it came from a head or worker of this run by no store.
    """
    name = named(segment)
    calls: list[StoredCall] = []
    others: dict[str, list[Any]] = {"attempt": [], "quirks": []}
    try:
        lines = unpacked(segment).splitlines()
        for n, line in enumerate(lines, 1):
            if line.startswith((b'{"attempt"', b'{"quirks"')):
                ((kind, row),) = msgspec.json.decode(line).items()
                msgspec.convert(row, _KINDS[kind])
                others[kind].append(row)
            else:
                calls.append(checked(line, f"{name}:{n}"))
        new = ledger.merge(calls, others["attempt"], others["quirks"] if learnt else (), name)
    except (OSError, zlib.error, ValueError, KeyError, RecursionError) as error:
        raise DataError(f"{name} is no segment of a ledger: {error}") from None
    return Merged(
        len(new),
        sum((call.prompt_tokens or 0) + (call.completion_tokens or 0) for call in new),
        sum(call.cost_usd or 0.0 for call in new),
        sum(call.cost_usd is None for call in new),
    )


def names(store: Store, shard: str = "") -> list[str]:
    """Paths of a store's segments; ``shard``: only of those that its workers handed in."""
    found = store.files(f"{FOLDER}/{shard}".rstrip("/"))
    return [path for path in found if path.endswith(ENDING)]


def taken(ledger: Ledger, store: Store, paths: Iterable[str]) -> Merged:
    """Merge segments of a store, as far as they are whole; what was new. What is none is said."""
    new = Merged()
    for segments in store.batches(paths):
        with ledger.transaction():
            for segment in filter(None, segments.values()):
                try:
                    new = new.and_of(take(ledger, segment))
                except DataError as error:
                    log.warning("in the store %s, left there: %s", store.place, error)
    return new


def pull(ledger: Ledger, store: Store) -> Merged:
    """Merge the segments of a store that were not read before; what was new."""
    read = {name for (name,) in ledger.select("SELECT name FROM segments")}
    return taken(ledger, store, (p for p in names(store) if p.rpartition("/")[2] not in read))


def push(ledger: Ledger, store: Store) -> int:
    """Merge a store's segments, then write what it lacks; how many calls that is."""
    pull(ledger, store)
    there = json.dumps([path.rpartition("/")[2] for path in names(store)])
    last, n = dict.fromkeys(_LACKING, 0), 0
    while True:
        rows = {
            table: [row for (row,) in ledger.select(sql, last[table], there, MOST_ROWS)]
            for table, sql in _LACKING.items()
        }
        if not any(rows.values()):
            return n
        listed = [json.dumps(ids) for ids in rows.values()]
        segment = _segment(ledger, "rowid IN (SELECT value FROM json_each(?))", listed)
        ledger.note_segment(store.add(FOLDER, segment).rpartition("/")[2], rows)
        last = {table: max(ids, default=last[table]) for table, ids in rows.items()}
        n += sum(len(rows[table]) for table in TABLE_OF.values())


_LACKING = {
    table: f"SELECT rowid FROM {table} AS row WHERE rowid > ? AND NOT EXISTS (SELECT 1 FROM"
    f" segment_rows JOIN segments ON id=segment WHERE key=row.key AND at=row.at AND kind='{table}'"
    " AND name IN (SELECT value FROM json_each(?))) ORDER BY rowid LIMIT ?"
    for table in (*TABLE_OF.values(), "attempts")
}
"""By table: rows after one that are in none of the segments of these names."""
