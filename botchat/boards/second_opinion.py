"""What others say beside a judge: whether it is the same judge again, its order, people."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from botchat.boards.board import Board
from botchat.boards.judge_agreement import Findings
from botchat.boards.tables import triple
from botchat.interfaces import Row
from botchat.measures.annotations import is_person
from botchat.measures.intervals import LEAST
from botchat.records import HUMAN
from botchat.verdicts import Floats, Verdicts

COPY = 0.99
"""Share of verdicts that are the same from which another judge is no second opinion."""

LEAST_IN_ORDER = 5
"""Contestants below which two orders are not compared."""


def is_copy(board: Board, other: Board) -> bool:
    """Whether two judges give `COPY` of at least `LEAST` cases the same verdict."""
    same = n = 0
    for name in board.evidence.keys() & other.evidence.keys():
        one, two = board.evidence[name], other.evidence[name]
        said = {(j.seed_id, j.contestants): j.verdict for j in two.judgments}
        there = [j for j in one.judgments if (j.seed_id, j.contestants) in said]
        n += len(there)
        same += sum(said[j.seed_id, j.contestants] == j.verdict for j in there)
        results = _shared(one.verdicts, two.verdicts)
        n += results.shape[1]
        same += int((results[0] == results[1]).sum())
    return n >= LEAST and same >= COPY * n


def _shared(one: Verdicts, two: Verdicts) -> Floats:
    """Results of the cases that both have, unreadable ones as -1, shape (2, n)."""
    seeds = {name: i for i, name in enumerate(one.seed_ids)}
    models = {name: i for i, name in enumerate(one.contestants)}
    m = len(models)
    seed = np.array([seeds.get(name, -1) for name in two.seed_ids], dtype=np.intp)[two.seed]
    place = np.array([models.get(name, -1) for name in two.contestants], dtype=np.intp)
    first, second = place[two.first], place[two.second]
    known = (seed >= 0) & (first >= 0) & (second >= 0)
    _, of_one, of_two = np.intersect1d(
        (one.seed * m + one.first) * m + one.second,
        ((seed * m + first) * m + second)[known],
        assume_unique=True,
        return_indices=True,
    )
    found = np.stack([one.result[of_one], two.result[known][of_two]])
    return np.asarray(np.nan_to_num(found, nan=-1.0))


def order_agreement(board: Board, other: Board) -> tuple[float, int]:
    """Kendall's tau-b of what two boards rank by, and of how many models; (nan, 0): not known."""
    key, of_other = (one.main.column(role="rank").of for one in (board, other))
    if key != of_other or not key:
        return math.nan, 0
    frames = [one.main.frame.set_index("model")[key].astype(float) for one in (board, other)]
    both = pd.concat(frames, axis=1, join="inner").drop(HUMAN, errors="ignore").dropna()
    if len(both) < LEAST_IN_ORDER:
        return math.nan, 0
    signs = [np.sign((v[:, None] - v[None, :]).round(6)) for v in both.to_numpy().T]
    norm = math.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum())
    return (float((signs[0] * signs[1]).sum() / norm), len(both)) if norm else (math.nan, 0)


def with_people(judge: str, compared: Iterable[Findings]) -> Row | None:
    """How a judge agrees with people, where they share most; ``None`` below `LEAST` verdicts."""
    rows: list[Row] = []
    for found in compared:
        if found.truth.startswith("people"):
            rows += [row for row in found.rows if row["judge"] == judge]
        for pair in found.pairs:
            for one, other in (("judge_a", "judge_b"), ("judge_b", "judge_a")):
                if pair[one] == judge and is_person(pair[other], HUMAN):
                    value, low, high = triple(pair, "agreement_kappa")
                    kappa = {"kappa": value, "kappa_low": low, "kappa_high": high}
                    rows.append({"n": pair["n"], **kappa})
    known = [row for row in rows if (row["n"] or 0) >= LEAST and row["kappa"] is not None]
    return None if is_person(judge, HUMAN) else max(known, key=lambda row: row["n"], default=None)
