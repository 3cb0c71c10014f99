"""Figures of a leaderboard: svg and png of one look (BotChat Figures 2 to 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from matplotlib.figure import Figure

from botchat.boards.board import Board
from botchat.boards.protocols import Arena, BesideHuman, Part, Place, Quoted, Scored
from botchat.boards.tables import LABEL_COLUMNS, Table, elided
from botchat.records import MIN_HUMAN
from botchat.report.figures import charts, curves, style
from botchat.report.figures.health import Measure, health
from botchat.report.figures.style import Heading


@dataclass(frozen=True)
class Chart:
    """One figure, ready to be written."""

    name: str
    """File name without ending."""
    title: str
    caption: str
    """What it shows and from how many comparisons."""
    make: Callable[[], Figure]
    """Draws it: not before it is needed, and by the process that needs it."""

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
    drawn: list[Chart] = []
    arenas, where = board.arenas, _where(board)
    if arenas:
        drawn += [_intervals(arenas[0], where)]
        for base in dict.fromkeys(arena.protocol.base for arena in arenas):
            drawn.append(_ratings([one for one in arenas if one.protocol.base == base], where))
        drawn += [_win_rates(arena, where) for arena in arenas]
    for part in board.of(Place):
        drawn += [] if part.survival is None else [_survival(board, part, part.survival)]
        drawn += [_success_rates(board, part), _at_human_length(board, part)]
    drawn += [_against_human(board, part) for part in board.of(BesideHuman)]
    drawn += [_scores(board, p, number) for p in board.of(Scored) for number in p.quoted]
    if board.judge_health is not None:
        drawn.append(_judge_health(board, board.judge_health))
    if any(len(values) for values in board.utterance_lengths.by_contestant.values()):
        drawn.append(_utterance_lengths(board))
    return [*drawn, _human_lengths(board)]


def _titled(part: Part, title: str) -> str:
    """Likewise a title."""
    return title if part.protocol.leads else f"{part.protocol.title}: {title}"


def _named(part: Part, name: str) -> str:
    """A figure's name: the protocol's stands before it unless it leads."""
    return name if part.protocol.leads else f"{part.protocol.name}-{name}"


def draw_arena(arena: Arena, where: str) -> list[Chart]:
    """The figures of an Arena that stands alone; ``where`` says what it is."""
    return [_intervals(arena, where), _ratings([arena], where), _win_rates(arena, where)]


def _intervals(arena: Arena, where: str) -> Chart:
    title = _titled(arena, "Bradley–Terry ratings with 95 % intervals")
    title += f", {_at(arena)}" if arena.turns else ""
    heading = Heading(title, f"{where} · {_covered(arena)} comparisons", arena.table.signatures)
    fitted = arena.table.frame.set_index("model")[["bt", "bt_low", "bt_high", "bt_group"]]
    caption = (
        "Each model's rating and 95 % interval. Group: 1 + how many models are clearly better, "
        "which is where the interval of the difference is above 0. "
        f"{_covered(arena)} comparisons."
    )
    figure = partial(charts.rating_intervals, fitted.dropna(subset="bt"), heading)
    return Chart(_named(arena, "bradley-terry"), title, caption, figure)


def _ratings(arenas: Sequence[Arena], where: str) -> Chart:
    title = f"Bootstrap Elo in {arenas[0].protocol.title}"
    parts = [
        f"{_at(arena)}: {_covered(arena)}" if arena.turns else _covered(arena) for arena in arenas
    ]
    subtitle = f"{where} · comparisons: {'; '.join(parts)}"
    heading = Heading(title, subtitle, [arena.table.signature for arena in arenas])
    elo = {_at(arena): arena.ratings for arena in arenas}
    caption = (
        "Ratings from comparisons of two models' dialogues; the dashed line is where all start. "
        f"Comparisons: {'; '.join(parts)}."
    )
    name = _named(arenas[0], "elo")
    return Chart(name, title, caption, partial(charts.ratings, elo, arenas[0].elo.init, heading))


def _win_rates(arena: Arena, where: str) -> Chart:
    title = _titled(arena, "Win rates between models")
    title += f", {_at(arena)}" if arena.turns else ""
    subtitle = f"{where} · {_covered(arena)} comparisons"
    heading = Heading(title, subtitle, arena.table.signatures)
    caption = (
        "How often the row's model wins, or at least ties, against the column's; both by rating. "
        f"{_covered(arena)} comparisons."
    )
    name = f"win-rates-n{arena.turns}" if arena.turns else "win-rates"
    return Chart(
        _named(arena, name),
        title,
        caption,
        partial(charts.win_rates, arena.win, arena.win_or_tie, heading),
    )


def _success_rates(board: Board, part: Place) -> Chart:
    unieval = part.table
    title = f"{part.protocol.title} success rate by length N"
    counts = _total(unieval, part.covered.suffix)
    shown = (
        "Dialogues that the judge takes for human, or accuses only after utterance N. "
        f"{counts} dialogues."
    )
    keys = {f"success_n{n}": n for n in part.reached}
    rates = unieval.frame.set_index("model")[list(keys)].rename(columns=keys)
    heading = Heading(title, f"{_where(board)} · {counts} dialogues", unieval.signatures)
    return Chart(
        _named(part, "success-rates"), title, shown, partial(charts.success_rates, rates, heading)
    )


def _survival(board: Board, part: Place, table: Table) -> Chart:
    title = _titled(part, "Dialogues that are not accused yet")
    early, missing = (int(table.frame[key].sum()) for key in ("early", "missing"))
    counts = _of(int(table.frame["dialogues"].sum()), missing)
    shown = (
        "Share of each contestant's dialogues that the judge has not accused after utterance N "
        f"(Kaplan–Meier). The {early:,} that end before, unaccused, count as far as they go. "
        f"{counts} dialogues."
    )
    heading = Heading(title, f"{_where(board)} · {counts} dialogues", table.signatures)
    ordered = {name: part.curves[name] for name in table.frame["model"]}
    return Chart(_named(part, "survival"), title, shown, partial(curves.survival, ordered, heading))


def _judge_health(board: Board, table: Table) -> Chart:
    title = "The judge itself"
    judged, unreadable = (int(table.frame[key].sum()) for key in ("judged", "unreadable"))
    counts = _of(judged - unreadable, unreadable)
    shown = (
        "How steady and how readable the judge is, and what it prefers: 50 is no preference for "
        "what is shown first; the longer may win because it is better. "
        f"{counts} verdicts."
    )
    heading = Heading(title, f"{_where(board)} · {counts} verdicts", table.signatures)
    rows = table.frame.set_index("protocol")
    return Chart("judge-health", title, shown, partial(health, rows, _MEASURES, heading))


_MEASURES = (
    Measure("consistency", "Same in both orders", "% of pairs"),
    Measure("ties", "Ties", "% of verdicts"),
    Measure("unreadable_rate", "Unreadable", "% of verdicts"),
    Measure("stable", "Samples agree", "% of verdicts"),
    Measure("first_preferred", "First shown wins", "% of decided", neutral=0.5),
    Measure("longer_preferred", "Longer wins", "% of decided", neutral=0.5),
    Measure("false_alarms", "Humans accused", "% of dialogues"),
)


def _at_human_length(board: Board, part: Place) -> Chart:
    unieval = part.table
    title = f"{part.protocol.title} success rate at the length of the human dialogue"
    counts = _total(unieval, "_human_length")
    shown = (
        "Each dialogue is read as far as its human counterpart goes, where that has at least "
        f"{MIN_HUMAN} utterances. Thin lines: where missing verdicts could put the rate. "
        f"{counts} dialogues."
    )
    keys = {f"{key}_human_length": key for key in ("success", "low", "high")}
    rates = unieval.frame.set_index("model")[list(keys)].rename(columns=keys)
    heading = Heading(title, f"{_where(board)} · {counts} dialogues", unieval.signatures)
    figure = partial(charts.success_at_human_length, rates, heading)
    return Chart(_named(part, "success-human-length"), title, shown, figure)


def _against_human(board: Board, part: BesideHuman) -> Chart:
    gteval = part.table
    title = f"{part.protocol.title}: models against the human dialogue"
    counts = _total(gteval)
    shown = (
        "Beside the human dialogue of the same start, cut to its length: a model wins where the "
        f"judge takes the human one for AI. {counts} comparisons, both orders."
    )
    heading = Heading(
        title, f"{_where(board)} · {counts} comparisons, both orders", gteval.signatures
    )
    figure = partial(charts.against_human, gteval.frame.set_index("model"), heading)
    return Chart(part.protocol.name, title, shown, figure)


def _scores(board: Board, part: Scored, number: Quoted) -> Chart:
    scale = part.protocol.asked_scale
    title = f"{part.protocol.title}: {number.heading}"
    counts = _total(part.table)
    shown = (
        f"Mean score from {scale.lowest} to {scale.highest} with its 95 % interval over dialogues. "
        f"{counts} dialogues."
    )
    heading = Heading(title, f"{_where(board)} · {counts} dialogues", part.table.signatures)
    keys = {number.column: "mean", number.low: "low", number.high: "high"}
    means = part.table.frame.set_index("model")[list(keys)].rename(columns=keys)
    figure = partial(charts.score_intervals, means.dropna(subset="mean"), heading)
    return Chart(number.key.replace("_", "-"), title, shown, figure)


def _utterance_lengths(board: Board) -> Chart:
    measured = board.utterance_lengths
    count = sum(len(values) for values in measured.by_contestant.values())
    title = "Length of utterances"
    shown = (
        f"Distribution of {measured.unit} an utterance, without the two human ones that every "
        f"dialogue starts with. {count:,} utterances."
    )
    heading = Heading(title, f"{board.seed_set} · {count:,} utterances", board.lengths.signatures)
    figure = partial(charts.utterance_lengths, measured.by_contestant, measured.unit, heading)
    return Chart("utterance-lengths", title, shown, figure)


def _human_lengths(board: Board) -> Chart:
    lengths = board.human_lengths
    eligible = sum(n >= MIN_HUMAN for n in lengths)
    title = "Length of the human dialogues"
    shown = (
        f"Utterances of the {len(lengths):,} human dialogues; Arena and GTEval use the "
        f"{eligible:,} with at least {MIN_HUMAN}."
    )
    subtitle = (
        f"{board.seed_set} · {len(lengths):,} dialogues, {eligible:,} with {MIN_HUMAN} and more"
    )
    heading = Heading(title, subtitle, [board.seeds_signature])
    return Chart("human-lengths", title, shown, partial(charts.human_lengths, lengths, heading))


def _where(board: Board) -> str:
    return f"{board.seed_set} · judged by {elided(board.judge, LABEL_COLUMNS)}"


def _at(arena: Arena) -> str:
    return f"N = {arena.turns}" if arena.turns else "Elo"


def _covered(arena: Arena) -> str:
    return _of(arena.comparisons.n, arena.comparisons.missing)


def _total(table: Table, suffix: str = "") -> str:
    """Cases with a readable verdict, of all; ``suffix``: of the keys of these columns."""
    readable, missing = (
        int(table.frame[f"{key}{suffix}"].sum()) for key in ("readable", "missing")
    )
    return _of(readable, missing)


def _of(readable: int, missing: int) -> str:
    return f"{readable:,}" if not missing else f"{readable:,} of {readable + missing:,}"
