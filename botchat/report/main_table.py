"""The table of the first screen: one line a contestant, an interval drawn beside each number.

Every number links to the cases behind it, in the reader or head to head. Positions are in percent
of a cell's width, so that a cell can be of any width and its text never scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from botchat.boards.board import Board
from botchat.boards.fingerprint import TOLD
from botchat.boards.names import LABEL_COLUMNS, is_floor_bot, labels
from botchat.boards.protocols import BesideHuman, Part, Place
from botchat.boards.tables import Column, Table
from botchat.records import HUMAN
from botchat.report.plane import Interval, widened

SHOWN = 7
"""Columns that are shown until the reader chooses."""

SURVIVAL = "survival"

_EDGE = 3.0
"""Percent of a cell that stays free on both sides."""


@dataclass(frozen=True)
class Bar:
    """A number and its interval, in percent of the cell's width."""

    at: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval."""
        return round(self.high - self.low, 2)


@dataclass(frozen=True)
class Head:
    """A column's heading."""

    key: str
    heading: str
    meaning: str
    kind: str
    shown: bool
    """Without being asked for."""
    room: int
    """0: at every width, 1: not on a phone, 2: on wide screens only."""


@dataclass(frozen=True)
class Cell:
    """One number as it is shown."""

    text: str
    title: str = ""
    href: str = ""
    bar: Bar | None = None
    path: str = ""
    """Of a survival curve, in a box of 100 by 20."""
    value: str = ""
    """The exact number, to sort by and for files; empty: missing."""
    low: str = ""
    high: str = ""


@dataclass(frozen=True)
class Line:
    """One contestant."""

    name: str
    label: str
    href: str
    is_human: bool
    is_floor: bool
    cells: Sequence[Cell]


@dataclass(frozen=True)
class MainTable:
    """What the first screen shows of a board's main table."""

    heads: Sequence[Head]
    lines: Sequence[Line]
    people: Bar | None
    """Where people stand among the ratings."""


def address(judge: str, view: str = "", **parts: str) -> str:
    """A link into the page; empty parts are left out, as `botchat.link` of the page does."""
    told = {"view": view, **parts, "judge": judge}
    return "#" + urlencode({key: value for key, value in told.items() if value})


def main_table(
    board: Board, judge: str = "", view: str = "", people: Interval | None = None
) -> MainTable:
    """The first screen's table of a board.

    ``judge``: for links, empty for the judge that the page opens with. ``view``: the reader's first
    protocol; empty: there is no archive to link to. ``people``: rating of people with its interval.
    """
    main = board.main
    parts = {part.quote(column).key: part for part in board.parts for column in part.table.columns}
    parts |= {part.coverage.key: part for part in board.parts if part.quoted}
    columns = [c for c in main.headline if c.kind != "name" and c.role not in ("reason",)]
    rank, *others = columns
    first = _first(main, rank)
    known = [first] if first else []
    known += [c for c in others if first is None or c.key != first.key]
    survival = next((part for part in board.of(Place) if part.survival is not None), None)
    chosen = _chosen(known, parts)
    scale = _scale(main, first, people)
    names = list(main.frame["model"])
    short = dict(zip(names, labels(names, LABEL_COLUMNS), strict=True))

    def target(name: str, column: Column) -> str:
        return _target(name, parts.get(column.key), column, judge, view) if view else ""

    heads = [
        Head(rank.key, rank.heading, _RANK, "rank", True, 0),
        *(
            Head(
                column.key,
                column.heading,
                column.meaning,
                column.kind,
                column.key in chosen,
                chosen.get(column.key, 2),
            )
            for column in known
        ),
    ]
    drawn = Head(SURVIVAL, "Still taken for human", _SURVIVAL, "curve", True, 1)
    if survival:
        heads.insert(2 if first else 1, drawn)
    written = {column.key: main.written(column.key) for column in (rank, *known)}
    lines = []
    for i, name in enumerate(names):
        cells = [
            _cell(main, column, i, written[column.key][i], target(name, column), scale)
            for column in (rank, *known)
        ]
        if name == HUMAN and people and scale:
            cells[1] = _people(people, scale, board, judge if view else None)
        if survival:
            cells.insert(2 if first else 1, _curve(survival, name, judge, view))
        to = address(judge, view, a=name) if view else ""
        lines.append(Line(name, short[name], to, name == HUMAN, is_floor_bot(name), cells))
    placed = _placed(lines, people, main, first)
    return MainTable(heads, placed, interval_bar(people, scale) if people and scale else None)


_RANK = "the places that the comparisons leave open, of all ranks at once (95 %)"
_SURVIVAL = "share of dialogues not accused yet, from the first to the last utterance"


def _first(main: Table, rank: Column) -> Column | None:
    """What the table is ranked by."""
    return next((column for column in main.columns if column.key == rank.of), None)


def _chosen(known: Sequence[Column], parts: Mapping[str, Part]) -> dict[str, int]:
    """Keys of the columns that are shown unasked -> the room they take (`Head.room`)."""
    found: dict[str, int] = {}
    seen: list[str] = []
    for column in known:
        part = parts.get(column.key)
        if part is None or part.protocol.base in seen or column.role != "value":
            continue
        seen.append(part.protocol.base)
        found[column.key] = 2 if isinstance(part, BesideHuman) or len(found) > 1 else 0
    for column in known:  # where there are few protocols there is room for more of each
        if column.key in parts and column.role == "value" and len(found) < SHOWN - 3:
            found.setdefault(column.key, 2)
    unjudged = [column.key for column in known if column.key in ("flagged", TOLD.key)]
    kept = list(found)[: SHOWN - 3 - len(unjudged)]
    return {key: found[key] for key in kept} | dict.fromkeys(unjudged, 2)


def _scale(
    main: Table, first: Column | None, people: Interval | None
) -> tuple[float, float] | None:
    """The least and the greatest rating that is drawn; at least 40 apart."""
    if first is None or first.kind != "rating":
        return None
    ends = main.ends(first.key)
    keys = [first.key, *(end.key for end in ends or ())]
    values = main.frame[keys].to_numpy(dtype=float, na_value=np.nan).ravel().tolist()
    values = [value for value in (*values, *(people or ())) if np.isfinite(value)]
    if not values:
        return None
    return widened(min(values), max(values), 40, 200)


def interval_bar(told: Interval, scale: tuple[float, float]) -> Bar:
    """A number and the ends of its interval on a scale from its low to its high end."""
    low, high = scale
    room = 100 - 2 * _EDGE
    at, left, right = (
        round(_EDGE + room * (min(max(value, low), high) - low) / (high - low), 2) for value in told
    )
    return Bar(at, left, right)


def _cell(
    main: Table, column: Column, row: int, text: str, href: str, scale: tuple[float, float] | None
) -> Cell:
    """One number, with its interval where it has one."""
    value = main.frame[column.key].iloc[row]
    if pd.isna(value):
        return Cell("–")
    if column.role == "rank":
        return Cell(text, "", href, value=str(value))
    ends = [main.frame[end.key].iloc[row] for end in main.ends(column.key) or ()]
    title, bar, exact = f"{column.heading}: {text}", None, [f"{float(value):.6g}"]
    if ends and not any(map(pd.isna, ends)):
        title += f", 95 % interval {main.told_ends(column)[row]}"
        exact += [f"{float(end):.6g}" for end in ends]
        within = {"rate": (0.0, 1.0), "rating": scale}.get(column.kind)
        told = float(value), float(ends[0]), float(ends[1])
        bar = interval_bar(told, within) if within else None
    reasons = [c.key for c in main.columns if c.role == "reason" and c.of == column.key]
    said = [main.frame[key].iloc[row] for key in reasons]
    title += "".join(f" ({one})" for one in said if not pd.isna(one))
    short = f"{value:.0f}" if column.kind == "rating" else text
    return Cell(short, title, href, bar, "", *exact)


def _people(people: Interval, scale: tuple[float, float], board: Board, judge: str | None) -> Cell:
    """Where people stand, in the column of the ratings."""
    value, low, high = people
    title = f"People: {value:.0f}, 95 % interval {low:.0f} to {high:.0f}; placed by how models do "
    title += "beside people, at the length of people’s dialogues"
    beside = next(iter(board.of(BesideHuman)), None)
    to = ""
    if judge is not None and beside:
        to = address(judge, "pair", protocol=beside.protocol.name, a=HUMAN, of="all")
    exact = (f"{end:.6g}" for end in people)
    return Cell(f"{value:.0f}", title, to, interval_bar(people, scale), "", *exact)


def _curve(part: Place, name: str, judge: str, view: str) -> Cell:
    """A survival curve; the exact number is its mean, utterances survived as a share."""
    curve = part.curves.get(name)
    if curve is None:
        return Cell("–")
    surviving = curve.surviving[np.isfinite(curve.surviving)]
    half = curve.reached(0.5)
    title = f"half are accused by utterance {half}" if half else "most are never accused"
    to = address(judge, part.protocol.name, a=name, show="lose") if view else ""
    return Cell("", title, to, path=steps(surviving.tolist()), value=f"{surviving.mean():.6g}")


def steps(shares: Sequence[float], width: float = 100, height: float = 20) -> str:
    """The path of a curve that falls in steps, shares of 0 to 1, from the first utterance on."""
    pad, n = 1.0, len(shares)
    ys = [round(pad + (1 - share) * (height - 2 * pad), 2) for share in shares]
    told = [f"M0 {pad:g}"]
    for i, y in enumerate(ys):
        told.append(f"V{y:g}H{round(width * (i + 1) / n, 2):g}")
    return "".join(told)


def _target(name: str, part: Part | None, column: Column, judge: str, view: str) -> str:
    """Where the cases behind a number are read."""
    if part is None:
        return address(judge, view, a=name, show="flagged" if column.key == "flagged" else "")
    protocol, show = part.protocol, "read" if column.role == "coverage" else ""
    if protocol.shows == "one":
        if not show and isinstance(part, Place):
            show = f"win-{column.n or 'own'}"
        return address(judge, protocol.name, a=name, show=show)
    show = show.replace("read", "readable")
    if protocol.shows == "human" and name != HUMAN:
        return address(judge, "pair", protocol=protocol.name, a=name, b=HUMAN, show=show)
    return address(judge, "pair", protocol=protocol.name, a=name, of="all", show=show)


def _placed(
    lines: Sequence[Line], people: Interval | None, main: Table, first: Column | None
) -> list[Line]:
    """People in their place among the ratings, if it is known; else after the models."""
    models = [line for line in lines if not line.is_human]
    if people is None or first is None or len(models) == len(lines):
        return list(lines)
    ratings = main.values(first.key)
    before = [line for line in models if ratings[line.name] >= people[0]]
    humans = [line for line in lines if line.is_human]
    return [*before, *humans, *(line for line in models if line not in before)]
