"""Rows of a Hugging Face dataset, and BotChat's table of MuTual.

`huggingface_hub` honours ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HOME`` and ``HF_HUB_OFFLINE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from botchat.errors import BotChatError, ConfigError, DataError, MissingDataError, UsageError
from botchat.workspace.jsonl import write_atomic

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
_FILES = ["README.md", "*.zip", "*.arrow", "*.csv", "*.json", "*.jsonl", "*.parquet", "*.tsv"]
"""Files that are downloaded: a dataset's card, which names its configurations, and data."""


def pin_revision(uri: str) -> str:
    """Return the same dataset at the commit that ``uri`` names now; its data is downloaded."""
    parts, folder = _snapshot(uri)
    rest = uri[parts.end("revision" if parts["revision"] else "name") :]
    return f"hf://{parts['name']}@{folder.name}{rest}"


def load_rows(uri: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset, see `SYNTAX`; no code of it is run. Raises `BotChatError`.

    The split is ``test`` unless given, or the only one.
    """
    from datasets import load_dataset

    parts, folder = _snapshot(uri)
    try:
        splits = load_dataset(str(folder), parts["config"], streaming=True)
        default = next(iter(splits)) if len(splits) == 1 else "test"
        split = parts["split"] or default
        if split not in splits:
            raise ConfigError(f"{uri}: no split {split!r}; add one of #{', #'.join(splits)}")
        for row in splits[split]:
            yield dict(row)
    except BotChatError:
        raise
    except Exception as error:  # `datasets` raises whatever its readers raise
        raise DataError(f"{uri}: cannot be read as a dataset: {_one_line(error)}") from error


def fetch_mutual(cache_dir: Path, *, url: str = MUTUAL_URL, digest: str = MUTUAL_DIGEST) -> Path:
    """Download BotChat's table of MuTual into ``cache_dir`` once and return its path."""
    target = cache_dir / "MuTual_test.xlsx"
    if target.exists() and sha256(target.read_bytes()).hexdigest() == digest:
        return target
    try:
        with urlopen(url, timeout=60.0) as response:
            content = response.read(MAX_MUTUAL_BYTES)
        if sha256(content).hexdigest() != digest:
            raise DataError(f"not the file expected (SHA-256 {digest[:12]}...)")
        write_atomic(target, content)
    except (OSError, HTTPException, BotChatError) as error:
        if isinstance(error, HTTPError):
            error.close()
        advice = f"download {MUTUAL_URL} by hand and give the file's path instead of 'mutual'"
        raise DataError(f"cannot download {url}: {_one_line(error)}; {advice}") from error
    return target


_LOGIN = "log in with: hf auth login (or HF_TOKEN)"
_FAULTS: Mapping[str, tuple[type[BotChatError], str]] = {
    "HFValidationError": (ConfigError, "this is not ORG/NAME"),
    "GatedRepoError": (MissingDataError, f"it is gated; accept its terms, then {_LOGIN}"),
    "RevisionNotFoundError": (MissingDataError, "no such revision; give a branch, tag or commit"),
    "RepositoryNotFoundError": (MissingDataError, f"not on the hub, or not for you; {_LOGIN}"),
    "401": (ConfigError, f"no right to write there; {_LOGIN}"),
    "403": (ConfigError, f"no right to write there; {_LOGIN}"),
    "": (DataError, "cannot reach the hub, and it is not in the cache; check HF_HUB_OFFLINE, "
                    "HF_ENDPOINT and the network"),
}  # fmt: skip
"""Error of the hub's client, or status of an answer (empty: none) -> ours, and what to do."""


@contextmanager
def hub_errors(name: str) -> Iterator[None]:
    """Turn what the hub's client raises into one line with what to do."""
    try:
        yield
    except BotChatError:
        raise
    except Exception as error:  # the client's, the network's, or not in the cache
        status = str(getattr(getattr(error, "response", None), "status_code", ""))
        cause = type(error).__name__ if type(error).__name__ in _FAULTS else status
        kind, fault = _FAULTS.get(cause, (DataError, f"the hub answers {status}"))
        raise kind(f"{name}: {fault} ({_one_line(error)})") from None


def _snapshot(uri: str) -> tuple[re.Match[str], Path]:
    """Return the parts of a URI, and the folder of the dataset's files; its name is the commit."""
    from huggingface_hub import HfApi, constants

    if not (parts := _URI.fullmatch(uri)):
        raise UsageError(f"{uri!r} is not {SYNTAX}")
    api, name, revision = HfApi(), parts["name"], parts["revision"]
    with hub_errors(name):
        if not constants.HF_HUB_OFFLINE:
            files = api.dataset_info(name, revision=revision, files_metadata=True).siblings or []
            size = sum(f.size or 0 for f in files if any(fnmatch(f.rfilename, k) for k in _FILES))
            if size > MAX_DATASET_BYTES:
                fault = f"{size:,} bytes, more than {MAX_DATASET_BYTES:,}; import single files"
                raise ConfigError(f"{name}: {fault}")
        folder = api.snapshot_download(
            name, repo_type="dataset", revision=revision, allow_patterns=_FILES
        )
        return parts, Path(folder)


def _one_line(reason: object) -> str:
    return " ".join(str(reason).split())[:200] or type(reason).__name__
