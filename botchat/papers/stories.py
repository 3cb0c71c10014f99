"""Story evaluation (MATEval: Li et al. 2024, §4): how many errors of five kinds has a story?

A verdict is five scores in the order of the paper's tables (``"0 -1 0 0 -2"``): 0, or one point off
for each erroneous passage; ``?`` is missing. The paper's scale has no floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from botchat.boards.judge_agreement import HUMAN_LABELS
from botchat.boards.tables import Column
from botchat.boards.writers import Formats
from botchat.interfaces import Case, ShownDialogue
from botchat.languages import Language, built_in
from botchat.metrics.agreement import ItemScore
from botchat.metrics.error_reports import KindReport
from botchat.papers import mateval_files
from botchat.papers.benchmarks import Files, RatedTexts
from botchat.pipeline.run.ask import Cases
from botchat.protocols import scores
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERROR_TYPES
from botchat.protocols.scores import Scale
from botchat.records import Judgment
from botchat.requests.results import Compared

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


@dataclass(frozen=True)
class Story:
    """A story and people's scores of it."""

    id: str
    text: str
    scores: Mapping[str, float]
    """By the codes of `ERROR_TYPES`."""


def stories(files: Files) -> list[Story]:
    """The stories of one dataset; files as of `botchat.papers.mateval_files`."""
    # The digest in the id, so that datasets can be judged beside each other.
    return [
        Story(f"{n}-{sha256(text.encode()).hexdigest()[:6]}", text, by_code)
        for n, (text, by_code) in enumerate(mateval_files.people(files))
    ]


def case(story: Story, protocol: Protocol = STORIES) -> Case:
    """The question about one story."""
    text = scores.neutralise_labels(story.text.replace("\0", ""), protocol.asked_scale)
    shown = ShownDialogue(STORY, (story.text,))
    return protocol.asked(story.id, (shown,), protocol.language.fill("story", story=text))


def ratings(judgments: Iterable[Judgment], code: str) -> list[ItemScore]:
    """What judges say about one kind of error; raises `DataError` as `scores.ratings`."""
    codes = list(ERROR_TYPES)
    return scores.ratings(judgments, len(codes), codes.index(code))


class MATEval(RatedTexts):
    """Points off for five kinds of error in a story: judges, or upstream's recorded discussions."""

    name, part = "mateval", "error_type"
    table = "mateval-table-1", "Stories: correlation with people (layout of MATEval, Table 1)"
    first = Column("strategy", "Strategy", "name")

    def __init__(self, files: Files) -> None:
        """Files and errors as of `botchat.papers.mateval_files`."""
        self._files, self._stories = files, stories(files)
        protocol = asked_in(built_in()[mateval_files.language(files)])
        self.parts = dict.fromkeys(ERROR_TYPES, protocol)
        self.cases = [Cases(protocol, [partial(case, story, protocol) for story in self._stories])]

    def labels(self, part: str) -> list[ItemScore]:
        """People's scores of a kind of error."""
        return [ItemScore(one.id, STORY, HUMAN_LABELS, one.scores[part]) for one in self._stories]

    def ratings(self, part: str, judged: Sequence[Judgment]) -> list[ItemScore]:
        """Of a kind of error."""
        return ratings(judged, part)

    def recorded(self, formats: Formats | None, out: Path) -> Compared:
        """Upstream's recorded discussions in place of judges; each strategy is taken in two ways.

        As the paper did: what a score line says counts as it stands, and 0 without one. Of 32
        readings that is the one closest to the authors' tables, and equal to all ten cells of their
        SA on LOT. As written: points are always off, and what says nothing is missing.
        """
        reports = mateval_files.recorded(self._files)
        rated = {
            code: [
                ItemScore(self._stories[number].id, STORY, f"{strategy}{end}", score(of.get(kind)))
                for strategy, by_story in reports.items()
                for end, score in (("", _as_published), (AS_WRITTEN, _as_written))
                for number, of in by_story.items()
            ]
            for kind, code in enumerate(ERROR_TYPES)
        }
        return self.beside_people(rated, {code: {} for code in ERROR_TYPES}, formats, out)


def _as_published(kind: KindReport | None) -> float | None:
    return 0.0 if kind is None or kind.written is None else kind.written


def _as_written(kind: KindReport | None) -> float | None:
    return None if kind is None else kind.score
