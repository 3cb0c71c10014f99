"""Seeds from anywhere: opens what the pure importers in `botchat.seeds` read."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from botchat.errors import ConfigError, DataError
from botchat.records import Seed
from botchat.seeds import hub
from botchat.seeds.mutual import from_mutual, is_mutual_item
from botchat.seeds.spreadsheets import from_csv, from_json, from_jsonl, from_rows, from_xlsx
from botchat.workspace.folder import SAMPLE, Workspace

ACCEPTED = (
    "mutual (downloads it), a folder or .zip in MuTual's layout, BotChat's .xlsx, "
    ".jsonl, .json, .csv, .tsv, or hf://ORG/NAME[/CONFIG][@SPLIT]"
)
"""What `read_source` understands, in words."""

MAX_TABLE_BYTES = 2**30

_TABLES = {
    ".csv": from_csv,
    ".json": from_json,
    ".jsonl": from_jsonl,
    ".tsv": from_csv,
    ".xlsx": from_xlsx,
}


def import_seeds(workspace: Workspace, source: str, name: str) -> Path:
    """Store what ``source`` holds as the seed set ``name``; return the file. See `read_source`."""
    if name == SAMPLE:
        raise ConfigError(
            f"--name {SAMPLE}: that is the built-in set, which this one would hide; choose another"
        )
    path = workspace.seeds_path(name)
    found = read_source(source, workspace.hidden)
    with workspace.locked():
        workspace.write_seeds(name, found)
    return path


def read_source(source: str, cache_dir: Path) -> list[Seed]:
    """The seeds that ``source`` names, one of `ACCEPTED`; ``cache_dir``: for what is downloaded.

    Raises `ConfigError`: not a source, or it does not exist; `DataError`: it cannot be read.
    """
    if source == "mutual":
        return _from_zip(hub.fetch_mutual(cache_dir))
    if source.startswith("hf://"):
        return from_rows(hub.load_rows(source), source)
    path = Path(source).expanduser()
    if path.is_dir():
        found = {file.relative_to(path).as_posix(): file for file in path.rglob("test_*.txt")}
        names = filter(is_mutual_item, found)
        items = {name: _bytes(found[name], hub.MAX_ITEM_BYTES) for name in names}
        return from_mutual(items, str(path))
    kind = path.suffix.lower()
    if kind not in {".zip", *_TABLES}:
        fault = "is none of these" if path.exists() else "does not exist and is none of these"
        raise ConfigError(f"seeds source {source!r} {fault}: {ACCEPTED}")
    if not path.is_file():
        raise ConfigError(f"seeds source {source!r} does not exist; accepted: {ACCEPTED}")
    if kind == ".zip":
        return _from_zip(path)
    return _TABLES[kind](_bytes(path, MAX_TABLE_BYTES), str(path))


def _from_zip(path: Path) -> list[Seed]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if is_mutual_item(m.filename)]
            for m in members:
                _check_size(m.file_size, hub.MAX_ITEM_BYTES, f"{path}: {m.filename}")
            items = {m.filename: archive.read(m) for m in members}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable zip archive ({error}); get it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return from_mutual(items, str(path))


def _bytes(path: Path, limit: int) -> bytes:
    try:
        _check_size(path.stat().st_size, limit, str(path))
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def _check_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise DataError(f"{what}: {size:,} bytes, more than the {limit:,} allowed; split it")
