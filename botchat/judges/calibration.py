"""When a cascade may believe its cheap judge: a threshold with a guarantee.

Of the cheap judge's verdicts that are accepted, at most a share ``alpha`` disagrees with the strong
judge, with confidence 1 - ``delta``. On a *calibration slice*, one case of each of some ChatSEEDs
drawn at random, both judges are asked: so the cases are independent, however alike the verdicts of
one ChatSEED are. Thresholds are tried from strict to loose, each by the exact binomial test that
more than ``alpha`` disagree, and the first that is not passed ends it. Then the chance that any
threshold is passed wrongly is at most ``delta`` (fixed-sequence testing: Bauer 1991; Angelopoulos
et al. 2021, *Learn then Test*; Jung, Brahman & Choi 2024, *Trust or Escalate*). Which thresholds
are tried is decided by verdicts of other ChatSEEDs, so that the slice has no say in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from botchat.interfaces import settings_digest
from botchat.workspace.panels import fewest

STEPS = 5
"""Thresholds that are tried, at most."""

ENOUGH = 1.5
"""The strictest one is to accept as many cases of the slice, times as many as can show it."""


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
    whole: bool = True
    """Whether both judges have answered all of them; if not, nothing is decided as yet."""

    def __str__(self) -> str:
        """In words."""
        promise = (
            f"at most {100 * self.alpha:g} % of the accepted verdicts disagree with the strong "
            f"judge, with {100 * (1 - self.delta):g} % confidence"
        )
        if not self.whole:
            return "the calibration is not complete, so nothing was decided; run it again"
        seen = f"{self.disagreed} of {self.accepted} disagree in the slice of {self.seeds}"
        if self.threshold is None:
            return f"no threshold shows that {promise} ({seen}): everything went to it"
        return f"{promise}, from a sureness of {self.threshold:.3f} on ({seen})"

    @property
    def signed(self) -> str:
        """The part of a signature."""
        threshold = "none" if self.threshold is None else f"{self.threshold!r}"
        return (
            f"alpha={self.alpha!r},delta={self.delta!r},threshold={threshold},"
            f"slice={self.slice_digest}"
        )


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
    first = min(1.0, ENOUGH * fewest(guarantee.alpha, guarantee.delta) / expected)
    shares = [first + (1 - first) * step / (STEPS - 1) for step in range(STEPS)]
    return list(dict.fromkeys(sure[math.ceil(share * len(sure)) - 1] for share in shares))


def loosest(
    tried: Sequence[float], seen: Sequence[tuple[float, bool]], guarantee: Guarantee
) -> tuple[float | None, int, int]:
    """The last threshold passed, with the cases accepted at it and how many of these disagree.

    ``seen``: of each case of the slice that may be accepted, how sure the cheap judge is and
    whether the strong one disagrees.
    """
    found: tuple[float | None, int, int] | None = None
    for threshold in tried:
        apart = [disagrees for sure, disagrees in seen if sure >= threshold]
        n, k = len(apart), sum(apart)
        passed = so_few(k, n, guarantee.alpha) <= guarantee.delta
        if passed or found is None:
            found = threshold if passed else None, n, k
        if not passed:
            break
    return found or (None, 0, 0)


def so_few(k: int, n: int, share: float) -> float:
    """Chance of at most ``k`` of ``n`` independent cases that each have the chance ``share``."""
    return math.fsum(
        math.comb(n, i) * math.exp(i * math.log(share) + (n - i) * math.log1p(-share))
        for i in range(k + 1)
    )
