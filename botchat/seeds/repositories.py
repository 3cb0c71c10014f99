"""Repositories of a hub: files sent as one commit, files taken at one revision.

`huggingface_hub` honours ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HOME`` and ``HF_HUB_OFFLINE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from botchat.errors import BotChatError, ConfigError, DataError, MissingError

Kind = Literal["dataset", "space", "model"]

_GIT = ".gitattributes"
"""Made by the hub itself."""


def send(
    name: str,
    kind: Kind,
    files: Mapping[str, bytes],
    message: str,
    *,
    ours: str,
    private: bool = False,
) -> str:
    """Make a repository hold exactly these files, in one commit; its revision.

    ``name``: ORG/NAME; a repository that is not there is made. ``ours``: a file that only a
    repository of BotChat has; one that has other files, and not this, is left alone.

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

    with _told(name, kind):
        api = HfApi()
        sdk = "static" if kind == "space" else None
        api.create_repo(name, repo_type=kind, private=private, exist_ok=True, space_sdk=sdk)
        there = set(api.list_repo_files(name, repo_type=kind)) - {_GIT}
        # A Space is born with a page of its own.
        born = {"README.md", "index.html", "style.css"} if kind == "space" else {"README.md"}
        if ours not in there and there - born:
            raise ConfigError(
                f"{name} holds {min(there - born)}, and is no {kind} of BotChat; name another"
            )
        changes: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            *(CommitOperationAdd(path, content) for path, content in files.items()),
            *(CommitOperationDelete(path) for path in sorted(there - set(files))),
        ]
        made = api.create_commit(name, changes, repo_type=kind, commit_message=message)
        return str(made.oid)


def propose(name: str, files: Mapping[str, bytes], message: str) -> str:
    """Open a pull request with files at somebody's model; its address.

    Raises as `send`; `MissingError`: no such model.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    with _told(name, "model"):
        changes = [CommitOperationAdd(path, content) for path, content in files.items()]
        made = HfApi().create_commit(name, changes, commit_message=message, create_pr=True)
        return str(made.pr_url)


def written(entries: object) -> bytes:
    """YAML, as the hub's own files."""
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    return str(yaml_dump(entries)).encode()


def address(name: str) -> str:
    """Of a dataset on the hub."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/datasets/{name}"


def opened(
    name: str, revision: str | None, first: str
) -> tuple[str, bytes, Callable[[str], bytes]]:
    """A dataset at a revision (default: the newest): its commit, a file, and what reads others.

    All files are of that one commit; those in the cache of `huggingface_hub` are not asked for
    again, and offline only they are there.

    Raises:
        MissingError: no such dataset, revision or file, or no right to read it.
        DataError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi()

    def path_of(file: str, at: str | None) -> Path:
        with _told(name, "dataset"):
            return Path(api.hf_hub_download(name, file, repo_type="dataset", revision=at))

    path = path_of(first, revision)
    commit = path.parts[path.parts.index("snapshots") + 1]
    return commit, path.read_bytes(), lambda file: path_of(file, commit).read_bytes()


def snapshot(name: str, revision: str | None, files: Sequence[str], max_bytes: int) -> Path:
    """Folder of a dataset's files in the cache of `huggingface_hub`; the commit is its name.

    ``revision``: branch, tag or commit (default: the newest); ``files``: patterns of those wanted,
    together at most ``max_bytes``. Offline it is what an earlier call for that revision left there.

    Raises:
        ConfigError: no such name; more than ``max_bytes``.
        MissingError: no such dataset or revision, or no right to read it.
        DataError: the hub cannot be reached; offline: not in the cache.
    """
    from huggingface_hub import HfApi, constants

    api = HfApi()
    with _told(name, "dataset"):
        if not constants.HF_HUB_OFFLINE:
            there = api.dataset_info(name, revision=revision, files_metadata=True).siblings or []
            sizes = {one.rfilename: one.size or 0 for one in there}
            size = sum(sizes[path] for path in sizes if any(fnmatch(path, one) for one in files))
            if size > max_bytes:
                raise ConfigError(
                    f"{name}: {size:,} bytes of data, more than the {max_bytes:,} allowed; "
                    "download the files you need and give their folder: hf://./FOLDER"
                )
        return Path(
            api.snapshot_download(
                name, repo_type="dataset", revision=revision, allow_patterns=list(files)
            )
        )


@contextmanager
def _told(name: str, kind: Kind) -> Iterator[None]:
    """Say what the hub's client raises in one line, with what to do."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except BotChatError:
        raise
    except HFValidationError as error:
        raise ConfigError(f"{name!r} is not ORG/NAME: {_one_line(error)}") from None
    except (OfflineModeIsEnabled, LocalEntryNotFoundError) as error:
        raise DataError(
            f"{name}: cannot reach the hub, and it is not in the cache ({_one_line(error)}); "
            "unset HF_HUB_OFFLINE, or look at HF_ENDPOINT and the network"
        ) from None
    except GatedRepoError:
        raise MissingError(f"{name} is gated; accept its terms, then: hf auth login") from None
    except RevisionNotFoundError:
        raise MissingError(f"{name}: no such revision; give a branch, tag or commit") from None
    except RepositoryNotFoundError:
        raise MissingError(
            f"no {kind} {name} on the hub, or no right to see it; check the name, or log in with: "
            "hf auth login (or HF_TOKEN)"
        ) from None
    except EntryNotFoundError as error:
        raise MissingError(f"{name} is no run of BotChat: {_one_line(error)}") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise ConfigError(
                f"{name}: no right to write there; log in with: hf auth login (or HF_TOKEN), or "
                "name a place of your own"
            ) from None
        raise DataError(f"{name}: the hub answers {status}: {_one_line(error)}") from None
    except Exception as error:  # the http client's errors have no public root here
        raise DataError(f"{name}: cannot reach the hub ({_one_line(error)})") from error


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
