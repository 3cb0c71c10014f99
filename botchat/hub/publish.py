"""A run on the hub: a dataset with its stage files, calls and tables; its page a static Space."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from botchat.boards.writers import to_json
from botchat.errors import ConfigError, MissingError, did_you_mean
from botchat.hub.requests import Publishing
from botchat.interfaces import Row
from botchat.pipeline.compare import WORSE, ToldBoard, estimate, read_board
from botchat.pipeline.export import dataset_files
from botchat.records import VERSION, Dialogue, Judgment
from botchat.requests.results import Told
from botchat.seeds.hub import Kind, said_by_hub
from botchat.workspace import files as store
from botchat.workspace.entries import api_key
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.secrets import Redactor, secrets_in

MANIFEST = "botchat-run.json"

DATA = (".csv", ".json", ".jsonl", ".md", ".txt", ".tex", ".parquet", ".png")
"""Endings of what nobody's browser runs; only such files of a board are in the dataset."""

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")

_PAGE = (*DATA, ".html", ".js", ".svg")

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
    ``eval_results``: ``CONTESTANT=ORG/NAME``, or ``hf:ORG/NAME``, of models whose repositories get
    a pull request with their numbers of the board as ``.eval_results``.

    Gives a row for each repository: its files, bytes, and revision (``None``: nothing was sent).

    Raises:
        ConfigError, MissingError, DataError: a file holds a key, no board, a model that is not on
            it; and as `_commit`.
    """
    seed_set, name, dry_run = request.seed_set, request.name, request.dry_run
    if not _REPOSITORY.fullmatch(name):
        raise ConfigError(f"{name!r} is not ORG/NAME: your name on the hub and one for the run")
    out = workspace.out(seed_set)
    found = (path for path in sorted(out.rglob("*")) if path.suffix in _PAGE)
    page = {path.relative_to(out).as_posix(): path.read_bytes() for path in found}
    path = out / "leaderboard.json"
    board = read_board(workspace, str(path)) if path.is_file() else None
    contents = _dataset(workspace, seed_set, name, page, board)
    sent: list[tuple[Kind, str, Mapping[str, bytes]]] = [("dataset", name, contents)]
    if "index.html" in page:
        card = _SPACE.format(title=f"BotChat {seed_set}", name=name).encode()
        shown = {**page, "README.md": card, MANIFEST: contents[MANIFEST]}
        sent.append(("space", name, shown))
    for given in request.eval_results:
        model, theirs = _named(given)
        entries = _entries(board, model, name)
        sent.append(("model", theirs, {f".eval_results/botchat-{seed_set}.yaml": entries}))
    for *_, files in sent:
        _refuse_secrets(workspace, files)
    rows: list[Row] = []
    paths: dict[str, list[str]] = {}
    said: list[str] = []
    for kind, where, files in sent:
        place = where if kind == "model" else f"{kind}s/{where}"
        known = where if kind == "model" else kind
        size = sum(map(len, files.values()))
        revision = None if dry_run else _commit(where, kind, files, seed_set, request.private)
        rows.append({"repository": place, "files": len(files), "bytes": size, "revision": revision})
        paths[known] = [*files]
        said += [f"{known}: {file}" for file in files]
    offered = [text.decode() for kind, _, of in sent if kind == "model" for text in of.values()]
    return Told({"rows": rows, "files": paths}, [rows, *[*said, *offered] * dry_run])


def _dataset(
    workspace: Workspace,
    seed_set: str,
    name: str,
    page: Mapping[str, bytes],
    board: ToldBoard | None,
) -> dict[str, bytes]:
    """Path -> content of all that is no page."""
    contents, _ = dataset_files(workspace, seed_set, "jsonl", name)
    if calls := _calls(workspace, seed_set):
        contents[f"ledger/{seed_set}.jsonl.gz"] = calls
    if (about := workspace.about_path(seed_set)).exists():
        contents[f"seeds/{seed_set}.toml"] = about.read_bytes()
    contents |= {
        f"leaderboards/{seed_set}/{file}": content
        for file, content in page.items()
        if Path(file).suffix in DATA
    }
    if board is not None:
        contents["eval.yaml"] = _yaml(_benchmark(board, seed_set))
    digests = {path: sha256(content).hexdigest() for path, content in contents.items()}
    contents[MANIFEST] = to_json(Manifest(VERSION, seed_set, digests)).encode()
    return contents


def _commit(name: str, kind: Kind, files: Mapping[str, bytes], seed_set: str, private: bool) -> str:
    """Make a repository hold exactly these files, in one commit; its revision.

    A repository that is not there is made. One that has other files, and no manifest of ours, is
    left alone. Of somebody's model: open a pull request with the files; its address.

    Raises:
        ConfigError: no such name, no right to write there, or a repository of something else.
        MissingError: no such model.
        DataError: the hub cannot be reached, or refuses.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    with said_by_hub(name, kind):
        api = HfApi()
        changes: list[Any] = [CommitOperationAdd(path, content) for path, content in files.items()]
        if kind == "model":
            message = f"Add evaluation results of BotChat {VERSION} on {seed_set}"
            made = api.create_commit(name, changes, commit_message=message, create_pr=True)
            return str(made.pr_url)
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


def _yaml(entries: object) -> bytes:
    """YAML, as the hub's own files."""
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    return str(yaml_dump(entries)).encode()


def _benchmark(board: ToldBoard, seed_set: str) -> Row:
    """``eval.yaml``, by which the hub knows a dataset as a benchmark: a task for each number."""
    return {
        "name": f"BotChat {seed_set}",
        "description": (
            "Can this model hold a human conversation over many turns? Generated from two human "
            "utterances, judged, rated; made with BotChat (arXiv 2310.13650)."
        ),
        "evaluation_framework": "botchat",
        "tasks": [{"id": key, "config": "seeds", "split": "train"} for key in _told(board)],
    }


def _told(board: ToldBoard) -> list[str]:
    """Keys of the numbers that are better where they are more, as a leaderboard takes them."""
    return [key for key in board.measures if key not in WORSE]


def _named(given: str) -> tuple[str, str]:
    """(contestant, its repository) of ``CONTESTANT=ORG/NAME`` or ``hf:ORG/NAME``."""
    contestant, _, theirs = given.rpartition("=")
    if not contestant:
        contestant, theirs = given, given.removeprefix("hf:")
    if not _REPOSITORY.fullmatch(theirs) or theirs == given:
        raise ConfigError(
            f"--eval-results {given}: give CONTESTANT=ORG/NAME, the model's repository on the hub"
        )
    return contestant, theirs


def _entries(board: ToldBoard | None, model: str, name: str) -> bytes:
    """A model's numbers as the hub's ``.eval_results``, rates in percent."""
    from huggingface_hub import constants

    if board is None:
        raise MissingError(
            "--eval-results takes numbers of the board; make it with: botchat leaderboard"
        )
    if model not in board.rows:
        hint = did_you_mean(model, board.rows)
        raise ConfigError(
            f"--eval-results {model}: not on the board {board.path}{hint}; "
            f"there are: {', '.join(board.rows)}"
        )
    source = {"url": f"{constants.ENDPOINT}/datasets/{name}", "name": "BotChat"}
    found = []
    for key in _told(board):
        if (known := estimate(board.rows[model], key)) is None:
            continue
        everyone = [one for row in board.rows.values() if (one := estimate(row, key))]
        scale = 100 if all(0 <= end <= 1 for one in everyone for end in one) else 1
        value, low, high = (round(scale * number, 2) for number in known)
        notes = f"95 % interval {low:g} to {high:g}; judged by {board.judge}"
        dataset = {"id": name, "task_id": key}
        found.append({"dataset": dataset, "value": value, "source": source, "notes": notes})
    return _yaml(found)


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
        for dialogue in store.read(path, Dialogue):
            yield from (fact.call for fact in dialogue.facts)
    for path in sorted((workspace.root / "judgments" / seed_set).glob("*/*.jsonl")):
        for judgment in store.read(path, Judgment):
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
