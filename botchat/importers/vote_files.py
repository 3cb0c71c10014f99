"""Votes from a table: battles as of LMArena, and verdicts of BotChat.

Battles have ``model_a``, ``model_b`` and ``winner``; verdicts ``item``, ``first``, ``second``,
``judge`` and ``verdict``. Only the columns named here are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from botchat.errors import DataError, MissingDataError
from botchat.estimates import Flags, Floats, Indices
from botchat.importers.tables import COLUMNS, quoted, table
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdicts
from botchat.workspace import jsonl

MAX_MODELS = 1000
MAX_NAME = 200  # characters of a model's name

_NAMES = COLUMNS["votes"]
_VERDICTS = _NAMES["verdicts"]
_ITEMS = _NAMES["items"]
_JUDGES = _NAMES["judges"]
_RESULTS = {"first": WIN, "second": LOSS, "tie": TIE, "unreadable": np.nan}
_SIDES: dict[str, float] = {}
for _side, _result in _RESULTS.items():
    _SIDES |= dict.fromkeys(_NAMES[_side], _result)
"""Winner -> result of the first model."""
_COLUMNS = {"model_a", "model_b", "winner", "turn", "anony", *_VERDICTS, *_ITEMS, *_JUDGES}


@dataclass(frozen=True)
class VotesFile:
    """Votes of a file."""

    votes: PairVerdicts
    note: str
    """One line on the votes that were read and left out."""
    once: bool
    """Verdicts of BotChat, which a judge gives once an item and order."""


def votes_in(path: Path) -> bytes:
    """Read a file of votes; `MissingDataError` without one, `DataError` if it is too long."""
    if not path.exists():
        raise MissingDataError(
            f"no file {path}; name a csv, tsv, json, jsonl or parquet of votes, such as "
            "item,first,second,judge,verdict"
        )
    return jsonl.content(path)


def read_votes(data: bytes, where: str) -> VotesFile:
    """Read a file of votes; raises `DataError` with the row for what is none."""
    frame = table(data, where, _COLUMNS)
    once = {"item", "judge", *_VERDICTS} <= set(frame)
    if once:
        others = [name for name in _VERDICTS.values() if name in frame]  # of other votes
        frame = frame.drop(columns=others).rename(columns=_VERDICTS)
    if not {"model_a", "model_b", "winner"} <= set(frame) or frame.empty:
        names = f"columns: {', '.join(str(each) for each in frame)[:120]}"
        raise DataError(
            f"{where}: no votes ({names}); name them model_a,model_b,winner or "
            "item,first,second,judge,verdict (docs/rank.md)"
        )
    votes = _votes(frame, where, once)
    kept = votes.first != votes.second
    left_out = []
    n_own = np.count_nonzero(~kept)
    if n_own:
        left_out.append(f"left out {n_own:,} of a model against itself")
    if "anony" in frame:
        anonymous = frame["anony"].astype(str).str.lower().to_numpy() != "false"
        n_known = np.count_nonzero(kept & ~anonymous)
        if n_known:
            left_out.append(f"left out {n_known:,} not anonymous")
        kept &= anonymous
    n_unread = np.count_nonzero(kept & ~votes.readable)
    if n_unread:
        left_out.append(f"{n_unread:,} without a readable verdict")
    kind = "battles as of LMArena"
    if once:
        kind = "verdicts of BotChat"
    note = f"{where}: {kind}: {len(frame):,} rows read; {'; '.join(left_out) or 'nothing left out'}"
    if not kept.any():
        raise DataError(f"{note}: nothing is left to rank")
    return VotesFile(votes.only(kept), note, once)


def _votes(frame: pd.DataFrame, where: str, once: bool) -> PairVerdicts:
    item = next((name for name in _ITEMS if name in frame), None)
    judge = next((name for name in _JUDGES if name in frame), None)
    if once:
        item = "item"
        judge = "judge"
    n = len(frame)
    cells = pd.concat([frame["model_a"], frame["model_b"]], ignore_index=True)
    models, both = _numbered(cells, 2 * n)
    first, second = np.split(both, 2)
    items, of_item = _numbered(frame.get(item), n)
    judges, of_judge = _numbered(frame.get(judge), n)
    _, turn = _numbered(frame.get("turn"), n)
    required = {"model_a": first, "model_b": second}
    named = models
    if once:
        required |= {"item": of_item, "judge": of_judge}
        named = ()
    for name, numbers in required.items():
        _refuse(frame, where, numbers < 0, f"{name} is empty; fill it in")
    if len(models) > MAX_MODELS or max(len(each) for each in models) > MAX_NAME:
        raise DataError(
            f"{where}: {len(models):,} names of models, such as {quoted(max(models, key=len))}; "
            f"at most {MAX_MODELS:,}, each of {MAX_NAME} characters, can be rated"
        )
    if (of_judge < 0).any():
        of_judge = np.where(of_judge < 0, len(judges), of_judge)
        judges += ("votes",)
    result = _results(frame, where, named, first, second)
    turn = np.maximum(turn, 0)
    return PairVerdicts.of_columns(
        items, models, judges, of_item, first, second, of_judge, result, turn
    )


def _numbered(cells: pd.Series[Any] | None, n: int) -> tuple[tuple[str, ...], Indices]:
    """Number the distinct texts of n cells by appearance; -1 where a cell is empty or missing."""
    if cells is None:
        return (), np.full(n, -1, np.intp)
    try:
        codes, values = pd.factorize(cells)
    except TypeError:  # lists and objects
        codes, values = pd.factorize(cells.map(str, na_action="ignore"))
    numbers: dict[str, int] = {}
    texts = (str(value).strip() for value in values)
    places = [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts]
    return tuple(numbers), np.array([*places, -1], np.intp)[codes]


def _results(
    frame: pd.DataFrame, where: str, models: tuple[str, ...], first: Indices, second: Indices
) -> Floats:
    """Return the result of the first model of each vote, nan where it is unreadable.

    The winner is a side, or one of ``models``, even one that is called like a side.
    """
    words, winner = _numbered(frame["winner"], len(frame))
    result = np.full(len(frame), np.nan)
    for number, word in enumerate(words):
        votes = winner == number
        side = word.lower().removesuffix(".0")
        if word in models:
            model = models.index(word)
            result[votes & (first == model)] = WIN
            result[votes & (second == model)] = LOSS
            wrong = votes & (first != model) & (second != model)
        else:
            result[votes] = _SIDES.get(side, np.nan)
            wrong = votes & (side not in _SIDES)
        fault = f"the winner {quoted(word)} is neither a model of the row, nor a side, nor tie"
        _refuse(frame, where, wrong, f"{fault}; correct it")
    return result


def _refuse(frame: pd.DataFrame, where: str, wrong: Flags, fault: str) -> None:
    if wrong.any():
        raise DataError(f"{where} row {frame.index[int(np.argmax(wrong))]}: {fault}")
