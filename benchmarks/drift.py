"""How soon anchors find a judge that changed, and how often they accuse one that did not.

    python benchmarks/drift.py

Worlds of 60 anchors, asked again every week of a year. Every case has a chance of its own to get
its less likely verdict (Beta, mean as named), and the first verdict is one such draw.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from botchat.measures.drift import drift

RUNS, ANCHORS, WEEKS, CHANGE = 200, 60, 52, 12
SPREAD = 2.0
"""a + b of the Beta; its values are mostly near 0 and a few are near 1/2."""


def chances(rng: np.random.Generator, flips: float) -> np.ndarray:
    """Of each case to differ from its first verdict, with this mean over cases."""
    return rng.beta(SPREAD * flips, SPREAD * (1 - flips), ANCHORS)


def year(rng: np.random.Generator, of: Callable[[int], float], spread: bool) -> int | None:
    """The week of the first alarm."""
    draws: dict[float, np.ndarray] = {}
    days: list[tuple[str, int, int]] = []
    for week in range(WEEKS):
        mean = of(week)
        p = draws.setdefault(mean, chances(rng, mean)) if spread else np.full(ANCHORS, mean)
        days.append((f"week {week}", int((rng.random(ANCHORS) < p).sum()), ANCHORS))
    if not drift(days).alarm:
        return None
    # What is greatest so far only grows.
    return bisect_left(range(WEEKS), True, key=lambda week: drift(days[: week + 1]).alarm)


def main() -> None:
    """Prints a line a world."""
    worlds: dict[str, Callable[[int], float]] = {
        "3 % all year": lambda _: 0.03,
        "8 % all year": lambda _: 0.08,
        "20 % all year": lambda _: 0.20,
        f"3 to 15 % in week {CHANGE}": lambda week: 0.15 if week >= CHANGE else 0.03,
        f"8 to 15 % in week {CHANGE}": lambda week: 0.15 if week >= CHANGE else 0.08,
        "3 to 15 % in week 4": lambda week: 0.15 if week >= 4 else 0.03,
        f"3 to 15 % by steps from week {CHANGE}": lambda week: (
            0.03 + 0.12 * min(4, max(0, (week - CHANGE + 5) // 6)) / 4
        ),
    }
    for spread in (False, True):
        print("cases of very different chances" if spread else "cases of one chance")
        for name, of in worlds.items():
            rng = np.random.default_rng(0)
            found = [year(rng, of, spread) for _ in range(RUNS)]
            weeks = [week for week in found if week is not None]
            start = 4 if name.endswith("week 4") else CHANGE
            after = [week - start + 1 for week in weeks if week >= start]
            median = f"median {np.median(after):.0f} weeks" if after else ""
            early = len(weeks) - len(after) if "to" in name else len(weeks)
            print(f"  {name:40} found {len(weeks) / RUNS:.3f} {median} false {early / RUNS:.3f}")


if __name__ == "__main__":
    main()
