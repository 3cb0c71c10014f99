"""`botchat rank`: rank models from files of votes, or from a table of win rates."""

from collections.abc import Sequence
from pathlib import Path

from botchat.boards.board import Board
from botchat.boards.votes import rates_board, votes_board
from botchat.errors import ConfigError, MissingDataError, NotWritten, UsageError, listed
from botchat.importers.tables import FileTable, table_rows
from botchat.importers.vote_files import together, votes_in, votes_of
from botchat.pipeline.leaderboard import board_result
from botchat.pipeline.spending import Meter
from botchat.ratings.comparisons import COLUMNS as RATES
from botchat.ratings.comparisons import PER_PAIR, comparisons_from_rates
from botchat.records import Texts
from botchat.results import Result
from botchat.workspace.folder import Workspace
from botchat.workspace.jsonl import write_all


def rank(
    workspace: Workspace,
    paths: Sequence[Path],
    judges: Texts,
    *,
    per_pair: int | None,
    out: Path | None,
    formats: Texts,
    meter: Meter,
) -> Result:
    """Rank the models of some files; write csv, md, json, svg and a page.

    Raises MissingDataError for no such file, DataError for an unknown format or a faulty row, and
    ConfigError for flags that do not go together. Nothing is written then.
    """
    from botchat.boards import files as board_files
    from botchat.report import page as pages
    from botchat.report.figures import svg_files

    if not paths:
        raise UsageError("name a file of votes or of win rates: botchat rank FILE")
    meter.begin("count and rate", 0)
    board, notes = _board(paths, judges, per_pair)
    view = pages.View.of(board)
    content = board_files.as_json(board, view.headline, view.trust)
    content["judge"] = {"name": board.judge, "trust": view.trust.level}  # no judge of dialogues
    texts = board_files.board_files(board, view.headline, view.trust, formats, content)
    # All is rendered before anything is written. No seed set has the folder's name.
    stem = paths[0].stem.strip(" .") or "votes"
    if stem in workspace.seed_sets():
        stem += "-votes"
    folder = out or workspace.out(stem)
    lines = notes + list(board.notes)
    page: Path | None = folder / "index.html"
    try:
        write_all(folder, {**texts, **pages.files([view])})
        write_all(folder, svg_files(view.charts))
    except NotWritten as error:
        page = None
        lines.append(f"Files are not written: {error}.")
    return board_result(view, content, lines, page, files=notes)


def _board(paths: Sequence[Path], judges: Texts, per_pair: int | None) -> tuple[Board, list[str]]:
    """Return the board of some files, and notes on what was read."""
    name = paths[0].stem
    if len(paths) > 1:
        name += f" and {len(paths) - 1} more"
    tables = [votes_in(path) for path in paths]
    for table in tables:
        if set(RATES).issubset(table.frame):
            if len(paths) > 1 or judges:
                raise ConfigError(
                    f"{table.where} has rates, not votes: rank it alone, without --judge"
                )
            if per_pair is None:
                per_pair = PER_PAIR
            comparisons = comparisons_from_rates(table_rows(table), per_pair, table.where)
            note = (
                f"{table.where}: pairwise win rates: {len(comparisons.models)} models, "
                f"{len(comparisons) // per_pair:,} pairs read; taken as {per_pair:,} comparisons "
                "each (--per-pair)"
            )
            return rates_board(comparisons, name, per_pair), [note]
    return _rank_votes(tables, name, judges)


def _rank_votes(tables: Sequence[FileTable], name: str, judges: Texts) -> tuple[Board, list[str]]:
    votes, notes = together([votes_of(table) for table in tables])
    for judge in judges:
        if judge not in votes.judges:
            known = listed(votes.judges)
            raise MissingDataError(f"no votes of the judge {judge!r}; there are: {known}")
    votes = votes.by(judges or votes.judges)
    if not votes.readable.any():
        raise MissingDataError(f"{'; '.join(notes)}: no readable vote is left to rank")
    return votes_board(votes, name), notes
