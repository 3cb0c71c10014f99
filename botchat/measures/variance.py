"""How much each way of asking moves a number: variance components of a crossed design.

A design has *facets*: questions, and whatever else verdicts were asked under, such as wordings,
judges and both orders; each cell is asked once or several times (draws). All are random, so the
components follow from expected mean squares (Cornfield & Tukey 1956; Searle, Casella & McCulloch
1992, ch. 4), and what another design would give from them (a D-study; Brennan 2001, ch. 2). An
estimate below 0 counts as 0. What both orders move sums to 0, which the random model does not know:
so the error of a mean over both orders is computed from the means of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from botchat.measures.statistics import LEVEL, student_t
from botchat.verdicts import Floats

ITEM, ORDER = "question", "order"

Effect = tuple[str, ...]
"""Facets that meet in it; a facet alone has one."""


@dataclass(frozen=True, eq=False)
class Crossed:
    """One number seen under every combination of its facets.

    ``values``: shape (levels of each facet, in order, draws); facets of one level are not seen.
    """

    facets: tuple[str, ...]
    values: Floats

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Facets of more than one level -> levels."""
        shape = dict(zip(self.facets, self.values.shape, strict=False))
        return {facet: n for facet, n in shape.items() if n > 1}

    @cached_property
    def squares(self) -> dict[Effect, tuple[float, int]]:
        """Mean square and degrees of freedom of each effect, the smaller effects first.

        ``()``: of draws of one cell, where there are several.
        """
        draws = self.values.shape[-1]
        cells = self.values.mean(-1).reshape([*self.sizes.values()])
        axis = {facet: i for i, facet in enumerate(self.sizes)}
        moved: dict[Effect, Floats] = {(): np.asarray(cells.mean(keepdims=True))}
        found: dict[Effect, tuple[float, int]] = {}
        for k in range(1, len(axis) + 1):
            for effect in combinations(self.sizes, k):
                away = tuple(axis[facet] for facet in axis if facet not in effect)
                below = [part for of, part in moved.items() if {*of} < {*effect}]
                moved[effect] = cells.mean(axis=away, keepdims=True) - sum(below)
                freedom = math.prod(self.sizes[facet] - 1 for facet in effect)
                square = (moved[effect] ** 2).mean() * cells.size * draws / freedom
                found[effect] = float(square), freedom
        if draws > 1:
            found[()] = float(self.values.var(-1, ddof=1).mean()), cells.size * (draws - 1)
        return found

    @cached_property
    def components(self) -> dict[Effect, float]:
        """Variance of each effect, also below 0; of draws as ``()``.

        Of cells asked once, the effect of all facets has that of draws in it.
        """
        draws, found = self.values.shape[-1], dict[Effect, float]()
        within = self.squares.get((), (0.0, 0))[0]
        for effect in sorted(self.squares, key=len, reverse=True):
            if not effect:
                continue
            above = [(of, x) for of, x in found.items() if {*effect} < {*of}]
            more = within + draws * sum(x * self._times(of) for of, x in above)
            found[effect] = (self.squares[effect][0] - more) / (draws * self._times(effect))
        return {(): within, **found} if draws > 1 else found

    def _times(self, effect: Effect) -> int:
        """Cells in which each combination of its levels is seen."""
        return math.prod(n for facet, n in self.sizes.items() if facet not in effect)

    @cached_property
    def means(self) -> Crossed:
        """Over both orders, where both are there."""
        if self.sizes.get(ORDER) != 2:
            return self
        return replace(self, values=self.values.mean(self.facets.index(ORDER), keepdims=True))

    def interval(self, facets: Sequence[str] | None = None) -> tuple[float, float, float]:
        """The mean and its 95 % interval, for other levels of some facets (default: all).

        The variance is the sum of those that each facet alone shows, which is no less than that of
        the mean; degrees of freedom are Satterthwaite's (1946). nan where nothing varies.
        """
        means = self.means
        middle = float(means.values.mean())
        alone = [means.squares[(one,)] for one in means.sizes if facets is None or one in facets]
        if not (total := sum(square for square, _ in alone)):
            return middle, math.nan, math.nan
        freedom = total**2 / sum(square**2 / n for square, n in alone)
        half = student_t(LEVEL, max(1, int(freedom))) * math.sqrt(total / means.values.size)
        return middle, middle - half, middle + half


def standard_error(
    components: Mapping[Effect, float], levels: Mapping[str, int], draws: int = 1
) -> float:
    """Of a mean over so many levels of each facet, every cell asked ``draws`` times.

    ``components``: those below 0 count as 0. With both orders, nothing that an order moves is left
    but what one cell differs from another.
    """
    both, every = levels.get(ORDER, 1) == 2, max(components, key=len, default=())
    variance = 0.0
    for effect, part in components.items():
        cells = math.prod(levels.get(facet, 1) for facet in effect or every)
        once = () in components
        gone = both and ORDER in effect and (once or effect != every)
        variance += 0.0 if gone else max(part, 0.0) / (cells if effect else cells * draws)
    return math.sqrt(variance)
