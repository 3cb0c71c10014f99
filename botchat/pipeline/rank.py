"""`botchat rank`: files of votes in, a board out: tables, figures and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from botchat.errors import ConfigError, MissingError
from botchat.importers.vote_formats import read_votes
from botchat.metrics.vote_arrays import Votes
from botchat.pipeline.agree import votes_in
from botchat.pipeline.leaderboard import published, write_charts
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.rate_table import (
    MAX_RATES_BYTES,
    PER_PAIR,
    comparisons_from_rates,
    is_rates,
)
from botchat.requests import Ranking
from botchat.requests.meter import Meter
from botchat.requests.results import Told
from botchat.workspace.folder import Workspace
from botchat.workspace.jsonl import write_all
from botchat.workspace.rows import utf8


def rank(request: Ranking, workspace: Workspace, meter: Meter | None = None) -> Told:
    """Rank the models of some files of votes, or of a table of rates such as a published heatmap.

    Writes csv, md, json, svg, png and a page.

    Raises:
        MissingError, DataError, ConfigError: no such file, a file of no known format or with a
            faulty row, flags that do not go together; nothing is written.
    """
    paths, per_pair, elo = request.paths, request.per_pair, request.elo
    meter = meter or Meter()
    meter.begin("read votes", len(paths))
    read = []
    for path in paths:
        read.append(_votes_of(path, per_pair))
        meter.advance()
    from botchat.boards import files as board_files
    from botchat.boards import votes
    from botchat.report import figures

    meter.begin("count and rate", 0)
    name = paths[0].stem
    name += f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    cast = [one for one, _ in read if isinstance(one, Votes)]
    if len(cast) == len(read):
        board = votes.build(_chosen(Votes.together(cast), request.judges), name, elo)
    elif len(read) > 1 or request.judges:
        raise ConfigError("a table of rates has no votes: rank it alone, and without --judge")
    else:
        rates = read[0][0]
        assert isinstance(rates, Comparisons)
        board = votes.of_rates(rates, name, PER_PAIR if per_pair is None else per_pair, elo)
    from botchat import report as pages

    facts = pages.Facts.of(board)
    view = pages.View(board, figures.draw(board), facts)
    whole = board_files.as_json(board)
    texts = board_files.files(board, formats=request.table_formats, whole=whole)
    texts |= votes.matrices(board.arenas[0])
    # All is made before anything is written, so that what fails leaves nothing behind.
    # A folder by the file's name, which no seed set has.
    stem = paths[0].stem.strip(" .") or "votes"
    stem += "-votes" if stem in workspace.seed_sets() else ""
    folder = request.out or workspace.out(stem)
    write_all(folder, {**texts, **pages.files([view])})
    write_charts(folder, view.charts)
    said = [line for _, line in read]
    return published(board, whole, [*said, *board.notes], folder / "index.html", files=said)


def _votes_of(path: Path, per_pair: int | None) -> tuple[Votes | Comparisons, str]:
    """What a file holds, and a line that says for what it was taken.

    A table of rates, ``per_pair`` comparisons of each pair, is comparisons without judges.
    """
    data, where = votes_in(path), str(path)
    if len(data) > MAX_RATES_BYTES or not is_rates(data):
        taken = read_votes(data, where)
        return taken.votes, taken.said
    per_pair = PER_PAIR if per_pair is None else per_pair
    found = comparisons_from_rates(utf8(data, where), per_pair, where)
    n_pairs = len(found) // per_pair
    return found, (
        f"{where}: pairwise win rates: {len(found.models)} models, {n_pairs:,} pairs read; "
        f"taken as {per_pair:,} comparisons each (--per-pair)"
    )


def _chosen(votes: Votes, judges: Sequence[str]) -> Votes:
    """The votes of some judges, or of all."""
    if absent := [name for name in judges if name not in votes.judges]:
        there = ", ".join(votes.judges[:20]) + (" …" if len(votes.judges) > 20 else "")
        raise MissingError(f"no votes of the judge {absent[0]!r}; there are: {there}")
    return votes.by(judges) if judges else votes
