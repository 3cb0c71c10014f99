"""Figures of a leaderboard: svg and png of one look (BotChat Figures 2 to 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from matplotlib.figure import Figure

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.protocols import BesideHuman, Part, Place, Scored
from botchat.boards.tables import LABEL_COLUMNS, Column, Table, elided
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
        drawn += _of_arenas([one for one in board.arenas if one.protocol.base == base], where)
    drawn += [chart for part in board.of(Place) for chart in _of_places(part, where)]
    drawn += [_against_human(part, where) for part in board.of(BesideHuman)]
    drawn += [_scores(part, number, where) for part in board.of(Scored) for number in part.quoted]
    drawn += [_judge_health(board.judge_health, where)] if board.judge_health else []
    return [*drawn, *_of_lengths(board)]


def _titled(part: Part, title: str) -> str:
    """Likewise a title."""
    return title if part.protocol.leads else f"{part.protocol.title}: {title}"


def _named(part: Part, name: str) -> str:
    """A figure's name: the protocol's stands before it unless it leads."""
    return name if part.protocol.leads else f"{part.protocol.name}-{name}"


def draw_arena(arena: Arena, where: str) -> list[Chart]:
    """The figures of an Arena that stands alone; ``where`` says what it is."""
    return list(_of_arenas([arena], where))


def _of_arenas(arenas: Sequence[Arena], where: str) -> Iterator[Chart]:
    """Largest N first, if N is known."""
    at = {arena.turns: f", N = {arena.turns}" if arena.turns else "" for arena in arenas}
    counts = [_of(arena.comparisons.n, arena.comparisons.missing) for arena in arenas]
    first = arenas[0]
    fitted = first.table.frame.set_index("model")[["bt", "bt_low", "bt_high", "bt_group"]]
    yield Chart.of(
        _named(first, "bradley-terry"),
        _titled(first, f"Bradley–Terry ratings with 95 % intervals{at[first.turns]}"),
        where,
        f"{counts[0]} comparisons",
        "Each model's rating and 95 % interval. Group: 1 + how many models are clearly better, "
        "which is where the interval of the difference is above 0.",
        first.table.signatures,
        charts.rating_intervals,
        fitted.dropna(subset="bt"),
    )
    each = zip(arenas, counts, strict=True)
    parts = [f"N = {arena.turns}: {count}" if arena.turns else count for arena, count in each]
    yield Chart.of(
        _named(first, "elo"),
        f"Bootstrap Elo in {first.protocol.title}",
        where,
        f"comparisons: {'; '.join(parts)}",
        "Ratings from comparisons of two models' dialogues; the dashed line is where all start.",
        [arena.table.signature for arena in arenas],
        charts.ratings,
        {f"N = {arena.turns}" if arena.turns else "Elo": arena.ratings for arena in arenas},
        first.elo.init,
    )
    for arena, count in zip(arenas, counts, strict=True):
        yield Chart.of(
            _named(arena, f"win-rates-n{arena.turns}" if arena.turns else "win-rates"),
            _titled(arena, f"Win rates between models{at[arena.turns]}"),
            where,
            f"{count} comparisons",
            "How often the row's model wins, or at least ties, against the column's; both by "
            "rating.",
            arena.table.signatures,
            charts.win_rates,
            arena.matrix("win_rate"),
            arena.matrix("win_or_tie_rate"),
        )


def _of_places(part: Place, where: str) -> Iterator[Chart]:
    shown, survival = part.table, part.survival
    rates = shown.frame.set_index("model")
    if survival:
        frame = survival.frame
        early, missing = (int(frame[key].sum()) for key in ("early", "missing"))
        yield Chart.of(
            _named(part, "survival"),
            _titled(part, "Dialogues that are not accused yet"),
            where,
            f"{_of(int(frame['dialogues'].sum()), missing)} dialogues",
            "Share of each contestant's dialogues that the judge has not accused after utterance N "
            f"(Kaplan–Meier). The {early:,} that end before, unaccused, count as far as they go.",
            survival.signatures,
            curves.survival,
            {name: part.curves[name] for name in frame["model"]},
        )
    by_n = {column.key: n for n, column in shown.by_n().items()}
    yield Chart.of(
        _named(part, "success-rates"),
        f"{part.protocol.title} success rate by length N",
        where,
        f"{_counted(shown, next(iter(by_n)))} dialogues",
        "Dialogues that the judge takes for human, or accuses only after utterance N.",
        shown.signatures,
        charts.success_rates,
        rates[[*by_n]].rename(columns=by_n),
    )
    success = "success_human_length"
    keys = [success, *(end.key for end in shown.ends(success) or ())]
    yield Chart.of(
        _named(part, "success-human-length"),
        f"{part.protocol.title} success rate at the length of the human dialogue",
        where,
        f"{_counted(shown, success)} dialogues",
        "Each dialogue is read as far as its human counterpart goes, where that has at least "
        f"{MIN_HUMAN} utterances. Thin lines: where missing verdicts could put the rate.",
        shown.signatures,
        charts.success_at_human_length,
        rates[keys].set_axis(["success", "low", "high"], axis=1),
    )


def _against_human(part: BesideHuman, where: str) -> Chart:
    return Chart.of(
        part.protocol.name,
        f"{part.protocol.title}: models against the human dialogue",
        where,
        f"{_counted(part.table)} comparisons, both orders",
        "Beside the human dialogue of the same start, cut to its length: a model wins where the "
        "judge takes the human one for AI.",
        part.table.signatures,
        charts.against_human,
        part.table.frame.set_index("model"),
    )


def _scores(part: Scored, number: Column, where: str) -> Chart:
    scale, shown = part.protocol.asked_scale, part.table
    keys = [number.key, *(end.key for end in shown.ends(number.key) or ())]
    quoted = part.quote(number)
    means = shown.frame.set_index("model")[keys].set_axis(["mean", "low", "high"], axis=1)
    return Chart.of(
        quoted.key.replace("_", "-"),
        f"{part.protocol.title}: {quoted.heading}",
        where,
        f"{_counted(shown)} dialogues",
        f"Mean score from {scale.lowest} to {scale.highest} with its 95 % interval over dialogues.",
        shown.signatures,
        charts.score_intervals,
        means.dropna(subset="mean"),
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
