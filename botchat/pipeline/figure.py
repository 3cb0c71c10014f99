"""Figures of a set: chosen by name, sized as asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import MissingDataError, UsageError, did_you_mean, listed
from botchat.pipeline.ledger import cost_per_dialogue
from botchat.pipeline.load import judged_files, load, only_judge
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from botchat.report.figures import Chart


def figure(
    workspace: Workspace,
    seed_set: str,
    name: str,
    judge: str | None = None,
    *,
    size: tuple[float, float | None] | None = None,
) -> Figure:
    """Return one figure by its name, as `botchat.report.figures` draws it, for a notebook.

    Neither the caller's ``rcParams`` nor the backend change. Names of figures that compare judges
    end with the protocol, such as ``cost-agreement-gteval``. ``size`` is width and height in inches
    (default: a paper's page); a height of None is as high as needed.

    Raises:
        ConfigError: several judges and none named, or a size that cannot be.
        MissingDataError: no such figure of these judgments; names those available.
    """
    from botchat.report.figures import WIDTH

    width, height = size or (WIDTH, None)
    return _charts(workspace, seed_set, name, judge)[0].figure(width, height)


def write_figures(
    workspace: Workspace,
    seed_set: str,
    name: str,
    judge: str | None,
    *,
    form: str,
    size: str,
    out: Path | None,
) -> Result:
    """Write one figure, or all of a judge's board; return the paths.

    ``out``: a folder, by default that of the board, or for one figure a file. Raises as `figure`;
    the same arguments give the same bytes.
    """
    from botchat.report.figures import FORMATS, read_size

    width, height = read_size(size)
    if form not in FORMATS:
        raise UsageError(f"--format {form}: a figure is written as {', '.join(FORMATS)}")
    charts = _charts(workspace, seed_set, name, judge)
    folder = out or workspace.out(seed_set)
    paths = [folder / f"{chart.name}.{form}" for chart in charts]
    ending = folder.suffix.removeprefix(".")
    if name and ending in FORMATS:
        form = ending
        paths = [folder]
    for chart, path in zip(charts, paths, strict=True):
        jsonl.write_atomic(path, chart.render(form, width, height))
    lines = [str(path) for path in paths]
    return Result({"rows": [{"figure": line} for line in lines]}, lines)


def _charts(workspace: Workspace, seed_set: str, name: str, judge: str | None) -> list[Chart]:
    """Return the figure that `figure` draws, or all of a board; raises as it does."""
    from botchat.pipeline.agree import set_reports
    from botchat.report.figures import board_charts, judge_charts

    if judge is None and name.startswith(("cost-agreement", "judge-agreement")):
        charts = []
        for protocol, report in set_reports(load(workspace, seed_set)).items():
            for chart in judge_charts(report):
                charts.append(replace(chart, name=f"{chart.name}-{protocol}"))
    else:
        files = judged_files(workspace, seed_set)
        judge = only_judge(workspace, seed_set, files, judge)
        data = load(workspace, seed_set, [judge], files=files)
        charts = list(board_charts(data.board(judge), cost_per_dialogue(workspace, data.dialogues)))
    matches = [chart for chart in charts if name in ("", chart.name)]
    if not matches:
        names = [chart.name for chart in charts]
        known = listed(names) or "none, since fewer than two judges have judged the same"
        raise MissingDataError(
            f"no figure {name!r} of {seed_set}{did_you_mean(name, names)}; some are: {known}"
        )
    return matches
