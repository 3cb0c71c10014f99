"""The first screen of a page: the main table, the success curve, and the judge's checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_checks import Check, JudgeTrust
from botchat.boards.protocols import DetectionResult, GTEvalResult, ProtocolResult
from botchat.boards.tables import Column, Table, estimate_in, interval_text, is_floor_bot, labels
from botchat.estimates import Estimate
from botchat.interfaces import Row
from botchat.protocols.catalogue import VOTES
from botchat.records import HUMAN, N_SEED

MOST_SHOWN = 5  # protocols with a column on the first screen; others are under "More columns"
NAMED_LINES = 15  # models whose line in the curve has its name
FEW = 10  # human dialogues below which their line is dashed


class Links(NamedTuple):
    """Links into the reader of dialogues; empty ones where the page has none."""

    view: str = ""
    """The protocol that the reader opens with; empty if there is no reader."""

    def to(self, view: str = "", **parts: str) -> str:
        """Return a link to a view, by default the reader; empty parts are left out."""
        values = {"view": view or self.view, **parts}
        return "#" + urlencode({k: v for k, v in values.items() if v}) if self.view else ""


class Bar(NamedTuple):
    """A number and its interval, in percent of the scale's width."""

    at: float
    low: float
    high: float

    @classmethod
    def of(cls, number: Estimate, ends: tuple[float, float] = (0.0, 1.0)) -> Bar:
        """Return the bar of a number; what is outside the scale is at its edge."""
        return cls(
            _percent(number.value, ends), _percent(number.low, ends), _percent(number.high, ends)
        )

    @property
    def width(self) -> float:
        """Width of the interval."""
        return round(self.high - self.low, 2)


def _percent(value: float, ends: tuple[float, float]) -> float:
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


class Head(NamedTuple):
    """A column: its key, its heading and unit, and how its cells are drawn."""

    key: str
    label: str
    unit: str
    kind: str = "plain"  # ``rank``, ``wide`` (with bars) or ``plain``
    room: str = ""  # ``room1``: not on a phone, ``room2``: on wide screens, ``more``: on request
    ticks: Sequence[tuple[float, str]] = ()  # of the scale of its bars: where, in percent, and what
    human: Bar | None = None  # the human dialogues' number, drawn behind every bar


class Line(NamedTuple):
    """Row of one contestant; ``kind`` is ``human``, ``bot`` or empty."""

    name: str
    label: str
    kind: str
    href: str
    cells: Sequence[Cell]


def kind_of(name: str) -> str:
    """Return ``human``, ``bot``, or nothing for a model."""
    return "human" if name == HUMAN else "bot" if is_floor_bot(name) else ""


def printed_rows(board: Board, costs: Mapping[str, float]) -> list[Row]:
    """Return a row a contestant for a terminal: rank, the number of each protocol, and USD."""
    main = board.main
    rows = []
    for rank, name in zip(main.texts("rank"), main.frame["model"], strict=True):
        rows.append({"rank": rank, "model": name})
    headings = {"rank", "model"}
    for i, part in enumerate(protocol_columns(board)):
        heading = words(part, part.ranking[0])[0].lower()
        # Said once, and where a criterion is called like another column.
        if i == 0 or heading in headings:
            heading += " (95 % CI)"
        headings.add(heading)
        values, digits = numbers(part.table, part.ranking[0])
        form = partial(_decimals, digits=digits)
        for row in rows:
            row[heading] = "–"
            if row["model"] in values:
                number = values[row["model"]]
                row[heading] = f"{form(number.value)} ({interval_text(number, form)})"
    if any(costs.values()):
        for row in rows:
            usd = costs.get(row["model"])
            row["USD/dialogue"] = "–"
            if usd is not None:
                row["USD/dialogue"] = f"{usd:.4f}"
    return rows


def main_table(
    board: Board, links: Links, costs: Mapping[str, float], *, ranked: bool = True
) -> tuple[list[Head], list[Line]]:
    """Return columns and rows of the first screen; ``costs``, by contestant, are in USD a dialogue.

    Without ``ranked``, when the judge fails its checks, no ranks are shown.
    """
    names = list(board.main.frame["model"])
    columns = [_ranks(board.main)] if ranked else []
    protocols = protocol_columns(board)
    for i, part in enumerate(protocols):
        wide = i == 0 or (isinstance(part, DetectionResult) and part.protocol.about_ai)
        columns.append(_numbers(part, part.ranking[0], names, links, wide=wide))
    usd = {
        name: Cell(f"{cost:.4f}" if cost else "0", value=f"{cost:.6g}")
        for name, cost in costs.items()
    }
    usd_head = Head("usd_per_dialogue", "USD", "a dialogue", room="room1")
    columns.append((usd_head, [usd.get(name, Cell()) for name in names]))
    if isinstance(board.ranked_by, Arena) and ranked:
        columns.append(_against_next(board.ranked_by, names, links))
    columns.extend(_more(board, protocols, names))
    columns = [(head, cells) for head, cells in columns if any(cell.value for cell in cells)]
    rows = zip(names, labels(names), *(cells for _, cells in columns), strict=True)
    lines = [
        Line(name, label, kind_of(name), links.to(a=name), cells) for name, label, *cells in rows
    ]
    return [head for head, _ in columns], lines


def protocol_columns(board: Board) -> list[ProtocolResult]:
    """Return the protocols with a column on the first screen, the one of the ranks first."""
    by_base: dict[str, ProtocolResult] = {}
    for part in [board.ranked_by, *(part for part in board.parts if part.ranking)]:
        if part is not None:
            by_base.setdefault(part.protocol.base, part)
    return list(by_base.values())[:MOST_SHOWN]


def numbers(table: Table, column: Column) -> tuple[dict[str, Estimate], int]:
    """Return the numbers of a column, and how many decimals are shown.

    Contestant -> its number, rates in percent; none whose interval is not known.
    """
    factor = 100.0 if column.kind == "rate" else 1.0
    values = {}
    for row in table.rows:
        number = estimate_in(row, column.key)
        if number.is_bounded:
            values[row["model"]] = number.stretched(0.0, factor)
    return values, 0 if column.kind in ("rate", "rating") else 2


def _decimals(value: float, digits: int) -> str:
    """Return a number with so many decimals, and no minus before what is rounded to 0."""
    return f"{value:z.{digits}f}"


def words(part: ProtocolResult, column: Column) -> tuple[str, str]:
    """Return the heading of a protocol's column on the first screen, and its unit."""
    if isinstance(part, Arena) and column.key == "bt":
        return "Rating", "of votes" if part.protocol == VOTES else "95 % CI"
    if isinstance(part, DetectionResult) and part.protocol.about_ai:
        return f"Passes {column.n}", "% of dialogues, 95 % CI"
    if isinstance(part, GTEvalResult) and column.key == "win_or_tie":
        return "vs human", "win or tie, %"
    label = part.protocol.label
    return label, "95 % CI" if column.heading == label else column.heading


def _ranks(main: Table) -> tuple[Head, list[Cell]]:
    ranks = zip(main.texts("rank"), main.frame["rank"], strict=True)
    cells = [Cell(text, value="" if pd.isna(rank) else str(rank)) for text, rank in ranks]
    return Head("rank", "", "Rank", "rank"), cells


def _numbers(
    part: ProtocolResult, column: Column, names: Sequence[str], links: Links, *, wide: bool
) -> tuple[Head, list[Cell]]:
    """Return a number of a protocol with its intervals, with bars where it is ``wide``."""
    values, digits = numbers(part.table, column)
    ends = []
    for name in names:
        if name in values:
            ends += [values[name].value, values[name].low, values[name].high]
    scale = (0.0, 100.0) if column.kind == "rate" else _scale(ends)
    label, unit = words(part, column)
    form = partial(_decimals, digits=digits)
    cells = []
    for name in names:
        if name not in values:
            cells.append(Cell())
            continue
        number = values[name]
        value = form(number.value)
        interval = interval_text(number, form)
        title = f"{column.heading}: {value}, 95 % interval {interval}"
        bar = None
        if wide:
            bar = Bar.of(number, scale)
        href = _evidence(part, name, links)
        cells.append(Cell(value, interval, title, href, f"{number.value:.6g}", bar))
    key = part.quote(column).key
    if not wide:
        return Head(key, label, unit, room="room1"), cells
    human = Bar.of(values[HUMAN], scale) if HUMAN in values else None
    return Head(key, label, unit, "wide", ticks=axis_ticks(scale), human=human), cells


def _scale(ends: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis with some room around these numbers."""
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    room = 0.03 * (high - low) or 1.0
    return low - room, high + room


def axis_ticks(scale: tuple[float, float]) -> list[tuple[float, str]]:
    """Return two to four round numbers of an axis: where, in percent, and what."""
    low, width = scale[0], scale[1] - scale[0]
    steps = (d * 10.0**p for p in range(-6, 300) for d in (1, 1.5, 2, 3, 4, 5, 6, 8))
    step = 50.0 if scale == (0.0, 100.0) else next(step for step in steps if width <= 3 * step)
    at = [step * i for i in range(math.ceil(low / step), math.floor(scale[1] / step) + 1)]
    return [(round(100 * (tick - low) / width, 1), f"{tick:g}") for tick in at]


def _evidence(part: ProtocolResult, name: str, links: Links) -> str:
    """Return a link to what a number of a contestant counts; a rating is of all comparisons."""
    protocol = part.protocol
    if protocol.is_alone:
        show = "lose" if protocol.about_ai else ""
        return links.to(protocol.name, a=name, show=show)
    if protocol.against_human and name != HUMAN:
        return links.to("pair", protocol=protocol.name, a=name, b=HUMAN)
    return ""


def _against_next(arena: Arena, names: Sequence[str], links: Links) -> tuple[Head, list[Cell]]:
    """Return the results of each model against the next one below."""
    rated = {*arena.table.frame["model"]} - {HUMAN}
    below = dict(pairwise(name for name in names if name in rated))
    cells = []
    for name in names:
        if name not in below:
            cells.append(Cell())
            continue
        pair = arena.pair(name, below[name])
        text = f"{pair.wins} · {pair.ties} · {pair.losses}"
        href = links.to("pair", protocol=arena.protocol.name, a=name, b=below[name])
        value = str(pair.wins - pair.losses)
        cells.append(Cell(text, title=f"against {below[name]}", href=href, value=value))
    return Head("vs_next", "vs next", "won · tied · lost", room="room1 room2"), cells


def _more(
    board: Board, shown: Sequence[ProtocolResult], names: Sequence[str]
) -> Iterator[tuple[Head, list[Cell]]]:
    """Yield the columns that are shown on request: Elo, other N, lengths, coverage."""
    first = {part.quote(part.ranking[0]).key for part in shown}
    other = [(part, column) for part in shown for column in part.ranking[1:]]
    for part, column in other:
        head, cells = _numbers(part, column, names, Links(), wide=False)
        is_share = isinstance(part, DetectionResult) and part.protocol.about_ai
        label = head.label if is_share else f"{part.protocol.label} {column.heading.lower()}"
        yield Head(head.key, label, "", room="more"), cells
        first.add(head.key)
    for column in board.main.columns:
        if column.key not in {*first, "rank", "model"}:
            texts = zip(board.main.texts(column.key), board.main.frame[column.key], strict=True)
            cells = [
                Cell(text, value="" if pd.isna(number) else f"{number:.6g}")
                for text, number in texts
            ]
            yield Head(column.key, column.heading, "", room="more"), cells


class CurveLine(NamedTuple):
    """One contestant's success rate at each N, in percent from the top of the plot."""

    name: str
    label: str
    kind: str  # ``human``, ``bot``, ``first-line`` of the leader, ``faint`` or empty
    path: str
    few: str  # the rest of the path, where few human dialogues are so long
    intervals: Sequence[tuple[float, float, float]]  # about N, and the ends of its 95 % interval
    text: str  # the success rate at the end
    end: float  # its height from the top in pixels
    name_height: float | None  # of its name, away from the others; None: it has none


class Curve(NamedTuple):
    """The success curves of a board up to N = ``last``, ``height`` pixels high."""

    last: int
    height: int
    lines: Sequence[CurveLine]
    protocol: str

    @property
    def right(self) -> int:
        """Room for the names, in pixels."""
        return min(199, 68 + 7 * max(len(line.label) for line in self.lines))

    @property
    def ticks(self) -> list[tuple[int, float]]:
        """N and where it stands, in percent."""
        step = max(2, 2 * round(self.last / 16))
        ns = range(N_SEED, self.last + 1, step)
        return [(n, 100 * (n - N_SEED) / (self.last + 0.5 - N_SEED)) for n in ns]


def success_curve(board: Board, leader: str | None, *, ranked: bool = True) -> Curve | None:
    """Return the curves of the first protocol that finds the first AI utterance, or None.

    Bots are dotted; without models, or where the judge fails and models are faint, they are not.
    """
    parts = [part for part in board.of(DetectionResult) if part.protocol.about_ai and part.curves]
    if not parts:
        return None
    curves = {k: v for k, v in parts[0].curves.items() if np.isfinite(v.rate[:N_SEED]).all()}
    models = [name for name in board.main.frame["model"] if name in curves and name != HUMAN]
    drawn = [*models, *({HUMAN} & {*curves})]
    if not drawn:
        return None
    last = max(len(curves[name].rate) for name in models or drawn)
    named = [*models[:NAMED_LINES], *drawn[len(models) :]]
    height = max(212, 17 * (len(named) - 1))
    rates = {name: curves[name].rate[:last] for name in drawn}
    rates = {name: rate[np.isfinite(rate)] for name, rate in rates.items()}
    ends = {name: round(float(height * (1 - rates[name][-1])), 1) for name in drawn}
    heights = _apart({name: ends[name] for name in named}, height)
    reach = [sum(length >= n for length in board.human_lengths) for n in range(1, last + 1)]
    kinds = {"human": "human", "": "", "bot": "bot"}
    if not ranked or all(map(is_floor_bot, models)):
        kinds |= {"": "faint", "bot": ""}
    lines: list[CurveLine] = []
    for name, label in zip(drawn, labels(drawn, 22), strict=True):
        rate = rates[name]
        whole = sum(n >= FEW for n in reach[: len(rate)]) if name == HUMAN else len(rate)
        intervals = []
        for n in (4, 8, 12, 16) if len(drawn) <= 4 else ():
            if n <= whole:
                rate_at = curves[name].at(n)
                place = n + (1 + len(lines)) / 10
                intervals.append((place, 100 - 100 * rate_at.low, 100 - 100 * rate_at.high))
        kind = "first-line" if name == leader else kinds[kind_of(name)]
        path = _steps(rate, N_SEED, whole, last)
        few = _steps(rate, max(whole, N_SEED), len(rate), last) if whole < len(rate) else ""
        text = f"{100 * rate[-1]:.0f}"
        lines.append(
            CurveLine(name, label, kind, path, few, intervals, text, ends[name], heights.get(name))
        )
    return Curve(last, height, lines, parts[0].protocol.name)


def _steps(rate: np.ndarray, first: int, end: int, last: int) -> str:
    """Return the path of a step curve between two N, in percent from the top."""
    path = f"M{first} {100 - 100 * rate[first - 1]:.1f}"
    for n in range(first + 1, end + 1):
        path += f"H{n}" + (f"V{100 - 100 * rate[n - 1]:.1f}" if rate[n - 1] != rate[n - 2] else "")
    return path + (f"H{last + 0.5}" if end == last else "")


def _apart(heights: Mapping[str, float], height: int) -> dict[str, float]:
    """Return heights of names near these, 17 pixels apart or more, within the plot."""
    order = sorted(heights, key=lambda name: heights[name])
    placed: dict[str, float] = {}
    above = -math.inf
    for name in order:
        above = placed[name] = max(heights[name], above + 17)
    below = height + 17.0
    for name in reversed(order):
        below = placed[name] = min(placed[name], below - 17)
    return {name: round(at, 1) for name, at in placed.items()}


class CheckLine(NamedTuple):
    """One check of the judge, with its number drawn."""

    check: Check
    name: str
    text: str
    bar: Bar | None
    line: float | None  # that it should be on the good side of, in percent


_COUNTS_THE_BAD = ("ties", "unreadable_rate")  # named by what is good


def check_lines(trust: JudgeTrust) -> list[CheckLine]:
    """Return the checks of a judge with bars of their numbers."""
    lines = []
    for check in trust.checks:
        name, line, text = check.name, check.line, check.number
        scale = (-1.0, 1.0) if check.key == "label_kappa" else (0.0, 1.0)
        number = check.estimate
        is_second = check.key == "first_preferred" and number.value < 0.5
        is_turned = is_second or check.key in _COUNTS_THE_BAD
        if number.is_bounded and line is not None and is_turned:
            number = (-number).stretched(1.0, 1.0)
            line = 1 - line
            name = name.replace("First", "Second")
            text = f"{100 * number.value:.0f} %"
        if check.state == "unknown":
            text = "not tested"
        at = None
        if line is not None:
            at = _percent(line, scale)
        bar = None
        if number.is_bounded:
            bar = Bar.of(number, scale)
        lines.append(CheckLine(check, name, text, bar, at))
    return lines


_MATTER_MOST = ("false_positive_rate", "model_picked", "label_kappa", "consistency")


def main_checks(lines: Sequence[CheckLine]) -> list[CheckLine]:
    """Return at most three checks for the first screen: what fails, what warns, what matters."""
    bad = [line for state in ("fails", "warns") for line in lines if line.check.state == state]
    good = [line for line in lines if line.check.state == "passes"]
    good.sort(key=lambda line: (*_MATTER_MOST, line.check.key).index(line.check.key))
    return (bad or good)[:3]
