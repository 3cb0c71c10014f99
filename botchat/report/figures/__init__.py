"""Figures of a leaderboard: four questions for its page, and all others (BotChat Figures 2 to 6).

A new figure is one function: its numbers, its words, and how it is drawn; one of the four in
`questions`, others here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.names import LABEL_COLUMNS, elided
from botchat.boards.protocols import Part, Place, Scored
from botchat.boards.tables import Column, Table
from botchat.records import HUMAN, MIN_HUMAN
from botchat.report.figures import cells, curves, points, questions, rows
from botchat.report.figures.axes import Axis
from botchat.report.figures.cells import Cells
from botchat.report.figures.chart import Chart as Chart
from botchat.report.figures.chart import chart
from botchat.report.figures.curves import longest_first
from botchat.report.figures.points import Point
from botchat.report.figures.questions import cases, counted, ends_of, told_apart
from botchat.report.figures.sheet import WIDE

_TOLD = 25
"""Contestants up to which a table of rates has room for its numbers: it is on the page."""

MOST_DRAWN = 100
"""Contestants that figures show; of more the first, and people: a thousand rows are unreadable."""


def draw(board: Board, costs: Mapping[str, float] | None = None) -> list[Chart]:
    """Every figure that the board has the numbers for, the page's four first.

    ``costs``: contestant -> dollars of one conversation, where known.
    """
    of = board.seed_set
    if (n := len(board.main.frame)) > MOST_DRAWN:
        board = _of_some(board, {*board.main.frame["model"][:MOST_DRAWN], HUMAN})
        of += f" · the first {MOST_DRAWN} of {n:,}"
    where = f"{of} · judged by {elided(board.judge, LABEL_COLUMNS)}"
    found = [*questions.ask(board, where)]
    for base in dict.fromkeys(arena.protocol.base for arena in board.arenas):
        arenas = [one for one in board.arenas if one.protocol.base == base]
        found += _of_arenas(arenas, where, costs or {})
    found += [chart for part in board.of(Place) for chart in _of_places(part, where)]
    found += [
        _scores(part, number, where)
        for part in board.of(Scored)
        for number in part.quoted
        if part.table.frame[number.key].notna().any()
    ]
    return [*found, *_lengths(board, of)]


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
        if isinstance(part, Place):
            curves = {name: curve for name, curve in part.curves.items() if name in names}
            return replace(part, curves=curves)
        return part

    spoken = board.utterance_lengths
    lengths = {name: found for name, found in spoken.by_contestant.items() if name in names}
    return replace(
        board,
        main=some(board.main),
        parts=tuple(map(part_of, board.parts)),
        utterance_lengths=replace(spoken, by_contestant=lengths),
    )


def _of(part: Part, name: str, title: str = "") -> tuple[str, str]:
    """Name and title of a figure of a protocol, which says its own where another one leads."""
    protocol = part.protocol
    if protocol.leads:
        return name, title
    return f"{protocol.name}-{name}", f"{protocol.title}: {title}"


def _of_arenas(arenas: Sequence[Arena], where: str, costs: Mapping[str, float]) -> Iterator[Chart]:
    """Of one protocol, the largest N first; ``where`` says what they are of."""
    for arena in arenas:
        n, made = arena.protocol.n, arena.comparisons
        at, many = (f", N = {n}" if n else ""), f"{counted(made.win.n, made.missing)} comparisons"
        if arena is arenas[0]:
            ratings = ends_of(arena.table, "bt", "rating").dropna(subset="rating")
            yield chart(
                *_of(arena, "bradley-terry", f"Bradley–Terry ratings with 95 % intervals{at}"),
                "Each model's rating and 95 % interval, and the places that the comparisons leave "
                "open of all at once; it is these that say who is clearly better, not whether two "
                "lines overlap.",
                many, where, arena.table.signatures,
                rows.series, {"rating": ratings.assign(place=arena.table.written("rank"))},
                "Bradley–Terry rating (points)", "{:.0f}",
            )  # fmt: skip
        names, _, told = told_apart(arena)
        parts = [
            Cells(title, arena.matrix(key).reindex(index=names, columns=names), told)
            for title, key in (
                ("Win rate (%)", "win_rate"), ("Win + tie rate (%)", "win_or_tie_rate")
            )
        ]  # fmt: skip
        yield chart(
            *_of(arena, f"win-rates-n{n}" if n else "win-rates", f"Win rates between models{at}"),
            "How often the row's model wins, or at least ties, against the column's; both by "
            "rating. Bold: the two can be told apart, the 95 % interval of wins and half the ties "
            "leaves out 50.",
            many, where, arena.table.signatures,
            cells.squares, parts, "row against column", width=WIDE, on_page=len(names) <= _TOLD,
        )  # fmt: skip
        found = {str(name): Point(costs[name], math.nan, math.nan, *y)
                 for name, *y in ends_of(arena.table, "bt", "y").dropna(subset="y").itertuples()
                 if name in costs}  # fmt: skip
        if arena is arenas[0] and len(found) > 1 and any(one.x for one in found.values()):
            yield chart(
                *_of(arena, "cost-rating", f"Rating against cost{at}"),
                "Bradley–Terry rating with its 95 % interval over what a conversation cost. No "
                "model on the dotted line is beaten by a cheaper one.",
                many, where, arena.table.signatures[:1],
                partial(points.against, best="best for its cost"), found,
                Axis("dollars for one conversation", log=True),
                Axis("Bradley–Terry rating", "{:.0f}".format, least=40),
            )  # fmt: skip


def _of_places(part: Place, where: str) -> Iterator[Chart]:
    shown, protocol = part.table, part.protocol
    if part.curves:
        yield chart(
            *_of(part, "survival", "Dialogues that are not accused yet"),
            "Share of each contestant's dialogues that the judge has not accused after utterance N "
            "(Kaplan–Meier). Those that end before, unaccused, count as far as they go. At most "
            "ten are named.",
            f"{sum(int(one.at_risk[0]) for one in part.curves.values()):,} dialogues", where,
            shown.signatures,
            curves.survival, longest_first(part.curves), width=WIDE,
        )  # fmt: skip
    by_n = {f"N = {column.n}": column.key for column in part.ranking}
    at_n = {n: 100 * ends_of(shown, key, "success").astype(float) for n, key in by_n.items()}
    said = ("Success rate (% of dialogues)", "{:.1f}")
    yield chart(
        _of(part, "success-rates")[0], f"{protocol.title} success rate by length N",
        "Dialogues that the judge takes for human, or accuses only after utterance N "
        "(Kaplan–Meier), with 95 % intervals.",
        f"{cases(shown, next(iter(by_n.values())))} dialogues", where, shown.signatures,
        partial(rows.series, ordered=False), at_n, *said,
    )  # fmt: skip


def _scores(part: Scored, number: Column, where: str) -> Chart:
    quoted, scale, table = part.quote(number), part.protocol.asked_scale, part.table
    means = ends_of(table, number.key, "mean").dropna(subset="mean").astype(float)
    return chart(
        quoted.key.replace("_", "-"), f"{quoted.heading}: mean score",
        f"Mean score from {scale.lowest} to {scale.highest} with its 95 % interval over dialogues.",
        f"{cases(table)} dialogues", where, table.signatures,
        rows.series, {"mean": means}, "Mean score", "{:.2f}",
    )  # fmt: skip


def _lengths(board: Board, where: str) -> Iterator[Chart]:
    spoken, unit = board.utterance_lengths.by_contestant, board.utterance_lengths.unit
    if n := sum(map(len, spoken.values())):
        yield chart(
            "utterance-lengths", "Length of utterances",
            f"Distribution of {unit} an utterance, without the two human ones that every dialogue "
            "starts with; dot and line: median and middle half.",
            f"{n:,} utterances", where, board.lengths.signatures, rows.violins, spoken, unit,
        )  # fmt: skip
    if lengths := board.human_lengths:
        n, eligible = len(lengths), sum(length >= MIN_HUMAN for length in lengths)
        yield chart(
            "human-lengths", "Length of the human dialogues",
            "Utterances of the human dialogues; Arena and GTEval use those with at least "
            f"{MIN_HUMAN}.",
            f"{n:,} dialogues, {eligible:,} with {MIN_HUMAN} and more", board.seed_set,
            [board.seeds_signature], rows.human_lengths, lengths, on_page=False,
        )  # fmt: skip
