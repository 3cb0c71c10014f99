"""A published run becomes a workspace: seeds, dialogues, judgments, tables, calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path, PurePosixPath

import msgspec

from botchat.boards.writers import to_json
from botchat.errors import ConfigError, DataError
from botchat.hub.publish import DATA, MANIFEST, Manifest
from botchat.hub.requests import Fetching
from botchat.importers.hub import hub_errors
from botchat.records import Dialogue, Judgment, Provenance, Seed
from botchat.requests.results import Told
from botchat.workspace import jsonl
from botchat.workspace.folder import AboutSet, Workspace

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}")

_RECORDS = {
    "seeds": Seed,
    "generations": Dialogue,
    "judgments": Judgment,
    "measured": Provenance,
}
"""First folder of a path -> what each line of such a file is."""


def fetch(request: Fetching, workspace: Workspace) -> Told:
    """Take a published run, ``ORG/NAME[@REVISION]``, into a workspace.

    The ``revision`` is the commit, also if a branch or nothing was named; ``calls`` are those of
    the ledger, what was there already included.

    Everything is checked before anything is written: each file's digest, each record, each call's
    key. The page is no data; ``leaderboard`` makes it here. ``.botchat/fetched-SET.json``
    keeps where it is from.

    Raises:
        ConfigError: no such source; another file of the same name is in the workspace.
        MissingDataError: no such dataset or revision, or no run of BotChat.
        DataError: a file is not what the manifest says, or the hub cannot be reached.
    """
    source = request.source
    name, _, revision = source.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise ConfigError(f"{source!r} is not ORG/NAME or ORG/NAME@REVISION")
    commit, text, read = _opened(name, revision or None, MANIFEST)
    where = f"{name}@{commit[:12]}"
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise DataError(f"{where}: {MANIFEST}: {error}") from None
    workspace.seeds_path(manifest.seed_set)  # a name that can be one
    wanted = [path for path in manifest.files if _is_of(path, manifest.seed_set)]
    calls = f"ledger/{manifest.seed_set}.jsonl.gz"
    contents = {path: _checked(where, path, manifest.files[path], read) for path in wanted}
    ledger_file = None
    if calls in manifest.files:
        ledger_file = _checked(where, calls, manifest.files[calls], read)
    for path, content in contents.items():
        _refuse_other(workspace, path, content)
    taken = {"repository": name, "revision": commit}
    record = taken | {"files": manifest.files}
    n_calls = 0
    with workspace.locked():
        if ledger_file is not None:
            part = workspace.hidden / "fetched.jsonl.gz"
            jsonl.write_atomic(part, ledger_file, mode=0o600)
            try:
                with closing(workspace.ledger()) as ledger:
                    n_calls = sum(ledger.import_calls(part))
            finally:
                part.unlink()
        jsonl.write_all(workspace.root, contents)
        jsonl.write_all(workspace.hidden, {f"fetched-{manifest.seed_set}.json": to_json(record)})
    counts = {"files": len(contents), "calls": n_calls}
    return Told({**taken, "seed_set": manifest.seed_set, **counts})


def _opened(
    name: str, revision: str | None, first: str
) -> tuple[str, bytes, Callable[[str], bytes]]:
    """A dataset at a revision (default: the newest): its commit, a file, and what reads others.

    All files are of that one commit; those in the cache of `huggingface_hub` are not asked for
    again, and offline only they are there.

    Raises:
        MissingDataError: no such dataset, revision or file, or no right to read it.
        DataError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi()

    def path_of(file: str, at: str | None) -> Path:
        with hub_errors(name, "dataset"):
            return Path(api.hf_hub_download(name, file, repo_type="dataset", revision=at))

    path = path_of(first, revision)
    commit = path.parts[path.parts.index("snapshots") + 1]
    return commit, path.read_bytes(), lambda file: path_of(file, commit).read_bytes()


def _is_of(path: str, seed_set: str) -> bool:
    """Whether a workspace keeps such a file of the set, and no browser would run it."""
    parts = PurePosixPath(path).parts
    if "/".join(parts) != path or not all(map(_PART.fullmatch, parts)):
        return False
    inside = len(parts) > 2 and parts[1] == seed_set
    return (
        path in (f"{part}/{seed_set}.jsonl" for part in ("seeds", "measured"))
        or path == f"seeds/{seed_set}.toml"
        or (parts[0] == "generations" and inside and len(parts) == 3 and path.endswith(".jsonl"))
        or (parts[0] == "judgments" and inside and len(parts) == 4 and path.endswith(".jsonl"))
        or (parts[0] == "leaderboards" and inside and PurePosixPath(path).suffix in DATA)
    )


def _checked(where: str, path: str, digest: str, read: Callable[[str], bytes]) -> bytes:
    """A file's content; `DataError` if it is another one than was published."""
    content = read(path)
    if sha256(content).hexdigest() != digest:
        raise DataError(
            f"{where}: {path} is not what {MANIFEST} says (another SHA-256), so nothing is taken"
        )
    try:
        if path.endswith(".toml"):
            msgspec.toml.decode(content, type=AboutSet)
        elif record := _RECORDS.get(path.split("/", 1)[0]):
            decoder = msgspec.json.Decoder(record)
            for line in filter(None, content.split(b"\n")):
                decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"{where}: {path}: a line is no record: {error}; nothing is taken"
        ) from None
    return content


def _refuse_other(workspace: Workspace, file: str, content: bytes) -> None:
    path = workspace.root / file
    ways = [path, *path.parents][: file.count("/") + 1]
    if link := next((way for way in ways if way.is_symlink()), None):
        raise ConfigError(f"{link} is a link; fetch into another folder with --dir")
    if path.exists() and path.read_bytes() != content:
        raise ConfigError(f"{path} is there and differs; fetch into another folder with --dir")
