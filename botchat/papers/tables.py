"""ChatEval's and MATEval's own tables: agreement with people, and where errors are seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

from botchat.boards.judge_agreement import PRICE
from botchat.boards.tables import Column, Table, explained, table, with_ends
from botchat.interfaces import Row
from botchat.papers import experiments
from botchat.papers.chateval import ASPECTS
from botchat.papers.mateval_files import Reading
from botchat.protocols.texts import ERROR_TYPES

_FIGURES = ("spearman", "kendall")


def beside_paper(rows: Iterable[Row], data: str) -> list[Row]:
    """Rows of `botchat.papers.mateval_files.mateval` with the paper's figures.

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


def scored(benchmark: str, rows: Sequence[Row], signature: str) -> Table:
    """Rank correlations with people on ``topicalchat`` or ``mateval``, in the paper's layout.

    ``rows``: ``judge`` or ``strategy``, ``aspect`` or ``error_type``, and what
    `botchat.measures.correlation.compare_scores` says of both.
    """
    name, title, first, key, headings = _SCORED[benchmark]
    wide: dict[str, dict[str, Row]] = {}
    for row in rows:
        wide.setdefault(row[first.key], {})[row[key]] = row

    shown = [*((part, said, [part]) for part, said in headings.items())]
    shown.append(("mean", "Average", list(headings)))
    signs = {"spearman": "\u03c1", "kendall": "\u03c4"}
    records = []
    for by_part in wide.values():
        *_, last = by_part.values()
        made = {**last, "unreadable": sum(row["unreadable"] for row in by_part.values())}
        for (part, _, of), figure in product(shown, signs):
            given = [by_part.get(one, {}).get(figure) for one in of]
            known = [value for value in given if value is not None]
            made[f"{part}_{figure}"] = fmean(known) if len(known) == len(of) else None
        records.append(made)
    return table(
        name,
        title,
        [
            first,
            *(
                Column(f"{part}_{figure}", f"{said} {sign}", "decimal")
                for (part, said, _), (figure, sign) in product(shown, signs.items())
            ),
            Column("unreadable", "Unreadable", "count"),
            *PRICE,
        ],
        records,
        [signature],
        "Spearman and Kendall of all texts' scores with people's mean scores. Unreadable scores "
        "are counted and left out.",
    ).filled()


def recorded(reading: Reading, rows: Sequence[Row], signature: str) -> Table:
    """`scored` of MATEval's recorded reports, the paper's figures and how far they are in the note.

    ``rows``: those of `botchat.papers.tables.beside_paper`.
    """
    made = scored("mateval", rows, signature)
    lines = sum(row["n"] + row["unreadable"] for row in rows)
    gaps, positive = (sum(row[key] for row in rows) for key in ("without_score", "positive"))
    counted = {
        "as published": f"A score counts with the sign that it has there, and 0 where there is no "
        f"score line: {gaps:,} of {lines:,} have none, {positive:,} are positive, which rewards an "
        "error.",
        "as written": f"Points are off whatever their sign: {positive:,} of {lines:,} signs "
        f"repaired. Of {gaps:,} without a score line {gaps - made.frame['unreadable'].sum():,} are "
        "read from the deductions or a No; the others are left out.",
    }[reading]
    by_strategy = {
        strategy: difference(row for row in rows if row["strategy"] == strategy)
        for strategy in dict.fromkeys(row["strategy"] for row in rows)
    }
    known = [f"{name} {far:.3f}" for name, far in by_strategy.items() if far is not None]
    far = f" Largest difference from the paper's figures: {', '.join(known)}." if known else ""
    return replace(
        made,
        name=f"mateval-{reading.replace(' ', '-')}",
        title=f"Stories, recorded discussions {reading}: correlation with people "
        "(layout of MATEval, Table 1)",
        note=f"Spearman and Kendall of all texts' scores with people's. {counted}{far}",
    )


_SCORED: Mapping[str, tuple[str, str, Column, str, Mapping[str, str]]] = {
    "topicalchat": (
        "chateval-table-2",
        "Topical-Chat: correlation with people (layout of ChatEval, Table 2)",
        Column("judge", "Metrics", "name"),
        "aspect",
        {aspect: aspect.capitalize() for aspect in ASPECTS},
    ),
    "mateval": (
        "mateval-table-1",
        "Stories: correlation with people (layout of MATEval, Table 1)",
        Column("strategy", "Strategy", "name"),
        "error_type",
        {code: code for code in ERROR_TYPES},
    ),
}
"""Benchmark -> name and title of its table, column of a row's name, key of the parts in the rows
that make two columns each, and their headings."""
