"""What this part adds to ``import botchat``; see `botchat.requests`."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from botchat.requests.arguments import Asking, Limits

if TYPE_CHECKING:
    from botchat.cluster.shards import Shard
    from botchat.workspace.folder import Workspace


def shards(
    request: Asking[object], workspace: "Workspace", n: int, *, limits: Limits | None = None
) -> "Sequence[Shard]":
    """What a request would ask now, in at most ``n`` parts; see `botchat.cluster.head.shards`."""
    made = import_module("botchat.cluster.head").shards(request, workspace, n, limits=limits)
    return cast("Sequence[Shard]", made)
