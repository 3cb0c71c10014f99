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
from botchat.leaderboards import Board
from botchat.protocols import arena, gteval, unieval
from botchat.report.figures import inline
from botchat.report.transcripts import Sample
from botchat.tables import Table, cells, headline, labels

if TYPE_CHECKING:
    from botchat.plots import Chart
    from botchat.report.archive import Archive

LOW_COVERAGE = 0.95
"""Below this a coverage is marked."""

SCRIPTS = ("core.js", "tables.js", "dialogues.js", "reader.js", "labels.js")
"""In the order they build on each other."""


@dataclass(frozen=True)
class View:
    """What one judge's verdicts say."""

    board: Board
    charts: Sequence[Chart] = ()
    """In the order to show (`botchat.plots.draw`)."""
    samples: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    """By contestant, for readers without JavaScript (`botchat.report.transcripts.pick`)."""


def render(
    views: Sequence[View], archive: Archive | None = None, compared: Sequence[Table] = ()
) -> str:
    """The page as HTML text; the same arguments give the same bytes.

    Args:
        views: of at least one judge, all on one seed set; the first is shown first.
        archive: the chunks that will lie beside the page, judges in the order of ``views``;
            without one there are samples only, and no labelling.
        compared: what tells the judges apart (`botchat.report.comparison.compare`).
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(shown=_shown, columns=headline, inline=inline)
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
        compared=compared,
        style=files.joinpath("page.css").read_text("utf-8"),
        signatures=list(dict.fromkeys(s for b in boards for t in b.tables for s in t.signatures)),
        prompts=_prompts(boards),
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
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}' 'self'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _inert(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@dataclass(frozen=True)
class _Prompt:
    title: str
    digest: str
    texts: list[str]


def _prompts(boards: Sequence[Board]) -> list[_Prompt]:
    """The wording of what was asked, in full."""
    asked: list[tuple[str, tuple[str, ...]]] = [("dialogue generation", ("generation",))]
    if any(board.unieval for board in boards):
        asked.append(("UniEval", unieval.PROMPTS))
    if any(board.arenas for board in boards):
        asked.append(("Arena", arena.PROMPTS))
    if any(board.gteval for board in boards):
        asked.append(("GTEval", gteval.PROMPTS))
    return [
        _Prompt(title, prompts.digest(*names), [prompts.text(name) for name in names])
        for title, names in asked
    ]


@dataclass(frozen=True)
class _Cell:
    text: str
    full: str
    """The whole name, where ``text`` is not."""
    kind: str
    """CSS class."""
    interval: str = ""


def _shown(table: Table) -> list[list[_Cell]]:
    """Rows as people read them."""
    columns = headline(table)
    rows: list[list[_Cell]] = [[] for _ in range(len(table.frame))]
    texts = list(zip(*cells(table), strict=True))
    for column, full in zip(columns, texts, strict=bool(rows)):
        short = labels(full) if column.kind == "name" else full
        covered = column.key.startswith("coverage")
        ends = _intervals(table, column.key)
        for i, (row, text, name) in enumerate(zip(rows, short, full, strict=True)):
            low = covered and table.frame[column.key].iloc[i] < LOW_COVERAGE
            kind = "low" if low else column.kind
            row.append(_Cell(text, "" if text == name else name, kind, ends[i]))
    return rows


def _intervals(table: Table, key: str) -> list[str]:
    """The ends of a rating's interval, where they are details of the table."""
    ends = [key.replace("bt_", f"bt_{end}_", 1) for end in ("low", "high")]
    details = {column.key for column in table.columns if column.detail}
    if not key.startswith("bt_n") or not details.issuperset(ends):
        return [""] * len(table.frame)
    pairs = zip(*(table.frame[end].tolist() for end in ends), strict=True)
    return ["" if pd.isna(low) else f"{low:.0f} to {high:.0f}" for low, high in pairs]
