"""Figures with a row a model (BotChat Figures 2 to 7) and of the judge, from data frames.

Models are rows, so that long names, and 40 of them, can be read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from botchat.boards.tables import Table
from botchat.records import HUMAN, MIN_HUMAN
from botchat.report.figures.style import (
    BAR,
    DASHED,
    GRID,
    INK,
    LEAST,
    MUTED,
    NAMES,
    ROW,
    SIZE,
    Heading,
    bare,
    bars,
    faces,
    fitted,
    interval_key,
    label_x,
    line_key,
    mark,
    marks,
    name_rows,
    people,
    right_of,
    sheet,
    size_of,
    tint,
    widest,
)

_MARKERS = "oDs^v"
"""Of the first N (filled), the second, ..."""

_ROW, _EACH = 0.25, 0.11
"""Height of a row, and of one of its series, in inches."""

_PANEL, _NUMBER = 1.0, 0.42
"""Least width of a panel of the judge's health, and the room for its number, in inches."""

_MOST_KERNELS = 1000
"""Of a violin's density."""


class NumberColumn(NamedTuple):
    """A column of numbers right of a plot."""

    heading: str
    values: Sequence[float | str]
    form: str = "{:.1f}"

    @property
    def said(self) -> list[str]:
        """As they are written; a dash where one is not known."""
        return [written(value, self.form) for value in self.values]

    @property
    def inches(self) -> float:
        """Room for the column."""
        return 0.16 + max(widest([self.heading], LEAST), widest(self.said, SIZE, bold=True))


def written(value: float | str, form: str = "{:.1f}") -> str:
    """A number, a dash where it is not known; text as it is."""
    if isinstance(value, str):
        return value
    return "–" if math.isnan(value) else form.format(value)


def intervals(values: pd.DataFrame, label: str, form: str, heading: Heading) -> Figure:
    """Numbers with their intervals, best first.

    ``values``: index model; columns the number, ``low``, ``high`` and, for ratings, ``rank``. The
    number's column is named beside the plot, ``label`` stands at the axis, ``form`` writes numbers.
    """
    name, _, _, *group = values.columns
    values = values.sort_values(name, ascending=False, kind="stable")
    beside = [NumberColumn(column, values[column].tolist(), form) for column in (name, *group)]
    key = marks(values.index)[: None if values[["low", "high"]].notna().any(axis=None) else -1]
    figure, axes = rows(values.index, heading, beside, key)
    _series(axes, [values], 0.0)
    _label(axes, label)
    return figure


def places(values: pd.DataFrame, heading: Heading) -> Figure:
    """The ranks that are left open, as bars.

    ``values``: index model; columns ``rank``, ``low``, ``high`` and ``said``.
    """
    models, y = list(values.index), np.arange(len(values))
    key: list[Patch | Line2D] = [Patch(color=tint(BAR / 2), label="ranks left open")]
    key += marks(models)[:-1]
    figure, axes = rows(models, heading, [NumberColumn("rank", values["said"].tolist())], key)
    starts, ends = values["low"] - 0.4, values["high"] + 0.4
    axes.set_xlim(0.4, max(len(values), values["high"].max()) + 0.6)
    bars(axes, y, starts, ends, height=0.56, color=tint(BAR / 2))
    _points(axes, values["rank"], y, models)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    label_x(axes, "Rank")
    return figure


def series(
    values: Mapping[str, pd.DataFrame],
    label: str,
    form: str,
    heading: Heading,
    start: float | None = None,
) -> Figure:
    """Numbers of several series, each with its interval; in the order of the first one's rows.

    ``values``: series, such as ``N = 16`` -> index model; columns the number, ``low`` and ``high``.
    A line marks ``start``, such as the first rating of all.
    """
    models = list(dict.fromkeys(model for one in values.values() for model in one.index))
    tables = [one.reindex(models) for one in values.values()]
    key = [
        mark("none" if i else tint(INK), name, _MARKERS[i % len(_MARKERS)])
        for i, name in enumerate(values)
    ]
    if start is not None:
        key.append(line_key(f"start ({start:g})", MUTED, 0.8, DASHED))
    beside = [
        NumberColumn(name, one.iloc[:, 0].tolist(), form)
        for name, one in zip(values, tables, strict=True)
    ]
    per_row = max(_ROW, _EACH * len(tables) + 0.1)
    shown = beside[: 1 if heading.look.narrow else None]
    figure, axes = rows(models, heading, shown, [*key, interval_key()], per_row)
    if start is not None:
        axes.axvline(start, color=tint(MUTED), linewidth=0.8, linestyle=DASHED)
    _series(axes, tables, _EACH / per_row)
    _label(axes, label)
    return figure


def _series(axes: Axes, tables: Sequence[pd.DataFrame], apart: float) -> None:
    """Numbers with their intervals, each series so far below the one before."""
    for i, one in enumerate(tables):
        y = np.arange(len(one)) + (i - (len(tables) - 1) / 2) * apart
        number, low, high = one.iloc[:, :3].to_numpy(dtype=float).T
        axes.hlines(y, low, high, color=tint(BAR), linewidth=1.8 if i else 2.4)
        marker = _MARKERS[i % len(_MARKERS)]
        _points(axes, number, y, list(one.index), marker, size=22 if i else 34, hollow=i)
    axes.margins(x=0.06)


def human_lengths(utterances: Sequence[int], heading: Heading) -> Figure:
    """How many human dialogues have how many utterances (BotChat Figure 2)."""
    found = Counter(utterances)
    xs = range(min(found), max(found) + 1)
    fewer = Patch(color=tint(GRID * 2), label=f"below {MIN_HUMAN}: UniEval only")
    more = Patch(color=people(), label=f"{MIN_HUMAN} and more: Arena and GTEval too")
    figure, (axes,) = sheet(heading, [2.6], left=0.65, below=0.55, key=[fewer, more])
    bare(axes, grid="y")
    colors = [people() if x >= MIN_HUMAN else tint(GRID * 2) for x in xs]
    axes.bar(xs, [found[x] for x in xs], width=0.8, color=colors)
    each = size_of(axes)[0] / len(xs)
    if widest(map(str, found.values()), LEAST) < each:
        for x in xs:
            if found[x]:
                axes.annotate(
                    str(found[x]), (x, found[x]), (0, 3), textcoords="offset points",
                    ha="center", size=LEAST,
                )  # fmt: skip
    if each > 0.2:
        axes.set_xticks(list(xs))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    label_x(axes, "Utterances in the human dialogue")
    axes.set_ylabel("Dialogues", size=SIZE, color=tint(MUTED))
    axes.margins(x=0.02, y=0.12)
    return figure


def utterance_lengths(
    lengths: Mapping[str, NDArray[np.int64]], unit: str, heading: Heading
) -> Figure:
    """Violins of utterance lengths, shortest mean first, with quartiles (BotChat Figure 3)."""
    spoken = {model: values for model, values in lengths.items() if len(values)}
    models = sorted(spoken, key=lambda model: (float(spoken[model].mean()), model))
    dot = Line2D([], [], linestyle="none", marker="o", markersize=4.5, label="median")
    dot.set(markerfacecolor=tint(0), markeredgecolor=tint(INK))
    key = [dot, line_key("middle half", width=2.2)]
    beside = [NumberColumn("mean", [float(spoken[model].mean()) for model in models], "{:,.1f}")]
    figure, axes = rows(models, heading, beside, key, 0.34)
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
        color = people() if model == HUMAN else tint(BAR)
        body.set(facecolor=color, alpha=0.5, edgecolor="none")
    quartiles = [np.percentile(values, (25, 50, 75)) for values in logs]
    low, middle, high = np.transpose(quartiles)
    axes.hlines(range(len(models)), low, high, color=tint(INK), linewidth=2.2)
    axes.scatter(
        middle, range(len(models)), s=4.5**2, linewidth=1, zorder=3, color=tint(0),
        edgecolor=tint(INK),
    )  # fmt: skip
    top = max(float(values.max()) for values in logs)
    steps = (1,) if heading.look.narrow else (1, 2, 5)
    ticks = [v * 10**e for e in range(6) for v in steps if math.log10(v * 10**e) <= top]
    axes.set_xticks([math.log10(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
    label_x(axes, f"{unit.capitalize()} in an utterance (logarithmic)")
    return figure


def against_human(rates: pd.DataFrame, heading: Heading) -> Figure:
    """GTEval as stacked win, tie and lose bars, best win + tie rate first (BotChat Figure 6).

    ``rates``: index model; columns ``win``, ``tie``, ``lose``, and the interval of win + tie in
    ``win_or_tie_low`` and ``win_or_tie_high``, 0 to 1.
    """
    rates = rates.assign(total=rates["win"] + rates["tie"])
    rates = rates.sort_values(["total", "win"], ascending=False, kind="stable")
    models = list(rates.index)
    # A number on each shade can be read.
    parts = (("win", "model wins", 0.76, 0), ("tie", "tie", 0.34, 1), ("lose", "loses", 0.1, 1))
    key: list[Patch | Line2D] = [
        Patch(color=tint(shade), label=label) for _, label, shade, _ in parts
    ]
    key.append(line_key("95 % interval of win + tie", width=1.4))
    beside = [NumberColumn("win + tie", (100 * rates["total"]).tolist())]
    figure, axes = rows(models, heading, beside, key, 0.3)
    _percent(axes, "Comparisons with the human dialogue (%)", room=1.0)
    y, wide = np.arange(len(models)), size_of(axes)[0]
    start = np.zeros(len(models))
    for name, _, shade, ink in parts:
        values = 100 * rates[name].to_numpy(dtype=float)
        bars(axes, y - 0.08, start, start + values, height=0.66, color=tint(shade))
        for row, value in enumerate(values):
            if value * wide / 100 >= 0.3:
                x, up = start[row] + value / 2, row - 0.08
                _number(axes, x, up, f"{value:.0f}", color=tint(ink), size=LEAST, ha="center")
        start = start + np.nan_to_num(values)
    low, high = (100 * rates[f"win_or_tie_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
    known = np.flatnonzero(~np.isnan(low + high))
    axes.hlines(y[known] + 0.36, low[known], high[known], color=tint(INK), linewidth=1.4)
    return figure


class Measure(NamedTuple):
    """One column of the figure of judges."""

    key: str
    title: str
    """In one line that is not much wider than the panel."""
    of: str
    """What the bar is a share of."""
    neutral: float = 0.0
    """What bars begin at: 0.5 where that is no preference."""
    low: float = 0.0
    high: float = 1.0


MEASURES = (
    Measure("consistency", "Same in both orders", "% of pairs"),
    Measure("ties", "Ties", "% of verdicts"),
    Measure("unreadable_rate", "Unreadable", "% of verdicts"),
    Measure("stable", "Samples agree", "% of verdicts"),
    Measure("first_preferred", "First shown wins", "% of decided", 0.5),
    Measure("longer_preferred", "Longer wins", "% of decided", 0.5),
    Measure("length_preference", "Prefers the longer", "points beyond truth", low=-1),
    Measure("machines_caught", "Machines caught", "% of dialogues"),
    Measure("people_accused", "People accused", "% of dialogues"),
)
"""All that tables of judges say of one."""


def health(judges: Table, heading: Heading) -> Figure:
    """A panel a measure, with bars and their intervals; a dash where it is not known.

    ``judges``: named by the first column. Measures that no row has are left out.
    """
    frame = judges.frame
    there = [one for one in MEASURES if one.key in frame and frame[one.key].notna().any()]
    names = frame[judges.columns[0].key].tolist()
    look = heading.look
    shown = fitted(names, max(NAMES, 0.34 * look.width - 0.2))
    left, right = widest(shown, bold=True) + 0.24, _NUMBER + 0.1
    least = max(_PANEL, *(widest([one.title, one.of], SIZE, bold=True) - 0.3 for one in there))
    columns = max(1, int((look.width - left + 0.1) // (least + _NUMBER + 0.12)))
    columns = math.ceil(len(there) / math.ceil(len(there) / columns))
    figure, panels = sheet(
        heading,
        [0.24 * len(names)] * len(there),
        left=left,
        right=right,
        above=0.32,
        gap=_NUMBER + 0.12,
        below=0.5,
        columns=min(columns, len(there)),
        least=ROW * len(names),
    )
    for i, (axes, measure) in enumerate(zip(panels, there, strict=True)):
        bare(axes, grid="x")
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(100 * measure.low, 100 * measure.high)
        first = i % columns == 0
        name_rows(axes, names if first else [], shown if first else [], look)
        middle = (measure.low + measure.high) / 2
        ticks = [100 * at for at in (measure.low, middle, measure.high)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], size=LEAST)
        axes.set_title(measure.title, loc="left", size=SIZE, weight="bold", pad=6)
        axes.set_xlabel(measure.of, size=LEAST, color=tint(MUTED), loc="left")
        if measure.low < measure.neutral:
            axes.axvline(100 * measure.neutral, color=tint(MUTED), linewidth=0.9)
        values = 100 * frame[measure.key].to_numpy(dtype=float)
        y = range(len(names))
        bars(axes, y, 100 * measure.neutral, values, height=0.6, color=tint(BAR / 2))
        if ends := judges.ends(measure.key):
            low, high = (100 * frame[end.key].to_numpy(dtype=float) for end in ends)
            known = np.flatnonzero(~np.isnan(values + low + high))
            axes.hlines(known, low[known], high[known], color=tint(INK), linewidth=1.3)
        place = right_of(axes, axes.get_yaxis_transform(), 4)
        for row, value in enumerate(values):
            _number(axes, 1, row, written(value), transform=place, size=SIZE)
    return figure


def rows(
    names: Sequence[str] | pd.Index,
    heading: Heading,
    beside: Sequence[NumberColumn],
    key: Sequence[Patch | Line2D] = (),
    per_row: float = _ROW,
) -> tuple[Figure, Axes]:
    """A plot with one row a name, at its left, first on top; numbers ``beside`` at its right."""
    names, look = list(names), heading.look
    shown = fitted(names, max(NAMES, 0.34 * look.width - 0.2))
    left, n = widest(shown, bold=True) + 0.24, max(1, len(names))
    figure, (axes,) = sheet(
        heading,
        [n * per_row],
        left=left,
        right=0.12 + sum(column.inches for column in beside),
        above=0.28,
        key=key,
        least=n * max(ROW, per_row - 0.1),
    )
    bare(axes, grid="x")
    axes.set_ylim(len(names) - 0.5, -0.5)
    name_rows(axes, names, shown, look)
    place, x, wide = axes.get_yaxis_transform(), 0.0, size_of(axes)[0]
    for i, column in enumerate(beside):
        x += column.inches
        at, weight = 1 + x / wide, "normal" if i else "bold"
        for row, said in enumerate(column.said):
            _number(axes, at, row, said, size=SIZE, ha="right", transform=place, weight=weight)
        axes.annotate(
            column.heading, (at, 1), (0, 5), xycoords="axes fraction", textcoords="offset points",
            ha="right", size=LEAST, color=tint(MUTED),
        )  # fmt: skip
    return figure, axes


def _label(axes: Axes, label: str) -> None:
    """Name the axis along rows; it has no more numbers than it has room for."""
    if "%" in label:
        _percent(axes, label, room=1.02)
        axes.set_xlim(-2)
    else:
        axes.xaxis.set_major_locator(
            MaxNLocator(max(2, int(size_of(axes)[0] / 0.62)), steps=[1, 2, 5, 10])
        )
    label_x(axes, label)


def _percent(axes: Axes, label: str, room: float = 1.06) -> None:
    axes.set_xlim(0, 100 * room)
    axes.set_xticks(range(0, 101, 20 if size_of(axes)[0] > 2 else 50))
    label_x(axes, label)


def _points(
    axes: Axes,
    x: Any,
    y: Any,
    names: Sequence[str],
    marker: str = "o",
    *,
    size: float = 34,
    hollow: int = 0,
) -> None:
    """The mark of each; ``hollow``: of another series than the first."""
    fill, edge = faces(names)
    fill = [tint(0)] * len(edge) if hollow else fill
    axes.scatter(
        x, y, s=size, marker=marker, color=fill, edgecolor=edge, linewidth=1.3, zorder=3
    )  # fmt: skip


def _number(axes: Axes, x: float, y: float, said: str, **style: Any) -> None:
    axes.text(x, y, said, va="center_baseline", **style)


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most `_MOST_KERNELS` quantiles: a kernel for each of a million values takes minutes."""
    if len(values) <= _MOST_KERNELS:
        return values
    return np.quantile(values, (np.arange(_MOST_KERNELS) + 0.5) / _MOST_KERNELS)
