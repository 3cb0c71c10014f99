"""MATEval's benchmark: judges of stories beside people, and upstream's recorded discussions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from botchat.boards.tables import Column
from botchat.boards.writers import Formats
from botchat.languages import built_in
from botchat.metrics.correlation import Rating
from botchat.metrics.error_reports import ToldKind
from botchat.papers import mateval_files, stories
from botchat.papers.benchmarks import PEOPLE, Files, RatedTexts, of_parts
from botchat.papers.stories import STORY
from botchat.pipeline.run.ask import Cases
from botchat.protocols.reports import ERROR_TYPES
from botchat.records import Judgment
from botchat.requests.results import Compared

AS_WRITTEN = ", as written"
"""Ends the name of a recording whose points are off whatever their sign."""


class MATEval(RatedTexts):
    """Points off for five kinds of error in a story (Li et al. 2024)."""

    name, part = "mateval", "error_type"
    table = "mateval-table-1", "Stories: correlation with people (layout of MATEval, Table 1)"
    first = Column("strategy", "Strategy", "name")
    figures = of_parts(ERROR_TYPES)

    def __init__(self, files: Files) -> None:
        """Files and errors as of `botchat.papers.mateval_files`."""
        self._files, self._told = files, stories.stories(files)
        protocol = stories.asked_in(built_in()[mateval_files.language(files)])
        self.parts = dict.fromkeys(ERROR_TYPES, protocol)
        self.cases = [Cases(protocol, [partial(stories.case, s, protocol) for s in self._told])]

    def labels(self, part: str) -> list[Rating]:
        """Of a kind of error."""
        return stories.labels(self._told, part, PEOPLE)

    def ratings(self, part: str, judged: Sequence[Judgment]) -> list[Rating]:
        """Of a kind of error."""
        return stories.ratings(judged, part)

    def recorded(self, formats: Formats | None, out: Path) -> Compared:
        """Upstream's recorded discussions in place of judges; each strategy is taken in two ways.

        As the paper did: what a score line says counts as it stands, and 0 without one. Of 32
        readings that is the one closest to the authors' tables, and equal to all ten cells of their
        SA on LOT. As written: points are always off, and what says nothing is missing.
        """
        reports = mateval_files.recorded(self._files)
        said = {
            code: [
                Rating(self._told[number].id, STORY, f"{strategy}{end}", score(of.get(kind)))
                for strategy, by_story in reports.items()
                for end, score in (("", _as_published), (AS_WRITTEN, _as_written))
                for number, of in by_story.items()
            ]
            for kind, code in enumerate(ERROR_TYPES)
        }
        return self.beside_people(said, {code: {} for code in ERROR_TYPES}, formats, out)


def _as_published(told: ToldKind | None) -> float | None:
    return 0.0 if told is None or told.written is None else told.written


def _as_written(told: ToldKind | None) -> float | None:
    return None if told is None else told.score
