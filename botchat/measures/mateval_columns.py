"""What MATEval's annotators say where an error is: the columns beside their scores."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

from botchat.errors import DataError, MissingError
from botchat.measures.annotations import decoded
from botchat.measures.locations import Places, named, sentences
from botchat.measures.mateval_records import ERROR_TYPES

_COLUMNS = {"en": ("Story", "Error Location", "Error Type"), "zh": ("故事", "错误定位", "错误类型")}
"""Language -> columns of its tables; the last two are numbered from 1."""
_ALSO = {"逻辑错误": "LINC"}
"""A type by another name than that of the scores."""

_CODES = {name.casefold(): code for code, names in ERROR_TYPES.items() for name in names} | _ALSO
_NAMED = re.compile("|".join(map(re.escape, _CODES)))


def people(files: Mapping[str, bytes]) -> list[tuple[list[str], Places]]:
    """(sentences, places of people's errors by codes of `ERROR_TYPES`) of every story.

    Files as of `mateval_records.mateval`. Raises `MissingError` without a table that has columns
    for place and type, `DataError`, with file and line, for a type that is none of the five.
    """
    for name in sorted(files):
        if not name.lower().endswith(".csv"):
            continue
        rows = csv.DictReader(io.StringIO(decoded(files[name], name), newline=""))
        for code, (story, place, error) in _COLUMNS.items():
            if {story, f"{place}1", f"{error}1"} <= {*(rows.fieldnames or ())}:
                return [
                    _places(row, (story, place, error), code == "en", f"{name}:{rows.line_num}")
                    for row in rows
                ]
    raise MissingError(
        "no table with people's errors: give a CSV file with the columns "
        + " or ".join(f"{story}, {place}1, {error}1" for story, place, error in _COLUMNS.values())
    )


def _places(
    row: Mapping[str, str], columns: tuple[str, str, str], spaced: bool, where: str
) -> tuple[list[str], Places]:
    story, place, error = columns
    told = sentences(row[story])
    found: dict[str, frozenset[int] | None] = dict.fromkeys(ERROR_TYPES)
    n = 1
    while f"{error}{n}" in row:
        types = (row[f"{error}{n}"] or "").strip()
        codes = {_CODES[name] for name in _NAMED.findall(types.casefold())}
        if types and not codes:
            raise DataError(
                f"{where}: {error}{n}: {types!r} is none of the types of error; they are "
                + ", ".join(names[not spaced] for names in ERROR_TYPES.values())
            )
        for code in codes:
            at = named(row.get(f"{place}{n}") or "", told, spaced)
            found[code] = (found[code] or frozenset()) | at
        n += 1
    return told, found
