"""Tables: headings and units for people, exact numbers for machines.

A `Column` is declared once: what it means, where its value comes from, how it is written. Code asks
a `Table` for a column by what it means, and never takes a key apart. `botchat.boards.writers` make
files of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal

import msgspec
import pandas as pd

from botchat.boards.names import shorten
from botchat.interfaces import Row
from botchat.records import HUMAN

Kind = Literal["name", "count", "rate", "rating", "number", "decimal", "exact"]
"""``rate``: a share, 0 to 1 in the data and in percent for people; ``rating``: Elo points;
``number``: anything with one decimal, such as mean tokens; ``decimal``: with three, such as a kappa
or seconds; ``exact``: written with four digits, and in files with all, such as dollars."""

Role = Literal["value", "low", "high", "coverage", "rank"]
"""``low``, ``high``: ends of the 95 % interval of another column (`Column.of`)."""

Getter = Callable[[Any], Any]

DIGITS = 4
"""Decimals in csv and json."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True)
class Column:
    """One column: its key in the data, its heading for people, and how its values are written."""

    key: str
    heading: str
    kind: Kind
    detail: bool = False
    """For machines only: left out where people read."""
    getter: Getter | None = field(default=None, repr=False, compare=False)
    """Row -> value; default: what the row has under the key. See `value`."""
    role: Role = "value"
    of: str = ""
    """Key of the column that it belongs to; empty: the whole row."""
    n: int | None = None
    """The number of utterances N that it is at."""
    priority: int = 0
    """Where a terminal is narrow, lower ones are kept longer."""
    prose: bool = False
    """Sentences: where a terminal is narrow they are broken into lines, not shortened."""

    def value(self, row: Any) -> Any:
        """The value in a row, any object; what a mapping has under the key is taken as it is."""
        if isinstance(row, Mapping) and (self.getter is None or self.key in row):
            return row.get(self.key)
        return self.getter(row) if self.getter else getattr(row, self.key)


@dataclass(frozen=True)
class Table:
    """A titled table with the signatures of its numbers."""

    name: str
    """File name without ending."""
    title: str
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    """One column for each of ``columns``, in their order; missing values are NA."""
    signatures: tuple[str, ...]
    note: str = ""
    """What a reader must know to read it."""

    def __repr__(self) -> str:
        """What it is, in one line; its numbers are in ``frame``."""
        rows, columns = self.frame.shape
        return f"<Table {self.name}: {shorten(self.title, 60)}; {rows} rows, {columns} columns>"

    def _repr_html_(self) -> str:
        """For notebooks: what people read."""
        return fragment(self)

    @property
    def signature(self) -> str:
        """Signature of the number that the table is sorted by."""
        return self.signatures[0]

    def column(
        self,
        key: str | None = None,
        *,
        role: Role | None = None,
        of: str | None = None,
        n: int | None = None,
    ) -> Column:
        """The first column that has all that is given; `KeyError` where none has."""
        given = {"key": key, "role": role, "of": of, "n": n}.items()
        for column in self.columns:
            if all(value is None or getattr(column, name) == value for name, value in given):
                return column
        raise KeyError(f"table {self.name} has no column with {dict(given)}")

    def by_n(self) -> dict[int, Column]:
        """N -> the first column of a value at N, in the order of the columns."""
        found: dict[int, Column] = {}
        for column in self.columns:
            if column.n is not None and column.role == "value":
                found.setdefault(column.n, column)
        return found

    def ends(self, key: str) -> tuple[Column, Column] | None:
        """The columns with the lower and the upper end of a column; ``None`` if it has none."""
        try:
            return self.column(role="low", of=key), self.column(role="high", of=key)
        except KeyError:
            return None

    def values(self, key: str) -> dict[str, Any]:
        """Contestant -> its value in a column; rows are contestants."""
        return dict(zip(self.frame["model"], self.frame[key].tolist(), strict=True))

    def filled(self) -> Table:
        """Without the columns that have no value in any row; names stay."""
        kept = [c for c in self.columns if c.kind == "name" or self.frame[c.key].notna().any()]
        frame = self.frame[[column.key for column in kept]]
        return replace(self, columns=tuple(kept), frame=frame)

    @property
    def headline(self) -> list[Column]:
        """The columns that people read."""
        return [column for column in self.columns if not column.detail]

    @property
    def cells(self) -> list[list[str]]:
        """Every row as people read it: `headline` columns, rates in percent, a dash for missing."""
        columns = [self.written(column.key) for column in self.headline]
        return [list(row) for row in zip(*columns, strict=True)]

    @property
    def cells_with_ends(self) -> list[list[str]]:
        """The same, with the interval where its ends are for machines: ``62.5 [47–76]``."""
        columns = []
        for column in self.headline:
            said = zip(self.written(column.key), self.told_ends(column), strict=True)
            columns.append([f"{value} [{ends}]" if ends else value for value, ends in said])
        return [list(row) for row in zip(*columns, strict=True)]

    def told_ends(self, column: Column) -> list[str]:
        """The interval of each number of a column as ``47–76``; empty where it is not known."""
        ends = self.ends(column.key)
        if ends is None or not ends[0].detail or column.role == "rank":
            return [""] * len(self.frame)
        parts = self.frame[[one.key for one in (column, *ends)]].itertuples(index=False)
        form = _ENDS.get(column.kind, _FORMAT[column.kind])
        return [f"{form(row[1])}–{form(row[2])}" if all(map(_known, row)) else "" for row in parts]

    def written(self, key: str) -> list[str]:
        """A column as people read it, by its key; places that are shared or open as ``2–4``."""
        column = self.column(key)
        form, ends = _FORMAT[column.kind], self.ends(key)
        said = [form(v) if _known(v) else "–" for v in self.frame[key].tolist()]
        if column.role != "rank" or ends is None:
            return said
        spans = self.frame[[end.key for end in ends]].itertuples(index=False)
        return [
            one if pd.isna(low) or low == high else f"{low}–{high}"
            for one, (low, high) in zip(said, spans, strict=True)
        ]

    @property
    def compact(self) -> Table:
        """The same with every interval beside its number: its ends are for machines."""
        keys = {column.key for column in self.columns}
        hidden = tuple(
            replace(c, detail=True) if c.role in ("low", "high") and c.of in keys else c
            for c in self.columns
        )
        return replace(self, columns=hidden)

    @property
    def records(self) -> list[dict[str, Any]]:
        """Every row as a JSON-ready mapping; missing values are ``None``."""
        digits = {c.key: None if c.kind == "exact" else DIGITS for c in self.columns}
        rows = self.frame.to_dict("records")
        return [{key: _plain(row[key], n) for key, n in digits.items()} for row in rows]


def table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Any],
    signatures: Sequence[str],
    note: str = "",
    by: Sequence[str] | None = None,
) -> Table:
    """A table with the value of each column in each row (`Column.value`).

    ``by``: keys of the columns that rows are sorted by, highest first, missing last, then by name;
    the column ``rank``, if there is one, gets the rank by the first, equal values the same; people,
    who are what models are measured by, have none.
    """
    each, rows = {column.key: column for column in columns}, list(rows)
    values = {key: [column.value(row) for row in rows] for key, column in each.items()}
    types = {column.key: _DTYPE.get(column.kind, "float64") for column in columns}
    frame = pd.DataFrame({key: pd.Series(values[key], dtype=types[key]) for key in types})
    if by is not None:
        name_key = next(column.key for column in columns if column.kind == "name")
        down = [*([False] * len(by)), True]
        frame = frame.sort_values([*by, name_key], ascending=down, ignore_index=True)
        if by and "rank" in frame:
            ranked = frame[by[0]].where(frame[name_key] != HUMAN)
            ranks = ranked.rank(method="min", ascending=False)
            frame["rank"] = ranks.astype("Int64")
    # Getters cannot be sent to another process.
    plain = tuple(replace(column, getter=None) for column in columns)
    return Table(name, title, plain, frame, tuple(dict.fromkeys(signatures)), note)


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row each, with the keys of the first as columns, in their order."""
    return pd.DataFrame(list(rows))


def of_records(made: Iterable[msgspec.Struct], kind: type[msgspec.Struct]) -> pd.DataFrame:
    """A row a record and a column a field, as in a stage file; what is not known is missing."""
    rows = [msgspec.to_builtins(one) for one in made]
    return pd.DataFrame(rows, columns=list(kind.__struct_fields__))


def rank_by(key: str) -> Column:
    """The column with the rank by another; `table` fills it in."""
    return Column("rank", "Rank", "count", getter=lambda _: None, role="rank", of=key)


def value_and_ci(row: Row, key: str) -> tuple[Any, Any, Any]:
    """What a row has under a key, and the ends of its interval; ``None`` for what is not there."""
    return row.get(key), row.get(f"{key}_low"), row.get(f"{key}_high")


def with_ends(
    column: Column, before: str | None = None, *, detail: bool | None = None
) -> tuple[Column, Column, Column]:
    """A column and the ends of its interval, ``<key>_low`` and ``<key>_high``.

    ``before``: begins their headings, default: the column's heading and a comma. ``detail``: of the
    ends, default: the column's.
    """
    before = f"{column.heading}," if before is None else before
    detail = column.detail if detail is None else detail

    def end(role: Literal["low", "high"]) -> Column:
        key, heading = f"{column.key}_{role}", f"{before} {role}"
        return Column(key, heading, column.kind, detail, role=role, of=column.key, n=column.n)

    return column, end("low"), end("high")


def with_interval(column: Column) -> tuple[Column, Column, Column]:
    """A column and the ends of its 95 % interval, for machines: what a row has under the keys."""
    return with_ends(column, detail=True)


_DTYPE = {"name": "object", "count": "Int64"}

_FORMAT: Mapping[Kind, Callable[[Any], str]] = {  # z: no minus before what is rounded to 0
    "name": str,
    "count": lambda value: f"{value:,}",
    "rate": lambda value: f"{100 * value:z.1f}",
    "rating": lambda value: f"{value:z.1f}",
    "number": lambda value: f"{value:z,.1f}",
    "decimal": lambda value: f"{value:z.3f}",
    "exact": lambda value: f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}",
}


_ENDS: Mapping[Kind, Callable[[Any], str]] = {
    "rate": lambda value: f"{100 * value:z.0f}",
    "rating": lambda value: f"{value:z.0f}",
}
"""Ends of intervals are written shorter."""


def _known(value: Any) -> bool:
    return value is not None and not pd.isna(value)


def _plain(value: Any, digits: int | None) -> Any:
    if not _known(value):
        return None
    if not isinstance(value, float):
        return value if isinstance(value, str) else int(value)
    return value if digits is None else round(value, digits)


def one_line(text: str) -> str:
    """Text without control characters."""
    return _CONTROL.sub(" ", text)


def fragment(shown: Table) -> str:
    """The table as people read it, its note and signatures, to stand in a page; escaped."""
    sides = ["left" if column.kind == "name" else "right" for column in shown.headline]

    def row(tag: str, cells: list[str]) -> str:
        told = zip(cells, sides, strict=True)
        return "".join(
            f'<{tag} style="text-align:{side}"><bdi>{escape(one_line(cell))}</bdi></{tag}>'
            for cell, side in told
        )

    body = "\n".join(f"<tr>{row('td', cells)}</tr>" for cells in shown.cells_with_ends)
    signed = "<br>".join(escape(one_line(one)) for one in shown.signatures)
    signed = f"<p><code>{signed}</code></p>" if signed else ""
    note = f"<p>{escape(one_line(shown.note))}</p>" if shown.note else ""
    return (
        f"<table>\n<caption>{escape(one_line(shown.title))}</caption>\n"
        f"<thead><tr>{row('th', [column.heading for column in shown.headline])}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n{note}{signed}"
    )
