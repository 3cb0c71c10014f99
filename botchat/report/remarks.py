"""Remarks under a board's first sentence: what more dialogues would tell, what hangs on length.

Models are contestants but for bots and humans.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from botchat.boards.board import Board
from botchat.boards.protocols import DetectionResult
from botchat.boards.skill import is_misplaced
from botchat.boards.tables import models_of
from botchat.errors import counted
from botchat.frames import fill_lines
from botchat.metrics.statistics import level_of_best, level_of_pairs, rank_correlations
from botchat.protocols.catalogue import RANKING, VOTES
from botchat.records import HUMAN

SHORTER = 0.25
"""Share of decided pairs in which the longer dialogue is preferred, below which a line says so."""
MOST_STOPPED = 0.05
"""Share of a model's dialogues that may stop early without a word."""
_TAUS = "Kendall's tau {:z.2f} (UniEval, Arena), {:z.2f} (UniEval, GTEval), {:z.2f} (Arena, GTEval)"


def more_dialogues(board: Board, leader: str | None, usd: float | None) -> str:
    """Say how many more dialogues would rule out all but the leader of the Arena.

    Empty of votes, where all are, or a hundred times the dialogues would not do: equal ratings.
    ``usd``: the cost of all dialogues and verdicts, None if it is not known.
    """
    arena = board.leading
    if leader is None or arena is None or arena.protocol == VOTES:
        return ""
    fitted = arena.fitted
    models = models_of(arena.ranks.index)
    n = board.main.frame["complete"].max()
    level = level_of_best(len(models))
    for times in 1.05 ** np.arange(95):
        larger = replace(fitted, covariance=fitted.covariance / times)
        if larger.above(models, level)[:, 1:].any(axis=0).all():
            more = float(f"{(times - 1) * n:.2g}")
            if more == 0:
                break
            price = ""
            if usd:
                price = f" (USD {usd * more / n:,.2f})"
            return (
                f"About {counted(round(more), 'more dialogue')}{price} would separate them, if the "
                "gap stays."
            )
    return ""


def judge_remarks(board: Board, leader: str | None) -> list[str]:
    """Say what of a board hangs on the index that its judge names, and on length.

    The paper's prompt counts length against a dialogue, so this is a result and no fault.
    """
    arena = board.leading
    ahead = ""
    if arena is not None and arena.controlled is not None:
        models = models_of(arena.ranks.index)
        above = arena.controlled.above(models, level_of_best(len(models)))
        for best in np.flatnonzero(above.sum(axis=1) == len(models) - 1):
            ahead = models[best]
    return fill_lines(
        "report/remarks.txt",
        judge_facts=board.judge_facts,
        is_misplaced=is_misplaced,
        arena=arena,
        shorter=SHORTER,
        leader=leader,
        ahead=ahead,
    )


def stopped_remarks(board: Board) -> list[str]:
    """Say between which ends a success rate is where many dialogues of a model stopped early.

    It is the rate if the model would have been called AI in all of them, and in none.
    """
    remarks = []
    for part in board.of(DetectionResult):
        n = part.ranking[0].n or 0
        ends = board.verdicts[part.protocol.name].ends
        for name, known in ends[ends["first_ai"] >= 0].groupby("model", sort=False):
            failed = known["first_ai"].between(1, n).sum()
            stopped = ((known["first_ai"] == 0) & (known["shown"] < n)).sum()
            if name != HUMAN and part.protocol.leads and stopped > MOST_STOPPED * len(known):
                low, high = 100 - 100 * np.array([failed + stopped, failed]) / len(known)
                remarks.append(
                    f"{counted(stopped, 'dialogue')} of {name} stopped early: it passes {n} in "
                    f"{low:.0f} to {high:.0f} %."
                )
    return remarks


def protocol_agreement(board: Board) -> str:
    """Say how alike the paper's three protocols order the models, and which pairs contradict.

    A pair contradicts where one protocol has it significantly one way, another the other way. Empty
    for fewer protocols, fewer than three models, or a protocol to which all are equal.
    """
    largest = {part.protocol.base: part for part in reversed(board.parts)}  # N of each
    parts = [largest[each.name] for each in RANKING if each.name in largest]
    if len(parts) < len(RANKING):
        return ""
    ranks = pd.concat([part.ranks["rank"] for part in parts], axis=1, join="inner")
    names = models_of(ranks.index)
    values = ranks.loc[names].to_numpy(float).T
    taus = rank_correlations(values[[0, 0, 1]], values[[1, 2, 2]])[1]
    if len(names) < 3 or np.isnan(taus).any():
        return ""
    level = level_of_pairs(len(names))
    better = np.any([part.above(names, level) for part in parts], axis=0)
    contrary = [f"{names[i]} and {names[j]}" for i, j in np.argwhere(np.triu(better & better.T))]
    end = "no pair contradicts"
    if contrary:
        end = f"contradicted: {', '.join(contrary)}"
    return (
        f"Three protocols on {len(names)} models: {_TAUS.format(*taus).replace('-', '−')}; {end}."
    )
