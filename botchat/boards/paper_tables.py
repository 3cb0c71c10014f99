"""Judges in the layout of the papers' own tables, so that numbers can be laid side by side."""

from __future__ import annotations

from collections.abc import Sequence

from botchat.boards.judge_agreement import PRICE, filled, priced, with_interval
from botchat.boards.tables import Column, Table, table
from botchat.measures.mateval_records import ERROR_TYPES
from botchat.measures.statistics import Row
from botchat.protocols.answers import ASPECTS


def chateval_1(rows: Sequence[Row], signature: str) -> Table:
    """ChatEval Table 1: accuracy and kappa on FairEval, after position calibration.

    Args:
        rows: of `botchat.measures.agreement.Agreement` with ``evaluator`` and ``method``;
            ``accuracy_one_order`` and ``kappa_one_order`` beside them.
        signature: how they were made.
    """
    columns = [
        Column("evaluator", "Evaluator", "name"),
        Column("method", "Methods", "name"),
        *with_interval("accuracy", "Acc. (%)", "rate"),
        *with_interval("kappa", "Kap.", "decimal"),
        *with_interval("fleiss_kappa", "Fleiss", "decimal", detail=True),
        Column("n", "Pairs", "count"),
        Column("unreadable", "Unreadable", "count"),
        Column("tie_rate", "Ties", "rate"),
        Column("accuracy_one_order", "Acc., one order", "rate"),
        Column("kappa_one_order", "Kap., one order", "decimal"),
        Column("consistency", "Same in both orders", "rate"),
        Column("position_preference", "First preferred", "rate"),
        Column("length_preference", "Prefers longer", "decimal"),
        *PRICE,
    ]
    lines = priced(rows)
    return table(
        "chateval-table-1",
        "FairEval: agreement with people (layout of ChatEval, Table 1)",
        filled(columns, lines),
        lines,
        [signature],
        "Which answer is better by the sum of its scores in both orders. One order: by the scores "
        "of each order alone; same in both orders is 100 by construction where a judge is "
        "calibrated itself. Low, high: 95 % bootstrap interval over questions.",
    )


def chateval_2(rows: Sequence[Row], signature: str) -> Table:
    """ChatEval Table 2: rank correlations with people on Topical-Chat, turn by turn.

    Args:
        rows: of `botchat.measures.scores.ScoreAgreement`, with ``aspect``.
        signature: how they were made.
    """
    return _correlations(
        "chateval-table-2",
        "Topical-Chat: correlation with people (layout of ChatEval, Table 2)",
        Column("judge", "Metrics", "name"),
        ("aspect", {aspect: aspect.capitalize() for aspect in ASPECTS}),
        rows,
        signature,
    )


def mateval_1(rows: Sequence[Row], by: str, signature: str) -> Table:
    """MATEval Tables 1 and 2: rank correlations with people for each kind of error.

    Args:
        rows: as `botchat.measures.mateval_records.mateval` makes them.
        by: key of what is compared: ``strategy``.
        signature: how they were made.
    """
    return _correlations(
        "mateval-table-1",
        "Stories: correlation with people (layout of MATEval, Table 1)",
        Column(by, "Strategy", "name"),
        ("error_type", {code: code for code in ERROR_TYPES}),
        rows,
        signature,
    )


def _correlations(
    name: str,
    title: str,
    first: Column,
    parts: tuple[str, dict[str, str]],
    rows: Sequence[Row],
    signature: str,
) -> Table:
    """One row for each value of the first column; two columns for each part, then their means."""
    key, headings = parts
    wide: dict[str, Row] = {}
    for row in priced(rows):
        line = wide.setdefault(row[first.key], {first.key: row[first.key], "unreadable": 0})
        line["unreadable"] += row["unreadable"]
        for figure in ("spearman", "kendall"):
            line[f"{row[key]}_{figure}"] = row[figure]
        line |= {column.key: row.get(column.key) for column in PRICE}
    for line in wide.values():
        for figure in ("spearman", "kendall"):
            given = [line.get(f"{part}_{figure}") for part in headings]
            known = [value for value in given if value is not None]
            line[f"mean_{figure}"] = sum(known) / len(known) if len(known) == len(given) else None
    signs = (("spearman", "\u03c1"), ("kendall", "\u03c4"))
    columns = [
        first,
        *(
            Column(f"{part}_{figure}", f"{heading} {sign}", "decimal")
            for part, heading in {**headings, "mean": "Average"}.items()
            for figure, sign in signs
        ),
        Column("unreadable", "Unreadable", "count"),
        *PRICE,
    ]
    lines = list(wide.values())
    return table(
        name,
        title,
        filled(columns, lines),
        priced(lines),
        [signature],
        "Spearman and Kendall of all texts' scores with people's mean scores. Unreadable scores "
        "are counted and left out.",
    )
