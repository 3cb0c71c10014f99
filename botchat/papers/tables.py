"""ChatEval's Table 1, and where MATEval's judges see errors."""

from __future__ import annotations

from collections.abc import Sequence

from botchat.boards.judge_agreement import PRICE
from botchat.boards.tables import Column, Table, explained, table, with_ends
from botchat.interfaces import Row


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


def chateval_1(rows: Sequence[Row], signature: str) -> Table:
    """ChatEval Table 1: accuracy and kappa on FairEval, after position calibration.

    ``rows``: of an `Agreement`, with ``evaluator``, ``method``, ``accuracy_one_order`` and
    ``kappa_one_order``.
    """
    return table(
        "chateval-table-1",
        "FairEval: agreement with people (layout of ChatEval, Table 1)",
        [
            Column("evaluator", "Evaluator", "name"),
            Column("method", "Methods", "name"),
            *with_ends(Column("accuracy", "Acc. (%)", "rate")),
            *with_ends(Column("kappa", "Kap.", "decimal")),
            *with_ends(Column("fleiss_kappa", "Fleiss", "decimal", detail=True)),
            Column("n", "Pairs", "count"),
            Column("unreadable", "Unreadable", "count"),
            Column("ties", "Ties", "rate"),
            Column("accuracy_one_order", "Acc., one order", "rate"),
            Column("kappa_one_order", "Kap., one order", "decimal"),
            Column("consistency", "Same in both orders", "rate"),
            Column("first_preferred", "First shown wins", "rate"),
            Column("length_preference", "Prefers longer", "decimal"),
            *PRICE,
        ],
        rows,
        [signature],
        "Which answer is better by the sum of its scores in both orders. One order: by the scores "
        "of each order alone; same in both orders is 100 by construction where a judge is "
        "calibrated itself. Low, high: 95 % interval by question.",
    ).filled()
