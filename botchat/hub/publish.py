"""A run on the hub: a dataset with its stage files, calls and tables; its page a static Space."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Mapping
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
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import api_key
from botchat.workspace.secrets import Redactor, secrets_in

MANIFEST = "botchat-run.json"

DATA = (".csv", ".json", ".jsonl", ".md", ".txt", ".tex", ".parquet", ".png")
"""Endings of what nobody's browser runs; only such files of a board are in the dataset."""

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")

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
title: {title}
sdk: static
app_file: index.html
---

The page of a BotChat run; its data: [{name}](/datasets/{name})
"""


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What a published run is made of."""

    botchat: str
    """The version that published it."""
    seed_set: str
    files: dict[str, str]
    """Path -> SHA-256 of its content."""


def publish(request: Publishing, workspace: Workspace) -> Told:
    """Send the run on a set to the hub as ORG/NAME: a dataset, and its page, if there is one.

    The dataset has the stage files to the byte, the calls of the ledger that they rest on, the
    tables, and a manifest of digests. `botchat.toml` stays here. ``dry_run``: send nothing.

    Gives a row for each repository: its files, bytes, and revision (``None``: nothing was sent).

    Raises:
        ConfigError, MissingDataError, DataError: no such set, a file holds a key; and as `_commit`.
    """
    seed_set, name, dry_run = request.seed_set, request.name, request.dry_run
    if not _REPOSITORY.fullmatch(name):
        raise ConfigError(f"{name!r} is not ORG/NAME: your name on the hub and one for the run")
    out = workspace.out(seed_set)
    found = (path for path in sorted(out.rglob("*")) if path.suffix in _PAGE)
    page = {path.relative_to(out).as_posix(): path.read_bytes() for path in found}
    contents = _dataset(workspace, seed_set, page)
    sent: list[tuple[Literal["dataset", "space"], str, Mapping[str, bytes]]] = [
        ("dataset", name, contents)
    ]
    if "index.html" in page:
        card = _SPACE.format(title=f"BotChat {seed_set}", name=name).encode()
        shown = {**page, "README.md": card, MANIFEST: contents[MANIFEST]}
        sent.append(("space", name, shown))
    for *_, files in sent:
        _refuse_secrets(workspace, files)
    rows: list[Row] = []
    paths: dict[str, list[str]] = {}
    said: list[str] = []
    for kind, where, files in sent:
        size = sum(map(len, files.values()))
        revision = None if dry_run else _commit(where, kind, files, seed_set, request.private)
        rows.append(
            {
                "repository": f"{kind}s/{where}",
                "files": len(files),
                "bytes": size,
                "revision": revision,
            }
        )
        paths[kind] = [*files]
        said += [f"{kind}: {file}" for file in files]
    return Told({"rows": rows, "files": paths}, [rows, *said * dry_run])


def _dataset(workspace: Workspace, seed_set: str, page: Mapping[str, bytes]) -> dict[str, bytes]:
    """Path -> content of all that is no page."""
    contents = _stage_files(workspace, seed_set)
    stages = dict.fromkeys(path.split("/")[0] for path in contents)
    configs = "\n".join(_CONFIG.format(stage=stage) for stage in stages)
    invented = f" {INVENTED.format(seed_set)}" if workspace.invented(seed_set) else ""
    card = _CARD.format(seed_set=seed_set, configs=configs, version=VERSION, invented=invented)
    contents = {"README.md": card.encode(), **contents}
    if (asked := workspace.measured_path(seed_set)).exists():
        contents[f"measured/{seed_set}.jsonl"] = _lines(asked)
    if calls := _calls(workspace, seed_set):
        contents[f"ledger/{seed_set}.jsonl.gz"] = calls
    if (about := workspace.about_path(seed_set)).exists():
        contents[f"seeds/{seed_set}.toml"] = about.read_bytes()
    contents |= {
        f"leaderboards/{seed_set}/{file}": content
        for file, content in page.items()
        if Path(file).suffix in DATA
    }
    digests = {path: sha256(content).hexdigest() for path, content in contents.items()}
    contents[MANIFEST] = to_json(Manifest(VERSION, seed_set, digests)).encode()
    return contents


def _stage_files(workspace: Workspace, seed_set: str) -> dict[str, bytes]:
    """Path -> bytes of the files of seeds, dialogues and judgments; without empty ones."""
    workspace.seeds(seed_set)  # so that it is said if there is no such set
    found = {f"seeds/{seed_set}.jsonl": _lines(workspace.seed_sets()[seed_set])}
    for stage in ("generations", "judgments"):
        for path in sorted((workspace.root / stage / seed_set).rglob("*.jsonl")):
            if path.stat().st_size:
                found[path.relative_to(workspace.root).as_posix()] = _lines(path)
    return found


def _lines(path: Path) -> bytes:
    """The bytes of a stage file, without a torn last line, which no run has finished."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def _commit(
    name: str,
    kind: Literal["dataset", "space"],
    files: Mapping[str, bytes],
    seed_set: str,
    private: bool,
) -> str:
    """Make a repository hold exactly these files, in one commit; its revision.

    A repository that is not there is made. One that has other files, and no manifest of ours, is
    left alone.

    Raises:
        ConfigError: no such name, no right to write there, or a repository of something else.
        DataError: the hub cannot be reached, or refuses.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    with hub_errors(name, kind):
        api = HfApi()
        changes: list[Any] = [CommitOperationAdd(path, content) for path, content in files.items()]
        sdk = "static" if kind == "space" else None
        api.create_repo(name, repo_type=kind, private=private, exist_ok=True, space_sdk=sdk)
        there = set(api.list_repo_files(name, repo_type=kind)) - {".gitattributes"}
        # A Space is born with a page of its own.
        born = {"README.md", "index.html", "style.css"} if kind == "space" else {"README.md"}
        if MANIFEST not in there and there - born:
            raise ConfigError(
                f"{name} holds {min(there - born)}, and is no {kind} of BotChat; name another"
            )
        changes += [CommitOperationDelete(path) for path in sorted(there - set(files))]
        message = f"BotChat {VERSION}: {seed_set}"
        made = api.create_commit(name, changes, repo_type=kind, commit_message=message)
        return str(made.oid)


def _calls(workspace: Workspace, seed_set: str) -> bytes:
    """The calls that a set's records rest on, as an exported ledger; empty if there are none."""
    if not workspace.ledger_path.exists():
        return b""
    keys = set(_keys(workspace, seed_set))
    with closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        known = [one for one in ledger.calls("ORDER BY key, at") if one.key in keys]
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in known)
    return gzip.compress(lines, mtime=0) if lines else b""


def _keys(workspace: Workspace, seed_set: str) -> Iterator[str]:
    for path in sorted((workspace.root / "generations" / seed_set).glob("*.jsonl")):
        for dialogue in jsonl.read(path, Dialogue):
            yield from (fact.call for fact in dialogue.facts)
    for path in sorted((workspace.root / "judgments" / seed_set).glob("*/*.jsonl")):
        for judgment in jsonl.read(path, Judgment):
            yield from judgment.calls
            yield from (remark.call for remark in judgment.transcript)


def _refuse_secrets(workspace: Workspace, files: Mapping[str, bytes]) -> None:
    """`ConfigError` for a text with a key of the environment, of `botchat.toml`, or like one."""
    keys = [*secrets_in(os.environ)]
    for settings in workspace.config.models.values():
        with suppress(ConfigError):  # it is not set, so it is nowhere
            keys.append(api_key(settings) or "")
    redactor = Redactor(keys)
    for name, content in files.items():
        data = gzip.decompress(content) if name.endswith(".gz") else content
        if Path(name).suffix in (".png", ".parquet", ".js"):
            continue  # packed, from what is in the other files
        for n, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if redactor.clean(line) != line:
                raise ConfigError(f"{name}:{n} holds a key, so nothing is sent; take it out")
