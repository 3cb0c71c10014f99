"""What the first screen shows of one judge's board, ready to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from botchat.boards import headline, judge_verdict, people_line
from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_verdict import Check, JudgeVerdict
from botchat.boards.names import columns, elided, is_floor_bot
from botchat.boards.protocols import Place
from botchat.boards.survival import Curve
from botchat.interfaces import Row
from botchat.measures.intervals import LEAST
from botchat.records import HUMAN
from botchat.report.main_table import Bar, MainTable, address, interval_bar, main_table, steps
from botchat.report.plane import Axis, Interval, Plane, Point, laid_out, spread

_LABEL = 24
"""Letters of a name over a small picture."""

_ROOM = (2.89, 2.58)
"""Inches of the picture's field on the narrowest screen; on a wider one marks move apart."""

_LETTER = 6.3 / 96
"""Width of a letter of its names, in inches."""

_LETTERS = 22
"""Of a name in it."""


@dataclass(frozen=True)
class Facts:
    """What is known of a board beyond its tables."""

    headline: Headline
    verdict: JudgeVerdict
    people: Interval | None = None
    """Where people are on the rating scale."""
    costs: Mapping[str, float] | None = None
    """Contestant -> dollars of one dialogue, where they are known; 0: free."""

    @classmethod
    def of(
        cls,
        board: Board,
        others: Sequence[Board] = (),
        people: Row | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> Facts:
        """What a board says of itself, beside the boards of ``others`` and of people."""
        line = people_line.of(board)
        verdict = judge_verdict.of(board, others, people)
        return cls(
            headline.of(board, others, verdict),
            verdict,
            (line.rating, line.low, line.high) if line else None,
            costs,
        )


@dataclass(frozen=True)
class Checked:
    """One check of the judge, with its number drawn."""

    check: Check
    bar: Bar | None
    reference: float | None
    """Where the line is that it should be on the good side of, in percent."""
    href: str


@dataclass(frozen=True)
class Small:
    """The survival curve of one contestant."""

    name: str
    label: str
    href: str
    path: str
    band: str
    people: str
    half: str
    last: str


@dataclass(frozen=True)
class Plot:
    """Every model's number against one thing that it takes."""

    key: str
    unit: str
    plane: Plane
    people: Sequence[float]
    """Where people are with their interval, as shares of the upright axis; empty: not known."""


@dataclass(frozen=True)
class Screen:
    """The first screen of one judge."""

    headline: Headline
    verdict: JudgeVerdict
    checks: Sequence[Checked]
    summary: str
    """Of the checks, a line."""
    is_checked: bool
    """Whether any check has a result."""
    table: MainTable
    people_curve: str
    rated: str
    """What the pictures show: "Rating" or what else the table is ranked by."""
    plots: Sequence[Plot]
    links: Mapping[str, str]
    """Contestant -> where it is compared."""
    curves: Sequence[Small]
    is_small: bool
    """So few contestants that everything can be open."""


@dataclass(frozen=True)
class JudgePanel:
    """How one judge rates everybody, in the order of the first judge."""

    judge: str
    word: str
    rated: str
    people: Bar | None
    rows: Sequence[PanelRow]


@dataclass(frozen=True)
class PanelRow:
    """One contestant by one judge."""

    name: str
    label: str
    is_floor: bool
    bar: Bar | None
    said: str


def screen(board: Board, facts: Facts, judge: str, view: str) -> Screen:
    """The first screen. ``judge``, ``view``: as of `main_table`."""
    numbers, rated, in_percent = rating(board)
    people = facts.people if not in_percent else None
    models = {name: told for name, told in numbers.items() if name != HUMAN}
    table = main_table(board, judge, view, facts.people)
    arenas = board.arenas
    links = {}
    if view:
        for name in models:
            to = {"view": "pair", "protocol": arenas[0].protocol.name} if arenas else {"view": view}
            links[name] = address(judge, **to, a=name)
    counted = [sum(check.state == state for check in facts.verdict.checks)
               for state in ("fails", "warns", "passes", "unknown")]  # fmt: skip
    said = zip(counted, ("failed", "doubtful", "passed", "not known"), strict=True)
    return Screen(
        facts.headline,
        facts.verdict,
        [_checked(check, judge, view, board) for check in facts.verdict.checks],
        "Checks: " + ", ".join(f"{n} {word}" for n, word in said if n),
        any(counted[:3]),
        table,
        _people_curve(board),
        rated,
        _plots(board, facts, models, people, in_percent),
        links,
        _curves(board, judge, view),
        len(models) <= 5,
    )


def rating(board: Board) -> tuple[dict[str, Interval], str, bool]:
    """Contestant -> the number that the board is ranked by, with its interval, best first.

    Then what it is called, and whether it is a share.
    """
    main = board.main
    key = main.column(role="rank").of
    if not key:
        return {}, "", False
    column, ends = main.column(key), main.ends(key)
    if column.kind not in ("rating", "rate") or ends is None:
        return {}, column.heading, False
    keys = [column.key, ends[0].key, ends[1].key]
    found = {}
    for name, *row in main.frame[["model", *keys]].itertuples(index=False):
        value, low, high = (float("nan") if pd.isna(x) else float(x) for x in row)
        if np.isfinite(value):
            whole = np.isfinite(low) and np.isfinite(high)
            found[name] = (value, low, high) if whole else (value, value, value)
    word = "Rating" if column.kind == "rating" else column.heading
    return found, word, column.kind == "rate"


def panels(boards: Sequence[Board], facts: Sequence[Facts]) -> list[JudgePanel]:
    """Every contestant by every judge, in the order of the first; of several judges only."""
    if len(boards) < 2:
        return []
    order = [name for name in rating(boards[0])[0] if name != HUMAN]
    found = []
    for board, known in zip(boards, facts, strict=True):
        numbers, rated, in_percent = rating(board)
        people = known.people if not in_percent else None
        ends = [end for name, told in numbers.items() if name != HUMAN for end in told]
        ends += list(people or ())
        low, high = (0.0, 1.0) if in_percent else (min(ends, default=0), max(ends, default=1))
        if high - low < 1e-6:
            low, high = low - 1, high + 1
        rows = []
        for name in order:
            told = numbers.get(name)
            said = ""
            if told:
                form = "{:.0f} %" if in_percent else "{:.0f}"
                shown = [form.format(100 * x if in_percent else x) for x in told]
                said = f"{shown[0]}, 95 % interval {shown[1]} to {shown[2]}"
            bar = interval_bar(told, (low, high)) if told else None
            rows.append(PanelRow(name, elided(name, _LABEL), is_floor_bot(name), bar, said))
        line = interval_bar(people, (low, high)) if people else None
        found.append(JudgePanel(board.judge, known.verdict.word, rated, line, rows))
    return found


def _plots(
    board: Board,
    facts: Facts,
    numbers: Mapping[str, Interval],
    people: Interval | None,
    in_percent: bool,
) -> list[Plot]:
    """A plot against each thing that tells at least two models apart.

    ``numbers``: model -> what it is rated by, best first; shares if ``in_percent``.
    """
    long = board.lengths.values(board.lengths.columns[2].key)
    flagged = board.main.values("flagged") if "flagged" in board.main.frame else {}
    mean = f"mean {board.utterance_lengths.unit}"
    share = Axis("share flagged without a judge", _percent, ends=(0.0, 1.0))
    up = Axis("", _percent, ends=(0.0, 1.0)) if in_percent else Axis("", "{:.0f}".format, least=40)
    found, nan = [], float("nan")
    for key, unit, values, axis in (
        ("cost", "US dollars", facts.costs or {}, Axis("cost of a dialogue", _dollars)),
        ("length", mean, long, Axis("length of an utterance", "{:.3g}".format)),
        ("flags", "dialogues with a flag", flagged, share),
    ):
        there = {name: float(values[name]) for name in numbers if not pd.isna(values.get(name))}
        if len(set(there.values())) < 2:
            continue
        plane = laid_out(
            {name: Point(x, nan, nan, *numbers[name]) for name, x in there.items()},
            replace(axis, log=axis.ends is None and spread(there.values())),
            up,
            _ROOM,
            lambda text: _LETTER * columns(text),
            {name: elided(name, _LETTERS) for name in there},
            pareto=key == "cost",
            beside=people or (),
        )
        line = [plane.up.share(end) for end in people or ()]
        found.append(Plot(key, unit, plane, line))
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _dollars(usd: float) -> str:
    return f"${usd:.2g}" if usd > 0 else "free"


def _checked(check: Check, judge: str, view: str, board: Board) -> Checked:
    bar = reference = None
    if check.value is not None and check.low is not None and check.high is not None:
        scale = (-1.0, 1.0) if check.key in ("other_judges", "people_agree") else (0.0, 1.0)
        bar = interval_bar((check.value, check.low, check.high), scale)
        if check.reference is not None:
            reference = interval_bar((check.reference,) * 3, scale).at
    return Checked(check, bar, reference, _evidence(check, judge, board) if view else "")


def _evidence(check: Check, judge: str, board: Board) -> str:
    """Where the cases that a check counts are read; empty: they are nobody's."""
    key = check.key
    if key in ("other_judges", "people_agree"):
        return "#judges"
    bots = [name for name in board.main.frame["model"] if is_floor_bot(name)]
    of = {"people_accused": "", "bots_caught": "bots", "machines_caught": "machines"}
    if key in of and check.protocol:
        who = {"of": of[key], "show": "lose"} if of[key] else {"a": HUMAN, "show": "win"}
        return address(judge, check.protocol, **who)
    of_pairs = {"same_winner": "same", "first_preferred": "first", "ties": "decided"}
    parts = [part.protocol for part in board.parts]
    quoted = next((one for one in parts if one.name == check.protocol), None)
    if key == "unreadable_rate" and quoted:
        if quoted.shows == "one":
            return address(judge, quoted.name, of="all", show="read")
        return address(judge, "pair", protocol=quoted.name, of="all", show="readable")
    if key in of_pairs and quoted:
        return address(judge, "pair", protocol=quoted.name, of="all", show=of_pairs[key])
    beside = next((one.name for one in parts if one.shows == "human"), "")
    if key == "machine_picked" and beside:
        said = "bots" if bots else "all"
        return address(judge, "pair", protocol=beside, of=said, show="lose")
    if key == "best_floor_bot" and bots and board.leading:
        leading = board.leading.protocol.name
        return address(judge, "pair", protocol=leading, a=bots[0], of="all")
    return ""


def _people_curve(board: Board, width: float = 100, height: float = 20) -> str:
    """Survival of people's own dialogues."""
    curve = next((part.curves.get(HUMAN) for part in board.of(Place)), None)
    if curve is None:
        return ""
    return steps(_finite(curve.surviving), width, height)


def _finite(shares: np.ndarray) -> list[float]:
    return [float(share) for share in shares if np.isfinite(share)]


def _curves(board: Board, judge: str, view: str) -> list[Small]:
    """The survival curves of the models, in the order of the table."""
    part = next(iter(board.of(Place)), None)
    if part is None:
        return []
    people = _people_curve(board, 150, 56)
    found = []
    for name in board.main.frame["model"]:
        curve = part.curves.get(name)
        if name == HUMAN or curve is None or curve.at_risk[0] < 1:
            continue
        half, last = curve.reached(0.5), _finite(curve.surviving)
        found.append(
            Small(
                name,
                elided(name, _LABEL),
                address(judge, part.protocol.name, a=name, show="lose") if view else "",
                steps(last, 150, 56),
                _band(curve),
                people,
                f"half by {half}" if half else "most remain",
                f"{100 * last[-1]:.0f} % at {len(last)}" if curve.at_risk[0] >= LEAST else "",
            )
        )
    return found


def _band(curve: Curve) -> str:
    """The area between the ends of the intervals."""
    low, high = _finite(curve.low), _finite(curve.high)
    n = min(len(low), len(high))
    upper, lower = steps(high[:n], 150, 56), []
    for i in range(n - 1, -1, -1):
        y = round(1 + (1 - low[i]) * 54, 2)
        lower.append(f"V{y:g}H{round(150 * i / n, 2):g}")
    return upper + "".join(lower) + "Z" if n else ""
