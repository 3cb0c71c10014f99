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
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from botchat import prompts
from botchat.boards.board import Board
from botchat.boards.tables import Column, Table, labels
from botchat.protocols.kinds import Protocol
from botchat.records import VERSION
from botchat.report.glance import glance, ranks
from botchat.report.transcripts import Sample

if TYPE_CHECKING:
    from botchat.report.archive import Archive
    from botchat.report.figures import Chart

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

    ``views``: of at least one judge, all on one seed set; the first is shown first. ``archive``:
    the chunks that will lie beside the page, judges in the order of ``views``; without one there
    are samples only, and no labelling. ``compared``: what tells the judges apart, a protocol each.
    ``panels``: roles and prompts of judges that are panels.
    """
    script = "\n".join(text(name) for name in SCRIPTS)
    boards = [view.board for view in views]
    about: dict[str, Any] = {
        "set": boards[0].seed_set,
        "version": VERSION,
        "judges": [board.judge for board in boards],
        "first": str(boards[0].main.frame["model"].iloc[0]) if len(boards[0].main.frame) else "",
        "folder": "",
        **(archive.about if archive else {}),
    }
    return template("page.html").render(
        shown=_shown,
        inline=inline,
        glance=glance,
        explained=_explained,
        views=views,
        seed_set=boards[0].seed_set,
        ranks=ranks(boards) if len(boards) > 1 else None,
        compared=compared,
        style=text("page.css"),
        signatures=list(dict.fromkeys(s for b in boards for t in b.tables for s in t.signatures)),
        prompts=[*_prompts(boards), *panels],
        about=about,
        about_json=_inert(about),
        script=script,
        policy=(
            f"default-src 'none'; script-src {script_digest(script)} 'self'; "
            "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
        ),
        version=VERSION,
    )


def text(name: str) -> str:
    """A file of this folder."""
    return resources.files("botchat.report").joinpath(name).read_text("utf-8")


def template(name: str) -> Template:
    """A page to fill in; what is filled in is shown as text."""
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(text(name))


def by_contestant(board: Board, samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Samples in the order of the board's main table."""
    names = board.main.frame["model"]
    found = {name: [sample for sample in samples if sample.contestant == name] for name in names}
    return {name: told for name, told in found.items() if told}


def script_digest(script: str) -> str:
    """What a Content-Security-Policy names one inline script by."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _inert(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _explained(*boards: Board) -> list[Protocol]:
    """Every protocol of some boards, once for all its N."""
    return list({part.protocol.base: part.protocol for b in boards for part in b.parts}.values())


def _prompts(boards: Sequence[Board]) -> list[Prompt]:
    """The wording of what was asked, in full."""
    asked = sorted(_explained(*boards), key=lambda p: (p.kind != "place", p.shows != "pair"))
    generation = Prompt(
        "dialogue generation", prompts.digest("generation"), [prompts.text("generation")]
    )
    return [generation, *(Prompt(p.short or p.title, p.digest, p.texts) for p in asked)]


@dataclass(frozen=True)
class _Cell:
    text: str
    full: str
    """The whole name, where ``text`` is not."""
    kind: str
    """CSS class."""
    below: str = ""
    """A word on the number, in small type: its interval, or what it is made of."""


def _shown(table: Table) -> list[list[_Cell]]:
    """Rows as people read them; reasons stand below the numbers that they explain."""
    cells = table.cells
    rows: list[list[_Cell]] = [[] for _ in cells]
    for place, column in enumerate(table.headline):
        if column.role == "reason":
            continue
        full = [row[place] for row in cells]
        short = labels(full) if column.kind == "name" else full
        below = _below(table, column)
        for i, (row, text, name) in enumerate(zip(rows, short, full, strict=True)):
            low = column.role == "coverage" and table.frame[column.key].iloc[i] < LOW_COVERAGE
            kind = "low" if low else column.kind
            row.append(_Cell(text, "" if text == name else name, kind, below[i]))
    return rows


def _below(table: Table, column: Column) -> list[str]:
    """What explains the numbers of a column: the reasons, or the ends of a rating, if not shown."""
    for reason in table.columns:
        if reason.role == "reason" and reason.of == column.key:
            return ["" if pd.isna(said) else said for said in table.frame[reason.key]]
    ends = table.ends(column.key)
    if column.kind != "rating" or ends is None or not ends[0].detail:
        return [""] * len(table.frame)
    pairs = zip(*(table.frame[end.key].tolist() for end in ends), strict=True)
    return ["" if pd.isna(low) else f"{low:.0f} to {high:.0f}" for low, high in pairs]


def inline(chart: Chart, number: int | str = 0) -> Markup:
    """A figure as an element of the page, with ids of its own.

    The prolog, the metadata and the style sheet, which would apply to the whole page, are removed.
    ``number`` tells figures of one name apart.
    """
    body = chart.svg[chart.svg.index("<svg") :]
    for part in ("metadata", "style"):
        body = re.sub(rf"<{part}\b.*?</{part}>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'(\sid="|url\(#|href="#)', rf"\1{chart.name}-{number}-", body)
    opening = (
        f'<svg role="img" aria-label="{escape(chart.title)}" '
        f'style="max-width: {chart.width_in * 96:.0f}px; min-width: {chart.width_in * 68:.0f}px"'
    )
    body = re.sub(r"^<svg\b.*?(?= viewBox=)", lambda _: opening, body, flags=re.DOTALL)
    return Markup(body)  # matplotlib's own XML: names in it are escaped
