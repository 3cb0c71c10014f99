"""One figure of a set: chosen by its name, sized as asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, MissingError, did_you_mean
from botchat.pipeline.ledger import conversation_costs
from botchat.pipeline.run.read_set import board_of, read
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN
from botchat.requests import Plotting
from botchat.requests.results import Told
from botchat.workspace import files as store
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
    highlight: Sequence[str] = (),
    elo: EloSettings | None = None,
    bare: bool = False,
) -> Figure:
    """One figure by its name, as `botchat.report.figures` draws it; shows itself in a notebook.

    Neither the caller's ``rcParams`` nor the backend change. Figures of judges beside each other
    take the protocol: ``cost-against-agreement-gteval``.

    ``size``: width and height in inches; default: a paper's column, or its page
    where that is too narrow, as high as it needs (``None``).
    ``highlight``: contestants, or judges, to stand out. ``bare``: without title and signatures,
    which stand in the metadata of its files.

    Raises:
        ConfigError: several judges and none named, or a size that cannot be.
        MissingError: no such figure of these judgments, no such contestant; says which there are.
    """
    from botchat.report.figures import pictures

    chart, look = _chosen(workspace, seed_set, name, judge, size, highlight, elo)
    return pictures.figure(chart.sheet(look._replace(bare=bare)))


def _chosen(
    workspace: Workspace,
    seed_set: str,
    name: str,
    judge: str | None,
    size: tuple[float, float | None] | None,
    highlight: Sequence[str],
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
        known = {
            str(row[key])
            for findings in compared.values()
            for rows, key in ((findings.rows, "judge"), (findings.rankings, "contestant"))
            for row in rows
        }
    else:
        found, board = board_of(workspace, seed_set, judge, elo)
        drawn = figures.draw(board, conversation_costs(workspace, found.dialogues))
        known = {*board.main.frame["model"], HUMAN}
    charts = {chart.name: chart for chart in drawn}
    if name not in charts:
        there = ", ".join(charts) or "none, since fewer than two judges have judged the same"
        hint = did_you_mean(name, charts)
        raise MissingError(f"no figure {name!r} of {seed_set}{hint}; there are: {there}")
    if unknown := [one for one in highlight if one not in known]:
        raise MissingError(
            f"--highlight {unknown[0]}: {seed_set} has no such contestant"
            f"{did_you_mean(unknown[0], known)}; there are: {', '.join(sorted(known))}"
        )
    width, height = size or (charts[name].width, None)
    return charts[name], Look(width, height, tuple(highlight))


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

    A bare one has its title, signatures and caption in a .txt beside it, and in the file's
    metadata. What is raised as in `plot`; the same request gives the same bytes.
    """
    out = request.out
    form = out.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ConfigError(f"--out {out}: a figure is written as {', '.join(FORMATS)}; end it so")
    size = read_size(request.size) if request.size else None
    named = request.seed_set, request.name, request.judge
    chart, look = _chosen(workspace, *named, size, request.highlight)
    return written(chart, look._replace(bare=request.bare), out)


def written(chart: Chart, look: Look, out: Path) -> Told:
    """Write a figure in the format that ``out`` ends with; its path, and that of its caption."""
    from botchat.report.figures import pictures

    drawn = chart.sheet(look)
    store.write_atomic(out, pictures.written(drawn, out.suffix.lower().removeprefix(".")))
    if not look.bare:
        return Told({"path": out})
    caption = out.with_suffix(".txt")
    lines = (chart.title, chart.caption, chart.heading.subtitle, *chart.heading.signatures)
    store.write_atomic(caption, "".join(f"{line}\n" for line in lines).encode())
    return Told({"path": out, "caption": caption})
