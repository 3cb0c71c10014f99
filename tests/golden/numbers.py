"""Numbers of a run's tables, by file, row and column."""

import csv
import re
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


ALLOWED = {
    r".*elo(_n\d+)?(_low|_high)?": 2.0,
    r"elo_run_std": 1.2,
    r"(.*_)?mean_\d+(_low|_high)": 0.5,
    r".*(_low|_high)": 0.06,
}
"""Columns (the first that matches) -> how far a number may be from the one of 6162e234.

Elo's shuffles are drawn otherwise; its runs differ by 2 points. Intervals are beta with effective
counts at every size, where they were Poisson's near 0 and 1 and Student's with few seeds.
"""


def moved(recorded: Numbers, found: Numbers) -> list[str]:
    """Cells that are in both and differ by more than is allowed."""
    return [
        f"{path}: {name}: {column}: {before} -> {found[path][name][column]}"
        for path, rows in recorded.items()
        for name, cells in rows.items()
        for column, before in cells.items()
        if column in found.get(path, {}).get(name, {})
        and not _same(column, before, found[path][name][column])
    ]


def _same(column: str, before: str, after: str) -> bool:
    if before == after:
        return True
    most = next((most for form, most in ALLOWED.items() if re.fullmatch(form, column)), 0.0)
    if "" in (before, after):
        return column in ("kappa_low", "kappa_high")  # of a few verdicts that are all the same
    return abs(float(before) - float(after)) <= most
