"""Anybody's texts or pairs of answers: how they stand in a file's rows, and how a pair is asked.

A question and two answers, each of which gets a score from 1 to 10, is ChatEval's comparison of
answers (FairEval; Chan et al. 2023, §3). `botchat evaluate` asks it about anybody's.

A pair has two columns such as ``answer_1`` and ``answer_2`` (or ``response_a``, ``response_b``), a
question or prompt where there is one, models' names, and people's verdict. A text has a column such
as ``text`` or ``story``, and people's scores: a number for the whole text, lines ``Name: number``
(MATEval's), or a column named like the criterion's number. Only letters and digits in names of
columns count; other columns are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from botchat import prompts
from botchat.errors import DataError
from botchat.interfaces import Case, Shown
from botchat.measures.annotations import Annotation
from botchat.protocols.kinds import Protocol
from botchat.protocols.scores import Scale
from botchat.protocols.texts import ERROR_TYPES, OwnText

ANSWERS = Protocol(
    "answers",
    "FairEval",
    kind="score",
    shows="pair",
    question="a question and two answers, both orders: a score of each",
    prompts=("answers",),
    scale=Scale(1, 10, ("Assistant",)),
)


@dataclass(frozen=True)
class AnswerPair:
    """A question, two answers and what people think of them."""

    id: str
    question: str
    contestants: tuple[str, str]
    answers: tuple[str, str]
    label: str | None
    """``"1"`` or ``"2"``: which answer most people prefer, ``"tie"``; ``None``: not known."""
    category: str = ""
    """Of the question, where upstream says it: ``coding``."""


def pair_cases(pairs: Iterable[AnswerPair]) -> Iterator[Callable[[], Case]]:
    """A maker of a case for every pair, in both orders."""
    for pair in pairs:
        yield partial(pair_case, pair)
        yield partial(pair_case, pair, True)


def pair_case(pair: AnswerPair, swapped: bool = False) -> Case:
    """The question how good two answers are; ``swapped`` shows the second one first."""
    order = (1, 0) if swapped else (0, 1)
    question, one, two = map(_framed, (pair.question, *(pair.answers[i] for i in order)))
    return ANSWERS.asked(
        pair.id,
        tuple(Shown(pair.contestants[i], (pair.question, pair.answers[i])) for i in order),
        prompts.fill("answers", question=question, answer_1=one, answer_2=two),
        partial(pair_case, pair, not swapped),
    )


def pair_labels(pairs: Iterable[AnswerPair], judge: str = "human") -> list[Annotation]:
    """What people prefer, where it is known."""
    return [
        Annotation(pair.id, *pair.contestants, judge, pair.label)
        for pair in pairs
        if pair.label is not None
    ]


_FRAME_LIKE = re.compile(
    r"\[\s*(the\s+(?:start|end)\s+of\s+assistant\s*\d+\s*['\u2019]s\s+answer|system|question)\s*\]",
    re.IGNORECASE,
)
_SCORE_LIKE = re.compile(r"(\bassistant[\s_-]*[12]\b[^\n:\uff1a=]{0,40})[:\uff1a=]", re.IGNORECASE)


def _framed(text: str) -> str:
    """A text that cannot be taken for the frame around it or for a score, its words unchanged."""
    return _SCORE_LIKE.sub(r"\1 -", _FRAME_LIKE.sub(r"(\1)", text.replace("\0", "")))


Fields = Mapping[str, object]
"""Plain name of a column -> cell."""

TEXTS = (
    "text",
    "story",
    "output",
    "response",
    "answer",
    "reply",
    "summary",
    "document",
    "essay",
    "content",
    "completion",
    "故事",
)
"""Columns that hold a text, the first that is there."""

_ANSWER = re.compile(rf"(?:{'|'.join(TEXTS)})([12ab])")
_QUESTIONS = ("question", "prompt", "instruction", "input", "query", "context")
_IDS = ("id", "index", "item", "textid", "questionid")
_HUMAN_SCORES = (
    "scorenew",
    "新得分",
    "humanscores",
    "humanscore",
    "human",
    "rating",
    "score",
    "label",
)
_HUMAN_VERDICTS = ("winner", "human", "humanverdict", "label", "preference", "verdict")
_FIRST = ("1", "a", "first", "modela", "model1", "answer1", "answera", "assistant1")
_SECOND = ("2", "b", "second", "modelb", "model2", "answer2", "answerb", "assistant2")
_TIES = ("tie", "tiebothbad", "bothbad", "both", "neither", "draw", "equal")


def plain(name: str) -> str:
    """The letters and digits of a name: what counts of it."""
    return re.sub(r"[\W_]", "", name.lower())


_ENGLISH = {chinese: plain(english) for english, chinese in ERROR_TYPES.values()}
"""Names of numbers in MATEval's Chinese table."""

_MAX_ID = 200


def paragraphs(text: str) -> list[OwnText]:
    """The texts of a plain file: what blank lines separate."""
    parts = [part.strip() for part in re.split(r"\n[ \t\r]*\n", text) if part.strip()]
    return [OwnText(str(n), part) for n, part in enumerate(parts, 1)]


def items(
    rows: Iterable[tuple[str, Fields]],
    where: str,
    numbers: Collection[str] = (),
    texts: Sequence[str] = TEXTS,
) -> list[OwnText] | list[AnswerPair]:
    """Texts or pairs, as the first row has it; ``rows``: place and cells by plain column name.

    ``numbers``: plain names of the numbers whose columns are people's scores. ``texts``: plain
    names of columns that hold a text, the first that is there counts. Raises `DataError`,
    with place and column: a row that lacks one, an id that is there twice, a score or verdict that
    is none, or no rows.
    """
    listed = list(rows)
    if not listed:
        raise DataError(f"{where}: no texts; give one a row, in a column named text")
    ids: dict[str, str] = {}
    place, first = listed[0]
    sides = {match[1]: name for name in first if (match := _ANSWER.fullmatch(name))}
    one, two = sides.get("1", sides.get("a")), sides.get("2", sides.get("b"))
    if one and two:
        return [
            _pair(place, fields, (one, two), _id(place, fields, n, ids))
            for n, (place, fields) in enumerate(listed, 1)
        ]
    name = next((name for name in texts if name in first), None)
    if name is None:
        raise DataError(
            f"{place}: no text (columns: {', '.join(first)[:200] or 'none'}); expected one of "
            f"{', '.join(TEXTS)}, or of a pair answer_1 and answer_2"
        )
    return [
        OwnText(
            _id(place, fields, n, ids),
            _words(place, fields, name),
            _scores(place, fields, name, numbers),
        )
        for n, (place, fields) in enumerate(listed, 1)
    ]


def _words(place: str, fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        fault = f"{value!r:.60} is not text" if name in fields else "it is missing"
        raise DataError(f"{place}: column {name}: {fault}; every row needs one as the first has it")
    return value.strip()


def _id(place: str, fields: Fields, number: int, ids: dict[str, str]) -> str:
    value = next((fields[name] for name in _IDS if fields.get(name) not in (None, "")), number)
    id_ = str(value).strip()
    if not id_ or len(id_) > _MAX_ID or not isinstance(value, str | int | float):
        raise DataError(
            f"{place}: column id: {value!r:.60} is no name of at most {_MAX_ID} letters"
        )
    if id_ in ids:
        raise DataError(f"{place}: column id: {id_!r} is taken by {ids[id_]}; give each its own")
    ids[id_] = place
    return id_


def _pair(place: str, fields: Fields, sides: tuple[str, str], id_: str) -> AnswerPair:
    question = next((name for name in _QUESTIONS if fields.get(name)), None)
    first, second = (
        next(
            (
                str(fields[name])
                for name in (f"model{side[-1]}", f"generator{side[-1]}")
                if fields.get(name)
            ),
            side,
        )
        for side in sides
    )
    if first == second:
        raise DataError(f"{place}: both answers are by {first!r}; name two different models")
    return AnswerPair(
        id_,
        _words(place, fields, question) if question else "",
        (first, second),
        (_words(place, fields, sides[0]), _words(place, fields, sides[1])),
        _verdict(place, fields, (first, second)),
    )


def _verdict(place: str, fields: Fields, names: tuple[str, str]) -> str | None:
    """People's verdict on a pair, where it is known."""
    column = next((name for name in _HUMAN_VERDICTS if name in fields), None)
    said = plain(str(fields[column])) if column and fields[column] is not None else ""
    if not column or not said:
        return None
    meant = {
        **dict.fromkeys(_TIES, "tie"),
        **dict.fromkeys((*_SECOND, plain(names[1])), "2"),
        **dict.fromkeys((*_FIRST, plain(names[0])), "1"),
    }
    if said not in meant:
        raise DataError(
            f"{place}: column {column}: {fields[column]!r:.60} is none of 1, 2, tie, "
            f"{names[0]}, {names[1]}, or empty"
        )
    return meant[said]


def _scores(place: str, fields: Fields, text: str, numbers: Collection[str]) -> dict[str, float]:
    """People's scores of a text by plain name of the number; ``""``: of the whole text."""
    found: dict[str, float] = {}
    column = next((name for name in _HUMAN_SCORES if name in fields and name != text), None)
    value = fields.get(column) if column else None
    if column and value is not None and str(value).strip():
        for line in str(value).strip().splitlines():
            name, colon, number = line.replace("\uff1a", ":").rpartition(":")
            own = plain(name) if colon else ""
            found[_ENGLISH.get(own, own)] = _number(place, column, number)
    for name in numbers:
        for own in (name, f"human{name}"):
            if fields.get(own) not in (None, ""):
                found[name] = _number(place, own, str(fields[own]))
    return found


def _number(place: str, column: str, said: str) -> float:
    try:
        value = float(said.strip().replace("\u2212", "-"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(
            f"{place}: column {column}: {said.strip()!r:.60} is no number; give people's score, "
            "lines of Name: number, or leave it empty"
        )
    return value
