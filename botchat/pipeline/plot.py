"""One figure of a set: chosen by its name, sized as asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
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
    take the protocol: ``cost-agreement-gteval``.

    ``size``: width and height in inches (``None``: as high as it needs); default: a paper's page.

    Raises:
        ConfigError: several judges and none named, or a size that cannot be.
        MissingDataError: no such figure of these judgments; says which there are.
    """
    from botchat.report.figures import WIDTH

    width, height = size or (WIDTH, None)
    return choose(workspace, seed_set, name, judge, elo).figure(width, height)


def choose(
    workspace: Workspace,
    seed_set: str,
    name: str,
    judge: str | None,
    elo: EloSettings | None = None,
) -> Chart:
    """The figure that `plot` draws; raises as it does."""
    from botchat.pipeline.agree import set_reports
    from botchat.report.figures import board_charts, judge_charts

    if judge is None and name.startswith(("cost-agreement", "judge-agreement")):
        charts = [
            replace(chart, name=f"{chart.name}-{protocol}")
            for protocol, report in set_reports(workspace, read(workspace, seed_set)).items()
            for chart in judge_charts(report)
        ]
    else:
        found, board = board_of(workspace, seed_set, judge, elo)
        charts = board_charts(board, conversation_costs(workspace, found.dialogues))
    chart = next((chart for chart in charts if chart.name == name), None)
    if chart is None:
        names = [chart.name for chart in charts]
        known = ", ".join(names) or "none, since fewer than two judges have judged the same"
        hint = did_you_mean(name, names)
        raise MissingDataError(f"no figure {name!r} of {seed_set}{hint}; there are: {known}")
    return chart


def read_size(text: str) -> tuple[float, float | None]:
    """``7x4.5`` as width and height in inches, ``3.3`` as a width; `ConfigError` for others."""
    width, cross, height = text.lower().partition("x")
    with suppress(ValueError):
        size = float(width), float(height) if cross else None
        if all(side is None or 1 <= side <= 100 for side in size):
            return size
    raise ConfigError(
        f"--size {text}: give width and height in inches (1 to 100), such as 7x4.5, or the width"
    )


def figure(request: Plotting, workspace: Workspace) -> Told:
    """Write one figure in the format that ``out`` ends with; its path.

    What is raised as in `plot`; the same request gives the same bytes.
    """
    from botchat.report.figures import FORMATS, WIDTH

    out, form = request.out, request.out.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ConfigError(f"--out {out}: a figure is written as {', '.join(FORMATS)}; end it so")
    width, height = read_size(request.size) if request.size else (WIDTH, None)
    chart = choose(workspace, request.seed_set, request.name, request.judge)
    jsonl.write_atomic(out, chart.render(form, width, height))
    return Told({"path": out})
