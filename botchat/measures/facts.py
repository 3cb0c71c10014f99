"""What verdicts say of the judge who gave them, whoever is right: the same numbers everywhere."""

from __future__ import annotations

import numpy as np

from botchat.measures.intervals import Items, Statistic
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Indices


def facts(said: Codes, item: Indices, crossed: Indices | None = None) -> dict[str, Statistic]:
    """Of verdicts on comparisons in both orders, (c, 2); ``item``: of each comparison, (c,).

    ``crossed``: who judged it, where there are several.

    - ``unreadable_rate``: of all verdicts. ``ties``: of the readable ones.
    - ``consistency``: of the comparisons readable in both orders, those with the same result.
    - ``same_winner``: of the comparisons decided in both orders, those with the same winner.
    - ``first_preferred``: of the decided verdicts on comparisons readable in both orders, those
      for the side shown first; ½ is no preference. Only both orders tell what a place is worth
      from what a contestant is.
    """
    n = int(item.max(initial=-1)) + 1
    orders = [None if of is None else np.repeat(of[:, None], 2, axis=1) for of in (item, crossed)]
    assert orders[0] is not None
    once, twice = Items(n, item, crossed), Items(n, orders[0], orders[1])
    readable = said < UNREADABLE
    decided: Flags = readable & (said != TIED)
    both, decided_both = (np.asarray(one.all(1)) for one in (readable, decided))
    same = said[:, 0] == -said[:, 1]
    return {
        "consistency": once.share(same, both),
        "same_winner": once.share(same, decided_both),
        "first_preferred": twice.share(said == 1, decided & both[:, None]),
        "ties": twice.share(said == TIED, readable),
        "unreadable_rate": twice.share(said == UNREADABLE, said != ABSENT),
    }
