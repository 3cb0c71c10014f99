"""MATEval's published correlations, computed from its recorded discussions without a model.

The upstream files of one dataset (ROC, WP: English; LOT: Chinese) are a table of stories with
people's scores and one JSON file a strategy (Li et al. 2024, §4, Tables 1 and 2).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from botchat.errors import DataError, MissingError
from botchat.interfaces import Row
from botchat.measures.annotations import decoded
from botchat.measures.correlation import Rating, compare_scores

ERROR_TYPES: Mapping[str, tuple[str, str]] = {
    "REP": ("Repetition", "重复问题"),
    "LINC": ("Logical Inconsistency", "逻辑问题"),
    "DCONT": ("Discontinuity", "连贯性问题"),
    "ILC": ("Inappropriate Lexical Choice", "用词不当"),
    "FER": ("Factual Error", "事实性错误"),
}
"""The paper's five, in the order of its tables: code -> name in the English and Chinese files."""

STRATEGIES: Mapping[str, str] = {
    "no_multi_agent": "SA",
    "one_by_one_agent_summary": "one-by-one",
    "SR_FB_agent_summary": "SR",
    "COT_FB_agent_summary": "CoT",
    "SR_COT_FB_agent_summary": "SR+CoT",
}
"""Key of the report in a record -> strategy, in the order of the paper's tables."""

_COLUMNS = {"en": ("Score_new", "Story"), "zh": ("新得分", "故事")}
"""Language -> columns of its tables."""
_PEOPLE = "human"

_CODES = {name.casefold(): code for code, names in ERROR_TYPES.items() for name in names}
_NAMES = "|".join(re.escape(name) for names in ERROR_TYPES.values() for name in names)
_QUOTE = "['\"\u2018\u2019\u201c\u201d]"
_QUESTION = re.compile(rf"{_QUOTE}\s*({_NAMES})\s*{_QUOTE}\s*[?\uff1f]", re.IGNORECASE)
_SCORE = re.compile(
    r"(?:score for individual questions?|单项问题得分)[ \t]*[:\uff1a]?[ \t]*"
    r"([-\u2212\u2013\u2014]?)[ \t]*(\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"final score|最终得分", re.IGNORECASE)
_PEOPLE_SCORE = re.compile(r"\s*(.+?)\s*[:\uff1a]\s*(-?\d+(?:\.\d+)?)\s*")


def mateval(files: Mapping[str, bytes]) -> list[Row]:
    """Correlation of each strategy's recorded scores with people's, for each error type.

    ``files``: name -> content of one dataset's files, in any folders; JSON files without recorded
    reports are ignored. Rows have ``strategy``, ``error_type`` (a key of `ERROR_TYPES`), ``n``
    stories, ``unreadable`` reports (not in ``n``), ``spearman`` and ``kendall`` with their
    intervals. Raises `MissingError` without a table of people's scores or recorded reports, and
    `DataError`, with name and line or record, for an invalid file.
    """
    told = people(files)
    reports = _reports(files, [story for story, _ in told])
    found: dict[tuple[str, str], Row] = {}
    for code in ERROR_TYPES:
        ratings = [Rating(str(i), "", _PEOPLE, scores[code]) for i, (_, scores) in enumerate(told)]
        ratings += [
            Rating(str(i), "", f"by {strategy}", scores.get(code))
            for strategy, read in reports.items()
            for i, scores in read.items()
        ]
        for row in compare_scores(ratings, _PEOPLE).rows:
            found[str(row.pop("judge")), code] = row
    known = [strategy for strategy in STRATEGIES.values() if strategy in reports]
    return [
        {"strategy": strategy, "error_type": code, **found[f"by {strategy}", code]}
        for strategy in (*known, *sorted(set(reports) - set(known)))
        for code in ERROR_TYPES
    ]


def read_report(text: str) -> dict[str, float]:
    """Scores by error type of a report in question-and-answer form, English or Chinese.

    The last score line under a question counts, its sign as written, which the published figures
    use so. A type without a score line is left out; an answer of No is not a score of 0.
    """
    _, *parts = _QUESTION.split(text)
    scores = {}
    for name, answer in zip(parts[::2], parts[1::2], strict=True):
        said = _SCORE.findall(_TOTAL.split(answer, maxsplit=1)[0])
        if said:
            sign, digits = said[-1]
            scores[_CODES[name.casefold()]] = -float(digits) if sign else float(digits)
    return scores


def people(files: Mapping[str, bytes]) -> list[tuple[str, dict[str, float]]]:
    """(story, people's scores by error type) of every story; files and errors as of `mateval`."""
    return _table(files)[1]


def language(files: Mapping[str, bytes]) -> str:
    """Code of the stories' language; files and errors as of `mateval`."""
    return _table(files)[0]


def _table(files: Mapping[str, bytes]) -> tuple[str, list[tuple[str, dict[str, float]]]]:
    for name in sorted(files):
        if not name.lower().endswith(".csv"):
            continue
        rows = csv.DictReader(io.StringIO(decoded(files[name], name), newline=""))
        for code, (scores, story) in _COLUMNS.items():
            if scores in (rows.fieldnames or ()) and story in (rows.fieldnames or ()):
                return code, [
                    (row[story], _people_scores(row[scores] or "", f"{name}:{rows.line_num}"))
                    for row in rows
                ]
    raise MissingError(
        "no table with people's scores among "
        f"{', '.join(sorted(files)) or 'no files'}: give a CSV file with the columns "
        + " or ".join(f"{story} and {scores}" for scores, story in _COLUMNS.values())
    )


def _people_scores(text: str, where: str) -> dict[str, float]:
    scores = {}
    for line in filter(str.strip, text.splitlines()):
        match = _PEOPLE_SCORE.fullmatch(line)
        code = _CODES.get(match[1].casefold()) if match else None
        if not match or not code:
            raise DataError(f"{where}: {line.strip()!r} is no score of an error type (Name:-1)")
        scores[code] = float(match[2])
    if set(scores) != set(ERROR_TYPES):
        missing = ", ".join(code for code in ERROR_TYPES if code not in scores)
        raise DataError(f"{where}: people's score has no {missing}; every story needs all five")
    return scores


def _reports(
    files: Mapping[str, bytes], stories: list[str]
) -> dict[str, dict[int, dict[str, float]]]:
    """Strategy -> index of the story -> scores by error type."""
    reports: dict[str, dict[int, dict[str, float]]] = {}
    for name in sorted(files):
        if PurePosixPath(name).suffix.lower() != ".json":
            continue
        try:
            records = json.loads(decoded(files[name], name))
        except json.JSONDecodeError as error:
            raise DataError(f"{name}:{error.lineno}: not readable as JSON: {error.msg}") from None
        first = records[0] if isinstance(records, list) and records else None
        keys = [*first] if isinstance(first, dict) else []
        key = next((k for k in keys if k in STRATEGIES or k.endswith("_agent_summary")), None)
        if key is None:
            continue
        strategy = STRATEGIES.get(key, key.removesuffix("_agent_summary"))
        if strategy in reports:
            raise DataError(f"{name}: a second file with recorded reports of {strategy}; keep one")
        reports[strategy] = _read_records(name, records, key, stories)
    if not reports:
        raise MissingError(
            f"no recorded reports among {', '.join(sorted(files))}: give MATEval's JSON files "
            f"(records with one of the keys {', '.join(STRATEGIES)})"
        )
    return reports


def _read_records(
    name: str, records: list[Any], key: str, stories: list[str]
) -> dict[int, dict[str, float]]:
    read: dict[int, dict[str, float]] = {}
    same = 0
    for number, record in enumerate(records, 1):
        index = record.get("ID") if isinstance(record, dict) else None
        if not isinstance(index, int) or not 0 <= index < len(stories) or index in read:
            raise DataError(
                f"{name}: record {number}: ID {index!r} is not the number of one of the "
                f"{len(stories)} stories of the table, each once"
            )
        report = record.get(key)
        read[index] = read_report(report) if isinstance(report, str) else {}
        same += record.get("story") == stories[index]
    # Upstream changed a few words between the table and the discussions.
    if 2 * same < len(records):
        raise DataError(
            f"{name}: only {same} of {len(records)} stories are those of the table; give files of "
            "one dataset"
        )
    return read
