"""Figures of a leaderboard: svg and png of one look (BotChat Figures 2 to 7)."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import resources
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.protocols import BesideHuman, Part, Place, Scored
from botchat.boards.tables import LABEL_COLUMNS, Column, Table, elided
from botchat.records import MIN_HUMAN
from botchat.report.figures import charts, curves, style
from botchat.report.figures.charts import Measure
from botchat.report.figures.style import Heading

_TEXTS = tomllib.loads(resources.files(__package__).joinpath("texts.toml").read_text("utf-8"))

BESIDE: Mapping[str, Mapping[str, str]] = _TEXTS["beside"]
"""Texts of the figures of judges beside each other."""


@dataclass(frozen=True)
class Chart:
    """One figure; it is drawn when it is first asked for."""

    name: str
    """File name without ending."""
    title: str
    caption: str
    """What it shows and from how many comparisons."""
    make: Callable[[], Figure]
    """Draws it; can be sent to another process."""

    @cached_property
    def figure(self) -> Figure:
        """The figure itself."""
        return self.make()

    @cached_property
    def width_in(self) -> float:
        """Width in inches."""
        return float(self.figure.get_figwidth())

    @cached_property
    def svg(self) -> str:
        """As an SVG document."""
        return style.svg(self.figure)

    @cached_property
    def png(self) -> bytes:
        """As a PNG."""
        return style.png(self.figure)


def drawn(chart: Chart, *, png: bool = True) -> Chart:
    """A chart that holds its svg, and its png if wanted, without a figure: small to send."""
    made = replace(chart)
    made.__dict__.update(svg=chart.svg, width_in=chart.width_in)
    if png:
        made.__dict__.update(png=chart.png)
    return made


def draw(board: Board) -> list[Chart]:
    """Every figure that the board has the numbers for, most important first."""
    where = f"{board.seed_set} · judged by {elided(board.judge, LABEL_COLUMNS)}"
    drawn: list[Chart] = []
    for base in dict.fromkeys(arena.protocol.base for arena in board.arenas):
        drawn += draw_arenas([one for one in board.arenas if one.protocol.base == base], where)
    drawn += [chart for part in board.of(Place) for chart in _of_places(part, where)]
    drawn += [_against_human(part, where) for part in board.of(BesideHuman)]
    drawn += [_scores(part, number, where) for part in board.of(Scored) for number in part.quoted]
    drawn += [_judge_health(board.judge_health, where)] if board.judge_health else []
    return [*drawn, *_of_lengths(board)]


def chart(
    where: str,
    part: Part | None,
    key: str,
    signatures: Sequence[str],
    draw: Callable[..., Figure],
    *data: Any,
    texts: Mapping[str, Mapping[str, str]] = _TEXTS,
    **facts: Any,
) -> Chart:
    """The figure ``draw(*data, heading)`` with the texts under ``key`` in ``texts.toml``.

    ``where``: what it is made from, before the count; ``facts``: what the texts name.
    """
    if part:
        protocol = part.protocol
        facts |= {"protocol": protocol.title, "id": protocol.name, "stem": "", "prefix": ""}
        if not protocol.leads:
            facts |= {"stem": f"{protocol.name}-", "prefix": f"{protocol.title}: "}
    said = {name: text.format_map(facts) for name, text in texts[key].items()}
    title, count = said["title"], said["count"]
    heading = Heading(title, f"{where} · {count}", signatures)
    caption = f"{said['caption']} {count[0].upper()}{count[1:]}."
    return Chart(said["name"], title, caption, partial(draw, *data, heading))


def draw_arenas(arenas: Sequence[Arena], where: str) -> Iterator[Chart]:
    """Of one protocol, the largest N first, if N is known; ``where`` says what they are of."""
    first = arenas[0]
    drawn = partial(chart, where, first)
    counts = [_of(arena.comparisons.n, arena.comparisons.missing) for arena in arenas]
    named = [f"N = {n}" if (n := arena.protocol.n) else "" for arena in arenas]
    titled = [f", {name}" if name else "" for name in named]
    ratings = _with_ends(first.table, "bt", "rating")
    ratings = ratings.assign(rank=first.table.written("rank")).dropna(subset="rating")
    bt = (first.table.signatures, charts.intervals, ratings, "Bradley–Terry rating (points)")
    yield drawn("bradley-terry", *bt, "{:.0f}", count=counts[0], at=titled[0])
    elo = {
        name or "Elo": _with_ends(arena.table, "elo", "rating").dropna(subset="rating")
        for name, arena in zip(named, arenas, strict=True)
    }
    signatures = [arena.table.signature for arena in arenas]
    each = zip(named, counts, strict=True)
    count = "; ".join(f"{name}: {count}" if name else count for name, count in each)
    yield drawn("elo", signatures, charts.ratings, elo, first.elo.init, count=count)
    for arena, count, at in zip(arenas, counts, titled, strict=True):
        parts = {
            "Win rate (%)": arena.matrix("win_rate"),
            "Win + tie rate (%)": arena.matrix("win_or_tie_rate"),
        }
        rates = (arena.table.signatures, charts.squares, parts, "row against column")
        ending = f"-n{arena.protocol.n}" if arena.protocol.n else ""
        yield chart(where, arena, "win-rates", *rates, count=count, at=at, n=ending)


def _of_places(part: Place, where: str) -> Iterator[Chart]:
    shown, survival = part.table, part.survival
    drawn = partial(chart, where, part)
    if survival:
        frame = survival.frame
        early, missing = (int(frame[key].sum()) for key in ("early", "missing"))
        count = _of(int(frame["dialogues"].sum()), missing)
        of_name = {name: part.curves[name] for name in frame["model"]}
        signatures = survival.signatures
        yield drawn("survival", signatures, curves.survival, of_name, count=count, early=early)
    by_n = {int(column.n or 0): column.key for column in part.ranking}
    count = _counted(shown, next(iter(by_n.values())))
    at_n = {n: _with_ends(shown, key, "success") for n, key in by_n.items()}
    yield drawn("success-rates", shown.signatures, charts.success_rates, at_n, count=count)
    key, draw = "success_human_length", charts.success_at_human_length
    count, rates = _counted(shown, key), _with_ends(shown, key, "success")
    yield drawn("success-human-length", shown.signatures, draw, rates, count=count, least=MIN_HUMAN)


def _against_human(part: BesideHuman, where: str) -> Chart:
    rates, count = part.table.frame.set_index("model"), _counted(part.table)
    key, signatures = "against-human", part.table.signatures
    return chart(where, part, key, signatures, charts.against_human, rates, count=count)


def _scores(part: Scored, number: Column, where: str) -> Chart:
    means = _with_ends(part.table, number.key, "mean").dropna(subset="mean")
    quoted, scale, count = part.quote(number), part.protocol.asked_scale, _counted(part.table)
    made = partial(chart, name=quoted.key.replace("_", "-"), number=quoted, scale=scale)
    drawn = (part.table.signatures, charts.intervals, means, "Mean score", "{:.2f}")
    return made(where, part, "scores", *drawn, count=count)


def _judge_health(judge: Table, where: str) -> Chart:
    judged, unreadable = (int(judge.frame[key].sum()) for key in ("judged", "unreadable"))
    count, data = _of(judged - unreadable, unreadable), (judge, measures("judge-health"))
    return chart(where, None, "judge-health", judge.signatures, charts.health, *data, count=count)


def measures(key: str) -> list[Measure]:
    """The columns of a figure of judges, from ``texts.toml``."""
    return [Measure(**given) for given in _TEXTS["measures"][key]]


def _of_lengths(board: Board) -> Iterator[Chart]:
    spoken, unit = board.utterance_lengths.by_contestant, board.utterance_lengths.unit
    if n := sum(map(len, spoken.values())):
        made = partial(chart, board.seed_set, None, "utterance-lengths", count=f"{n:,}", unit=unit)
        yield made(board.lengths.signatures, charts.utterance_lengths, spoken, unit)
    lengths = board.human_lengths
    if not lengths:
        return
    n, eligible = len(lengths), sum(length >= MIN_HUMAN for length in lengths)
    title = "Length of the human dialogues"
    count = f"{n:,} dialogues, {eligible:,} with {MIN_HUMAN} and more"
    heading = Heading(title, f"{board.seed_set} · {count}", [board.seeds_signature])
    yield Chart(
        "human-lengths",
        title,
        f"Utterances of the {n:,} human dialogues; Arena and GTEval use the {eligible:,} with at "
        f"least {MIN_HUMAN}.",
        partial(charts.human_lengths, lengths, heading),
    )


def _with_ends(shown: Table, key: str, name: str) -> pd.DataFrame:
    """Index model; a column under this name, and ``low`` and ``high``, the ends of its interval."""
    keys = [key, *(end.key for end in shown.ends(key) or ())]
    return shown.frame.set_index("model")[keys].set_axis([name, "low", "high"], axis=1)


def _counted(part: Table, of: str = "") -> str:
    """The cases that a column, or every row, is from."""
    readable, missing = (part.column(role=role, of=of).key for role in ("readable", "missing"))
    return _of(int(part.frame[readable].sum()), int(part.frame[missing].sum()))


def _of(readable: int, missing: int) -> str:
    return f"{readable:,}" if not missing else f"{readable:,} of {readable + missing:,}"
