"""Figures of a board (BotChat Figures 2 to 7) and of judges compared, by matplotlib.

A new figure is a ``yield Chart(...)`` in `board_charts` or in what it calls; the ways to draw are
below. Settings of matplotlib that callers have made stay, and do not show.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_agreement import AgreementReport
from botchat.boards.protocols import RANK, DetectionResult, GTEvalResult, SuccessCurve
from botchat.boards.tables import Table, labels
from botchat.errors import UsageError
from botchat.frames import Tables, package_toml
from botchat.records import HUMAN, MIN_HUMAN, N_SEED, Texts
from botchat.report.first_screen import Costs, apart, kind_of

INK = "#1a1917"  # models
SOFT = "#6b6963"  # what explains
PALE = "#d5d3ce"  # what stands behind
PEOPLE = "#a83c0e"  # human dialogues: the only colour

SHADES = (INK, SOFT, "#97948c", "#bbb8b0")

WIDTH = 6.3  # inches: a page of a paper; a column has 3.3

MOST_DRAWN = 40  # contestants; of more the first, and the human dialogues

FORMATS = ("svg", "png", "pdf")

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
    n_rows: int = 0  # one under the other, which decide its height; 0: it has none

    def figure(self, width: float = WIDTH, height: float | None = None) -> Figure:
        """Draw it in a size in inches; by default as high as it needs."""
        height = height or (1.1 + 0.21 * self.n_rows if self.n_rows else 0.6 * width)
        with style.context(["default", _STYLE]):
            figure = Figure((width, height))
            figure.suptitle(self.title, x=0.01, ha="left")
            self.draw(figure.subplots())
        return figure

    def inline(self, prefix: str) -> str:
        """Return the svg as a part of a page; ``prefix`` makes its ids unique there."""
        svg = self.svg[self.svg.index("<svg") :]
        return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)

    @cached_property
    def svg(self) -> str:
        """The figure as svg."""
        return self.render("svg").decode()

    def render(self, form: str, width: float = WIDTH, height: float | None = None) -> bytes:
        """Return the bytes of an svg, png or pdf, the same each time; it names its signatures."""
        about = {"pdf": "Subject"}.get(form, "Description")
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        facts = {"Title": self.title, about: "\n".join([self.caption, *self.signatures])}
        file = io.BytesIO()
        figure = self.figure(width, height)
        with style.context(["default", _STYLE]), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a script that the font does not have
            figure.savefig(file, format=form, metadata={**facts, **dates})
        return file.getvalue()


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
    ranks = dict(zip(first.table.frame["model"], first.table.texts(RANK), strict=True))
    yield Chart(
        f"{prefix}ratings",
        "Bradley–Terry ratings with 95 % intervals",
        "At the right: the rank interval. It says who is better, not whether two lines overlap.",
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
            partial(_points, points, "USD per dialogue", "Bradley–Terry rating"),
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
        9 + len(names),
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
            partial(_steps, part.curves),
            12,
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
            partial(_violins, {name: lengths[name] for name in order}, spoken.unit),
            len(order),
        )
    if board.human_lengths:
        yield Chart(
            "rounds",
            "Utterances of the human dialogues",
            f"Arena and GTEval use those with at least {MIN_HUMAN}.",
            [board.seeds_signature],
            partial(_counts, board.human_lengths),
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
            "Skill over the price of a verdict",
            f"Skill against {report.labels}, with its 95 % interval; 0 is guessing.",
            [report.signature],
            partial(_points, points, "USD per 1,000 verdicts", "skill (of 100)"),
            6 + len(points),
        )
    if report.agreement.pairs:
        same = pd.DataFrame(math.nan, list(names.values()), list(names.values()))
        for pair in report.agreement.pairs:
            a = names[pair.judge_a]
            b = names[pair.judge_b]
            same.loc[a, b] = pair.agreement.value
            same.loc[b, a] = pair.agreement.value
        yield Chart(
            "judge-agreement",
            "Same verdict of two judges (%)",
            "How often the judge of the row and that of the column give the same verdict.",
            [report.signature],
            partial(matrix, same),
            9 + len(names),
        )


def _judge_names(judges: Texts) -> dict[str, str]:
    """Return judges as figures name them: without the model of panels where all have that model."""
    models = {(re.findall(r"@([^ ]+)", name) or [name])[0] for name in judges}
    if len(models) > 1:
        return {name: name for name in judges}
    return {name: re.sub("@[^ ]+", "", name) for name in judges}


def _with_ends(table: Table, key: str) -> pd.DataFrame:
    """Return ``value``, ``low`` and ``high`` of a column by model, in the table's order."""
    frame = table.by_model[table.column(key).keys]
    frame = frame.set_axis(["value", "low", "high"], axis=1)
    return _first(frame.dropna(subset="value").astype(float))


def _first(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(np.arange(len(frame)) < MOST_DRAWN) | (frame.index == HUMAN)]


def _color(name: object) -> str:
    return {"human": PEOPLE, "bot": SOFT}.get(kind_of(str(name)), INK)


def _inches(axes: Axes) -> list[float]:
    """Return width and height of the figure."""
    figure: Any = axes.figure  # never a part of one
    return list(figure.get_size_inches())


def _short(axes: Axes, names: Sequence[object]) -> list[str]:
    """Return the names as long as the figure has room for."""
    return labels([str(name) for name in names], max(14, int(5.4 * _inches(axes)[0])))


def _name_rows(axes: Axes, names: Sequence[object]) -> None:
    """Name the rows, the first on top."""
    axes.set_yticks(range(len(names)), _short(axes, names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for tick, name in zip(axes.get_yticklabels(), names, strict=True):
        tick.set_color(_color(name))


def _write_beside(axes: Axes, heights: Any, texts: Texts) -> Sequence[Text]:
    """Write texts at the right, at these heights."""
    right = axes.secondary_yaxis("right")
    right.set_yticks(heights, texts)
    right.tick_params(length=0, pad=2, labelcolor=SOFT)
    right.spines[:].set_visible(False)
    return right.get_yticklabels()


def dots(
    series: Mapping[str, pd.DataFrame], unit: str, notes: Mapping[str, str], axes: Axes
) -> None:
    """Draw numbers with their intervals, a row each; the first series is filled."""
    main = next(iter(series.values()))
    names = list(dict.fromkeys(chain.from_iterable(frame.index for frame in series.values())))
    offsets = np.linspace(-0.3, 0.3, len(series))
    if len(series) == 1:
        offsets = np.zeros(1)
    for i, (title, frame) in enumerate(series.items()):
        frame = frame.reindex(names)
        y = np.arange(len(names)) + offsets[i]
        shade = SHADES[min(i, 3)]
        colors = [PEOPLE if name == HUMAN else shade for name in names]
        fill = "white" if i else colors
        axes.hlines(y, frame["low"], frame["high"], colors, linewidth=1.0 if i else 1.8)
        draw = partial(axes.scatter, s=14, marker="D" if i == 4 else "o")
        draw(frame["value"], y, c=fill, edgecolors=colors, linewidths=1, zorder=3)
        draw([], [], c="white" if i else shade, edgecolors=shade, label=title)
    _name_rows(axes, names)
    values = []
    for name, value in main["value"].reindex(names).items():
        text = f"{value:.0f}  {notes.get(str(name), '')}"
        values.append("" if np.isnan(value) else text.strip())
    _write_beside(axes, range(len(names)), values)
    axes.grid(axis="x")
    axes.set_xlabel(unit)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if len(series) > 1:
        axes.figure.legend(loc="outside lower left", ncols=3)


def matrix(rates: pd.DataFrame, axes: Axes) -> None:
    """Draw shares as shaded cells with their percent."""
    n = len(rates)
    percent = 100 * rates.to_numpy(dtype=float)
    axes.imshow(percent, cmap="Greys", vmin=0, vmax=180, aspect="auto")
    size = min(7.5, 0.62 * 72 * _inches(axes)[0] / (n + 6) / 1.6)
    if size >= 4:
        for i, j in np.argwhere(np.isfinite(percent)):
            axes.text(j, i, f"{percent[i, j]:.0f}", ha="center", va="center", size=size)
    names = _short(axes, list(rates.index))
    size = min(8.0, max(4.0, 1.7 * size))
    axes.set_xticks(range(n), names, rotation=90, size=size)
    axes.set_yticks(range(n), names, size=size)
    axes.tick_params(length=0, labeltop=True, labelbottom=False, labelcolor=INK)
    axes.spines[:].set_visible(False)


def stacks(rates: pd.DataFrame, axes: Axes) -> None:
    """Draw wins, ties and losses of each model, the most human first."""
    order = rates["win"] + rates["tie"] / 2
    rates = rates.loc[order.sort_values(ascending=False, kind="stable").index]
    left = np.zeros(len(rates))
    for key, color, on in (("win", INK, "white"), ("tie", "#97948c", "white"), ("lose", PALE, INK)):
        share = 100 * rates[key].to_numpy(dtype=float)
        bars = axes.barh(range(len(rates)), share, 0.72, left, color=color, label=key)
        texts = [f"{value:.0f}" if value >= 8 else "" for value in share]
        axes.bar_label(bars, texts, label_type="center", color=on, size=7)
        left += share
    _name_rows(axes, list(rates.index))
    axes.set(xlim=(0, 100), xlabel="comparisons (%)")
    axes.figure.legend(loc="outside lower left", ncols=3)


def _steps(curves: Mapping[str, SuccessCurve], axes: Axes) -> None:
    """Draw success rates at each N; the best ten are named at their ends."""
    ends = []
    for name, curve in curves.items():
        rate = 100 * curve.rate[np.isfinite(curve.rate)]
        if len(rate) < N_SEED:  # of too few human dialogues
            continue
        n = np.arange(N_SEED, len(rate) + 1)
        width = 1.8 if name == HUMAN else 1.0
        axes.step(n, rate[N_SEED - 1 :], where="post", color=_color(name), linewidth=width)
        ends.append((float(rate[-1]), name))
    axes.set(xlabel="utterances N", ylabel="success rate at N (%)", ylim=(-2, 102))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    best = sorted(ends, reverse=True)[:10]
    _name_ends(axes, pd.Series({name: rate for rate, name in best}, dtype=float))
    axes.grid(axis="y")


def _name_ends(axes: Axes, ends: pd.Series) -> None:
    """Write names right of the plot near their heights, from the top, one under the other."""
    low, high = axes.get_ylim()
    step = (high - low) / (_inches(axes)[1] - 1) * 0.15
    names = list(ends.index)
    heights = -apart((-ends).tolist(), step, -low)
    texts = _write_beside(axes, heights, _short(axes, names))
    for text, name in zip(texts, names, strict=True):
        text.set_color(_color(name))


def _points(points: pd.DataFrame, across: str, up: str, axes: Axes) -> None:
    """Draw numbers with their intervals over a cost on a logarithmic scale."""
    points = points.sort_values("value", ascending=False, kind="stable")
    colors = [_color(name) for name in points.index]
    axes.vlines(points["x"], points["low"], points["high"], colors, linewidth=1, alpha=0.5)
    axes.scatter(points["x"], points["value"], 14, colors, zorder=3)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    is_narrow = points["x"].max() < 10 * points["x"].min()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,)))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel=f"{across} (log scale)", ylabel=up)
    _name_ends(axes, points["value"])
    axes.grid()


def _violins(lengths: Mapping[str, Any], unit: str, axes: Axes) -> None:
    """Draw the distribution of lengths on a logarithmic scale, the shortest mean first."""
    rows = range(len(lengths))
    middles = (np.arange(400) + 0.5) / 400  # a violin of a million values takes long
    few = [x if len(x) < 400 else np.quantile(x, middles) for x in lengths.values()]
    logs = [np.log10(np.maximum(x, 1)) for x in few]
    spread = [x if np.ptp(x) else x + np.linspace(-0.01, 0.01, len(x)) for x in logs]
    drawn = axes.violinplot(spread, rows, orientation="horizontal", widths=0.85, showextrema=False)
    bodies: Any = drawn["bodies"]
    for body, name in zip(bodies, lengths, strict=True):
        body.set(facecolor=_color(name), alpha=0.35)
    low, median, high = np.transpose([np.percentile(x, (25, 50, 75)) for x in logs])
    axes.hlines(rows, low, high, INK, linewidth=1.8)
    axes.scatter(median, rows, 12, "white", edgecolors=INK, zorder=3)
    _name_rows(axes, list(lengths))
    _write_beside(axes, rows, [f"{values.mean():.0f}" for values in lengths.values()])
    ticks = np.log10(np.outer(10 ** np.arange(6), (1, 2, 5))).ravel()
    axes.xaxis.set_major_locator(FixedLocator(ticks.tolist(), nbins=8))
    axes.xaxis.set_major_formatter(lambda x, _: f"{10**x:,.0f}")
    axes.set_xlabel(f"{unit} per utterance (log scale)")


def _counts(lengths: Sequence[int], axes: Axes) -> None:
    """Draw how many dialogues have how many utterances."""
    n, counts = np.unique(lengths, return_counts=True)
    colors = np.where(n < MIN_HUMAN, PALE, PEOPLE).tolist()
    bars = axes.bar(n, counts, color=colors)
    if len(n) <= 30:
        axes.bar_label(bars, size=5.5)
    axes.set(xlabel="utterances per dialogue", ylabel="dialogues")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
