"""Texts or pairs of answers in the rows of a file, which `botchat bench FILE` judges.

A pair has two columns such as ``answer_1`` and ``answer_2`` (or ``response_a``, ``response_b``), a
question or prompt where there is one, models' names, and the human verdict. A text has a column
such as ``text`` or ``story``, and human scores: a number for the whole text, lines ``Name: number``
(MATEval's), or a column named like the criterion's number. Only letters and digits in names of
columns count; other columns are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

from botchat.errors import DataError, listed
from botchat.protocols.answers import AnswerPair
from botchat.protocols.mateval import OwnText
from botchat.protocols.replies import plain_name

Fields = Mapping[str, object]
"""Plain name of a column -> cell."""

TEXTS = (
    *("text", "story", "output", "response", "answer", "reply", "summary", "document", "essay"),
    *("content", "completion"),
)
"""Columns that hold a text; the first present one counts."""

_ANSWER = re.compile(rf"(?:{'|'.join(TEXTS)})([12ab])")
_QUESTIONS = ("question", "prompt", "instruction", "input", "query", "context")
_IDS = ("id", "index", "item", "textid", "questionid")
_HUMAN_SCORES = ("scorenew", "humanscores", "humanscore", "human", "rating", "score", "label")
_HUMAN_VERDICTS = ("winner", "human", "humanverdict", "label", "preference", "verdict")
_VERDICTS = {
    "tie": "tie tiebothbad bothbad both neither draw equal",
    "2": "2 b second modelb model2 answer2 answerb assistant2",
    "1": "1 a first modela model1 answer1 answera assistant1",
}


def paragraphs(text: str) -> list[OwnText]:
    """Return the texts of a plain file, which blank lines separate."""
    parts = [part.strip() for part in re.split(r"\n[ \t\r]*\n", text) if part.strip()]
    return [OwnText(str(n), part) for n, part in enumerate(parts, 1)]


def items(
    rows: Iterable[tuple[str, Fields]],
    where: str,
    numbers: Collection[str] = (),
    texts: Sequence[str] = TEXTS,
) -> list[OwnText] | list[AnswerPair]:
    """Return texts or pairs, as the first of ``rows`` (place, cells by plain name) has it.

    ``numbers``: plain names of the numbers whose columns are human scores. ``texts``: plain names
    of columns that hold a text. Raises `DataError`, with place and column: a row that lacks one, a
    repeated id, a score or verdict that is none, or no rows.
    """
    records = list(starmap(_Row, rows))
    if not records:
        raise DataError(f"{where}: no texts; give one a row, in a column named text")
    first = records[0]
    sides = {}
    for name in first.fields:
        match = _ANSWER.fullmatch(name)
        if match:
            sides[match[1]] = name
    first_answer = sides.get("1", sides.get("a", ""))
    second_answer = sides.get("2", sides.get("b", ""))
    answers = [name for name in (first_answer, second_answer) if name]
    text = next((name for name in texts if name in first.fields), "")
    if len(answers) < 2 and not text:
        raise DataError(
            f"{first.place}: no text (columns: {', '.join(first.fields)[:200] or 'none'}); "
            f"expected one of {listed(TEXTS)}, or of a pair answer_1 and answer_2"
        )
    by_id: dict[str, _Row] = {}
    for number, row in enumerate(records, 1):
        id_ = row.cell(_IDS)[1] or str(number)
        other = by_id.setdefault(id_, row)
        if other is not row:
            raise row.error("id", f"{id_!r:.60} is taken by {other.place}; give each its own")
    if len(answers) == 2:
        return [row.pair(id_, answers) for id_, row in by_id.items()]
    return [OwnText(id_, row.words(text), row.scores(text, numbers)) for id_, row in by_id.items()]


@dataclass(frozen=True)
class _Row:
    """A row of a file, and where it is."""

    place: str
    fields: Fields

    def cell(self, names: Iterable[str]) -> tuple[str, str]:
        """Return (column, text) of the first of some cells that has something in it."""
        cells = ((name, self.fields.get(name)) for name in names)
        full = ((name, str(cell).strip()) for name, cell in cells if cell not in (None, ""))
        return next(full, ("", ""))

    def error(self, column: str, fault: str) -> DataError:
        """Return the error that a cell is not what is expected."""
        return DataError(f"{self.place}: column {column}: {fault}")

    def words(self, name: str) -> str:
        """Return the text in a cell."""
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            fault = "it is missing"
            if name in self.fields:
                fault = f"{value!r:.60} is not text"
            raise self.error(name, f"{fault}; every row needs one as the first has it")
        return value.strip()

    def pair(self, id_: str, sides: Sequence[str]) -> AnswerPair:
        """Return two answers, in the columns ``sides``, with the human verdict if it is known."""
        first, second = (self.cell((f"model{s[-1]}", f"generator{s[-1]}"))[1] or s for s in sides)
        if first == second:
            fault = f"both answers are by {first!r:.60}; name two different models"
            raise DataError(f"{self.place}: {fault}")
        answers = self.words(sides[0]), self.words(sides[1])
        column, label = self.cell(_HUMAN_VERDICTS)
        verdicts = {word: verdict for verdict, words in _VERDICTS.items() for word in words.split()}
        verdicts |= {plain_name(second): "2", plain_name(first): "1"}
        if label and plain_name(label) not in verdicts:
            fault = f"{label!r:.60} is none of 1, 2, tie, {first}, {second}, or empty"
            raise self.error(column, fault)
        human = None
        if label:
            human = verdicts[plain_name(label)]
        return AnswerPair(id_, self.cell(_QUESTIONS)[1], (first, second), answers, human)

    def scores(self, text: str, numbers: Collection[str]) -> dict[str, float]:
        """Return human scores by plain name of the number; ``""``: of the whole text."""
        scores: dict[str, float] = {}
        column, lines = self.cell(name for name in _HUMAN_SCORES if name != text)
        for line in lines.splitlines():
            name, _, number = line.replace("\uff1a", ":").rpartition(":")
            scores[plain_name(name)] = self._number(column, number)
        for name in numbers:
            own, number = self.cell((name, f"human{name}"))
            if number:
                scores[name] = self._number(own, number)
        return scores

    def _number(self, column: str, words: str) -> float:
        try:
            value = float(words.strip().replace("\u2212", "-"))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            fault = f"{words.strip()!r:.60} is no number; give the human score"
            raise self.error(column, f"{fault}, lines of Name: number, or leave it empty")
        return value
