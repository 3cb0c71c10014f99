"""Figures of a leaderboard: svg and png of one look (BotChat Figures 2 to 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from matplotlib.figure import Figure

from botchat.boards.board import Board
from botchat.boards.protocols import Arena
from botchat.boards.tables import LABEL_COLUMNS, Table, elided
from botchat.records import MIN_HUMAN
from botchat.report.figures import charts, curves, style
from botchat.report.figures.health import Measure, health
from botchat.report.figures.style import Heading


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

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        where: str,
        count: str,
        caption: str,
        signatures: Sequence[str],
        draw: Callable[..., Figure],
        *data: Any,
    ) -> Chart:
        """The figure ``draw(*data, heading)``; ``where`` and ``count`` say what it is made from."""
        heading = Heading(title, f"{where} · {count}", signatures)
        said = f"{caption} {count[0].upper()}{count[1:]}."
        return cls(name, title, said, partial(draw, *data, heading))

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


def begin_drawing(
    charts: Sequence[Chart], executor: Executor, *, png: bool = True
) -> Iterator[Chart]:
    """Begin to draw charts in an executor; each comes when it is drawn, in their order.

    ``png``: as PNG too; else that is drawn when it is asked for.
    """
    begun = [executor.submit(_drawn, chart, png) for chart in charts]

    def finish() -> Iterator[Chart]:
        for chart, made in zip(charts, begun, strict=True):
            # In place of what the chart would make itself.
            chart.__dict__.update(made.result())
            yield chart

    return finish()


def _drawn(chart: Chart, png: bool) -> dict[str, object]:
    return {"svg": chart.svg, "width_in": chart.width_in, **({"png": chart.png} if png else {})}


def draw(board: Board) -> list[Chart]:
    """Every figure that the board has the numbers for, most important first."""
    where = f"{board.seed_set} · judged by {elided(board.judge, LABEL_COLUMNS)}"
    return [
        *(_of_arenas([*board.arenas.values()], where) if board.arenas else ()),
        *(_of_unieval(board, board.unieval, where) if board.unieval else ()),
        *([_against_human(board.gteval, where)] if board.gteval else ()),
        *([_judge_health(board.judge_health, where)] if board.judge_health else ()),
        *_of_lengths(board),
    ]


def draw_arena(arena: Arena, where: str) -> list[Chart]:
    """The figures of an Arena that stands alone; ``where`` says what it is."""
    return list(_of_arenas([arena], where))


def _of_arenas(arenas: Sequence[Arena], where: str) -> Iterator[Chart]:
    """Largest N first, if N is known."""
    at = {arena.turns: f", N = {arena.turns}" if arena.turns else "" for arena in arenas}
    counts = [_of(arena.comparisons.n, arena.comparisons.missing) for arena in arenas]
    first = arenas[0]
    fitted = first.standing.frame.set_index("model")[["bt", "bt_low", "bt_high", "bt_group"]]
    yield Chart.of(
        "bradley-terry",
        f"Bradley–Terry ratings with 95 % intervals{at[first.turns]}",
        where,
        f"{counts[0]} comparisons",
        "Each model's rating and 95 % interval. Group: 1 + how many models are clearly better, "
        "which is where the interval of the difference is above 0.",
        first.standing.signatures,
        charts.rating_intervals,
        fitted.dropna(subset="bt"),
    )
    each = zip(arenas, counts, strict=True)
    parts = [f"N = {arena.turns}: {count}" if arena.turns else count for arena, count in each]
    yield Chart.of(
        "elo",
        "Bootstrap Elo in BotChat Arena",
        where,
        f"comparisons: {'; '.join(parts)}",
        "Ratings from comparisons of two models' dialogues; the dashed line is where all start.",
        [arena.standing.signature for arena in arenas],
        charts.ratings,
        {f"N = {arena.turns}" if arena.turns else "Elo": arena.ratings for arena in arenas},
        first.elo.init,
    )
    for arena, count in zip(arenas, counts, strict=True):
        yield Chart.of(
            f"win-rates-n{arena.turns}" if arena.turns else "win-rates",
            f"Win rates between models{at[arena.turns]}",
            where,
            f"{count} comparisons",
            "How often the row's model wins, or at least ties, against the column's; both by "
            "rating.",
            arena.standing.signatures,
            charts.win_rates,
            arena.win,
            arena.win_or_tie,
        )


def _of_unieval(board: Board, unieval: Table, where: str) -> Iterator[Chart]:
    rates = unieval.frame.set_index("model")
    if board.survival:
        frame = board.survival.frame
        early, missing = (int(frame[key].sum()) for key in ("early", "missing"))
        yield Chart.of(
            "survival",
            "Dialogues that are not accused yet",
            where,
            f"{_of(int(frame['dialogues'].sum()), missing)} dialogues",
            "Share of each contestant's dialogues that the judge has not accused after utterance N "
            f"(Kaplan–Meier). The {early:,} that end before, unaccused, count as far as they go.",
            board.survival.signatures,
            curves.survival,
            {name: board.curves[name] for name in frame["model"]},
        )
    by_n = {column.key: n for n, column in unieval.by_n().items()}
    yield Chart.of(
        "success-rates",
        "UniEval success rate by length N",
        where,
        f"{_counted(unieval, next(iter(by_n)))} dialogues",
        "Dialogues that the judge takes for human, or accuses only after utterance N.",
        unieval.signatures,
        charts.success_rates,
        rates[[*by_n]].rename(columns=by_n),
    )
    success = "success_human_length"
    shown = [success, *(end.key for end in unieval.ends(success) or ())]
    yield Chart.of(
        "success-human-length",
        "UniEval success rate at the length of the human dialogue",
        where,
        f"{_counted(unieval, success)} dialogues",
        "Each dialogue is read as far as its human counterpart goes, where that has at least "
        f"{MIN_HUMAN} utterances. Thin lines: where missing verdicts could put the rate.",
        unieval.signatures,
        charts.success_at_human_length,
        rates[shown].set_axis(["success", "low", "high"], axis=1),
    )


def _against_human(gteval: Table, where: str) -> Chart:
    return Chart.of(
        "gteval",
        "GTEval: models against the human dialogue",
        where,
        f"{_counted(gteval)} comparisons, both orders",
        "Beside the human dialogue of the same start, cut to its length: a model wins where the "
        "judge takes the human one for AI.",
        gteval.signatures,
        charts.against_human,
        gteval.frame.set_index("model"),
    )


def _judge_health(judge: Table, where: str) -> Chart:
    judged, unreadable = (int(judge.frame[key].sum()) for key in ("judged", "unreadable"))
    return Chart.of(
        "judge-health",
        "The judge itself",
        where,
        f"{_of(judged - unreadable, unreadable)} verdicts",
        "How steady and how readable the judge is, and what it prefers: 50 is no preference for "
        "what is shown first; the longer may win because it is better.",
        judge.signatures,
        health,
        judge,
        _MEASURES,
    )


_MEASURES = (
    Measure("consistency", "Same in both orders", "% of pairs"),
    Measure("ties", "Ties", "% of verdicts"),
    Measure("unreadable_rate", "Unreadable", "% of verdicts"),
    Measure("stable", "Samples agree", "% of verdicts"),
    Measure("first_preferred", "First shown wins", "% of decided", neutral=0.5),
    Measure("longer_preferred", "Longer wins", "% of decided", neutral=0.5),
    Measure("false_alarms", "Humans accused", "% of dialogues"),
)


def _of_lengths(board: Board) -> Iterator[Chart]:
    measured = board.utterance_lengths
    if n := sum(map(len, measured.by_contestant.values())):
        yield Chart.of(
            "utterance-lengths",
            "Length of utterances",
            board.seed_set,
            f"{n:,} utterances",
            f"Distribution of {measured.unit} an utterance, without the two human ones that every "
            "dialogue starts with.",
            board.lengths.signatures,
            charts.utterance_lengths,
            measured.by_contestant,
            measured.unit,
        )
    lengths = board.human_lengths
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


def _counted(part: Table, of: str = "") -> str:
    """The cases that a column, or every row, is from."""
    readable, missing = (part.column(role=role, of=of).key for role in ("readable", "missing"))
    return _of(int(part.frame[readable].sum()), int(part.frame[missing].sum()))


def _of(readable: int, missing: int) -> str:
    return f"{readable:,}" if not missing else f"{readable:,} of {readable + missing:,}"
