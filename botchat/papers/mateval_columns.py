"""MATEval's tables beside the scores: where people found errors, the stories without them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from botchat.errors import DataError, MissingError
from botchat.papers.locations import Places, named
from botchat.protocols.texts import ERROR_TYPES, sentences
from botchat.workspace.rows import utf8


class Columns(NamedTuple):
    """Headings of a table; those of errors are numbered from 1."""

    original: str
    """The story before errors were put in: the reference of metrics."""
    story: str
    scores: str
    place: str
    error: str
    reason: str


COLUMNS: Mapping[str, Columns] = {
    "en": Columns(
        "Original Story", "Story", "Score_new", "Error Location", "Error Type", "Description"
    ),
    "zh": Columns("原故事", "故事", "新得分", "错误定位", "错误类型", "说明"),
}
"""By the language of the stories."""

_ALSO = {"逻辑错误": "LINC"}
"""A type by another name than that of the scores."""

_CODES = {name.casefold(): code for code, names in ERROR_TYPES.items() for name in names} | _ALSO
_NAMED = re.compile("|".join(map(re.escape, _CODES)))


def people(files: Mapping[str, bytes]) -> list[tuple[list[str], Places]]:
    """(sentences, places of people's errors by codes of `ERROR_TYPES`) of every story.

    Files as of `mateval_records.mateval`. Raises `MissingError` without a table that has columns
    for place and type, `DataError`, with file and line, for a type that is none of the five.
    """
    found = _table(files, lambda of: (of.story, f"{of.place}1", f"{of.error}1"))
    return [_places(row, columns, where) for columns, row, where in found]


def originals(files: Mapping[str, bytes]) -> list[str]:
    """Every story before errors were put in; files and `MissingError` as of `people`."""
    found = _table(files, lambda of: (of.story, of.original))
    return [row[columns.original] or "" for columns, row, _ in found]


def _table(
    files: Mapping[str, bytes], needed: Callable[[Columns], tuple[str, ...]]
) -> list[tuple[Columns, Mapping[str, str], str]]:
    """(headings, cells, place) of every row of the first table that has what is needed."""
    for name in sorted(files):
        if not name.lower().endswith(".csv"):
            continue
        rows = csv.DictReader(io.StringIO(utf8(files[name], name), newline=""))
        for columns in COLUMNS.values():
            if {*needed(columns)} <= {*(rows.fieldnames or ())}:
                return [(columns, row, f"{name}:{rows.line_num}") for row in rows]
    raise MissingError(
        f"no such table among {', '.join(sorted(files)) or 'no files'}: give a CSV file with the "
        f"columns {' or '.join(', '.join(needed(columns)) for columns in COLUMNS.values())}"
    )


def _places(row: Mapping[str, str], columns: Columns, where: str) -> tuple[list[str], Places]:
    spaced = columns is COLUMNS["en"]
    told = sentences(row[columns.story])
    found: dict[str, frozenset[int] | None] = dict.fromkeys(ERROR_TYPES)
    n = 1
    while (heading := f"{columns.error}{n}") in row:
        types = (row[heading] or "").strip()
        codes = {_CODES[name] for name in _NAMED.findall(types.casefold())}
        if types and not codes:
            raise DataError(
                f"{where}: {heading}: {types!r} is none of the types of error; they are "
                + ", ".join(names[not spaced] for names in ERROR_TYPES.values())
            )
        for code in codes:
            at = named(row.get(f"{columns.place}{n}") or "", told, spaced)
            found[code] = (found[code] or frozenset()) | at
        n += 1
    return told, found
