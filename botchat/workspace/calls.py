"""A stored call, as a record and as a row; and the file that has the rows, opened to be read."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import zlib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from botchat.interfaces import MOST_TOKENS, Reply, Usage, token_count
from botchat.records import Outcome

_MOST = 1e15
"""Seconds or dollars that are none."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None
Positive: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=_MOST)]
Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]
"""Seconds of the epoch, as far as calendars go."""


class StoredCall(msgspec.Struct, frozen=True):
    """A row of ``calls`` or ``superseded``; also a line of an exported ledger."""

    key: str
    model: str
    stage: str
    at: Moment
    request: msgspec.Raw
    """The canonical request, byte for byte: the key is its digest."""
    outcome: Outcome
    text: str
    finish_reason: str | None
    prompt_tokens: _Count
    completion_tokens: _Count
    cached_tokens: _Count
    latency_s: Positive
    cost_usd: Positive | None
    detail: str
    raw: str
    sent: dict[str, Any]
    superseded: bool = False
    """It was forgotten: it is counted as spent and answers nothing."""

    def reply(self) -> Reply:
        """The answer, as it was when it was stored."""
        told = msgspec.structs.asdict(self)
        return Reply(
            usage=Usage(*(told[name] for name in COUNTS)),
            **{name: told[name] for name in REPLY},
        )


FIELDS = [name for name in StoredCall.__struct_fields__ if name != "superseded"]
COLUMNS = ", ".join(FIELDS)
COUNTS = Usage.__struct_fields__
REPLY = [name for name in Reply.__struct_fields__ if name in FIELDS]


_json = json.JSONEncoder(sort_keys=True).encode


def row_of(call: StoredCall) -> tuple[Any, ...]:
    """A call as its table keeps it, a value for each of `COLUMNS`; what cannot be so is unknown."""
    facts = msgspec.structs.asdict(call)
    del facts["superseded"]
    for name in COUNTS:
        facts[name] = token_count(facts[name])
    facts["text"], facts["detail"] = _writable(call.text), _writable(call.detail)
    facts["finish_reason"] = call.finish_reason and _writable(call.finish_reason)
    facts["latency_s"], facts["cost_usd"] = (
        _positive(call.latency_s) or 0.0,
        _positive(call.cost_usd),
    )
    facts["request"] = _packed(bytes(call.request))
    facts["raw"] = _packed(call.raw.encode("utf-8", "surrogatepass"))
    facts["sent"] = _json(call.sent)
    return tuple(facts.values())


def call_of(row: tuple[Any, ...], superseded: bool) -> StoredCall:
    """A call as its table keeps it. Raises ``ValueError`` or ``zlib.error``: it is damaged."""
    facts: dict[str, Any] = dict(zip(FIELDS, row, strict=True))
    return StoredCall(
        **facts
        | {
            "request": msgspec.Raw(zlib.decompress(facts["request"])),
            "raw": zlib.decompress(facts["raw"]).decode("utf-8", "surrogatepass"),
            "sent": json.loads(facts["sent"]),
            "cost_usd": _positive(facts["cost_usd"]),
            "superseded": superseded,
            **{name: token_count(facts[name]) for name in COUNTS},
        }
    )


def _packed(data: bytes) -> bytes:
    # A window that holds all of the data finds all repeats; a larger one is memory to be fetched.
    window = max(9, min(15, len(data).bit_length() + 1))
    packer = zlib.compressobj(1, zlib.DEFLATED, window, window - 7)
    return packer.compress(data) + packer.flush()


def _positive(value: Any) -> float | None:
    """Seconds or dollars; ``None`` for what is neither. SQLite knows no minus zero."""
    known = isinstance(value, float | int) and 0 <= value < _MOST
    return float(value) + 0.0 if known else None


def _writable(text: str) -> str:
    """A text without halves of characters, which no file takes."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


TABLES = resources.files(__package__).joinpath("ledger.sql").read_text("utf-8")
"""What makes every table that is not there."""

Copy: TypeAlias = "tempfile.TemporaryDirectory[str]"
"""Holds what is read where SQLite cannot work beside the file itself."""


def connect(path: Path | None, how: str = "") -> sqlite3.Connection:
    """A connection to the file, ``how`` as SQLite's URI has it; ``None``: to memory."""
    uri = f"{path.absolute().as_uri()}?{how}" if path else "file::memory:"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def opened_to_read(path: Path) -> tuple[sqlite3.Connection, Copy | None]:
    """The file as it is, also where nothing can be written beside it; a copy, if there is one."""
    db = connect(path, "mode=ro")
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db, None
    except sqlite3.DatabaseError as error:
        db.close()
        if not error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            raise
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or not wal.stat().st_size:
        return connect(path, "immutable=1"), None
    # Calls that a killed process stored are not in the file yet: SQLite puts them in a copy.
    copy: Copy = tempfile.TemporaryDirectory(prefix="botchat-", ignore_cleanup_errors=True)
    for file in (path, wal):
        shutil.copyfile(file, Path(copy.name, file.name))
    return connect(Path(copy.name, path.name), "mode=rw"), copy
