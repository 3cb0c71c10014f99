"""A run on the hub: a dataset with its stage files, calls and tables; its page a static Space."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from botchat.boards.tables import frame_of
from botchat.boards.writers import to_json
from botchat.errors import ConfigError, DataError, MissingError, did_you_mean
from botchat.hub.requests import Publishing
from botchat.interfaces import Row
from botchat.pipeline.compare import WORSE, ToldBoard, estimate, read_board
from botchat.pipeline.export import dataset_files
from botchat.records import VERSION, Dialogue, Judgment
from botchat.seeds.hub import Kind, said_by_hub
from botchat.workspace import files as store
from botchat.workspace.calls import Damaged
from botchat.workspace.entries import LOCAL, api_key
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.secrets import Redactor, secrets_in

if TYPE_CHECKING:
    from pandas import DataFrame

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


@dataclass(frozen=True)
class Sent:
    """What was published, or would be."""

    rows: list[Row]
    """A repository each: its files, bytes, and revision (``None``: nothing was sent)."""
    contents: Mapping[Kind, Mapping[str, bytes]]
    """Kind of repository -> path -> content."""
    proposed: Mapping[str, Mapping[str, bytes]]
    """ORG/NAME of a model -> path -> content of what its repository is offered."""
    told: bool = False
    """Nothing was sent: people see what would be."""

    @property
    def files(self) -> dict[str, list[str]]:
        """Kind of repository, or ORG/NAME -> paths."""
        made = (*self.contents.items(), *self.proposed.items())
        return {where: [*contents] for where, contents in made}

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""
        return {"rows": self.rows, "files": self.files}

    @property
    def shown(self) -> list[str | list[Row]]:
        """As people read it."""
        said = [f"{where}: {path}" for where, paths in self.files.items() for path in paths]
        said += [text.decode() for offered in self.proposed.values() for text in offered.values()]
        return [self.rows, *said * self.told]

    @property
    def frame(self) -> DataFrame:
        """The rows as a data frame."""
        return frame_of(self.rows)


def publish(request: Publishing, workspace: Workspace) -> Sent:
    """Send the run on a set to the hub as ORG/NAME: a dataset, and its page, if there is one.

    The dataset has the stage files to the byte, the calls of the ledger that they rest on, the
    tables, and a manifest of digests. `botchat.toml` stays here. ``dry_run``: send nothing.
    ``eval_results``: ``CONTESTANT=ORG/NAME``, or ``hf:ORG/NAME``, of models whose repositories get
    a pull request with their numbers of the board as ``.eval_results``.

    Raises:
        ConfigError, MissingError, DataError: a file holds a key, no board, a model that is not on
            it; and as `_send`.
    """
    seed_set, name, dry_run = request.seed_set, request.name, request.dry_run
    if not _REPOSITORY.fullmatch(name):
        raise ConfigError(f"{name!r} is not ORG/NAME: your name on the hub and one for the run")
    out = workspace.out(seed_set)
    paths = (path for path in sorted(out.rglob("*")) if path.suffix in _PAGE)
    page = {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}
    board = _board(workspace, seed_set)
    contents = _dataset(workspace, seed_set, name, page, board)
    sent: dict[Kind, dict[str, bytes]] = {"dataset": contents}
    if "index.html" in page:
        card = _SPACE.format(title=f"BotChat {seed_set}", name=name)
        sent["space"] = {**page, "README.md": card.encode(), MANIFEST: contents[MANIFEST]}
    proposed = {
        theirs: {f".eval_results/botchat-{seed_set}.yaml": _entries(board, model, name)}
        for model, theirs in map(_named, request.eval_results)
    }
    for files in (*sent.values(), *proposed.values()):
        _refuse_secrets(workspace, files)
    rows = []

    def done(where: str, files: Mapping[str, bytes], revision: str | None) -> None:
        size = sum(map(len, files.values()))
        rows.append({"repository": where, "files": len(files), "bytes": size, "revision": revision})

    for kind, files in sent.items():
        message = f"BotChat {VERSION}: {seed_set}"
        done(
            f"{kind}s/{name}",
            files,
            None if dry_run else _send(name, kind, files, message, request.private),
        )
    for theirs, files in proposed.items():
        message = f"Add evaluation results of BotChat {VERSION} on {seed_set}"
        done(theirs, files, None if dry_run else _propose(theirs, files, message))
    return Sent(rows, sent, proposed, told=dry_run)


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


def _send(name: str, kind: Kind, files: Mapping[str, bytes], message: str, private: bool) -> str:
    """Make a repository hold exactly these files, in one commit; its revision.

    ``name``: ORG/NAME; a repository that is not there is made. One that has other files, and no
    manifest of ours, is left alone.

    Raises:
        ConfigError: no such name, no right to write there, or a repository of something else.
        DataError: the hub cannot be reached, or refuses.
    """
    from huggingface_hub import (
        CommitOperationAdd,
        CommitOperationCopy,
        CommitOperationDelete,
        HfApi,
    )

    with said_by_hub(name, kind):
        api = HfApi()
        sdk = "static" if kind == "space" else None
        api.create_repo(name, repo_type=kind, private=private, exist_ok=True, space_sdk=sdk)
        there = set(api.list_repo_files(name, repo_type=kind)) - {".gitattributes"}
        # A Space is born with a page of its own.
        born = {"README.md", "index.html", "style.css"} if kind == "space" else {"README.md"}
        if MANIFEST not in there and there - born:
            raise ConfigError(
                f"{name} holds {min(there - born)}, and is no {kind} of BotChat; name another"
            )
        changes: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            *(CommitOperationAdd(path, content) for path, content in files.items()),
            *(CommitOperationDelete(path) for path in sorted(there - set(files))),
        ]
        made = api.create_commit(name, changes, repo_type=kind, commit_message=message)
        return str(made.oid)


def _propose(name: str, files: Mapping[str, bytes], message: str) -> str:
    """Open a pull request with files at somebody's model; its address.

    Raises as `_send`; `MissingError`: no such model.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    with said_by_hub(name, "model"):
        changes = [CommitOperationAdd(path, content) for path, content in files.items()]
        made = HfApi().create_commit(name, changes, commit_message=message, create_pr=True)
        return str(made.pr_url)


def _yaml(entries: object) -> bytes:
    """YAML, as the hub's own files."""
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    return str(yaml_dump(entries)).encode()


def _address(name: str) -> str:
    """Of a dataset on the hub."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/datasets/{name}"


def _board(workspace: Workspace, seed_set: str) -> ToldBoard | None:
    """The board as it was written, if it was."""
    path = workspace.out(seed_set) / "leaderboard.json"
    return read_board(workspace, str(path)) if path.is_file() else None


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
        contestant, theirs = given, given.removeprefix(LOCAL)
    if not _REPOSITORY.fullmatch(theirs) or theirs == given:
        raise ConfigError(
            f"--eval-results {given}: give CONTESTANT=ORG/NAME, the model's repository on the hub"
        )
    return contestant, theirs


def _entries(board: ToldBoard | None, model: str, name: str) -> bytes:
    """A model's numbers as the hub's ``.eval_results``, rates in percent."""
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
    found = []
    for key in _told(board):
        if (known := estimate(board.rows[model], key)) is None:
            continue
        everyone = [one for row in board.rows.values() if (one := estimate(row, key))]
        scale = 100 if all(0 <= end <= 1 for one in everyone for end in one) else 1
        value, low, high = (round(scale * number, 2) for number in known)
        found.append(
            {
                "dataset": {"id": name, "task_id": key},
                "value": value,
                "source": {"url": _address(name), "name": "BotChat"},
                "notes": f"95 % interval {low:g} to {high:g}; judged by {board.judge}",
            }
        )
    return _yaml(found)


def _calls(workspace: Workspace, seed_set: str) -> bytes:
    """The calls that a set's records rest on, as an exported ledger; empty if there are none."""
    if not workspace.ledger_path.exists():
        return b""
    keys = set(_keys(workspace, seed_set))
    with closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        known = [one for one in ledger.readable() if one.key in keys]
    if damaged := [one.key for one in known if isinstance(one, Damaged)]:
        raise DataError(
            f"{len(damaged)} calls of the ledger {workspace.ledger_path} are damaged, such as "
            f"{damaged[0][:12]}…; see: botchat ledger forget --damaged"
        )
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


def _keys_here(workspace: Workspace) -> Iterator[str]:
    """Every key of the environment and of `botchat.toml`, but those that a command would print."""
    yield from secrets_in(os.environ)
    for settings in workspace.config.models.values():
        if settings.api_key_command is None:
            with suppress(ConfigError):  # it is not set, so it is nowhere
                yield api_key(settings) or ""


def _refuse_secrets(workspace: Workspace, files: Mapping[str, bytes]) -> None:
    """`ConfigError` for a text with a key in it: of `_keys_here`, or what looks like one."""
    redactor = Redactor(_keys_here(workspace))
    for name, content in files.items():
        data = gzip.decompress(content) if name.endswith(".gz") else content
        if Path(name).suffix in (".png", ".parquet", ".js"):
            continue  # packed, from what is in the other files
        for n, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if redactor.clean(line) != line:
                raise ConfigError(f"{name}:{n} holds a key, so nothing is sent; take it out")
