"""Figures of a leaderboard: svg and png of one look (BotChat Figures 2 to 7).

A new figure is one function here: its numbers, its words, and how it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
from botchat.report.figures import cells, curves, formats, points, rows, style
from botchat.report.figures.cells import Cells
from botchat.report.figures.points import Standing
from botchat.report.figures.style import NARROW, WIDE, Heading, Look
from botchat.report.plane import Axis, Point, spread


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
        return style.svg(self.figure)

    @cached_property
    def narrow_svg(self) -> str:
        """As an SVG document for a telephone."""
        return style.svg(self.make(Look(NARROW)))

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


def chart(
    name: str,
    title: str,
    caption: str,
    count: str,
    where: str,
    signatures: Sequence[str],
    draw: Callable[..., Figure],
    *data: Any,
) -> Chart:
    """The figure ``draw(*data, heading)``.

    ``count``: from how many comparisons or dialogues, the caption's last words; ``where``: of which
    set and by which judge.
    """
    heading = Heading(title, f"{where} · {count}", signatures)
    caption = f"{caption} {count[0].upper()}{count[1:]}."
    return Chart(name, title, caption, partial(_make, draw, data, heading))


def _make(draw: Callable[..., Figure], data: Sequence[Any], heading: Heading, look: Look) -> Figure:
    with style.styled():
        return draw(*data, heading._replace(look=look))


def _of(part: Part, name: str, title: str) -> tuple[str, str]:
    """Name and title of a figure of a protocol, which says its own where another one leads."""
    protocol = part.protocol
    if protocol.leads:
        return name, title
    return f"{protocol.name}-{name}", f"{protocol.title}: {title}"


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
    return [*drawn, *_failures(board, of), *_utterance_lengths(board, of), *_human_lengths(board)]


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


# -------------------------------------------------------------------------------------- Arenas


def draw_arenas(arenas: Sequence[Arena], where: str) -> Iterator[Chart]:
    """Of one protocol, the largest N first, if N is known; ``where`` says what they are of."""
    yield _bradley_terry(arenas[0], where)
    ranked = [_ranked(arena.table) for arena in arenas]
    if len(ranked[0]) > 1:
        yield _rank_intervals(arenas[0], ranked[0], where)
    if arenas[0].elo:
        yield _elo(arenas, where)
    if len(arenas) > 1 and len(ranked[0]) > 1:
        yield _ranks_by_n(arenas, ranked, where)
    for arena in arenas:
        yield _win_rates(arena, where)


def _n(arena: Arena) -> str:
    """Such as ``N = 16``, if it is known."""
    return f"N = {n}" if (n := arena.protocol.n) else ""


def _at(arena: Arena) -> str:
    return f", {n}" if (n := _n(arena)) else ""


def _compared(arena: Arena) -> str:
    return _counted(arena.comparisons.n, arena.comparisons.missing)


def _each(arenas: Sequence[Arena]) -> str:
    """The comparisons of each N."""
    each = [(_n(arena), _compared(arena)) for arena in arenas]
    return "comparisons: " + "; ".join(f"{n}: {many}" if n else many for n, many in each)


def _bradley_terry(arena: Arena, where: str) -> Chart:
    ratings = _with_ends(arena.table, "bt", "rating")
    ratings = ratings.assign(rank=arena.table.written("rank")).dropna(subset="rating")
    return chart(
        *_of(arena, "bradley-terry", f"Bradley–Terry ratings with 95 % intervals{_at(arena)}"),
        "Each model's rating and 95 % interval. Rank: the places that the comparisons leave open, "
        "of all models at once; it is this that says who is clearly better, not whether two lines "
        "overlap.",
        f"{_compared(arena)} comparisons", where, arena.table.signatures,
        rows.intervals, ratings, "Bradley–Terry rating (points)", "{:.0f}",
    )  # fmt: skip


def _ranked(shown: Table) -> pd.DataFrame:
    """The ranks that an Arena leaves open: index model; ``rank``, ``low``, ``high``, ``said``."""
    ranks = _with_ends(shown, "rank", "rank").assign(said=shown.written("rank"))
    return ranks.dropna().astype({"rank": float, "low": float, "high": float})


def _rank_intervals(arena: Arena, ranked: pd.DataFrame, where: str) -> Chart:
    return chart(
        *_of(arena, "rank-intervals", f"Ranks that the comparisons leave open{_at(arena)}"),
        "Behind all models that are clearly better, before all that are clearly worse; all ranks "
        "hold together with 95 %. The dot is the rank by rating.",
        f"{_compared(arena)} comparisons", where, arena.table.signatures, rows.places, ranked,
    )  # fmt: skip


def _elo(arenas: Sequence[Arena], where: str) -> Chart:
    first, elo = arenas[0], {}
    assert first.elo
    for arena in arenas:
        elo[_n(arena) or "Elo"] = _with_ends(arena.table, "elo", "rating").dropna(subset="rating")
    name = _of(first, "elo", "")[0]
    return chart(
        name, f"Bootstrap Elo in {first.protocol.title}",
        "Ratings as in the paper, from comparisons of two models' dialogues, in the order of their "
        "Bradley–Terry rating; the dashed line is where all start.",
        _each(arenas), where, [arena.table.signature for arena in arenas],
        partial(rows.series, start=first.elo.init), elo, "Bootstrap Elo (points)", "{:.0f}",
    )  # fmt: skip


def _ranks_by_n(arenas: Sequence[Arena], ranked: Sequence[pd.DataFrame], where: str) -> Chart:
    # From few utterances to many.
    standing = {
        _n(arena): {model: Standing(*row) for model, row in frame.T.items()}
        for arena, frame in reversed([*zip(arenas, ranked, strict=True)])
    }
    return chart(
        *_of(arenas[0], "ranks-by-n", "What longer dialogues change"),
        "Each model's place at each N; beside its name the ranks that are left open. A line is "
        "dark where they do not overlap, otherwise the change can be chance.",
        _each(arenas), where, [arena.table.signature for arena in arenas],
        points.slopes, standing, "Numbers: the ranks left open.",
    )  # fmt: skip


def _win_rates(arena: Arena, where: str) -> Chart:
    parts = [
        Cells(title, *_thrice(arena.matrix, key), 0.5)
        for title, key in (("Win rate (%)", "win_rate"), ("Win + tie rate (%)", "win_or_tie_rate"))
    ]
    ending = f"-n{arena.protocol.n}" if arena.protocol.n else ""
    return chart(
        *_of(arena, f"win-rates{ending}", f"Win rates between models{_at(arena)}"),
        "How often the row's model wins, or at least ties, against the column's; both by rating. "
        "Bold: the 95 % interval leaves out 50.",
        f"{_compared(arena)} comparisons", where, arena.table.signatures,
        cells.squares, parts, "row against column",
    )  # fmt: skip


def _thrice(
    of: Callable[[str], pd.DataFrame], key: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """What is under a key, and under those of the ends of its interval."""
    return of(key), of(f"{key}_low"), of(f"{key}_high")


RATING = Axis("Bradley–Terry rating", "{:.0f}".format, least=40)
_RANK = Axis("Rank", "{:.0f}".format, down=True)


def _of_ratings(
    arena: Arena, board: Board, where: str, costs: Mapping[str, float]
) -> Iterator[Chart]:
    """What a rating and a rank go with: what a conversation costs, and how much a model says."""
    spoken, table, n = board.utterance_lengths, arena.table, max(1, len(board.human_lengths))
    ratings = _with_ends(table, "bt", "y").dropna(subset="y")
    ranks = _ranked(table).drop(columns="said")
    count = f"{_compared(arena)} comparisons"
    paid = {name: (cost, math.nan, math.nan) for name, cost in costs.items()}
    cost = Axis("Dollars for one conversation", log=True)
    if (found := _points(paid, ratings)) and any(one.x for one in found.values()):
        yield chart(
            *_of(arena, "cost-rating", f"Rating against cost{_at(arena)}"),
            "Bradley–Terry rating with its 95 % interval over what a conversation cost. No model "
            "on the dotted line is beaten by a cheaper one.",
            count, where, table.signatures[:1],
            partial(points.against, pareto="best for its cost"), found, cost, RATING,
        )  # fmt: skip
    said = {name: _mean(each, n) for name, each in spoken.by_contestant.items() if len(each)}
    long = Axis(f"Mean {spoken.unit} an utterance", log=spread(x for x, *_ in said.values()))
    signatures = [table.signature, *board.lengths.signatures]
    if found := _points(said, ratings):
        yield chart(
            *_of(arena, "length-rating", f"Rating against length{_at(arena)}"),
            f"Bradley–Terry rating over mean {spoken.unit} an utterance, both with 95 % intervals. "
            "No model on the dotted line is beaten by one that says less.",
            count, where, signatures,
            partial(points.against, pareto="best for its length"), found, long, RATING,
        )  # fmt: skip
    if found := _points(said, ranks):
        yield chart(
            *_of(arena, "length-rank", f"Rank against length{_at(arena)}"),
            f"The ranks that are left open over mean {spoken.unit} an utterance with its 95 % "
            "interval. A judge who likes what is long puts long talkers on top.",
            count, where, signatures, points.against, found, long, _RANK,
        )  # fmt: skip


def _points(
    xs: Mapping[str, tuple[float, float, float]], ys: pd.DataFrame
) -> dict[str, Point] | None:
    """Those of which both numbers are known; ``None``: fewer than two. ``ys``: index model."""
    found = {
        str(name): Point(*xs[name], *map(float, y))
        for name, *y in ys.itertuples()
        if name in xs
    }  # fmt: skip
    return found if len(found) > 1 else None


def _mean(values: NDArray[np.int64], n: int) -> tuple[float, float, float]:
    """The mean of a contestant's lengths with its 95 % interval, for other dialogues.

    Lengths are in the order of its dialogues, ``n`` of about as many utterances each.
    """
    each = [float(some.mean()) for some in np.array_split(values, n) if len(some)]
    return float(values.mean()), *mean(each, 0, float(values.max()))


# ------------------------------------------------------------------------------ other protocols


def _of_places(part: Place, where: str) -> Iterator[Chart]:
    shown, protocol = part.table, part.protocol
    if part.survival:
        yield _survival(part, part.survival, where)
    by_n = {int(column.n or 0): column.key for column in part.ranking}
    at_n = {f"N = {n}": 100 * _with_ends(shown, key, "success") for n, key in by_n.items()}
    said = ("Success rate (% of dialogues)", "{:.1f}")
    yield chart(
        _of(part, "success-rates", "")[0], f"{protocol.title} success rate by length N",
        "Dialogues that the judge takes for human, or accuses only after utterance N "
        "(Kaplan–Meier), with 95 % intervals.",
        f"{_cases(shown, next(iter(by_n.values())))} dialogues", where, shown.signatures,
        rows.series, at_n, *said,
    )  # fmt: skip
    key = "success_human_length"
    rates = 100 * _with_ends(shown, key, "success").dropna()
    if len(rates):
        yield chart(
            _of(part, "success-human-length", "")[0],
            f"{protocol.title} success rate at the length of the human dialogue",
            "Each dialogue is read as far as its human counterpart goes, where that has at least "
            f"{MIN_HUMAN} utterances; with 95 % intervals.",
            f"{_cases(shown, key)} dialogues", where, shown.signatures,
            rows.intervals, rates, *said,
        )  # fmt: skip


def _survival(part: Place, survival: Table, where: str) -> Chart:
    frame = survival.frame
    early, missing = (int(frame[key].sum()) for key in ("early", "missing"))
    return chart(
        *_of(part, "survival", "Dialogues that are not accused yet"),
        "Share of each contestant's dialogues that the judge has not accused after utterance N "
        f"(Kaplan–Meier). The {early:,} that end before, unaccused, count as far as they go. At "
        "most ten are named.",
        f"{_counted(int(frame['dialogues'].sum()), missing)} dialogues", where, survival.signatures,
        curves.survival, {name: part.curves[name] for name in frame["model"]},
    )  # fmt: skip


def _against_human(part: BesideHuman, where: str) -> Chart:
    table, protocol = part.table, part.protocol
    return chart(
        protocol.name, f"{protocol.title}: models against the human dialogue",
        "Beside the human dialogue of the same start, cut to its length: a model wins where the "
        "judge takes the human one for AI. Lines below the numbers are 95 % intervals of win + "
        "tie.",
        f"{_cases(table)} comparisons, both orders", where, table.signatures,
        rows.against_human, table.frame.set_index("model"),
    )  # fmt: skip


def _scores(part: Scored, number: Column, where: str) -> Chart:
    quoted, scale, table = part.quote(number), part.protocol.asked_scale, part.table
    means = _with_ends(table, number.key, "mean").dropna(subset="mean")
    return chart(
        quoted.key.replace("_", "-"), f"{quoted.heading}: mean score",
        f"Mean score from {scale.lowest} to {scale.highest} with its 95 % interval over dialogues.",
        f"{_cases(table)} dialogues", where, table.signatures,
        rows.intervals, means, "Mean score", "{:.2f}",
    )  # fmt: skip


# ------------------------------------------------------------------------ judge and dialogues


def _judge_health(judge: Table, where: str) -> Chart:
    judged, unreadable = (int(judge.frame[key].sum()) for key in ("judged", "unreadable"))
    return chart(
        "judge-health", "The judge itself",
        "How steady and how readable the judge is, and what it prefers: 50 is no preference for "
        "what is shown first; the longer may win because it is better. Thin lines are 95 % "
        "intervals.",
        f"{_counted(judged - unreadable, unreadable)} verdicts", where, judge.signatures,
        rows.health, judge,
    )  # fmt: skip


def _failures(board: Board, where: str) -> Iterator[Chart]:
    """How often each contestant does what few people do, by what it does."""
    flags, order = board.flags, [*board.main.frame["model"], HUMAN]
    kinds = [key for key in NAMES if flags.frame[key].notna().any()]
    if not kinds:
        return
    by_model = flags.frame.set_index("model")
    names = [name for name in dict.fromkeys(order) if name in by_model.index]

    def of(end: str) -> pd.DataFrame:
        keys = [f"{key}{end}" for key in kinds]
        return by_model.loc[names, keys].set_axis([NAMES[key] for key in kinds], axis=1)

    yield chart(
        "failure-types", "How dialogues fail",
        "Dialogues, in percent, with an utterance that does what at most 1 % of the set's people "
        "do, by what it does, without a judge. Bold: the 95 % interval leaves out 1 %.",
        f"{int(flags.frame['measured'].sum()):,} dialogues", where, flags.signatures,
        cells.failures, Cells("", *_thrice(of, ""), USUAL),
    )  # fmt: skip


def _utterance_lengths(board: Board, where: str) -> Iterator[Chart]:
    spoken, unit = board.utterance_lengths.by_contestant, board.utterance_lengths.unit
    if n := sum(map(len, spoken.values())):
        yield chart(
            "utterance-lengths", "Length of utterances",
            f"Distribution of {unit} an utterance, without the two human ones that every dialogue "
            "starts with.",
            f"{n:,} utterances", where, board.lengths.signatures,
            rows.utterance_lengths, spoken, unit,
        )  # fmt: skip


def _human_lengths(board: Board) -> Iterator[Chart]:
    if lengths := board.human_lengths:
        n, eligible = len(lengths), sum(length >= MIN_HUMAN for length in lengths)
        yield chart(
            "human-lengths", "Length of the human dialogues",
            "Utterances of the human dialogues; Arena and GTEval use those with at least "
            f"{MIN_HUMAN}.",
            f"{n:,} dialogues, {eligible:,} with {MIN_HUMAN} and more", board.seed_set,
            [board.seeds_signature], rows.human_lengths, lengths,
        )  # fmt: skip


# -------------------------------------------------------------------------------- from tables


def _with_ends(shown: Table, key: str, name: str) -> pd.DataFrame:
    """Index model; a column under this name, and ``low`` and ``high``, the ends of its interval."""
    keys = [key, *(end.key for end in shown.ends(key) or ())]
    return shown.frame.set_index("model")[keys].set_axis([name, "low", "high"], axis=1)


def _cases(part: Table, of: str = "") -> str:
    """The cases that a column, or every row, is from."""
    readable, missing = (part.column(role=role, of=of).key for role in ("readable", "missing"))
    return _counted(int(part.frame[readable].sum()), int(part.frame[missing].sum()))


def _counted(readable: int, missing: int) -> str:
    return f"{readable:,}" if not missing else f"{readable:,} of {readable + missing:,}"
