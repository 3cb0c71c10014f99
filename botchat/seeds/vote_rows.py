"""Rows that hold several votes, or none in a column of its own, turned into plain ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botchat.errors import DataError


@dataclass(frozen=True)
class Spread:
    """Plain votes: the row that each is of, names, verdicts; what else is known."""

    row: Sequence[int]
    first: Sequence[Any]
    second: Sequence[Any]
    verdict: Sequence[float]
    weight: Sequence[int] | None = None
    said: str = ""


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


def arena_hard(cells: Mapping[str, list[Any]], wrong: Callable[..., DataError]) -> Spread:
    """Two games a row: the baseline is shown as A in the first, the model in the second."""
    row, first, second, verdict, weight = [], [], [], [], []
    assumed = False
    baselines = cells.get("baseline") or [None] * len(cells["model"])
    for n, (model, games, baseline) in enumerate(
        zip(cells["model"], cells["games"], baselines, strict=True)
    ):
        assumed |= baseline is None
        sides = [str(baseline or _BASELINE), model]
        if not isinstance(games, list) or not 1 <= len(games) <= 2:
            raise wrong(n, "games", "not a list of one or two games, each with a score")
        for i, game in enumerate(games):
            score = game.get("score") if isinstance(game, dict) else None
            if score is not None and str(score) not in _STRENGTH:
                told = f"{short(str(score))} is no score; those are {', '.join(_STRENGTH)}"
                raise wrong(n, "games", told)
            result, times = _STRENGTH[score] if score is not None else (math.nan, 1)
            row.append(n)
            first.append(sides[i])
            second.append(sides[1 - i])
            verdict.append(result)
            weight.append(times)
    said = f"the baseline is taken to be {_BASELINE}" if assumed else ""
    return Spread(row, first, second, verdict, weight, said)


_BASELINE = "gpt-4-0314"
"""Of Arena-Hard v0.1, whose judgments do not name it."""


def mt_bench(cells: Mapping[str, list[Any]], wrong: Callable[..., DataError]) -> Spread:
    """Two games a row: the first shows model_1 first, the second model_2."""
    row, first, second, verdict = [], [], [], []
    columns = (cells[name] for name in ("model_1", "model_2", "g1_winner", "g2_winner"))
    means = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5, "error": math.nan, None: math.nan}
    for n, (one, two, *winners) in enumerate(zip(*columns, strict=True)):
        for game, winner in enumerate(winners):
            if winner is not None and str(winner) not in means:
                told = f"{short(str(winner))} is none of model_1, model_2, tie, error"
                raise wrong(n, f"g{game + 1}_winner", told)
            row.append(n)
            first.append(two if game else one)
            second.append(one if game else two)
            verdict.append(1 - means[winner] if game else means[winner])
    return Spread(row, first, second, verdict)


def one_hot(cells: Mapping[str, list[Any]], wrong: Callable[..., DataError]) -> Spread:
    """A column of 0 and 1 for each outcome."""
    names = ("winner_model_a", "winner_model_b", "winner_tie")
    columns = [[str(x).removesuffix(".0").lower() for x in cells[name]] for name in names]
    verdict = []
    for n, told in enumerate(zip(*columns, strict=True)):
        hits = [i for i, value in enumerate(told) if value in ("1", "true")]
        if len(hits) != 1:
            raise wrong(n, names[0], f"exactly one of {', '.join(names)} is 1, not {len(hits)}")
        verdict.append((1.0, 0.0, 0.5)[hits[0]])
    return Spread(range(len(verdict)), cells["model_a"], cells["model_b"], verdict)


_SCORE = {
    side: re.compile(rf"score[ _]*{side}\**\s*[:=]\s*\**\s*(-?\d+(?:\.\d+)?)", re.I)
    for side in "ab"
}
_PARSED = re.compile(r"preference['\"]?\s*[:=]\s*([0-9.]+)")


def judge_arena(cells: Mapping[str, list[Any]], _: Callable[..., DataError]) -> Spread:
    """Its parsed preference (0: A, 1: B), or the two scores that the judge wrote."""
    n = len(cells["model_a"])
    parsed = cells.get("parsed") or cells.get("pref") or [None] * n
    verdict = []
    for told, value in zip(cells["judge_completion"], parsed, strict=True):
        found = value.get("preference") if isinstance(value, dict) else value
        if isinstance(found, str):
            hit = _PARSED.search(found)
            found = finite(hit[1] if hit else found)
        if not isinstance(found, int | float):
            scores = [pattern.findall(str(told or "")) for pattern in _SCORE.values()]
            found = None
            if all(scores):
                one, two = (float(given[-1]) for given in scores)
                found = 0.5 if one == two else float(two > one)
        missing = found is None or found != found
        verdict.append(math.nan if missing else 0.5 if found == 0.5 else float(found < 0.5))  # type: ignore[operator]
    return Spread(range(n), cells["model_a"], cells["model_b"], verdict)
