"""Votes from a table: of BotChat, LMArena, MT-Bench, AlpacaEval, Arena-Hard and evalica.

A file becomes a frame, the frame a row a vote by its shape in ``columns.toml``, and the rows
columns of votes. No row ends the reading: what cannot be read is counted and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from botchat.errors import DataError, MissingDataError, listed, one_line, quoted
from botchat.estimates import Floats, Indices, Names
from botchat.frames import TomlTable, fill_lines
from botchat.importers.tables import COLUMNS, FileTable, folded, read_table
from botchat.metrics.verdicts import LOSS, TIE, WIN, Numbers, PairVerdicts
from botchat.workspace import jsonl

MAX_MODELS = 1000
MAX_NAME = 200  # characters of a model's name
NAMELESS = "votes"
"""Judge of votes that name none."""


class _Game(TomlTable, frozen=True):
    """Columns of one vote of a row; see ``columns.toml``."""

    first: str
    second: str
    winner: str
    swapped: bool = False
    at: int | None = None


class _Shape(TomlTable, frozen=True):
    """A layout of files; see ``columns.toml``."""

    name: str
    needs: set[str]
    games: list[_Game]


_NAMES = COLUMNS["votes"]
_SHAPES = msgspec.convert(_NAMES["shapes"], list[_Shape])
_CELLS: dict[str, list[str]] = _NAMES["cells"]
READ_COLUMNS = set(_NAMES["rates"]).union(*_CELLS.values(), *[each.needs for each in _SHAPES])
WORDS: dict[str, tuple[float, float]] = {"": (np.nan, 1.0)}
for _key, _meaning in _NAMES["meanings"].items():
    WORDS |= dict.fromkeys(_NAMES[_key], _meaning)
"""Word for a winner -> result of the first model, and how often it counts."""
_UNKNOWN = (np.inf, 1.0)


class VotesFile(NamedTuple):
    """Votes of a file, or of several."""

    votes: PairVerdicts
    notes: list[str]
    """Lines on what was read, first the number of rows, and on what was left out and why."""


def votes_in(path: Path) -> FileTable:
    """Read a file of votes or rates; `MissingDataError` without one, `DataError` if unreadable."""
    if not path.exists():
        raise MissingDataError(
            f"no file {path}; name a csv, tsv, json, jsonl or parquet of votes, such as "
            "item,first,second,judge,verdict"
        )
    return read_table(jsonl.content(path), str(path), READ_COLUMNS)


def together(files: Sequence[VotesFile]) -> VotesFile:
    """Return the votes of several files, of a judge the last on an item and order."""
    votes = PairVerdicts.together([file.votes for file in files])
    notes = list(chain.from_iterable(file.notes for file in files))
    kept = votes.only(votes.is_latest | np.isin(votes.judges, NAMELESS)[votes.judge])
    n_earlier = len(votes) - len(kept)
    if n_earlier:
        notes.append(
            f"{n_earlier:,} of {len(votes):,} votes were given again by the same judge on the same "
            "item and order: the last counts"
        )
    return VotesFile(kept, notes)


def votes_of(table: FileTable) -> VotesFile:
    """Read the votes of a table; raises `DataError` if it has none."""
    where, frame, others = table
    names = frame.columns.tolist()
    if not len(frame):
        raise DataError(f"{where}: no rows; each vote is one, below the names of the columns")
    shape = next((each for each in _SHAPES if each.needs.issubset(names)), None)
    if shape is None:
        raise DataError(
            f"{where}: no votes (columns: {', '.join(names + others)[:120]}); name them "
            "model_a,model_b,winner or item,first,second,judge,verdict (docs/rank.md)"
        )
    used = set(shape.needs)
    try:
        cells = _unfolded(frame, shape, used)
        votes, faults, notes = _votes(cells, shape)
        if "games" in shape.needs:
            # What Arena-Hard's games do not tell, or tell beyond both orders.
            n_longer = np.count_nonzero(frame["games"].str.len() > 2)
            notes += fill_lines("importers/notes_on_games.txt", n_longer=n_longer, columns=frame)
    except Exception as error:  # each library raises its own for odd cells
        raise DataError(
            f"{where}: cells that cannot be read ({one_line(error)}); write texts or numbers"
        ) from None
    rated = votes.only(votes.readable).judged_contestants
    lines = fill_lines(
        "importers/notes_on_votes.txt",
        shape=shape,
        n_rows=len(frame),
        n_votes=len(cells),
        faults=faults,
        notes=notes,
        unused=[name for name in names if name not in used] + others,
        lost=sorted(set(votes.judged_contestants).difference(rated)),
    )
    if not len(votes):
        raise DataError(f"{where}: {lines[0]}: nothing is left to rank")
    return VotesFile(votes, [f"{where}: {note}" for note in lines])


def _unfolded(frame: pd.DataFrame, shape: _Shape, used: set[str]) -> pd.DataFrame:
    """Return a row a vote: what a `_Game` has, and `_CELLS`, whose columns are added to ``used``.

    Without a column a vote counts once, and all else is empty.
    """
    cells = pd.DataFrame(index=frame.index)
    for name, known in _CELLS.items():
        source = name
        if name not in used:
            source = next((each for each in known if each in frame), name)
        cells[name] = frame.get(source, "1" if name == "weight" else "")
        used.add(source)
    parts = []
    for game in shape.games:
        winner = frame[game.winner]
        if game.at is not None:
            winner = winner.str[game.at].str.get("score")
        parts.append(
            cells.assign(
                first=frame.get(game.first, "baseline"),
                second=frame.get(game.second, "baseline"),
                winner=winner,
                swapped=game.swapped,
            )
        )
    return pd.concat(parts).sort_index(kind="stable")


def _votes(cells: pd.DataFrame, shape: _Shape) -> tuple[PairVerdicts, list[str], list[str]]:
    """Return the votes that count, and lines on those that do not and on how they were read."""
    names = pd.concat([cells["first"], cells["second"]], ignore_index=True)
    models, sides = _numbered(names)
    longest = max(models, key=len, default="")
    if len(models) > MAX_MODELS or len(longest) > MAX_NAME:
        raise ValueError(
            f"{len(models):,} names of models, such as {quoted(longest)}; at most "
            f"{MAX_MODELS:,}, each of {MAX_NAME} characters, can be rated"
        )
    texts = {str(name).strip() for name in pd.unique(names)}
    changed = sorted(quoted(text) for text in texts if text != folded(text))
    first, second = np.split(sides, 2)
    items, item = _numbered(cells["item"])
    judges, judge = _numbered(cells["judge"])
    result, times = _results(cells, shape, models, first, second)
    weight = pd.to_numeric(cells["weight"].map(str), errors="coerce").to_numpy(np.float64)
    is_own = "verdict" in shape.needs  # BotChat's own are of an item and a judge
    is_lost = {
        "left out {} without a name of a model": (first < 0) | (second < 0),
        "left out {} of a model against itself": first == second,
        "left out {} whose weight is no usable number above 0": ~((weight > 0) & (weight < 1e100)),
        "left out {} not anonymous": cells["anony"].map(str).str.lower() == "false",
        "left out {} without an item or judge": is_own & ((item < 0) | (judge < 0)),
    }
    lost = pd.DataFrame(is_lost, cells.index)
    kept = ~np.any(lost.to_numpy(), axis=1)
    is_unknown = np.isinf(result) & kept
    words = listed(map(quoted, pd.unique(cells.loc[is_unknown, "winner"].map(str))))
    lost["{} without a readable verdict"] = np.isnan(result) & kept
    lost[f"{{}} with an unknown winner {words}"] = is_unknown
    n_strong = np.count_nonzero((times > 1) & kept)
    notes = fill_lines(
        "importers/notes_on_names.txt", changed=changed, n_strong=n_strong, most=times.max()
    )
    votes = PairVerdicts.of_columns(
        items,
        models,
        (*judges, NAMELESS),
        item,
        first,
        second,
        np.where(judge < 0, len(judges), judge),
        np.where(np.isinf(result), np.nan, result),
    )
    turn = np.maximum(_numbered(cells["turn"])[1], 0)
    votes = replace(votes, turn=turn, weight=weight * times).only(kept)
    return votes, _counted(lost), notes


def _counted(lost: pd.DataFrame) -> list[str]:
    """Return a line a reason that has votes, with their number and the first of their rows."""
    lines = []
    for text, flags in lost.items():
        if flags.any():
            line = str(text).replace("{}", f"{flags.sum():,}", 1)
            lines.append(f"{line} (first: row {flags.idxmax()})")
    return lines


def _results(
    cells: pd.DataFrame, shape: _Shape, models: Names, first: Indices, second: Indices
) -> tuple[Floats, Floats]:
    """Return the result of the first of each vote, and how often it counts.

    NaN is unreadable, infinity (or less it) a word that is not known.
    """
    words, winner = _numbered(cells["winner"])
    # A winner may be a model's name, even one that is called like a side; BotChat's own names none.
    number: dict[str, int] = {}
    if "verdict" not in shape.needs:
        number = {name: n for n, name in enumerate(models)}
    meanings = []
    for word in (*words, ""):
        meaning = _meaning_of(word.lower().removesuffix(".0"), shape)
        if word in number:
            meaning = _UNKNOWN
        meanings.append([*meaning, number.get(word, np.nan)])
    result, times, model = np.array(meanings)[winner].T
    result = np.where(cells["swapped"], 1 - result, result)
    return np.select([model == first, model == second], [WIN, LOSS], result), times


def _meaning_of(word: str, shape: _Shape) -> tuple[float, float]:
    """Return what `WORDS` has; of a preference, a number from 1, the first, to 2, or 0, a tie."""
    if word not in WORDS and "preference" in shape.needs:
        number = pd.to_numeric(word, errors="coerce")
        if number == 0:
            return TIE, 1.0
        if 1 <= number <= 2:
            return 2 - number, 1.0
    return WORDS.get(word, _UNKNOWN)


def _numbered(cells: pd.Series[Any]) -> tuple[Names, Indices]:
    """Number the distinct texts of cells by appearance; -1 where one is empty or missing."""
    try:
        codes, values = pd.factorize(cells)
    except (TypeError, NotImplementedError):  # lists and objects
        codes, values = pd.factorize(cells.map(str, na_action="ignore"))
    numbers = Numbers()
    places = []
    for value in values:
        text = folded(str(value))
        places.append(numbers[text] if text else -1)
    return tuple(numbers), np.array([*places, -1], np.intp)[codes]
