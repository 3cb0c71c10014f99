"""Votes from a table: of BotChat, LMArena, MT-Bench, AlpacaEval, Arena-Hard and evalica.

A file becomes a frame, the frame a row a vote by its shape in ``columns.toml``, and the rows
columns of votes. No row ends the reading: what cannot be read is counted and named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from botchat.errors import DataError, MissingDataError, listed, one_line
from botchat.estimates import Flags, Floats, Indices, Names
from botchat.importers.tables import COLUMNS, FileTable, quoted, read_table
from botchat.metrics.verdicts import LOSS, TIE, WIN, Numbers, PairVerdicts
from botchat.workspace import jsonl

MAX_MODELS = 1000
MAX_NAME = 200  # characters of a model's name


class _Game(msgspec.Struct, frozen=True):
    """Columns of one vote of a row; see ``columns.toml``."""

    first: str
    second: str
    winner: str
    swapped: bool = False
    at: int | None = None


class _Shape(msgspec.Struct, frozen=True):
    """A layout of files; see ``columns.toml``."""

    name: str
    needs: set[str]
    games: list[_Game]


_NAMES = COLUMNS["votes"]
_SHAPES = msgspec.convert(_NAMES["shapes"], list[_Shape])
_STRONG = {*_NAMES["strong_first"], *_NAMES["strong_second"]}
_SIDES: dict[str, float] = {
    **dict.fromkeys(_NAMES["first"] + _NAMES["strong_first"], WIN),
    **dict.fromkeys(_NAMES["second"] + _NAMES["strong_second"], LOSS),
    **dict.fromkeys(_NAMES["tie"], TIE),
    **dict.fromkeys(_NAMES["unreadable"], np.nan),
}
"""Winner -> result of the first model."""
_COLUMNS = {*_NAMES["others"], *_NAMES["rates"], *_NAMES["items"], *_NAMES["judges"]}
for _shape in _SHAPES:
    _COLUMNS |= _shape.needs


@dataclass(frozen=True)
class VotesFile:
    """Votes of a file, or of several."""

    votes: PairVerdicts
    notes: list[str]
    """Lines on what was read, first the number of rows, and on what was left out and why."""


def is_rates(frame: pd.DataFrame) -> bool:
    """Return whether a table has win rates of pairs, not votes."""
    return set(_NAMES["rates"]) <= set(frame)


def votes_in(path: Path) -> FileTable:
    """Read a file of votes or rates; `MissingDataError` without one, `DataError` if unreadable."""
    if not path.exists():
        raise MissingDataError(
            f"no file {path}; name a csv, tsv, json, jsonl or parquet of votes, such as "
            "item,first,second,judge,verdict"
        )
    return read_table(jsonl.content(path), str(path), _COLUMNS)


def read_votes(data: bytes, where: str) -> VotesFile:
    """Read a file of votes; raises `DataError` for what is none."""
    return votes_of(read_table(data, where, _COLUMNS), where)


def together(files: Sequence[VotesFile]) -> VotesFile:
    """Return the votes of several files, with a line on those that repeat one."""
    votes = PairVerdicts.together([file.votes for file in files])
    notes: list[str] = []
    for file in files:
        notes += file.notes
    n_earlier = np.count_nonzero(~votes.is_latest)
    if n_earlier:
        notes.append(
            f"{n_earlier:,} of {len(votes):,} votes were given again by the same judge on the same "
            "item and order: ratings count all, agreement the last"
        )
    return VotesFile(votes, notes)


def votes_of(table: FileTable, where: str) -> VotesFile:
    """Read the votes of a table; raises `DataError` if it has none."""
    names = [str(name) for name in table.frame]
    shape = next((each for each in _SHAPES if each.needs.issubset(names)), None)
    if shape is None or table.frame.empty:
        raise DataError(
            f"{where}: no votes (columns: {', '.join(names + table.others)[:120]}); name them "
            "model_a,model_b,winner or item,first,second,judge,verdict (docs/rank.md)"
        )
    cells, used = _unfolded(table.frame, shape)
    try:
        votes, counts, notes = _votes(cells, shape)
    except Exception as error:  # each library raises its own for odd cells
        fault = f"cells that cannot be read ({one_line(error)}); write texts or numbers"
        raise DataError(f"{where}: {fault}") from None
    head = f"{shape.name}: {len(table.frame):,} rows read"
    if len(cells) > len(table.frame):
        head += f" as {len(cells):,} votes"
    head += f"; {'; '.join(counts) or 'nothing left out'}"
    if not len(votes):
        raise DataError(f"{where}: {head}: nothing is left to rank")
    notes += _lacking(votes, [name for name in names if name not in used] + table.others)
    return VotesFile(votes, [f"{where}: {note}" for note in (head, *notes)])


def _lacking(votes: PairVerdicts, unused: list[str]) -> list[str]:
    """Return lines on columns that are not used, and models without a readable vote."""
    notes = []
    if unused:
        notes.append(f"columns not used: {listed(unused)}")
    rated = votes.only(votes.readable).judged_contestants
    lost = [name for name in votes.judged_contestants if name not in rated]
    if lost:
        notes.append(f"no rating of {listed(lost)}: no vote on them is readable")
    return notes


def _unfolded(frame: pd.DataFrame, shape: _Shape) -> tuple[pd.DataFrame, set[str]]:
    """Return a row a vote, under the names of `_Game` and ``item``, ``judge``; and columns used."""
    if "baseline" not in frame:
        frame = frame.assign(baseline="baseline")
    sources = {name: name for name in _NAMES["others"]}
    for key, names in (("item", _NAMES["items"]), ("judge", _NAMES["judges"])):
        sources[key] = key
        if key not in shape.needs:
            sources[key] = next((name for name in names if name in frame), key)
    used = shape.needs | set(sources.values())
    parts = []
    for game in shape.games:
        columns = {"first": game.first, "second": game.second, "winner": game.winner, **sources}
        part = pd.DataFrame({key: frame[name] for key, name in columns.items() if name in frame})
        part["swapped"] = game.swapped
        if game.at is not None:
            scores = [_score(games, game.at) for games in part["winner"]]
            part["winner"] = pd.Series(scores, part.index, dtype=object)
        parts.append(part)
    return pd.concat(parts).sort_index(kind="stable"), used


def _score(games: Any, at: int) -> object:
    """Return the score of one of Arena-Hard's games of a row; None where it has none."""
    try:
        return games[at]["score"]
    except (LookupError, TypeError):
        return None


def _votes(cells: pd.DataFrame, shape: _Shape) -> tuple[PairVerdicts, list[str], list[str]]:
    """Return the votes that count, and lines on those that do not and on how they were read."""
    n = len(cells)
    notes = []
    both = pd.concat([cells["first"], cells["second"]], ignore_index=True)
    models, sides, changed = _numbered(both, 2 * n)
    longest = max(models, key=len, default="")
    if len(models) > MAX_MODELS or len(longest) > MAX_NAME:
        raise ValueError(
            f"{len(models):,} names of models, such as {quoted(longest)}; at most "
            f"{MAX_MODELS:,}, each of {MAX_NAME} characters, can be rated"
        )
    if changed:
        notes.append(f"names are read without invisible characters: {listed(changed)}")
    first, second = np.split(sides, 2)
    items, item, _ = _numbered(cells.get("item"), n)
    judges, judge, _ = _numbered(cells.get("judge"), n)
    is_nameless = judge < 0
    _, turn, _ = _numbered(cells.get("turn"), n)
    kept, weight, counts = _kept(cells, first, second)
    if "verdict" in shape.needs:  # BotChat's own are of an item and a judge
        is_lacking = kept & ((item < 0) | is_nameless)
        counts += _counted("left out {} without an item or judge", is_lacking, cells)
        kept &= ~is_lacking
    result, is_strong = _results(cells, shape, models, sides)
    is_unknown = kept & np.isinf(result)
    is_empty = kept & np.isnan(result)
    counts += _counted("{} without a readable verdict", is_empty, cells)
    counts += _counted("{} with an unknown winner", is_unknown, cells)
    if is_unknown.any():
        known = [quoted(word) for word in pd.unique(cells.loc[is_unknown, "winner"].map(str))]
        counts[-1] += f" {listed(known)}"
    result[np.isinf(result)] = np.nan
    times = _NAMES["strong_weight"]
    weight = np.where(is_strong, times * weight, weight)
    n_strong = np.count_nonzero(kept & is_strong)
    if n_strong:
        notes.append(f"{n_strong:,} strong wins (A>>B) count {times} times, as Arena-Hard counts")
    if is_nameless.any():
        judge[is_nameless] = len(judges)
        judges += ("votes",)
    swapped = cells["swapped"].to_numpy()
    votes = PairVerdicts.of_columns(
        items,
        models,
        judges,
        item,
        np.where(swapped, second, first),
        np.where(swapped, first, second),
        judge,
        np.where(swapped, 1 - result, result),
        np.maximum(turn, 0),
    )
    return replace(votes, weight=weight).only(kept), counts, notes


def _kept(cells: pd.DataFrame, first: Indices, second: Indices) -> tuple[Flags, Floats, list[str]]:
    """Return which votes count, the weight of each, and lines on those that do not count."""
    weight = np.ones(len(cells))
    if "weight" in cells:
        weight = pd.to_numeric(cells["weight"].map(str), errors="coerce").to_numpy(np.float64)
    reasons = {
        "without a name of a model": (first < 0) | (second < 0),
        "of a model against itself": first == second,
        "whose weight is no number above 0": ~((weight > 0) & (weight < np.inf)),
    }
    if "anony" in cells:
        is_open = cells["anony"].astype(str).str.lower() == "false"
        reasons["not anonymous"] = is_open.to_numpy()
    kept = np.ones(len(cells), np.bool_)
    counts = []
    for reason, wrong in reasons.items():
        counts += _counted(f"left out {{}} {reason}", wrong & kept, cells)
        kept &= ~wrong
    return kept, weight, counts


def _results(
    cells: pd.DataFrame, shape: _Shape, models: Names, sides: Indices
) -> tuple[Floats, Flags]:
    """Return the result of the first of each vote, and whether it is a strong win.

    NaN is unreadable, infinity a word that is not known. ``sides``: numbers of all first models,
    then of all second ones.
    """
    first, second = np.split(sides, 2)
    words, winner, _ = _numbered(cells["winner"], len(cells))
    read = _side
    if "preference" in shape.needs:
        read = _preference
    # A winner may be a model's name, even one that is called like a side.
    results = np.array([*(read(word.lower().removesuffix(".0")) for word in words), np.nan])
    place = {name: number for number, name in enumerate(models)}
    if "verdict" in shape.needs:  # BotChat's own names none
        place = {}
    model = np.array([*(place.get(word, -1) for word in words), -1])[winner]
    by_name = np.where(model == first, WIN, np.where(model == second, LOSS, np.inf))
    result = np.where(model < 0, results[winner], by_name)
    is_strong = np.array([word.lower() in _STRONG for word in (*words, "")])[winner]
    return result, is_strong


def _counted(text: str, flags: Flags, cells: pd.DataFrame) -> list[str]:
    """Return a text with the number of flagged rows and the first of them; none without any."""
    if not flags.any():
        return []
    first = cells.index[int(np.argmax(flags))]
    return [f"{text.format(f'{np.count_nonzero(flags):,}')} (first: row {first})"]


def _numbered(cells: pd.Series[Any] | None, n: int) -> tuple[Names, Indices, list[str]]:
    """Number the distinct texts of n cells by appearance; -1 where a cell is empty or missing.

    Also returns the texts that have invisible characters, which are left out.
    """
    if cells is None:
        return (), np.full(n, -1, np.intp), []
    try:
        codes, values = pd.factorize(cells)
    except (TypeError, NotImplementedError):  # lists and objects
        codes, values = pd.factorize(cells.map(str, na_action="ignore"))
    numbers = Numbers()
    places = []
    changed = []
    for value in values:
        text = str(value).strip()
        name = _folded(text)
        if name != text:
            changed.append(quoted(text))
        place = -1
        if name:
            place = numbers[name]
        places.append(place)
    return tuple(numbers), np.array([*places, -1], np.intp)[codes], changed


def _folded(text: str) -> str:
    """Return a text without invisible characters, each in its usual form, blanks as one."""
    if text.isascii():
        return text
    seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return " ".join(unicodedata.normalize("NFC", seen).split())


def _side(word: str) -> float:
    """Return the result of the first for a word; infinite for one that is not known."""
    return _SIDES.get(word, np.inf)


def _preference(word: str) -> float:
    """Return the result of the first for a number from 1, the first, to 2; 0 is an old tie."""
    if word in _SIDES:
        return _SIDES[word]
    try:
        number = float(word)
    except ValueError:
        return np.inf
    if number == 0:
        return TIE
    if 1 <= number <= 2:
        return 2 - number
    return np.inf
