"""One figure of a set: chosen by its name, sized as asked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, MissingDataError, did_you_mean
from botchat.pipeline.ledger import conversation_costs
from botchat.pipeline.run.read_set import board_of, read
from botchat.ratings.elo import EloSettings
from botchat.requests import Plotting
from botchat.requests.results import Told
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from botchat.report.figures import Chart
    from botchat.report.figures.sheet import Look

FORMATS = ("svg", "png", "pdf")

_LEAST_IN, _MOST_IN = 1.0, 100.0
"""Inches of a figure's side."""


def plot(
    workspace: Workspace,
    seed_set: str,
    name: str,
    judge: str | None = None,
    *,
    size: tuple[float, float | None] | None = None,
    elo: EloSettings | None = None,
) -> Figure:
    """One figure by its name, as `botchat.report.figures` draws it; shows itself in a notebook.

    Neither the caller's ``rcParams`` nor the backend change. Figures of judges beside each other
    take the protocol: ``cost-against-agreement-gteval``.

    ``size``: width and height in inches; default: a paper's column, or its page
    where that is too narrow, as high as it needs (``None``).

    Raises:
        ConfigError: several judges and none named, or a size that cannot be.
        MissingDataError: no such figure of these judgments; says which there are.
    """
    from botchat.report.figures import pictures

    chart, look = _chosen(workspace, seed_set, name, judge, size, elo)
    return pictures.figure(chart.sheet(look))


def _chosen(
    workspace: Workspace,
    seed_set: str,
    name: str,
    judge: str | None,
    size: tuple[float, float | None] | None,
    elo: EloSettings | None = None,
) -> tuple[Chart, Look]:
    """The figure that `plot` draws, not drawn yet; raises as it does."""
    from botchat.pipeline.agree import beside_each_other
    from botchat.report import figures
    from botchat.report.figures import agreement
    from botchat.report.figures.sheet import Look

    for side in size or ():
        if side is not None and not (math.isfinite(side) and _LEAST_IN <= side <= _MOST_IN):
            raise ConfigError(
                f"--size: {side:g} inches; a side has {_LEAST_IN:g} to {_MOST_IN:g} inches"
            )
    if judge is None and name.startswith(agreement.NAMES):
        compared = beside_each_other(workspace, read(workspace, seed_set))
        drawn = [
            replace(chart, name=f"{chart.name}-{protocol}")
            for protocol, findings in compared.items()
            for chart in agreement.draw(findings)
        ]
    else:
        found, board = board_of(workspace, seed_set, judge, elo)
        drawn = figures.draw(board, conversation_costs(workspace, found.dialogues))
    charts = {chart.name: chart for chart in drawn}
    if name not in charts:
        there = ", ".join(charts) or "none, since fewer than two judges have judged the same"
        hint = did_you_mean(name, charts)
        raise MissingDataError(f"no figure {name!r} of {seed_set}{hint}; there are: {there}")
    width, height = size or (charts[name].width, None)
    return charts[name], Look(width, height)


def read_size(text: str) -> tuple[float, float | None]:
    """``7x4.5`` as width and height in inches, ``3.3`` as a width; `ConfigError` for others."""
    width, cross, height = text.lower().partition("x")
    try:
        return float(width), float(height) if cross else None
    except ValueError:
        raise ConfigError(
            f"--size {text}: give width and height in inches, such as 7x4.5, or the width alone"
        ) from None


def figure(request: Plotting, workspace: Workspace) -> Told:
    """Write one figure in the format that ``out`` ends with, one of `FORMATS`; its path.

    What is raised as in `plot`; the same request gives the same bytes.
    """
    out = request.out
    form = out.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ConfigError(f"--out {out}: a figure is written as {', '.join(FORMATS)}; end it so")
    size = read_size(request.size) if request.size else None
    named = request.seed_set, request.name, request.judge
    chart, look = _chosen(workspace, *named, size)
    return written(chart, look, out)


def written(chart: Chart, look: Look, out: Path) -> Told:
    """Write a figure in the format that ``out`` ends with; its path."""
    from botchat.report.figures import pictures

    drawn = chart.sheet(look)
    jsonl.write_atomic(out, pictures.written(drawn, out.suffix.lower().removeprefix(".")))
    return Told({"path": out})
