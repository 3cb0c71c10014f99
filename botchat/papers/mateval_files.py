"""MATEval's files: stories with people's scores and errors, and recorded discussions of them.

The upstream files of one dataset (ROC, WP: English; LOT: Chinese) are a table of stories with
people's scores and one JSON file a strategy (Li et al. 2024, §4, Tables 1 and 2). A recorded report
is read by the reader of live ones (`botchat.metrics.error_reports`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from botchat.errors import DataError, MissingDataError
from botchat.importers.tables import json_rows, named, quoted, read_text
from botchat.languages import built_in
from botchat.metrics.error_reports import KindReport, read_kinds
from botchat.protocols.reports import ERROR_TYPES

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

COLUMNS = {"en": ("Story", "Score_new"), "zh": ("故事", "新得分")}
"""Headings of the stories and of people's scores, by the language of the stories."""

_CODES = {name.casefold(): code for code, names in ERROR_TYPES.items() for name in names}
_PEOPLE_SCORE = re.compile(r"\s*(.+?)\s*[:\uff1a]\s*(-?\d+(?:\.\d+)?)\s*")


def _scored(files: Files) -> tuple[str, list[tuple[str, str, str]]]:
    """Language of the first table of stories with people's scores, and (story, scores, place)."""
    for name in (name for name in sorted(files) if name.lower().endswith(".csv")):
        text = io.StringIO(read_text(files[name], name), newline="")
        rows = csv.DictReader(text, restval="")  # rows end behind their last error
        for code, (story, scores) in COLUMNS.items():
            if {story, scores} <= {*(rows.fieldnames or ())}:
                places = ((row, f"{name}:{rows.line_num}") for row in rows)
                return code, [(row[story], row[scores], place) for row, place in places]
    raise MissingDataError(
        f"no table with people's scores among {', '.join(sorted(files)) or 'no files'}: give a CSV "
        f"file with the columns {' or '.join(map(', '.join, COLUMNS.values()))}"
    )


def language(files: Files) -> str:
    """Code of the stories' language; raises `MissingDataError` without a table of scores."""
    return _scored(files)[0]


def people(files: Files) -> list[tuple[str, dict[str, float]]]:
    """(story, people's scores by error type) of every story; see `_people_scores`."""
    return [(story, _people_scores(scores, place)) for story, scores, place in _scored(files)[1]]


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


Recorded = dict[int, dict[int, KindReport]]
"""Index of a story -> place of an error type -> what the report says about it."""


def recorded(files: Files) -> dict[str, Recorded]:
    """What each strategy's recorded reports say, in the order of the paper.

    JSON files without recorded reports are passed over. Raises `MissingDataError` without any, and
    `DataError`, with name and record, for an invalid file.
    """
    code, rows = _scored(files)
    stories, language = [story for story, _, _ in rows], built_in()[code]
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
            record = named(value, place)
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
        raise MissingDataError(
            f"no recorded reports among {', '.join(sorted(files))}: give MATEval's JSON files "
            f"(records with one of the keys {', '.join(STRATEGIES)})"
        )
    known = [strategy for strategy in STRATEGIES.values() if strategy in reports]
    return {strategy: reports[strategy] for strategy in (*known, *sorted({*reports} - {*known}))}
