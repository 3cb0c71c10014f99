"""The papers' experiments: which data, who is asked, which columns, and the numbers as printed.

**A new table is one value**: a table of ``published/PAPER.toml``, with no code.

Of `Experiment`:

- ``benchmark``: a name of ``botchat.papers.bench.BENCHMARKS``. What a judge's replies are worth
  is its ``measured``: key of a column -> number. `column` says what a key may look like.
- ``asked``: how the model of ``--judge`` is asked, a line of the table each: ``single`` (the bare
  question), a panel, a panel with settings (``chateval-default[roles=3]``) or with a grid of them,
  or a name in the benchmark's ``given``, which needs no model (a metric, a recording).
- ``row``: what stands at the beginning of the line. ``{model}``: the paper's name of the model, by
  ``[models]`` or ``--as``, else the model's own; ``{data}``: the benchmark's ``data``;
  ``{strategy}``, ``{roles}``, ``{rounds}``: of the panel.
- ``rows``: the paper's own lines. Ours stands below the one that begins with the same words.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import product
from statistics import fmean, stdev
from typing import Literal

import msgspec

from botchat.boards.tables import Column, Kind, Table, table, with_interval
from botchat.errors import ConfigError, did_you_mean
from botchat.interfaces import Row
from botchat.workspace import panels

SINGLE = "single"
"""Asks the model itself, the bare question."""


class Way(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One way to ask the model, or with a grid one for each point of it."""

    judge: str
    row: tuple[str, ...]
    grid: dict[str, tuple[str | int | bool, ...]] = {}
    asks: bool = True
    """False: shown where it has judged the benchmark, and not asked for the table, since the paper
    quotes another's number and it costs more than all others."""
    called: dict[str, str] = {}
    """The paper's name of a model -> what it is called in this line."""

    @property
    def points(self) -> list[str]:
        """The judges: with a grid a panel's name with the settings of each point."""
        values = [[str(one).lower() for one in given] for given in self.grid.values()]
        return [
            panels.point(self.judge, dict(zip(self.grid, point, strict=True)))
            for point in product(*values)
        ]


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line of the paper's table."""

    row: tuple[str, ...]
    values: tuple[float, ...]
    """In the order of the columns, as printed: rates in percent; ``nan``: not printed."""
    std: tuple[float, ...] = ()
    """Standard deviations over runs, likewise."""
    why: str = ""
    """Why there may be none of ours."""


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table or figure of a paper; see the module."""

    title: str
    benchmark: str
    heads: tuple[str, ...]
    """Headings of what stands at the beginning of a line."""
    columns: tuple[str, ...]
    asked: tuple[Way, ...]
    rows: tuple[Printed, ...] = ()
    source: str = ""
    """Where the numbers are printed."""
    runs: int = 1
    """How many runs the paper made."""
    draws: Literal["", "groups", "sweep"] = ""
    """Its figure: bars by column, or lines over the settings of a panel."""
    note: str = ""
    name: str = ""
    """Of the files: ``chateval-table-1``."""
    models: dict[str, str] = {}
    """The paper's name of a model -> a regular expression of the names it goes by."""

    def __post_init__(self) -> None:
        """Refuse lines of another length than their headings."""
        for row in (*(one.row for one in self.asked), *(one.row for one in self.rows)):
            if len(row) != len(self.heads):
                raise ValueError(f"{row}: not one for each of {self.heads}")
        for one in self.rows:
            if {len(one.values), len(one.std) or len(self.columns)} != {len(self.columns)}:
                raise ValueError(f"{one.row}: not a number for each of {self.columns}")

    def known_as(self, model: str) -> str:
        """The paper's name of a model, or the model's own."""
        last = re.split(r"[:#/]", model)[-1]
        found = (name for name, said in self.models.items() if re.fullmatch(said, last, re.I))
        return next(found, model)


@cache
def papers() -> Mapping[str, Mapping[str, Experiment]]:
    """Paper -> ``table 1``, ``figure 4`` … -> experiment."""
    found: dict[str, dict[str, Experiment]] = {}
    for file in sorted(resources.files(__package__).joinpath("published").iterdir(), key=str):
        if not file.name.endswith(".toml"):
            continue
        content = tomllib.loads(file.read_text("utf-8"))
        paper, models = content.pop("paper"), content.pop("models", {})
        name = file.name.removesuffix(".toml")
        for key, value in content.items():
            value |= {"name": f"{name}-{key}", "models": models}
            value["source"] = f"{paper}, {value['source']}"
            one = msgspec.convert(value, Experiment)
            found.setdefault(name, {})[key.replace("-", " ")] = one
    return found


def experiment(paper: str, shown: str) -> Experiment:
    """The one shown as ``table 1`` or ``figure 4``; raises `ConfigError` if there is none."""
    known = papers().get(paper, {})
    if shown not in known:
        kind, _, number = shown.partition(" ")
        data_of = [
            name
            for name, shows in papers().items()
            if paper in {e.benchmark for e in shows.values()}
        ]
        meant = f", it is data of {' and '.join(data_of)}" if data_of else ""
        none = f"none{meant or did_you_mean(paper, papers())}; papers: {', '.join(papers())}"
        there = ", ".join(known) or none
        raise ConfigError(f"bench {paper} --{kind} {number}: of {paper} there is {there}")
    return known[shown]


_FIGURES: Mapping[str, tuple[str, Kind]] = {
    "accuracy": ("Acc. (%)", "rate"),
    "kappa": ("Kap.", "decimal"),
    "spearman": ("\u03c1", "decimal"),
    "kendall": ("\u03c4", "decimal"),
    "pearson": ("r", "decimal"),
    "precision": ("Precision (%)", "rate"),
    "recall": ("Recall (%)", "rate"),
    "f1": ("F1 (%)", "rate"),
    "usd": ("Cost (USD)", "decimal"),
    "minutes": ("Time (min)", "number"),
}
"""A figure -> its heading and how it is written."""

_TOTALS = ("usd", "minutes")
"""Figures that grow with the items."""

_UNREAD = "no verdict could be read"


def column(key: str) -> Column:
    """The column of a key: one of `_FIGURES`, or ``PART_FIGURE`` as in ``REP_spearman``."""
    part, _, figure = key.rpartition("_")
    if figure not in _FIGURES:
        raise KeyError(key)
    heading, kind = _FIGURES[figure]
    shown = part if part.isupper() else part.replace("_", " ").capitalize()
    if figure == "accuracy" and part:
        return Column(key, f"{shown} (%)", kind)
    return Column(key, f"{shown} {heading}".strip(), kind)


def table_of(
    experiment: Experiment,
    measured: Mapping[tuple[str, ...], Sequence[Row]],
    signed: str,
    remarks: Mapping[tuple[str, ...], str],
    limit: int | None = None,
    data: str = "",
) -> Table:
    """The paper's table: its numbers, ours, and ours less the paper's, a line each.

    ``measured``: beginning of a line -> what was measured in each run, by the keys of the columns,
    with ``n`` (verdicts), ``unreadable`` and, where known, the ends of intervals. ``remarks``: why
    a line was not measured. ``limit``: of how many items alone ours are; totals are not compared
    then. ``data``: the data set that ours are of, by the paper's name.
    """
    shown = [column(key) for key in experiment.columns]
    heads = [Column(key_of(head), head, "name") for head in experiment.heads]
    numbers = []
    for one in shown:
        # It says of what, since a narrow terminal may part them.
        heading = f"\u00b1 {one.heading.removesuffix(' (%)')}"
        numbers += [*with_interval(one), Column(f"{one.key}_std", heading, one.kind, priority=1)]
    columns = [
        *heads,
        Column("values", "Values", "name"),
        *numbers,
        Column("runs", "Runs", "count", priority=2),
        Column("n", "Verdicts", "count", priority=2),
        Column("unreadable", "Unreadable", "count", priority=2),
        Column("remark", "Remark", "name", priority=3, prose=True),
    ]
    compared = [one for one in shown if not limit or one.key not in _TOTALS]
    rows = list(_rows(experiment, shown, compared, measured, remarks))
    note = " ".join(
        [
            f"Published: {experiment.source}." if experiment.source else "",
            "Ours: mean of the runs, \u00b1 their standard deviation (n - 1).",
            "Difference: ours less the paper's." if experiment.rows else "",
            "Low, high: 95 % interval by item, mean of the runs' ends, which is at least as wide "
            "as that of the mean.",
            "Where all numbers of ours are missing no verdict could be read: see judgments."
            if any(row.get("remark") == _UNREAD for row in rows)
            else "",
            f"Judges were asked about the first {limit} alone (--limit)." if limit else "",
            _elsewhere(experiment, data),
            experiment.note,
        ]
    ).strip()
    note = re.sub("  +", " ", note)
    title = experiment.title
    return table(experiment.name, title, columns, rows, [signed], note).filled()


def _elsewhere(experiment: Experiment, data: str) -> str:
    """Where the paper's numbers of a data set are, if not in this table."""
    if "Data" not in experiment.heads:
        return ""
    at = experiment.heads.index("Data")
    shown_in = [
        shown
        for shown, one in papers()[experiment.name.partition("-")[0]].items()
        if data in (line.row[at] for line in one.rows)
    ]
    if not shown_in or experiment.name.partition("-")[2].replace("-", " ") in shown_in:
        return ""
    return f"The paper's numbers of {data} are in its {' and '.join(shown_in)}."


def _rows(
    experiment: Experiment,
    shown: Sequence[Column],
    compared: Sequence[Column],
    measured: Mapping[tuple[str, ...], Sequence[Row]],
    remarks: Mapping[tuple[str, ...], str],
) -> Iterator[Row]:
    keys = [key_of(head) for head in experiment.heads]
    left = dict(measured)
    for one in experiment.rows:
        head = dict(zip(keys, one.row, strict=True))
        paper = _as_printed(shown, one)
        mine = left.pop(one.row, ())
        why = remarks.get(one.row, one.why)
        remark = None if mine else f"not run: {why}" if why else "not run"
        yield {**head, "values": "published", **paper, "remark": remark}
        if mine:
            ours = summary(shown, mine)
            yield {**head, "values": "ours", **ours}
            both = {c.key: (ours[c.key], paper[c.key]) for c in compared}
            apart = {key: a - b for key, (a, b) in both.items() if None not in (a, b)}
            if apart:
                yield {**head, "values": "difference", **apart}
    for row, mine in left.items():
        yield {**dict(zip(keys, row, strict=True)), "values": "ours", **summary(shown, mine)}


def summary(shown: Sequence[Column], runs: Sequence[Row]) -> Row:
    """Mean and standard deviation of each column over runs; a run without a value has no part."""
    found: Row = {"runs": len(runs)}
    for one in shown:
        for key in (one.key, f"{one.key}_low", f"{one.key}_high"):
            known = [run[key] for run in runs if run.get(key) is not None]
            found[key] = fmean(known) if known else None
            if key == one.key and len(known) > 1:
                found[f"{key}_std"] = stdev(known)
    for key in ("n", "unreadable"):
        counted = [run[key] for run in runs if run.get(key) is not None]
        found[key] = sum(counted) if counted else None
    if found["n"] == 0:
        found["remark"] = _UNREAD
    return found


def _as_printed(shown: Sequence[Column], line: Printed) -> Row:
    """A line of the paper in our units."""
    found: Row = {}
    for at, one in enumerate(shown):
        unit = 0.01 if one.kind == "rate" else 1.0
        given = {one.key: line.values[at]}
        if line.std:
            given[f"{one.key}_std"] = line.std[at]
        found |= {key: None if math.isnan(v) else unit * v for key, v in given.items()}
    return found


def key_of(head: str) -> str:
    """Key of the column under a heading."""
    return re.sub(r"\W+", "_", head.lower())
