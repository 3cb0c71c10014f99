"""Tables: headings and units for readers, exact numbers for machines; short names of models.

A `Column` says what a number means and how it is written; a number with a 95 % interval is one
column, whose ends are in the data under ``KEY_low`` and ``KEY_high``. `botchat.boards.files` makes
files of tables.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Literal, TypeAlias, TypeVar

import pandas as pd
from rich.cells import cell_len, chop_cells

from botchat.estimates import Estimate
from botchat.frames import TomlTable, package_toml
from botchat.interfaces import Cells
from botchat.records import HUMAN, Texts

LABEL_COLUMNS = 34
"""Width of the longest label of a model, in columns of a terminal."""

Kind = Literal["name", "count", "rank", "rate", "rating", "number", "decimal", "exact"]
"""Kinds of values. ``rank``: an interval of ranks, such as 2–4. ``rate``: a share, 0 to 1 in the
data and in percent for readers. ``rating``: Elo points. ``number``: anything with one decimal, such
as mean tokens. ``decimal``: with three decimals, such as a kappa or seconds. ``exact``: with four
digits, and in files with all, such as dollars."""

DIGITS = 4
"""Decimals in csv and json."""

T = TypeVar("T")

TableRow: TypeAlias = Mapping[str, object]
"""Row of a table: key of a column -> its value, or an `Estimate`."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def labels(names: Texts, columns: int = LABEL_COLUMNS) -> list[str]:
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
    if _cut(clean, columns) != clean:
        clean = re.sub("-instruct$", "", clean, flags=re.IGNORECASE)
    return _cut(clean, columns)


def _clean(text: str) -> str:
    # Not only controls: also marks that turn the writing direction of everything after them.
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _ending(name: str, columns: int) -> str:
    return _cut(_clean(name)[::-1], columns)[::-1]  # backwards, so that the end is kept


def _cut(text: str, columns: int) -> str:
    """Return a text, or its beginning and ``…`` where it is wider."""
    if cell_len(text) <= columns:
        return text
    return f"{chop_cells(text, columns - 1)[0]}…"


def _digested(name: str, columns: int) -> str:
    digest = sha256(name.encode("utf-8", "replace")).hexdigest()[:4]
    return f"{shorten(name, columns - 5)}~{digest}"


def is_floor_bot(contestant: str) -> bool:
    """Whether a contestant is one of BotChat's own offline bots."""
    return all(name.startswith("bot:") for name in contestant.split(" + "))


def models_of(names: Iterable[str]) -> list[str]:
    """Contestants without people and bots."""
    return [name for name in names if name != HUMAN and not is_floor_bot(name)]


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
    def form(self) -> _Form:
        """Form in which its values are written."""
        return COLUMNS.kinds[self.kind]

    @property
    def keys(self) -> list[str]:
        """Keys in the data: of the number, and of the ends of its interval."""
        if self.interval:
            return list(with_ends(self.key, "", "", ""))
        return [self.key]


def share(key: str, heading: str) -> Column:
    """A column of shares, 0 to 1, with their intervals."""
    return Column(key, heading, "rate", interval=True)


N = Column("n", "n", "count")


Columns: TypeAlias = tuple[Column, ...]


class _Form(TomlTable, frozen=True):
    """Form in which values of a kind are written, as `format` takes it, and kept in a frame."""

    number: str = ""
    ends: str = ""  # ends of its interval; empty where they are not written beside it
    dtype: str = "float64"
    scale: int = 1  # factor that it is multiplied by for readers


class _Columns(TomlTable, frozen=True):
    """Kinds of values, and the columns of each table; see ``columns.toml``."""

    kinds: Mapping[Kind, _Form]

    judges: Columns
    price: Columns
    pairs: Columns
    kappa: Columns
    rankings: Columns
    ratings: Columns
    meetings: Columns
    printed: Columns
    judged_pairs: Columns
    judged_texts: Columns
    facts_on_pairs: Columns
    facts_of_tests: Columns
    pairwise: Columns
    lengths: Columns


COLUMNS = package_toml("boards/columns.toml", _Columns)


@dataclass(frozen=True)
class Table:
    """A titled table with the signatures of its numbers."""

    name: str
    """File name without ending."""
    title: str
    columns: Sequence[Column]
    frame: pd.DataFrame
    """A column for each of the keys of ``columns``, in their order; missing values are NA."""
    signatures: Texts
    note: str = ""
    """Explanation that a reader needs."""

    def __repr__(self) -> str:
        """Describe the table in one line; its numbers are in ``frame``."""
        rows, columns = self.frame.shape
        return f"<Table {self.name}: {shorten(self.title, 60)}; {rows} rows, {columns} columns>"

    def _repr_html_(self) -> str:
        """Return the table for readers as HTML, for notebooks."""
        headings = [column.heading for column in self.headline]
        return pd.DataFrame(self.cells, columns=headings).to_html(index=False)

    @property
    def signature(self) -> str:
        """Signature of the number that the table is sorted by."""
        return self.signatures[0]

    def column(self, key: str) -> Column:
        """Return the column of a key; raises `KeyError` if there is none."""
        return {column.key: column for column in self.columns}[key]

    @property
    def models(self) -> list[str]:
        """The contestants, in the order of the rows."""
        return self.frame["model"].tolist()

    @cached_property
    def by_model(self) -> pd.DataFrame:
        """The frame by contestant; rows are contestants."""
        return self.frame.set_index("model")

    def filled(self) -> Table:
        """Return the table without columns that have no value in any row; names and ranks stay."""
        kept = []
        for column in self.columns:
            if column.kind in ("name", "rank") or self.frame[column.key].notna().any():
                kept.append(column)
        keys = [key for column in kept for key in column.keys]
        return replace(self, columns=kept, frame=self.frame[keys])

    def unranked(self) -> Table:
        """Return the table by name, with no rank and no rating."""
        frame = self.frame.sort_values("model", kind="stable", ignore_index=True)
        for column in self.columns:
            if column.kind in ("rank", "rating"):
                frame.loc[:, column.keys] = math.nan
        return replace(self, frame=frame)

    @property
    def headline(self) -> list[Column]:
        """The columns for readers."""
        return [column for column in self.columns if not column.detail]

    @property
    def cells(self) -> list[list[str]]:
        """Every row for readers: rates in percent, a dash for missing, ``62.5 (47–76)``."""
        columns = []
        for column in self.headline:
            texts = self.texts(column)
            if column.interval and column.form.ends:
                numbers = self.numbers(column)
                ends = [interval_text(number, column.form.ends) for number in numbers]
                pairs = zip(texts, ends, strict=True)
                texts = [f"{text} ({span})" if span else text for text, span in pairs]
            columns.append(texts)
        return [list(row) for row in zip(*columns, strict=True)]

    def texts(self, column: Column) -> list[str]:
        """Return a column for readers; ranks that are open as ``2–4``."""
        if column.kind == "rank":
            spans = self.frame[column.keys].itertuples(index=False)
            return [_rank_text(rank, low, high) for rank, low, high in spans]
        form = column.form
        values = self.frame[column.key].tolist()
        return ["–" if pd.isna(each) else format(form.scale * each, form.number) for each in values]

    def numbers(self, column: Column) -> list[Estimate]:
        """Return the numbers of a column and their intervals; rates in percent."""
        numbers = column.form.scale * self.frame[column.keys].astype(float)
        return [Estimate(*number) for number in numbers.itertuples(index=False)]

    @property
    def records(self) -> list[Cells]:
        """Every row, rounded to `DIGITS`, but for numbers that are ``exact``."""
        cells = {}
        for column in self.columns:
            for key in column.keys:
                values = self.frame[key]
                if column.form.dtype == "float64" and column.kind != "exact":
                    values = values.map(round, ndigits=DIGITS)
                cells[key] = [None if pd.isna(each) else each for each in values.tolist()]
        return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Iterable[TableRow] | pd.DataFrame,
    signatures: Texts,
    note: str = "",
    by: Texts = (),
) -> Table:
    """A table with what each row has under the keys of the columns, numbers or `Estimate`.

    ``by``: keys of the columns that rows, contestants, are sorted by, highest first, missing last,
    then by name.
    """
    if not isinstance(rows, pd.DataFrame):
        rows = pd.DataFrame([spread(row) for row in rows])
    by_key = dict(rows.reset_index().items())
    unknown = [math.nan] * len(rows)
    cells = {}
    for column in columns:  # of a whole frame pandas takes four times as long
        for key in column.keys:
            cells[key] = pd.Series(by_key.get(key, unknown), dtype=column.form.dtype)
    frame = pd.DataFrame(cells)
    if by:
        frame = frame.sort_values("model")
        frame = frame.sort_values(list(by), ascending=False, kind="stable", ignore_index=True)
    return Table(name, title, columns, frame, list(dict.fromkeys(signatures)), note)


def interval_text(estimate: Estimate, form: str) -> str:
    """Return an interval as ``47–76``, with a number below 0 as ``-3 to 4``; empty if unknown.

    ``form``: of each end, as `format` takes it.
    """
    if not estimate.is_bounded:
        return ""
    low = f"{estimate.low:{form}}"
    joint = "–"
    if low.startswith("-"):
        joint = " to "
    return f"{low}{joint}{estimate.high:{form}}"


def spread(row: TableRow) -> Cells:
    """Return a row with each `Estimate` under three keys; None where it is not known."""
    cells: Cells = {}
    for key, value in row.items():
        if isinstance(value, Estimate):
            ends = with_ends(key, value.value, value.low, value.high)
            cells |= {name: None if math.isnan(end) else end for name, end in ends.items()}
        else:
            cells[key] = value
    return cells


def one_line(text: str) -> str:
    """Text without control characters."""
    return _CONTROL.sub(" ", text)


def with_ends(key: str, value: T, low: T, high: T) -> dict[str, T]:
    """Return a number, or numbers, and the ends of the interval under their keys."""
    return {key: value, f"{key}_low": low, f"{key}_high": high}


def _rank_text(rank: Any, low: object, high: object) -> str:
    """Return a rank, or all that it may be; a dash where it is missing."""
    if pd.isna(rank):
        return "–"
    if low == high:
        return str(rank)
    return f"{low}–{high}"
