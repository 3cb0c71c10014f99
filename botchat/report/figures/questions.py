"""The four figures of the page: a question each, and what was found as its title.

A title says what holds of these data and, where it is about a difference, what their 95 % intervals
leave sure; where they leave nothing it says that. Floor bots are no models, and nor are people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.headline import chance
from botchat.boards.names import elided, is_floor_bot
from botchat.boards.protocols import BesideHuman, Place
from botchat.boards.results import Sides, comparisons_of
from botchat.boards.tables import Table
from botchat.metrics.intervals import by_seed
from botchat.ratings.comparisons import Comparisons
from botchat.records import HUMAN
from botchat.report.figures import cells, points, rows
from botchat.report.figures.chart import Chart, chart
from botchat.report.figures.points import Standing
from botchat.verdicts import Flags, Floats

_LETTERS = 22
"""Of a name in a title."""

_FEWEST = 6
"""Contestants below which nothing is said of neighbours."""


def ask(board: Board, where: str) -> Iterator[Chart]:
    """Those of the four that the board has the numbers for; ``where``: of which set and judge."""
    arena = board.arenas[0] if board.arenas else None
    place = next((part for part in board.of(Place) if part.protocol.about_ai), None)
    if arena:
        yield _strength(board, arena, where)
    if place:
        yield from _mask(place, where)
    for part in board.of(BesideHuman):
        if part.protocol.about_ai and part.table.frame["win"].notna().any():
            yield _beside(board, part, where)
    if arena and arena.comparisons.win.n:
        yield _pairs(arena, where)


def models_of(names: Sequence[str]) -> list[str]:
    """The models among contestants; the floor bots where there is none."""
    known = [name for name in names if name != HUMAN]
    return [name for name in known if not is_floor_bot(name)] or known


def _what(names: Sequence[str], n: int | None = None) -> str:
    """Such as ``14 models``."""
    what = "floor bot" if names and all(map(is_floor_bot, names)) else "model"
    n = len(names) if n is None else n
    return f"{n} {what}{'' if n == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    """``A``, ``A and B`` or ``A and 4 more``."""
    short = [elided(name.rpartition("/")[2] or name, _LETTERS) for name in names]
    return " and ".join(short) if len(short) < 3 else f"{short[0]} and {len(short) - 1} more"


# ------------------------------------------------------------------------- who is better, by how


def ends_of(shown: Table, key: str, name: str) -> pd.DataFrame:
    """Index model; a column under this name, and ``low`` and ``high``, the ends of its interval."""
    keys = [key, *(end.key for end in shown.ends(key) or ())]
    return shown.frame.set_index("model")[keys].set_axis([name, "low", "high"], axis=1)


def _left_open(shown: Table) -> pd.DataFrame:
    """The places that an Arena leaves open: index model; ``rank``, ``low``, ``high``, ``said``."""
    ranks = ends_of(shown, "rank", "rank").assign(said=shown.written("rank"))
    return ranks.dropna().astype({"rank": float, "low": float, "high": float})


def _chances(arena: Arena) -> pd.DataFrame:
    found = ends_of(arena.table, "bt", "of 100").dropna(subset="of 100").astype(float)
    return 100 * found.map(chance)


def _strength(board: Board, long: Arena, where: str) -> Chart:
    same = [one for one in board.arenas if one.protocol.base == long.protocol.base]
    short = same[-1] if len(same) > 1 else None
    places, now = _left_open(long.table), _chances(long)
    said = "Times in 100 called more human than an average one, with 95 % intervals."
    if short is None:
        return chart(
            "strength", _first(places, long), said, f"{long.comparisons.win.n:,} comparisons",
            where, long.table.signatures, rows.series, {"of 100": now.assign(place=places["said"])},
            "times in 100", "{:.0f}", question="Who is better?",
        )  # fmt: skip
    before, then = _left_open(short.table), _chances(short)
    both = [name for name in places.index if name in before.index]
    up = [name for name in both if places["high"][name] < before["low"][name]]
    down = [name for name in both if places["low"][name] > before["high"][name]]
    at = f"at {short.protocol.n} and at {long.protocol.n} lines"
    title = _first(places, long) + "; length moves nobody for certain" * (not long.few)
    if up or down:
        told = [f"{verb} {_listed(some)}" for verb, some in (("lift", up), ("sink", down)) if some]
        title = f"Longer chats {' and '.join(told)}"
    standing = {
        f"{one.protocol.n} lines": {
            str(name): Standing(v, low, high, f"{v:.0f}")
            for name, v, low, high in found.itertuples()
        }
        for one, found in ((short, then), (long, now))
    }
    return chart(
        "strength", title, f"{said} Dark: the places left open {at} do not meet.",
        f"{short.comparisons.win.n:,} and {long.comparisons.win.n:,} comparisons", where,
        [short.table.signature, long.table.signature], points.slopes, standing, {*up, *down},
        question="Who is better, and does length change it?",
    )  # fmt: skip


def _first(places: pd.DataFrame, arena: Arena) -> str:
    """Who may be first among models, as far as places are left open."""
    names = models_of([*places.index])
    if arena.few:
        return f"Too few {arena.strengths.design.unit} to say who is better"
    if len(names) < 2:
        return f"{_listed(names)} is alone" if names else "Nobody is compared"
    best = min(places["high"][name] for name in names)
    ahead = [name for name in names if places["low"][name] <= best]
    if len(ahead) == 1:
        return f"{_listed(ahead)} is ahead of all others"
    if len(ahead) == len(names):
        return f"Nobody is ahead: each of {_what(names)} may be first"
    return f"{len(ahead)} of {_what(names)} may be first"


def scores(made: Comparisons, names: Sequence[str]) -> tuple[Floats, Floats, Floats]:
    """Of some contestants against each other, a win 1 and a tie ½: mean and 95 % interval.

    Three squares in the order of the names; NaN where two were not compared.
    """
    sides, m, place = Sides.of(made), len(names), {name: i for i, name in enumerate(names)}
    of_model = np.array([place.get(name, -1) for name in made.models], dtype=np.intp)
    side, other = of_model[sides.side], of_model[sides.other]
    kept = (side >= 0) & (other >= 0)
    seed = None if sides.seed is None else sides.seed[kept]
    found = by_seed((side * m + other)[kept], seed, sides.result[kept], m * m)
    value, low, high = (one.reshape(m, m) for one in (found.value, found.low, found.high))
    return value, low, high


def told_apart(arena: Arena) -> tuple[list[str], Floats, Flags]:
    """Contestants by rating, their scores, and where the interval leaves out one half."""
    names = [str(name) for name in arena.table.frame["model"] if name in arena.compared.models]
    value, low, high = scores(arena.compared, names)
    return names, value, (low > 0.5) | (high < 0.5)


def _pairs(arena: Arena, where: str) -> Chart:
    names, score, told = told_apart(arena)
    upper = np.triu(np.isfinite(score), 1)
    n, level = int(upper.sum()), np.argwhere(upper & ~told)
    title = f"{len(level):,} of {n:,} pairs cannot be told apart"
    if len(level) in (0, n):
        title = "No pair can be told apart" if len(level) else f"All {n:,} pairs can be told apart"
    else:
        near = float(np.mean(level[:, 1] - level[:, 0] <= 2))
        if len(names) > _FEWEST and near >= 0.8:
            title += f", {'all' if near == 1 else 'nearly all'} of them neighbours"
    return chart(
        "pairs", title, "Row against column, by place; a win 1, a tie ½. Darker: more often more "
        "human. Ring: the 95 % interval holds 50.",
        f"{arena.comparisons.win.n:,} comparisons", where, arena.table.signatures,
        cells.triangle, names, score, told, question="Who beats whom?",
    )  # fmt: skip


# ----------------------------------------------------------------------------- read one by one


def _mask(part: Place, where: str) -> Iterator[Chart]:
    shown, by_n = part.table, part.table.by_n()
    ns = sorted(by_n)
    last = ns[-1]
    first = 8 if 8 in ns and last > 8 else ns[0]
    if first == last:
        return
    found = pd.concat(
        [ends_of(shown, by_n[n].key, "at").astype(float).add_prefix(f"{name}_")
         for name, n in (("short", first), ("long", last))], axis=1,
    )  # fmt: skip
    found = found.dropna(how="all").sort_values("long_at", ascending=False, kind="stable")
    some = found.loc[models_of([str(name) for name in found.index[found["long_at"].notna()]])]
    sure = some[some["long_high"] < some["short_low"]]
    half = sure[sure["long_at"] < sure["short_at"] / 2]
    between = f"between line {first} and line {last}"
    title = f"Nobody clearly loses {between}"
    if len(some) and (some["long_at"] == 0).all():
        title = f"Nobody passes {last} lines"
    elif n := len(half) or len(sure):
        how = "more than half" if len(half) else "clearly"
        title = f"{n} of {_what([*some.index])} lose{'s' * (n == 1)} {how} {between}"
    yield chart(
        "mask", title,
        f"Of 100 chats, how many pass after {first} lines (open) and after {last} (filled). "
        "Boxes: 95 % intervals. Right: points lost.",
        f"{cases(shown, by_n[last].key)} chats", where, shown.signatures,
        rows.lost, found, first, last, question="How long does the mask hold?",
    )  # fmt: skip


def cases(shown: Table, of: str = "") -> str:
    """The cases that a column, or every row, is from."""
    readable, missing = (shown.column(role=role, of=of).key for role in ("readable", "missing"))
    return counted(int(shown.frame[readable].sum()), int(shown.frame[missing].sum()))


def counted(readable: int, missing: int) -> str:
    """Such as ``40``, or ``38 of 40``."""
    return f"{readable:,}" if not missing else f"{readable:,} of {readable + missing:,}"


def _beside(board: Board, part: BesideHuman, where: str) -> Chart:
    rates = part.table.frame.set_index("model")[["win", "tie", "lose"]].dropna().astype(float)
    order = (rates["win"] + rates["tie"] / 2).sort_values(ascending=False, kind="stable").index
    made = board.evidence[part.protocol.name].verdicts
    names = models_of([str(name) for name in order])
    _, low, high = scores(comparisons_of(made.only(made.readable)), [*names, HUMAN])
    above = [name for name, end in zip(names, low[:-1, -1], strict=True) if end > 0.5]
    level = [name for name, end in zip(names, high[:-1, -1], strict=True)
             if end >= 0.5 and name not in above]  # fmt: skip
    if above:
        verb = "is" if len(above) == 1 else "are"
        title = f"{_listed(above)} {verb} called more human than people"
    elif level:
        title = f"{len(level)} of {_what(names)} cannot be told from people"
    else:
        title = "The judge finds every one more often than it is fooled"
    return chart(
        "beside-people", title,
        "Beside the real chat of the same start, cut to its length: whether the judge finds the "
        "model, cannot tell, or takes the person for it. Centred on ‘cannot tell’.",
        f"{cases(part.table)} comparisons", where, part.table.signatures,
        rows.wings, rates.loc[order], question="Beside a real person’s chat?",
    )  # fmt: skip
