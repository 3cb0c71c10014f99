"""Rows of a Hugging Face dataset, and BotChat's table of MuTual.

`huggingface_hub` honours ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HOME`` and ``HF_HUB_OFFLINE``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from botchat.errors import BotChatError, ConfigError, DataError, MissingDataError
from botchat.workspace.jsonl import write_atomic

MUTUAL_URL = "https://github.com/open-compass/BotChat/raw/main/data/MuTual_test.xlsx"
"""547 dialogues of MuTual's test split (Cui et al., ACL 2020) as BotChat published them."""
MUTUAL_DIGEST = "e558b6d74da77530523b7bd70cafe2cd33f37ab32acf74552f498d2b0b992273"
"""SHA-256 of that file."""
MAX_MUTUAL_BYTES = 2**24
MAX_DATASET_BYTES = 2**32

SYNTAX = "hf://ORG/NAME[@REVISION][/CONFIG][#SPLIT]"
"""A dataset on the hub. REVISION: branch, tag or commit (default: the newest)."""
_URI = re.compile(
    r"hf://(?:datasets/)?(?P<name>[^/@#]+/[^/@#]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/@#]+|[^/@#]+))?"
    r"(?:/(?P<config>[^/@#]+))?(?:#(?P<split>[^/@#]+))?"
)
_FILES = ("README.md", "*.zip", "*.arrow", "*.csv", "*.json", "*.jsonl", "*.parquet", "*.tsv")
"""Files of a dataset that are downloaded: its card, which names its configurations, and data."""


def pin_revision(uri: str) -> str:
    """Return the same dataset at the commit that ``uri`` names now; its data is downloaded."""
    parts = _parts(uri)
    config = f"/{parts['config']}" if parts["config"] else ""
    split = f"#{parts['split']}" if parts["split"] else ""
    return f"hf://{parts['name']}@{_snapshot(parts).name}{config}{split}"


def load_rows(uri: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset, see `SYNTAX`; no code of it is run.

    The split is ``test`` unless given, or the only one. Raises ConfigError for a malformed name,
    MissingDataError for an unknown or private dataset, DataError for one that cannot be read.
    """
    from datasets import load_dataset

    parts = _parts(uri)
    folder = _snapshot(parts)
    try:
        splits = load_dataset(str(folder), parts["config"] or None, streaming=True)
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


def fetch_mutual(
    cache_dir: Path,
    *,
    url: str = MUTUAL_URL,
    digest: str = MUTUAL_DIGEST,
    max_bytes: int = MAX_MUTUAL_BYTES,
) -> Path:
    """Download BotChat's table of MuTual into ``cache_dir`` once and return its path.

    Raises DataError: it cannot be downloaded, or is another file.
    """
    import httpx2

    target = cache_dir / "MuTual_test.xlsx"
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
        return target
    content = bytearray()
    try:
        with httpx2.stream("GET", url, timeout=60.0, follow_redirects=True) as response:
            response.raise_for_status()
            for part in response.iter_bytes():
                content += part
                if len(content) > max_bytes:
                    break
        if hashlib.sha256(content).hexdigest() != digest:
            raise DataError(f"not the file expected (SHA-256 {digest[:12]}...)")
        cache_dir.mkdir(parents=True, exist_ok=True)
        write_atomic(target, bytes(content))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, DataError) as error:
        raise DataError(
            f"cannot download {url} to {cache_dir}: {_one_line(error)}; download {MUTUAL_URL} by "
            "hand and give the file's path instead of 'mutual'"
        ) from error
    return target


@contextmanager
def hub_errors(name: str, kind: Literal["dataset", "space"]) -> Iterator[None]:
    """Turn what the hub's client raises into one line with what to do."""
    from huggingface_hub import errors as hub

    login = "log in with: hf auth login (or HF_TOKEN)"
    try:
        yield
    except BotChatError:
        raise
    except hub.HFValidationError as error:
        raise ConfigError(f"{name!r} is not ORG/NAME: {_one_line(error)}") from None
    except hub.GatedRepoError:
        raise MissingDataError(f"{name} is gated; accept its terms, then {login}") from None
    except hub.RevisionNotFoundError:
        raise MissingDataError(f"{name}: no such revision; give a branch, tag or commit") from None
    except hub.RepositoryNotFoundError:
        raise MissingDataError(
            f"no {kind} {name} on the hub, or no right to see it; {login}"
        ) from None
    except hub.RemoteEntryNotFoundError as error:
        raise MissingDataError(f"{name}: no such file: {_one_line(error)}") from None
    except hub.HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise ConfigError(f"{name}: no right to write there; {login}") from None
        status = error.response.status_code
        raise DataError(f"{name}: the hub answers {status}: {_one_line(error)}") from None
    except Exception as error:  # offline, not in the cache, or any error of the http client
        raise DataError(
            f"{name}: cannot reach the hub, and it is not in the cache ({_one_line(error)}); check "
            "HF_HUB_OFFLINE, HF_ENDPOINT and the network"
        ) from error


def _parts(uri: str) -> dict[str, str]:
    """Return name, revision, config and split of a URI, empty where it has none."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise ConfigError(f"{uri!r} is not {SYNTAX}")
    return match.groupdict("")


def _snapshot(parts: Mapping[str, str]) -> Path:
    """Return the folder of a dataset's files in the hub's cache; its name is the commit."""
    from huggingface_hub import HfApi, constants

    api, name, revision = HfApi(), parts["name"], parts["revision"] or None
    with hub_errors(name, "dataset"):
        if not constants.HF_HUB_OFFLINE:
            files = api.dataset_info(name, revision=revision, files_metadata=True).siblings or []
            wanted = [f for f in files if any(fnmatch(f.rfilename, kind) for kind in _FILES)]
            if (size := sum(file.size or 0 for file in wanted)) > MAX_DATASET_BYTES:
                raise ConfigError(
                    f"{name}: {size:,} bytes, more than {MAX_DATASET_BYTES:,}; download the files "
                    "that you need and import them"
                )
        return Path(
            api.snapshot_download(
                name, repo_type="dataset", revision=revision, allow_patterns=list(_FILES)
            )
        )


def _one_line(reason: object) -> str:
    text = " ".join(str(reason).split())
    return text[:200] if text else type(reason).__name__
