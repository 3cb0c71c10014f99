"""The first screen of a board: its main table, and the checks of its judge, ready to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import urlencode

import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_checks import Check, JudgeTrust
from botchat.boards.protocols import DetectionResult, GTEvalResult, ProtocolResult
from botchat.boards.tables import Column, is_floor_bot, labels, value_and_ci
from botchat.protocols.catalogue import VOTES
from botchat.records import HUMAN

MOST_SHOWN = 5
"""Protocols with a column on the first screen; the others are in the tables below."""


def address(judge: str, view: str = "", **parts: str) -> str:
    """Return a link into the page; empty parts are left out, as `botchat.link` of the page does."""
    values = {"view": view, **parts, "judge": judge}
    return "#" + urlencode({key: value for key, value in values.items() if value})


class Links(NamedTuple):
    """Makes links into the reader, of one judge; none where the page has no archive."""

    judge: str = ""
    """Empty: the one that the page opens with."""
    first: str = ""
    """The reader's first protocol; empty: there is no archive."""

    def to(self, view: str = "", **parts: str) -> str:
        """Into the reader, by default into its first protocol."""
        return address(self.judge, view or self.first, **parts) if self.first else ""

    def cases(self, part: ProtocolResult, name: str) -> str:
        """To what a number of a contestant counts."""
        protocol = part.protocol
        if protocol.shows == "one":
            is_detection = isinstance(part, DetectionResult)
            show = f"win-{part.ranking[0].n}" if is_detection else ""
            return self.to(protocol.name, a=name, show=show)
        other = {"b": HUMAN} if protocol.shows == "human" and name != HUMAN else {"of": "all"}
        return self.to("pair", protocol=protocol.name, a=name, **other)


class Bar(NamedTuple):
    """A number and its interval, in percent of the cell's width."""

    at: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], ends: tuple[float, float]) -> Bar:
        """``values``: the number and its interval; what is outside the scale is at its edge."""
        low, high = ends
        parts = [(min(max(value, low), high) - low) / (high - low) for value in values]
        return cls(*(round(1 + 98 * part, 2) for part in parts))

    @property
    def width(self) -> float:
        """Width of the interval."""
        return round(self.high - self.low, 2)


@dataclass(frozen=True)
class Cell:
    """One number as it is shown."""

    text: str
    title: str = ""
    href: str = ""
    value: str = ""
    """The exact number, to sort by; empty: missing."""
    bar: Bar | None = None
    parts: Sequence[float] = ()
    """Wins, ties and losses in percent."""


@dataclass(frozen=True)
class Head:
    """A column: its key, what stands over it, and how its cells are drawn."""

    key: str
    label: str
    unit: str
    kind: str
    """``rank``, ``rated``, ``stack`` or ``plain``."""
    room: int = 0
    """0: at every width, 1: not on a phone, 2: on wide screens only."""
    ticks: Sequence[tuple[float, str]] = ()
    """Marks of the scale of its bars: where, in percent, and what."""


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


def main_table(board: Board, links: Links, costs: Mapping[str, float]) -> MainTable:
    """Return the first screen's table; ``costs``: contestant -> USD of a dialogue."""
    main, names = board.main, list(board.main.frame["model"])
    ranks = zip(main.written("rank"), main.frame["rank"], strict=True)
    columns = [
        (
            Head("rank", "Rank", "95 % interval", "rank"),
            [Cell(text, value="" if pd.isna(n) else str(n)) for text, n in ranks],
        )
    ]
    first = board.ranked_by
    for i, part in enumerate(protocol_columns(board)):
        columns.append(_numbers(part, names, links, 0 if i < 2 else 1))
    if costs:
        usd = {name: Cell(f"{cost:.4g}", value=f"{cost:.6g}") for name, cost in costs.items()}
        head = Head("usd_per_dialogue", "USD", "a dialogue", "plain", 1)
        columns.append((head, [usd.get(name, Cell("–")) for name in names]))
    if isinstance(first, Arena):
        columns.append(_against_next(first, names, links))
    lines = [
        Line(name, label, links.to(a=name), name == HUMAN, is_floor_bot(name), cells)
        for name, label, *cells in zip(
            names, labels(names), *(cells for _, cells in columns), strict=True
        )
    ]
    return MainTable([head for head, _ in columns], lines)


def protocol_columns(board: Board) -> list[ProtocolResult]:
    """Return the protocols with a column on the first screen, the one of the ranks first."""
    shown: dict[str, ProtocolResult] = {}
    for part in [board.ranked_by, *(part for part in board.parts if part.ranking)]:
        if part is not None:
            shown.setdefault(part.protocol.base, part)
    return list(shown.values())[:MOST_SHOWN]


def numbers(part: ProtocolResult) -> tuple[dict[str, list[float]], int]:
    """Return the number that a protocol is quoted by, and how many decimals are shown.

    Contestant -> value and ends of its 95 % interval, rates in percent; none that is not known.
    """
    column = part.ranking[0]
    factor = 100.0 if column.kind == "rate" else 1.0
    values = {
        row["model"]: [factor * value for value in known]
        for row in part.table.rows
        if None not in (known := value_and_ci(row, column.key))
    }
    return values, 0 if column.kind in ("rate", "rating") else 2


def _numbers(
    part: ProtocolResult, names: Sequence[str], links: Links, room: int
) -> tuple[Head, list[Cell]]:
    """Return the column of the number that a protocol is quoted by, with intervals."""
    column = part.ranking[0]
    values, digits = numbers(part)
    every = [value for each in values.values() for value in each]
    low, high = (
        (0.0, 100.0)
        if column.kind == "rate"
        else (min(every, default=0.0), max(every, default=1.0))
    )
    scale = (low, high if high > low else low + 1)
    factor = 100.0 if column.kind == "rate" else 1.0
    rows = {row["model"]: row for row in part.table.rows}
    label, unit = words(part, column)
    cells = []
    for name in names:
        if name not in values:
            cells.append(Cell("–"))
            continue
        value, *interval = values[name]
        between = "–".join(f"{end:.{digits}f}" for end in interval)
        title = f"{column.heading}: {value:.{digits}f}, 95 % interval {between}"
        bar = Bar.of(values[name], scale)
        results: Sequence[float] = ()
        if isinstance(part, GTEvalResult):
            results = [round(100 * rows[name][key], 2) for key in ("win", "tie", "lose")]
            title = "wins {:.0f}, ties {:.0f}, loses {:.0f} of 100".format(*results)
        text, href = f"{value:.{digits}f}", links.cases(part, name)
        cells.append(Cell(text, title, href, f"{value / factor:.6g}", bar, results))
    kind = "stack" if isinstance(part, GTEvalResult) else "rated"
    ticks = [(1.0, f"{scale[0]:.0f}"), (99.0, f"{scale[1]:.0f}")]
    return Head(part.quote(column).key, label, unit, kind, room, ticks), cells


def words(part: ProtocolResult, column: Column) -> tuple[str, str]:
    """Return what stands over a column, and its unit."""
    if isinstance(part, Arena):
        return "Rating", "of votes" if part.protocol == VOTES else "Bradley–Terry"
    if isinstance(part, DetectionResult) and part.protocol.about_ai:
        return f"Passes {column.n}", "% of dialogues"
    if isinstance(part, GTEvalResult):
        return "vs human", "win, tie, lose"
    return part.protocol.label, column.heading


def _against_next(arena: Arena, names: Sequence[str], links: Links) -> tuple[Head, list[Cell]]:
    """Return the results of each model against the next one below."""
    rated = {*arena.table.frame["model"]} - {HUMAN}
    below = dict(pairwise(name for name in names if name in rated))
    cells = []
    for name in names:
        if name not in below:
            cells.append(Cell("–"))
            continue
        pair, protocol = arena.pair(name, below[name]), arena.protocol.name
        text = f"{pair.wins} · {pair.ties} · {pair.losses}"
        href = links.to("pair", protocol=protocol, a=name, b=below[name])
        cells.append(Cell(text, f"against {below[name]}", href, str(pair.wins - pair.losses)))
    return Head("vs_next", "vs next", "won · tied · lost", "plain", 2), cells


@dataclass(frozen=True)
class CheckLine:
    """One check of the judge, with its number drawn."""

    check: Check
    bar: Bar | None
    line: float | None
    """Where the line is that it should be on the good side of, in percent."""


def check_lines(trust: JudgeTrust) -> list[CheckLine]:
    """Return the checks of a judge with bars of their numbers."""
    lines = []
    for check in trust.checks:
        scale = (-1.0, 1.0) if check.key == "label_kappa" else (0.0, 1.0)
        numbers = [value for value in (check.value, check.low, check.high) if value is not None]
        known = len(numbers) == 3 and all(map(math.isfinite, numbers))
        line = None if check.line is None else Bar.of([check.line] * 3, scale).at
        lines.append(CheckLine(check, Bar.of(numbers, scale) if known else None, line))
    return lines
