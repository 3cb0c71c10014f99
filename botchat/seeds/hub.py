"""Datasets from elsewhere: rows of a Hugging Face dataset, and MuTual's upstream archive.

The only module that imports `datasets` and `huggingface_hub`, and only when they are used.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import logging
import re
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from botchat.errors import BotChatError, ConfigError, DataError
from botchat.workspace.files import write_atomic

log = logging.getLogger("botchat")

MUTUAL_URL = "https://github.com/Nealcly/MuTual/archive/refs/heads/master.zip"

MUTUAL_DIGEST = "a9682ec7789c065f4f89416bc7454ef091baca4721469fc299c60e10629382d7"
"""`mutual_digest` of the 886 items of the test split."""

MAX_ARCHIVE_BYTES = 256 * 2**20
MAX_ITEM_BYTES = 2**20

_MUTUAL_ITEM = re.compile(r"[^/]+/(data/mutual/test/test_[0-9]+\.txt)")
_REMOTE = re.compile(
    r"(?:datasets/)?(?P<name>[^/@]+/[^/@]+)(?:/(?P<config>[^/@]+))?(?:@(?P<split>[^/@]+))?"
)
_LOCAL = re.compile(r"(?P<path>[./~].*?)(?:@(?P<split>[^/@]+))?")
_SUFFIXES = (".arrow", ".csv", ".json", ".jsonl", ".parquet")


def load_rows(uri: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset, read as a stream with `datasets`; no code of it is run.

    ``uri`` is ``hf://[datasets/]ORG/NAME[/CONFIG][@SPLIT]`` on the Hugging Face hub, or
    ``hf://PATH[@SPLIT]`` where PATH begins with ``.``, ``/`` or ``~``: a folder that `datasets`
    loads or has saved, or a file that ends as in `_SUFFIXES`. SPLIT is ``test`` unless given, or
    the only one there is. Raises `ConfigError`: no such name, dataset, configuration or split;
    gated or private; `DataError`: it cannot be reached or read.
    """
    rest = uri.removeprefix("hf://")
    found = _LOCAL.fullmatch(rest) or _REMOTE.fullmatch(rest)
    if found is None:
        raise ConfigError(f"{uri!r} is not hf://ORG/NAME[/CONFIG][@SPLIT] or hf://PATH[@SPLIT]")
    named = found.groupdict()
    if "path" in named:
        path = Path(named["path"]).expanduser()
        if not path.exists():
            raise ConfigError(f"{uri}: there is no {path}; give a dataset's folder or file")
    else:
        _check_access(uri, named["name"])
    try:
        splits = _open_local(path) if "path" in named else _open_hub(named["name"], named["config"])
        yield from _split(uri, splits, named["split"])
    except BotChatError:
        raise
    except Exception as error:  # `datasets` raises whatever its readers raise
        raise DataError(f"{uri}: cannot be read as a dataset: {_one_line(error)}") from error


def fetch_mutual(
    cache_dir: Path,
    *,
    url: str = MUTUAL_URL,
    digest: str = MUTUAL_DIGEST,
    max_bytes: int = MAX_ARCHIVE_BYTES,
    timeout_s: float = 60.0,
) -> Path:
    """Download MuTual's upstream archive into ``cache_dir`` once, and return its path.

    GitHub may pack a branch again with other bytes, so that only `mutual_digest` is checked.
    ``timeout_s`` is the longest silence of the server. Raises `ConfigError`: ``url`` is neither
    https nor http to this machine; `DataError`: it cannot be downloaded, or is another archive.
    """
    target = cache_dir / "MuTual-master.zip"
    if target.exists() and _matches(target, digest):
        return target
    by_hand = f"download {MUTUAL_URL} by hand and give the file's path instead of 'mutual'"
    _check_scheme(url)
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to {cache_dir}: {error.strerror}") from None
    try:
        archive = _download(url, max_bytes, timeout_s)
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"cannot download {url}: {_reason(error)}; {by_hand}") from error
    if not _matches(io.BytesIO(archive), digest):
        raise DataError(
            f"{url}: its data/mutual/test is not the 886 items expected "
            f"(digest {digest[:12]}...); {by_hand}"
        )
    write_atomic(target, archive)
    log.info("%s: downloaded from %s", target, url)
    return target


def mutual_digest(archive: Path | IO[bytes]) -> str:
    """SHA-256 over the sorted lines ``data/mutual/test/test_<n>.txt <SHA-256 of the content>``.

    Raises ``zipfile.BadZipFile``: not a whole zip archive.
    """
    lines = []
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            item = _MUTUAL_ITEM.fullmatch(member.filename)
            if item and member.file_size <= MAX_ITEM_BYTES:
                content = hashlib.sha256(opened.read(member)).hexdigest()
                lines.append(f"{item.group(1)} {content}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _check_access(uri: str, name: str) -> None:
    """Ask the hub once, because `datasets` itself retries for half a minute."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        HfApi().auth_check(name, repo_type="dataset")
    except (GatedRepoError, RepositoryNotFoundError) as error:
        fault = f"no dataset {name!r} on the hub, or a private one; check the name, or"
        if isinstance(error, GatedRepoError):
            fault = "the dataset is gated; accept its terms on its page on the hub, then"
        raise ConfigError(f"{uri}: {fault} log in with: hf auth login") from None
    except HFValidationError as error:
        raise ConfigError(f"{uri}: not a dataset's name: {_one_line(error)}") from None
    except Exception as error:  # the http client's errors have no public root here
        reason = "HF_HUB_OFFLINE is set" if isinstance(error, OfflineModeIsEnabled) else error
        raise DataError(
            f"{uri}: cannot reach the Hugging Face hub ({_one_line(reason)}); where there is a "
            "network, download the dataset and give its folder: hf://./FOLDER"
        ) from error


def _open_hub(name: str, config: str | None) -> Mapping[str, Iterable[Any]]:
    from datasets import get_dataset_config_names, load_dataset

    known = get_dataset_config_names(name)
    if config is None and len(known) > 1 and "default" not in known:
        raise ConfigError(f"hf://{name}: choose one of {', '.join(known)}: hf://{name}/{known[0]}")
    if config is not None and config not in known:
        raise ConfigError(f"hf://{name}: no {config!r}; there is {', '.join(known)}")
    splits: Mapping[str, Iterable[Any]] = load_dataset(name, config, streaming=True)
    return splits


def _open_local(path: Path) -> Mapping[str, Iterable[Any]]:
    from datasets import DatasetDict, load_dataset, load_from_disk

    splits: Mapping[str, Iterable[Any]]
    if path.is_file():
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ConfigError(f"{path}: not one of {', '.join(_SUFFIXES)}; convert it")
        loader = suffix[1:].replace("jsonl", "json")
        splits = load_dataset(loader, data_files=str(path), streaming=True)
        return splits
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        saved = load_from_disk(str(path))
        return saved if isinstance(saved, DatasetDict) else {str(saved.split or "all"): saved}
    splits = load_dataset(str(path), streaming=True)
    return splits


def _split(
    uri: str, splits: Mapping[str, Iterable[Any]], wanted: str | None
) -> Iterator[dict[str, Any]]:
    names = sorted(map(str, splits))
    name = wanted or ("test" if "test" in names or len(names) != 1 else names[0])
    if name not in names:
        raise ConfigError(f"{uri}: no split {name!r}; add one of @{', @'.join(names)}")
    for row in splits[name]:
        yield dict(row)


def _matches(archive: Path | IO[bytes], digest: str) -> bool:
    try:
        return mutual_digest(archive) == digest
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error):
        return False


def _check_scheme(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and here):
        raise ConfigError(f"{url}: only https is fetched (http only from this machine)")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects that stay where `_check_scheme` allows."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], *response: Any
    ) -> urllib.request.Request | None:
        """Follow, or refuse as an error of the download; the new address is the last argument."""
        try:
            _check_scheme(response[-1])
        except ConfigError as error:
            fp.close()
            raise urllib.error.URLError(f"redirected to {error}") from None
        return super().redirect_request(req, fp, *response)


def _download(url: str, max_bytes: int, timeout_s: float) -> bytes:
    opener = urllib.request.build_opener(_SafeRedirects())
    request = urllib.request.Request(url, headers={"User-Agent": "botchat"})
    with opener.open(request, timeout=timeout_s) as response:
        content: bytes = response.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise urllib.error.URLError(f"longer than {max_bytes:,} bytes")
    promised = int(response.headers.get("Content-Length") or 0)
    if len(content) < promised:
        raise urllib.error.URLError(f"broke off after {len(content):,} of {promised:,} bytes")
    return content


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"the server answers {error.code} {error.reason}"
    return _one_line(error.reason if isinstance(error, urllib.error.URLError) else error)


def _one_line(reason: object) -> str:
    text = " ".join(str(reason).split())
    return text[:200] if text else type(reason).__name__
