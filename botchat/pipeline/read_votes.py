"""Files of votes from disk: as votes or rates for a board, as annotations for a comparison."""

from __future__ import annotations

from pathlib import Path

from botchat.errors import MissingError
from botchat.measures.annotations import Annotation
from botchat.measures.votes import Votes
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.rate_table import (
    MAX_RATES_BYTES,
    PER_PAIR,
    RATES,
    comparisons_from_rates,
    rates_kind,
)
from botchat.seeds.vote_formats import read_votes
from botchat.workspace import files
from botchat.workspace.rows import utf8

_MAX_BYTES = 2**31
"""Of a file of votes."""


def votes_of(path: Path, form: str | None, per_pair: int | None) -> tuple[Votes | Comparisons, str]:
    """What a file holds, and a line that says for what it was taken.

    ``form``: its format, by default what its columns say. A table of rates, ``per_pair``
    comparisons of each pair (444), is comparisons without judges.

    Raises:
        MissingError, DataError, ConfigError: no such file, format or votes; says where.
    """
    data, where = _content(path), str(path)
    kind = form if form in RATES else None
    if form is None and len(data) <= MAX_RATES_BYTES:
        kind = rates_kind(data)
    if kind is None:
        taken = read_votes(data, where, form)
        return taken.votes, taken.said
    per_pair = PER_PAIR if per_pair is None else per_pair
    found = comparisons_from_rates(utf8(data, where), per_pair, where, kind)
    title = "a square of win rates" if kind == "matrix" else "pairwise win rates"
    return found, (
        f"{where}: {title}: {len(found.models)} models, {len(found) // per_pair:,} pairs read; "
        f"taken as {per_pair:,} comparisons each (--per-pair)"
    )


def annotations_of(path: Path) -> tuple[list[Annotation], list[str]]:
    """The verdicts of a file of any format of votes, and what a reader must know of them."""
    taken = read_votes(_content(path), str(path))
    found, again = taken.votes.annotations(once=taken.ours)
    repeated = f"; {again:,} given again by the same judge, the last counts" if again else ""
    return found, [f"{taken.said}{repeated}."]


def _content(path: Path) -> bytes:
    if not path.exists():
        raise MissingError(
            f"no file {path}; name a csv, tsv, json, jsonl or parquet of votes, such as "
            "item,first,second,judge,verdict"
        )
    return files.content(path, _MAX_BYTES)
