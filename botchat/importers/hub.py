"""Datasets from elsewhere: rows of a Hugging Face dataset, and BotChat's table of MuTual.

`datasets` is imported when it is used, and so is `huggingface_hub`, which honours ``HF_ENDPOINT``,
``HF_TOKEN``, ``HF_HOME`` and ``HF_HUB_OFFLINE``.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from botchat.errors import BotChatError, ConfigError, DataError, MissingError
from botchat.workspace.jsonl import write_atomic

log = logging.getLogger("botchat")

Kind = Literal["dataset", "space"]

MUTUAL_URL = "https://github.com/open-compass/BotChat/raw/main/data/MuTual_test.xlsx"
"""547 dialogues of MuTual's test split (Cui et al., ACL 2020) as BotChat published them."""

MUTUAL_DIGEST = "e558b6d74da77530523b7bd70cafe2cd33f37ab32acf74552f498d2b0b992273"
"""SHA-256 of that file."""

MAX_MUTUAL_BYTES = 2**24
MAX_ITEM_BYTES = 2**20
MAX_DATASET_BYTES = 2**32

_REMOTE = re.compile(
    r"(?:datasets/)?(?P<name>[^/@#]+/[^/@#]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/@#]+|[^/@#]+))?"
    r"(?:/(?P<config>[^/@#]+))?(?:#(?P<split>[^/@#]+))?"
)
_LOCAL = re.compile(r"(?P<path>[./~][^#]*)(?:#(?P<split>[^#]+))?")
_SUFFIXES = (".arrow", ".csv", ".json", ".jsonl", ".parquet")
_WANTED = ("README.md", "*.zip", *(f"*{suffix}*" for suffix in (*_SUFFIXES, ".tsv")))
"""Of a dataset on the hub: its card, which says what its configurations are, and its data, also
compressed."""

SYNTAX = "hf://ORG/NAME[@REVISION][/CONFIG][#SPLIT]"
"""A dataset on the hub. REVISION: branch, tag or commit; default: the newest."""


def pinned(uri: str) -> str | None:
    """The same dataset at the commit that ``uri`` names now; what it needs is downloaded.

    None: a folder or file of this machine, which has no commits. Raises as `load_rows`.
    """
    found = _parts(uri)
    if "path" in found:
        return None
    config = f"/{found['config']}" if found["config"] else ""
    split = f"#{found['split']}" if found["split"] else ""
    return f"hf://{found['name']}@{_snapshot(found).name}{config}{split}"


def load_rows(uri: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset, read as a stream with `datasets`; no code of it is run.

    ``uri`` is as `SYNTAX`, on the Hugging Face hub, or ``hf://PATH[#SPLIT]`` where PATH begins with
    ``.``, ``/`` or ``~``: a folder that `datasets` loads or has saved, or a file that ends as in
    `_SUFFIXES`. SPLIT is ``test`` unless given, or the only one there is. Downloads stay in the
    cache of `huggingface_hub`; with ``HF_HUB_OFFLINE`` that is all there is.

    Raises:
        ConfigError: no such name, configuration or split.
        MissingError: no such dataset or revision, or a gated or private one.
        DataError: it cannot be reached or read.
    """
    found = _parts(uri)
    path = Path(found["path"]).expanduser() if "path" in found else _snapshot(found)
    if not path.exists():
        raise ConfigError(f"{uri}: there is no {path}; give a dataset's folder or file")
    try:
        splits = _open_local(path) if "path" in found else _open_config(path, found)
        yield from _split(uri, splits, found["split"])
    except BotChatError:
        raise
    except Exception as error:  # `datasets` raises whatever its readers raise
        raise DataError(f"{uri}: cannot be read as a dataset: {_one_line(error)}") from error


def fetch_mutual(
    cache_dir: Path,
    *,
    url: str = MUTUAL_URL,
    digest: str = MUTUAL_DIGEST,
    max_bytes: int = MAX_MUTUAL_BYTES,
    timeout_s: float = 60.0,
) -> Path:
    """Download BotChat's table of MuTual into ``cache_dir`` once, and return its path.

    No other content is taken. ``timeout_s`` is the longest silence of the server. Raises
    `DataError`: it cannot be downloaded, or is another file.
    """
    target = cache_dir / "MuTual_test.xlsx"
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
        return target
    by_hand = f"download {MUTUAL_URL} by hand and give the file's path instead of 'mutual'"
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to {cache_dir}: {error.strerror}") from None
    try:
        table = _download(url, max_bytes, timeout_s)
    except DataError as error:
        raise DataError(f"cannot download {url}: {error}; {by_hand}") from error
    if hashlib.sha256(table).hexdigest() != digest:
        raise DataError(f"{url}: not the file expected (SHA-256 {digest[:12]}...); {by_hand}")
    write_atomic(target, table)
    log.info("%s: downloaded from %s", target, url)
    return target


def _download(url: str, max_bytes: int, timeout_s: float) -> bytes:
    import httpx2

    content = bytearray()
    try:
        with httpx2.stream("GET", url, timeout=timeout_s, follow_redirects=True) as response:
            response.raise_for_status()
            for part in response.iter_bytes():
                content += part
                if len(content) > max_bytes:
                    raise DataError(f"longer than {max_bytes:,} bytes")
    except httpx2.HTTPStatusError as error:
        there = error.response
        raise DataError(f"the server answers {there.status_code} {there.reason_phrase}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DataError(_one_line(error)) from error
    return bytes(content)


def _parts(uri: str) -> dict[str, str]:
    """What a URI names, by the groups of `_LOCAL` or `_REMOTE`; empty: not said."""
    rest = uri.removeprefix("hf://")
    found = _LOCAL.fullmatch(rest) or _REMOTE.fullmatch(rest)
    if found is None:
        raise ConfigError(f"{uri!r} is not {SYNTAX} or hf://PATH[#SPLIT]")
    return found.groupdict("")


def _snapshot(found: Mapping[str, str]) -> Path:
    """Folder of a dataset's files in the cache of `huggingface_hub`; the commit is its name.

    Offline it is what an earlier call for that revision left there. Raises as `load_rows`, and
    `ConfigError` for more than `MAX_DATASET_BYTES`.
    """
    from huggingface_hub import HfApi, constants

    api, name, revision = HfApi(), found["name"], found["revision"] or None
    try:
        with said_by_hub(name, "dataset"):
            if not constants.HF_HUB_OFFLINE:
                told = api.dataset_info(name, revision=revision, files_metadata=True)
                wanted = [
                    one.size or 0
                    for one in told.siblings or []
                    if any(fnmatch(one.rfilename, kind) for kind in _WANTED)
                ]
                if sum(wanted) > MAX_DATASET_BYTES:
                    raise ConfigError(
                        f"{name}: {sum(wanted):,} bytes of data, more than the "
                        f"{MAX_DATASET_BYTES:,} allowed; download the files you need and give "
                        "their folder: hf://./FOLDER"
                    )
            patterns = list(_WANTED)
            return Path(
                api.snapshot_download(
                    name, repo_type="dataset", revision=revision, allow_patterns=patterns
                )
            )
    except MissingError as error:
        split = f"; of a split: hf://{name}#{revision}" if revision else ""
        raise MissingError(f"{error}{split}") from None
    except DataError as error:
        raise DataError(
            f"{error}; with HF_HUB_OFFLINE=1 an earlier import's copy is taken, and hf://./FOLDER "
            "is a folder that was downloaded elsewhere"
        ) from None


def _open_config(folder: Path, found: Mapping[str, str]) -> Any:
    from datasets import get_dataset_config_names, load_dataset

    name, config = found["name"], found["config"]
    known = get_dataset_config_names(str(folder))
    if not config and len(known) > 1 and "default" not in known:
        raise ConfigError(f"hf://{name}: choose one of {', '.join(known)}: hf://{name}/{known[0]}")
    if config and config not in known:
        raise ConfigError(f"hf://{name}: no {config!r}; there is {', '.join(known)}")
    return load_dataset(str(folder), config or None, streaming=True)


def _open_local(path: Path) -> Any:
    from datasets import DatasetDict, load_dataset, load_from_disk

    if path.is_file():
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ConfigError(f"{path}: not one of {', '.join(_SUFFIXES)}; convert it")
        loader = suffix[1:].replace("jsonl", "json")
        return load_dataset(loader, data_files=str(path), streaming=True)
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        saved = load_from_disk(str(path))
        return saved if isinstance(saved, DatasetDict) else {str(saved.split or "all"): saved}
    return load_dataset(str(path), streaming=True)


def _split(uri: str, splits: Mapping[str, Iterable[Any]], wanted: str) -> Iterator[dict[str, Any]]:
    names = sorted(map(str, splits))
    name = wanted or ("test" if "test" in names or len(names) != 1 else names[0])
    if name not in names:
        raise ConfigError(f"{uri}: no split {name!r}; add one of #{', #'.join(names)}")
    for row in splits[name]:
        yield dict(row)


@contextmanager
def said_by_hub(name: str, kind: Kind) -> Iterator[None]:
    """Say what the hub's client raises in one line, with what to do."""
    from huggingface_hub import errors as hub

    login = "hf auth login (or HF_TOKEN)"
    try:
        yield
    except BotChatError:
        raise
    except hub.HFValidationError as error:
        raise ConfigError(f"{name!r} is not ORG/NAME: {_one_line(error)}") from None
    except (hub.OfflineModeIsEnabled, hub.LocalEntryNotFoundError) as error:
        raise DataError(
            f"{name}: cannot reach the hub, and it is not in the cache ({_one_line(error)}); "
            "unset HF_HUB_OFFLINE, or look at HF_ENDPOINT and the network"
        ) from None
    except hub.GatedRepoError:
        raise MissingError(f"{name} is gated; accept its terms, then: hf auth login") from None
    except hub.RevisionNotFoundError:
        raise MissingError(f"{name}: no such revision; give a branch, tag or commit") from None
    except hub.RepositoryNotFoundError:
        hint = f"check the name, or log in with: {login}"
        raise MissingError(f"no {kind} {name} on the hub, or no right to see it; {hint}") from None
    except hub.EntryNotFoundError as error:
        raise MissingError(f"{name} is no run of BotChat: {_one_line(error)}") from None
    except hub.HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            hint = f"log in with: {login}, or name a place of your own"
            raise ConfigError(f"{name}: no right to write there; {hint}") from None
        raise DataError(f"{name}: the hub answers {status}: {_one_line(error)}") from None
    except Exception as error:  # the http client's errors have no public root here
        raise DataError(f"{name}: cannot reach the hub ({_one_line(error)})") from error


def _one_line(reason: object) -> str:
    text = " ".join(str(reason).split())
    return text[:200] if text else type(reason).__name__
