"""Publish a run on the hub: a dataset with stage files, calls and tables; its page is a Space."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

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
NAME = r"[\w.-]+/[\w.-]+"
DATA = (".csv", ".json", ".jsonl", ".md", ".txt", ".tex", ".parquet", ".png")
"""Endings of what no browser runs; only such files of a board are in the dataset."""

_PAGE = (*DATA, ".html", ".js", ".svg")
_CONFIG = "- config_name: {stage}\n  data_files: {stage}/**/*.jsonl"

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
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"{name!r} is not ORG/NAME: your name on the hub and one for the run")
    out = workspace.out(seed_set)
    paths = [path for path in sorted(out.rglob("*")) if path.suffix in _PAGE]
    page = {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}
    dataset = _dataset(workspace, seed_set, page)
    repositories: dict[str, Files] = {"dataset": dataset}
    if "index.html" in page:
        card = _text("space", seed_set=seed_set, repository=name)
        repositories["space"] = {**page, "README.md": card, MANIFEST: dataset[MANIFEST]}
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
    """Return path -> content of the dataset; a torn last line of a stage file is left out."""
    workspace.seeds(seed_set)  # raises for an unknown set
    files = {f"seeds/{seed_set}.jsonl": workspace.seed_sets()[seed_set]}
    for stage in ("generations", "judgments"):
        stored = sorted((workspace.root / stage / seed_set).rglob("*.jsonl"))
        files |= {p.relative_to(workspace.root).as_posix(): p for p in stored if p.stat().st_size}
    stages = dict.fromkeys(file.split("/")[0] for file in files)
    if (measured := workspace.measured_path(seed_set)).exists():
        files[f"measured/{seed_set}.jsonl"] = measured
    contents = {file: b"".join(path.read_bytes().rpartition(b"\n")[:2])
                for file, path in files.items()}  # fmt: skip
    invented = INVENTED.format(seed_set) if workspace.about(seed_set).invented else ""
    configs = "\n".join(_CONFIG.format(stage=stage) for stage in stages)
    card = _text("dataset", seed_set=seed_set, configs=configs, version=VERSION, invented=invented)
    contents = {"README.md": card, **contents}
    if calls := _calls(workspace, seed_set):
        contents[f"ledger/{seed_set}.jsonl.gz"] = calls
    if (about := workspace.about_path(seed_set)).exists():
        contents[f"seeds/{seed_set}.toml"] = about.read_bytes()
    tables = {file: content for file, content in page.items() if Path(file).suffix in DATA}
    contents |= {f"leaderboards/{seed_set}/{file}": content for file, content in tables.items()}
    digests = {path: sha256(content).hexdigest() for path, content in contents.items()}
    contents[MANIFEST] = to_json(Manifest(VERSION, seed_set, digests)).encode()
    return contents


def _text(name: str, **values: str) -> bytes:
    """Return one of the pages beside this file, filled in."""
    return (
        resources.files(__package__)
        .joinpath(f"{name}.md")
        .read_text("utf-8")
        .format(**values)
        .encode()
    )


def _commit(request: Publishing, kind: str, files: Files) -> str:
    """Make a repository hold exactly these files and return its revision.

    Raises ConfigError for a repository that holds something else.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    name, api, sdk = request.name, HfApi(), "static" if kind == "space" else None
    with hub_errors(name):
        api.create_repo(name, repo_type=kind, private=request.private, exist_ok=True, space_sdk=sdk)
        stored = {*api.list_repo_files(name, repo_type=kind)} - {".gitattributes"}
        # A new Space has a page of its own.
        others = stored - {"README.md", *["index.html", "style.css"] * (kind == "space")}
        if others and MANIFEST not in stored:
            fault = f"holds {min(others)}, and is no {kind} of BotChat"
            raise ConfigError(f"{name} {fault}; name another")
        changes: list[Any] = [CommitOperationAdd(path, content) for path, content in files.items()]
        changes += [CommitOperationDelete(path) for path in sorted(stored - {*files})]
        message = f"BotChat {VERSION}: {request.seed_set}"
        commit = api.create_commit(name, changes, repo_type=kind, commit_message=message)
        return str(commit.oid)


def _calls(workspace: Workspace, seed_set: str) -> bytes:
    """Return the calls that a set's records rest on, as an exported ledger."""
    keys: set[str] = set()
    for path in workspace.dialogue_files(seed_set):
        keys |= {fact.call for dialogue in jsonl.read(path, Dialogue) for fact in dialogue.facts}
    for path in (workspace.root / "judgments" / seed_set).glob("*/*.jsonl"):
        for judgment in jsonl.read(path, Judgment):
            keys |= {*judgment.calls, *(remark.call for remark in judgment.transcript)}
    with closing(workspace.ledger(readonly=True)) as ledger:
        calls = [call for call in ledger.calls("ORDER BY key, at") if call.key in keys]
    return gzip.compress(msgspec.json.Encoder().encode_lines(calls), mtime=0) if calls else b""


def _refuse_secrets(workspace: Workspace, files: Files) -> None:
    """Raise ConfigError for a text with a key of the environment, or with the form of one."""
    keys: list[str | None] = [*secrets_in(os.environ)]
    for settings in workspace.config.models.values():
        with suppress(ConfigError):  # not set, so nowhere
            keys.append(api_key(settings))
    redactor = Redactor(keys)
    for name, content in files.items():
        if Path(name).suffix in (".png", ".parquet", ".js"):
            continue  # rendered from the other files
        data = gzip.decompress(content) if name.endswith(".gz") else content
        for n, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if redactor.clean(line) != line:
                raise ConfigError(f"{name}:{n} holds a key, so nothing is sent; take it out")
