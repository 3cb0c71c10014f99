"""What a request gives back, a plan too: something to print, all for programs, a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from botchat.errors import BotChatError
from botchat.interfaces import Row
from botchat.records import UNANSWERED

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.tables import Table


Piece: TypeAlias = "str | Table | list[Row]"
"""A line, a table, or rows that are printed as one."""


@dataclass(frozen=True, repr=False)
class Told:
    """What a request gives back: everything for programs, and the parts that people read."""

    whole: Row
    """All of it, JSON-ready."""
    shown: Sequence[Piece] = ()
    """Lines and tables, in the order in which people read them; none: the rows of `whole`."""
    unanswered: int = 0
    """What another run may still get an answer for."""
    missing: str = "verdicts"
    """What that is."""
    failure: BotChatError | None = None
    """What `gate` raises: a model fell, or gave no answer."""

    @property
    def rows(self) -> list[Row]:
        """Those of `whole`, or itself as the only one."""
        found: list[Row] = self.whole.get("rows", [self.whole])
        return found

    @property
    def tables(self) -> list[Table]:
        """Those that people read."""
        return [part for part in self.shown if not isinstance(part, str | list)]

    @property
    def table(self) -> Table:
        """The first of them."""
        return self.tables[0]

    @property
    def lines(self) -> list[str]:
        """What people read beside the tables."""
        return [part for part in self.shown if isinstance(part, str)]

    @property
    def frame(self) -> DataFrame:
        """The exact numbers of the first table; else the rows as a data frame."""
        from botchat.boards.tables import frame_of  # pandas, which no run needs

        return self.table.frame if self.tables else frame_of(self.rows)

    def gate(self) -> None:
        """Raise what is wrong with it, if anything is (``--gate``, ``--check``)."""
        if self.failure:
            raise self.failure

    def __repr__(self) -> str:
        """The first table and the last line."""
        said = [*map(repr, self.tables[:1]), *self.lines[-1:]] or [f"{len(self.rows)} rows"]
        return f"<{type(self).__name__} {'; '.join(said)}>"

    def _repr_html_(self) -> str:
        """For notebooks: tables and lines; else the rows."""
        html = [
            f"<p>{escape(part)}</p>" if isinstance(part, str) else part._repr_html_()
            for part in self.shown
            if not isinstance(part, list)
        ]
        return "".join(html) or self.frame.to_html()


R = TypeVar("R", bound="Generated | StageResult")
T = TypeVar("T")


class Results(list[R]):
    """What a request made, one for each contestant or protocol, with all of it as a frame."""

    def __init__(
        self,
        made: Iterable[R],
        shown: Sequence[Piece] = (),
        missing: str = "verdicts",
    ) -> None:
        """``missing``: what is not there where an endpoint gave no usable reply."""
        super().__init__(made)
        self.shown, self.missing = shown, missing

    @cached_property
    def frame(self) -> DataFrame:
        """A row each."""
        from botchat.boards.tables import frame_of  # pandas, which no run needs

        return frame_of(one.row for one in self)

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""
        return {"rows": [one.row for one in self]}

    @property
    def unanswered(self) -> int:
        """What another run may still get an answer for."""
        return sum(one.unanswered for one in self)


@dataclass(frozen=True)
class Generated:
    """What `generate` made for one contestant."""

    model: str
    complete: int
    stopped: dict[str, int]
    """Outcome -> dialogues that stopped with it."""
    new: int
    """Dialogues made in this run."""
    path: Path

    @property
    def row(self) -> Row:
        """All of it, JSON-ready."""
        return asdict(self)

    @property
    def unanswered(self) -> int:
        """Dialogues that another run may still finish."""
        return sum(n for status, n in self.stopped.items() if status in UNANSWERED)


@dataclass(frozen=True)
class StageResult:
    """What a run made in one protocol."""

    protocol: str
    judge: str
    cases: int
    """Cases that were asked about."""
    new: int
    unreadable: int
    """Cases that were answered without a verdict, for whatever reason."""
    path: Path
    unanswered: int
    """Cases that another run may still get an answer for."""

    @property
    def shown(self) -> Row:
        """As people read it."""
        keys = ("protocol", "judge", "cases", "new", "unreadable", "path")
        return {key: getattr(self, key) for key in keys}

    @property
    def row(self) -> Row:
        """All of it, JSON-ready."""
        return self.shown


@dataclass(frozen=True, repr=False, kw_only=True)
class Ran(Told):
    """What a whole run made: its board, and how it came about."""

    board: Told
    generated: Sequence[Generated]
    judged: Sequence[StageResult]


class Differences(Told):
    """What changed from one board to another."""

    @property
    def fell(self) -> list[str]:
        """The models that fell."""
        return list(self.whole["fell"])


@dataclass(frozen=True)
class Compared:
    """A comparison of judges as written."""

    tables: Sequence[Table]
    """What people want to see first."""
    lines: Sequence[str]
    """What else a person should see: notes, signature, where things are."""
    whole: Mapping[str, Any]
    """``rows``, ``signature`` and every other table, JSON-ready."""
    out: Path | None
    """The folder written, if any."""

    @property
    def frame(self) -> DataFrame:
        """The exact numbers of the first table."""
        return self.tables[0].frame

    @property
    def shown(self) -> Iterator[str | Table]:
        """Tables and lines, in the order in which people read them."""
        for part in self.tables:
            yield f"{part.title}\n"
            yield part
            yield f"\n{part.note}\n" if part.note else ""
        yield from self.lines


LEVELS = ("low", "expected", "high")

Place: TypeAlias = tuple[str, tuple[str, ...]]
"""What a call is about: the step (``generate``, or a protocol) and the contestants."""


Cost: TypeAlias = tuple[int, float | None]
"""Calls and USD; ``None``: the price of one is unknown."""


@dataclass(frozen=True)
class Planned:
    """What one model would be asked, at one of `LEVELS`."""

    model: str
    level: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """``None``: the price is unknown."""
    parts: Mapping[Place, Cost] = field(default_factory=dict)
    """Calls and USD by what they are about; together those above."""
    limited: bool = True
    """Whether limits of a run count it: bots and local weights they do not."""

    @property
    def shown(self) -> Row:
        """As a row, without the parts."""
        return {key: of for key, of in vars(self).items() if key not in ("parts", "limited")}


class Plan(list[Planned]):
    """What a request would send: each model at each level."""

    by_steps = False
    """Shown by what is done, not by model."""
    note = ""
    """How it is to be read."""

    @property
    def rows(self) -> list[Row]:
        """A model at a level each, or a step each."""
        return by_step(self) if self.by_steps else [one.shown for one in self]

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""
        return {"rows": self.rows, "contestants": by_contestant(self)}

    @property
    def shown(self) -> list[str | list[Row]]:
        """Tables of it, and how they are to be read."""
        about = [{"about": row.pop("contestant"), **row} for row in by_contestant(self)]
        beside: list[str | list[Row]] = ["", priced(about)]
        several = beside if self.by_steps or len(about) > 1 else []
        return [priced(self.rows), *several, *([self.note] if self.note else [])]


def priced(rows: Sequence[Row]) -> list[Row]:
    """Rows with their dollars as people read them."""

    def cell(key: str, value: Any) -> Any:
        if not key.startswith("cost_usd"):
            return value
        return "unknown price" if value is None else f"${value:,.4f}"

    return [{key: cell(key, value) for key, value in row.items()} for row in rows]


def summed(planned: Iterable[Planned], level: str, what: Callable[[Place], T]) -> dict[T, Cost]:
    """Calls and USD at a level of all that ``what`` says the same of; ``None``: of no price."""
    found: dict[T, Cost] = {}
    for one in planned:
        for place, (calls, usd) in one.parts.items() if one.level == level else ():
            n, paid = found.get(what(place), (0, 0.0))
            both = None if paid is None or usd is None else paid + usd
            found[what(place)] = (n + calls, both)
    return found


def by_contestant(planned: Sequence[Planned]) -> list[Row]:
    """Calls and USD about each contestant, expected; of a call about two, each has a half."""
    found: dict[str, tuple[float, float | None]] = {}
    for names, (calls, usd) in summed(planned, "expected", itemgetter(1)).items():
        for name in names:
            n, paid = found.get(name, (0.0, 0.0))
            both = None if paid is None or usd is None else paid + usd / len(names)
            found[name] = (n + calls / len(names), both)
    return [{"contestant": c, "calls": n, "cost_usd": usd} for c, (n, usd) in found.items()]


def by_step(planned: Sequence[Planned]) -> list[Row]:
    """Calls and USD of each step, then of all: expected, and the least and most to be expected."""
    steps = {level: summed(planned, level, itemgetter(0)) for level in LEVELS}
    whole = {level: summed(planned, level, lambda _: "all") for level in LEVELS}
    names = dict.fromkeys(step for one in planned for step, _ in one.parts)
    rows = []
    for name in (*sorted(names, key=lambda step: step != "generate"), "all"):
        found = whole if name == "all" else steps
        low, expected, high = (found[level].get(name, (0, 0.0)) for level in LEVELS)
        row: Row = {"step": name, "calls": expected[0], "cost_usd": expected[1]}
        rows.append(row | {"cost_usd_low": low[1], "cost_usd_high": high[1]})
    return rows
