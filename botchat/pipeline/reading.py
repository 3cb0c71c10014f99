"""A set as it is read: for notebooks every stage as a data frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from botchat.boards.tables import of_records
from botchat.pipeline.run import read_set
from botchat.ratings.elo import EloSettings
from botchat.records import Dialogue, Judgment, Seed
from botchat.workspace.folder import Workspace

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
        found = read_set.read(self.workspace, self.seed_set).judged if self.judges else {}
        of_all = (one for by in found.values() for judged in by.values() for one in judged)
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
        return read_set.board_of(self.workspace, self.seed_set, judge, elo)[1]

    def __repr__(self) -> str:
        """What it is, in one line."""
        return f"<Run on {self.seed_set} in {self.workspace.root}>"


def read(workspace: Workspace, seed_set: str) -> Run:
    """The run on a seed set: ``.seeds``, ``.generations``, ``.judgments``, ``.board(judge)``.

    Raises `MissingDataError` if there is no such set.
    """
    workspace.seeds(seed_set)
    return Run(workspace, seed_set)
