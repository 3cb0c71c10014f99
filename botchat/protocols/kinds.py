"""Kinds of answer: what a judge may say, how a reply is read, and what a verdict says of dialogues.

A new kind is a class here, a name in `botchat.interfaces.Kind` and a place in `Answer`: the type
checker then names what the class lacks, and every ``match`` that does not know it yet.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Literal, TypeAlias

from botchat.errors import DataError
from botchat.interfaces import Kind
from botchat.interfaces import Report as UseOfReports
from botchat.languages import Language
from botchat.protocols import reports, scores
from botchat.protocols.frame import prompt_frame
from botchat.protocols.scores import Scale
from botchat.protocols.verdicts import (
    UNTOLD,
    ReplyReader,
    choice_reader,
    detection_reader,
    first_ai_index,
)
from botchat.records import UNDECIDED, UNKNOWN_INDEX, Judgment, Names, Utterances, Verdict
from botchat.workspace.criteria import LABELS

# A verdict as the lists of the page have it.
PageCode: TypeAlias = int | list[float | None]


def result_of(lead: float) -> float:
    """Return the result of a contestant from its lead: 1 win, ½ tie, 0 loss; NaN stays."""
    if math.isnan(lead):
        return lead
    if abs(lead) < 1e-9:
        return 0.5
    return float(lead > 0)


class AnswerKind(ABC):
    """All that differs by the kind of a judge's answer; each kind must say what has no default."""

    has_n = False  # whether it can be asked of the first N utterances of one dialogue
    names_ai = False  # whether, asked about AI, a verdict says who or what is AI
    english_only = False
    is_labelled = True  # whether annotators can give it, on the page of `botchat.pipeline.label`
    of_annotators: Set[Verdict] = frozenset()  # what they may say, and judges may not
    # What digests of criteria have in these three places, also where the kind has none.
    labels: Names = LABELS
    chosen_wins: bool = True
    scale: Scale | None = None

    @property
    @abstractmethod
    def name(self) -> Kind:
        """Name in cases, digests and on pages."""

    @property
    def report(self) -> UseOfReports:
        """Use of a report in questions and answers."""
        return "none"

    @abstractmethod
    def reading(self, utterances: Utterances, language: Language) -> ReplyReader:
        """Return how a reply about a dialogue with these utterances, or about two, is read."""

    def code(self, verdict: Verdict | None) -> PageCode:
        """Return a verdict on one dialogue as the lists of the page have it; empty of two."""
        return []

    def result(self, verdict: Verdict | None) -> float | None:
        """Return the result for the contestant shown first: 1 win, ½ tie, 0 loss.

        A lone dialogue wins if it passes. Raises `DataError` as `lead`.
        """
        if verdict is None:
            return None
        return result_of(self.lead(verdict))

    def lead(self, verdict: Verdict) -> float:
        """Return how far the first shown is ahead; raises `DataError` for any other verdict."""
        raise DataError(f"verdict {verdict!r} compares no two dialogues; delete that line")

    def shown(self, utterances: Utterances, language: Language) -> str:
        """Return a dialogue as the prompt has it."""
        return prompt_frame(language).conversation(utterances)

    def check(self, judgment: Judgment) -> None:
        """Raise `DataError` for a verdict that the kind does not offer of this dialogue."""
        self.result(judgment.verdict)


@dataclass(frozen=True)
class Detection(AnswerKind):
    """``"No"``, or the 1-based index of the first AI utterance; ``"Yes"``: without an index."""

    name = "place"
    has_n = True
    names_ai = True
    of_annotators = frozenset({UNDECIDED})

    def reading(self, utterances: Utterances, language: Language) -> ReplyReader:
        """Return how a reply about a dialogue with these utterances is read."""
        return detection_reader(len(utterances), language)

    def lead(self, verdict: Verdict) -> float:
        """Return ½ for a dialogue in which nothing is found, else -½; 0 if that is undecided."""
        index = first_ai_index(verdict)
        if index == UNTOLD:
            return 0.0
        return float(index == 0) - 0.5

    def code(self, verdict: Verdict | None) -> PageCode:
        """Return the index, 0 for ``"No"``, -1 for none to read, -3 for `UNKNOWN_INDEX`."""
        if verdict is None:
            return -1
        if verdict == UNKNOWN_INDEX:
            return -3
        return first_ai_index(verdict)

    def check(self, judgment: Judgment) -> None:
        """Raise `DataError` also for an utterance that was not shown."""
        super().check(judgment)
        place = judgment.verdict or ""
        if place.isdecimal() and int(place) > judgment.shown:
            raise DataError(
                f"verdict {place!r} names an utterance that was not shown, of {judgment.shown}; "
                "delete that line and judge again"
            )


# Choice -> how far the dialogue shown first is named before the other.
_NAMED = {"1": 0.5, "2": -0.5, "both": 0.0, "neither": 0.0}


@dataclass(frozen=True)
class Pairwise(AnswerKind):
    """``"1"``, ``"2"``, ``"both"`` or ``"neither"`` of two dialogues."""

    labels: Names = LABELS  # words of the first, the second, both, neither
    chosen_wins: bool = False  # else the dialogue that is named loses: Arena and GTEval

    name = "choice"
    names_ai = True

    def reading(self, utterances: Utterances, language: Language) -> ReplyReader:
        """Return how a reply about two dialogues is read."""
        return choice_reader(self.labels, language)

    def lead(self, verdict: Verdict) -> float:
        """Return ½, 0 or -½; of Both and Neither 0, a tie (BotChat §3.3)."""
        lead = _NAMED.get(verdict)
        if lead is None:
            raise DataError(
                f"verdict {verdict!r} of a pairwise judgment is none of 1, 2, both, neither; "
                "delete that line and judge again"
            )
        if self.chosen_wins:
            return lead
        return -lead


class Graded(AnswerKind):
    """A kind whose verdicts are numbers; by their sums any two dialogues of a seed compare."""

    @property
    @abstractmethod
    def n_numbers(self) -> int:
        """Numbers of a verdict."""

    def scores(self, verdict: Verdict | None) -> tuple[float | None, ...]:
        """Return the numbers, None for a missing one, none if unreadable.

        Raises `DataError` if the verdict is no score.
        """
        if verdict is None:
            return ()
        return scores.decode_scores(verdict, self.n_numbers)

    def numbers(self, verdict: Verdict | None) -> tuple[float, ...]:
        """Return the numbers, none if any is missing."""
        words = self.scores(verdict)
        numbers = tuple([number for number in words if number is not None])
        if len(numbers) < len(words):
            return ()
        return numbers

    def code(self, verdict: Verdict | None) -> PageCode:
        """Return the numbers, none for unreadable."""
        return [int(n) if n is not None and n.is_integer() else n for n in self.scores(verdict)]

    def check(self, judgment: Judgment) -> None:
        """Raise `DataError` for a verdict that is no score."""
        self.scores(judgment.verdict)


@dataclass(frozen=True)
class Score(Graded):
    """Numbers on a scale, for one text or for each of two."""

    scale: Scale  # the numbers for each text
    n_texts: Literal[1, 2] = 1

    name = "score"

    @property
    def asked(self) -> Scale:
        """The scale of the whole verdict: of a pair every number twice, first dialogue first."""
        if self.n_texts == 1:
            return self.scale
        names = [f"{name} {place}" for place, name in product("12", self.scale.names)]
        return replace(self.scale, names=tuple(names))

    @property
    def n_numbers(self) -> int:
        """Numbers of a verdict."""
        return self.n_texts * len(self.scale.names)

    @property
    def report(self) -> UseOfReports:
        """Points off may be told in a report."""
        if self.scale.points_off:
            return "read"
        return "none"

    def shown(self, utterances: Utterances, language: Language) -> str:
        """Return a dialogue in which nothing can be taken for a score."""
        return scores.neutralise_labels(super().shown(utterances, language), self.asked)

    def reading(self, utterances: Utterances, language: Language) -> ReplyReader:
        """Return how a reply about one text or two is read."""
        read = partial(scores.read_scores, scale=self.asked, language=language)
        return ReplyReader(scores.ScoreVerdicts(self.asked), read)

    def lead(self, verdict: Verdict) -> float:
        """Return how much larger the sum of the first's scores is."""
        numbers = self.numbers(verdict)
        if not numbers:
            raise DataError(f"verdict {verdict!r} lacks a score; delete that line and judge again")
        half = len(numbers) // 2
        return sum(numbers[:half]) - sum(numbers[half:])


@dataclass(frozen=True)
class Report(Graded):
    """Errors with type, place and reason; the verdict is their score: ``"-3"``."""

    name = "report"
    is_labelled = False
    n_numbers = 1
    english_only = True
    report = "asked"

    def shown(self, utterances: Utterances, language: Language) -> str:
        """Return a dialogue with the numbers that errors are named by."""
        return reports.numbered(utterances)

    def reading(self, utterances: Utterances, language: Language) -> ReplyReader:
        """Return how a reply about a dialogue with these utterances is read."""
        read = partial(reports.read_report, utterances=utterances)
        return ReplyReader(reports.choices(len(utterances)), read)


# Every kind there is.
Answer: TypeAlias = Detection | Pairwise | Score | Report
