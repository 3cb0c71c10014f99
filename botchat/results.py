"""Results of commands: all data for programs, and the parts that are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from botchat.errors import BotChatError
from botchat.interfaces import Cells, Row

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.tables import Table

Piece: TypeAlias = "str | Table | list[Cells]"
"""A line, a table, or rows that are printed as one."""


@dataclass(frozen=True, repr=False)
class Result:
    """Result of a command, or its plan."""

    data: Mapping[str, Any]
    """All of it, JSON-ready."""
    pieces: Sequence[Piece] = ()
    """Lines and tables in the order of printing (default: `rows`)."""
    unanswered: int = 0
    """Dialogues or verdicts that another run may still get an answer for."""
    failure: BotChatError | None = None
    """Raised when the result is shown: a model fell, or gave no answer."""
    is_billed: bool = False
    """Whether a line tells what the run took."""
    table: Table | None = None
    """The exact numbers, where only a few are printed."""

    @property
    def rows(self) -> list[Row]:
        """Rows of ``data``, or ``data`` itself as the only one."""
        return list(self.data.get("rows", [self.data]))

    @property
    def tables(self) -> list[Table]:
        """The exact numbers, or the printed tables."""
        if self.table:
            return [self.table]
        return [piece for piece in self.pieces if not isinstance(piece, str | list)]

    @property
    def lines(self) -> list[str]:
        """Printed lines, without the tables."""
        return [piece for piece in self.pieces if isinstance(piece, str)]

    @property
    def frame(self) -> DataFrame:
        """The exact numbers of the first table; else the rows as a data frame."""
        from pandas import DataFrame  # which no run needs

        if self.tables:
            return self.tables[0].frame
        return DataFrame(self.rows)

    def __repr__(self) -> str:
        """The printed lines, or the rows."""
        return "\n".join(self.lines) or self.frame.to_string(index=False)

    def _repr_html_(self) -> str:
        """HTML for notebooks: tables and lines, or else the rows."""
        html = [table._repr_html_() for table in self.tables]
        html += [f"<p>{escape(line)}</p>" for line in self.lines]
        return "".join(html) or self.frame.to_html()
