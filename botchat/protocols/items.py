"""Texts or pairs of answers in the rows of a file, which `botchat evaluate` judges.

A pair has two columns such as ``answer_1`` and ``answer_2`` (or ``response_a``, ``response_b``), a
question or prompt where there is one, models' names, and people's verdict. A text has a column such
as ``text`` or ``story``, and people's scores: a number for the whole text, lines ``Name: number``
(MATEval's), or a column named like the criterion's number. Only letters and digits in names of
columns count; other columns are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

from botchat.errors import DataError
from botchat.protocols.answers import AnswerPair
from botchat.protocols.mateval import OwnText
from botchat.protocols.reports import ERROR_TYPES

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
_VERDICTS = {
    "tie": "tie tiebothbad bothbad both neither draw equal",
    "2": "2 b second modelb model2 answer2 answerb assistant2",
    "1": "1 a first modela model1 answer1 answera assistant1",
}


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
    names of columns that hold a text. Raises `DataError`, with place and column: a row that lacks
    one, an id that is there twice, a score or verdict that is none, or no rows.
    """
    listed = list(starmap(_Row, rows))
    if not listed:
        raise DataError(f"{where}: no texts; give one a row, in a column named text")
    ids: dict[str, str] = {}
    first = listed[0]
    sides = {match[1]: name for name in first.fields if (match := _ANSWER.fullmatch(name))}
    one, two = sides.get("1", sides.get("a")), sides.get("2", sides.get("b"))
    if one and two:
        return [row.pair(row.id(n, ids), (one, two)) for n, row in enumerate(listed, 1)]
    name = first.column(texts)
    if name is None:
        raise DataError(
            f"{first.place}: no text (columns: {', '.join(first.fields)[:200] or 'none'}); "
            f"expected one of {', '.join(TEXTS)}, or of a pair answer_1 and answer_2"
        )
    return [
        OwnText(row.id(n, ids), row.words(name), row.scores(name, numbers))
        for n, row in enumerate(listed, 1)
    ]


@dataclass(frozen=True)
class _Row:
    """A row of a file, and where it is."""

    place: str
    fields: Fields

    def column(self, names: Iterable[str], *, filled: bool = False) -> str | None:
        """The first of some columns that is there, or has something in it."""
        empty = (None, "") if filled else ()
        present = (name for name in names if name in self.fields)
        return next((name for name in present if self.fields[name] not in empty), None)

    def wrong(self, column: str, fault: str) -> DataError:
        """That a cell is not what is expected."""
        return DataError(f"{self.place}: column {column}: {fault}")

    def words(self, name: str) -> str:
        """The text in a cell."""
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            fault = f"{value!r:.60} is not text" if name in self.fields else "it is missing"
            raise self.wrong(name, f"{fault}; every row needs one as the first has it")
        return value.strip()

    def id(self, number: int, ids: dict[str, str]) -> str:
        """The row's own id, or its number; ``ids``: those that are taken -> by which place."""
        column = self.column(_IDS, filled=True)
        value = self.fields[column] if column else number
        id_ = str(value).strip()
        if not id_ or len(id_) > _MAX_ID or not isinstance(value, str | int | float):
            raise self.wrong("id", f"{value!r:.60} is no name of at most {_MAX_ID} letters")
        if id_ in ids:
            raise self.wrong("id", f"{id_!r} is taken by {ids[id_]}; give each its own")
        ids[id_] = self.place
        return id_

    def pair(self, id_: str, sides: tuple[str, str]) -> AnswerPair:
        """Two answers, in the columns ``sides``."""
        question = self.column(_QUESTIONS, filled=True)
        named = [self.column((f"model{s[-1]}", f"generator{s[-1]}"), filled=True) for s in sides]
        one, two = (
            str(self.fields[name]) if name else side
            for name, side in zip(named, sides, strict=True)
        )
        if one == two:
            raise DataError(f"{self.place}: both answers are by {one!r}; name two different models")
        asked = self.words(question) if question else ""
        answers = self.words(sides[0]), self.words(sides[1])
        return AnswerPair(id_, asked, (one, two), answers, self._verdict((one, two)))

    def _verdict(self, names: tuple[str, str]) -> str | None:
        """People's verdict on a pair, where it is known."""
        column = self.column(_HUMAN_VERDICTS)
        value = self.fields[column] if column else None
        label = "" if value is None else plain(str(value))
        if not column or not label:
            return None
        meant: dict[str, str] = {}
        for (verdict, words), name in zip(_VERDICTS.items(), ("", *names[::-1]), strict=True):
            meant |= dict.fromkeys((*words.split(), plain(name)), verdict)
        if label not in meant:
            offered = ", ".join(("1", "2", "tie", *names))
            raise self.wrong(column, f"{value!r:.60} is none of {offered}, or empty")
        return meant[label]

    def scores(self, text: str, numbers: Collection[str]) -> dict[str, float]:
        """People's scores of a text by plain name of the number; ``""``: of the whole text."""
        scores: dict[str, float] = {}
        column = self.column(name for name in _HUMAN_SCORES if name != text)
        value = self.fields[column] if column else None
        if column and value is not None and str(value).strip():
            for line in str(value).strip().splitlines():
                name, colon, number = line.replace("\uff1a", ":").rpartition(":")
                own = plain(name) if colon else ""
                scores[_ENGLISH.get(own, own)] = self._number(column, number)
        for name in numbers:
            for own in (name, f"human{name}"):
                if self.fields.get(own) not in (None, ""):
                    scores[name] = self._number(own, str(self.fields[own]))
        return scores

    def _number(self, column: str, words: str) -> float:
        try:
            value = float(words.strip().replace("\u2212", "-"))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            fault = (
                f"{words.strip()!r:.60} is no number; give people's score, lines of Name: number"
            )
            raise self.wrong(column, f"{fault}, or leave it empty")
        return value
