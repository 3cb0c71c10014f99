"""A set as it is read: from the workspace or a store; for notebooks every stage as a data frame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from botchat.boards.tables import of_records
from botchat.errors import ConfigError
from botchat.pipeline.run import read_set
from botchat.pipeline.run.work import Meter
from botchat.ratings.elo import EloSettings
from botchat.records import Dialogue, Judgment, Seed
from botchat.requests.arguments import Reading
from botchat.workspace.folder import Workspace
from botchat.workspace.from_store import from_store

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.board import Board


@dataclass(frozen=True)
class Run:
    """Everything of one seed set in a workspace, read when it is first asked for.

    Columns are the fields of `botchat.records`, those of the files.
    """

    workspace: Workspace
    seed_set: str

    @cached_property
    def seeds(self) -> DataFrame:
        """A human dialogue a row."""
        return of_records(self.workspace.seeds(self.seed_set), Seed)

    @cached_property
    def generations(self) -> DataFrame:
        """A generated dialogue a row, those that begin with a ChatSEED of the set as it is now."""
        made = self.workspace.all_dialogues(self.seed_set, unanswered=True)
        return of_records((one for by in made.values() for one in by.values()), Dialogue)

    @cached_property
    def judgments(self) -> DataFrame:
        """A judgment a row, those on the dialogues as they are now."""
        made = self._read.judged.values() if self.judges else ()
        of_all = (one for by in made for judged in by.values() for one in judged)
        return of_records(of_all, Judgment)

    @property
    def frame(self) -> DataFrame:
        """`judgments`, the numbers that all others are made of."""
        return self.judgments

    @cached_property
    def judges(self) -> list[str]:
        """Who has judged."""
        return sorted(self.workspace.judgment_files(self.seed_set))

    def board(self, judge: str | None = None, elo: EloSettings | None = None) -> Board:
        """One judge's board; ``judge`` may be left out where only one has judged."""
        judges = read_set.only_judge(self.workspace, self.seed_set, judge)
        found = read_set.read(self.workspace, self.seed_set, judges, for_boards=True)
        return found.board(next(iter(found.judged)), elo)

    @cached_property
    def _read(self) -> read_set.Read:
        return read_set.read(self.workspace, self.seed_set)

    def __repr__(self) -> str:
        """What it is, in one line."""
        return f"<Run on {self.seed_set} in {self.workspace.root}>"


def read(workspace: Workspace, seed_set: str) -> Run:
    """The run on a seed set: ``.seeds``, ``.generations``, ``.judgments``, ``.board(judge)``.

    Raises `MissingError` if there is no such set.
    """
    workspace.seeds(seed_set)
    return Run(workspace, seed_set)


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
    protocol, judges = said.get("protocol"), [] if request.others else judges
    with from_store(place, seed_set, judges, protocol, workspace, judged=request.judged) as found:
        store = found.store
        tell(f"read from {place}: {store.files_read:,} files, {store.bytes_read:,} bytes")
        yield found


def _judges(request: Reading[object]) -> list[str]:
    """Whom it names."""
    named = vars(request).get("judges") or vars(request).get("judge") or ()
    return [named] if isinstance(named, str) else [*named]
