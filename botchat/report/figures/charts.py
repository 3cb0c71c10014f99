"""The figures of the paper (BotChat Figures 2 to 7) and the ratings, from data frames.

Models are rows, so that long names, and 40 of them, can be read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from numpy.typing import NDArray

from botchat.boards.tables import Table, labels
from botchat.records import HUMAN, MIN_HUMAN
from botchat.report.figures.style import (
    BLUE,
    GREY,
    GRID,
    INK,
    MUTED,
    ORANGE,
    SHADES,
    Heading,
    bare,
    bars,
    label_inches,
    name_columns,
    name_rows,
    right_of,
    sheet,
    styled,
)

_MARKERS = "oosD^v"
"""Of the first N (filled), the second, ..."""

_HOLLOW = "#e4eef8"
_DASHED = (0, (4, 3))

_PLOT, _COLUMN = 5.6, 0.68
"""Width of a plot beside its model names, and of a column of numbers right of it, in inches."""

_PANEL, _NUMBER = 1.22, 0.42
"""Width of a panel of the judge's health, and of the room for the number right of it, in inches."""

_MOST_KERNELS, _MOST_WRITTEN = 1000, 40
"""Of a violin's density; most models at which a square shows its value as a number."""

_HEAT = LinearSegmentedColormap.from_list(
    "heat", ["#f2f6fa", "#c6dbef", "#6baed6", "#2f7ebc", "#0b3d78"]
).with_extremes(bad=GRID)


@styled()
def ratings(elo: Mapping[str, pd.DataFrame], init: float, heading: Heading) -> Figure:
    """Elo of every model: one row a model, one mark a series, in the order of the first series.

    ``elo``: series, such as ``N = 16`` -> index model; columns ``rating``, ``low`` and ``high``. A
    line marks ``init``, the first rating; thin lines are the intervals of the first series.
    """
    models = list(dict.fromkeys(model for series in elo.values() for model in series.index))
    table = pd.DataFrame({name: series["rating"] for name, series in elo.items()}).loc[models]
    first = next(iter(elo.values())).reindex(models)
    rows = range(len(table))
    right = _COLUMN * len(elo) + 0.15
    figure, axes = _rows(list(table.index), heading, per_row=0.3, right=right, above=0.42)
    start: dict[str, Any] = {"color": MUTED, "linewidth": 0.8, "linestyle": _DASHED}
    axes.axvline(init, **start)
    axes.hlines(rows, table.min(axis=1), table.max(axis=1), color=GREY, linewidth=1.4)
    known = np.flatnonzero(first["low"].notna())
    axes.hlines(
        known, first["low"].iloc[known], first["high"].iloc[known], color=INK, linewidth=0.9
    )
    marks = [Line2D([], [], label=f"start ({init:g})", **start)]
    for i, name in reversed(list(enumerate(elo))):
        face, marker = _HOLLOW if i else SHADES[0], _MARKERS[i % len(_MARKERS)]
        axes.scatter(
            table[name], rows, s=42, linewidth=1.4, zorder=3, color=face, edgecolor=SHADES[0],
            marker=marker,
        )  # fmt: skip
        _numbers(axes, i, name, table[name], "{:.0f}")
        marks.insert(0, mark(face, name, marker))
    axes.set_xlabel("Bootstrap Elo (points)")
    axes.margins(x=0.06)
    legend(axes, marks)
    return figure


@styled()
def intervals(values: pd.DataFrame, label: str, form: str, heading: Heading) -> Figure:
    """Numbers with their intervals, best first.

    ``values``: index model; columns the number, ``low``, ``high`` and, for ratings, ``rank``. The
    number's column is named beside the plot, ``label`` stands at the axis, ``form`` writes numbers.
    """
    name, low, high, *group = values.columns
    values = values.sort_values(name, ascending=False, kind="stable")
    beside = [name, *group]
    right, above = _COLUMN * len(beside) + 0.15, 0.42 if group else 0.1
    figure, axes = _rows(list(values.index), heading, per_row=0.3, right=right, above=above)
    rows = range(len(values))
    axes.hlines(rows, values[low], values[high], color=BLUE, linewidth=2.2)
    # Nobody sets people beside models in an Arena, so ratings have one colour.
    each = [ORANGE if model == HUMAN else SHADES[0] for model in values.index]
    axes.scatter(values[name], rows, s=36, color=SHADES[0] if group else each, zorder=3)
    for i, column in enumerate(beside):
        _numbers(axes, i, column, values[column], form)
    axes.set_xlabel(label)
    axes.margins(x=0.06)
    if group:
        dot = Line2D([], [], color=BLUE, linewidth=2.2, marker="o", markersize=6)
        dot.set(markerfacecolor=SHADES[0], markeredgecolor="none", label="rating, 95 % interval")
        legend(axes, [dot])
    return figure


@styled()
def human_lengths(utterances: Sequence[int], heading: Heading) -> Figure:
    """How many human dialogues have how many utterances (BotChat Figure 2)."""
    found = Counter(utterances)
    xs = range(min(found), max(found) + 1)
    figure, (axes,) = sheet(heading, [(7.6, 2.9)], left=0.75, above=0.45)
    bare(axes, grid="y")
    colors = [BLUE if x >= MIN_HUMAN else GREY for x in xs]
    axes.bar(xs, [found[x] for x in xs], width=0.8, color=colors)
    if len(xs) <= 24:
        for x in xs:
            if found[x]:
                axes.annotate(
                    str(found[x]), (x, found[x]), (0, 3), textcoords="offset points",
                    ha="center", size=8,
                )  # fmt: skip
        axes.set_xticks(list(xs))
    axes.set_xlabel("Utterances in the human dialogue")
    axes.set_ylabel("Dialogues")
    axes.margins(x=0.02, y=0.12)
    fewer = Patch(color=GREY, label=f"below {MIN_HUMAN}: UniEval only")
    more = Patch(color=BLUE, label=f"{MIN_HUMAN} and more: Arena and GTEval too")
    legend(axes, [fewer, more])
    return figure


@styled()
def utterance_lengths(
    lengths: Mapping[str, NDArray[np.int64]], unit: str, heading: Heading
) -> Figure:
    """Violins of utterance lengths, shortest mean first, with quartiles (BotChat Figure 3)."""
    spoken = {model: values for model, values in lengths.items() if len(values)}
    models = sorted(spoken, key=lambda model: (float(spoken[model].mean()), model))
    figure, axes = _rows(models, heading, per_row=0.42, right=_COLUMN + 0.15, above=0.42)
    logs = [np.log10(np.maximum(spoken[model], 1)) for model in models]
    drawn = axes.violinplot(
        [_thinned(values) for values in logs],
        positions=range(len(models)),
        orientation="horizontal",
        widths=0.86,
        showextrema=False,
    )
    bodies = cast("list[PolyCollection]", drawn["bodies"])
    for body, model in zip(bodies, models, strict=True):
        body.set(facecolor=ORANGE if model == HUMAN else BLUE, alpha=0.55, edgecolor="none")
    quartiles = [np.percentile(values, (25, 50, 75)) for values in logs]
    low, middle, high = np.transpose(quartiles)
    axes.hlines(range(len(models)), low, high, color=INK, linewidth=2.2)
    axes.scatter(
        middle, range(len(models)), s=4.5**2, linewidth=1, zorder=3, color="white",
        edgecolor=INK,
    )  # fmt: skip
    _numbers(axes, 0, "mean", [spoken[model].mean() for model in models], "{:,.1f}")
    top = max(float(values.max()) for values in logs)
    ticks = [v * 10**e for e in range(6) for v in (1, 2, 5) if math.log10(v * 10**e) <= top]
    axes.set_xticks([math.log10(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
    axes.set_xlabel(f"{unit.capitalize()} in an utterance (logarithmic scale)")
    dot = Line2D([], [], color="none", marker="o", markerfacecolor="white", markeredgecolor=INK)
    dot.set(markersize=4.5, label="median")
    legend(axes, [dot, Line2D([], [], color=INK, linewidth=2.2, label="middle half")])
    return figure


@styled()
def success_rates(rates: Mapping[int, pd.DataFrame], heading: Heading) -> Figure:
    """UniEval success rate at each N as grouped bars, best at the largest N first (Figure 4).

    ``rates``: N -> index model; columns ``success``, ``low`` and ``high``, 0 to 1.
    """
    turns = sorted(rates, reverse=True)
    keys = [str(n) for n in turns]
    order = pd.DataFrame({key: rates[n]["success"] for key, n in zip(keys, turns, strict=True)})
    models = list(order.sort_values(keys, ascending=False, kind="stable").index)
    per_bar, size = (0.13, 7) if len(models) <= 16 else (0.095, 5.5)
    per_row = per_bar * len(turns) + 0.16
    figure, axes = _rows(models, heading, per_row=per_row, right=0.6, above=0.42)
    group = per_bar * len(turns) / per_row
    each = group / len(turns)
    marks = []
    for i, n in enumerate(turns):
        color = SHADES[min(i, len(SHADES) - 1)] if len(turns) > 1 else BLUE
        marks.append(Patch(color=color, label=f"N = {n}"))
        y = np.arange(len(models)) - group / 2 + (i + 0.5) * each
        values, low, high = 100 * rates[n].loc[models].to_numpy(dtype=float).T
        bars(axes, y, 0, values, height=each * 0.9, color=color)
        _interval(axes, y, low, high, 0.8)
        _beside(axes, y, values, np.fmax(high, values), size, "normal" if i else "bold")
    _percent(axes, "Success rate (% of dialogues)")
    legend(axes, marks)
    return figure


@styled()
def success_at_human_length(rates: pd.DataFrame, heading: Heading) -> Figure:
    """UniEval success rate at the length of the human dialogue (BotChat Figure 7).

    ``rates``: index model; columns ``success``, ``low`` and ``high``, 0 to 1.
    """
    rates = rates.sort_values("success", ascending=False, kind="stable")
    models = list(rates.index)
    figure, axes = _rows(models, heading, per_row=0.3, right=0.6)
    colors = [ORANGE if model == HUMAN else BLUE for model in models]
    values, low, high = 100 * rates[["success", "low", "high"]].to_numpy(dtype=float).T
    bars(axes, range(len(models)), 0, values, height=0.68, color=colors)
    _interval(axes, np.arange(len(models)), low, high, 1.2)
    _beside(axes, range(len(models)), values, np.fmax(high, values), 8.5)
    _percent(axes, "Success rate (% of dialogues)")
    return figure


@styled()
def squares(parts: Mapping[str, pd.DataFrame], below: str, heading: Heading) -> Figure:
    """Square tables in percent side by side, each under its title (BotChat Figure 5).

    ``parts``: title -> values up to 1, index and columns the same names; NaN: not known. ``below``:
    label of the horizontal axes.
    """
    models = list(next(iter(parts.values())).index)
    n = len(models)
    size = 9 if n <= 16 else 8 if n <= 24 else 7
    cell = max(0.42, 2.2 / n) if n <= 16 else 0.3 if n <= 24 else 0.235
    shown = labels(models)
    name = label_inches(shown, size)
    stacked = n > 16
    figure, panels = sheet(
        heading,
        [(n * cell, n * cell)] * len(parts),
        left=name + 0.35,
        above=name + 0.55,
        below=0.3,
        stacked=stacked,
        gap=0.45,
    )
    for i, (axes, (title, rates)) in enumerate(zip(panels, parts.items(), strict=True)):
        values = 100 * rates.to_numpy(dtype=float)
        bare(axes)
        axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
        _cells(axes, values, size - 1)
        name_columns(axes, shown, size)
        name_rows(axes, shown if stacked or i == 0 else [], size)
        axes.annotate(
            title, (0, 1), (0, (name + 0.25) * 72), xycoords="axes fraction",
            textcoords="offset points", weight="bold", size=10,
        )  # fmt: skip
        axes.set_xlabel(below, color=MUTED, size=8)
    return figure


@styled()
def against_human(rates: pd.DataFrame, heading: Heading) -> Figure:
    """GTEval as stacked win, tie and lose bars, best win + tie rate first (BotChat Figure 6).

    ``rates``: index model; columns ``win``, ``tie``, ``lose``, and the interval of win + tie in
    ``win_or_tie_low`` and ``win_or_tie_high``, 0 to 1.
    """
    rates = rates.assign(total=rates["win"] + rates["tie"])
    rates = rates.sort_values(["total", "win"], ascending=False, kind="stable")
    models = list(rates.index)
    parts = (
        ("win", "model wins", BLUE, "white"),
        ("tie", "tie", GREY, "#111111"),
        ("lose", "model loses", ORANGE, "#111111"),
    )
    figure, axes = _rows(models, heading, per_row=0.31, right=_COLUMN + 0.15, above=0.42)
    y = np.arange(len(models))
    start = np.zeros(len(models))
    for key, _, color, ink in parts:
        values = 100 * rates[key].to_numpy(dtype=float)
        bars(axes, y, start, start + values, height=0.74, color=color)
        for row, value in enumerate(values):
            if value >= 5:
                x = start[row] + value / 2
                axes.text(x, row, f"{value:.1f}", color=ink, size=7.5, ha="center", va="center")
        start = start + np.nan_to_num(values)
    low, high = (100 * rates[f"win_or_tie_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
    _interval(axes, y + 0.27, low, high, 1.2)  # below the numbers in the bars
    _numbers(axes, 0, "win + tie", 100 * rates["total"], "{:.1f}")
    _percent(axes, "Comparisons with the human dialogue (%)", room=1.0)
    legend(axes, [Patch(color=color, label=label) for _, label, color, _ in parts])
    return figure


@dataclass(frozen=True)
class Measure:
    """One column of the figure."""

    key: str
    title: str
    """In one line that is not much wider than the panel."""
    of: str
    """What the bar is a share of."""
    neutral: float = 0.0
    """What bars begin at: 0.5 where that is no preference."""
    low: float = 0.0
    high: float = 1.0


@styled()
def health(judges: Table, measures: Sequence[Measure], heading: Heading) -> Figure:
    """Bars for every measure, side by side; a dash where it is not known.

    ``judges``: named by the first column. Measures that no row has are left out.
    """
    rows = judges.frame
    there = [one for one in measures if one.key in rows and rows[one.key].notna().any()]
    shown = labels(rows[judges.columns[0].key].tolist())
    figure, panels = sheet(
        heading,
        [(_PANEL, 0.3 * len(rows))] * len(there),
        left=label_inches(shown, 9) + 0.3,
        right=_NUMBER + 0.1,
        above=0.36,
        gap=_NUMBER + 0.12,
        below=0.42,
    )
    for i, (axes, measure) in enumerate(zip(panels, there, strict=True)):
        bare(axes, grid="x")
        name_rows(axes, shown if i == 0 else [], 9)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(100 * measure.low, 100 * measure.high)
        middle = (measure.low + measure.high) / 2
        ticks = [100 * at for at in (measure.low, middle, measure.high)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], size=7.5)
        axes.set_title(measure.title, loc="left", size=8.5, weight="bold", pad=6)
        axes.set_xlabel(measure.of, size=7.5, color=MUTED)
        if measure.low < measure.neutral:
            axes.axvline(100 * measure.neutral, color=MUTED, linewidth=0.9)
        values = 100 * rows[measure.key].to_numpy(dtype=float)
        bars(axes, range(len(rows)), 100 * measure.neutral, values, height=0.6, color=BLUE)
        if ends := judges.ends(measure.key):
            low, high = (100 * rows[end.key].to_numpy(dtype=float) for end in ends)
            known = np.flatnonzero(~np.isnan(values + low + high))
            axes.hlines(known, low[known], high[known], color=INK, linewidth=1.1)
        place = right_of(axes, axes.get_yaxis_transform(), 4)
        for row, value in enumerate(values):
            _number(axes, 1, row, value, transform=place, size=8.5)
    return figure


def _rows(
    models: Sequence[str], heading: Heading, *, per_row: float, right: float, above: float = 0.1
) -> tuple[Figure, Axes]:
    """A plot with one row a model, named at its left, first on top."""
    size = 9 if len(models) <= 16 else 8
    shown = labels(models)
    left = label_inches(shown, size) + 0.3
    height = max(1, len(models)) * per_row
    figure, (axes,) = sheet(heading, [(_PLOT, height)], left=left, right=right, above=above)
    bare(axes, grid="x")
    name_rows(axes, shown, size)
    axes.set_ylim(len(models) - 0.5, -0.5)
    return figure, axes


def _percent(axes: Axes, label: str, room: float = 1.06) -> None:
    axes.set_xlim(0, 100 * room)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel(label)


def _interval(axes: Axes, rows: Any, low: Any, high: Any, width: float) -> None:
    """Thin lines from end to end, where both are known."""
    known = np.flatnonzero(~np.isnan(low + high))
    axes.hlines(np.asarray(rows)[known], low[known], high[known], color=INK, linewidth=width)


def _beside(
    axes: Axes, rows: Any, values: Any, ends: Any, size: float, weight: str = "normal"
) -> None:
    """Values right of where their bars end; nothing where one is not known."""
    place = right_of(axes, axes.transData, 3)
    for row, value, end in zip(rows, values, ends, strict=True):
        if not math.isnan(value):
            _number(axes, end, row, value, size=size, transform=place, weight=weight)


def _numbers(axes: Axes, column: int, name: str, values: Iterable[float | str], form: str) -> None:
    """A column of numbers right of the plot, one a row; the first column is bold."""
    x = 1 + (_COLUMN * (column + 1) - 0.06) / _PLOT
    place, weight = axes.get_yaxis_transform(), "normal" if column else "bold"
    for row, value in enumerate(values):
        _number(axes, x, row, value, form, size=8.5, ha="right", transform=place, weight=weight)
    axes.annotate(
        name, (x, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", ha="right",
        size=8, color=MUTED,
    )  # fmt: skip


def _number(
    axes: Axes, x: float, y: float, value: float | str, form: str = "{:.1f}", **style: Any
) -> None:
    """A number at a place, a dash where it is not known; text as it is."""
    if not isinstance(value, str):
        value = "–" if math.isnan(value) else form.format(value)
    axes.text(x, y, value, va="center_baseline", **style)


def mark(face: str, label: str, marker: str = "o") -> Line2D:
    """A point in a legend."""
    return Line2D(
        [], [], color="none", marker=marker, markersize=6.5, markeredgecolor=SHADES[0],
        markeredgewidth=1.4, markerfacecolor=face, label=label,
    )  # fmt: skip


def legend(axes: Axes, handles: Sequence[Patch | Line2D]) -> None:
    """A legend in one line above the plot, at its left."""
    axes.legend(
        handles=list(handles), loc="lower left", bbox_to_anchor=(0, 1), ncols=len(handles),
        frameon=False, borderaxespad=0, borderpad=0.6, handlelength=1.1, handletextpad=0.5,
        columnspacing=1.4,
    )  # fmt: skip


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most `_MOST_KERNELS` quantiles: a kernel for each of a million values takes minutes."""
    if len(values) <= _MOST_KERNELS:
        return values
    return np.quantile(values, (np.arange(_MOST_KERNELS) + 0.5) / _MOST_KERNELS)


def _cells(axes: Axes, values: NDArray[np.float64], size: float) -> None:
    """A square with its value for every pair; nothing for a model against itself."""
    pairs = [(row, column) for row, column in np.ndindex(values.shape) if row != column]
    shown = np.array([values[pair] for pair in pairs])
    corners = 0.47 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
    outlines = np.reshape(pairs, (-1, 1, 2))[..., ::-1] + corners
    outline = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    # There can be thousands of squares: all of the same colour are one path.
    found, which = np.unique(shown.round(), return_inverse=True)
    squares = [outlines[which == i] for i in range(len(found))]
    paths = [Path(same.reshape(-1, 2), np.tile(outline, len(same))) for same in squares]
    drawn = PathCollection(paths, facecolors=_HEAT(found / 100), edgecolors="none", snap=True)
    axes.add_collection(drawn, autolim=False)
    if len(values) <= _MOST_WRITTEN:
        for (row, column), value in zip(pairs, shown, strict=True):
            # White is easier to read on dark squares.
            ink = "white" if value >= 72 else "#111111"
            _number(axes, column, row, value, "{:.0f}", color=ink, size=size, ha="center")
