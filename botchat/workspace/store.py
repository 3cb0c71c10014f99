"""A store: any place where workspaces leave files for each other.

A folder or whatever fsspec knows (``s3://…``, ``gs://…``, ``file://…``); credentials are its
backends' own affair. What workspaces share is immutable, and named by its content: a file whose
bytes do not have its name is not whole (yet) and is passed over, so a writer that is killed does no
harm.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import fsspec
from fsspec.implementations.local import LocalFileSystem

from botchat.errors import BotChatError, ConfigError
from botchat.workspace.secrets import public

ENDING = ".jsonl.gz"

BATCH_FILES, BATCH_BYTES = 512, 16 << 20
"""Files that are read side by side."""

MOST_BYTES = 1 << 30
"""Of a file, packed and unpacked; what is larger was not written by BotChat."""


def named(data: bytes) -> str:
    """The name of a file: SHA-256 of its content."""
    return hashlib.sha256(data).hexdigest() + ENDING


def unpacked(data: bytes) -> bytes:
    """A file of a store without its gzip; `ValueError`: it is cut off, or above `MOST_BYTES`."""
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    found = unzip.decompress(data, MOST_BYTES)
    if not unzip.eof or unzip.unused_data:
        raise ValueError(f"it is not whole, or has more than {MOST_BYTES:,} bytes unpacked")
    return found


class Store:
    """A place; all paths are relative to it."""

    def __init__(self, place: str) -> None:
        """``place``: a folder or a URL of fsspec. Raises `ConfigError`: it cannot be one."""
        self.place = place
        if public(place) != place:
            raise ConfigError(
                f"the store {public(place)}: a secret stands in it; leave it to the backend's own "
                "ways, such as environment variables"
            )
        try:
            self._fs, root = fsspec.url_to_fs(place)
        except (ValueError, ImportError) as error:
            raise ConfigError(f"the store {place}: {error}") from None
        self._root = root.rstrip("/")
        self.url: str = self._fs.unstrip_protocol(self._root)
        """The place, however it was named."""
        self.files_read = self.bytes_read = 0
        self._sizes: dict[str, int] = {}

    def ready(self) -> None:
        """Find out whether it can be written, before anything is paid for; `BotChatError`."""
        probe = f"ledger/.{secrets.token_hex(8)}"
        self.put(probe, b"\n")
        with suppress(BotChatError):  # some may write, and not remove
            self.remove(probe)

    def files(self, folder: str) -> list[str]:
        """Paths of the files in a folder and below, no links or pipes; none where it is not."""
        with _reaching(self.place):
            self._fs.invalidate_cache()
            found = self._fs.find(f"{self._root}/{folder}".rstrip("/"), detail=True)
        found = {path: told for path, told in found.items() if told["type"] == "file"}
        sizes = {path[len(self._root) + 1 :]: told.get("size") or 0 for path, told in found.items()}
        self._sizes |= sizes
        return sorted(path for path, size in sizes.items() if size <= MOST_BYTES)

    def folders(self, folder: str) -> list[str]:
        """Names of what is in a folder."""
        with _reaching(self.place), suppress(FileNotFoundError):
            listed = self._fs.ls(f"{self._root}/{folder}", detail=False)
            return sorted(one.rstrip("/").rpartition("/")[2] for one in listed)
        return []

    def get(self, path: str) -> bytes | None:
        """A file's content; ``None``: there is none."""
        with _reaching(self.place):
            try:
                data: bytes = self._fs.cat_file(f"{self._root}/{path}")
            except FileNotFoundError:
                return None
        return data

    def whole(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Content of files that are named by it; left out is what is not whole, or gone."""
        there = {f"{self._root}/{path}": path for path in paths}
        found = {}
        with _reaching(self.place):
            got = self._fs.cat(list(there), on_error="return") if there else {}
            for path, data in got.items():
                if isinstance(data, bytes):
                    self.files_read += 1
                    self.bytes_read += len(data)
                    if named(data) == path.rpartition("/")[2]:
                        found[there[path]] = data
                elif not isinstance(data, FileNotFoundError):
                    raise data
        return found

    def batches(self, paths: Iterable[str]) -> Iterator[dict[str, bytes | None]]:
        """Files in turn, so many at a time as fit into memory; ``None``: it is not `whole`."""
        some: dict[str, bytes | None] = {}
        size = 0
        for path in paths:
            size += self._sizes.get(path, 0)
            some[path] = None
            if size >= BATCH_BYTES or len(some) >= BATCH_FILES:
                yield {**some, **self.whole(some)}
                some, size = {}, 0
        yield {**some, **self.whole(some)}

    def put(self, path: str, data: bytes) -> None:
        """Write a file."""
        whole = f"{self._root}/{path}"
        with _reaching(self.place):
            # Where there are no folders, it would make a bucket of a misspelt name.
            if isinstance(self._fs, LocalFileSystem) or whole.startswith("/"):
                self._fs.makedirs(whole.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(whole, data)

    def add(self, folder: str, data: bytes) -> str:
        """Write a file that is named by its content; its path."""
        path = f"{folder}/{named(data)}"
        self.put(path, data)
        return path

    def remove(self, *paths: str) -> None:
        """Remove files; one that is not there is gone already."""
        for path in paths:
            with _reaching(self.place), suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{path}")


@contextmanager
def _reaching(place: str) -> Iterator[None]:
    """Turn whatever a backend raises into one line."""
    try:
        yield
    except Exception as error:
        told = error.strerror if isinstance(error, OSError) else None
        said = " ".join((told or str(error)).split())[:200]
        raise BotChatError(
            f"cannot use the store {place}: {said or type(error).__name__}"
        ) from None
