"""A table that knows how it is read: headings and units for people, exact numbers for machines.

Everything becomes text here and is written elsewhere. CSV and Markdown end with the signatures of
the numbers in them (DESIGN §4), JSON holds them.
"""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import Any, Literal

import msgspec
import pandas as pd

from botchat.interfaces import Row

Kind = Literal["name", "count", "rate", "rating", "number", "decimal"]
"""``rate``: a share, 0 to 1 in the data and in percent for people; ``rating``: Elo points;
``number``: anything with one decimal, such as mean tokens; ``decimal``: with three, such as a kappa
or seconds."""

DIGITS = 4
"""Decimals in csv and json."""

LABEL_COLUMNS = 34
"""Width of the longest label of a model, in columns of a terminal."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FORMULA = re.compile(r"^[\s]*[=+\-@]")


@dataclass(frozen=True)
class Column:
    """One column: its key in the data, its heading for people, and how its values are written."""

    key: str
    heading: str
    kind: Kind
    detail: bool = False
    """For machines only: left out where people read."""


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

    @property
    def signature(self) -> str:
        """Signature of the number that the table is sorted by."""
        return self.signatures[0]


def table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    signatures: Sequence[str],
    note: str = "",
) -> Table:
    """A table from its rows; keys that are no column are left out."""
    frame = pd.DataFrame(
        {
            column.key: pd.Series(
                [row.get(column.key) for row in rows],
                dtype=_DTYPE.get(column.kind, "float64"),
            )
            for column in columns
        }
    )
    return Table(name, title, tuple(columns), frame, tuple(dict.fromkeys(signatures)), note)


def cells(shown: Table) -> list[list[str]]:
    """Every row as people read it: `headline` columns, rates in percent, a dash for missing."""
    columns = headline(shown)
    return [
        [
            "–" if pd.isna(value) else _FORMAT[column.kind](value)
            for column, value in zip(columns, row, strict=True)
        ]
        for row in shown.frame[[column.key for column in columns]].itertuples(
            index=False, name=None
        )
    ]


def headline(shown: Table) -> list[Column]:
    """The columns that people read."""
    return [column for column in shown.columns if not column.detail]


def to_csv(shown: Table) -> str:
    """CSV with a comment line for each signature.

    Names are quoted, so that ``pandas.read_csv(text, comment="#")`` reads a name with a ``#`` in
    it; a name that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    frame = shown.frame.copy()
    for column in shown.columns:
        if column.kind == "name":
            frame[column.key] = frame[column.key].map(_inert, na_action="ignore")
        elif column.kind != "count":
            frame[column.key] = frame[column.key].round(DIGITS)
    text: str = frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    return text + "".join(f"# {_one_line(signature)}\n" for signature in shown.signatures)


def to_markdown(shown: Table) -> str:
    """A heading, a pipe table with aligned columns, the note and the signatures."""
    head = [_marked(column.heading) for column in headline(shown)]
    names = [column.kind == "name" for column in headline(shown)]
    body = [
        [_marked(cell) if name else cell for cell, name in zip(row, names, strict=True)]
        for row in cells(shown)
    ]
    widths = [max(3, *map(len, column)) for column in zip(head, *body, strict=True)]
    rule = [
        "-" * width if name else "-" * (width - 1) + ":"
        for width, name in zip(widths, names, strict=True)
    ]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(width) if name else cell.rjust(width)
            for cell, width, name in zip(row, widths, names, strict=True)
        )
        + " |"
        for row in (head, rule, *body)
    ]
    notes = [shown.note, ""] if shown.note else []
    signatures = [f"`{_one_line(signature)}`  " for signature in shown.signatures]
    return "\n".join([f"## {_marked(shown.title)}", "", *lines, "", *notes, *signatures, ""])


def records(shown: Table) -> list[dict[str, Any]]:
    """Every row as a JSON-ready mapping; missing values are ``None``."""
    return [
        {column.key: _plain(value) for column, value in zip(shown.columns, row, strict=True)}
        for row in shown.frame.itertuples(index=False, name=None)
    ]


def to_json(value: Any) -> str:
    """JSON text of a JSON-ready value, readable, without NaN."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def labels(names: Sequence[str], columns: int = LABEL_COLUMNS) -> list[str]:
    """Names as figures and pages show them: one line, elided in the middle, none like another's."""
    short = {name: elided(name, columns) for name in names}
    twice = {label for label, count in Counter(short.values()).items() if count > 1}
    return [
        f"{elided(name, columns - 5)}~{sha256(name.encode('utf-8', 'replace')).hexdigest()[:4]}"
        if short[name] in twice
        else short[name]
        for name in names
    ]


def elided(text: str, columns: int) -> str:
    """Text without control characters, its middle left out if it is wider than ``columns``."""
    # Cf: marks that turn the writing direction of everything after them.
    clean = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)
    clean = " ".join(clean.split())
    if sum(map(_columns, clean)) <= columns:
        return clean
    room = (columns - 1) // 2
    head = sum(total <= columns - 1 - room for total in accumulate(map(_columns, clean)))
    tail = sum(total <= room for total in accumulate(map(_columns, reversed(clean))))
    return f"{clean[:head]}…{clean[len(clean) - tail :]}"


_DTYPE = {"name": "object", "count": "Int64"}

_FORMAT: Mapping[Kind, Callable[[Any], str]] = {
    "name": str,
    "count": lambda value: f"{value:,}",
    "rate": lambda value: f"{100 * value:.1f}",
    "rating": lambda value: f"{value:.1f}",
    "number": lambda value: f"{value:,.1f}",
    "decimal": lambda value: f"{value:.3f}",
}


def _plain(value: Any) -> Any:
    if value is pd.NA or value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    return round(value, DIGITS) if isinstance(value, float) else int(value)


def _one_line(text: str) -> str:
    return _CONTROL.sub(" ", text)


def _inert(name: str) -> str:
    """A name that no spreadsheet runs (CWE-1236)."""
    name = _one_line(name)
    return f"'{name}" if _FORMULA.match(name) else name


def _marked(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = _one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*|\[\]])", r"\\\1", text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
