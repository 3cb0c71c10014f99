"""ChatEval's Table 1."""

from __future__ import annotations

from collections.abc import Sequence

from botchat.boards.judge_agreement import PRICE
from botchat.boards.tables import Column, Table, table, with_ends
from botchat.interfaces import Row


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
