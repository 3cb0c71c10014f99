"""The page of a workspace's set: boards of one or several judges, figures, transcripts, chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from botchat import store
from botchat.errors import ConfigError, MissingError
from botchat.leaderboards import Board
from botchat.pipeline.reading import Read, read
from botchat.pipeline.running import Meter
from botchat.pipeline.workspace import Workspace
from botchat.ratings.elo import EloSettings

if TYPE_CHECKING:
    from botchat.plots import Chart

MOST_TOLD_MB = 200
"""Judgments that `botchat leaderboard` packs beside its page; `botchat report` packs any number.
14 models in all protocols are 50 MB."""


def only_judge(workspace: Workspace, seed_set: str, judge: str | None) -> str | None:
    """The judge to take where a command takes one.

    Raises:
        ConfigError: none is named and several have judged.
    """
    known = sorted(workspace.judgment_files(seed_set)) if judge is None else [judge]
    if len(known) > 1:
        raise ConfigError(
            f"several judges have judged {seed_set}: name one with --judge: {', '.join(known)}"
        )
    return known[0] if known else None


def too_much_for_a_page(workspace: Workspace, seed_set: str, judge: str | None) -> int:
    """Megabytes of a judge's judgments, where they are more than a quick page tells; else 0."""
    files = workspace.judgment_files(seed_set).get(judge or "", {})
    megabytes = sum(path.stat().st_size for path in files.values()) // 1_000_000
    return megabytes if megabytes > MOST_TOLD_MB else 0


def report(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    out: Path | None = None,
    elo: EloSettings | None = None,
    meter: Meter | None = None,
) -> Path:
    """Write the page alone, of some judges (default: all); its path.

    Args:
        workspace: where the judgments are.
        seed_set: name of the set.
        judges: whose verdicts; the first is shown first.
        out: folder to write to; default ``leaderboards/<set>``.
        elo: how the Arena is rated; default: the paper's way.
        meter: told of the progress.
    """
    from botchat import plots

    meter = meter or Meter()
    found = read(workspace, seed_set, judges)
    meter.begin("count and rate", len(found.judged))
    shown = []
    for judge in found.judged:
        board = found.board(judge, elo)
        shown.append((board, plots.draw(board)))
        meter.done += 1
    return write_page(found, shown, workspace.out(seed_set) if out is None else out, meter)


def write_page(
    found: Read, shown: Sequence[tuple[Board, Sequence[Chart]]], folder: Path, meter: Meter
) -> Path:
    """Write the page of some boards with their figures, and its chunks; the page's path.

    What is in columns has no reasons to tell: such a page has samples only.
    """
    from botchat import report as pages
    from botchat.report import archive, comparison, transcripts

    views = [
        pages.View(
            board,
            charts,
            pages.by_contestant(
                board,
                transcripts.pick(found.dialogues, found.judged[board.judge].get("unieval", ())),
            ),
        )
        for board, charts in shown
    ]
    judged = {board.judge: found.judged[board.judge] for board, _ in shown}
    chunks = None
    if not found.columns:
        meter.begin("pack transcripts", 0)
        chunks = archive.build(found.seeds, found.dialogues, judged)
        for name, text in chunks.files.items():
            store.write_atomic(folder / name, text.encode())
        for path in _left_over(folder, chunks.files):
            path.unlink(missing_ok=True)
    boards = [board for board, _ in shown]
    compared = comparison.compare(boards, judged) if len(boards) > 1 else []
    page = folder / "index.html"
    store.write_atomic(page, pages.render(views, chunks, compared).encode())
    return page


def plot(
    workspace: Workspace,
    seed_set: str,
    name: str,
    out: Path,
    judge: str | None = None,
    elo: EloSettings | None = None,
) -> Path:
    """Write one figure, as svg or png by the ending of ``out``; its path.

    Raises:
        ConfigError: an ending that is neither, or several judges and none named.
        MissingError: no such figure of these judgments; says which there are.
    """
    from botchat import plots

    kind = out.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError(f"--out {out}: a figure is written as .svg or .png")
    chosen = only_judge(workspace, seed_set, judge)
    found = read(workspace, seed_set, [chosen] if chosen else [])
    charts = {chart.name: chart for chart in plots.draw(found.board(next(iter(found.judged)), elo))}
    if name not in charts:
        raise MissingError(f"no figure {name!r} of {seed_set}; there are: {', '.join(charts)}")
    chart = charts[name]
    store.write_atomic(out, chart.svg.encode() if kind == ".svg" else chart.png)
    return out


def _left_over(folder: Path, files: Mapping[str, str]) -> Iterator[Path]:
    """Chunks of an earlier, larger page."""
    known = {folder / name for name in files}
    for parent in {path.parent for path in known}:
        yield from (path for path in sorted(parent.glob("*.js")) if path not in known)
