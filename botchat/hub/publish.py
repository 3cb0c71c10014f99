"""Publish a run on the hub: a dataset with stage files, calls and tables; its page is a Space."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from botchat.boards.writers import to_json
from botchat.errors import ConfigError
from botchat.hub.requests import Publishing
from botchat.importers.hub import hub_errors
from botchat.interfaces import Row
from botchat.records import VERSION, Dialogue, Judgment
from botchat.requests.results import Told
from botchat.workspace import jsonl
from botchat.workspace.folder import INVENTED, Workspace
from botchat.workspace.model_settings import api_key
from botchat.workspace.secrets import Redactor, secrets_in

MANIFEST = "botchat-run.json"
DATA = (".csv", ".json", ".jsonl", ".md", ".txt", ".tex", ".parquet", ".png")
"""Endings of what no browser runs; only such files of a board are in the dataset."""

_PAGE = (*DATA, ".html", ".js", ".svg")
_CARD = """\
---
pretty_name: BotChat run on {seed_set}
tags: [botchat, llm-as-a-judge, dialogue]
configs:
{configs}
---

# BotChat run on {seed_set}

Made with BotChat {version}.{invented} A null `verdict` is an unreadable reply, never a tie.
`signature` says what made a row; rows compare only where signatures agree.
"""
_CONFIG = "- config_name: {stage}\n  data_files: {stage}/**/*.jsonl"
_SPACE = """\
---
title: BotChat {seed_set}
sdk: static
app_file: index.html
---

The page of a BotChat run; its data: [{name}](/datasets/{name})
"""

Files = Mapping[str, bytes]


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """Contents of a published run."""

    botchat: str
    """Version that published it."""
    seed_set: str
    files: dict[str, str]
    """Path -> SHA-256."""


def publish(request: Publishing, workspace: Workspace) -> Told:
    """Send the run on a set to the hub as ORG/NAME: a dataset, and its page, if there is one.

    The dataset has the stage files to the byte, their calls, the tables, and a manifest of digests;
    ``botchat.toml`` is not sent. Returns a row for each repository, with its revision (None: a dry
    run). Raises ConfigError for a file that holds a key.
    """
    seed_set, name = request.seed_set, request.name
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise ConfigError(f"{name!r} is not ORG/NAME: your name on the hub and one for the run")
    out = workspace.out(seed_set)
    paths = [path for path in sorted(out.rglob("*")) if path.suffix in _PAGE]
    page = {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}
    repositories: dict[Literal["dataset", "space"], Files] = {
        "dataset": _dataset(workspace, seed_set, page)
    }
    if "index.html" in page:
        manifest = repositories["dataset"][MANIFEST]
        card = _SPACE.format(seed_set=seed_set, name=name).encode()
        repositories["space"] = {**page, "README.md": card, MANIFEST: manifest}
    for files in repositories.values():
        _refuse_secrets(workspace, files)
    rows: list[Row] = [
        {
            "repository": f"{kind}s/{name}",
            "files": len(files),
            "bytes": sum(map(len, files.values())),
            "revision": None if request.dry_run else _commit(request, kind, files),
        }
        for kind, files in repositories.items()
    ]
    lines = [f"{kind}: {file}" for kind, files in repositories.items() for file in files]
    listed = {kind: [*files] for kind, files in repositories.items()}
    return Told({"rows": rows, "files": listed}, [rows, *lines * request.dry_run])


def _dataset(workspace: Workspace, seed_set: str, page: Files) -> dict[str, bytes]:
    """Return path -> content of the dataset."""
    workspace.seeds(seed_set)  # raises for an unknown set
    paths = {f"seeds/{seed_set}.jsonl": workspace.seed_sets()[seed_set]}
    for stage in ("generations", "judgments"):
        for path in sorted((workspace.root / stage / seed_set).rglob("*.jsonl")):
            if path.stat().st_size:
                paths[path.relative_to(workspace.root).as_posix()] = path
    stages = dict.fromkeys(path.split("/")[0] for path in paths)
    card = _CARD.format(
        seed_set=seed_set,
        configs="\n".join(_CONFIG.format(stage=stage) for stage in stages),
        version=VERSION,
        invented=f" {INVENTED.format(seed_set)}" if workspace.about(seed_set).invented else "",
    )
    if (measured := workspace.measured_path(seed_set)).exists():
        paths[f"measured/{seed_set}.jsonl"] = measured
    contents = {"README.md": card.encode()} | {
        name: _complete_lines(path) for name, path in paths.items()
    }
    if calls := _calls(workspace, seed_set):
        contents[f"ledger/{seed_set}.jsonl.gz"] = calls
    if (about := workspace.about_path(seed_set)).exists():
        contents[f"seeds/{seed_set}.toml"] = about.read_bytes()
    for file, content in page.items():
        if Path(file).suffix in DATA:
            contents[f"leaderboards/{seed_set}/{file}"] = content
    digests = {path: sha256(content).hexdigest() for path, content in contents.items()}
    contents[MANIFEST] = to_json(Manifest(VERSION, seed_set, digests)).encode()
    return contents


def _complete_lines(path: Path) -> bytes:
    """Return the bytes of a stage file without a torn last line."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def _commit(request: Publishing, kind: Literal["dataset", "space"], files: Files) -> str:
    """Make a repository hold exactly these files and return its revision.

    Raises ConfigError for a repository that holds something else.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    name, api = request.name, HfApi()
    with hub_errors(name):
        changes: list[Any] = [CommitOperationAdd(path, content) for path, content in files.items()]
        sdk = "static" if kind == "space" else None
        api.create_repo(name, repo_type=kind, private=request.private, exist_ok=True, space_sdk=sdk)
        stored = set(api.list_repo_files(name, repo_type=kind)) - {".gitattributes"}
        # A new Space has a page of its own.
        initial = {"README.md", "index.html", "style.css"} if kind == "space" else {"README.md"}
        if MANIFEST not in stored and stored - initial:
            other = min(stored - initial)
            raise ConfigError(f"{name} holds {other}, and is no {kind} of BotChat; name another")
        changes += [CommitOperationDelete(path) for path in sorted(stored - set(files))]
        message = f"BotChat {VERSION}: {request.seed_set}"
        commit = api.create_commit(name, changes, repo_type=kind, commit_message=message)
        return str(commit.oid)


def _calls(workspace: Workspace, seed_set: str) -> bytes:
    """Return the calls that a set's records rest on, as an exported ledger."""
    keys: set[str] = set()
    for path in workspace.dialogue_files(seed_set):
        keys |= {fact.call for d in jsonl.read(path, Dialogue) for fact in d.facts}
    for path in (workspace.root / "judgments" / seed_set).glob("*/*.jsonl"):
        for judgment in jsonl.read(path, Judgment):
            keys |= {*judgment.calls, *(remark.call for remark in judgment.transcript)}
    with closing(workspace.ledger(readonly=True)) as ledger:
        calls = [call for call in ledger.calls("ORDER BY key, at") if call.key in keys]
    lines = msgspec.json.Encoder().encode_lines(calls)
    return gzip.compress(lines, mtime=0) if calls else b""


def _refuse_secrets(workspace: Workspace, files: Files) -> None:
    """Raise ConfigError for a text with a key of the environment, or with the form of one."""
    keys = [*secrets_in(os.environ)]
    for settings in workspace.config.models.values():
        with suppress(ConfigError):  # not set, so nowhere
            keys.append(api_key(settings) or "")
    redactor = Redactor(keys)
    for name, content in files.items():
        data = gzip.decompress(content) if name.endswith(".gz") else content
        if Path(name).suffix in (".png", ".parquet", ".js"):
            continue  # rendered from the other files
        for n, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if redactor.clean(line) != line:
                raise ConfigError(f"{name}:{n} holds a key, so nothing is sent; take it out")
