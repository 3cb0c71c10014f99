"""The table of the first screen: one line a contestant, an interval drawn beside each number.

Its headings say what was done, not what it is called. Every number links to the cases behind it, in
the reader or head to head. Positions are in percent of a cell's width, so that a cell can be of any
width and its text never scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.headline import chance
from botchat.boards.names import LABEL_COLUMNS, is_floor_bot, labels
from botchat.boards.protocols import BesideHuman, Part, Place
from botchat.boards.tables import Column, Table
from botchat.protocols.catalogue import VOTES
from botchat.records import HUMAN

Interval = tuple[float, float, float]
"""A number and the ends of its interval."""

SHOWN = 7
"""Columns that are shown at most; the others are in files of tables."""

_EDGE = 1.0
"""Percent of a cell that stays free on both sides."""

_CELLS = 16
"""Most cells of the strip of places: each is one place, or as many as there must be."""

_RANK = "the places that are still possible, of all at once (95 %)"
_SURVIVAL = "share of chats not accused yet, from the first to the last line"


def address(judge: str, view: str = "", **parts: str) -> str:
    """A link into the page; empty parts are left out, as `botchat.link` of the page does."""
    told = {"view": view, **parts, "judge": judge}
    return "#" + urlencode({key: value for key, value in told.items() if value})


class Links(NamedTuple):
    """Makes links into the reader, of one judge; none where the page has no archive."""

    judge: str = ""
    """Empty: the one that the page opens with."""
    first: str = ""
    """The reader's first protocol; empty: there is no archive."""

    def to(self, view: str = "", **parts: str) -> str:
        """Into the reader, by default into its first protocol."""
        return address(self.judge, view or self.first, **parts) if self.first else ""

    def pair(self, protocol: str, **parts: str) -> str:
        """Into head to head."""
        return self.to("pair", protocol=protocol, **parts)


class Bar(NamedTuple):
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
    name: str
    """What tables and files call it."""
    meaning: str
    kind: str
    """Of a cell: ``rank``, ``rated``, ``stack``, ``curve`` or ``plain``."""
    label: str
    """In plain words."""
    short: str = ""
    """The same on a phone."""
    group: str = ""
    """What was done, over the first of its columns."""
    ticks: Sequence[tuple[float, str]] = ()
    """Of the scale of its bars: where, in percent, and what."""
    room: int = 2
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
    """The exact number, to sort by; empty: missing."""
    ends: str = ""
    """The interval as people read it: ``61–69``."""
    parts: Sequence[float] = ()
    """Percent of the cell that wins, ties and losses take; of places: free before, open."""


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
    average: float | None
    """Where an average model does, in percent."""
    slots: int
    """Cells of the strip of places."""


class BarScale(NamedTuple):
    """How the numbers of a column are drawn, and from where to where."""

    low: float
    high: float
    form: Callable[[float], float] = float

    def bar(self, told: Interval) -> Bar:
        """A number and its interval, what is outside at the edge."""
        shown = (min(max(self.form(value), self.low), self.high) for value in told)
        room = (100 - 2 * _EDGE) / (self.high - self.low)
        return Bar(*(round(_EDGE + room * (value - self.low), 2) for value in shown))

    def cell(self, told: Interval, title: str, href: str) -> Cell:
        """A number with its interval."""
        text, *ends = (f"{self.form(one):.0f}" for one in told)
        return Cell(text, title, href, self.bar(told), "", f"{told[0]:.6g}", "–".join(ends))


def main_table(board: Board, links: Links) -> MainTable:
    """The first screen's table of a board."""
    main = board.main
    parts = {part.quote(column).key: part for part in board.parts for column in part.table.columns}
    parts |= {part.coverage.key: part for part in board.parts if part.quoted}
    rank, *others = [c for c in main.headline if c.kind != "name" and c.role != "reason"]
    known = sorted(others, key=lambda column: column.key != rank.of)  # what it is ranked by first
    first = known[0] if known and known[0].key == rank.of else None
    rated = first if first is not None and first.kind == "rating" else None
    scale = _scale(main, rated, rating=True) if rated else None
    survival = next((part for part in board.of(Place) if part.curves), None)
    chosen = _chosen(known, parts, first)
    names = list(main.frame["model"])
    n = sum(name != HUMAN for name in names)

    heads = [Head(rank.key, "Place", _RANK, "rank", "Place", room=0)]
    cells, seen = [_places(main, rank, n)], {""}
    for column in known:
        key, part = column.key, parts.get(column.key)
        if key in chosen:
            group, label, short = _words(board, part, column)
            over = group if group not in seen else ""
            seen.add(over)
            results = _results(part) if part and key.endswith("win_or_tie") else None
            drawn = scale if column is rated else _scale(main, column) if main.ends(key) else None
            head = Head(
                key,
                f"{label}: {column.heading}" if column is rated else column.heading,
                column.meaning,
                "stack" if results is not None else "rated" if drawn else "plain",
                label,
                short,
                over,
                _ticks(drawn) if column is rated and drawn else (),
                chosen[key],
            )
            heads.append(head)
            to = [_target(name, part, column, links) for name in names]
            cells.append(_cells(main, column, to, drawn, results or {}))
        if survival is not None and part is survival:
            last = max(len(curve.surviving) for curve in survival.curves.values())
            marks = [(0, "1"), (50, str(last // 2)), (100, str(last))]
            told = ("survival", "Line by line", _SURVIVAL, "curve", "")
            heads.append(Head(*told, ticks=marks, room=1))
            cells.append([_curve(survival, name, links) for name in names])
            survival = None
    # Of votes names are whole: there is room.
    short_names = names if _of_votes(board) else labels(names, LABEL_COLUMNS)
    lines = [
        Line(name, short_names[i], links.to(a=name), name == HUMAN, is_floor_bot(name),
             [column[i] for column in cells])
        for i, name in enumerate(names)
    ]  # fmt: skip
    middle = scale.bar((1000.0,) * 3).at if scale and scale.low < 50 < scale.high else None
    return MainTable(heads, lines, middle, min(n, _CELLS))


def _of_votes(board: Board) -> bool:
    return bool(board.arenas) and board.arenas[0].protocol == VOTES


def _scale(main: Table, column: Column, *, rating: bool = False) -> BarScale:
    """``rating``: drawn as times in 100 that one is preferred to an average one."""
    form: Callable[[float], float] = float
    if rating or column.kind == "rate":
        form = (lambda x: 100 * chance(x)) if rating else (lambda x: 100 * x)
    keys = [column.key, *(end.key for end in main.ends(column.key) or ())]
    told = [*main.frame[keys].to_numpy(dtype=float, na_value=np.nan).flat]
    found = [form(value) for value in told if math.isfinite(value)] or [0.0, 100.0]
    low, high = min(found), max(found)
    if rating:
        return BarScale(max(0.0, 10 * (low // 10) - 2), min(100.0, 10 * -(-high // 10) + 2), form)
    if column.kind == "rate":
        return BarScale(0.0, max(10.0, min(100.0, 10 * -(-high // 10))), form)
    return BarScale(low, high if high - low >= 1e-6 else low + 1)


def _words(board: Board, part: Part | None, column: Column) -> tuple[str, str, str]:
    """What was done, what the number is of, and the same on a phone."""
    unit = board.utterance_lengths.unit
    if part is not None and part.protocol == VOTES and column.role == "readable":
        return "", "Votes", ""
    if part is None or column.role != "value":
        line = f"{unit.capitalize()} a line"
        return "", line if column.key == f"mean_{unit}" else column.heading, ""
    about, votes, n = part.protocol.about_ai, part.protocol == VOTES, column.n
    if isinstance(part, Arena) and (about or votes) and column.key.startswith("bt"):
        verb = "preferred to" if votes else "called more human than"
        return "Two models compared", f"{verb} an average model, of 100", "compared, of 100"
    if isinstance(part, Arena) and (about or votes) and column.key == "win_or_tie":
        return "Against everybody", "wins, ties, loses", "wins"
    if isinstance(part, Place) and about:
        lines = "lines at people’s own length" if n is None else f"all {n} lines"
        return "One chat read alone", f"passes {lines}, of 100", f"passes {n or 'all'}"
    if isinstance(part, BesideHuman) and about:
        return "Beside a real chat", "judge fooled, unsure, or finds it", "fooled"
    return part.protocol.short or part.protocol.title, column.heading, column.heading


def _chosen(
    known: Sequence[Column], parts: Mapping[str, Part], first: Column | None
) -> dict[str, int]:
    """Keys of the columns that are shown -> the room they take (`Head.room`)."""
    found: dict[str, int] = {} if first is None else {first.key: 0}
    seen = [parts[first.key].protocol.base] if first else []
    for column in known:
        part = parts.get(column.key)
        is_votes = part is not None and part.protocol == VOTES
        if is_votes and (column.key == "win_or_tie" or column.role == "readable"):
            found[column.key] = 2
        if part is None or part.protocol.base in seen or column.role != "value" or is_votes:
            continue
        seen.append(part.protocol.base)
        found[column.key] = 2 if isinstance(part, BesideHuman) or len(found) > 1 else 0
    kept = list(found)[: SHOWN - 4]
    unjudged = [c.key for c in known if c.key.startswith("mean_") and c.key not in parts]
    return {key: found[key] for key in kept} | dict.fromkeys(unjudged, 2)


def _ticks(scale: BarScale) -> list[tuple[float, str]]:
    ends = [(0.0, f"{scale.low:.0f}"), (100.0, f"{scale.high:.0f}")]
    if scale.low + 12 < 50 < scale.high - 12:
        ends.insert(1, (scale._replace(form=float).bar((50.0,) * 3).at, "50"))
    return ends


def _results(part: Part) -> dict[str, Interval]:
    """Contestant -> wins, ties and losses in percent."""
    won, kept = part.table.values("win"), part.table.values("win_or_tie")
    return {
        name: (round(100 * won[name], 2), round(100 * (kept[name] - won[name]), 2),
               round(100 - 100 * kept[name], 2))
        for name in won if not pd.isna(won[name])
    }  # fmt: skip


def _places(main: Table, rank: Column, n: int) -> list[Cell]:
    """The places that are left open, each a cell of a strip."""
    low, high = main.ends(rank.key) or (rank, rank)
    slots, made = min(n, _CELLS), []
    columns = (main.frame[one.key].tolist() for one in (rank, low, high))
    for text, value, *ends in zip(main.written(rank.key), *columns, strict=True):
        if pd.isna(value):
            made.append(Cell(""))
            continue
        at, to = (int((value if pd.isna(end) else end) - 1) * slots // n for end in ends)
        parts = [round(100 * x / slots, 2) for x in (at, to + 1 - at)]
        made.append(Cell(text, value=str(value), parts=parts))
    return made


def _cells(
    main: Table,
    column: Column,
    to: Sequence[str],
    scale: BarScale | None,
    results: Mapping[str, Interval],
) -> list[Cell]:
    """The numbers of a column, each with its interval where it has one."""
    ends = [main.frame[end.key].tolist() for end in main.ends(column.key) or ()]
    written, told_ends = main.written(column.key), main.told_ends(column)
    names, made = main.frame["model"].tolist(), []
    for i, value in enumerate(main.frame[column.key].tolist()):
        if pd.isna(value):
            made.append(Cell("–"))
            continue
        title = f"{column.heading}: {written[i]}"
        title += f", 95 % interval {told_ends[i]}" if told_ends[i] else ""
        whole = f"{value:,.0f}" if column.kind == "number" and abs(value) >= 1 else written[i]
        cell = Cell(whole, title, to[i], value=f"{float(value):.6g}")
        if scale and not any(pd.isna(end[i]) for end in ends):
            cell = scale.cell((value, ends[0][i], ends[1][i]), title, to[i])
            if column.kind not in ("rate", "rating"):
                cell = replace(cell, text=written[i], ends=told_ends[i])
        if parts := results.get(names[i]):
            title = "wins {:.0f}, ties {:.0f}, loses {:.0f} of 100".format(*parts)
            cell = replace(cell, title=title, bar=None, ends="", parts=parts)
        made.append(cell)
    return made


def _curve(part: Place, name: str, links: Links) -> Cell:
    """A survival curve; the exact number is its mean, utterances survived as a share."""
    curve = part.curves.get(name)
    if curve is None:
        return Cell("–")
    surviving = curve.surviving[np.isfinite(curve.surviving)]
    half = curve.reached(0.5)
    title = f"half are accused by line {half}" if half else "most are never accused"
    to = links.to(part.protocol.name, a=name, show="lose")
    return Cell("", title, to, path=steps(surviving.tolist()), value=f"{surviving.mean():.6g}")


def steps(shares: Sequence[float]) -> str:
    """The path in a box of 100 by 20 of a curve that falls in steps, shares of 0 to 1."""
    told = ["M0 1"]
    for i, share in enumerate(shares):
        told.append(f"V{round(19 - 18 * share, 2):g}H{round(100 * (i + 1) / len(shares), 2):g}")
    return "".join(told)


def _target(name: str, part: Part | None, column: Column, links: Links) -> str:
    """Where the cases behind a number are read."""
    if part is None:
        return links.to(a=name)
    protocol, is_coverage = part.protocol, column.role == "coverage"
    if protocol.shows == "one":
        passed = f"win-{column.n or 'own'}" if isinstance(part, Place) else ""
        return links.to(protocol.name, a=name, show="read" if is_coverage else passed)
    whom = {"b": HUMAN} if protocol.shows == "human" and name != HUMAN else {"of": "all"}
    return links.pair(protocol.name, a=name, **whom, show="readable" if is_coverage else "")
