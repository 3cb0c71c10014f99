"""Fetch a published run into a workspace: seeds, dialogues, judgments, tables, calls."""

from __future__ import annotations

import re
from contextlib import closing
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import msgspec

from botchat.boards.writers import to_json
from botchat.errors import ConfigError, DataError
from botchat.hub.publish import DATA, MANIFEST, NAME, Manifest
from botchat.hub.requests import Fetching
from botchat.importers.hub import hub_errors
from botchat.records import Dialogue, Judgment, Provenance, Seed
from botchat.requests.results import Told
from botchat.workspace import jsonl
from botchat.workspace.folder import AboutSet, Workspace

_RECORDS = {"seeds": Seed, "generations": Dialogue, "judgments": Judgment, "measured": Provenance}
"""First folder of a path -> record of each line."""


def fetch(request: Fetching, workspace: Workspace) -> Told:
    """Take a published run, ``ORG/NAME[@REVISION]``, into a workspace.

    Everything is checked before anything is written: digests, records, keys of calls. Settings and
    pages are never taken. ``.botchat/fetched-SET.json`` keeps the revision. Raises ConfigError,
    MissingDataError, DataError.
    """
    name, _, revision = request.source.partition("@")
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"{request.source!r} is not ORG/NAME or ORG/NAME@REVISION")
    path = _download(name, MANIFEST, revision or None)
    commit = path.parts[path.parts.index("snapshots") + 1]
    place = f"{name}@{commit[:12]}"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise DataError(f"{place}: {MANIFEST}: {error}") from None
    seed_set = manifest.seed_set
    workspace.seeds_path(seed_set)  # raises for an impossible name
    ledger_file = f"ledger/{seed_set}.jsonl.gz"
    contents = {}
    for file, digest in manifest.files.items():
        if file == ledger_file or _is_allowed(file, seed_set):
            contents[file] = _download(name, file, commit).read_bytes()
            _check(f"{place}: {file}", file, contents[file], digest)
    calls = contents.pop(ledger_file, None)
    for file, content in contents.items():
        _refuse_other(workspace, file, content)
    n_calls, origin = 0, {"repository": name, "revision": commit}
    record = to_json(origin | {"files": manifest.files}).encode()
    with workspace.locked():
        if calls is not None:
            with TemporaryDirectory(dir=workspace.hidden) as folder:
                part = Path(folder) / "calls.jsonl.gz"
                part.write_bytes(calls)
                with closing(workspace.ledger()) as ledger:
                    n_calls = sum(ledger.import_calls(part))
        jsonl.write_all(workspace.root, contents)
        jsonl.write_atomic(workspace.hidden / f"fetched-{seed_set}.json", record)
    return Told({**origin, "seed_set": seed_set, "files": len(contents), "calls": n_calls})


def _download(name: str, file: str, revision: str | None) -> Path:
    from huggingface_hub import HfApi

    with hub_errors(name):
        return Path(HfApi().hf_hub_download(name, file, repo_type="dataset", revision=revision))


def _is_allowed(path: str, seed_set: str) -> bool:
    """Return whether a workspace keeps such a file of the set, and no browser would run it."""
    part, name = r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}", re.escape(seed_set)
    stage = rf"generations/{name}/{part}\.jsonl|judgments/{name}/{part}/{part}\.jsonl"
    if re.fullmatch(rf"leaderboards/{name}(?:/{part})+", path):
        return PurePosixPath(path).suffix in DATA
    return bool(re.fullmatch(rf"(?:seeds|measured)/{name}\.jsonl|seeds/{name}\.toml|{stage}", path))


def _check(place: str, file: str, content: bytes, digest: str) -> None:
    """Raise DataError for a file that was not published so, or is none of its kind."""
    if sha256(content).hexdigest() != digest:
        raise DataError(f"{place} is not what {MANIFEST} says (another SHA-256); nothing is taken")
    try:
        if file.endswith(".toml"):
            msgspec.toml.decode(content, type=AboutSet)
        elif record := _RECORDS.get(file.split("/", 1)[0]):
            msgspec.json.Decoder(record).decode_lines(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{place}: a line is no record: {error}; nothing is taken") from None


def _refuse_other(workspace: Workspace, file: str, content: bytes) -> None:
    path = workspace.root / file
    folders = [path, *path.parents][: file.count("/") + 1]
    if link := next((folder for folder in folders if folder.is_symlink()), None):
        raise ConfigError(f"{link} is a link; fetch into another folder with --dir")
    if path.exists() and path.read_bytes() != content:
        raise ConfigError(f"{path} exists and differs; fetch into another folder with --dir")
