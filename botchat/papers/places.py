"""MATEval's recorded scores beside the paper's, and where reports and people see errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from botchat.boards.tables import Column, Table, explained, table, with_ends
from botchat.interfaces import Row
from botchat.papers import experiments

_FIGURES = ("spearman", "kendall")


def beside_paper(rows: Iterable[Row], data: str) -> list[Row]:
    """Rows of `botchat.papers.mateval_records.mateval` with the paper's figures.

    They are ``published_spearman`` and ``published_kendall``, where it has any of the dataset.
    """
    found = []
    for row in rows:
        paper = experiments.printed("mateval", (data, "GPT-4", row["strategy"]))
        keys = {key: f"{row['error_type']}_{key}" for key in _FIGURES}
        known = {f"published_{key}": paper[at] for key, at in keys.items() if at in paper}
        found.append({**row, **known})
    return found


def difference(rows: Iterable[Row]) -> float | None:
    """The largest distance of such rows from the paper; ``None`` where it has none."""
    both = [(row[key], row.get(f"published_{key}")) for row in rows for key in _FIGURES]
    known = [abs(ours - paper) for ours, paper in both if None not in (ours, paper)]
    return max(known, default=None)


def _figure(key: str, heading: str, meaning: str = "") -> tuple[Column, ...]:
    return with_ends(Column(key, heading, "rate", meaning=meaning), detail=True)


_COLUMNS = [
    Column("strategy", "Strategy", "name"),
    Column("error_type", "Error", "name"),
    Column("by_people", "By people", "count", meaning="stories that have it, in `all` errors"),
    Column("by_report", "By report", "count"),
    *_figure("type_precision", "Precision"),
    *_figure("type_recall", "Recall"),
    *_figure("type_f1", "F1", "of saying that a story has the error"),
    *_figure("place_precision", "Place: precision"),
    *_figure("place_recall", "Place: recall"),
    *_figure("place_f1", "Place: F1", "of the sentences that are named with it"),
    *_figure(
        "located",
        "Located",
        "of errors that both found and gave a place, those with a sentence in common",
    ),
    Column("unplaced", "No place", "count", meaning="errors of reports that quote nothing"),
    Column("missing", "Missing", "count", meaning="answers that cannot be read"),
    Column("n", "Stories", "count", priority=1),
]


def error_places(rows: Sequence[Row], signature: str) -> Table:
    """``rows``: of `botchat.papers.locations.compare`, with ``strategy`` and ``n`` stories."""
    return table(
        "mateval-places",
        "Stories: error types and places against people's",
        _COLUMNS,
        rows,
        [signature],
        f"In percent. {explained(_COLUMNS)} A quote names the sentences that it shares most of its "
        "words with. all: every type for itself; anywhere: an error of whatever type. "
        "Low, high: 95 % interval by story.",
    )
