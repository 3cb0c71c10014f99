"""What verdicts say of the judge who gave them, whoever is right: the same numbers everywhere."""

from __future__ import annotations

import numpy as np

from botchat.interfaces import Row
from botchat.metrics.intervals import proportion_ci
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Indices


def verdict_rates(codes: Codes, item: Indices) -> Row:
    """Rates of verdicts on comparisons in both orders, shape (c, 2); ``item``: shape (c,).

    - ``unreadable_rate``: of all verdicts. ``ties``: of the readable ones.
    - ``consistency``: of the comparisons readable in both orders, those with the same verdict.
    - ``first_preferred``: of the decided verdicts on comparisons readable in both orders, those for
      the side shown first; ½ is no preference. Only both orders tell position from contestant.
    """
    twice = np.repeat(item[:, None], 2, axis=1)
    readable, asked = codes < UNREADABLE, codes != ABSENT
    both: Flags = readable[:, 0] & readable[:, 1]
    decided = readable & (codes != TIED) & both[:, None]
    same: Flags = codes[:, 0] == -codes[:, 1]
    return {
        **proportion_ci(same[both], item[both], "consistency"),
        **proportion_ci((codes == 1)[decided], twice[decided], "first_preferred"),
        **proportion_ci((codes == TIED)[readable], twice[readable], "ties"),
        **proportion_ci((codes == UNREADABLE)[asked], twice[asked], "unreadable_rate"),
    }
