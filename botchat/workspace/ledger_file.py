"""How the ledger's file is opened, also where it is old, damaged, or may not be written."""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from importlib import resources
from pathlib import Path
from typing import TypeAlias

TABLES = resources.files(__package__).joinpath("ledger.sql").read_text("utf-8")
"""What makes every table that is not there."""

NAMES = "SELECT name FROM pragma_table_info('calls')"
"""Of the columns that there are."""

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
        # Else a file that was cut is refused whole.
        db.execute("PRAGMA writable_schema=ON")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db, None
    except sqlite3.OperationalError as error:
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


def stand_in(db: sqlite3.Connection) -> None:
    """Let what a ledger of an older version lacks be empty, in this connection only."""
    db.executescript("PRAGMA temp_store=MEMORY; PRAGMA writable_schema=ON")
    have = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    for made in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) (.*?;)", TABLES, re.DOTALL):
        if "calls" in have and made[0] not in have:
            db.execute("CREATE TEMP TABLE {} {}".format(*made))
    columns = {name for (name,) in db.execute(NAMES)}
    if lacking := [n for n in ("cache_write_tokens", "digest") if columns and n not in columns]:
        nulls = ", ".join(f"NULL AS {name}" for name in lacking)
        db.execute(f"CREATE TEMP VIEW calls AS SELECT rowid AS rowid, *, {nulls} FROM main.calls")
