"""Ways to draw on axes of matplotlib; `botchat.report.figures` says which figures there are."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

from botchat.boards.protocols import SuccessCurve
from botchat.boards.tables import labels
from botchat.metrics.lengths import warn_of_words
from botchat.records import HUMAN, MIN_HUMAN, N_SEED, Texts
from botchat.report.first_screen import apart, kind_of

INK = "#1a1917"  # models
SOFT = "#6b6963"  # what explains
PALE = "#d5d3ce"  # what stands behind
PEOPLE = "#a83c0e"  # human dialogues: the only colour

SHADES = (INK, SOFT, "#97948c", "#bbb8b0")
SHAPES = "osD^v"

_CONTROL = re.compile(r" (\((?:votes before|control)\))$")


def _color(name: object) -> str:
    return {"human": PEOPLE, "bot": SOFT}.get(kind_of(str(name)), INK)


def _short(axes: Axes, names: Iterable[object]) -> list[str]:
    """Return the names as long as the figure has room for; what a control is, in a second line."""
    texts = [str(name) for name in names]
    room = max(14, int(0.054 * axes.figure.bbox.width))  # of which an inch has 100
    starts = labels([_CONTROL.sub("", text) for text in texts], room)
    lines = zip(starts, texts, strict=True)
    return ["\n".join([start, *_CONTROL.findall(text)]) for start, text in lines]


def _name_rows(axes: Axes, names: Sequence[object]) -> None:
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
    names = list(pd.concat(list(series.values())).index.unique())
    offsets = np.linspace(-0.25, 0.25, len(series)) * (len(series) > 1)  # nearer to its own row
    for i in range(1, len(names), 2):
        axes.axhspan(i - 0.5, i + 0.5, color=PALE, alpha=0.3, linewidth=0)
    for i, (title, frame) in enumerate(series.items()):
        frame = frame.reindex(names)
        y = np.arange(len(names)) + offsets[i]
        shade = SHADES[min(i, 3)]
        colors = [PEOPLE if name == HUMAN else shade for name in names]
        fill = "white" if i else colors
        axes.hlines(y, frame["low"], frame["high"], colors, linewidth=1.0 if i else 1.8)
        draw = partial(axes.scatter, s=13, marker=SHAPES[i % len(SHAPES)])
        draw(frame["value"], y, c=fill, edgecolors=colors, linewidths=1, zorder=3)
        draw([], [], c="white" if i else shade, edgecolors=shade, label=title)
    _name_rows(axes, names)
    values = []
    for name, value in main["value"].reindex(names).items():
        text = f"{value:.0f}"
        if name in notes:
            text += f", rank {notes[str(name)]}"
        values.append("" if np.isnan(value) else text)
    _write_beside(axes, range(len(names)), values)
    axes.grid(axis="x")
    axes.set_xlabel(unit)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if len(series) > 1:
        axes.figure.legend(loc="outside lower left", ncols=3)


def matrix(rates: pd.DataFrame, axes: Axes) -> None:
    """Draw shares as shaded cells with their percent."""
    n = len(rates)
    percent = 100 * rates.to_numpy(dtype=float)
    edges = np.arange(n + 1) - 0.5
    axes.pcolormesh(edges, edges, percent, cmap="Greys", vmin=0, vmax=180)
    axes.invert_yaxis()
    axes.set_aspect("equal", anchor="W")
    size = min(7.5, 0.28 * axes.figure.bbox.width / (n + 6))
    if size >= 4:
        for i, j in np.argwhere(np.isfinite(percent)):
            text = f"{percent[i, j]:.0f}"
            # What is inside of the axes need not be measured for the layout.
            axes.text(j, i, text, ha="center", va="center", size=size, in_layout=False)
    names = _short(axes, rates.index)
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
    for key, color, on in (
        ("win", INK, "white"),
        ("tie", "#77726a", "white"),
        ("lose", "#e9e6e0", INK),
    ):
        share = 100 * rates[key].to_numpy(dtype=float)
        bars = axes.barh(range(len(rates)), share, 0.72, left, color=color, label=key)
        texts = [f"{value:.0f}" if value >= 8 else "" for value in share]
        axes.bar_label(bars, texts, label_type="center", color=on, size=7, in_layout=False)
        left += share
    _name_rows(axes, list(rates.index))
    axes.set(xlim=(0, 100), xlabel="comparisons (%)")
    axes.figure.legend(loc="outside lower left", ncols=3)


def steps(curves: Mapping[str, SuccessCurve], axes: Axes) -> None:
    """Draw success rates at each N, the best model's with its interval; ten are named."""
    rates = pd.DataFrame({name: pd.Series(100 * curve.rate) for name, curve in curves.items()})
    rates = rates[N_SEED - 1 :].dropna(axis=1, how="all")  # of too few human dialogues
    n = rates.index + 1
    ends = rates.ffill().iloc[-1].sort_values(ascending=False, kind="stable")
    best = min(ends.index, key=lambda name: ("", "bot", HUMAN).index(kind_of(name)))
    band = 100 * pd.DataFrame([vars(curves[best].at(each)) for each in n])
    axes.fill_between(n, band["low"], band["high"], step="post", color=PALE, alpha=0.5)
    for name in ends.index[::-1]:
        color = {HUMAN: PEOPLE, best: INK}.get(name, SHADES[2])
        known = rates[name].dropna()  # a step would go on to the first N that is not known
        axes.step(known.index + 1, known, where="post", color=color)
    axes.set(xlabel="utterances N", ylabel="success rate at N (%)", ylim=(-2, 102))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Names stand right of the plot near their heights, from the top.
    named = ends[:10]
    names = _short(axes, named.index)
    texts = _write_beside(axes, _heights(axes, named, names), names)
    for text, name in zip(texts, named.index, strict=True):
        text.set_color(_color(name))
    axes.grid(axis="y")


def _heights(axes: Axes, values: pd.Series, names: Texts) -> Any:
    """Return heights near values, which descend, so that names there are one under the other."""
    low, high = axes.get_ylim()
    room = 28 if "\n" in "".join(names) else 15
    step = room * (high - low) / (axes.figure.bbox.height - 100)
    return -apart((-values).tolist(), step, -low)


def over_cost(points: pd.DataFrame, across: str, up: str, axes: Axes) -> None:
    """Draw numbers with their intervals over a cost on a logarithmic scale, names at their tops."""
    points = points.sort_values("high", ascending=False, kind="stable")
    colors = [_color(name) for name in points.index]
    axes.vlines(points["x"], points["low"], points["high"], colors, linewidth=0.6)
    axes.scatter(points["x"], points["value"], 14, colors, zorder=3)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    is_narrow = points["x"].max() < 4 * points["x"].min()
    axes.xaxis.set_major_locator(MaxNLocator(3) if is_narrow else LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.minorticks_off()
    axes.set(xlabel=f"{across} (log scale)", ylabel=up)
    axes.grid()
    names = _short(axes, points.index)
    heights = _heights(axes, points["high"], names)
    for name, x, y in zip(names, points["x"], heights, strict=True):
        axes.annotate(name, (x, y), (0, 2), textcoords="offset points", ha="center")


def violins(lengths: Mapping[str, Any], unit: str, axes: Axes) -> None:
    """Draw the distribution of lengths on a logarithmic scale, the shortest mean first."""
    if unit == "words":
        warn_of_words()
    rows = range(len(lengths))
    middles = (np.arange(400) + 0.5) / 400  # a violin of a million values takes long
    logs = [np.log10(np.maximum(np.quantile(x, middles), 1)) for x in lengths.values()]
    spread = np.linspace(-0.01, 0.01, 400)  # equal lengths have no violin
    drawn = axes.violinplot(
        [x + spread for x in logs], rows, orientation="horizontal", widths=0.85, showextrema=False
    )
    bodies: Any = drawn["bodies"]
    for body, name in zip(bodies, lengths, strict=True):
        body.set(facecolor=_color(name), alpha=0.35)
    low, median, high = np.percentile(logs, (25, 50, 75), axis=1)
    axes.hlines(rows, low, high, INK, linewidth=1.8)
    axes.scatter(median, rows, 12, "white", edgecolors=INK, zorder=3)
    _name_rows(axes, list(lengths))
    _write_beside(axes, rows, [f"{values.mean():.0f}" for values in lengths.values()])
    ticks = np.log10(np.outer(10 ** np.arange(6), (1, 2, 5))).ravel()
    axes.xaxis.set_major_locator(FixedLocator(ticks.tolist(), nbins=8))
    axes.xaxis.set_major_formatter(lambda x, _: f"{10**x:,.0f}")
    axes.set_xlabel(f"{unit} per utterance (log scale)")


def counts(lengths: Sequence[int], axes: Axes) -> None:
    """Draw how many dialogues have how many utterances."""
    n, counts = np.unique(lengths, return_counts=True)
    colors = np.where(n < MIN_HUMAN, PALE, PEOPLE).tolist()
    bars = axes.bar(n, counts, color=colors)
    if len(n) <= 30:
        axes.bar_label(bars, size=5.5)
    axes.set(xlabel="utterances per dialogue", ylabel="dialogues")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
