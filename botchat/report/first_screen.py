"""The first screen of a page: the main table and the success curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.protocols import (
    RANK,
    DetectionResult,
    GTEvalResult,
    ProtocolResult,
    SuccessCurve,
)
from botchat.boards.skill import is_misplaced
from botchat.boards.tables import Column, N, Table, interval_text, is_floor_bot, labels, models_of
from botchat.estimates import Estimate, Floats
from botchat.interfaces import Cells
from botchat.protocols.catalogue import ARENA, VOTES
from botchat.protocols.kinds import Score
from botchat.records import HUMAN, N_SEED

MOST_SHOWN = 5  # protocols with a column on the first screen; others are under "More columns"
NAMED_LINES = 15  # models whose line in the curve has its name

Costs: TypeAlias = Mapping[str, float]
"""Contestant -> USD of a dialogue, where known."""

# Beginnings of headings that are no names: small in a terminal
_WORDS = ("Rating", "Passes ", "Same length")

Scale: TypeAlias = tuple[float, float]
"""Ends of an axis."""


class Links(NamedTuple):
    """Links into the reader of dialogues; empty ones where the page has none."""

    view: str = ""
    """The protocol that the reader opens with; empty if there is no reader."""

    def to(self, view: str = "", **parts: str) -> str:
        """Return a link to a view, by default the reader; empty parts are left out."""
        if not self.view:
            return ""
        values = {"view": view or self.view, **parts}
        return "#" + urlencode({key: value for key, value in values.items() if value})


class Bar(NamedTuple):
    """A number and its interval, in percent of the scale's width."""

    at: float
    low: float
    high: float

    @classmethod
    def of(cls, number: Estimate, ends: Scale) -> Bar:
        """Return the bar of a number; what is outside the scale is at its edge."""
        return cls(
            percent(number.value, ends), percent(number.low, ends), percent(number.high, ends)
        )

    @property
    def width(self) -> float:
        """Width of the interval."""
        return round(self.high - self.low, 2)


def percent(value: float, ends: Scale) -> float:
    """Return where a value stands on a scale, in percent of its width."""
    low, high = ends
    return round(100 * (min(max(value, low), high) - low) / (high - low), 2)


class Cell(NamedTuple):
    """One number as it is shown."""

    text: str = "–"
    interval: str = ""
    title: str = ""
    href: str = ""
    value: str = ""  # the exact number, to sort by; empty: missing
    bar: Bar | None = None

    @property
    def printed(self) -> str:
        """The number with its interval."""
        if self.interval:
            return f"{self.text} ({self.interval})"
        return self.text


class Head(NamedTuple):
    """A column: its key, its heading and unit, and how its cells are drawn."""

    key: str
    label: str
    unit: str
    kind: str = "plain"  # ``rank``, ``wide`` (with bars) or ``plain``
    room: str = ""
    """Classes: ``room1``: not on a phone, ``room2``: on wide screens alone, ``more``: on request,
    ``grey``: nothing to rely on."""
    ticks: Sequence[tuple[float, str]] = ()  # of the scale of its bars: where, in percent, and what
    human: Bar | None = None  # the human dialogues' number, drawn behind every bar


class ShownColumn(NamedTuple):
    """A column with its cells by contestant; others have no number."""

    head: Head
    cells: Mapping[str, Cell]


class Line(NamedTuple):
    """Row of one contestant; ``kind`` is ``human``, ``bot`` or empty."""

    name: str
    label: str
    kind: str
    href: str
    cells: list[Cell]


def kind_of(name: str) -> str:
    """Return ``human``, ``bot``, or nothing for a model."""
    if name == HUMAN:
        return "human"
    return "bot" if is_floor_bot(name) else ""


def printed_rows(board: Board, costs: Costs) -> list[Cells]:
    """Return a row a contestant for a terminal: the columns of the first screen as texts.

    What each won against the next is shown of votes alone: these have no judge to speak of.
    """
    names = board.main.models
    frame = pd.DataFrame({"rank": board.main.texts(RANK), "model": names})
    if not any(costs.values()):
        costs = {}
    for head, cells in _columns(board, Links(), costs, ranked=True):
        if head.room == "more" or not (head.label and cells):
            continue
        heading = head.label
        if heading.startswith(_WORDS):
            heading = heading.lower()
        if head.unit == "votes":
            heading = head.unit
        if len(frame.columns) == 2 and any(cell.interval for cell in cells.values()):
            heading += " (95 % CI)"  # named once
        frame[heading] = [cells.get(name, Cell()).printed for name in names]
    if costs:
        frame["USD/dialogue"] = frame.pop("USD")
    if not board.is_of_votes:  # no room for what a page has room for
        frame = frame.drop(columns="vs next", errors="ignore")
    rows: list[Any] = frame.to_dict("records")
    return rows


def main_table(
    board: Board, links: Links, costs: Costs, *, ranked: bool = True
) -> tuple[list[Head], list[Line]]:
    """Return columns and rows of the first screen; ``costs``, by contestant, are in USD a dialogue.

    Without ``ranked``, when the judge fails its checks, no ranks are shown.
    """
    names = board.main.models
    lines = [
        Line(name, label, kind_of(name), links.to(a=name), [])
        for name, label in zip(names, labels(names), strict=True)
    ]
    heads = []
    for head, by_name in _columns(board, links, costs, ranked=ranked):
        cells = [by_name.get(name, Cell()) for name in names]
        if any(cell.value for cell in cells):
            heads.append(head)
            for line, cell in zip(lines, cells, strict=True):
                line.cells.append(cell)
    return heads, lines


def _columns(board: Board, links: Links, costs: Costs, *, ranked: bool) -> Iterator[ShownColumn]:
    """Yield the columns of the main table in their order."""
    if ranked:
        yield ShownColumn(Head("rank", "", "Rank", "rank"), _plain_cells(board.main, RANK))
    protocols = protocol_columns(board)
    titles = [part.protocol.label for part in protocols]
    for i, part in enumerate(protocols):
        wide = i == 0 or _finds_ai(part)
        head, cells = _numbers(part, part.ranking[0], links, wide=wide)
        if titles.count(part.protocol.label) > 1:
            head = head._replace(label=f"{head.label}: {part.protocol.name}")
        yield ShownColumn(head, cells)
        if _finds_ai(part):
            # Where both are cut to the human dialogue's length.
            column = part.table.column("success_human_length")
            head, cells = _numbers(part, column, Links(), wide=False)
            yield ShownColumn(head._replace(label="Same length", unit="passes, %"), cells)
    yield _prices(costs)
    if protocols:
        first = protocols[0]
        unit = "dialogues" if first.protocol.is_alone else "compared"
        if isinstance(first, Arena) and not first.counts.is_planned:
            unit = "votes"
        yield ShownColumn(Head("n", "n", unit, room="room1"), _plain_cells(first.table, N))
    if isinstance(board.ranked_by, Arena) and ranked:
        yield _against_next(board.ranked_by, board.main, links)
    yield from _more(board, protocols)


def _prices(costs: Costs) -> ShownColumn:
    cells = {}
    for name, usd in costs.items():
        cells[name] = Cell(f"{usd:.4f}" if usd else "0", value=f"{usd:.6g}")
    return ShownColumn(Head("usd_per_dialogue", "USD", "a dialogue", room="room1"), cells)


def protocol_columns(board: Board) -> list[ProtocolResult]:
    """Return the protocols with a column on the first screen, the one of the ranks first."""
    by_base: dict[str, ProtocolResult] = {}
    for part in board.parts:
        if part.ranking:
            by_base.setdefault(part.protocol.base, part)
    return list(by_base.values())[:MOST_SHOWN]


def _finds_ai(part: ProtocolResult) -> bool:
    """Return whether its judges name the first AI utterance of a dialogue."""
    return isinstance(part, DetectionResult) and part.protocol.about_ai


def _words(part: ProtocolResult, column: Column) -> tuple[str, str]:
    """Return the heading of a protocol's column on the first screen, and its unit."""
    if part.protocol.base in (ARENA.name, VOTES.name) and column.key == "bt":
        return "Rating", "95 % CI"
    if _finds_ai(part):
        return f"Passes {column.n}", "% of dialogues, 95 % CI"
    if isinstance(part, GTEvalResult) and column.key == "win_or_tie":
        return "vs human", "win or tie, %"
    label = part.protocol.label
    unit = column.heading
    if unit == label:
        unit = "95 % CI"
    answer = part.protocol.answer
    if isinstance(answer, Score):
        label += f" ({answer.scale.lowest}–{answer.scale.highest})"
    return label, unit


def _plain_cells(table: Table, column: Column) -> dict[str, Cell]:
    """Return the cells of a column as a table has them."""
    cells = {}
    rows = zip(table.models, table.texts(column), table.frame[column.key], strict=True)
    for name, text, number in rows:
        cells[name] = Cell(text, value="" if pd.isna(number) else f"{number:.6g}")
    return cells


def _numbers(part: ProtocolResult, column: Column, links: Links, *, wide: bool) -> ShownColumn:
    """Return a number of a protocol with its intervals, with bars where it is ``wide``.

    Rates are in percent, none has a minus before 0, and those of unknown intervals are left out.
    """
    values = {
        name: number
        for name, number in zip(part.table.models, part.table.numbers(column), strict=True)
        if number.is_bounded
    }
    form = "z.0f" if column.kind in ("rate", "rating") else "z.2f"
    scale = (0.0, 100.0)
    if column.kind != "rate":
        low = min([number.low for number in values.values()], default=0.0)
        high = max([number.high for number in values.values()], default=1.0)
        room = 0.03 * (high - low) or 1.0
        scale = (low - room, high + room)
    cells = {}
    for name, number in values.items():
        value = f"{number.value:{form}}"
        interval = interval_text(number, form)
        bar = None
        if wide:
            bar = Bar.of(number, scale)
        cells[name] = Cell(
            value,
            interval,
            f"{column.heading}: {value}, 95 % interval {interval}",
            _evidence(part, name, links),
            f"{number.value:.6g}",
            bar,
        )
    label, unit = _words(part, column)
    head = Head(part.quote(column).key, label, unit, room="room1")
    if wide:
        head = head._replace(
            kind="wide", room="", ticks=axis_ticks(scale), human=cells.get(HUMAN, Cell()).bar
        )
    return ShownColumn(head, cells)


def axis_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Return two to four round numbers of an axis: where, in percent, and what."""
    from matplotlib.ticker import MaxNLocator

    low, high = scale
    steps = [1, 1.5, 2, 3, 4, 5, 6, 8, 10]
    if scale == (0.0, 100.0):
        steps = [5, 10]
    ticks = MaxNLocator(nbins=3, steps=steps).tick_values(low, high)
    inside = [tick for tick in ticks if low <= tick <= high]
    return [(round(100 * (tick - low) / (high - low), 1), f"{tick:g}") for tick in inside]


def _evidence(part: ProtocolResult, name: str, links: Links) -> str:
    """Return a link to what a number of a contestant counts; a rating is of all comparisons."""
    protocol = part.protocol
    if protocol.is_alone:
        show = "lose" if protocol.about_ai else ""
        return links.to(protocol.name, a=name, show=show)
    if protocol.against_human and name != HUMAN:
        return links.to("pair", protocol=protocol.name, a=name, b=HUMAN)
    return ""


def _against_next(arena: Arena, main: Table, links: Links) -> ShownColumn:
    """Return the results of each model against the next one below."""
    rated = set(arena.table.models) - {HUMAN}
    cells = {}
    for name, other in pairwise(name for name in main.models if name in rated):
        if (name, other) not in arena.results.index:
            cells[name] = Cell("never met", title=f"against {other}")
            continue
        wins, ties, losses = arena.pair(name, other)
        cells[name] = Cell(
            f"{wins} · {ties} · {losses}",
            title=f"against {other}",
            href=links.to("pair", protocol=arena.protocol.name, a=name, b=other),
            value=str(wins - losses),
        )
    return ShownColumn(Head("vs_next", "vs next", "won · tied · lost", room="room1 room2"), cells)


def _more(board: Board, shown: Sequence[ProtocolResult]) -> Iterator[ShownColumn]:
    """Yield the columns that are shown on request: Elo, other N, lengths, coverage."""
    done = {"rank", "model", "n"}
    misplaced = any(is_misplaced(facts.cases.placed) for facts in board.judge_facts.values())
    for part in shown:
        done.update(part.quote(column).key for column in part.ranking)
        for column in part.ranking[1:]:
            head, cells = _numbers(part, column, Links(), wide=False)
            label = f"{part.protocol.label} {column.heading.lower()}"
            room = "more"
            if _finds_ai(part):
                label = head.label
                if misplaced:  # only the last N can be read
                    room = "more grey"
            yield ShownColumn(Head(head.key, label, "", room=room), cells)
    for column in board.main.columns:
        if column.key not in done:
            head = Head(column.key, column.heading, "", room="more")
            yield ShownColumn(head, _plain_cells(board.main, column))


class CurveLine(NamedTuple):
    """One contestant's success rate at each N, as far as the plot goes."""

    name: str
    label: str
    kind: str  # ``human``, ``bot``, ``first-line`` of the leader, ``faint`` or empty
    rate: list[float]
    band: Sequence[Estimate]  # the leader's success rates with their intervals


class Curve(NamedTuple):
    """The success curves of a board up to N = ``last``, ``height`` pixels high."""

    last: int
    height: int
    lines: Sequence[CurveLine]
    ends: Mapping[str, float]  # of each line that has its name beside it, in pixels from the top
    name_heights: Mapping[str, float]  # of these names, away from each other
    protocol: str


def success_curve(board: Board, leader: str | None, *, ranked: bool) -> Curve | None:
    """Return the curves of the first protocol that finds the first AI utterance, or None.

    Bots are dotted; without models, or where the judge fails and models are faint, they are not.
    """
    protocol, curves = _drawn_curves(board)
    if not curves:
        return None
    models = curves.keys() - {HUMAN}
    last = max(len(curves[name].rate) for name in models or curves)
    named = curves.keys() & {HUMAN}.union(islice(curves, NAMED_LINES))
    height = max(212, 17 * (len(named) - 1))
    is_faint = not ranked or not models_of(curves)
    lines = []
    ends = {}
    for name, label in zip(curves, labels(list(curves), 22), strict=True):
        curve = curves[name]
        known = curve.rate[:last]
        rate = known[np.isfinite(known)].tolist()
        band = []
        if name == leader:
            band = [curve.at(n) for n in range(N_SEED, len(rate) + 1)]
        kind = _line_kind(name, leader, is_faint=is_faint)
        lines.append(CurveLine(name, label, kind, rate, band))
        if name in named:
            ends[name] = round(height * (1 - rate[-1]), 1)
    downwards = sorted(ends, key=ends.__getitem__)
    heights = apart(sorted(ends.values()), 17, height).round(1).tolist()
    name_heights = dict(zip(downwards, heights, strict=True))
    return Curve(last, height, lines, ends, name_heights, protocol)


def _drawn_curves(board: Board) -> tuple[str, dict[str, SuccessCurve]]:
    """Return a protocol and its curves in the order of the board, the human dialogues' last."""
    part = next(
        (part for part in board.of(DetectionResult) if part.protocol.about_ai and part.curves), None
    )
    if part is None:
        return "", {}
    names = [name for name in board.main.models if name != HUMAN]
    curves = {}
    for name in [*names, HUMAN]:
        curve = part.curves.get(name)
        if curve is not None and np.isfinite(curve.rate[:N_SEED]).all():
            curves[name] = curve
    return part.protocol.name, curves


def _line_kind(name: str, leader: str | None, *, is_faint: bool) -> str:
    """Return how a line is drawn; where models are faint, bots are drawn as models are."""
    if name == leader:
        return "first-line"
    kind = kind_of(name)
    if not is_faint:
        return kind
    return {"": "faint", "bot": ""}.get(kind, kind)


def apart(heights: Sequence[float], step: float, end: float) -> Floats:
    """Return heights near these, which ascend: ``step`` apart or more, the last at most ``end``."""
    steps = step * np.arange(len(heights))
    pushed: Floats = np.maximum.accumulate(np.array(heights) - steps) + steps
    return pushed.clip(max=end - steps[::-1])
