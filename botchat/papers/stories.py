"""Story evaluation (MATEval: Li et al. 2024, §4): how many errors of five kinds has a story?

A verdict is five scores in the order of the paper's tables (``"0 -1 0 0 -2"``): 0, or one point off
for each erroneous passage; ``?`` is missing. The paper's scale has no floor.

The upstream files of one dataset (ROC, WP: English; LOT: Chinese) are a table of stories with human
scores and one JSON file a strategy. A recorded report is read by the reader of live ones
(`botchat.metrics.error_reports`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath

from botchat.boards.judge_agreement import HUMAN_LABELS
from botchat.boards.tables import Column
from botchat.errors import DataError, MissingDataError
from botchat.importers.rows import json_rows, named, quoted, read_text
from botchat.interfaces import Case, ShownDialogue
from botchat.languages import Language, built_in
from botchat.metrics.agreement import ItemScore
from botchat.metrics.error_reports import KindReport, read_kinds
from botchat.papers.benchmarks import Answered, Files, RatedTexts, score_at
from botchat.pipeline.run.ask import Cases
from botchat.protocols.mateval import OwnText
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERROR_TYPES
from botchat.protocols.scores import Scale, neutralise_labels
from botchat.results import Result

STORIES = Protocol(
    "stories",
    "MATEval",
    kind="score",
    shows="one",
    question="one story: points off for five kinds of error",
    prompts=("story",),
    # Judges take off halves too. A number below two digits was miswritten.
    scale=Scale(-99, 0, tuple(english for english, _ in ERROR_TYPES.values()), points_off=True),
)


def asked_in(language: Language) -> Protocol:
    """The question in the language of the stories, English or Chinese."""
    if language.english:
        return STORIES
    assert STORIES.scale is not None
    names = tuple(chinese for _, chinese in ERROR_TYPES.values())
    return replace(STORIES, scale=replace(STORIES.scale, names=names), language=language)


STORY = "story"
"""Name of the one contestant."""

AS_WRITTEN = ", as written"
"""Ends the name of a recording whose points are off whatever their sign."""


def stories(files: Files) -> list[OwnText]:
    """Return the stories of one dataset, with human scores by the codes of `ERROR_TYPES`."""
    # The digest in the id, so that datasets can be judged beside each other.
    return [
        OwnText(f"{n}-{sha256(text.encode()).hexdigest()[:6]}", text, _people_scores(scores, place))
        for n, (text, scores, place) in enumerate(_scored(files)[1])
    ]


def case(story: OwnText, protocol: Protocol = STORIES) -> Case:
    """The question about one story."""
    text = neutralise_labels(story.text.replace("\0", ""), protocol.asked_scale)
    shown = ShownDialogue(STORY, (story.text,))
    return protocol.asked(story.id, (shown,), protocol.language.fill("story", story=text))


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


def recorded_reports(files: Files) -> dict[str, Recorded]:
    """What each strategy's recorded reports say, in the order of the paper.

    JSON files without recorded reports are passed over. Raises `MissingDataError` without any, and
    `DataError`, with name and record, for an invalid file.
    """
    code, rows = _scored(files)
    texts, language = [story for story, _, _ in rows], built_in()[code]
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
            if not isinstance(index, int) or not 0 <= index < len(texts) or index in found:
                raise DataError(
                    f"{place}: ID {index!r} is not the number of one of the {len(texts)} "
                    "stories of the table, each once"
                )
            told = read_kinds(report, language) if isinstance(report, str) else []
            found[index] = {one.kind: one for one in told}
            same += record.get("story") == texts[index]
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


def mateval(files: Files) -> RatedTexts:
    """Return points off for five kinds of error in a story."""
    listed = stories(files)
    protocol = asked_in(built_in()[_scored(files)[0]])
    return RatedTexts(
        "mateval",
        ("mateval-table-1", "Stories: correlation with people (layout of MATEval, Table 1)"),
        Column("strategy", "Strategy", "name"),
        "error_type",
        [Cases(protocol, [partial(case, story, protocol) for story in listed])],
        {code: (protocol, score_at(place)) for place, code in enumerate(ERROR_TYPES)},
        {
            code: [ItemScore(one.id, STORY, HUMAN_LABELS, one.labels[code]) for one in listed]
            for code in ERROR_TYPES
        },
    )


def recorded(files: Files, answered: Answered) -> Result:
    """Compare upstream's recorded discussions in place of judges, each strategy in two ways.

    As the paper did: what a score line says counts as it stands, and 0 without one. Of 32 readings
    that is the one closest to the authors' tables, and equal to all ten cells of their SA on LOT.
    As written: points are always off, and what says nothing is missing.
    """
    listed, reports = stories(files), recorded_reports(files)
    rated = {
        code: [
            ItemScore(listed[number].id, STORY, f"{strategy}{end}", score(of.get(kind)))
            for strategy, by_story in reports.items()
            for end, score in (("", _as_published), (AS_WRITTEN, _as_written))
            for number, of in by_story.items()
        ]
        for kind, code in enumerate(ERROR_TYPES)
    }
    return mateval(files).compared_scores(rated, {}, answered)


def _as_published(kind: KindReport | None) -> float | None:
    return 0.0 if kind is None or kind.written is None else kind.written


def _as_written(kind: KindReport | None) -> float | None:
    return None if kind is None else kind.score
