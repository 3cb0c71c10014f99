"""The page: one HTML file of a leaderboard, its figures and everything that was said.

Tables and figures are plain HTML, complete without a script. The script only sorts, filters,
switches judges, and reads transcripts from the chunks beside the page (`botchat.report.archive`).
A Content-Security-Policy lets nothing else run or load, and whatever models, seeds and names
contain is shown as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from botchat import __version__, prompts
from botchat.boards.board import Board
from botchat.boards.tables import Column, Table, labels
from botchat.protocols.kinds import Protocol
from botchat.report.glance import glance, ranks
from botchat.report.inline import inline
from botchat.report.transcripts import Sample

if TYPE_CHECKING:
    from botchat.report.archive import Archive
    from botchat.report.figures import Chart

JUDGE_HEALTH = "judge-health"
"""Name of the figure that is about the judge, not about those it judges."""

LOW_COVERAGE = 0.95
"""Below this a coverage is marked."""

SCRIPTS = ("core.js", "tables.js", "dialogues.js", "reader.js", "labels.js")
"""In the order they build on each other."""


@dataclass(frozen=True)
class View:
    """What one judge's verdicts say."""

    board: Board
    charts: Sequence[Chart] = ()
    """In the order to show (`botchat.report.figures.draw`)."""
    samples: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    """By contestant, for readers without JavaScript (`botchat.report.transcripts.pick`)."""

    @property
    def about_models(self) -> list[Chart]:
        """The figures without the judge's own."""
        return [chart for chart in self.charts if chart.name != JUDGE_HEALTH]

    @property
    def about_judge(self) -> list[Chart]:
        """The judge's own."""
        return [chart for chart in self.charts if chart.name == JUDGE_HEALTH]


@dataclass(frozen=True)
class Beside:
    """What several judges say beside each other in one protocol, as `botchat agree` has it."""

    subject: str
    notes: Sequence[str]
    tables: Sequence[Table]
    """The most important first; it is shown, the others are folded."""
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Prompt:
    """The wording of something that was asked, in full."""

    title: str
    digest: str
    texts: Sequence[str]


def render(
    views: Sequence[View],
    archive: Archive | None = None,
    compared: Sequence[Beside] = (),
    panels: Sequence[Prompt] = (),
) -> str:
    """The page as HTML text; the same arguments give the same bytes.

    Args:
        views: of at least one judge, all on one seed set; the first is shown first.
        archive: the chunks that will lie beside the page, judges in the order of ``views``;
            without one there are samples only, and no labelling.
        compared: what tells the judges apart, a protocol each.
        panels: roles and prompts of judges that are panels.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        shown=_shown, columns=_columns, inline=inline, glance=glance, explained=_explained
    )
    files = resources.files("botchat.report")
    script = "\n".join(files.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    boards = [view.board for view in views]
    about: dict[str, Any] = {
        "set": boards[0].seed_set,
        "version": __version__,
        "judges": [board.judge for board in boards],
        "first": str(boards[0].main.frame["model"].iloc[0]) if len(boards[0].main.frame) else "",
        "folder": "",
        **(archive.about if archive else {}),
    }
    page = environment.from_string(files.joinpath("page.html").read_text("utf-8"))
    return page.render(
        views=views,
        seed_set=boards[0].seed_set,
        ranks=ranks(boards) if len(boards) > 1 else None,
        compared=compared,
        style=files.joinpath("page.css").read_text("utf-8"),
        signatures=list(dict.fromkeys(s for b in boards for t in b.tables for s in t.signatures)),
        prompts=[*_prompts(boards), *panels],
        about=about,
        about_json=_inert(about),
        script=script,
        policy=_policy(script),
        version=__version__,
    )


def by_contestant(board: Board, samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Samples in the order of the board's main table."""
    found: dict[str, list[Sample]] = {}
    for name in board.main.frame["model"]:
        if told := [sample for sample in samples if sample.contestant == name]:
            found[name] = told
    return found


def _policy(script: str) -> str:
    """What the browser lets this page do: its own script by digest, and scripts beside it."""
    return (
        f"default-src 'none'; script-src {script_digest(script)} 'self'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def script_digest(script: str) -> str:
    """What a Content-Security-Policy names one inline script by."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _inert(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _explained(board: Board) -> list[Protocol]:
    """Every protocol of a board, once for all its N."""
    return list({part.protocol.base: part.protocol for part in board.parts}.values())


def _prompts(boards: Sequence[Board]) -> list[Prompt]:
    """The wording of what was asked, in full."""
    asked = {part.protocol.base: part.protocol for board in boards for part in board.parts}
    ordered = sorted(asked.values(), key=lambda p: (p.kind != "place", p.shows != "pair"))
    generation = Prompt(
        "dialogue generation", prompts.digest("generation"), [prompts.text("generation")]
    )
    return [generation, *(Prompt(p.short or p.title, p.digest, p.texts) for p in ordered)]


@dataclass(frozen=True)
class _Cell:
    text: str
    full: str
    """The whole name, where ``text`` is not."""
    kind: str
    """CSS class."""
    below: str = ""
    """A word on the number, in small type: its interval, or what it is made of."""


_WHY = {"flagged": "why"}
"""Columns -> the one in words that stands below them."""


def _columns(table: Table) -> list[Column]:
    """The columns that people read."""
    return [column for column in table.headline if column.key not in _WHY.values()]


def _shown(table: Table) -> list[list[_Cell]]:
    """Rows as people read them."""
    texts = zip(table.headline, zip(*table.cells, strict=True), strict=bool(len(table.frame)))
    rows: list[list[_Cell]] = [[] for _ in range(len(table.frame))]
    kept = {column.key for column in _columns(table)}
    for column, full in texts:
        if column.key not in kept:
            continue
        short = labels(full) if column.kind == "name" else full
        covered = column.key.startswith("coverage")
        below = _below(table, column.key)
        for i, (row, text, name) in enumerate(zip(rows, short, full, strict=True)):
            low = covered and table.frame[column.key].iloc[i] < LOW_COVERAGE
            kind = "low" if low else column.kind
            row.append(_Cell(text, "" if text == name else name, kind, below[i]))
    return rows


def _below(table: Table, key: str) -> list[str]:
    """What explains the numbers of a column, where a detail of the table does."""
    there = {column.key for column in table.columns}
    if _WHY.get(key) in there:
        return ["" if pd.isna(said) else said for said in table.frame[_WHY[key]]]
    ends = [key.replace("bt_", f"bt_{end}_", 1) for end in ("low", "high")]
    if not key.startswith("bt_n") or not there.issuperset(ends):
        return [""] * len(table.frame)
    pairs = zip(*(table.frame[end].tolist() for end in ends), strict=True)
    return ["" if pd.isna(low) else f"{low:.0f} to {high:.0f}" for low, high in pairs]
