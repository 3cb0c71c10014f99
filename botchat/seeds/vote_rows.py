"""Rows that hold several votes, or none in a column of its own: the plain votes of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]
"""Cells by the names of their columns, in lower case."""


class Vote(NamedTuple):
    """What a row says of two models."""

    first: Any
    second: Any
    verdict: float
    """Result of the first; NaN: unreadable."""
    weight: int = 1


class WrongCellError(Exception):
    """A cell is not what its format allows: column, and what is wrong."""


def short(word: str) -> str:
    """A value as a message shows it."""
    return repr(word if len(word) <= 40 else f"{word[:37]}...")


def finite(word: str) -> float | None:
    """The number that a text is, if it is one and finite."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_STRENGTH = {
    "A>>B": (1.0, 3), "A>B": (1.0, 1), "A=B": (0.5, 1), "A<B": (0.0, 1), "A<<B": (0.0, 3),
    "B>>A": (0.0, 3), "B>A": (0.0, 1), "B=A": (0.5, 1), "B<A": (1.0, 1), "B<<A": (1.0, 3),
}  # fmt: skip
"""Arena-Hard's verdicts: the result of A, and how often it counts there."""

ARENA_HARD_BASELINE = "gpt-4-0314"
"""Of Arena-Hard v0.1, whose judgments do not name it."""


def arena_hard(row: Row) -> Iterator[Vote]:
    """Two games a row: the baseline is shown as A in the first, the model in the second."""
    sides = [str(row.get("baseline") or ARENA_HARD_BASELINE), row["model"]]
    games = row["games"]
    if not isinstance(games, list) or not 1 <= len(games) <= 2:
        raise WrongCellError("games", "not a list of one or two games, each with a score")
    for game in games:
        score = game.get("score") if isinstance(game, dict) else None
        if score is not None and str(score) not in _STRENGTH:
            told = f"{short(str(score))} is no score; those are {', '.join(_STRENGTH)}"
            raise WrongCellError("games", told)
        result, times = _STRENGTH[score] if score is not None else (math.nan, 1)
        yield Vote(sides[0], sides[1], result, times)
        sides.reverse()


_MT_BENCH = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5, "error": math.nan, None: math.nan}


def mt_bench(row: Row) -> Iterator[Vote]:
    """Two games a row: the first shows model_1 first, the second model_2."""
    one, two = row["model_1"], row["model_2"]
    for column in ("g1_winner", "g2_winner"):
        winner = row[column]
        if winner is not None and str(winner) not in _MT_BENCH:
            told = f"{short(str(winner))} is none of model_1, model_2, tie, error"
            raise WrongCellError(column, told)
        result = _MT_BENCH[winner]
        yield Vote(one, two, result) if column == "g1_winner" else Vote(two, one, 1 - result)


_ONE_HOT = {"winner_model_a": 1.0, "winner_model_b": 0.0, "winner_tie": 0.5}


def one_hot(row: Row) -> Iterator[Vote]:
    """A column of 0 and 1 for each outcome."""
    hits = [n for n in _ONE_HOT if str(row[n]).removesuffix(".0").lower() in ("1", "true")]
    if len(hits) != 1:
        told = f"exactly one of {', '.join(_ONE_HOT)} is 1, not {len(hits)}"
        raise WrongCellError(next(iter(_ONE_HOT)), told)
    yield Vote(row["model_a"], row["model_b"], _ONE_HOT[hits[0]])


_SCORE = {
    side: re.compile(rf"score[ _]*{side}\**\s*[:=]\s*\**\s*(-?\d+(?:\.\d+)?)", re.I)
    for side in "ab"
}
_PARSED = re.compile(r"preference['\"]?\s*[:=]\s*([0-9.]+)")


def judge_arena(row: Row) -> Iterator[Vote]:
    """Its parsed preference (0: A, 1: B), or the two scores that the judge wrote."""
    value = row.get("parsed", row.get("pref"))
    found = value.get("preference") if isinstance(value, dict) else value
    if isinstance(found, str):
        hit = _PARSED.search(found)
        found = finite(hit[1] if hit else found)
    if not isinstance(found, int | float):
        scores = [
            pattern.findall(str(row["judge_completion"] or "")) for pattern in _SCORE.values()
        ]
        found = math.nan
        if all(scores):
            one, two = (float(given[-1]) for given in scores)
            found = 0.5 if one == two else float(two > one)
    readable = found == found and found != 0.5
    yield Vote(row["model_a"], row["model_b"], float(found < 0.5) if readable else found)
