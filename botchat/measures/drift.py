"""Has a judge changed? Anchor cases are asked again on other days and held against its verdicts.

As long as it is the same, as many differ from their first verdicts on every day, but for chance.
Against that stands that the share rose on some day, in an e-value of universal inference
(Wasserman, Ramdas & Balakrishnan 2020): a mixture over the day of the change (weight
1 / (t (t + 1))) with Jeffreys' prior before and after, over the greatest probability by one share.
A judge that stays the same ever reaches `ALARM` with a chance below 1 / `ALARM`.
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

    days: Sequence[tuple[str, int, int]]
    """In order, each with the flips (other verdicts than the first) among the anchors asked."""
    e: float
    """The greatest e-value so far: evidence that the judge has changed; 1 is none."""
    since: int
    """The day from which it did most likely; 0 if its share of flips did not rise."""

    @property
    def alarm(self) -> bool:
        """Whether the judge has changed."""
        return self.e >= ALARM

    def __str__(self) -> str:
        """In words."""
        asked = f"anchors asked again on {len(self.days)} day{'s' if len(self.days) > 1 else ''}: "
        if not self.alarm:
            return (
                f"{asked}{_flips(self.days)} differ from the first verdicts, no sign that the "
                f"judge has changed (e = {self.e:.1f}, {ALARM:.0f} is an alarm)"
            )
        return (
            f"{asked}the judge has changed about {self.days[self.since][0]} (e = {self.e:.3g}): "
            f"{_flips(self.days[: self.since])} differed from the first verdicts before, "
            f"{_flips(self.days[self.since :])} since; judge all again to compare"
        )


def _flips(days: Sequence[tuple[str, int, int]]) -> str:
    flips, asked = sum(flipped for _, flipped, _ in days), sum(n for _, _, n in days)
    return f"{flips} of {asked} ({100 * flips / max(asked, 1):.0f} %)"


def drift(days: Sequence[tuple[str, int, int]]) -> Drift:
    """The evidence of some days; see `Drift`."""
    flips, asked = [0], [0]
    for _, flipped, n in days:
        flips.append(flips[-1] + flipped)
        asked.append(asked[-1] + n)
    greatest, since = 0.0, 0
    for now in range(2, len(flips)):
        terms = [_mixture(flips[now], asked[now]) - math.log(now)]
        for at in range(1, now):
            after = _mixture(flips[now] - flips[at], asked[now] - asked[at])
            terms.append(_mixture(flips[at], asked[at]) + after - math.log(at * (at + 1)))
        likeliest = max(range(1, now), key=terms.__getitem__)
        total = max(terms) + math.log(math.fsum(math.exp(one - max(terms)) for one in terms))
        counts = (flips[now], asked[now] - flips[now])
        e = total - math.fsum(k * math.log(k / asked[now]) for k in counts if k)
        rises = flips[likeliest] * asked[now] < flips[now] * asked[likeliest]
        if rises and math.exp(min(e, 700)) > greatest:
            greatest, since = math.exp(min(e, 700)), likeliest
    return Drift(days, greatest, since)


def _mixture(flips: int, n: int) -> float:
    """Log probability of a sequence with so many flips, by Jeffreys' prior."""
    made = math.lgamma(flips + 0.5) + math.lgamma(n - flips + 0.5) - math.lgamma(n + 1)
    return made - math.log(math.pi)
