"""Judges' scores of single texts against people's (ChatEval Table 2, MATEval Table 1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from botchat.errors import DataError, MissingError
from botchat.interfaces import Row
from botchat.measures import statistics
from botchat.measures.agreement import Agreement
from botchat.measures.annotations import is_person
from botchat.measures.statistics import Flags, Floats, differences, figures
from botchat.records import natural_key


@dataclass(frozen=True, slots=True)
class Rating:
    """One score that one judge gave to one text."""

    item: str
    """What the text belongs to (a story, a conversation); an item may have many texts."""
    contestant: str
    judge: str
    score: float | None
    """``None``: unreadable."""


def compare_scores(
    ratings: Iterable[Rating],
    truth_prefix: str = "human",
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Correlate judges' scores with people's: the mean of the readable scores of a text.

    ``truth_prefix``: what people's names start with. The bootstrap is over items. Each row has the
    readable (``n``) and ``unreadable`` scores of texts that people scored too, and ``spearman`` and
    ``kendall`` (tau-b); each pair their differences on the ``n`` texts that both scored.

    Raises:
        MissingError: no judge or no person.
        DataError: two scores of one judge for one text.
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
    truth = _means([scores[name] for name in scores if is_person(name, truth_prefix)])
    if not judges or not truth:
        raise MissingError(
            f"scores need judges and people (names that start with {truth_prefix!r}) with readable "
            f"scores; found {', '.join(scores) or 'none'}"
        )
    gold = np.array(list(truth.values()))
    given = {
        judge: np.array([scores[judge].get(key, math.nan) for key in truth]) for judge in judges
    }
    names = sorted({item for item, _ in truth}, key=natural_key)
    items = {item: i for i, item in enumerate(names)}
    weights = statistics.item_weights(len(items), resamples, seed)
    by_text = weights[:, [items[item] for item, _ in truth]]

    def correlations(judge: str, kept: Flags) -> dict[str, Floats]:
        return _correlations(given[judge][kept], gold[kept], by_text[:, kept])

    rows: list[Row] = []
    for judge in judges:
        readable = np.isfinite(given[judge])
        n = int(readable.sum())
        unreadable = sum(key in scores[judge] for key in truth) - n
        row: Row = {"judge": judge, "n": n, "unreadable": unreadable}
        rows.append(row | figures(correlations(judge, readable)))
    pairs: list[Row] = []
    for a, b in combinations(judges, 2):
        both = np.isfinite(given[a]) & np.isfinite(given[b])
        row = {"judge_a": a, "judge_b": b, "n": int(both.sum())}
        pairs.append(row | differences(correlations(a, both), correlations(b, both)))
    return Agreement(rows=rows, pairs=pairs)


def _means(people: Sequence[Mapping[tuple[str, str], float]]) -> dict[tuple[str, str], float]:
    votes: dict[tuple[str, str], list[float]] = {}
    for scores in people:
        for key, score in scores.items():
            if not math.isnan(score):
                votes.setdefault(key, []).append(score)
    return {key: math.fsum(given) / len(given) for key, given in votes.items()}


def _correlations(x: Floats, y: Floats, weights: Floats) -> dict[str, Floats]:
    # The work grows with the square of the entries: texts with equal scores are one entry.
    distinct, group = np.unique(np.stack([x, y]), axis=1, return_inverse=True)
    members = np.zeros((len(x), distinct.shape[1]))
    members[np.arange(len(x)), group.reshape(-1)] = 1
    counts = weights @ members
    return {
        "spearman": statistics.spearman(distinct[0], distinct[1], counts),
        "kendall": statistics.kendall(distinct[0], distinct[1], counts),
    }
