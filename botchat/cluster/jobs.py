"""Shards for a scheduler of the user's own, such as a job array of Slurm (docs/cluster.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from botchat.errors import ConfigError, LimitReached
from botchat.parallel import Engine
from botchat.requests import Limits, Spending

if TYPE_CHECKING:
    from botchat.cluster.shards import Shard
    from botchat.workspace.folder import Workspace

R = TypeVar("R")

HOME = "jobs"
"""Where a store keeps what jobs have drawn of their leases."""


class Request(Protocol):
    """What can be run: `Generating`, `Judging`, `Adaptive`, `Running` …."""

    def run(self, workspace: Workspace, spending: Spending | None = None) -> Any:
        """Do it."""


class Divided(LimitReached):
    """Nothing more can be done here before the shards are done."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        super().__init__(f"{len(shards)} shards are to be done elsewhere")
        self.shards = shards


@dataclass(frozen=True)
class Jobs(Engine):
    """Makes no call: raises `Divided` with the shards."""

    def each(self, tasks: Sequence[Callable[[], R]]) -> Iterator[R]:
        """Give the shards to whoever asked for them; nobody commands them."""
        shards = [task.args[0] for task in tasks]  # type: ignore[attr-defined]
        raise Divided([replace(shard, home=HOME, run="") for shard in shards])


def shards(
    request: Request, workspace: Workspace, n: int, *, limits: Limits | None = None
) -> Sequence[Shard]:
    """What a request would ask now, in at most ``n`` shards that can be pickled.

    Do each, anywhere and in any order, with `Shard.work`; then ``ledger pull`` what they have left
    in the store. What is asked only when that is known (a next batch, judgments after dialogues)
    comes when this is called again. It gives none when the request is done: it is run here then,
    and nothing is sent but what no shard can do. ``limits`` are divided by the shards.
    """
    if n < 1:
        raise ConfigError(f"{n} shards: give at least 1")
    engine = Jobs(None, n, exactly=True)
    try:
        request.run(workspace, Spending(limits or Limits(), engine=engine))
    except Divided as divided:
        return divided.shards
    return []
