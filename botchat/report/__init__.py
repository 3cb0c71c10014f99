"""The page: one HTML file of a leaderboard, its figures and everything that was said.

Tables and figures are complete without a script; it only sorts, filters, switches judges, and reads
transcripts from the chunks beside the page (`botchat.report.archive`). A Content-Security-Policy
lets nothing else run or load.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from botchat import prompts
from botchat.boards.board import Board
from botchat.boards.protocols import BesideHuman, Place
from botchat.boards.tables import LABEL_COLUMNS, Column, Table, elided, labels, table
from botchat.measures.shares import LEAST
from botchat.protocols.kinds import Protocol
from botchat.records import HUMAN, VERSION
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

    ``views``: of at least one judge, all on one seed set. ``archive``: its judges in the order of
    ``views``; without one there are samples only, and no labelling. ``compared``: a protocol each.
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
    """What explains the numbers of a column: the reasons, or the interval, if not shown."""
    for reason in table.columns:
        if reason.role == "reason" and reason.of == column.key:
            return ["" if pd.isna(said) else said for said in table.frame[reason.key]]
    return table.told_ends(column)


def inline(chart: Chart, number: int | str = 0) -> Markup:
    """A figure as elements of the page: one for wide screens, one for narrow ones.

    The page's style sheet shows one of them. They have no sheets of their own, which would apply to
    all of the page. ``number`` tells figures of one name apart by their ids.
    """
    shown = []
    widths = (chart.width_in, chart.narrow_width_in)
    for kind, svg, width in zip(("wide", "narrow"), chart.on_page, widths, strict=True):
        body = svg[svg.index("<svg") :]
        for part in ("metadata", "style"):
            body = re.sub(rf"<{part}\b.*?</{part}>\s*", "", body, flags=re.DOTALL)
        key = f"{chart.name}-{number}-{kind[0]}"
        body = re.sub(r'(\sid="|url\(#|href="#)', rf"\1{key}-", body)
        opening = (
            f'<svg role="img" aria-label="{escape(chart.title)}" class="at-{kind}" '
            f'style="width: {width * 96:.6g}px"'
        )
        shown.append(opening + body[body.index(" viewBox=") :])
    return Markup("\n".join(shown))  # matplotlib's own XML: names in it are escaped


@dataclass(frozen=True)
class Fact:
    """One result, and the part of the page that shows it."""

    question: str
    answer: Markup
    figure: str
    """Name of the figure that shows it."""
    part: str
    """Id of the part of the page to link to where there is no such figure."""


def glance(board: Board) -> list[Fact]:
    """The answers that the board has numbers for."""
    found = (_best(board), _breaking(board), _beside_people(board), _judge(board))
    return [fact for fact in found if fact]


def _best(board: Board) -> Fact | None:
    for arena in board.arenas:
        n = arena.protocol.n
        frame = arena.table.frame.dropna(subset="bt").sort_values("bt", ascending=False)
        if frame.empty:
            continue
        if arena.few:
            said = Markup("Fewer than {} ChatSEEDs were compared at N = {}: too few to say.")
            return Fact("Who is best?", said.format(LEAST, n), "bradley-terry", "tables")
        best = frame[frame["rank_low"] == 1]
        first = best.iloc[0]
        rating = f"{first['bt']:.0f} points"
        if not pd.isna(first["bt_low"]):
            rating += f", 95 % interval {first['bt_low']:.0f} to {first['bt_high']:.0f}"
        others = len(frame) - 1
        if len(best) == 1:
            whom = "the other one" if others == 1 else f"all {others} others"
            said = Markup("{} ({}), clearly better than {} at N = {}.")
        else:
            whom = _listed([name for name in best["model"] if name != first["model"]])
            said = Markup("{} is ahead ({}), but cannot be separated from {} at N = {}.")
        said = said.format(_name(first["model"]), rating, whom, n)
        return Fact("Who is best?", said, "bradley-terry", "tables")
    for part in board.of(Place):
        n, success = next(iter(part.table.by_n().items()))
        frame = _models(part.table).dropna(subset=success.key)
        if len(frame):
            row = frame.iloc[0]
            if row[part.table.column(role="readable", of=success.key).key] < LEAST:
                return None
            said = Markup("{}: {:.1f} % of {:,} dialogues pass as human for {} utterances.").format(
                _name(row["model"]),
                100 * row[success.key],
                row[part.table.column(role="readable", of=success.key).key],
                n,
            )
            return Fact("Who lasts longest?", said, "success-rates", "tables")
    return None


def _breaking(board: Board) -> Fact | None:
    survival = next((part.survival for part in board.of(Place)), None)
    if survival is None:
        return None
    frame = _models(survival)
    frame = frame[frame["dialogues"] >= LEAST]
    if not len(frame):
        return None
    parts = [_half(row) for _, row in (frame.iloc[[0, -1]] if len(frame) > 1 else frame).iterrows()]
    said = Markup("; ").join(parts)
    said = Markup("{}{}.").format(said[:1].upper(), said[1:])
    return Fact("Where do dialogues break?", said, "survival", "tables")


def _half(row: pd.Series) -> Markup:
    name = _name(row["model"])
    if pd.isna(row["half"]):
        share = 100 * row["accused"] / row["dialogues"]
        return Markup("{:.0f} % of {}’s dialogues are ever accused").format(share, name)
    return Markup("half of {}’s dialogues are accused by utterance {}").format(name, row["half"])


def _beside_people(board: Board) -> Fact | None:
    part = next(iter(board.of(BesideHuman)), None)
    if part is None or not len(frame := part.table.frame.dropna(subset="win_or_tie")):
        return None
    row = frame.iloc[0]
    if row["readable"] < 2 * LEAST:  # each dialogue in both orders
        return None
    said = Markup("{} wins or ties in {:.1f} % of {:,} comparisons with the human dialogue.")
    said = said.format(_name(row["model"]), 100 * row["win_or_tie"], row["readable"])
    return Fact("How close to people?", said, part.protocol.name, "tables")


def _judge(board: Board) -> Fact | None:
    if board.judge_health is None:
        return None
    frame = board.judge_health.frame
    frame = frame[frame["seeds"] >= LEAST]
    if not len(frame):
        return None
    parts = []
    if frame["consistency"].notna().any():
        worst = 100 * frame["consistency"].min()
        parts.append(Markup("says the same in both orders for {:.0f} % of pairs").format(worst))
    if frame["false_alarms"].notna().any():
        alarms = 100 * frame["false_alarms"].max()
        parts.append(Markup("accuses {:.1f} % of human dialogues").format(alarms))
    unreadable = 100 * frame["unreadable"].sum() / frame["judged"].sum()
    parts.append(Markup("leaves {:.1f} % of verdicts unreadable").format(unreadable))
    said = Markup("{} {}.").format(_name(board.judge), Markup(", ").join(parts))
    return Fact("Is the judge any good?", said, "judge-health", "judges")


def _models(table: Table) -> pd.DataFrame:
    return table.frame[table.frame["model"] != HUMAN]


def _listed(names: Sequence[str]) -> Markup:
    shown = [_name(name) for name in names[:3]]
    if len(names) > len(shown):
        shown.append(Markup("{} more").format(len(names) - len(shown)))
    *most, last = shown
    return Markup("{} and {}").format(Markup(", ").join(most), last) if most else last


def _name(name: str) -> Markup:
    return Markup("<bdi>{}</bdi>").format(elided(name, LABEL_COLUMNS))


def ranks(boards: Sequence[Board]) -> Table:
    """Rank of every contestant by every judge, and the number that it is by."""
    columns = [Column("model", "Model", "name", getter=str)]
    for i, board in enumerate(boards):
        main, key = board.main, f"value_{i}"
        rank = main.column(role="rank")
        heading, place = f"Rank by {board.judge}", main.values(rank.key).get
        columns.append(replace(rank, key=f"rank_{i}", heading=heading, of=key, getter=place))
        for end in main.ends(rank.key) or ():
            key_of_end, values = f"rank_{i}_{end.role}", main.values(end.key).get
            said = f"{heading}, {end.role}"
            columns.append(
                replace(end, key=key_of_end, heading=said, of=f"rank_{i}", getter=values)
            )
        if rank.of:
            by = main.column(rank.of)
            columns.append(replace(by, key=key, getter=main.values(by.key).get))
    return table(
        "judges-ranks",
        "Every contestant by every judge",
        columns,
        dict.fromkeys(name for board in boards for name in board.main.frame["model"]),
        [signature for board in boards for signature in board.main.signatures],
    )
