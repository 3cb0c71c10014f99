"""Figures of a leaderboard: svg and png of one look (BotChat Figures 2 to 7)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.flags import NAMES, USUAL
from botchat.boards.names import LABEL_COLUMNS, elided
from botchat.boards.protocols import BesideHuman, Part, Place, Scored
from botchat.boards.tables import Column, Table
from botchat.measures.intervals import mean
from botchat.records import HUMAN, MIN_HUMAN
from botchat.report.figures import cells, charts, curves, formats, points, style
from botchat.report.figures.cells import Cells
from botchat.report.figures.charts import Measure
from botchat.report.figures.points import Standing
from botchat.report.figures.style import NARROW, WIDE, Heading, Look

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
    make: Callable[[Look], Figure]
    """Draws it; can be sent to another process."""

    @cached_property
    def figure(self) -> Figure:
        """The figure as a file has it."""
        return self.make(Look())

    @cached_property
    def svg(self) -> str:
        """As an SVG document."""
        return formats.svg(self.figure)

    @cached_property
    def narrow_svg(self) -> str:
        """As an SVG document for a telephone."""
        return formats.svg(self.make(Look(NARROW)))

    @cached_property
    def png(self) -> bytes:
        """As a PNG."""
        return formats.png(self.figure)

    @property
    def on_page(self) -> tuple[str, str]:
        """`svg` and `narrow_svg` in the colours of the page that they stand in."""
        return formats.themed(self.svg), formats.themed(self.narrow_svg)

    width_in, narrow_width_in = WIDE, NARROW


def drawn(chart: Chart, *, png: bool = True) -> Chart:
    """A chart that holds its svgs, and its png if wanted, without a figure: small to send."""
    made = replace(chart)
    made.__dict__.update(svg=chart.svg, narrow_svg=chart.narrow_svg)
    if png:
        made.__dict__.update(png=chart.png)
    return made


MOST_DRAWN = 100
"""Contestants that figures show; of more the first, and people: a thousand rows are unreadable."""


def draw(board: Board, costs: Mapping[str, float] | None = None) -> list[Chart]:
    """Every figure that the board has the numbers for, most important first.

    ``costs``: contestant -> dollars of one conversation, where known.
    """
    of = board.seed_set
    if (n := len(board.main.frame)) > MOST_DRAWN:
        board = _of_some(board, {*board.main.frame["model"][:MOST_DRAWN], HUMAN})
        of += f" · the first {MOST_DRAWN} of {n:,}"
    where = f"{of} · judged by {elided(board.judge, LABEL_COLUMNS)}"
    drawn: list[Chart] = []
    for base in dict.fromkeys(arena.protocol.base for arena in board.arenas):
        arenas = [one for one in board.arenas if one.protocol.base == base]
        drawn += draw_arenas(arenas, where)
        drawn += _of_ratings(arenas[0], board, where, costs or {})
    drawn += [chart for part in board.of(Place) for chart in _of_places(part, where)]
    drawn += [_against_human(part, where) for part in board.of(BesideHuman)]
    drawn += [
        _scores(part, number, where)
        for part in board.of(Scored)
        for number in part.quoted
        if part.table.frame[number.key].notna().any()
    ]
    drawn += [_judge_health(board.judge_health, where)] if board.judge_health else []
    return [*drawn, *_failures(board, of), *_of_lengths(board, of)]


def _of_some(board: Board, names: Collection[str]) -> Board:
    """The board with these contestants' rows only; ranks, and what they rest on, stay."""

    def some(shown: Table) -> Table:
        keys = [key for key in ("model", "model_a", "model_b") if key in shown.frame]
        kept = shown.frame[keys].isin(names).all(axis=1)
        return replace(shown, frame=shown.frame[kept].reset_index(drop=True))

    def part_of(part: Part) -> Part:
        part = replace(part, table=some(part.table))
        if isinstance(part, Arena):
            return replace(part, pairs=some(part.pairs))
        if isinstance(part, Place) and part.survival:
            return replace(part, survival=some(part.survival))
        return part

    spoken = board.utterance_lengths
    lengths = {name: found for name, found in spoken.by_contestant.items() if name in names}
    return replace(
        board,
        main=some(board.main),
        parts=tuple(map(part_of, board.parts)),
        flags=some(board.flags),
        utterance_lengths=replace(spoken, by_contestant=lengths),
    )


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
    return Chart(said["name"], title, caption, partial(_make, draw, data, heading))


def _make(draw: Callable[..., Figure], data: Sequence[Any], heading: Heading, look: Look) -> Figure:
    with style.styled(look.style):
        return draw(*data, heading._replace(look=look))


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
    ranked = [_ranked(arena.table) for arena in arenas]
    if len(ranked[0]) > 1:
        places = (first.table.signatures, charts.places, ranked[0])
        yield drawn("rank-intervals", *places, count=counts[0], at=titled[0])
    elo = {
        name or "Elo": _with_ends(arena.table, "elo", "rating").dropna(subset="rating")
        for name, arena in zip(named, arenas, strict=True)
    }
    signatures = [arena.table.signature for arena in arenas]
    each = zip(named, counts, strict=True)
    count = "; ".join(f"{name}: {count}" if name else count for name, count in each)
    of_elo = (elo, "Bootstrap Elo (points)", "{:.0f}")
    of_elo_from = partial(charts.series, start=first.elo.init)
    yield drawn("elo", signatures, of_elo_from, *of_elo, count=count)
    if len(arenas) > 1 and len(ranked[0]) > 1:
        # From few utterances to many.
        standing = {
            name: {model: Standing(*row) for model, row in frame.T.items()}
            for name, frame in reversed([*zip(named, ranked, strict=True)])
        }
        slopes = (signatures, points.slopes, standing, "Numbers: the ranks left open.")
        yield drawn("ranks-by-n", *slopes, count=count)
    for arena, count, at in zip(arenas, counts, titled, strict=True):
        parts = [
            Cells(title, *_thrice(arena.matrix, key), 0.5)
            for title, key in (
                ("Win rate (%)", "win_rate"),
                ("Win + tie rate (%)", "win_or_tie_rate"),
            )
        ]
        rates = (arena.table.signatures, cells.squares, parts, "row against column")
        ending = f"-n{arena.protocol.n}" if arena.protocol.n else ""
        yield chart(where, arena, "win-rates", *rates, count=count, at=at, n=ending)


def _thrice(
    of: Callable[[str], pd.DataFrame], key: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """What is under a key, and under those of the ends of its interval."""
    return of(key), of(f"{key}_low"), of(f"{key}_high")


def _ranked(shown: Table) -> pd.DataFrame:
    """The ranks that an Arena leaves open: index model; ``rank``, ``low``, ``high``, ``said``."""
    ranks = _with_ends(shown, "rank", "rank").assign(said=shown.written("rank"))
    return ranks.dropna().astype({"rank": float, "low": float, "high": float})


def _of_ratings(
    arena: Arena, board: Board, where: str, costs: Mapping[str, float]
) -> Iterator[Chart]:
    """What a rating and a rank go with: what a conversation costs, and how much a model says."""
    spoken = board.utterance_lengths
    n = max(1, len(board.human_lengths))
    ends = ["x", "x_low", "x_high"]
    lengths = pd.DataFrame.from_dict(
        {name: _mean(values, n) for name, values in spoken.by_contestant.items() if len(values)},
        orient="index",
        columns=ends,
    )
    prices = pd.DataFrame.from_dict(
        {name: (cost, math.nan, math.nan) for name, cost in costs.items()},
        orient="index",
        columns=ends,
    )
    along = points.Axis(f"Mean {spoken.unit} an utterance", points.spread(lengths["x"].tolist()))
    paid = points.Axis("Dollars for one conversation", log=True)
    rating, rank = points.Axis("Bradley–Terry rating"), points.Axis("Rank", down=True)
    ratings, ranks = _with_ends(arena.table, "bt", "y"), _ranked(arena.table).drop(columns="said")
    signatures = [arena.table.signature, *board.lengths.signatures]
    count = _of(arena.comparisons.n, arena.comparisons.missing)
    for key, signed, xs, x, ys, y, best in (
        ("cost-rating", signatures[:1], prices, paid, ratings, rating, "best for its cost"),
        ("length-rating", signatures, lengths, along, ratings, rating, "best for its length"),
        ("length-rank", signatures, lengths, along, ranks, rank, ""),
    ):
        both = xs.join(ys.set_axis(["y", "y_low", "y_high"], axis=1).dropna(), how="inner")
        if len(both) > 1 and both["x"].any():
            drawn = partial(points.against, pareto=best)
            named: dict[str, Any] = {"count": count, "unit": spoken.unit, "n": arena.protocol.n}
            yield chart(where, arena, key, signed, drawn, both, x, y, **named)


def _mean(values: NDArray[np.int64], n: int) -> tuple[float, float, float]:
    """The mean of a contestant's lengths with its 95 % interval, for other dialogues.

    Lengths are in the order of its dialogues, ``n`` of about as many utterances each.
    """
    each = [float(some.mean()) for some in np.array_split(values, n) if len(some)]
    return float(values.mean()), *mean(each, 0, float(values.max()))


def _failures(board: Board, where: str) -> Iterator[Chart]:
    """How often each contestant does what few people do, by what it does."""
    flags, order = board.flags, [*board.main.frame["model"], HUMAN]
    kinds = [key for key in NAMES if flags.frame[key].notna().any()]
    if not kinds:
        return
    by_model = flags.frame.set_index("model")
    rows = [name for name in dict.fromkeys(order) if name in by_model.index]

    def of(end: str) -> pd.DataFrame:
        keys = [f"{key}{end}" for key in kinds]
        return by_model.loc[rows, keys].set_axis([NAMES[key] for key in kinds], axis=1)

    n = int(flags.frame["measured"].sum())
    drawn = partial(chart, where, None, "failure-types", flags.signatures)
    yield drawn(cells.failures, Cells("", *_thrice(of, ""), USUAL), count=f"{n:,}")


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
    at_n = {f"N = {n}": 100 * _with_ends(shown, key, "success") for n, key in by_n.items()}
    said = ("Success rate (% of dialogues)", "{:.1f}")
    yield drawn("success-rates", shown.signatures, charts.series, at_n, *said, count=count)
    key = "success_human_length"
    count, rates = _counted(shown, key), 100 * _with_ends(shown, key, "success").dropna()
    if len(rates):
        more: dict[str, Any] = {"count": count, "least": MIN_HUMAN}
        yield drawn(key.replace("_", "-"), shown.signatures, charts.intervals, rates, *said, **more)


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


def _of_lengths(board: Board, where: str) -> Iterator[Chart]:
    spoken, unit = board.utterance_lengths.by_contestant, board.utterance_lengths.unit
    if n := sum(map(len, spoken.values())):
        made = partial(chart, where, None, "utterance-lengths", count=f"{n:,}", unit=unit)
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
        partial(_make, charts.human_lengths, [lengths], heading),
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
