"""Rows of a Hugging Face dataset, and BotChat's table of MuTual.

`huggingface_hub` honours ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HOME`` and ``HF_HUB_OFFLINE``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from hashlib import sha256
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import msgspec

from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    UsageError,
    one_line,
)
from botchat.frames import package_toml
from botchat.interfaces import Cells
from botchat.records import Texts
from botchat.workspace.jsonl import write_atomic

if TYPE_CHECKING:
    from datasets import IterableDatasetDict

MUTUAL_URL = "https://github.com/open-compass/BotChat/raw/main/data/MuTual_test.xlsx"
"""547 dialogues of MuTual's test split (Cui et al., ACL 2020) as BotChat published them."""
MUTUAL_DIGEST = "e558b6d74da77530523b7bd70cafe2cd33f37ab32acf74552f498d2b0b992273"
MAX_MUTUAL_BYTES = 2**24
MAX_DATASET_BYTES = 2**32

SYNTAX = "hf://ORG/NAME[@REVISION][/CONFIG][#SPLIT]"
"""A dataset on the hub. REVISION: branch, tag or commit (default: the newest)."""
_URI = re.compile(
    r"hf://(?:datasets/)?(?P<name>[^/@#]+/[^/@#]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/@#]+|[^/@#]+))?"
    r"(?:/(?P<config>[^/@#]+))?(?:#(?P<split>[^/@#]+))?"
)
# Files that are downloaded: a dataset's card, which names its configurations, and data
_FILES = ["README.md", "*.zip", "*.arrow", "*.csv", "*.json", "*.jsonl", "*.parquet", "*.tsv"]
# Readers of `datasets`; what others read may itself refer to other files
_READERS = ("arrow", "csv", "json", "parquet")


def pin_revision(uri: str) -> str:
    """Return the same dataset at the commit that ``uri`` names now; its data is downloaded."""
    parts, folder = _snapshot(uri)
    end = parts.end("revision" if parts["revision"] else "name")
    return f"hf://{parts['name']}@{folder.name}{uri[end:]}"


def load_rows(uri: str) -> Iterator[Cells]:
    """Yield the rows of a dataset, see `SYNTAX`; no code of it is run. Raises `BotChatError`.

    Only files of the dataset are read, whatever its card names, and no other host is asked. The
    split is ``test`` unless given, or the only one.
    """
    parts, folder = _snapshot(uri)
    try:
        splits = _splits(folder, parts["config"])
        default = "test"
        if len(splits) == 1:
            default = next(iter(splits))
        split = parts["split"] or default
        if split not in splits:
            raise ConfigError(f"{uri}: no split {split!r}; add one of #{', #'.join(splits)}")
        rows = splits[split]
        if rows.features:  # pictures and sounds stay what they are: a row may name any path
            rows = rows.decode(False)
        for row in rows:
            yield dict(row)
    except _OutsideError as error:
        raise DataError(
            f"{uri}: it names {str(error)[:80]!r}, which is no file of the dataset, so nothing "
            "is read; import single files"
        ) from None
    except BotChatError:
        raise
    except Exception as error:  # `datasets` raises whatever its readers raise
        raise DataError(f"{uri}: cannot be read as a dataset: {one_line(error)}") from error


class _OutsideError(Exception):
    """A path that is no file of a dataset."""


class _Configuration(msgspec.Struct):
    data_files: object = None
    data_dir: object = None


class _Card(msgspec.Struct):
    """The part of a dataset's card that names files."""

    configs: list[_Configuration] | None = None


def _splits(folder: Path, config: str | None) -> IterableDatasetDict:
    """Return the splits of a dataset in a folder, by name; none of it is read yet."""
    from datasets import IterableDatasetDict, load_dataset_builder

    for name in _named_in_card(folder):
        # Before it is looked for: that would search other folders, and ask other hosts.
        if ":" in name or Path(name).is_absolute() or os.path.normpath(name).startswith(".."):
            raise _OutsideError(name)
    builder = load_dataset_builder(str(folder), config)
    if builder.__module__.rpartition(".")[2] not in _READERS:
        raise ValueError(f"none of its files has rows ({', '.join(_READERS)})")
    # In the hub's cache, files of a dataset are links to its blobs.
    places = (folder.resolve(), (folder.parents[1] / "blobs").resolve())
    for path in chain.from_iterable((builder.config.data_files or {}).values()):
        file = Path(path).resolve()
        if not any(file.is_relative_to(place) for place in places):
            raise _OutsideError(Path(path).name)
    return IterableDatasetDict(builder.as_streaming_dataset())


def _named_in_card(folder: Path) -> Iterator[str]:
    """Yield the paths and patterns that a dataset's card names, or what stands in its place."""
    from huggingface_hub import DatasetCard

    cards = []
    if (folder / "README.md").exists():
        cards.append(DatasetCard.load(folder / "README.md").data.to_dict())
    if (folder / ".huggingface.yaml").exists():
        cards.append(msgspec.yaml.decode((folder / ".huggingface.yaml").read_bytes()))
    for card in cards:
        for config in msgspec.convert(card, _Card).configs or []:
            yield from _texts([config.data_files, config.data_dir])


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value of YAML."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def fetch_mutual(cache_dir: Path) -> Path:
    """Download BotChat's table of MuTual into ``cache_dir`` once and return its path."""
    target = cache_dir / "MuTual_test.xlsx"
    if target.exists() and sha256(target.read_bytes()).hexdigest() == MUTUAL_DIGEST:
        return target
    try:
        with urlopen(MUTUAL_URL, timeout=60.0) as response:
            content = response.read(MAX_MUTUAL_BYTES)
        if sha256(content).hexdigest() != MUTUAL_DIGEST:
            raise DataError(f"not the file expected (SHA-256 {MUTUAL_DIGEST[:12]}...)")
        write_atomic(target, content)
    except (OSError, HTTPException, BotChatError) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise DataError(
            f"cannot download {MUTUAL_URL}: {one_line(error)}; download it by hand and give the "
            "file's path instead of 'mutual'"
        ) from error
    return target


_FAULTS = package_toml("importers/hub_faults.toml", dict[str, str])


@contextmanager
def hub_errors(name: str) -> Iterator[None]:
    """Turn what the hub's client raises into one line with what to do."""
    try:
        yield
    except BotChatError:
        raise
    except Exception as error:  # the client's, the network's, or not in the cache
        # Of a file that it could not get, the client says so whatever the hub answered.
        answer = getattr(error.__cause__ or error, "response", None)
        status = str(getattr(answer, "status_code", ""))
        of_status = _FAULTS.get(status, f"the hub answers {status}")
        fault = _FAULTS.get(type(error).__name__, of_status)
        raise DataError(f"{name}: {fault} ({one_line(error).split(' for url')[0]})") from None


def _snapshot(uri: str) -> tuple[re.Match[str], Path]:
    """Return the parts of a URI, and the folder of the dataset's files; its name is the commit."""
    from huggingface_hub import HfApi

    parts = _URI.fullmatch(uri)
    if parts is None:
        raise UsageError(f"{uri!r} is not {SYNTAX}")
    name = parts["name"]
    revision = parts["revision"]
    refuse_large(name, revision, MAX_DATASET_BYTES, _FILES)
    with hub_errors(name):
        folder = HfApi().snapshot_download(
            name, repo_type="dataset", revision=revision, allow_patterns=_FILES
        )
    return parts, Path(folder)


def refuse_large(name: str, revision: str | None, most: int, patterns: Texts = ("*",)) -> None:
    """Raise ConfigError if the files of a dataset have more bytes than ``most``; offline nothing.

    Nothing is downloaded.
    """
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return
    with hub_errors(name):
        files = HfApi().dataset_info(name, revision=revision, files_metadata=True).siblings or []
        size = 0
        for file in files:
            if any(fnmatch(file.rfilename, pattern) for pattern in patterns):
                size += file.size or 0
    if size > most:
        raise ConfigError(f"{name}: {size:,} bytes, more than {most:,}; take single files by hand")
