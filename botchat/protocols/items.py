"""Texts or pairs of answers in the rows of a file, which `botchat bench FILE` judges.

A pair is asked about as in FairEval, which ChatEval asks too (Chan et al. 2023, §3): a question and
two answers, a score from 1 to 10 of each.

A pair has two columns such as ``answer_1`` and ``answer_2`` (or ``response_a``, ``response_b``), a
question or prompt and its category where there are any, models' names, and the human verdict. A
text has a column such as ``text`` or ``story``, and human scores: a number for the whole text,
lines ``Name: number`` (MATEval's), or a column named like the criterion's number. Only letters and
digits in names of columns count; other columns are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping
from functools import partial
from itertools import starmap
from typing import NamedTuple

from botchat.errors import DataError, listed
from botchat.interfaces import Case, MakeCase, ShownDialogue
from botchat.languages import ENGLISH
from botchat.metrics.verdicts import LOSS, WIN, PairVerdict
from botchat.protocols.frame import neutralise_template
from botchat.protocols.kinds import Score
from botchat.protocols.mateval import OwnText
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import MARKS, plain_name
from botchat.protocols.scores import Scale
from botchat.records import Texts

ANSWERS = Protocol(
    "answers",
    "FairEval",
    Score(Scale(1, 10, ("Assistant",)), n_texts=2),
    shows="pair",
    question="a question and two answers, both orders: a score of each",
    prompts=("answers",),
)


class AnswerPair(NamedTuple):
    """A question, two answers and the human label."""

    id: str
    question: str
    contestants: tuple[str, str]
    answers: tuple[str, str]
    label: float = math.nan  # result of the first by most annotators; NaN: not known
    category: str = ""  # of the question


def pair_cases(pairs: Iterable[AnswerPair]) -> Iterator[MakeCase]:
    """Return a maker of a case for every pair, in both orders."""
    for pair in pairs:
        yield partial(pair_case, pair)
        yield partial(pair_case, pair, True)


def pair_case(pair: AnswerPair, swapped: bool = False) -> Case:
    """Make the question how good two answers are; ``swapped`` shows the second one first."""
    order = (1, 0) if swapped else (0, 1)
    first, second = (_framed(pair.answers[i]) for i in order)
    return ANSWERS.make_case(
        pair.id,
        tuple(ShownDialogue(pair.contestants[i], (pair.question, pair.answers[i])) for i in order),
        ENGLISH.fill("answers", question=_framed(pair.question), answer_1=first, answer_2=second),
        partial(pair_case, pair, not swapped),
    )


def pair_labels(pairs: Iterable[AnswerPair], judge: str = "human") -> list[PairVerdict]:
    """Return the human preferences, where they are known."""
    labels = []
    for pair in pairs:
        if not math.isnan(pair.label):
            first, second = pair.contestants
            labels.append(PairVerdict(pair.id, first, second, judge, pair.label))
    return labels


def _framed(text: str) -> str:
    """Return a text that cannot be taken for the frame around it or for a score."""
    text = neutralise_template(text)
    return MARKS.answer_score.sub(r"\1 -", MARKS.answer_frame.sub(r"(\1)", text))


Fields = Mapping[str, object]
"""Plain name of a column -> cell."""

LabelWords = Mapping[str, float]
"""Plain word -> the result of the first answer that it means; NaN: it is unreadable."""


def plain_label(label: str) -> str:
    """Return `plain_name` of a label; signs as in ``A>>B`` stay, for they tell who wins."""
    if re.search("[<>=]", label):
        return "".join(label.casefold().split())
    return plain_name(label)


def read_label(label: str, models: Texts, words: LabelWords, place: str) -> float:
    """Return the result of a label: one of two models, by its exact name first, or a word.

    Raises `DataError`, with the place, if it is neither or may be both models.
    """
    if label in models:
        return (WIN, LOSS)[models.index(label)]
    plain = plain_label(label)
    plain_models = [plain_label(model) for model in models]
    if plain_models.count(plain) > 1:
        raise DataError(f"{place}: {label!r:.60} may be both {listed(models)}; write the exact one")
    if plain in plain_models:
        return (WIN, LOSS)[plain_models.index(plain)]
    word = MARKS.side.sub(r"\1", plain_label(label.removesuffix(".0")))
    if word not in words:
        raise DataError(f"{place}: {label!r:.60} is neither {listed(models)} nor a word as tie")
    return words[word]


def paragraphs(text: str) -> list[OwnText]:
    """Return the texts of a plain file, which blank lines separate."""
    parts = [part.strip() for part in re.split(r"\n[ \t\r]*\n", text) if part.strip()]
    return [OwnText(str(n), part) for n, part in enumerate(parts, 1)]


def items(
    rows: Iterable[tuple[str, Fields]],
    where: str,
    words: LabelWords,
    numbers: Collection[str] = (),
) -> list[OwnText] | list[AnswerPair]:
    """Return texts or pairs, as the first of ``rows`` (place, cells by plain name) has it.

    ``numbers``: plain names of the numbers whose columns are human scores. ``words``: of human
    verdicts. Raises `DataError`, with place and column: a row that lacks a text, a repeated id, a
    score or verdict that is none, or no rows.
    """
    records = list(starmap(_Row, rows))
    if not records:
        raise DataError(f"{where}: no texts; give one a row, in a column named text")
    first = records[0]
    answers = first.answers()
    text = next((name for name in MARKS.columns.texts if name in first.fields), "")
    if not answers and not text:
        raise DataError(
            f"{first.place}: no text (columns: {', '.join(first.fields)[:200] or 'none'}); "
            f"expected one of {listed(MARKS.columns.texts)}, or of a pair answer_1 and answer_2"
        )
    rows_by_id = _by_id(records)
    if answers:
        return [row.pair(id_, answers, words) for id_, row in rows_by_id]
    return [OwnText(id_, row.words(text), row.scores(text, numbers)) for id_, row in rows_by_id]


def _by_id(records: Iterable[_Row]) -> ItemsView[str, _Row]:
    """Return rows with their ids, by default their numbers."""
    by_id: dict[str, _Row] = {}
    for number, row in enumerate(records, 1):
        id_ = row.cell(MARKS.columns.ids)[1] or str(number)
        other = by_id.setdefault(id_, row)
        if other is not row:
            raise row.error("id", f"{id_!r:.60} is taken by {other.place}; give each its own")
    return by_id.items()


class _Row(NamedTuple):
    """A row of a file, and where it is."""

    place: str
    fields: Fields

    def answers(self) -> list[str]:
        """Return the columns of both answers, none unless there are two."""
        sides = {}
        for name in self.fields:
            match = MARKS.answer_column.fullmatch(name)
            if match:
                sides[match[1]] = name
        first = sides.get("1", sides.get("a"))
        second = sides.get("2", sides.get("b"))
        if first and second:
            return [first, second]
        return []

    def cell(self, names: Iterable[str]) -> tuple[str, str]:
        """Return (column, text) of the first of some cells that has something in it."""
        for name in names:
            cell = self.fields.get(name)
            if cell not in (None, ""):
                return name, str(cell).strip()
        return "", ""

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

    def pair(self, id_: str, sides: Texts, words: LabelWords) -> AnswerPair:
        """Return two answers, in the columns ``sides``, with the human verdict if it is known."""
        first, second = (self.cell((f"model{s[-1]}", f"generator{s[-1]}"))[1] or s for s in sides)
        if first == second:
            raise DataError(
                f"{self.place}: both answers are by {first!r:.60}; name two different models"
            )
        answers = self.words(sides[0]), self.words(sides[1])
        column, label = self.cell(MARKS.columns.human_verdicts)
        human = math.nan
        if label:
            place = f"{self.place}: column {column}"
            human = read_label(label, (first, second), words, place)
        question = self.cell(MARKS.columns.questions)[1]
        category = self.cell(["category"])[1]
        return AnswerPair(id_, question, (first, second), answers, human, category)

    def scores(self, text: str, numbers: Collection[str]) -> dict[str, float]:
        """Return human scores by plain name of the number; ``""``: of the whole text."""
        scores = {}
        column, lines = self.cell(name for name in MARKS.columns.human_scores if name != text)
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
            raise self.error(
                column,
                f"{words.strip()!r:.60} is no number; give the human score, lines of Name: "
                "number, or leave it empty",
            )
        return value
