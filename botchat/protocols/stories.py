"""Story evaluation (MATEval: Li et al. 2024, §4): how many errors of five kinds has a story?

A verdict is five scores in the order of the paper's tables, joined by spaces (``"0 -1 0 0 -2"``):
0, or one point off for each erroneous passage. A panel's is the mean of its members'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import product

from botchat import prompts
from botchat.errors import DataError
from botchat.interfaces import Case, Shown
from botchat.measures.mateval_records import ERROR_TYPES, people
from botchat.measures.scores import Rating
from botchat.records import Judgment, Verdict

PROTOCOL = "stories"
PROMPTS = ("story",)

LOWEST = -5
"""Lowest score of one kind; people's lowest in the published data is -4."""

_STORY = "story"
"""Name of the one contestant."""


@dataclass(frozen=True)
class Story:
    """A story and people's scores of it."""

    id: str
    text: str
    scores: Mapping[str, float]
    """By the codes of `ERROR_TYPES`."""


def stories(files: Mapping[str, bytes]) -> list[Story]:
    """The stories of one dataset; files and errors as of `mateval_records.mateval`.

    An id holds a digest of the text, so that datasets can be judged beside each other.
    """
    return [
        Story(f"{n}-{sha256(text.encode()).hexdigest()[:6]}", text, scores)
        for n, (text, scores) in enumerate(people(files))
    ]


def cases(told: Iterable[Story]) -> Iterator[Callable[[], Case]]:
    """A maker of a case for every story."""
    for story in told:
        yield partial(case, story)


def case(story: Story) -> Case:
    """The question about one story."""
    return Case(
        protocol=PROTOCOL,
        seed_id=story.id,
        dialogues=(Shown(_STORY, (story.text,)),),
        prompt=prompts.fill("story", story=_SCORE_LIKE.sub(r"\1 -", story.text.replace("\0", ""))),
        choices=_CHOICES,
        read=read,
    )


def read(text: str) -> tuple[Verdict | None, str]:
    """(five scores, reason) of a reply; of each kind the last line that names it with a number.

    A number without its minus is a deduction all the same. ``None`` unless there are all five,
    from 0 to `LOWEST`.
    """
    found = {_plain(match["name"]): match for match in _SCORE.finditer(text)}
    if len(found) < len(ERROR_TYPES):
        return None, " ".join(text.split())
    given = [-int(found[name]["points"]) for name in _NAMES]
    reason = " ".join(text[: min(match.start() for match in found.values())].split())
    if min(given) < LOWEST:
        return None, reason
    return " ".join(str(score) for score in given), reason


def ratings(judgments: Iterable[Judgment], code: str) -> list[Rating]:
    """What judges say about one kind of error.

    Raises:
        DataError: a verdict that is not five scores.
    """
    place = list(ERROR_TYPES).index(code)
    return [
        Rating(
            judgment.seed_id,
            _STORY,
            judgment.judge,
            None if judgment.verdict is None else _scores(judgment.verdict)[place],
        )
        for judgment in judgments
    ]


def labels(told: Iterable[Story], code: str, judge: str) -> list[Rating]:
    """What people say about one kind of error."""
    return [Rating(story.id, _STORY, judge, story.scores[code]) for story in told]


_CHOICES = frozenset(
    " ".join(map(str, scores)) for scores in product(range(LOWEST, 1), repeat=len(ERROR_TYPES))
)
_ENGLISH = [english for english, _ in ERROR_TYPES.values()]
_NAMES = [re.sub(r"\W", "", name).lower() for name in _ENGLISH]
_ANY = "|".join(re.sub(" ", r"[\\s-]+", name) for name in _ENGLISH)
_MARKS = r"[\"'*_`~ \t]*"
_SCORE = re.compile(
    rf"^[ \t>*_#.)(\d\u2022-]*(?P<name>{_ANY}){_MARKS}[:\uff1a]{_MARKS}"
    rf"[-\u2212\u2013\u2014]?[ \t]*(?P<points>\d+)(?:\.0)?{_MARKS}[.,;]?[ \t]*\r?$",
    re.IGNORECASE | re.MULTILINE,
)
_SCORE_LIKE = re.compile(rf"\b({_ANY})\s*[:\uff1a]", re.IGNORECASE)


def _plain(name: str) -> str:
    return re.sub(r"\W", "", name).lower()


def _scores(verdict: Verdict) -> Sequence[float]:
    try:
        found = [float(score) for score in verdict.split()]
    except ValueError:
        found = []
    if len(found) != len(ERROR_TYPES):
        raise DataError(
            f"verdict {verdict!r} is not {len(ERROR_TYPES)} scores; delete that line and judge "
            "again"
        )
    return found
