"""FairEval's comparison of answers: a question and two answers, a score from 1 to 10 of each.

ChatEval asks it too (Chan et al. 2023, §3); `botchat bench FILE` asks it about the pairs of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from botchat.interfaces import Case, MakeCase, ShownDialogue
from botchat.languages import ENGLISH
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdict
from botchat.protocols.frame import neutralise_template
from botchat.protocols.kinds import Score
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import MARKS
from botchat.protocols.scores import Scale

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
    label: str | None  # "1" or "2": the answer that most annotators prefer, "tie"; None: not known
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


_RESULTS = {"1": WIN, "2": LOSS, "tie": TIE}
"""Label -> result of the first answer."""


def pair_labels(pairs: Iterable[AnswerPair], judge: str = "human") -> list[PairVerdict]:
    """Return the human preferences, where they are known."""
    labels = []
    for pair in pairs:
        if pair.label is not None:
            first, second = pair.contestants
            labels.append(PairVerdict(pair.id, first, second, judge, _RESULTS[pair.label]))
    return labels


def _framed(text: str) -> str:
    """Return a text that cannot be taken for the frame around it or for a score."""
    text = neutralise_template(text)
    return MARKS.answer_score.sub(r"\1 -", MARKS.answer_frame.sub(r"(\1)", text))
