"""A cheap judge first, in both orders; a strong one where the cheap one cannot be relied on.

The cheap judge's verdict is accepted where it names one side, and the same side in both orders. All
else is escalated: the orders disagree, it sees a tie, it cannot be read, or the question has no
second order (UniEval), so that nothing shows whether the cheap judge is steady.

Agreement with itself is no proof of being right. So a *calibration slice*, a fixed share of the
accepted cases, drawn by the digest of the question and the same for both orders, goes to the strong
judge as well; `escalations` tells how often the two agree there. Wherever the strong judge was
asked, its answer is the cascade's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from botchat.interfaces import Answer, Case, Judge, settings_digest
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import is_tie, mirrored
from botchat.parallel import together
from botchat.records import UNANSWERED, Remark

CHEAP, STRONG, CASCADE = "Cheap judge", "Strong judge", "Cascade"
"""Speakers in a cascade's transcript; `CASCADE` says what was decided and why."""

ACCEPTED, CALIBRATION = "accepted", "calibration slice"
DISAGREE, TIE, UNREADABLE, ONE_ORDER = (
    "the orders disagree",
    "tie",
    "no readable verdict",
    "no second order",
)


class Cascade:
    """Two judges behind one name."""

    def __init__(self, name: str, cheap: Judge, strong: Judge, *, calibration: float) -> None:
        """``calibration``: share of the accepted cases, 0 to 1, that ``strong`` sees too."""
        self._name = name
        self._cheap = cheap
        self._strong = strong
        self._calibration = calibration

    @property
    def name(self) -> str:
        """The name its judgments are filed under."""
        return self._name

    @property
    def parallel(self) -> int:
        """Cases worth having in flight."""
        return max(self._cheap.parallel, self._strong.parallel)

    @property
    def digest(self) -> str:
        """Of both judges and the slice."""
        return settings_digest(self._cheap.digest, self._strong.digest, self._calibration)

    async def answer(self, case: Case) -> Answer:
        """Ask the cheap judge twice, and the strong one if need be."""
        if case.mirror is None:
            return await self._escalated(case, ONE_ORDER, ())
        swapped = case.mirror()
        rulings = await together(self._cheap.answer(shown) for shown in (case, swapped))
        unanswered = [r for r in rulings if r.verdict is None and r.outcome in UNANSWERED]
        if unanswered:
            # Not the strong judge's business: the next run asks the cheap one again.
            return _joined(unanswered[0], rulings)
        cause = _cause(rulings[0].verdict, mirrored(rulings[1].verdict))
        if cause == ACCEPTED and _drawn(case, swapped) < self._calibration:
            cause = CALIBRATION
        if cause != ACCEPTED:
            return await self._escalated(case, cause, rulings)
        accepted = _joined(rulings[0], rulings, Remark(CASCADE, ACCEPTED))
        return replace(accepted, reason=f"both orders agree: {rulings[0].reason}")

    async def _escalated(self, case: Case, cause: str, cheap: Sequence[Answer]) -> Answer:
        answer = await self._strong.answer(case)
        turns = (
            Remark(CASCADE, cause),
            *answer.transcript,
            Remark(STRONG, answer.reason, outcome=answer.outcome, verdict=answer.verdict),
        )
        joined = _joined(answer, cheap, *turns)
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
    """Cases in which the cheap judge is steady, the calibration slice included."""
    causes: Mapping[str, int]
    """Why the others went to the strong judge -> how many."""
    checked: int
    """Cases of the calibration slice with a verdict of the strong judge."""
    agreed: int
    """Of these, the ones on which both judges agree."""


def escalations(transcripts: Iterable[Sequence[Remark]]) -> Escalations:
    """The account of a cascade, from the transcripts of its judgments."""
    n = checked = agreed = 0
    causes: Counter[str] = Counter()
    for transcript in transcripts:
        said = {remark.speaker: remark for remark in transcript}
        if CASCADE not in said:
            continue
        n += 1
        causes[said[CASCADE].text] += 1
        if said[CASCADE].text == CALIBRATION and said[STRONG].verdict is not None:
            checked += 1
            agreed += said[STRONG].verdict == said[CHEAP].verdict
    accepted = causes.pop(ACCEPTED, 0) + causes.pop(CALIBRATION, 0)
    return Escalations(n, accepted, dict(causes), checked, agreed)


def _cause(one: str | None, two: str | None) -> str:
    if one is None or two is None:
        return UNREADABLE
    if one != two:
        return DISAGREE
    return TIE if is_tie(one) else ACCEPTED


def _drawn(case: Case, swapped: Case) -> float:
    """A number in [0, 1) for a question, the same whichever order is asked about."""
    return int(settings_digest(sorted((case.digest, swapped.digest))), 16) / 16**8


def _joined(answer: Answer, cheap: Sequence[Answer], *turns: Remark) -> Answer:
    """``answer`` with the cheap judge's part of the transcript and its calls put in front."""
    front = [
        remark
        for r, speaker in zip(cheap, (CHEAP, CHEAP + SWAPPED), strict=False)
        for remark in (
            *r.transcript,
            Remark(speaker, r.reason, outcome=r.outcome, verdict=r.verdict),
        )
    ]
    calls = tuple(call for r in cheap for call in r.calls)
    return replace(answer, transcript=(*front, *turns), calls=calls)
