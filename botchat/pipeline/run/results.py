"""What a request gives back: something to print, all of it for programs, and a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from botchat.interfaces import Row

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.tables import Table


@dataclass(frozen=True)
class Told:
    """A result that is a few facts."""

    whole: Row
    """All of it, JSON-ready."""
    shown: Sequence[str | Table | list[Row]] = ()
    """Where people do not read just that."""

    @property
    def rows(self) -> list[Row]:
        """Those of `whole`, or itself as the only one."""
        found: list[Row] = self.whole.get("rows", [self.whole])
        return found

    @property
    def frame(self) -> DataFrame:
        """The rows as a data frame."""
        from botchat.boards.frames import frame_of  # pandas, which no run needs

        return frame_of(self.rows)


class Result(Protocol):
    """What can be printed."""

    @property
    def shown(self) -> Sequence[str | Table | list[Row]]:
        """Lines and tables, in the order in which people read them; none: the rows of `whole`."""

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""


class One(Protocol):
    """What a request made for one contestant, or in one protocol."""

    @property
    def row(self) -> Row:
        """All of it, JSON-ready."""

    @property
    def unanswered(self) -> int:
        """What another run may still get an answer for."""


R = TypeVar("R", bound=One)


class Results(list[R]):
    """What a request made, one for each contestant or protocol, with all of it as a frame."""

    def __init__(
        self,
        made: Iterable[R],
        shown: Sequence[str | Table | list[Row]] = (),
        missing: str = "verdicts",
    ) -> None:
        """``missing``: what is not there where an endpoint gave no usable reply."""
        super().__init__(made)
        self.shown, self.missing = shown, missing

    @cached_property
    def frame(self) -> DataFrame:
        """A row each."""
        from botchat.boards.frames import frame_of  # pandas, which no run needs

        return frame_of(one.row for one in self)

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""
        return {"rows": [one.row for one in self]}

    @property
    def unanswered(self) -> int:
        """What another run may still get an answer for."""
        return sum(one.unanswered for one in self)
