"""Figures of a board (BotChat Figures 2 to 7) and of judges compared, by matplotlib.

A new figure is a ``yield Chart(...)`` in `board_charts` or in what it calls; the ways to draw are
in `botchat.report.drawing`. Settings of matplotlib that callers have made stay, and do not show.
"""

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_agreement import AgreementReport
from botchat.boards.protocols import RANK, DetectionResult, GTEvalResult
from botchat.boards.tables import Table
from botchat.errors import UsageError
from botchat.frames import Tables, fill, package_toml
from botchat.records import HUMAN, MIN_HUMAN, Texts
from botchat.report.drawing import (
    counts,
    dots,
    matrix,
    over_cost,
    stacks,
    steps,
    violins,
)
from botchat.report.first_screen import Costs

WIDTH = 6.3  # inches: a page of a paper; a column has 3.3

MOST_DRAWN = 40  # contestants; of more the first, and the human dialogues

FORMATS = ("svg", "png", "pdf")

_LINE = 0.16  # inches of a line of the title
_LEAST = 1  # inches of a side
_MOST = 100

_STYLE = package_toml("report/figures.toml", Tables)


@dataclass(frozen=True)
class Chart:
    """One figure; it is drawn when it is asked for."""

    name: str  # of its file, without ending
    title: str
    caption: str  # how to read it
    signatures: Texts
    draw: Callable[[Axes], None]
    n_rows: int = 0  # one under the other, or room for so many, which decide its height; 0: none
    cells: Texts = ()  # names of a matrix, which decide its height
    titled: bool = True  # journals want no title in a figure

    def figure(self, width: float = WIDTH, height: float | None = None) -> Figure:
        """Draw it in a size in inches; by default as high as it needs."""
        lines = self._title_lines(width)
        with style.context(["default", _STYLE]):
            figure = Figure((width, height or self._height(width) + _LINE * len(lines)))
            if lines:
                figure.suptitle("\n".join(lines), x=0.01, ha="left", gid="title")
            self.draw(figure.subplots())
        return figure

    def _title_lines(self, width: float) -> list[str]:
        if not self.titled:
            return []
        return wrap(self.title, int(12.5 * width))

    def _height(self, width: float) -> float:
        """Height without the title."""
        if self.cells:
            beside = 0.2 + 0.075 * min(5.4 * width, len(max(self.cells, key=len)))
            return min(width, beside + 0.43 * len(self.cells))
        return 0.95 + 0.21 * self.n_rows if self.n_rows else 0.6 * width

    def inline(self, prefix: str) -> str:
        """Return the svg as a part of a page, which has the title; ``prefix`` makes ids unique."""
        root, rest = re.split(r' *<g id="title">.*?\n  </g>\n', self.svg, flags=re.DOTALL)
        top = 72 * _LINE * len(self._title_lines(WIDTH))
        height = 72 * self._height(WIDTH)
        svg = re.sub(
            r'height="[^"]*" (viewBox="0) 0 (\S+) [^"]*"',
            rf'height="{height:g}pt" \1 {top:g} \2 {height:g}"',
            root[root.index("<svg") :] + rest,
        )
        prefix = re.sub(r"\s+", "-", prefix)
        return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)

    @cached_property
    def svg(self) -> str:
        """The figure as svg."""
        return self.render("svg").decode()

    def render(self, form: str, width: float = WIDTH, height: float | None = None) -> bytes:
        """Return the bytes of an svg, png or pdf, the same each time; it names its signatures."""
        about = {"pdf": "Subject"}.get(form, "Description")
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        facts = {
            "Title": self.title,
            about: "\n".join([self.caption, *self.signatures]),
            **dates,
        }
        file = io.BytesIO()
        figure = self.figure(width, height)
        with style.context(["default", _STYLE]), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a script that the font does not have
            if form == "svg":
                # Of a page there are ten, and `savefig` would draw and lay out all of it twice.
                canvas = FigureCanvasSVG(figure)
                engine = figure.get_layout_engine()
                if engine is not None:
                    engine.execute(figure)
                    figure.set_layout_engine("none")
                canvas.print_svg(file, metadata=facts)  # type: ignore[no-untyped-call]
            else:
                figure.savefig(file, format=form, metadata=facts)
        return file.getvalue()


def svg_files(charts: Iterable[Chart]) -> dict[str, str]:
    """Return figures as svg, by file name; `botchat figure` draws them in other forms."""
    return {f"{chart.name}.svg": chart.svg for chart in charts}


def captions(charts: Sequence[Chart], form: str) -> dict[str, str]:
    """Return files by name: titles and captions, to read and for LaTeX, of figures in this form."""
    return {
        f"captions.{kind}": fill(f"report/captions-{kind}.txt", charts=charts, form=form)
        for kind in ("md", "tex")
    }


def read_size(text: str) -> tuple[float, float | None]:
    """Read ``7x4.5`` as width and height in inches, ``3.3`` as a width, nothing as a page's.

    Raises `UsageError`.
    """
    if not text:
        return WIDTH, None
    with suppress(ValueError):
        width, *height = [float(side) for side in text.lower().split("x")]
        if len(height) <= 1 and all(_LEAST <= side <= _MOST for side in (width, *height)):
            return width, next(iter(height), None)
    raise UsageError(
        f"--size {text}: give width and height in inches ({_LEAST} to {_MOST}), such as 7x4.5, or "
        "the width"
    )


def board_charts(board: Board, costs: Costs | None = None) -> Iterator[Chart]:
    """Yield each figure a board has numbers for; ``costs``, by contestant, are USD a dialogue."""
    for base in dict.fromkeys(arena.protocol.base for arena in board.arenas):
        arenas = [arena for arena in board.arenas if arena.protocol.base == base]
        yield from _arena_charts(arenas, costs or {})
    for part in board.of(DetectionResult):
        yield from _detection_charts(part)
    for gteval in board.of(GTEvalResult):
        rates = _first(gteval.table.by_model[["win", "tie", "lose"]].dropna())
        yield Chart(
            "vs-human",
            f"{gteval.protocol.title}: model vs human dialogue",
            "Whether the judge takes the model's dialogue for the human one, or cannot tell.",
            gteval.table.signatures,
            partial(stacks, rates),
            len(rates),
        )
    yield from _length_charts(board)


def _arena_charts(arenas: Sequence[Arena], costs: Costs) -> Iterator[Chart]:
    """``arenas``: of one protocol, the largest N first."""
    first = arenas[0]
    prefix = "" if first.protocol.leads else f"{first.protocol.base}-"
    for arena in arenas:
        yield _win_rates(arena, prefix)
    if first.table.frame["bt"].isna().all():  # the judge ranks nobody
        return
    ratings = {_n_words(arena): _with_ends(arena.table, "bt") for arena in arenas}
    rated = ratings[_n_words(first)]
    ranks = dict(zip(first.table.models, first.table.texts(RANK), strict=True))
    yield Chart(
        f"{prefix}ratings",
        "Bradley–Terry ratings with 95 % intervals",
        "The rank interval says who is better, not whether two lines overlap.",
        first.table.signatures,
        partial(dots, ratings, "Bradley–Terry rating", ranks),
        len(rated),
    )
    if first.has_elo:
        elos = {_n_words(a): _with_ends(a.table, "elo") for a in arenas if a.has_elo}
        yield Chart(
            f"{prefix}elo",
            "Elo ratings with 95 % intervals",
            "Mean over shuffles of the comparisons, as in the paper's Table 2.",
            first.table.signatures,
            partial(dots, elos, "Elo rating", {}),
            len(rated),
        )
    paid = {name: usd for name, usd in costs.items() if name in rated.index and usd > 0}
    if len(paid) > 1:
        points = rated.loc[list(paid)].assign(x=list(paid.values()))
        yield Chart(
            f"{prefix}cost-rating",
            "Rating over the cost of a dialogue",
            "Bradley–Terry rating with its 95 % interval.",
            first.table.signatures,
            partial(over_cost, points, "USD per dialogue", "Bradley–Terry rating"),
            6 + len(points),
        )


def _n_words(arena: Arena) -> str:
    return f"N = {arena.protocol.n}" if arena.protocol.n else ""


def _win_rates(arena: Arena, prefix: str) -> Chart:
    names = list(_first(arena.table.by_model).index)
    rates = arena.results["win_or_tie"].unstack().reindex(index=names, columns=names)
    name = f"{prefix}win-rates"
    title = "Win + tie rate (%)"
    if arena.protocol.n:
        name += f"-n{arena.protocol.n}"
        title += f", {_n_words(arena)}"
    return Chart(
        name,
        title,
        "How often the row's model wins or ties against the column's.",
        arena.table.signatures,
        partial(matrix, rates),
        cells=names,
    )


def _detection_charts(part: DetectionResult) -> Iterator[Chart]:
    prefix = "" if part.protocol.leads else f"{part.protocol.name}-"
    rates = {}
    for column in part.table.columns:
        if column.key.startswith("success"):
            label = "human length" if column.n is None else f"N = {column.n}"
            rates[label] = 100 * _with_ends(part.table, column.key)
    yield Chart(
        f"{prefix}success",
        f"{part.protocol.title}: success rate with 95 % intervals",
        "Dialogues without an AI utterance up to utterance N, or up to the human length.",
        part.table.signatures,
        partial(dots, rates, "success rate (%)", {}),
        2 * len(next(iter(rates.values()))),  # four series and more
    )
    if part.curves:
        yield Chart(
            f"{prefix}success-curve",
            f"{part.protocol.title}: success rate at each N",
            "Kaplan–Meier: a dialogue that breaks off early counts as far as it goes.",
            part.table.signatures,
            partial(steps, part.curves),
            12,  # as high as so many rows
        )


def _length_charts(board: Board) -> Iterator[Chart]:
    spoken = board.utterance_lengths
    lengths = {name: values for name, values in spoken.by_contestant.items() if len(values)}
    if lengths:
        order = sorted(lengths, key=lambda name: lengths[name].mean())
        order = [name for i, name in enumerate(order) if i < MOST_DRAWN or name == HUMAN]
        yield Chart(
            "lengths",
            f"Length of utterances ({spoken.unit})",
            "Without the two utterances of the ChatSEED; line: middle half, dot: median, number: "
            "mean.",
            board.lengths.signatures,
            partial(violins, {name: lengths[name] for name in order}, spoken.unit),
            len(order),
        )
    if board.human_lengths:
        yield Chart(
            "rounds",
            "Utterances of the human dialogues",
            f"Arena and GTEval use those with at least {MIN_HUMAN}; shorter ones are grey.",
            [board.seeds_signature],
            partial(counts, board.human_lengths),
        )


def judge_charts(report: AgreementReport) -> Iterator[Chart]:
    """Yield agreement over price, where both are known, and judges against each other."""
    judges = report.agreement.judges
    names = _judge_names([judge.judge for judge in judges])
    priced = {}
    for judge in judges:
        usd = report.price(judge.judge).usd
        if judge.skill.is_known:
            percent = judge.skill.stretched(0.0, 100.0)
            priced[names[judge.judge]] = {"x": 1000 * usd if usd else math.nan, **vars(percent)}
    points = pd.DataFrame.from_dict(priced, orient="index")
    if priced and points["x"].notna().all():
        yield Chart(
            "cost-agreement",
            f"{report.subject}: skill over the price of a verdict",
            f"Skill against {report.labels}, with its 95 % interval; 0 is guessing.",
            [report.signature],
            partial(over_cost, points, "USD per 1,000 verdicts", "skill (of 100)"),
            6 + len(points),
        )
    if report.agreement.pairs:
        shown = list(names.values())
        same = pd.DataFrame(math.nan, shown, shown)
        for pair in report.agreement.pairs:
            a = names[pair.judge_a]
            b = names[pair.judge_b]
            same.loc[a, b] = pair.agreement.value
            same.loc[b, a] = pair.agreement.value
        yield Chart(
            "judge-agreement",
            f"{report.subject}: same verdict of two judges (%)",
            "How often the judge of the row and that of the column give the same verdict.",
            [report.signature],
            partial(matrix, same),
            cells=shown,
        )


def _judge_names(judges: Texts) -> dict[str, str]:
    """Return judges as figures name them: without the model of panels where all have that model."""
    names = {name: name.replace("(before debate)", "(votes before)") for name in judges}
    models = {(re.findall(r"@([^ ]+)", name) or [name])[0] for name in judges}
    if len(models) > 1:
        return names
    return {name: re.sub("@[^ ]+", "", shown) for name, shown in names.items()}


def _with_ends(table: Table, key: str) -> pd.DataFrame:
    """Return ``value``, ``low`` and ``high`` of a column by model, in the table's order."""
    frame = table.by_model[table.column(key).keys]
    frame = frame.set_axis(["value", "low", "high"], axis=1)
    return _first(frame.dropna(subset="value").astype(float))


def _first(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(np.arange(len(frame)) < MOST_DRAWN) | (frame.index == HUMAN)]
