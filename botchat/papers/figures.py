"""Figures of the papers' experiments: groups by category, settings of panels against agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from botchat.boards.tables import Column, Table
from botchat.papers.experiments import Experiment, column, key_of
from botchat.report.figures import ink, rows
from botchat.report.figures.axes import Graph
from botchat.report.figures.chart import Chart, chart
from botchat.report.figures.curves import line_look
from botchat.report.figures.sheet import WIDE, Dot, Look, Sheet

_APART = 0.05
"""Between the lines of a place, in steps of its axis."""


def draw(experiment: Experiment, shown: Table) -> Chart | None:
    """The figure of an experiment whose table has lines of ours; ``None``: it has none."""
    frame = shown.frame
    ours = frame[frame["values"] == "ours"]
    keys = [key_of(head) for head in experiment.heads]
    columns = [column(key) for key in experiment.columns]
    axes = _swept(ours, keys)
    if ours.empty or not experiment.draws or (experiment.draws == "sweep" and not axes):
        return None
    runs, alike = int(ours["runs"].max()), [key for key in keys if ours[key].nunique() == 1]
    said = [*map(str, ours[alike].iloc[0]), f"{runs} run{'s' if runs > 1 else ''} a judge"]
    keys = [key for key in keys if key not in alike]
    drawn: Any = partial(groups, ours, keys, columns)
    if experiment.draws == "sweep":
        drawn = partial(sweep, frame, axes, columns)
    return chart(
        experiment.name, experiment.title,
        "Means over runs with 95 % intervals by item, the mean of the runs' ends. Open marks are "
        "the paper's numbers, where it prints any.",
        " · ".join(said), experiment.source or experiment.benchmark, shown.signatures, drawn,
        width=WIDE,
    )  # fmt: skip


def groups(ours: pd.DataFrame, keys: Sequence[str], columns: Sequence[Column], look: Look) -> Sheet:
    """Each line of the table a mark at every column (ChatEval Figure 3)."""
    heads = ours[list(keys)].itertuples(index=False) if keys else [("ours",)] * len(ours)
    names = [" · ".join(map(str, row)) for row in heads]
    values = {
        one.heading.removesuffix(" (%)"): _percent(ours, one).set_axis(names) for one in columns
    }
    return rows.series(values, "Accuracy (%)", "{:.0f}", look, ordered=False)


def sweep(
    frame: pd.DataFrame, axes: Mapping[str, Sequence[str]], columns: Sequence[Column], look: Look
) -> Sheet:
    """Figures over a setting, the others kept, a line each (ChatEval Figure 4).

    ``frame``: rows of ``values`` ours or published; ``axes``: a setting -> the others' columns.
    """
    ours, paper = (frame[frame["values"] == kind] for kind in ("ours", "published"))
    lines = {axis: _lines(ours, axis, others) for axis, others in axes.items()}
    names = {axis: _names([*by], axes[axis], [*axes]) for axis, by in lines.items()}
    named = dict.fromkeys(name for by in names.values() for name in by.values())
    looks = {name: line_look(i) for i, name in enumerate(named)}
    sheet = Sheet(look.px)
    key = [("dotted" if dashes else "line", shade, name) for name, (shade, dashes) in looks.items()]
    printed = {axis: _lines(paper, axis, others, least=1) for axis, others in axes.items()}
    if any(kept in printed[axis] for axis, by in lines.items() for kept in by):
        key.append(("ring", ink.INK, "published"))
    top = sheet.key(2, [*key, ("line", ink.BAR, "95 % interval")]) + 8
    across = max(1, min(len(axes), int(look.px // 250)))
    plots = [*product(columns, lines.items())]
    wide, lanes = look.wide(0, least=120) / across, -(-len(plots) // across)
    tall = look.tall(240, 130, lanes)
    for place, (one, (axis, by)) in enumerate(plots):
        values = [_percent(some, one) for each in lines.values() for some in each.values()]
        values += [_percent(some, one) for each in printed.values() for some in each.values()]
        numbers = pd.concat(values).to_numpy(dtype=float)
        seen = numbers[~np.isnan(numbers)]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 100.0)
        xs = sorted({float(x) for some in by.values() for x in some[axis]})
        edge = 0.08 * ((xs[-1] - xs[0]) or 1)
        panel = Graph(place % across * wide + 40, top + place // across * tall + 22, wide - 56,
                      tall - 62, (xs[0] - edge, xs[-1] + edge), (low, high))  # fmt: skip
        ticks = [float(f"{low + (high - low) * share:.3g}") for share in (0, 0.5, 1)]
        panel.scales(sheet, xs, dict.fromkeys(ticks), axis.capitalize(), one.heading)
        for i, (kept, some) in enumerate(by.items()):
            name = names[axis][kept]
            shade, dashes = looks[name]
            ends = _percent(some, one)
            x = some[axis].to_numpy(dtype=float) + _APART * (i - (len(by) - 1) / 2)
            spots = [panel.at(*spot) for spot in zip(x, ends["value"], strict=True)]
            for at, start, end in zip(x, ends["low"], ends["high"], strict=True):
                sheet.line([panel.at(at, start), panel.at(at, end)], ink.BAR, 1.2)
            sheet.line(spots, shade, 1.5, dashes, whole=name)
            for spot in spots:
                sheet.dot(*spot, r=2.6, fill=shade)
            if (there := printed[axis].get(kept)) is not None:
                known = zip(there[axis].astype(float), _percent(there, one)["value"], strict=True)
                for spot in (panel.at(*pair) for pair in known):
                    sheet.marks.append(Dot(*spot, 4, 0.0, ink.INK, whole=f"published: {name}"))
    sheet.height = top + lanes * tall
    return sheet


def _percent(rows: pd.DataFrame, one: Column) -> pd.DataFrame:
    """A column as ``value``, ``low``, ``high``; rates in percent."""
    unit = 100 if one.kind == "rate" else 1
    keys = [one.key, f"{one.key}_low", f"{one.key}_high"]
    values = rows.reindex(columns=keys).to_numpy(dtype=float, na_value=np.nan)
    return pd.DataFrame(unit * values, index=rows.index, columns=["value", "low", "high"])


def _swept(ours: pd.DataFrame, keys: Sequence[str]) -> dict[str, list[str]]:
    """Settings that are numbers and have several values -> the other columns of the head."""
    found = {}
    for key in keys:
        values = set(ours[key].astype(str))
        if len(values) > 1 and all(value.replace(".", "", 1).isdigit() for value in values):
            found[key] = [other for other in keys if other != key]
    return {axis: others for axis, others in found.items() if _lines(ours, axis, others)}


Kept = tuple[str, ...]
"""Values of the columns that lines have in common."""


def _lines(
    rows: pd.DataFrame, axis: str, others: Sequence[str], least: int = 2
) -> dict[Kept, pd.DataFrame]:
    """Rows that differ in the setting alone, at ``least`` so many, by what they have in common."""
    if rows.empty:
        return {}
    by = rows.assign(**{axis: pd.to_numeric(rows[axis])}).groupby(list(others), sort=False)
    return {
        tuple(map(str, kept)): some.sort_values(axis)
        for kept, some in by
        if some[axis].nunique() >= least
    }


def _names(lines: Sequence[Kept], keys: Sequence[str], axes: Sequence[str]) -> dict[Kept, str]:
    """Lines in words: what is the same in all is not said, a number with what it is of."""
    said = {}
    for kept in lines:
        parts = []
        for i, (key, value) in enumerate(zip(keys, kept, strict=True)):
            if len({one[i] for one in lines}) > 1:
                parts.append(f"{value} {key}" if key in axes else value)
        said[kept] = " · ".join(parts) or "ours"
    return said
