"""Has a judge changed? Anchor cases are asked again on other days and held against its verdicts.

On every day the same cases differ from their first verdicts with the same mean chance, which is not
known, as long as the judge is the same. Against that stands that it rose on some day: an e-value of
universal inference (Wasserman, Ramdas & Balakrishnan 2020), the probability of all days by a
mixture over the day of the change (weight 1 / (t (t + 1))) and Jeffreys' prior on the chance before
and after, over the greatest one by a single chance. A judge that never changes reaches `ALARM` with
a chance below 1 / `ALARM`, however often one looks, and also where cases differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ALARM = 20.0
"""1 / .05."""


@dataclass(frozen=True)
class Drift:
    """What anchors say of a judge."""

    days: int
    n: int
    """Anchors asked again, on all days together."""
    flips: int
    """Those with another verdict than the first."""
    e: float
    """The greatest e-value so far: evidence that it changed; 1 is none."""
    since: str
    """The day from which it changed most likely, where it did so at all; else empty."""
    before: float
    after: float
    """Share of flips before and from that day on."""

    @property
    def alarm(self) -> bool:
        """Whether the judge has changed."""
        return self.e >= ALARM

    def __str__(self) -> str:
        """In words."""
        asked = f"anchors asked again on {self.days} {'day' if self.days == 1 else 'days'}"
        if self.alarm:
            return (
                f"{asked}: the judge has changed about {self.since} (e = {self.e:.3g}): "
                f"{100 * self.before:.1f} % differed from the first verdicts, since then "
                f"{100 * self.after:.1f} %; verdicts from before and after do not compare"
            )
        return (
            f"{asked}: {self.flips} of {self.n} differ from the first verdicts, no sign that the "
            f"judge has changed (e = {self.e:.1f}, {ALARM:.0f} is an alarm)"
        )


def drift(days: Sequence[tuple[str, int, int]]) -> Drift:
    """``days``: in order, each with the flips among the anchors that were asked again on it."""
    flips, asked = [0], [0]
    for _, flipped, n in days:
        flips.append(flips[-1] + flipped)
        asked.append(asked[-1] + n)
    greatest, since = 0.0, 0
    for now in range(1, len(flips)):
        whole = _mixture(flips[now], asked[now])
        terms = [whole - math.log(now)]
        for at in range(1, now):
            after = _mixture(flips[now] - flips[at], asked[now] - asked[at])
            terms.append(_mixture(flips[at], asked[at]) + after - math.log(at * (at + 1)))
        likeliest = max(range(1, now), key=terms.__getitem__, default=0)
        total = max(terms) + math.log(math.fsum(math.exp(one - max(terms)) for one in terms))
        e = math.exp(min(700.0, total - _greatest(flips[now], asked[now])))
        rises = flips[likeliest] * asked[now] < flips[now] * asked[likeliest]
        if likeliest and rises and e > greatest:
            greatest, since = e, likeliest
    before, after = (
        (part / n if n else math.nan)
        for part, n in (
            (flips[since], asked[since]),
            (flips[-1] - flips[since], asked[-1] - asked[since]),
        )
    )
    day = days[since][0] if since else ""
    return Drift(len(days), asked[-1], flips[-1], greatest, day, before, after)


def _mixture(flips: int, n: int) -> float:
    """Log probability of a sequence with so many flips, by Jeffreys' prior."""
    made = math.lgamma(flips + 0.5) + math.lgamma(n - flips + 0.5) - math.lgamma(n + 1)
    return made - math.log(math.pi)


def _greatest(flips: int, n: int) -> float:
    """The same by the single chance that makes it most likely."""
    return math.fsum(k * math.log(k / n) for k in (flips, n - flips) if k)
