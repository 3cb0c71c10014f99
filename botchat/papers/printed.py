"""The numbers that the papers print, as one table of each benchmark.

**A new table is one value**: a table of ``published/PAPER.toml``, with no code.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from botchat.boards.tables import Column, Kind, Table, table
from botchat.interfaces import Row
from botchat.records import SIGNED


class PrintedTable(NamedTuple):
    """One table or figure of a paper."""

    name: str
    """``chateval-table-1``."""
    source: str
    """Where the numbers are printed."""
    benchmark: str
    """A name of ``botchat.papers.bench.BENCHMARKS``."""
    columns: Sequence[str]
    """What is printed, see `column`."""
    rows: Sequence[Mapping[str, Sequence[Any]]]
    """``row``: names; ``values``: numbers of the columns as printed, rates in percent, ``nan``
    where nothing is printed; perhaps ``std``: their standard deviations over runs."""
    note: str = ""

    @property
    def records(self) -> Iterator[Row]:
        """Its lines with numbers in our units; a line of another length is a `ValueError`."""
        for line in self.rows:
            row: Row = {"table": self.name, "line": " · ".join(line["row"])}
            for key, end in (("values", ""), ("std", "_std")):
                numbers = line.get(key, ())
                for name, number in zip(self.columns, numbers, strict=bool(numbers)):
                    unit = 0.01 if column(name).kind == "rate" else 1.0
                    row[name + end] = None if math.isnan(number) else unit * number
            yield row


@cache
def papers() -> tuple[PrintedTable, ...]:
    """Return every table of every paper."""
    tables = []
    for file in sorted(resources.files(__package__).joinpath("published").iterdir(), key=str):
        content = tomllib.loads(file.read_text("utf-8"))
        paper = content.pop("paper")
        for key, fields in content.items():
            fields["source"] = f"{paper}, {fields['source']}"
            tables.append(PrintedTable(f"{file.name.removesuffix('.toml')}-{key}", **fields))
    return tuple(tables)


_FIGURES: dict[str, tuple[str, Kind]] = {
    "accuracy": ("Acc. (%)", "rate"),
    "kappa": ("Kap.", "decimal"),
    "spearman": ("\u03c1", "decimal"),
    "kendall": ("\u03c4", "decimal"),
    "usd": ("Cost (USD)", "decimal"),
    "minutes": ("Time (min)", "number"),
}
"""A figure -> its heading and how it is written."""


def column(key: str) -> Column:
    """Return the column of a key: one of `_FIGURES`, or ``PART_FIGURE`` as in ``REP_spearman``."""
    part, _, figure = key.rpartition("_")
    if figure not in _FIGURES:
        raise KeyError(key)
    heading, kind = _FIGURES[figure]
    name = part if part.isupper() else part.replace("_", " ").capitalize()
    return Column(key, f"{name} {heading}".strip(), kind)


def tables_of(benchmark: str) -> list[Table]:
    """Return all that papers print of a benchmark in one table; none of one's own file."""
    if not (printed := [each for each in papers() if each.benchmark == benchmark]):
        return []
    rows = [row for each in printed for row in each.records]
    columns = [Column("table", "Table", "name"), Column("line", "Line", "name")]
    for key in [*dict.fromkeys(key for row in rows for key in row)][2:]:
        figure = column(key.removesuffix("_std"))
        deviation = Column(key, f"\u00b1 {figure.heading.removesuffix(' (%)')}", figure.kind)
        columns.append(deviation if key.endswith("_std") else figure)
    note = " ".join(f"{each.name}: {each.source}. {each.note}".strip() for each in printed)
    signed = f"{SIGNED}|published|{benchmark}"
    return [table("published", "As the papers print it", columns, rows, [signed], note).filled()]
