"""Numbers of a run's tables, by file, row and column."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

Numbers = dict[str, dict[str, dict[str, str]]]

NAMES = (
    "protocol", "model", "model_a", "model_b", "judge", "judge_a", "judge_b", "contestant",
    "feature", "first", "second", "item", "text", "kind", "label", "human", "source", "part",
    "error", "system", "rater", "other", "annotator", "group", "story", "pair", "id",
    "strategy", "table", "line",
)  # fmt: skip
"""Columns that say which row it is."""


def numbers(folder: Path) -> Numbers:
    """Every cell of every csv file below ``leaderboards/`` or where a run put its tables."""
    tables: Numbers = {}
    for path in sorted(folder.rglob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        seen: Counter[str] = Counter()
        table = tables.setdefault(path.relative_to(folder).as_posix(), {})
        for row in rows:
            name = " | ".join(row[column] for column in NAMES if column in row)
            seen[name] += 1
            table[f"{name} #{seen[name]}"] = {k: v for k, v in row.items() if k not in NAMES}
    return tables


def moved(recorded: Numbers, found: Numbers) -> list[str]:
    """Cells that are in both and differ."""
    return [
        f"{path}: {name}: {column}: {before} -> {found[path][name][column]}"
        for path, rows in recorded.items()
        for name, cells in rows.items()
        for column, before in cells.items()
        if column in found.get(path, {}).get(name, {}) and found[path][name][column] != before
    ]
