"""One judge's scores beside people's, part by part (aspects of a response, kinds of error)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from botchat.interfaces import Row
from botchat.measures.correlation import Rating, compare_scores

PEOPLE = "human labels"
"""What upstream's labels are filed under; no judge has such a name."""

RANKS = ("spearman", "kendall")


def of_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """The columns of all parts and of their average."""
    return tuple(f"{part}_{figure}" for part in (*parts, "average") for figure in RANKS)


def ends_of(found: Row, figures: Iterable[str], begin: str) -> Row:
    """Some figures with the ends of their intervals, their keys with ``begin`` before them."""
    keys = [f"{figure}{end}" for figure in figures for end in ("", "_low", "_high")]
    return {f"{begin}{key}": found[key] for key in keys}


def correlated(ratings: Mapping[str, Sequence[Rating]]) -> Row:
    """Part -> ratings of one judge and of people: ``PART_spearman`` …, ``average_spearman`` …."""
    row: Row = {"n": 0, "unreadable": 0}
    for part, given in ratings.items():
        if any(one.judge != PEOPLE for one in given):
            (found,) = compare_scores(given, PEOPLE).rows
            row |= ends_of(found, RANKS, f"{part}_")
            row |= {key: row[key] + found[key] for key in ("n", "unreadable")}
    for figure in RANKS:
        known = [row[key] for part in ratings if row.get(key := f"{part}_{figure}") is not None]
        row[f"average_{figure}"] = fmean(known) if len(known) == len(ratings) else None
    return row
