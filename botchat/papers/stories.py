"""Story evaluation (MATEval: Li et al. 2024, §4): how many errors of five kinds has a story?

A verdict is five scores in the order of the paper's tables (``"0 -1 0 0 -2"``): 0, or one point off
for each erroneous passage; ``?`` is missing. The paper's scale has no floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from botchat.interfaces import Case, ShownDialogue
from botchat.languages import Language
from botchat.metrics.correlation import Rating
from botchat.papers.mateval_files import people
from botchat.protocols import scores
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERROR_TYPES
from botchat.protocols.scores import Scale
from botchat.records import Judgment

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


@dataclass(frozen=True)
class Story:
    """A story and people's scores of it."""

    id: str
    text: str
    scores: Mapping[str, float]
    """By the codes of `ERROR_TYPES`."""


def stories(files: Mapping[str, bytes]) -> list[Story]:
    """The stories of one dataset; files as of `botchat.papers.mateval_files`."""
    # The digest in the id, so that datasets can be judged beside each other.
    return [
        Story(f"{n}-{sha256(text.encode()).hexdigest()[:6]}", text, given)
        for n, (text, given) in enumerate(people(files))
    ]


def case(story: Story, protocol: Protocol = STORIES) -> Case:
    """The question about one story."""
    told = scores.neutralise_labels(story.text.replace("\0", ""), protocol.asked_scale)
    shown = ShownDialogue(STORY, (story.text,))
    return protocol.asked(story.id, (shown,), protocol.language.fill("story", story=told))


def ratings(judgments: Iterable[Judgment], code: str) -> list[Rating]:
    """What judges say about one kind of error; raises `DataError` as `scores.ratings`."""
    codes = list(ERROR_TYPES)
    return scores.ratings(judgments, len(codes), codes.index(code))


def labels(told: Iterable[Story], code: str, judge: str) -> list[Rating]:
    """What people say about one kind of error."""
    return [Rating(story.id, STORY, judge, story.scores[code]) for story in told]
