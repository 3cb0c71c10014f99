"""Faults drawn at random: replies, files from elsewhere.

``make explore N=500`` tries N of each (and as many examples of every property in the suite),
beginning anywhere; ``FROM=7`` begins there, so that what a failure names can be tried again. The
suite tries the same few each time. What is found becomes a small test of its own where it belongs.
"""

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable

N = int(os.environ.get("EXPLORE") or 0)
"""How many of each are tried; 0: a few."""

FROM = int(os.environ.get("EXPLORE_FROM") or (secrets.randbelow(10**6) if N else 0))
"""The first draw."""


def explore(once: Callable[[random.Random], str], of: str, share: float = 1.0) -> None:
    """Call ``once`` with one draw in the suite, ``share`` of `N` by hand; ``of``: what is tried.

    It gives a word on what became of it, which are counted and printed; or raises.

    Raises:
        AssertionError: names each draw that failed, with the error.
    """
    ended: Counter[str] = Counter()
    failed = []
    n = max(1, round(N * share))
    for draw in range(FROM, FROM + n):
        try:
            ended[once(random.Random(f"{of} {draw}"))] += 1
        except Exception as error:
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            at = place and f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
            failed.append(f"EXPLORE_FROM={draw}: {type(error).__name__} at {at}: {error}"[:1500])
    told = "\n".join(failed)
    print(f"{of}: {n} tried from {FROM}: {dict(ended.most_common())}, {len(failed)} failed")
    assert not failed, f"{len(failed)} of {n}:\n{told}"
