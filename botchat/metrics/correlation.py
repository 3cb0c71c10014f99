"""Agreement of judges' scores with people's: rank correlations over texts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from botchat.errors import DataError, MissingDataError
from botchat.interfaces import Row
from botchat.metrics import statistics
from botchat.metrics.agreement import Agreement
from botchat.metrics.annotations import is_person
from botchat.metrics.intervals import Statistic, differences, figures, left_out
from botchat.records import natural_sort_key
from botchat.verdicts import Flags


@dataclass(frozen=True, slots=True)
class Rating:
    """One score that one judge gave to one text."""

    item: str
    """What the text belongs to (a story, a conversation); an item may have many texts."""
    contestant: str
    judge: str
    score: float | None
    """``None``: unreadable."""


def compare_scores(ratings: Iterable[Rating], truth_prefix: str = "human") -> Agreement:
    """Correlate judges' scores with people's: the mean of the readable scores of a text.

    Intervals are by item. Each row has the readable (``n``) and ``unreadable`` scores of
    texts that people scored too, and ``spearman`` and ``kendall`` (tau-b); each pair their
    differences on the ``n`` texts that both scored.
    Raises `MissingDataError` without a judge or a person, `DataError` if a judge scored one twice.
    """
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for rating in ratings:
        of_judge = scores.setdefault(rating.judge, {})
        key = (rating.item, rating.contestant)
        if key in of_judge:
            raise DataError(
                f"{rating.judge} has scored {rating.contestant or 'the text'} on item "
                f"{rating.item} twice; keep one of the two"
            )
        of_judge[key] = math.nan if rating.score is None else rating.score
    judges = [name for name in scores if not is_person(name, truth_prefix)]
    votes: dict[tuple[str, str], list[float]] = {}
    for person in [name for name in scores if name not in judges]:
        for key, score in scores[person].items():
            if not math.isnan(score):
                votes.setdefault(key, []).append(score)
    truth = {key: math.fsum(given) / len(given) for key, given in votes.items()}
    if not judges or not truth:
        raise MissingDataError(
            f"scores need judges and people (names that start with {truth_prefix!r}) with readable "
            f"scores; found {', '.join(scores) or 'none'}"
        )
    gold = np.array(list(truth.values()))
    given = {
        judge: np.array([scores[judge].get(key, math.nan) for key in truth]) for judge in judges
    }
    ordered = sorted({item for item, _ in truth}, key=natural_sort_key)
    items = {item: i for i, item in enumerate(ordered)}
    item = np.array([items[item] for item, _ in truth], np.intp)
    by_text = left_out(np.eye(len(items)))[:, item]

    def correlations(judge: str, kept: Flags) -> dict[str, Statistic]:
        # The work grows with the square of the entries: texts with equal scores are one entry.
        x_y = np.stack([given[judge][kept], gold[kept]])
        (x, y), group = np.unique(x_y, axis=1, return_inverse=True)
        members = np.zeros((x_y.shape[1], len(x)))
        members[np.arange(len(members)), group.reshape(-1)] = 1
        counts = by_text[:, kept] @ members
        n = len(np.unique(item[kept]))
        return {
            "spearman": Statistic(statistics.spearman(x, y, counts), n, -1.0),
            "kendall": Statistic(statistics.kendall(x, y, counts), n, -1.0),
        }

    rows: list[Row] = []
    for judge in judges:
        readable = np.isfinite(given[judge])
        n = int(readable.sum())
        counts = {"n": n, "unreadable": sum(key in scores[judge] for key in truth) - n}
        rows.append({"judge": judge, **counts, **figures(correlations(judge, readable))})
    pairs: list[Row] = []
    for a, b in combinations(judges, 2):
        both = np.isfinite(given[a]) & np.isfinite(given[b])
        apart = differences(correlations(a, both), correlations(b, both))
        pairs.append({"judge_a": a, "judge_b": b, "n": int(both.sum()), **apart})
    return Agreement(rows=rows, pairs=pairs)
