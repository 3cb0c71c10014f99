"""The main results of a board, a sentence each, and the ranks by every judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from markupsafe import Markup

from botchat.boards.board import Board
from botchat.boards.protocols import BesideHuman, Place
from botchat.boards.tables import LABEL_COLUMNS, Column, Table, elided, table
from botchat.records import HUMAN


@dataclass(frozen=True)
class Fact:
    """One result, and the part of the page that shows it."""

    question: str
    answer: Markup
    figure: str
    """Name of the figure that shows it."""
    part: str
    """Id of the part of the page to link to where there is no such figure."""


def glance(board: Board) -> list[Fact]:
    """The answers that the board has numbers for."""
    found = (_best(board), _breaking(board), _beside_people(board), _judge(board))
    return [fact for fact in found if fact]


def _best(board: Board) -> Fact | None:
    for arena in board.arenas:
        n = arena.turns
        frame = arena.table.frame.dropna(subset="bt").sort_values("bt", ascending=False)
        if frame.empty:
            continue
        best = frame[frame["bt_group"] == 1]
        first = best.iloc[0]
        rating = f"{first['bt']:.0f} points"
        if not pd.isna(first["bt_low"]):
            rating += f", 95 % interval {first['bt_low']:.0f} to {first['bt_high']:.0f}"
        others = len(frame) - 1
        if len(best) == 1:
            whom = "the other one" if others == 1 else f"all {others} others"
            said = Markup("{} ({}), clearly better than {} at N = {}.")
        else:
            whom = _listed([name for name in best["model"] if name != first["model"]])
            said = Markup("{} is ahead ({}), but not clearly better than {} at N = {}.")
        said = said.format(_name(first["model"]), rating, whom, n)
        return Fact("Who is best?", said, "bradley-terry", "tables")
    for part in board.of(Place):
        n, success = next(iter(part.table.by_n().items()))
        frame = _models(part.table).dropna(subset=success.key)
        if len(frame):
            row = frame.iloc[0]
            said = Markup("{}: {:.1f} % of {:,} dialogues pass as human for {} utterances.").format(
                _name(row["model"]),
                100 * row[success.key],
                row[part.table.column(role="readable", of=success.key).key],
                n,
            )
            return Fact("Who lasts longest?", said, "success-rates", "tables")
    return None


def _breaking(board: Board) -> Fact | None:
    survival = next((part.survival for part in board.of(Place)), None)
    if survival is None or not len(frame := _models(survival)):
        return None
    parts = [_half(row) for _, row in (frame.iloc[[0, -1]] if len(frame) > 1 else frame).iterrows()]
    said = Markup("; ").join(parts)
    said = Markup("{}{}.").format(said[:1].upper(), said[1:])
    return Fact("Where do dialogues break?", said, "survival", "tables")


def _half(row: pd.Series) -> Markup:
    name = _name(row["model"])
    if pd.isna(row["half"]):
        share = 100 * row["accused"] / row["dialogues"]
        return Markup("{:.0f} % of {}’s dialogues are ever accused").format(share, name)
    return Markup("half of {}’s dialogues are accused by utterance {}").format(name, row["half"])


def _beside_people(board: Board) -> Fact | None:
    part = next(iter(board.of(BesideHuman)), None)
    if part is None or not len(frame := part.table.frame.dropna(subset="win_or_tie")):
        return None
    row = frame.iloc[0]
    said = Markup("{} wins or ties in {:.1f} % of {:,} comparisons with the human dialogue.")
    said = said.format(_name(row["model"]), 100 * row["win_or_tie"], row["readable"])
    return Fact("How close to people?", said, part.protocol.name, "tables")


def _judge(board: Board) -> Fact | None:
    if board.judge_health is None:
        return None
    frame = board.judge_health.frame
    parts = []
    if frame["consistency"].notna().any():
        worst = 100 * frame["consistency"].min()
        parts.append(Markup("says the same in both orders for {:.0f} % of pairs").format(worst))
    if frame["false_alarms"].notna().any():
        alarms = 100 * frame["false_alarms"].max()
        parts.append(Markup("accuses {:.1f} % of human dialogues").format(alarms))
    unreadable = 100 * frame["unreadable"].sum() / frame["judged"].sum()
    parts.append(Markup("leaves {:.1f} % of verdicts unreadable").format(unreadable))
    said = Markup("{} {}.").format(_name(board.judge), Markup(", ").join(parts))
    return Fact("Is the judge any good?", said, "judge-health", "judges")


def _models(table: Table) -> pd.DataFrame:
    return table.frame[table.frame["model"] != HUMAN]


def _listed(names: Sequence[str]) -> Markup:
    shown = [_name(name) for name in names[:3]]
    if len(names) > len(shown):
        shown.append(Markup("{} more").format(len(names) - len(shown)))
    *most, last = shown
    return Markup("{} and {}").format(Markup(", ").join(most), last) if most else last


def _name(name: str) -> Markup:
    return Markup("<bdi>{}</bdi>").format(elided(name, LABEL_COLUMNS))


def ranks(boards: Sequence[Board]) -> Table:
    """Rank of every contestant by every judge, and the number that it is by."""
    names = dict.fromkeys(name for board in boards for name in board.main.frame["model"])
    return table(
        "judges-ranks",
        "Every contestant by every judge",
        [
            Column("model", "Model", "name", getter=str),
            *(column for i, board in enumerate(boards) for column in _by_judge(i, board)),
        ],
        names,
        [signature for board in boards for signature in board.main.signatures],
    )


def _by_judge(i: int, board: Board) -> Iterator[Column]:
    """The rank and the number that it is by, of the judge with this number."""
    rank = board.main.column(role="rank")
    yield replace(
        rank,
        key=f"rank_{i}",
        heading=f"Rank by {board.judge}",
        of=f"value_{i}",
        getter=board.main.values(rank.key).get,
    )
    if rank.of:
        by = board.main.column(rank.of)
        yield replace(by, key=f"value_{i}", getter=board.main.values(by.key).get)
