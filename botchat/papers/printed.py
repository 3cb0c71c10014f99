"""The numbers that the papers print, as one table of each benchmark.

**A new table is one value**: a table of ``published/PAPER.toml``, with no code.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources

import msgspec

from botchat.boards.tables import Column, Kind, Table, table
from botchat.interfaces import Row
from botchat.records import SIGNED


class PrintedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line of a paper's table."""

    row: tuple[str, ...]
    values: tuple[float, ...]
    """In the order of the columns, as printed: rates in percent; ``nan``: not printed."""
    std: tuple[float, ...] = ()
    """Standard deviations over runs, likewise."""


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table or figure of a paper."""

    title: str
    source: str
    """Where the numbers are printed."""
    benchmark: str
    """A name of ``botchat.papers.bench.BENCHMARKS``."""
    heads: tuple[str, ...]
    """Headings of what stands at the beginning of a line."""
    columns: tuple[str, ...]
    """What is printed, see `column`."""
    rows: tuple[PrintedLine, ...]
    note: str = ""
    name: str = ""
    """``chateval-table-1``."""

    @property
    def records(self) -> Iterator[Row]:
        """Its lines with numbers in our units; a line of another length is a `ValueError`."""
        for line in self.rows:
            row: Row = {"table": self.name, "line": " · ".join(line.row)}
            deviations = line.std or (None,) * len(self.columns)
            for key, value, std in zip(self.columns, line.values, deviations, strict=True):
                unit = 0.01 if column(key).kind == "rate" else 1.0
                for name, number in ((key, value), (f"{key}_std", std)):
                    if number is not None:
                        row[name] = None if math.isnan(number) else unit * number
            yield row


@cache
def papers() -> tuple[Printed, ...]:
    """Every table of every paper."""
    found = []
    for file in sorted(resources.files(__package__).joinpath("published").iterdir(), key=str):
        if file.name.endswith(".toml"):
            content = tomllib.loads(file.read_text("utf-8"))
            paper, name = content.pop("paper"), file.name.removesuffix(".toml")
            for key, value in content.items():
                source = f"{paper}, {value['source']}"
                value |= {"name": f"{name}-{key}", "source": source}
                found.append(msgspec.convert(value, Printed))
    return tuple(found)


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
    """The column of a key: one of `_FIGURES`, or ``PART_FIGURE`` as in ``REP_spearman``."""
    part, _, figure = key.rpartition("_")
    if figure not in _FIGURES:
        raise KeyError(key)
    heading, kind = _FIGURES[figure]
    shown = part if part.isupper() else part.replace("_", " ").capitalize()
    return Column(key, f"{shown} {heading}".strip(), kind)


def tables_of(benchmark: str) -> list[Table]:
    """All that papers print of a benchmark, in one table; none of a file of one's own."""
    if not (shown := [one for one in papers() if one.benchmark == benchmark]):
        return []
    rows = [row for one in shown for row in one.records]
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = [Column("table", "Table", "name"), Column("line", "Line", "name")]
    for key in list(keys)[2:]:
        one = column(key.removesuffix("_std"))
        deviation = Column(key, f"\u00b1 {one.heading.removesuffix(' (%)')}", one.kind)
        columns.append(deviation if key.endswith("_std") else one)
    note = " ".join(f"{one.name}: {one.source}. {one.note}".strip() for one in shown)
    signed = f"{SIGNED}|published|{benchmark}"
    return [table("published", "As the papers print it", columns, rows, [signed], note).filled()]
