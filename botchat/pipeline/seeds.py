"""Seeds from anywhere: opens what the pure importers in `botchat.seeds` read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Row
from botchat.languages import EN
from botchat.pipeline.run.results import Told
from botchat.records import MIN_HUMAN, N_SEED, Seed
from botchat.seeds import hub
from botchat.seeds.mutual import from_mutual, is_mutual_item
from botchat.seeds.spreadsheets import SUFFIXES, from_rows, from_table
from botchat.workspace.files import content
from botchat.workspace.folder import SAMPLE, Workspace, in_order

MAX_TABLE_BYTES = 2**28
"""Of a table; of a zip archive's or a folder's items together, a quarter."""

MAX_ITEMS = 20_000
"""MuTual's test split has 886."""

ACCEPTED = (
    "mutual (downloads it), a folder or .zip in MuTual's layout, BotChat's "
    f"{', '.join(SUFFIXES)}, or {hub.SYNTAX}"
)
"""What `read_source` understands, in words."""


def import_seeds(
    workspace: Workspace,
    source: str,
    name: str,
    language: str = EN,
    *,
    replace: bool = False,
) -> Path:
    """Store what ``source`` holds as the seed set ``name``; return the file. See `read_source`.

    ``language``: code of the language pack, which is kept with the set. ``replace``: also where the
    set is there with other dialogues; else that is a `ConfigError`, since dialogues and judgments
    of the seeds that are there would no longer count. A dataset of the hub is read at one commit,
    which is kept with the set too.
    """
    if name == SAMPLE:
        raise ConfigError(
            f"--name {SAMPLE}: that is the built-in set, which this one would hide; choose another"
        )
    path = workspace.seeds_path(name)
    workspace.language_named(language)
    origin = hub.pinned(source) if source.startswith("hf://") else None
    found = read_source(origin or source, workspace.hidden)
    if not replace and path.exists() and (there := workspace.seeds(name)) != in_order(found):
        raise ConfigError(
            f"the set {name} is there already, with {len(there)} seeds, and {source!r} holds other "
            f"ones ({len(found)}); choose another --name, or take the new ones with --replace"
        )
    with workspace.locked():
        workspace.write_seeds(name, found, language, origin)
    return path


def take(workspace: Workspace, source: str, name: str, language: str, *, replace: bool) -> Told:
    """`import_seeds`, and what the set is."""
    path = import_seeds(workspace, source, name, language, replace=replace)
    return Told(_set_row(workspace, name, path))


def listed(workspace: Workspace) -> Told:
    """The seed sets."""
    sets = workspace.seed_sets().items()
    return Told({"rows": [_set_row(workspace, name, path) for name, path in sets]})


def shown(workspace: Workspace, name: str, seed_id: str | None = None) -> Told:
    """A set, or one dialogue of it."""
    seeds = workspace.seeds(name)
    if seed_id is None:
        rows = [
            {"id": s.id, "utterances": len(s.utterances), "begins": s.utterances[0]} for s in seeds
        ]
        short = [row | {"begins": str(row["begins"])[:70]} for row in rows]
        return Told({"set": name, "rows": rows}, [short])
    found = next((seed for seed in seeds if seed.id == seed_id), None)
    if found is None:
        raise MissingError(
            f"no dialogue {seed_id!r} in the set {name}; see: botchat seeds show {name}"
        )
    rows = [
        {"n": n, "speaker": "BA"[n % 2], "part": "seed" if n <= N_SEED else "human", "said": text}
        for n, text in enumerate(found.utterances, 1)
    ]
    return Told({"set": name, "id": found.id, "rows": rows})


def _set_row(workspace: Workspace, name: str, path: Path) -> Row:
    seeds = workspace.seeds(name)
    long = sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds)
    spoken = workspace.language(name).code
    row = {"set": name, "n_seeds": len(seeds), "n_min4": long, "language": spoken, "path": path}
    return row | ({"source": source} if (source := workspace.source(name)) else {})


def read_source(source: str, cache_dir: Path) -> list[Seed]:
    """The seeds that ``source`` names, one of `ACCEPTED`; ``cache_dir``: for what is downloaded.

    Raises `ConfigError`: not a source, or it does not exist; `DataError`: it cannot be read.
    """
    if source == "mutual":
        return _from_zip(hub.fetch_mutual(cache_dir))
    if source.startswith("hf://"):
        return from_rows(hub.load_rows(source), source)
    if source.startswith("hf:"):
        raise ConfigError(
            f"seeds source {source!r}: a dataset of the hub is hf://{source[3:].lstrip('/')}"
        )
    if source.startswith(("http://", "https://")):
        raise ConfigError(f"seeds source {source!r}: download it first, then name the file")
    path = Path(source).expanduser()
    if path.is_dir():
        items = _folder_items(path)
        return from_mutual(items, str(path))
    kind = path.suffix.lower()
    if kind not in {".zip", *SUFFIXES}:
        fault = "is none of these" if path.exists() else "does not exist and is none of these"
        raise ConfigError(f"seeds source {source!r} {fault}: {ACCEPTED}")
    if not path.is_file():
        raise ConfigError(f"seeds source {source!r} does not exist; accepted: {ACCEPTED}")
    if kind == ".zip":
        return _from_zip(path)
    return from_table(content(path, MAX_TABLE_BYTES), str(path))


def _from_zip(path: Path) -> list[Seed]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if is_mutual_item(m.filename)]
            _check_items({m.filename: m.file_size for m in members}, path)
            items = {m.filename: archive.read(m) for m in members}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable zip archive ({error}); get it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return from_mutual(items, str(path))


def _folder_items(folder: Path) -> dict[str, bytes]:
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("test_*.txt")}
    items = {name: file for name, file in files.items() if is_mutual_item(name) and file.is_file()}
    try:
        _check_items({name: file.stat().st_size for name, file in items.items()}, folder)
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from None
    return {name: content(file, hub.MAX_ITEM_BYTES) for name, file in items.items()}


def _check_items(sizes: Mapping[str, int], where: Path) -> None:
    """Refuse an archive or folder whose items of MuTual are too many or too large, in bytes."""
    for name, size in sizes.items():
        _check_size(size, hub.MAX_ITEM_BYTES, f"{where}: {name}")
    _check_size(sum(sizes.values()), MAX_TABLE_BYTES // 4, f"{where}, unpacked")
    if len(sizes) > MAX_ITEMS:
        raise DataError(f"{where}: {len(sizes):,} items, more than the {MAX_ITEMS:,} allowed")


def _check_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise DataError(f"{what}: {size:,} bytes, more than the {limit:,} allowed; split it")
