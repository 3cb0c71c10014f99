"""`botchat rank`: rank models from files of votes, or from a table of win rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from botchat.errors import ConfigError, MissingDataError
from botchat.importers.tables import rows
from botchat.importers.vote_files import read_votes
from botchat.metrics.vote_arrays import Votes
from botchat.pipeline.agree import votes_in
from botchat.pipeline.leaderboard import published, write_charts
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.rate_table import PER_PAIR, comparisons_from_rates, is_rates
from botchat.requests import Ranking
from botchat.requests.meter import Meter
from botchat.requests.results import Told
from botchat.workspace.folder import Workspace
from botchat.workspace.jsonl import write_all


def rank(request: Ranking, workspace: Workspace, meter: Meter | None = None) -> Told:
    """Rank the models of some files; write csv, md, json, svg, png and a page.

    Raises MissingDataError, DataError, ConfigError: no such file, one of no known format or with a
    faulty row, flags that do not go together; nothing is written.
    """
    from botchat import report as pages
    from botchat.boards import files as board_files
    from botchat.boards import votes
    from botchat.report import figures

    paths = request.paths
    per_pair = PER_PAIR if request.per_pair is None else request.per_pair
    meter = meter or Meter()
    meter.begin("read votes", len(paths))
    parts, notes = [], []
    for path in paths:
        data, note = _read(path, per_pair)
        parts.append(data)
        notes.append(note)
        meter.advance()
    meter.begin("count and rate", 0)
    name = paths[0].stem + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    all_votes = [part for part in parts if isinstance(part, Votes)]
    if len(all_votes) == len(parts):
        chosen = _of_judges(Votes.together(all_votes), request.judges)
        board = votes.build(chosen, name, request.elo)
    elif len(parts) > 1 or request.judges:
        raise ConfigError("a table of rates has no votes: rank it alone, and without --judge")
    else:
        assert isinstance(parts[0], Comparisons)
        board = votes.of_rates(parts[0], name, per_pair, request.elo)
    view = pages.View(board, figures.draw(board), pages.Facts.of(board))
    whole = board_files.as_json(board)
    texts = board_files.files(board, formats=request.table_formats, whole=whole)
    texts |= votes.matrices(board.arenas[0])
    # All is rendered before anything is written. No seed set has the folder's name.
    stem = paths[0].stem.strip(" .") or "votes"
    stem += "-votes" if stem in workspace.seed_sets() else ""
    folder = request.out or workspace.out(stem)
    write_all(folder, {**texts, **pages.files([view])})
    write_charts(folder, view.charts)
    return published(board, whole, [*notes, *board.notes], folder / "index.html", files=notes)


def _read(path: Path, per_pair: int) -> tuple[Votes | Comparisons, str]:
    """Read votes, or a table of rates as ``per_pair`` comparisons of each pair, and a note."""
    data, where = votes_in(path), str(path)
    if not is_rates(data):
        file = read_votes(data, where)
        return file.votes, file.note
    comparisons = comparisons_from_rates(rows(data, where), per_pair, where)
    return comparisons, (
        f"{where}: pairwise win rates: {len(comparisons.models)} models, "
        f"{len(comparisons) // per_pair:,} pairs read; taken as {per_pair:,} comparisons each "
        "(--per-pair)"
    )


def _of_judges(votes: Votes, judges: Sequence[str]) -> Votes:
    """Return the votes of some judges, or all if none is named."""
    if unknown := [name for name in judges if name not in votes.judges]:
        known = ", ".join(votes.judges[:20])
        raise MissingDataError(f"no votes of the judge {unknown[0]!r}; available: {known}")
    return votes.by(judges) if judges else votes
