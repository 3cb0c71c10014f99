"""MATEval's files: stories with people's scores and errors, and recorded discussions of them.

The upstream files of one dataset (ROC, WP: English; LOT: Chinese) are a table of stories with
people's scores and one JSON file a strategy (Li et al. 2024, §4, Tables 1 and 2). A recorded report
is read by the reader of live ones (`botchat.measures.error_reports`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from botchat.errors import DataError, MissingError
from botchat.languages import built_in
from botchat.measures.error_reports import ToldKind, read_kinds
from botchat.papers.locations import Places, named
from botchat.protocols.texts import ERROR_TYPES, sentences
from botchat.workspace.rows import json_rows, quoted, utf8
from botchat.workspace.rows import named as named_fields

Files = Mapping[str, bytes]
"""Name -> content of one dataset's files, in any folders."""

STRATEGIES: Mapping[str, str] = {
    "no_multi_agent": "SA",
    "one_by_one_agent_summary": "one-by-one",
    "SR_FB_agent_summary": "SR",
    "COT_FB_agent_summary": "CoT",
    "SR_COT_FB_agent_summary": "SR+CoT",
}
"""Key of the report in a record -> strategy, in the order of the paper's tables."""

DATASETS = ("ROC", "WP", "LOT", "Ant")
"""Of the paper; what their files' names begin with."""


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

_CODES = {name.casefold(): code for code, names in ERROR_TYPES.items() for name in names}
_PEOPLE_SCORE = re.compile(r"\s*(.+?)\s*[:\uff1a]\s*(-?\d+(?:\.\d+)?)\s*")

_MARKED = _CODES | {"逻辑错误": "LINC"}
"""A type also by another name than that of the scores."""
_NAMED = re.compile("|".join(map(re.escape, _MARKED)))


class _StoryTable(NamedTuple):
    """The table of a dataset that has what is asked for."""

    code: str
    """Of its language."""
    columns: Columns
    rows: Sequence[tuple[Mapping[str, str], str]]
    """(cells, place) of every story."""


def _table(files: Files, what: str, needed: Callable[[Columns], tuple[str, ...]]) -> _StoryTable:
    """The first table that has the columns; `MissingError`: ``what`` is not among the files."""
    for name in (name for name in sorted(files) if name.lower().endswith(".csv")):
        text = io.StringIO(utf8(files[name], name), newline="")
        rows = csv.DictReader(text, restval="")  # rows end behind their last error
        for code, columns in COLUMNS.items():
            if {*needed(columns)} <= {*(rows.fieldnames or ())}:
                told = [(row, f"{name}:{rows.line_num}") for row in rows]
                return _StoryTable(code, columns, told)
    raise MissingError(
        f"no table with {what} among {', '.join(sorted(files)) or 'no files'}: give a CSV file "
        f"with the columns {' or '.join(', '.join(needed(one)) for one in COLUMNS.values())}"
    )


def _scored(files: Files) -> _StoryTable:
    return _table(files, "people's scores", lambda of: (of.story, of.scores))


def language(files: Files) -> str:
    """Code of the stories' language; raises `MissingError` without a table of people's scores."""
    return _scored(files).code


def people(files: Files) -> list[tuple[str, dict[str, float]]]:
    """(story, people's scores by error type) of every story; see `_people_scores`."""
    _, columns, rows = _scored(files)
    return [(row[columns.story], _people_scores(row[columns.scores], at)) for row, at in rows]


def originals(files: Files) -> list[str]:
    """Every story before errors were put in; `MissingError`: the files have none."""
    _, columns, rows = _table(files, "stories without errors", lambda of: (of.story, of.original))
    return [row[columns.original] for row, _ in rows]


def marked(files: Files) -> list[tuple[list[str], Places]]:
    """(sentences, places of people's errors by codes of `ERROR_TYPES`) of every story.

    Raises `MissingError` without a table that has columns for place and type, `DataError`, with
    file and line, for a type that is none of the five.
    """
    code, columns, rows = _table(
        files, "places of errors", lambda of: (of.story, f"{of.place}1", f"{of.error}1")
    )
    return [_places(row, columns, code == "en", at) for row, at in rows]


def _places(
    row: Mapping[str, str], columns: Columns, spaced: bool, where: str
) -> tuple[list[str], Places]:
    told = sentences(row[columns.story])
    found: dict[str, frozenset[int] | None] = dict.fromkeys(ERROR_TYPES)
    n = 1
    while (heading := f"{columns.error}{n}") in row:
        types = row[heading].strip()
        codes = {_MARKED[name] for name in _NAMED.findall(types.casefold())}
        if types and not codes:
            raise DataError(
                f"{where}: {heading}: {types!r} is none of the types of error; they are "
                + ", ".join(names[not spaced] for names in ERROR_TYPES.values())
            )
        for code in codes:
            at = named(row.get(f"{columns.place}{n}", ""), told, spaced)
            found[code] = (found[code] or frozenset()) | at
        n += 1
    return told, found


def dataset(files: Files) -> str:
    """The dataset that a file names at its beginning; empty: none does."""
    begins = (PurePosixPath(name).name.partition("_")[0] for name in sorted(files))
    return next((name for name in begins if name in DATASETS), "")


def _people_scores(text: str, where: str) -> dict[str, float]:
    scores = {}
    for line in filter(str.strip, text.splitlines()):
        match = _PEOPLE_SCORE.fullmatch(line)
        code = _CODES.get(match[1].casefold()) if match else None
        if not match or not code:
            raise DataError(
                f"{where}: {quoted(line.strip())} is no score of an error type (Name:-1)"
            )
        scores[code] = float(match[2])
    if set(scores) != set(ERROR_TYPES):
        missing = ", ".join(code for code in ERROR_TYPES if code not in scores)
        raise DataError(f"{where}: people's score has no {missing}; every story needs all five")
    return scores


Recorded = dict[int, dict[int, ToldKind]]
"""Index of a story -> place of an error type -> what the report says about it."""


def recorded(files: Files) -> dict[str, Recorded]:
    """What each strategy's recorded reports say, in the order of the paper.

    JSON files without recorded reports are passed over. Raises `MissingError` without any, and
    `DataError`, with name and record, for an invalid file.
    """
    code, columns, rows = _scored(files)
    stories, language = [row[columns.story] for row, _ in rows], built_in()[code]
    reports: dict[str, Recorded] = {}
    for name in sorted(files):
        if PurePosixPath(name).suffix.lower() != ".json":
            continue
        records = [*json_rows(files[name], name)]
        first = records[0].fields if records else None
        keys = [*first] if isinstance(first, dict) else []
        key = next((k for k in keys if k in STRATEGIES or k.endswith("_agent_summary")), None)
        if key is None:
            continue
        strategy = STRATEGIES.get(key, key.removesuffix("_agent_summary"))
        if strategy in reports:
            raise DataError(f"{name}: a second file with recorded reports of {strategy}; keep one")
        found, same = reports.setdefault(strategy, {}), 0
        for place, value in records:
            record = named_fields(value, place)
            index, report = record.get("ID"), record.get(key)
            if not isinstance(index, int) or not 0 <= index < len(stories) or index in found:
                raise DataError(
                    f"{place}: ID {index!r} is not the number of one of the {len(stories)} "
                    "stories of the table, each once"
                )
            told = read_kinds(report, language) if isinstance(report, str) else []
            found[index] = {one.kind: one for one in told}
            same += record.get("story") == stories[index]
        # Upstream changed a few words between the table and the discussions.
        if 2 * same < len(records):
            raise DataError(
                f"{name}: only {same} of {len(records)} stories are those of the table; give files "
                "of one dataset"
            )
    if not reports:
        raise MissingError(
            f"no recorded reports among {', '.join(sorted(files))}: give MATEval's JSON files "
            f"(records with one of the keys {', '.join(STRATEGIES)})"
        )
    known = [strategy for strategy in STRATEGIES.values() if strategy in reports]
    return {strategy: reports[strategy] for strategy in (*known, *sorted({*reports} - {*known}))}
