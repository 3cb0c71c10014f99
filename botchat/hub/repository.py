"""A run on the hub: a dataset with stage files, calls and tables; its page is a Space."""

import os
import re
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from botchat.boards.files import to_json
from botchat.errors import ConfigError, DataError, UsageError, log
from botchat.frames import fill
from botchat.importers.hub import hub_errors, refuse_large
from botchat.interfaces import Row
from botchat.records import VERSION, Dialogue, Judgment, Provenance, Seed
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import INVENTED, PORTABLE, AboutSet, Workspace
from botchat.workspace.ledger import Cells, read_calls
from botchat.workspace.model_settings import api_key
from botchat.workspace.secrets import Redactor, secrets_in

MANIFEST = "botchat-run.json"
MAX_RUN_BYTES = 2**30
"""Size of a run that is fetched, which is checked in memory before anything is written."""
# zlib's number for a header and a trailer of gzip, without a time
_GZIP = 31
NAME = r"[\w.-]+/[\w.-]+"
_DATA = (".csv", ".json", ".jsonl", ".md", ".txt", ".tex", ".parquet", ".png")
_PAGE = (*_DATA, ".html", ".js", ".svg")
_RECORDS: dict[str, type[msgspec.Struct]] = {
    "seeds": Seed,
    "generations": Dialogue,
    "judgments": Judgment,
    "measured": Provenance,
}


Files: TypeAlias = dict[str, bytes]
"""Path in a repository -> content."""


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """Version of BotChat that published a run, and the SHA-256 of each of its files."""

    botchat: str
    seed_set: str
    files: dict[str, str]


def _is_allowed(path: str, seed_set: str) -> bool:
    """Return whether a published run of the set has such a file, which no browser runs.

    Raises ConfigError if it has, under a name that not every system can have.
    """
    part = r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}"
    name = re.escape(seed_set)
    stage = rf"generations/{name}/{part}\.jsonl|judgments/{name}/{part}/{part}\.jsonl"
    own = rf"(?:seeds|measured)/{name}\.jsonl|seeds/{name}\.toml|{stage}"
    if PurePosixPath(path).suffix in _DATA:
        own += rf"|leaderboards/{name}(?:/{part})+"
    if not re.fullmatch(own, path):
        return False
    for each in path.split("/"):
        if not re.fullmatch(PORTABLE + ".+", each):
            raise ConfigError(f"{path}: Windows can have no file {each!r}, so nothing is taken")
    return True


def publish(
    workspace: Workspace, seed_set: str, name: str, *, dry_run: bool = False, private: bool = False
) -> Result:
    """Send the run on a set to the hub as ORG/NAME: a dataset, and its page, if there is one.

    ``botchat.toml`` is not sent. Returns a row for each repository, with its revision (None: a dry
    run). Raises ConfigError for a file that holds a key.
    """
    if not re.fullmatch(NAME, name):
        raise UsageError(f"{name!r} is not ORG/NAME: your name on the hub and one for the run")
    out = workspace.out(seed_set)
    redactor = _redactor(workspace)
    dataset = _dataset(workspace, seed_set, redactor)
    repositories = {"dataset": dataset}
    if (out / "index.html").exists():
        page = _page(out)
        inside = f"leaderboards/{seed_set}/"
        _refuse_secrets(redactor, {f: page[f] for f in page if dataset.get(inside + f) != page[f]})
        readme = fill("hub/space.md", seed_set=seed_set, repository=name)
        page["README.md"] = readme.encode()
        page[MANIFEST] = dataset[MANIFEST]
        repositories["space"] = page
    rows: list[Row] = []
    lines = []
    for kind, files in repositories.items():
        revision = None
        if dry_run:
            lines += [f"{kind}: {file}" for file in files]
        else:
            revision = _commit(seed_set, name, kind, files, private)
        rows.append(
            {
                "repository": f"{kind}s/{name}",
                "files": len(files),
                "bytes": sum(len(each) for each in files.values()),
                "revision": revision,
            }
        )
    listed = {kind: list(files) for kind, files in repositories.items()}
    return Result({"rows": rows, "files": listed}, [rows, *lines])


def _page(out: Path) -> Files:
    """Return a board's page, with its tables and figures; pages of cases to label are not sent."""
    paths = [path for path in sorted(out.rglob("*")) if path.suffix in _PAGE]
    paths = [path for path in paths if not path.match("label-*.html")]
    # A board may be kept as v1.json.
    return {p.relative_to(out).as_posix(): jsonl.content(p) for p in paths if p.is_file()}


def _dataset(workspace: Workspace, seed_set: str, redactor: Redactor) -> Files:
    """Return the files of the dataset; a torn last line of a stage file is left out.

    Raises ConfigError for one that holds a key.
    """
    workspace.seeds(seed_set)  # raises for an unknown set
    paths = {f"seeds/{seed_set}.jsonl": workspace.seed_sets()[seed_set]}
    paths[f"seeds/{seed_set}.toml"] = workspace.about_path(seed_set)  # the sample is elsewhere
    for folder in ("generations", "judgments", "measured", "leaderboards"):
        inside = sorted((workspace.root / folder).rglob("*"))
        paths |= {path.relative_to(workspace.root).as_posix(): path for path in inside}
    contents = {"README.md": b""}
    for file, path in paths.items():
        if _is_allowed(file, seed_set) and path.is_file() and path.stat().st_size:
            contents[file] = jsonl.content(path)
            if path.suffix == ".jsonl":
                contents[file] = jsonl.whole_lines(contents[file])
    _refuse_secrets(redactor, contents)
    ledger_file = f"ledger/{seed_set}.jsonl.gz"
    calls = _calls(workspace, contents, redactor, ledger_file)
    if calls:
        contents[ledger_file] = calls
    stages = dict.fromkeys(f.split("/")[0] for f in contents if f.startswith(("s", "g", "j")))
    readme = fill(
        "hub/dataset.md",
        seed_set=seed_set,
        stages=stages,
        version=VERSION,
        is_invented=workspace.about(seed_set).invented,
        warning=INVENTED.format(seed_set),
    )
    contents["README.md"] = readme.encode()
    digests = {path: sha256(content).hexdigest() for path, content in contents.items()}
    return {**contents, MANIFEST: to_json(Manifest(VERSION, seed_set, digests)).encode()}


def _commit(seed_set: str, name: str, kind: str, files: Files, private: bool) -> str:
    """Make a repository hold exactly these files, if it is BotChat's, and return its revision."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi()
    sdk = None
    ours = {"README.md"}
    if kind == "space":
        sdk = "static"
        # A new Space has a page of its own.
        ours |= {"index.html", "style.css"}
    with hub_errors(name):
        api.create_repo(name, repo_type=kind, private=private, exist_ok=True, space_sdk=sdk)
        stored = set(api.list_repo_files(name, repo_type=kind)) - {".gitattributes"}
        others = stored - ours
        if others and MANIFEST not in stored:
            raise ConfigError(
                f"{name} holds {min(others)}, and is no {kind} of BotChat; name another"
            )
        changes: list[Any] = [CommitOperationAdd(path, content) for path, content in files.items()]
        changes += [CommitOperationDelete(path) for path in sorted(stored - set(files))]
        message = f"BotChat {VERSION}: {seed_set}"
        return str(api.create_commit(name, changes, repo_type=kind, commit_message=message).oid)


def _calls(workspace: Workspace, contents: Files, redactor: Redactor, name: str) -> bytes:
    """Return the calls that the records of a run name, as lines of the packed file ``name``."""
    keys = set()
    for file, content in contents.items():
        keys |= _named_calls(_records(file, content))
    packer = zlib.compressobj(9, wbits=_GZIP)
    packed = bytearray()
    n = 0
    with closing(workspace.ledger(readonly=True)) as ledger:
        for call in ledger.calls("ORDER BY key, at"):
            if call.key in keys:
                n += 1
                packed += packer.compress(msgspec.json.encode(call) + b"\n")
                rest = msgspec.json.encode(replace(call, raw=""))
                for text in (call.raw, rest.decode()):
                    _refuse_secret(redactor, name, n, text)
    if n:
        return bytes(packed + packer.flush())
    return b""


def _records(file: str, content: bytes) -> list[msgspec.Struct]:
    """Read a stage file of a run; of other files nothing. Raises DataError."""
    record = _RECORDS.get(file.partition("/")[0])
    if record is None or not file.endswith(".jsonl"):
        return []
    return jsonl.records(content, record, file)


def _named_calls(records: Iterable[msgspec.Struct]) -> set[str]:
    """Return the ledger keys that dialogues and judgments rest on."""
    keys = []
    for record in records:
        if isinstance(record, Dialogue):
            keys += [fact.call for fact in record.facts]
        elif isinstance(record, Judgment):
            keys += record.calls
            keys += [remark.call for remark in record.transcript]
    return set(keys)


def _named_rows(path: Path, named: Container[str], place: str) -> Iterator[Cells]:
    """Yield the rows of the calls that records name; any other may be of somebody else's run."""
    n_others = 0
    for call in read_calls(path):
        if call.key in named:
            yield call.row()
        else:
            n_others += 1
    if n_others:
        log.warning(f"{place}: left out {n_others} calls that none of its records names")


def _redactor(workspace: Workspace) -> Redactor:
    """Return what knows the keys of the environment and of the settings."""
    keys: list[str | None] = list(secrets_in(os.environ))
    for settings in workspace.config.models.values():
        with suppress(ConfigError):  # not set, so nowhere
            keys.append(api_key(settings))
    return Redactor(keys)


def _refuse_secrets(redactor: Redactor, files: Files) -> None:
    """Raise ConfigError for a text with a known key, or with the form of one."""
    for name, content in files.items():
        if Path(name).suffix in (".png", ".parquet", ".js"):
            continue  # rendered from the other files
        for n, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            _refuse_secret(redactor, name, n, line)


def _refuse_secret(redactor: Redactor, name: str, n: int, line: str) -> None:
    if not redactor.is_clean(line):
        raise ConfigError(f"{name}:{n} holds a key, so nothing is sent; take it out")


def fetch(workspace: Workspace, source: str) -> Result:
    """Take a published run, ``ORG/NAME[@REVISION]``, into a workspace.

    Everything is checked before anything is written: digests, records, keys of calls. Settings and
    pages are never taken. ``.botchat/fetched-SET.json`` keeps the revision.
    """
    name, _, revision = source.partition("@")
    if not re.fullmatch(NAME, name):
        raise UsageError(f"{source!r} is not ORG/NAME or ORG/NAME@REVISION")
    refuse_large(name, revision or None, MAX_RUN_BYTES)
    path = _download(name, MANIFEST, revision or None)
    commit = path.parts[path.parts.index("snapshots") + 1]
    place = f"{name}@{commit[:12]}"
    try:
        manifest = msgspec.json.decode(jsonl.content(path), type=Manifest)
    except Exception as error:
        raise DataError(f"{place}: {MANIFEST}: {error}") from None
    seed_set = manifest.seed_set
    workspace.seeds_path(seed_set)  # raises for an impossible name
    ledger_file = f"ledger/{seed_set}.jsonl.gz"
    contents = {}
    named = set()
    for file, digest in manifest.files.items():
        if file == ledger_file or _is_allowed(file, seed_set):
            contents[file] = jsonl.content(_download(name, file, commit))
            records = _check(workspace, f"{place}: {file}", file, contents[file], digest)
            named |= _named_calls(records)
    n_calls = 0
    origin = {"repository": name, "revision": commit}
    record = to_json(origin | {"files": manifest.files}).encode()
    with workspace.locked():
        if contents.pop(ledger_file, None):
            calls = _named_rows(_download(name, ledger_file, commit), named, place)
            with closing(workspace.ledger()) as ledger:
                n_calls = ledger.add_calls(calls)
        jsonl.write_all(workspace.root, contents)
        jsonl.write_atomic(workspace.hidden / f"fetched-{seed_set}.json", record)
    return Result({**origin, "seed_set": seed_set, "files": len(contents), "calls": n_calls})


def _download(name: str, file: str, revision: str | None) -> Path:
    from huggingface_hub import HfApi

    with hub_errors(name):
        return Path(HfApi().hf_hub_download(name, file, repo_type="dataset", revision=revision))


def _check(
    workspace: Workspace, place: str, file: str, content: bytes, digest: str
) -> list[msgspec.Struct]:
    """Return the records of a file.

    Refuses one that was not published so, is none of its kind, or would replace another.
    """
    if sha256(content).hexdigest() != digest:
        raise DataError(f"{place} is not what {MANIFEST} says (another SHA-256); nothing is taken")
    try:
        if file.endswith(".toml"):
            msgspec.toml.decode(content, type=AboutSet)
        records = _records(file, content)
    except Exception as error:
        raise DataError(f"{place}: a line is no record: {error}; nothing is taken") from None
    path = workspace.root / file
    for folder in [path, *path.parents][: file.count("/") + 1]:
        if folder.is_symlink():
            raise ConfigError(f"{folder} is a link; fetch into another folder with --dir")
    if path.exists() and not (path.is_file() and jsonl.content(path) == content):
        raise ConfigError(f"{path} exists and differs; fetch into another folder with --dir")
    return records
