"""Rebuild ratings from the published pairwise rates, with ``python rebuild.py``.

Writes rebuilt_elo.csv and rebuilt_bradley_terry.csv beside this file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from botchat.importers.tables import rows as table_rows
from botchat.ratings.bradley_terry import fit, ranks_from_order
from botchat.ratings.comparisons import Comparisons, comparisons_from_rates
from botchat.ratings.elo import EloSettings, bootstrap_elo

HERE = Path(__file__).parent
COMPARISONS_A_PAIR = 444
"""222 ChatSEEDs in both orders (paper §4.2)."""


def comparisons(n: int) -> Comparisons:
    """The Arena comparisons at N = n, rebuilt from Figure 5."""
    name = f"arena_n{n}.csv"
    text = (HERE / name).read_text(encoding="utf-8")
    return comparisons_from_rates(table_rows(text.encode(), name), COMPARISONS_A_PAIR, name)


def elo_table(ns: Iterable[int] = (8, 16)) -> str:
    """Bootstrap Elo by N and rating, beside the paper's Table 2, as CSV."""
    with (HERE / "elo.csv").open(encoding="utf-8", newline="") as file:
        published = {row["model"]: row for row in csv.DictReader(file)}
    rows = []
    for n in ns:
        result = bootstrap_elo(comparisons(n), EloSettings())
        rows += [
            [n, model, f"{elo:.1f}", f"{std:.1f}", published[model][f"elo_n{n}"]]
            for elo, std, model in sorted(
                zip(result.rating, result.run_std, result.models, strict=True), reverse=True
            )
        ]
    return _csv(["n", "model", "elo", "elo_run_std", "published_elo"], rows)


def bradley_terry_table() -> str:
    """Bradley-Terry ratings by N and rating, as CSV."""
    rows = []
    for n in (8, 16):
        result = fit(comparisons(n))
        ranks = ranks_from_order(result.significantly_better)
        columns = (result.rating, result.low, result.high, *ranks, result.models)
        rows += [
            [n, first, last, model, *(f"{value:.1f}" for value in values)]
            for *values, first, last, model in sorted(zip(*columns, strict=True), reverse=True)
        ]
    return _csv(["n", "rank_low", "rank_high", "model", "rating", "low", "high"], rows)


def _csv(header: list[str], rows: Iterable[list[object]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return file.getvalue()


if __name__ == "__main__":
    for name, text in (
        ("rebuilt_elo.csv", elo_table()),
        ("rebuilt_bradley_terry.csv", bradley_terry_table()),
    ):
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")
        print(HERE / name)
