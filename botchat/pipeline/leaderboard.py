"""Stage 3 on a workspace: judgments -> tables, figures and a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botchat import parallel
from botchat.errors import DataError, MissingError
from botchat.models.bots import BASELINES
from botchat.pipeline import read_set
from botchat.pipeline.generate import Generating
from botchat.pipeline.judge import Judging
from botchat.pipeline.run import Meter
from botchat.pipeline.session import RULES, JudgeName
from botchat.protocols.catalogue import RANKING
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings
from botchat.ratings.rate_table import comparisons_from_rates
from botchat.workspace import files as store
from botchat.workspace.folder import SAMPLE, Workspace

if TYPE_CHECKING:
    from botchat.report.figures import Chart

_UNTOLD = (
    "The page has samples, not all {:,} MB of judgments; pack them with: botchat report --seeds {}"
)

PER_PAIR = 444
"""Comparisons a pair in the paper: 222 ChatSEEDs in both orders (BotChat §4.2)."""


@dataclass(frozen=True)
class Published:
    """A leaderboard as written."""

    rows: Sequence[Mapping[str, Any]]
    """The main table as people read it."""
    lines: Sequence[str]
    """What else a person should see: notes, signature, where things are."""
    whole: Mapping[str, Any]
    """``rows``, ``signature`` and every table, JSON-ready."""
    out: Path | None
    """The folder written."""


def leaderboard(
    workspace: Workspace,
    seed_set: str,
    judge: str | None = None,
    out: Path | None = None,
    elo: EloSettings | None = None,
    meter: Meter | None = None,
) -> Published:
    """Rank a set's contestants by one judge's verdicts; write csv, md, json, svg, png and a page.

    ``judge`` may be left out where only one has judged. ``out``: default ``leaderboards/<set>``.
    """
    meter = meter or Meter()
    chosen = read_set.only_judge(workspace, seed_set, judge)
    untold = read_set.too_much_for_a_page(workspace, seed_set, chosen)
    folder = workspace.out(seed_set) if out is None else out
    judges = [chosen] if chosen else []
    found = read_set.read(workspace, seed_set, judges, in_columns=bool(untold), for_boards=True)
    from botchat.boards import board as leaderboards
    from botchat.pipeline import page as reporting
    from botchat.report import figures

    meter.begin("count and rate", 0)
    board = found.board(next(iter(found.judged)), elo)
    charts = []
    with parallel.workers() as working:
        tasks = [partial(figures.drawn, chart) for chart in figures.draw(board)]
        drawing = working.begin(tasks, found.drawing_s(len(tasks)))
        for file, text in leaderboards.files(board).items():
            store.write_atomic(folder / file, text.encode())
        meter.begin("draw figures", len(tasks))
        for chart in drawing:
            _write_chart(folder, chart)
            charts.append(chart)
            meter.advance()
    page = reporting.write_page(workspace, found, [(board, charts)], folder, meter)
    return Published(
        rows=board.main.rows_for_people,
        lines=[
            *board.notes,
            *([_UNTOLD.format(untold, seed_set)] if untold else []),
            board.main.note,
            board.main.signature,
            f"page: {page}",
        ],
        whole={**leaderboards.as_json(board), "out": str(folder), "page": str(page)},
        out=folder,
    )


def rank_rates(
    path: Path,
    per_pair: int | None = None,
    elo: EloSettings | None = None,
    out: Path | None = None,
) -> Published:
    """Rank from a csv ``model_a,model_b,win_rate,win_or_tie_rate``, such as a published heatmap.

    ``per_pair``: comparisons that each pair's rates are of (444). ``out``: folder to write tables
    and figures to; ``None`` writes nothing.
    """
    from botchat.boards import arena
    from botchat.boards.tables import files, to_json

    per_pair = PER_PAIR if per_pair is None else per_pair
    comparisons = read_rates(path, per_pair)
    board = arena.from_comparisons(comparisons, path.stem, per_pair, elo)
    lines = [board.table.note, board.table.signature]
    whole = {
        "rows": board.table.records,
        "signature": board.table.signature,
        "out": None if out is None else str(out),
    }
    if out is not None:
        from botchat.report import figures

        texts = files([board.table, board.pairs], ["csv", "md"])
        for file, text in {**texts, f"{board.table.name}.json": to_json(whole)}.items():
            store.write_atomic(out / file, text.encode())
        for chart in figures.draw_arena(board, path.stem):
            _write_chart(out, chart)
        lines.append(f"written to: {out}")
    return Published(board.table.rows_for_people, lines, whole, out)


def read_rates(path: Path, per_pair: int | None = None) -> Comparisons:
    """Comparisons that a csv of pairwise rates stands for, ``per_pair`` (444) of each pair.

    Raises:
        MissingError, DataError, ConfigError: no such file, a table that is none, no such number.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise MissingError(f"no file {path}; name a csv of pairwise rates") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    return comparisons_from_rates(text, PER_PAIR if per_pair is None else per_pair, str(path))


def _write_chart(folder: Path, chart: Chart) -> None:
    store.write_atomic(folder / f"{chart.name}.svg", chart.svg.encode())
    store.write_atomic(folder / f"{chart.name}.png", chart.png)


def demo(workspace: Workspace, meter: Meter | None = None) -> Published:
    """The whole pipeline on the sample seeds, as a user would run it; no key, no network."""
    Generating(SAMPLE, tuple(f"bot:{name}" for name in BASELINES)).run(workspace, meter=meter)
    for protocol in RANKING:
        Judging(SAMPLE, protocol.name, JudgeName(RULES)).run(workspace, meter=meter)
    return leaderboard(workspace, SAMPLE, RULES, meter=meter)
