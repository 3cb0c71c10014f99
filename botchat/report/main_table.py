"""The table of the first screen: one line a contestant, an interval drawn beside each number.

Its headings say what was done, not what it is called. Every number links to the cases behind it, in
the reader or head to head. Positions are in percent of a cell's width, so that a cell can be of any
width and its text never scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.fingerprint import TOLD
from botchat.boards.headline import chance
from botchat.boards.names import LABEL_COLUMNS, is_floor_bot, labels
from botchat.boards.protocols import BesideHuman, Part, Place
from botchat.boards.tables import Column, Table
from botchat.protocols.catalogue import VOTES
from botchat.records import HUMAN
from botchat.report.plane import Interval

SHOWN = 7
"""Columns that are shown until the reader chooses."""

SURVIVAL = "survival"

_EDGE = 1.0
"""Percent of a cell that stays free on both sides."""

_CELLS = 16
"""Most cells of the strip of places: each is one place, or as many as there must be."""


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
    shown: bool = False
    """Without being asked for."""
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
    """The exact number, to sort by and for files; empty: missing."""
    low: str = ""
    high: str = ""
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
    people: Bar | None
    """Where people stand among the ratings."""
    average: float | None
    """Where an average model does, in percent."""
    slots: int
    """Cells of the strip of places."""


Scale = tuple[float, float]


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
    rank, *others = [c for c in main.headline if c.kind != "name" and c.role != "reason"]
    known = sorted(others, key=lambda column: column.key != rank.of)  # what it is ranked by first
    first = known[0] if known and known[0].key == rank.of else None
    rated = first if first is not None and first.kind == "rating" else None
    survival = next((part for part in board.of(Place) if part.survival is not None), None)
    chosen = _chosen(known, parts, first)
    names = list(main.frame["model"])
    n = sum(name != HUMAN for name in names)

    def scale(column: Column) -> tuple[Callable[[float], float], Scale]:
        """What is drawn of a number, and from where to where."""
        ends = main.ends(column.key)
        drawn = _in_100 if column is rated or column.kind == "rate" else float
        form = (lambda x: 100 * chance(x)) if column is rated else drawn
        keys = [column.key, *(end.key for end in ends or ())]
        told = main.frame[keys].to_numpy(dtype=float, na_value=np.nan).ravel().tolist()
        told += people if column is rated and people else ()
        found = [form(value) for value in told if math.isfinite(value)] or [0.0, 100.0]
        low, high = min(found), max(found)
        if column is rated:
            return form, (max(0.0, 10 * (low // 10) - 2), min(100.0, 10 * -(-high // 10) + 2))
        if column.kind == "rate":
            return form, (0.0, max(10.0, min(100.0, 10 * -(-high // 10))))
        return form, (low, high) if high - low >= 1e-6 else (low - 1, high + 1)

    split = [c.key for c in known if c.key.endswith("win_or_tie") and c.key in parts]
    drawn = {c.key: scale(c) for c in known if main.ends(c.key) and c.key not in split}
    heads, cells = [Head(rank.key, "Place", _RANK, "rank", "Place", "", "", (), True, 0)], []
    cells.append([_places(main, rank, i, n) for i in range(len(names))])
    seen: set[str] = set()
    for column in known:
        part = parts.get(column.key)
        group, label, short = _words(board, part, column)
        ticks = _ticks(drawn[column.key][1]) if column is rated else ()
        kind = "stack" if column.key in split else "rated" if column.key in drawn else "plain"
        shown = column.key in chosen
        over = group if shown and group not in seen else ""
        seen |= {group} if shown else set()
        room = chosen.get(column.key, 2)
        name = f"{label}: {column.heading}" if column is rated else column.heading
        heads.append(
            Head(column.key, name, column.meaning, kind, label, short, over, ticks, shown, room)
        )
        results = _results(part) if column.key in split and part else {}
        written = main.written(column.key)

        def target(i: int, column: Column = column, part: Part | None = part) -> str:
            return _target(names[i], part, column, judge, view) if view else ""

        cells.append(
            [
                _people(people, *drawn[column.key], board, judge if view else None)
                if column is rated and people and name == HUMAN
                else _cell(
                    main,
                    column,
                    i,
                    written[i],
                    target(i),
                    drawn.get(column.key),
                    results.get(name, ()),
                )
                for i, name in enumerate(names)
            ]
        )
        if survival is not None and part is survival and SURVIVAL not in seen:
            seen.add(SURVIVAL)
            last = max(len(curve.surviving) for curve in survival.curves.values())
            marks = [(0, "1"), (50, str(last // 2)), (100, str(last))]
            heads.append(
                Head(SURVIVAL, "Line by line", _SURVIVAL, "curve", "", "", "", marks, True, 1)
            )
            cells.append([_curve(survival, name, judge, view) for name in names])
    short_names = labels(names, LABEL_COLUMNS)
    lines = [
        Line(name, short_names[i], address(judge, view, a=name) if view else "", name == HUMAN,
             is_floor_bot(name), [column[i] for column in cells])
        for i, name in enumerate(names)
    ]  # fmt: skip
    bar = average = None
    if rated is not None:
        form, ends = drawn[rated.key]
        average = interval_bar((50.0,) * 3, ends).at if ends[0] < 50 < ends[1] else None
        bar = (
            interval_bar((form(people[0]), form(people[1]), form(people[2])), ends)
            if people
            else None
        )
    return MainTable(heads, _placed(lines, people, main, rated), bar, average, min(n, _CELLS))


_RANK = "the places that are still possible, of all at once (95 %)"
_SURVIVAL = "share of chats not accused yet, from the first to the last line"


def _in_100(share: float) -> float:
    return 100 * share


def _words(board: Board, part: Part | None, column: Column) -> tuple[str, str, str]:
    """What was done, what the number is of, and the same on a phone."""
    unit = board.utterance_lengths.unit
    if part is not None and part.protocol == VOTES and column.role == "readable":
        return "", "Votes", ""
    if part is None or column.role != "value":
        line = f"{unit.capitalize()} a line"
        return "", line if column.key == f"mean_{unit}" else column.heading, ""
    about, n = part.protocol.about_ai, column.n
    if isinstance(part, Arena) and (about or part.protocol == VOTES):
        votes = part.protocol == VOTES
        if column.key.startswith("bt"):
            verb = "preferred to" if votes else "called more human than"
            return "Two models compared", f"{verb} an average model, of 100", "compared"
        if column.key == "win_or_tie":
            return "Against everybody", "wins, ties, loses", "wins"
    elif isinstance(part, Place) and about:
        lines = "lines at people’s own length" if n is None else f"all {n} lines"
        return "One chat read alone", f"passes {lines}, of 100", f"passes {n or 'all'}"
    elif isinstance(part, BesideHuman) and about:
        return "Beside a real chat", "judge fooled, unsure, or finds it", "fooled"
    return part.protocol.short or part.protocol.title, column.heading, column.heading


def _chosen(
    known: Sequence[Column], parts: Mapping[str, Part], first: Column | None
) -> dict[str, int]:
    """Keys of the columns that are shown unasked -> the room they take (`Head.room`)."""
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
    unjudged += [c.key for c in known if c.key == TOLD.key and len(kept) < SHOWN - 4]
    return {key: found[key] for key in kept} | dict.fromkeys(unjudged, 2)


def _ticks(scale: Scale) -> list[tuple[float, str]]:
    low, high = scale
    middle = [(interval_bar((50.0,) * 3, scale).at, "50")] if low + 12 < 50 < high - 12 else []
    return [(0, f"{low:.0f}"), *middle, (100, f"{high:.0f}")]


def _results(part: Part) -> dict[str, tuple[float, float, float]]:
    """Contestant -> wins, ties and losses in percent."""
    won, kept = part.table.values("win"), part.table.values("win_or_tie")
    return {
        name: (round(100 * won[name], 2), round(100 * (kept[name] - won[name]), 2),
               round(100 - 100 * kept[name], 2))
        for name in won if not pd.isna(won[name])
    }  # fmt: skip


def interval_bar(told: Interval, scale: Scale) -> Bar:
    """A number and the ends of its interval on a scale from its low to its high end."""
    low, high = scale
    room = 100 - 2 * _EDGE
    at, left, right = (
        round(_EDGE + room * (min(max(value, low), high) - low) / (high - low), 2) for value in told
    )
    return Bar(at, left, right)


def _places(main: Table, rank: Column, row: int, n: int) -> Cell:
    """The places that are left open, each a cell of a strip."""
    value = main.frame[rank.key].iloc[row]
    if pd.isna(value):
        return Cell("")
    ends = [main.frame[end.key].iloc[row] for end in main.ends(rank.key) or ()]
    low, high = ends if ends and not any(map(pd.isna, ends)) else (value, value)
    slots = min(n, _CELLS)
    at, to = (int(end - 1) * slots // n for end in (low, high))
    parts = [round(100 * x / slots, 2) for x in (at, to + 1 - at)]
    return Cell(main.written(rank.key)[row], "", "", None, "", str(value), parts=parts)


def _cell(
    main: Table,
    column: Column,
    row: int,
    text: str,
    href: str,
    drawn: tuple[Callable[[float], float], Scale] | None,
    parts: Sequence[float],
) -> Cell:
    """One number, with its interval where it has one."""
    value = main.frame[column.key].iloc[row]
    if pd.isna(value):
        return Cell("–")
    ends = [main.frame[end.key].iloc[row] for end in main.ends(column.key) or ()]
    title, bar, exact, said = f"{column.heading}: {text}", None, [f"{float(value):.6g}"], ""
    if ends and not any(map(pd.isna, ends)):
        title += f", 95 % interval {main.told_ends(column)[row]}"
        exact += [f"{float(end):.6g}" for end in ends]
    if drawn and len(exact) == 3:
        form, scale = drawn
        told = form(float(value)), form(float(ends[0])), form(float(ends[1]))
        bar = interval_bar(told, scale)
        if column.kind in ("rate", "rating"):
            text, said = f"{told[0]:.0f}", f"{told[1]:.0f}–{told[2]:.0f}"
    elif column.kind == "number" and abs(value) >= 1:
        text = f"{value:,.0f}"
    reasons = [c.key for c in main.columns if c.role == "reason" and c.of == column.key]
    told_why = [main.frame[key].iloc[row] for key in reasons]
    title += "".join(f" ({one})" for one in told_why if not pd.isna(one))
    if parts:
        title = "wins {:.0f}, ties {:.0f}, loses {:.0f} of 100".format(*parts)
    low, high = exact[1:] or ("", "")
    return Cell(text, title, href, bar, "", exact[0], low, high, said, parts)


def _people(
    people: Interval,
    form: Callable[[float], float],
    scale: Scale,
    board: Board,
    judge: str | None,
) -> Cell:
    """Where people stand, in the column of the ratings."""
    value, low, high = people
    title = f"People: rating {value:.0f}, 95 % interval {low:.0f} to {high:.0f}; placed by how "
    title += "models do beside people, at the length of people’s dialogues"
    beside = next(iter(board.of(BesideHuman)), None)
    to = ""
    if judge is not None and beside:
        to = address(judge, "pair", protocol=beside.protocol.name, a=HUMAN, of="all")
    told = form(value), form(low), form(high)
    exact = f"{value:.6g}", f"{low:.6g}", f"{high:.6g}"
    ends = f"{told[1]:.0f}–{told[2]:.0f}"
    return Cell(f"{told[0]:.0f}", title, to, interval_bar(told, scale), "", *exact, ends)


def _curve(part: Place, name: str, judge: str, view: str) -> Cell:
    """A survival curve; the exact number is its mean, utterances survived as a share."""
    curve = part.curves.get(name)
    if curve is None:
        return Cell("–")
    surviving = curve.surviving[np.isfinite(curve.surviving)]
    half = curve.reached(0.5)
    title = f"half are accused by line {half}" if half else "most are never accused"
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
