"""Story evaluation (MATEval: Li et al. 2024, §4): how many errors of five kinds has a story?

A verdict is five scores in the order of the paper's tables, such as ``"0 -1 0 0 -2"``. One point is
off for each erroneous passage; ``?`` is missing. The paper's scale has no floor.

Upstream's files of a dataset (ROC, WP: English; LOT: Chinese) are a table of stories with human
scores and one JSON file a strategy. Its reports are read as live ones.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TypeAlias

from botchat.boards.judge_agreement import HUMAN_LABELS
from botchat.errors import DataError, MissingDataError, listed, quoted
from botchat.frames import read_text
from botchat.importers.tables import FileRow, named
from botchat.interfaces import Case, Cells, ShownDialogue
from botchat.languages import Language, built_in
from botchat.metrics.agreement import ItemScore
from botchat.papers.benchmarks import (
    Benchmark,
    Files,
    RatedPart,
    RatedTexts,
    printed_rows,
    refuse_several,
)
from botchat.papers.chateval import json_files
from botchat.pipeline.judge import ProtocolCases
from botchat.protocols.frame import neutralise_template
from botchat.protocols.kinds import Score
from botchat.protocols.mateval import MATEVAL, OwnText
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERROR_TYPES
from botchat.protocols.scores import KindReport, neutralise_labels, read_kinds

STORIES = Protocol(
    "stories",
    "MATEval",
    MATEVAL.answer,
    shows="one",
    question="one story: points off for five kinds of error",
    prompts=("story",),
)


def asked_in(language: Language) -> Protocol:
    """Return the question in the language of the stories, English or Chinese."""
    if language.english:
        return STORIES
    names = tuple(chinese for _, chinese in ERROR_TYPES.values())
    scale = replace(STORIES.score.asked, names=names)
    return replace(STORIES, answer=Score(scale), language=language)


STORY = "story"  # the one contestant
AS_WRITTEN = ", as written"  # ends the name of a recording whose points are off whatever their sign

STRATEGIES = {
    "no_multi_agent": "SA",
    "one_by_one_agent_summary": "one-by-one",
    "SR_FB_agent_summary": "SR",
    "COT_FB_agent_summary": "CoT",
    "SR_COT_FB_agent_summary": "SR+CoT",
}
"""Key of the report in a record -> strategy, in the order of the paper's tables."""

COLUMNS = {"en": ("Story", "Score_new"), "zh": ("故事", "新得分")}
"""Headings of the stories and of the human scores, by the language of the stories."""

Recording: TypeAlias = dict[int, dict[int, KindReport]]
"""Number of the story -> place of the error type (-1: another one) -> report."""

RecordedReports: TypeAlias = dict[str, Recording]
"""Strategy -> its recording."""

_CODES = {}
for _code, _names in ERROR_TYPES.items():
    for _name in _names:
        _CODES[_name.casefold()] = _code


def case(story: OwnText, protocol: Protocol = STORIES) -> Case:
    """Return the question about one story."""
    text = neutralise_labels(neutralise_template(story.text), protocol.score.asked)
    prompt = protocol.language.fill("story", story=text)
    return protocol.make_case(story.id, (ShownDialogue(STORY, (story.text,)),), prompt)


def mateval(files: Files) -> Benchmark:
    """Return the stories with points off for five kinds of error; raises as `read_stories`."""
    language, stories = read_stories(files)
    protocol = asked_in(language)
    return Benchmark(
        [ProtocolCases(protocol, [partial(case, story, protocol) for story in stories])],
        _rated(stories, protocol).compare,
    )


def recorded(files: Files) -> Benchmark:
    """Compare upstream's recorded discussions in place of judges, each strategy in two ways.

    "As the paper did": a score line counts as it stands, and 0 without one. Of 32 readings this is
    the closest, and equals all ten cells of SA on LOT. "As written": points are always off, and a
    report without a score is missing.
    """
    language, stories = read_stories(files)
    reports = read_reports(files, language, stories)
    scores = {}
    for kind, code in enumerate(ERROR_TYPES):
        scores[code] = list(_recorded_scores(kind, reports, stories))
    printed: dict[str, Cells] = {}
    for name in files:
        printed |= printed_rows(PurePosixPath(name).name.partition("_")[0])
    comparison = _rated(stories, asked_in(language)).correlate(scores, {}, {}, printed)
    return Benchmark((), lambda _: comparison, needs_judges=False)


def _recorded_scores(
    kind: int,
    reports: RecordedReports,
    stories: Sequence[OwnText],
) -> Iterator[ItemScore]:
    """Yield the scores of the error type at a place, of every strategy in both ways."""
    for strategy, by_story in reports.items():
        written = []
        for number, by_kind in by_story.items():
            report = by_kind.get(kind, KindReport(kind))
            item = stories[number].id
            as_counted = report.written
            if as_counted is None:  # and not -0.0, which says that there is none
                as_counted = 0.0
            yield ItemScore(item, STORY, strategy, as_counted)
            written.append(ItemScore(item, STORY, f"{strategy}{AS_WRITTEN}", report.score))
        yield from written


def _rated(stories: Sequence[OwnText], protocol: Protocol) -> RatedTexts:
    parts = {}
    for place, code in enumerate(ERROR_TYPES):
        labels = [ItemScore(s.id, STORY, HUMAN_LABELS, s.labels[code]) for s in stories]
        parts[code] = RatedPart(protocol, place, labels)
    title = "Stories: correlation with human scores (layout of MATEval, Table 1)"
    return RatedTexts("mateval", "mateval-table-1", title, "error_type", parts)


def read_stories(files: Files) -> tuple[Language, list[OwnText]]:
    """Return the stories of one dataset, with human scores by the codes of `ERROR_TYPES`.

    Raises `MissingDataError` without a table, `DataError` with file and line for a wrong score.
    """
    tables = {}
    for name in sorted(files):
        if not name.lower().endswith(".csv"):
            continue
        lines = io.StringIO(read_text(files[name], name), newline="")
        rows = csv.DictReader(lines, restval="")  # rows end behind their last error
        for code, headings in COLUMNS.items():
            if set(headings) <= set(rows.fieldnames or ()):
                tables[name] = code, rows
    refuse_several(list(tables))
    if not tables:
        columns = " or ".join(", ".join(each) for each in COLUMNS.values())
        raise MissingDataError(
            f"no table with human scores among {listed(sorted(files)) or 'no files'}: give a CSV "
            f"file with the columns {columns}"
        )
    ((name, (code, rows)),) = tables.items()
    stories = []
    for number, row in enumerate(rows):
        text, scores = (row[column] for column in COLUMNS[code])
        # The digest in the id, so that datasets can be judged in one set.
        id_ = f"{number}-{sha256(text.encode()).hexdigest()[:6]}"
        stories.append(OwnText(id_, text, _human_scores(scores, f"{name}:{rows.line_num}")))
    return built_in()[code], stories


def _human_scores(text: str, where: str) -> dict[str, float]:
    scores = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, _, number = line.replace("\uff1a", ":").rpartition(":")
        try:
            scores[_CODES[name.strip().casefold()]] = float(number)
        except (KeyError, ValueError):
            raise DataError(
                f"{where}: {quoted(line.strip())} is no score of an error type (Name:-1)"
            ) from None
    missing = ", ".join(code for code in ERROR_TYPES if code not in scores)
    if missing:
        raise DataError(f"{where}: human scores lack {missing}; every story needs all five")
    return scores


def read_reports(files: Files, language: Language, stories: Sequence[OwnText]) -> RecordedReports:
    """Return reports by strategy, in the paper's order, number of the story and error type.

    JSON files without recorded reports are passed over. Raises `MissingDataError` without any, and
    `DataError`, with name and record, for an invalid file.
    """
    reports: RecordedReports = {}
    tables = list(json_files(files))
    for key, strategy in STRATEGIES.items():
        for name, records in tables:
            if key not in records[0].fields:
                continue
            if strategy in reports:
                raise DataError(
                    f"{name}: a second file with recorded reports of {strategy}; keep one"
                )
            reports[strategy] = _read_recording(records, key, language, len(stories))
    if not reports:
        raise MissingDataError(
            f"no recorded reports among {listed(sorted(files))}: give MATEval's JSON files "
            f"(records with one of the keys {', '.join(STRATEGIES)})"
        )
    return reports


def _read_recording(
    records: Iterable[FileRow], key: str, language: Language, n_stories: int
) -> Recording:
    """Return the reports under ``key`` by number of the story and error type."""
    by_story: Recording = {}
    for place, value in records:
        record = named(value, place)
        number = record.get("ID")
        report = record.get(key)
        if not isinstance(number, int) or not 0 <= number < n_stories or number in by_story:
            raise DataError(
                f"{place}: ID {number!r:.60} is not the number of one of the {n_stories} stories "
                "of the table, each once"
            )
        by_story[number] = {}
        if isinstance(report, str):
            by_story[number] = {kind.kind: kind for kind in read_kinds(report, language)}
    return by_story
