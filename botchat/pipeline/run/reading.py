"""What a request reads: the workspace, or what a store has of its set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from botchat.arguments import Reading, doing
from botchat.errors import ConfigError
from botchat.pipeline.run.work import Meter
from botchat.workspace.folder import Workspace
from botchat.workspace.from_store import from_store


@contextmanager
def reading(
    request: Reading[object], workspace: Workspace, meter: Meter | None
) -> Iterator[Workspace]:
    """The workspace, or with a ``store`` what that has of the set and of the judges named."""
    said, tell = vars(request), (meter or Meter()).tell
    place, seed_set, judges = request.store, said["seed_set"], _judges(request)
    if place is None:
        known = workspace.config.cluster.store
        if known and seed_set and not (workspace.root / "judgments" / seed_set).is_dir():
            tell(f"the store of botchat.toml is read only if it is named: --store {known}")
        yield workspace
        return
    if not seed_set:
        raise ConfigError(f"--store {place}: say of which set with --seeds SET")
    if judges and request.also_judges:
        judges += cast("list[str]", doing(request.also_judges)(workspace, request))
    protocol = said.get("protocol")
    with from_store(place, seed_set, judges, protocol, workspace, judged=request.judged) as found:
        store = found.store
        tell(f"read from {place}: {store.files_read:,} files, {store.bytes_read:,} bytes")
        yield found


def _judges(request: Reading[object]) -> list[str]:
    """Whom it names."""
    named = vars(request).get("judges") or vars(request).get("judge") or ()
    return [named] if isinstance(named, str) else [*named]
