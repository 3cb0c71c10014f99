"""A cheap judge first, in both orders; a strong judge where the cheap one is not reliable.

The verdict of the cheap judge is accepted if it prefers one side, and the same side in both orders.
Consistency does not prove that a verdict is right. So the strong judge is also asked about a
*calibration slice*: a fixed share of the accepted cases, chosen by the digest of the question (the
same for both orders). Wherever the strong judge was asked, its answer is the cascade's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from botchat.interfaces import Answer, Case, ChatModel, Judge, settings_digest
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import is_tie, mirrored
from botchat.measures.intervals import Items
from botchat.parallel import together
from botchat.records import UNANSWERED, Judgment, Remark

CHEAP, STRONG, CASCADE = "Cheap judge", "Strong judge", "Cascade"
"""Speakers in a cascade's transcript. The text of `CASCADE` is one of the causes below."""

ACCEPTED, CALIBRATION = "accepted", "calibration slice"
DISAGREE, TIE, UNREADABLE, ONE_ORDER = (
    "the orders disagree",
    "tie",
    "no readable verdict",
    "no second order",
)


@dataclass(frozen=True)
class Cascade:
    """Two judges under one name."""

    name: str
    cheap: Judge
    strong: Judge
    _: KW_ONLY
    calibration: float
    """Share of the accepted cases, 0 to 1, that ``strong`` sees too."""

    @property
    def parallel(self) -> int:
        """Cases worth having in flight."""
        return max(self.cheap.parallel, self.strong.parallel)

    @property
    def models(self) -> tuple[ChatModel, ...]:
        """Of both judges."""
        return (*self.cheap.models, *self.strong.models)

    @property
    def digest(self) -> str:
        """Of both judges and the share."""
        return settings_digest(self.cheap.digest, self.strong.digest, self.calibration)

    async def answer(self, case: Case) -> Answer:
        """Ask the cheap judge twice, and the strong one if need be."""
        if case.mirror is None:
            return await self._escalated(case, ONE_ORDER, ())
        swapped = case.mirror()
        answers = await together(self.cheap.answer(shown) for shown in (case, swapped))
        for answer in answers:
            if answer.verdict is None and answer.outcome in UNANSWERED:
                # Not escalated: the next run asks the cheap judge again.
                return _joined(answer, answers)
        cause = _cause(answers[0].verdict, mirrored(answers[1].verdict))
        if cause == ACCEPTED and _drawn(case, swapped) < self.calibration:
            cause = CALIBRATION
        if cause != ACCEPTED:
            return await self._escalated(case, cause, answers)
        accepted = _joined(answers[0], answers, Remark(CASCADE, ACCEPTED))
        return replace(accepted, reason=f"both orders agree: {answers[0].reason}")

    async def _escalated(self, case: Case, cause: str, cheap: Sequence[Answer]) -> Answer:
        answer = await self.strong.answer(case)
        said = (*answer.transcript, _spoken(STRONG, answer))
        joined = _joined(answer, cheap, Remark(CASCADE, cause), *said)
        return replace(
            joined,
            reason=f"escalated ({cause}): {answer.reason}",
            calls=(*joined.calls, *answer.calls),
        )


@dataclass(frozen=True)
class Escalations:
    """What a cascade did with its cases."""

    n: int
    accepted: int
    """Cases in which the cheap judge is consistent, the calibration slice included."""
    causes: Mapping[str, int]
    """Why the others were escalated -> how many."""
    checked: int
    """Questions of the calibration slice, both orders one, with a verdict of the strong judge."""
    agreed: int
    """Of these, the questions on which both judges agree, whichever order was shown."""
    agreed_low: float | None = None
    """Lower end of the interval of agreed / checked, at 95 % and by seed; ``None`` of none."""
    agreed_high: float | None = None
    """Upper end."""

    def __str__(self) -> str:
        """In words."""
        parts = [f"{self.accepted} of {self.n} verdicts are the cheap judge's"]
        parts += [f"{n} went on ({cause})" for cause, n in self.causes.items()]
        if self.agreed_low is not None and self.agreed_high is not None:
            parts.append(
                f"of {self.checked} questions checked the strong judge agreed on {self.agreed} "
                f"(95 %: {100 * self.agreed_low:.0f} to {100 * self.agreed_high:.0f} %)"
            )
        return "; ".join(parts)


def escalations(judgments: Iterable[Judgment]) -> Escalations:
    """Counted from the transcripts of a cascade's judgments."""
    n = 0
    causes: Counter[str] = Counter()
    checked: dict[tuple[str, frozenset[str]], bool] = {}
    for judgment in judgments:
        said = {remark.speaker: remark for remark in judgment.transcript}
        if CASCADE not in said:
            continue
        n += 1
        causes[said[CASCADE].text] += 1
        if said[CASCADE].text == CALIBRATION and said[STRONG].verdict is not None:
            question = judgment.seed_id, frozenset(judgment.contestants)
            agreed = said[STRONG].verdict == said[CHEAP].verdict
            checked[question] = checked.get(question, True) and agreed
    accepted = causes.pop(ACCEPTED, 0) + causes.pop(CALIBRATION, 0)
    ends: tuple[float, float] | tuple[None, None] = None, None
    if checked:
        seeds, seed = np.unique([seed_id for seed_id, _ in checked], return_inverse=True)
        hit = np.array(list(checked.values()))
        ends = Items(len(seeds), seed).share(hit, np.ones_like(hit)).interval
    return Escalations(n, accepted, dict(causes), len(checked), sum(checked.values()), *ends)


def _cause(one: str | None, two: str | None) -> str:
    if one is None or two is None:
        return UNREADABLE
    if one != two:
        return DISAGREE
    return TIE if is_tie(one) else ACCEPTED


def _drawn(case: Case, swapped: Case) -> float:
    """A number in [0, 1) for a question, the same for both orders."""
    return int(settings_digest(sorted((case.digest, swapped.digest))), 16) / 16**8


def _joined(answer: Answer, cheap: Sequence[Answer], *said: Remark) -> Answer:
    """``answer`` with the cheap judge's transcript and calls in front."""
    front = [
        remark
        for one, speaker in zip(cheap, (CHEAP, CHEAP + SWAPPED), strict=False)
        for remark in (*one.transcript, _spoken(speaker, one))
    ]
    calls = tuple(call for one in cheap for call in one.calls)
    return replace(answer, transcript=(*front, *said), calls=calls)


def _spoken(speaker: str, answer: Answer) -> Remark:
    return Remark(speaker, answer.reason, outcome=answer.outcome, verdict=answer.verdict)
