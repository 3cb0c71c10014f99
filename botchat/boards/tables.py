"""Tables: headings and units for readers, exact numbers for machines; short names of models.

A `Column` says what a number means and how it is written; a number with a 95 % interval is one
column, whose ends are in the data under ``KEY_low`` and ``KEY_high``. `botchat.boards.files` makes
files of tables.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import accumulate
from typing import Any, Literal

import msgspec
import pandas as pd

from botchat.estimates import Estimate
from botchat.interfaces import Row

LABEL_COLUMNS = 34
"""Width of the longest label of a model, in columns of a terminal."""

Kind = Literal["name", "count", "rank", "rate", "rating", "number", "decimal", "exact"]
"""Kinds of values. ``rank``: an interval of ranks, such as 2–4. ``rate``: a share, 0 to 1 in the
data and in percent for readers. ``rating``: Elo points. ``number``: anything with one decimal, such
as mean tokens. ``decimal``: with three decimals, such as a kappa or seconds. ``exact``: with four
digits, and in files with all, such as dollars."""

DIGITS = 4
"""Decimals in csv and json."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def labels(names: Sequence[str], columns: int = LABEL_COLUMNS) -> list[str]:
    """Names as figures and pages show them: one line, shortened, all different.

    Names that begin alike show their ends instead.
    """
    short = {name: shorten(name, columns) for name in names}
    for way in (_ending, _digested):
        count = Counter(short.values())
        alike = [name for name, label in short.items() if count[label] > 1]
        short |= {name: way(name, columns) for name in alike}
    return [short[name] for name in names]


@lru_cache(maxsize=1 << 12)  # every figure tries how many models' names fit
def shorten(text: str, columns: int) -> str:
    """Text without control characters; if too wide, without "-instruct", then without its end."""
    clean = _clean(text)
    if sum(_columns(each) for each in clean) <= columns:
        return clean
    clean = re.sub("-instruct$", "", clean, flags=re.IGNORECASE)
    n = sum(total <= columns - 1 for total in accumulate(map(_columns, clean)))
    if sum(_columns(each) for each in clean) <= columns:
        return clean
    return f"{clean[:n]}…"


def _clean(text: str) -> str:
    # Cf: marks that turn the writing direction of everything after them.
    return " ".join("".join(" " if unicodedata.category(c)[0] == "C" else c for c in text).split())


def _ending(name: str, columns: int) -> str:
    clean = _clean(name)
    n = sum(total <= columns - 1 for total in accumulate(map(_columns, reversed(clean))))
    if sum(_columns(each) for each in clean) <= columns:
        return clean
    return f"…{clean[len(clean) - n :]}"


def _digested(name: str, columns: int) -> str:
    digest = sha256(name.encode("utf-8", "replace")).hexdigest()[:4]
    return f"{shorten(name, columns - 5)}~{digest}"


def _columns(char: str) -> int:
    """Width of a character on a terminal."""
    if unicodedata.combining(char):
        return 0
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 1


def is_floor_bot(contestant: str) -> bool:
    """Whether a contestant is one of BotChat's own offline bots."""
    return all(name.startswith("bot:") for name in contestant.split(" + "))


@dataclass(frozen=True)
class Column:
    """One column: its key in the data, its heading for readers, and how its values are written."""

    key: str
    heading: str
    kind: Kind
    detail: bool = False
    """Whether it is for machines only, and left out of texts for readers."""
    interval: bool = False
    """Whether it has a 95 % interval."""
    n: int | None = None
    """The number of utterances N that it is at."""

    @property
    def keys(self) -> list[str]:
        """Keys in the data: of the number, and of the ends of its interval."""
        if self.interval:
            return [self.key, *_ends(self.key)]
        return [self.key]


@dataclass(frozen=True)
class Table:
    """A titled table with the signatures of its numbers."""

    name: str
    """File name without ending."""
    title: str
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    """A column for each of the keys of ``columns``, in their order; missing values are NA."""
    signatures: tuple[str, ...]
    note: str = ""
    """Explanation that a reader needs."""

    def __repr__(self) -> str:
        """Describe the table in one line; its numbers are in ``frame``."""
        rows, columns = self.frame.shape
        return f"<Table {self.name}: {shorten(self.title, 60)}; {rows} rows, {columns} columns>"

    def _repr_html_(self) -> str:
        """Return the table for readers as HTML, for notebooks."""
        headings = [column.heading for column in self.headline]
        return str(pd.DataFrame(self.cells, columns=headings).to_html(index=False))

    @property
    def signature(self) -> str:
        """Signature of the number that the table is sorted by."""
        return self.signatures[0]

    def column(self, key: str) -> Column:
        """Return the column of a key; raises `KeyError` if there is none."""
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(f"table {self.name} has no column {key}")

    def values(self, key: str) -> dict[str, Any]:
        """Contestant -> its value in a column; rows are contestants."""
        return dict(zip(self.frame["model"], self.frame[key].tolist(), strict=True))

    def filled(self) -> Table:
        """Return the table without columns that have no value in any row; names stay."""
        kept = [c for c in self.columns if c.kind == "name" or self.frame[c.key].notna().any()]
        frame = self.frame[[key for column in kept for key in column.keys]]
        return replace(self, columns=tuple(kept), frame=frame)

    @property
    def headline(self) -> list[Column]:
        """The columns for readers."""
        return [column for column in self.columns if not column.detail]

    @property
    def cells(self) -> list[list[str]]:
        """Every row for readers: rates in percent, a dash for missing, ``62.5 (47–76)``."""
        columns = []
        for column in self.headline:
            pairs = zip(self.texts(column.key), self.intervals(column.key), strict=True)
            columns.append([f"{value} ({ends})" if ends else value for value, ends in pairs])
        return [list(row) for row in zip(*columns, strict=True)]

    def texts(self, key: str) -> list[str]:
        """Return a column for readers; ranks that are open as ``2–4``."""
        column = self.column(key)
        texts = [_FORMAT[column.kind](v) if pd.notna(v) else "–" for v in self.frame[key].tolist()]
        if column.kind != "rank":
            return texts
        spans = self.frame[_ends(key)].itertuples(index=False)
        return [
            text if pd.isna(low) or low == high else f"{low}–{high}"
            for text, (low, high) in zip(texts, spans, strict=True)
        ]

    def intervals(self, key: str) -> list[str]:
        """Return each number's interval in a column as ``47–76``; empty where it is not known."""
        column = self.column(key)
        if not column.interval or column.kind == "rank":
            return ["" for _ in self.rows]
        form = _END_FORMAT.get(column.kind, _FORMAT[column.kind])
        return [interval_text(estimate_in(row, key), form) for row in self.rows]

    @cached_property
    def rows(self) -> list[Row]:
        """Every row as a mapping, for reading only; missing values are ``None``."""
        values = self.frame.astype(object)
        rows: list[Any] = values.where(values.notna(), None).to_dict("records")
        return rows

    @property
    def records(self) -> list[Row]:
        """Every row, rounded to `DIGITS`, but for numbers that are ``exact``."""
        digits = {
            c: DIGITS for column in self.columns if column.kind != "exact" for c in column.keys
        }
        return [
            {
                k: round(v, digits[k]) if isinstance(v, float) and k in digits else v
                for k, v in row.items()
            }
            for row in self.rows
        ]


def table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Row] | pd.DataFrame,
    signatures: Sequence[str],
    note: str = "",
    by: Sequence[str] = (),
) -> Table:
    """A table with what each row has under the keys of the columns, numbers or `Estimate`.

    ``by``: keys of the columns that rows are sorted by, highest first, missing last, then by name.
    """
    types = {key: _DTYPE.get(column.kind, "float64") for column in columns for key in column.keys}
    if isinstance(rows, pd.DataFrame):
        frame = rows
    else:
        frame = pd.DataFrame([spread(row) for row in rows])
    frame = frame.reindex(columns=list(types)).astype(types)
    if by:
        name_key = next(column.key for column in columns if column.kind == "name")
        down = [*([False] * len(by)), True]
        frame = frame.sort_values([*by, name_key], ascending=down, ignore_index=True)
    return Table(name, title, tuple(columns), frame, tuple(dict.fromkeys(signatures)), note)


def record_frame(records: Iterable[msgspec.Struct], kind: type[msgspec.Struct]) -> pd.DataFrame:
    """A row a record and a column a field, as in a stage file; what is not known is missing."""
    rows = [msgspec.to_builtins(record) for record in records]
    return pd.DataFrame(rows, columns=list(kind.__struct_fields__))


def estimate_in(row: Row, key: str) -> Estimate:
    """Return the number that a row of a table has under a key, with its interval."""
    numbers = [row.get(each) for each in (key, *_ends(key))]
    return Estimate(*[math.nan if number is None else number for number in numbers])


def interval_text(estimate: Estimate, form: Callable[[float], str]) -> str:
    """Return an interval as ``47–76``, with a number below 0 as ``-3 to 4``; empty if unknown."""
    if not estimate.is_bounded:
        return ""
    joint = "–"
    if estimate.low < 0:
        joint = " to "
    return f"{form(estimate.low)}{joint}{form(estimate.high)}"


def rounded_ends(estimate: Estimate) -> dict[str, float | None]:
    """Return a number as JSON has it: ``value``, ``low`` and ``high``, None if unknown."""
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {key: None if math.isnan(n) else round(n, DIGITS) for key, n in numbers.items()}


def spread(row: Row) -> Row:
    """Return a row with each `Estimate` under three keys; None where it is not known."""
    cells: Row = {}
    for key, value in row.items():
        if not isinstance(value, Estimate):
            cells[key] = value
            continue
        numbers = (value.value, value.low, value.high)
        for name, number in zip((key, *_ends(key)), numbers, strict=True):
            cells[name] = None if math.isnan(number) else number
    return cells


def one_line(text: str) -> str:
    """Text without control characters."""
    return _CONTROL.sub(" ", text)


def _ends(key: str) -> list[str]:
    return [f"{key}_low", f"{key}_high"]


_DTYPE = {"name": "object", "count": "Int64", "rank": "Int64"}

_FORMAT: Mapping[Kind, Callable[[Any], str]] = {  # z: no minus before what is rounded to 0
    "name": str,
    "count": lambda value: f"{value:,}",
    "rank": str,
    "rate": lambda value: f"{100 * value:z.1f}",
    "rating": lambda value: f"{value:z.1f}",
    "number": lambda value: f"{value:z,.1f}",
    "decimal": lambda value: f"{value:z.3f}",
    "exact": lambda value: f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}",
}

_END_FORMAT: Mapping[Kind, Callable[[Any], str]] = {
    "rate": lambda value: f"{100 * value:z.0f}",
    "rating": lambda value: f"{value:z.0f}",
}
"""Ends of intervals are written shorter."""
