"""A cheap judge first, in both orders; a strong judge where the cheap one is not reliable.

The verdict of the cheap judge is accepted if it prefers one side, and the same side in both orders.
Consistency does not prove that a verdict is right. So the strong judge is also asked about a
*calibration slice*: a fixed share of the accepted cases, chosen by the digest of the question (the
same for both orders). Wherever the strong judge was asked, its answer is the cascade's.

With a *guarantee* a verdict is accepted if the cheap judge is also sure enough of it (`sureness`);
questions without a second order are then asked once and accepted likewise. Of the accepted verdicts
at most a share ``alpha`` disagrees with the strong judge, with confidence 1 - ``delta``: both are
asked one case of each of some ChatSEEDs drawn at random, so the cases are independent. Thresholds,
chosen by verdicts of other ChatSEEDs, are tried from strict to loose, each by the exact binomial
test that more than ``alpha`` disagree, until one is not passed. The chance that any is passed
wrongly is then at most ``delta`` (fixed-sequence testing: Bauer 1991; Angelopoulos et al. 2021,
*Learn then Test*; Jung, Brahman & Choi 2024, *Trust or Escalate*). That holds of all verdicts
together: a contestant of whom more than ``alpha`` of the accepted cases of the slice disagree is
refused, and all of its cases go to the strong judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from statistics import fmean
from typing import TypeAlias

from botchat.errors import ConfigError
from botchat.interfaces import Answer, Case, ChatModel, Judge, Row, settings_digest
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import is_tie, mirrored, opening_votes
from botchat.measures.intervals import share
from botchat.parallel import together
from botchat.records import UNANSWERED, Judgment, Remark
from botchat.workspace.panels import fewest

CHEAP, STRONG, CASCADE = "Cheap judge", "Strong judge", "Cascade"
"""Speakers in a cascade's transcript. The text of `CASCADE` is one of the causes below."""

ACCEPTED, CALIBRATION = "accepted", "calibration slice"
DISAGREE, TIE, UNREADABLE, ONE_ORDER, UNSURE, REFUSED = (
    "the orders disagree",
    "tie",
    "no readable verdict",
    "no second order",
    "not sure enough",
    "a contestant on which the judges disagree",
)
DRAWN = "drawn to calibrate"
"""Begins the cause of a case of a guarantee's slice; any other cause it has comes after it."""

MakeCase: TypeAlias = Callable[[], Case]
Work: TypeAlias = Callable[
    [Sequence[MakeCase], Callable[[MakeCase], Awaitable[None]]], Awaitable[None]
]

STEPS = 5
"""Thresholds that are tried, at most."""
ENOUGH, LEAST_PART = 1.5, 0.5
"""The strictest one is to accept as many cases of the slice, times as many as can show it, and so
large a part of the verdicts: of few, a single one that disagrees ends it."""


@dataclass(frozen=True)
class Guarantee:
    """What is asked for."""

    alpha: float
    """Share of the accepted verdicts that may disagree with the strong judge, above 0, below 1."""
    delta: float
    """Chance that it is more, above 0, below 1."""
    seeds: int
    """ChatSEEDs that are drawn, a case of each."""


@dataclass(frozen=True)
class Calibrated:
    """What a calibration found."""

    alpha: float
    delta: float
    threshold: float | None
    """Verdicts at least so sure are accepted; ``None``: none are."""
    accepted: int
    """Cases of the slice that are accepted at that threshold; at the strictest if there is none."""
    disagreed: int
    """Of these, those of which the strong judge says something else."""
    seeds: int
    """ChatSEEDs of the slice."""
    slice_digest: str
    """8 hex digits of the drawn cases."""
    contestants: tuple[Row, ...] = field(default=(), compare=False)
    """As of `by_contestant`."""
    whole: bool = True
    """Whether both judges have answered all of them; if not, nothing is decided as yet."""

    @property
    def refused(self) -> list[str]:
        """Contestants whose cases all go to the strong judge."""
        return [row["contestant"] for row in self.contestants if row["refused"]]

    def __str__(self) -> str:
        """In words."""
        if not self.whole:
            return "the calibration is not complete, so nothing was decided; run it again"
        promise = (
            f"at most {100 * self.alpha:g} % of the accepted verdicts disagree with the strong "
            f"judge, with {100 * (1 - self.delta):g} % confidence"
        )
        seen = f"{self.disagreed} of {self.accepted} disagree in the slice of {self.seeds}"
        if self.threshold is None:
            return f"no threshold shows that {promise} ({seen}): everything went to it"
        told = "".join(
            "; {contestant} is refused, its cases all go to it ({disagreed} of {accepted} disagree)"
            .format(**row) for row in self.contestants if row["refused"]
        )  # fmt: skip
        return f"{promise}, from a sureness of {self.threshold:.3f} on ({seen}){told}"

    @property
    def signed(self) -> str:
        """The part of a signature."""
        threshold = "none" if self.threshold is None else repr(self.threshold)
        refused = f",refused={settings_digest(self.refused)}" if self.refused else ""
        found = f"alpha={self.alpha!r},delta={self.delta!r},threshold={threshold}"
        return f"{found},slice={self.slice_digest}{refused}"


def draw(cases: Iterable[tuple[str, str]], n: int) -> list[str]:
    """Digests of ``n`` cases of different seeds, of (seed id, case digest); fewer if there are.

    At random and always the same. Seeds are gone through in the order of a digest, and each gives
    one of as many places as the greatest seed has cases; an empty place gives none. So every case
    has the same chance, also where seeds have unequal numbers of cases.
    """
    by_seed: dict[str, list[str]] = {}
    for seed, case in cases:
        by_seed.setdefault(seed, []).append(case)
    most = max(map(len, by_seed.values()), default=0)
    found: list[str] = []
    for number, seed in sorted((settings_digest("calibration", seed), seed) for seed in by_seed):
        place = int(settings_digest(number, seed), 16) % most
        if len(found) < n and place < len(by_seed[seed]):
            found.append(sorted(by_seed[seed])[place])
    return found


def strict_to_loose(outside: Sequence[float | None], guarantee: Guarantee) -> list[float]:
    """Thresholds to be tried, in order.

    ``outside``: how sure the cheap judge is of each question of other seeds; ``None``: it is not to
    be believed whatever the threshold. The strictest lets the slice show what is asked for.
    """
    sure = sorted((one for one in outside if one is not None), reverse=True)
    if not sure:
        return [0.0]
    expected = guarantee.seeds * len(sure) / len(outside)
    first = min(1.0, max(LEAST_PART, ENOUGH * fewest(guarantee.alpha, guarantee.delta) / expected))
    shares = [first + (1 - first) * step / (STEPS - 1) for step in range(STEPS)]
    return list(dict.fromkeys(sure[math.ceil(share * len(sure)) - 1] for share in shares))


def loosest(
    tried: Sequence[float], seen: Sequence[tuple[float, bool]], guarantee: Guarantee
) -> tuple[float | None, int, int]:
    """The last threshold passed, with the cases accepted at it and how many of these disagree.

    ``seen``: of each case of the slice that may be accepted, how sure the cheap judge is and
    whether the strong one disagrees.
    """
    found: tuple[float | None, int, int] = (None, 0, 0)
    for number, threshold in enumerate(tried):
        apart = [disagrees for sure, disagrees in seen if sure >= threshold]
        if so_few(sum(apart), len(apart), guarantee.alpha) > guarantee.delta:
            return found if number else (None, len(apart), sum(apart))
        found = threshold, len(apart), sum(apart)
    return found


Seen: TypeAlias = tuple[float, bool, tuple[str, ...]]
"""Of a case of the slice: how sure the cheap judge is, whether the strong one disagrees, of whom it
is."""


def by_contestant(seen: Iterable[Seen], threshold: float | None, alpha: float) -> tuple[Row, ...]:
    """Cases of the slice ``accepted`` at the threshold and ``disagreed``, a row a contestant.

    ``refused``: more than ``alpha`` of them disagree.
    """
    apart: dict[str, list[bool]] = {}
    for sure, disagrees, names in seen if threshold is not None else ():
        for name in names:
            apart.setdefault(name, []).extend([disagrees] if sure >= (threshold or 0.0) else [])
    return tuple(
        {
            "contestant": name,
            "accepted": len(apart[name]),
            "disagreed": sum(apart[name]),
            "refused": sum(apart[name]) > alpha * len(apart[name]),
        }
        for name in sorted(apart)
    )


def so_few(k: int, n: int, share: float) -> float:
    """Chance of at most ``k`` of ``n`` independent cases that each have the chance ``share``."""
    return math.fsum(
        math.comb(n, i) * math.exp(i * math.log(share) + (n - i) * math.log1p(-share))
        for i in range(k + 1)
    )


@dataclass(frozen=True)
class Cascade:
    """Two judges under one name."""

    name: str
    cheap: Judge
    strong: Judge
    _: KW_ONLY
    calibration: float = 0.0
    """Share of the accepted cases, 0 to 1, that ``strong`` sees too."""
    guarantee: Guarantee | None = None
    """In place of that share; `calibrate` keeps it."""
    calibrated: Calibrated | None = None
    drawn: frozenset[str] = frozenset()
    """Digests of the cases on which it was calibrated."""

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
        """Of both judges and the share, or what was calibrated."""
        share: float | str | None = self.calibration
        if self.guarantee is not None:
            share = None if self.calibrated is None else self.calibrated.signed
        return settings_digest(self.cheap.digest, self.strong.digest, share)

    async def calibrate(self, make: Sequence[MakeCase], work: Work) -> Cascade:
        """The cascade with the threshold that keeps its guarantee on these cases.

        ``work(makers, do)`` does each, side by side. Raises `ConfigError`: fewer seeds than asked.
        """
        if (wanted := self.guarantee) is None:
            return self
        known = [(case.seed_id, case.contestants, case.digest) for case in (one() for one in make)]
        drawn = frozenset(draw(((seed, digest) for seed, _, digest in known), wanted.seeds))
        if len(drawn) < wanted.seeds:
            raise ConfigError(
                f"calibration_seeds = {wanted.seeds} of {self.name}: a case of {len(drawn)} "
                "ChatSEEDs can be drawn; give fewer, or calibration instead of alpha"
            )
        inside = {seed for seed, _, digest in known if digest in drawn}
        asked: dict[object, MakeCase] = {}
        for one, (seed, contestants, digest) in zip(make, known, strict=True):
            if digest in drawn:
                asked[digest] = one
            elif seed not in inside:
                asked.setdefault((seed, frozenset(contestants)), one)
        outside: list[float | None] = []
        seen: dict[str, Seen | None] = {}

        async def ask(one: MakeCase) -> None:
            case = one()
            answers = await self._cheap_answers(case)
            sure = sureness(answers)
            if case.digest not in drawn:
                outside.append(sure)
            elif sure is not None:
                strong = await self.strong.answer(case)
                if not _unanswered(strong):
                    seen[case.digest] = sure, strong.verdict != answers[0].verdict, case.contestants
            elif not any(answer.outcome in UNANSWERED for answer in answers):
                seen[case.digest] = None

        await work(list(asked.values()), ask)
        usable = [one for one in seen.values() if one is not None]
        whole = len(seen) == len(drawn)
        found: tuple[float | None, int, int] = (None, 0, 0)
        if whole:
            found = loosest(strict_to_loose(outside, wanted), [one[:2] for one in usable], wanted)
        calibrated = Calibrated(
            wanted.alpha,
            wanted.delta,
            *found,
            seeds=len(drawn),
            slice_digest=settings_digest(sorted(drawn)),
            contestants=by_contestant(usable, found[0], wanted.alpha),
            whole=whole,
        )
        return replace(self, calibrated=calibrated, drawn=drawn)

    async def answer(self, case: Case) -> Answer:
        """Ask the cheap judge, in both orders if there are two, and the strong one if need be."""
        if case.mirror is None and self.guarantee is None:
            return await self._escalated(case, ONE_ORDER, ())
        answers = await self._cheap_answers(case)
        if silent := [answer for answer in answers if _unanswered(answer)]:
            # Not escalated: the next run asks the cheap judge again.
            return _joined(silent[0], answers)
        cause, found = _cause(answers), self.calibrated
        if self.guarantee is None:
            swapped = case.mirror() if case.mirror else case
            if cause == ACCEPTED and _drawn(case, swapped) < self.calibration:
                cause = CALIBRATION
        elif case.digest in self.drawn:
            cause = DRAWN if cause == ACCEPTED else f"{DRAWN}, {cause}"
        elif found is None or not found.whole:
            return _joined(Answer(None, "not calibrated yet", outcome="transport"), answers)
        elif cause == ACCEPTED:
            if found.threshold is None or (sureness(answers) or 0.0) < found.threshold:
                cause = UNSURE
            elif not set(found.refused).isdisjoint(case.contestants):
                cause = REFUSED
        if cause != ACCEPTED:
            return await self._escalated(case, cause, answers)
        accepted = _joined(answers[0], answers, Remark(CASCADE, ACCEPTED))
        told = "both orders agree: " if len(answers) > 1 else ""
        return replace(accepted, reason=f"{told}{answers[0].reason}")

    async def _cheap_answers(self, case: Case) -> list[Answer]:
        """In the order shown, and in the other one if there is."""
        shown = [case] if case.mirror is None else [case, case.mirror()]
        return await together(self.cheap.answer(one) for one in shown)

    async def _escalated(self, case: Case, cause: str, cheap: Sequence[Answer]) -> Answer:
        answer = await self.strong.answer(case)
        said = (*answer.transcript, _spoken(STRONG, answer))
        joined = _joined(answer, cheap, Remark(CASCADE, cause), *said)
        reason = f"escalated ({cause}): {answer.reason}"
        return replace(joined, reason=reason, calls=(*joined.calls, *answer.calls))


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
        if said[CASCADE].text in (CALIBRATION, DRAWN) and said[STRONG].verdict is not None:
            question = judgment.seed_id, frozenset(judgment.contestants)
            agreed = said[STRONG].verdict == said[CHEAP].verdict
            checked[question] = checked.get(question, True) and agreed
    accepted = sum(causes.pop(cause, 0) for cause in (ACCEPTED, CALIBRATION, DRAWN))
    right = share(list(checked.values()), [seed_id for seed_id, _ in checked], "right")
    ends = right["right_low"], right["right_high"]
    return Escalations(n, accepted, dict(causes), len(checked), sum(checked.values()), *ends)


def outside_slice(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Those of ChatSEEDs on which no guarantee's threshold was chosen: all that may judge it."""
    inside = {
        judgment.seed_id
        for judgment in judgments
        for said in judgment.transcript
        if said.speaker == CASCADE and said.text.startswith(DRAWN)
    }
    return [judgment for judgment in judgments if judgment.seed_id not in inside]


def sureness(answers: Sequence[Answer]) -> float | None:
    """How sure a judge is of its verdict in the orders asked; ``None``: it has none to accept.

    The mean over the orders of the probability of its words where that is known, else of the share
    of its opening votes that say so.
    """
    if _cause(answers) != ACCEPTED:
        return None

    def of_one(answer: Answer) -> float:
        if answer.confidence is not None:
            return answer.confidence
        votes = [vote == answer.verdict for vote in opening_votes(answer.transcript)]
        return fmean(votes) if votes else 1.0

    return fmean(map(of_one, answers))


def _cause(answers: Sequence[Answer]) -> str:
    """Why the answers to a question, in the order shown and the other, are not accepted, if so."""
    first = answers[0].verdict
    said = [first, *(mirrored(one.verdict) for one in answers[1:])]
    if first is None or None in said:
        return UNREADABLE
    if set(said) != {first}:
        return DISAGREE
    return TIE if is_tie(first) else ACCEPTED


def _unanswered(answer: Answer) -> bool:
    return answer.verdict is None and answer.outcome in UNANSWERED


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
