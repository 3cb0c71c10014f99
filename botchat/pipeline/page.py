"""The page of a workspace's set: boards of one or several judges, figures, transcripts, chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from botchat import parallel
from botchat.boards import judge_agreement
from botchat.boards.board import Board
from botchat.boards.protocols import Place
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import settings_digest
from botchat.pipeline import agree
from botchat.pipeline.agree import panel_of
from botchat.pipeline.read_set import Read, only_judge, read
from botchat.pipeline.run import Meter
from botchat.ratings.elo import EloSettings
from botchat.records import Judgment
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.report import Beside, Prompt
    from botchat.report.figures import Chart


def report(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    out: Path | None = None,
    elo: EloSettings | None = None,
    meter: Meter | None = None,
) -> Path:
    """Write the page alone, of some judges (default: all), the first shown first; its path.

    ``out``: default ``leaderboards/<set>``.
    """
    from botchat.report import figures as plots

    meter = meter or Meter()
    found = read(workspace, seed_set, judges, for_boards=True)
    meter.begin("count and rate", len(found.judged))
    shown: list[tuple[Board, Sequence[Chart]]] = []
    for judge in found.judged:
        board = found.board(judge, elo)
        shown.append((board, plots.draw(board)))
        meter.advance()
    meter.begin("draw figures", sum(len(charts) for _, charts in shown))
    with parallel.workers() as working:
        for i, (board, charts) in enumerate(shown):
            tasks = [partial(plots.drawn, chart, png=False) for chart in charts]
            drawn = []
            for chart in working.begin(tasks, found.drawing_s(len(tasks))):
                drawn.append(chart)
                meter.advance()
            shown[i] = board, drawn
    return write_page(workspace, found, shown, out or workspace.out(seed_set), meter)


def write_page(
    workspace: Workspace,
    found: Read,
    shown: Sequence[tuple[Board, Sequence[Chart]]],
    folder: Path,
    meter: Meter,
) -> Path:
    """Write the page of some boards with their figures, and its chunks; the page's path.

    What is in columns has no reasons to tell: such a page has samples only.
    """
    from botchat import report as pages
    from botchat.report import archive, transcripts

    compared = _compared(workspace, found, meter) if len(shown) > 1 else []
    panels = [part for board, _ in shown for part in _panel_prompts(workspace, board.judge)]

    views = []
    for board, charts in shown:
        samples = transcripts.pick(found.dialogues, _accusations(board, found))
        views.append(pages.View(board, charts, pages.by_contestant(board, samples)))
    judged = {board.judge: found.judged[board.judge] for board, _ in shown}
    chunks = None
    if not any(found.columns.values()):
        meter.begin("pack transcripts", 0)
        chunks = archive.build(found.seeds, found.dialogues, judged, found.catalogue)
        for name, text in chunks.files.items():
            store.write_atomic(folder / name, text.encode())
        known = {folder / name for name in chunks.files}
        for parent in {path.parent for path in known}:
            for path in {*parent.glob("*.js")} - known:  # of an earlier, larger page
                path.unlink(missing_ok=True)
    page = folder / "index.html"
    store.write_atomic(page, pages.render(views, chunks, compared, panels).encode())
    return page


def _accusations(board: Board, found: Read) -> Sequence[Judgment]:
    """The judgments that samples are picked by: of the first protocol that asks for a place."""
    names = [part.protocol.name for part in board.of(Place) if part.protocol.about_ai]
    return found.judged[board.judge].get(names[0], ()) if names else ()


def _compared(workspace: Workspace, found: Read, meter: Meter) -> list[Beside]:
    """What the judges say beside each other, a protocol each."""
    from botchat import report as pages
    from botchat.report.figures import agreement as figures

    meter.begin("compare judges", 0)
    compared = agree.beside_each_other(workspace, found).values()
    return [
        pages.Beside(
            findings.subject,
            findings.notes,
            [part for part in judge_agreement.tables(findings) if part.name != "rankings"],
            figures.draw(findings),
        )
        # Where the truth is known, agreement says most.
        for findings in sorted(compared, key=lambda findings: not findings.truth)
    ]


def _panel_prompts(workspace: Workspace, judge: str) -> list[Prompt]:
    """Roles and prompts of a judge that is a panel, as its settings are now."""
    from botchat import report as pages
    from botchat.judges.panel import wording

    settings = panel_of(workspace, judge)
    told = wording(settings) if settings else {}
    texts = [f"{title}\n\n{text}" for title, text in told.items()]
    return [pages.Prompt(f"panel {judge}", settings_digest(told), texts)] if told else []


def plot(
    workspace: Workspace,
    seed_set: str,
    name: str,
    out: Path,
    judge: str | None = None,
    elo: EloSettings | None = None,
) -> Path:
    """Write one figure, as svg or png by the ending of ``out``; its path.

    Those of judges beside each other take the protocol: ``cost-against-agreement-gteval``.

    Raises:
        ConfigError: an ending that is neither, or several judges and none named.
        MissingError: no such figure of these judgments; says which there are.
    """
    from botchat.report import figures as plots
    from botchat.report.figures import agreement as figures

    kind = out.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError(f"--out {out}: a figure is written as .svg or .png")
    if judge is None and name.startswith(figures.NAMES):
        compared = agree.beside_each_other(workspace, read(workspace, seed_set))
        drawn = [
            replace(chart, name=f"{chart.name}-{protocol}")
            for protocol, findings in compared.items()
            for chart in figures.draw(findings)
        ]
    else:
        chosen = only_judge(workspace, seed_set, judge)
        found = read(workspace, seed_set, [chosen] if chosen else [], for_boards=True)
        drawn = plots.draw(found.board(next(iter(found.judged)), elo))
    charts = {chart.name: chart for chart in drawn}
    if name not in charts:
        there = ", ".join(charts) or "none, since fewer than two judges have judged the same"
        raise MissingError(f"no figure {name!r} of {seed_set}; there are: {there}")
    chart = charts[name]
    store.write_atomic(out, chart.svg.encode() if kind == ".svg" else chart.png)
    return out
