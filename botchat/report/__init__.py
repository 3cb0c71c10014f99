"""The page: one HTML file of a leaderboard, its figures and everything that was said.

Tables and figures are complete without a script; it only sorts, filters, switches judges, and reads
transcripts from the chunks beside the page (`botchat.report.archive`). A Content-Security-Policy
lets nothing else run or load.

A new part of the page is in ``page.html`` and its own script and style sheet beside it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template

from botchat.boards.board import Board
from botchat.boards.names import elided, labels
from botchat.boards.tables import Column, Table, table
from botchat.languages import ENGLISH
from botchat.protocols.catalogue import VOTES
from botchat.protocols.protocol import Protocol
from botchat.records import VERSION
from botchat.report.first_screen import Facts as Facts
from botchat.report.first_screen import screen
from botchat.report.main_table import Links, address

if TYPE_CHECKING:
    from botchat.report.archive import Archive
    from botchat.report.figures import Chart

LOW_COVERAGE = 0.95
"""Below this a coverage is marked."""

SCRIPTS = ("core.js", "frame.js", "board.js", "dialogues.js", "pair.js", "reader.js")
STYLES = ("paper.css", "page.css", "board.css", "reader.css")
"""In the order they build on each other."""

STAMPS = {
    "trust": "✓ Trust",
    "with care": "! Trust with care",
    "not tested": "? Not tested",
    "do not trust": "✕ Do not trust",
}
"""What a judge is worth -> what stands on its card."""

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle "
    "cx='8' cy='8' r='6' fill='none' stroke='%23a83c0e' stroke-width='2.5' "
    "stroke-dasharray='3 2'/%3E%3C/svg%3E"
)
"""Of the page's tab: the dashes in which people speak."""


@dataclass(frozen=True)
class View:
    """What one judge's verdicts say."""

    board: Board
    charts: Sequence[Chart] = ()
    """In the order to show (`botchat.report.figures.draw`)."""
    known: Facts | None = None

    @cached_property
    def facts(self) -> Facts:
        """What is known beyond the tables; by default what the board alone says."""
        return self.known or Facts.of(self.board)


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
    talks: Sequence[Prompt] = (),
    others: dict[int, dict[str, str]] | None = None,
) -> str:
    """The page as HTML text; the same arguments give the same bytes.

    ``views``: of at least one judge, all on one seed set. ``archive``: its judges in the order of
    ``views``; without one nothing can be read. ``compared``: a protocol each. ``talks``: roles and
    prompts of judges that are panels. ``others``: takes the parts of the judges after the first,
    which are else on the page: place of the judge -> view -> its HTML.
    """
    from botchat.report.archive import FOLDER

    script = joined(SCRIPTS)
    boards = [view.board for view in views]
    about: dict[str, Any] = {
        "set": boards[0].seed_set,
        "version": VERSION,
        "judges": [board.judge for board in boards],
        "first": str(boards[0].main.frame["model"].iloc[0]) if len(boards[0].main.frame) else "",
        "folder": "",
        "chunks": FOLDER,
        "lang": next((one.language for one in _explained(*boards)), ENGLISH).code,
        "invented": boards[0].invented,
        "protocols": {},
        "votes": bool(boards[0].arenas and boards[0].arenas[0].protocol == VOTES),
        **(archive.about if archive else {}),
    }
    opens = about.get("view", "")
    links = [Links(board.judge if i else "", opens) for i, board in enumerate(boards)]
    screens = [screen(view.board, view.facts, to) for view, to in zip(views, links, strict=True)]
    good = [i for i, one in enumerate(views) if one.facts.verdict.word != "do not trust"]

    def instead(judge: int) -> tuple[str, str] | None:
        """Another judge of the page, who is not to be distrusted, and where that is."""
        found = next((i for i in good if i != judge), None)
        if found is None:
            return None
        return views[found].board.judge, address(views[found].board.judge if found else "")

    about["orders"] = [[line.name for line in one.table.lines] for one in screens]

    def apart(judge: int, where: str, part: str) -> str:
        """A part of the page of one judge, where it stands."""
        if others is None or not judge:
            return part
        others.setdefault(judge, {})[where] = str(part)
        return ""

    return template("page.html").render(
        shown=_shown,
        apart=apart,
        instead=instead,
        elided=elided,
        boards=boards,
        people="invented people" if boards[0].invented else "people",
        screens=screens,
        icon=ICON,
        STAMPS=STAMPS,
        explained=_explained,
        views=views,
        seed_set=boards[0].seed_set,
        ranks=ranks(boards) if len(boards) > 1 else None,
        compared=compared,
        style=joined(STYLES),
        signatures=list(dict.fromkeys(s for b in boards for t in b.tables for s in t.signatures)),
        prompts=[*_prompts(boards), *talks],
        about=about,
        links=links,
        about_json=inert(about),
        script=script,
        policy=policy(script, "img-src data:", chunks=True),
        version=VERSION,
    )


def files(
    views: Sequence[View],
    archive: Archive | None = None,
    compared: Sequence[Beside] = (),
    talks: Sequence[Prompt] = (),
) -> dict[str, str | bytes]:
    """The page and all that it loads: path -> content; arguments as of `render`.

    The parts of the judges after the first are chunks, too.
    """
    from botchat.report.archive import FOLDER, script

    others: dict[int, dict[str, str]] = {}
    page = render(views, archive, compared, talks, others)
    named = {f"judge-{judge}": told for judge, told in others.items()}
    chunks = {f"{FOLDER}/{name}.js": script(name, told) for name, told in named.items()}
    said = archive.files if archive else {}
    return {**said, **chunks, "index.html": page}


def text(name: str, package: str = "botchat.report") -> str:
    """A file of a package's folder."""
    return resources.files(package).joinpath(name).read_text("utf-8")


def joined(names: Iterable[str]) -> str:
    """Some of our files, one after the other."""
    return "\n".join(map(text, names))


@cache
def template(name: str, package: str = "botchat.report") -> Template:
    """A page to fill in; what is filled in is shown as text."""
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(text(name, package))


def policy(script: str, *also: str, chunks: bool = False) -> str:
    """The Content-Security-Policy of a page: its own inline script, and ``also``; nothing else.

    ``chunks``: scripts beside it, too.
    """
    scripts = f"script-src {script_digest(script)}" + (" 'self'" if chunks else "")
    ours = ("default-src 'none'", scripts, "style-src 'unsafe-inline'")
    return "; ".join((*ours, *also, "base-uri 'none'", "form-action 'none'"))


def script_digest(script: str) -> str:
    """What a Content-Security-Policy names one inline script by."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def inert(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _explained(*boards: Board) -> list[Protocol]:
    """Every protocol of some boards, once for all its N."""
    return list({part.protocol.base: part.protocol for b in boards for part in b.parts}.values())


def _prompts(boards: Sequence[Board]) -> list[Prompt]:
    """The wording of what was asked, in full."""
    asked = sorted(_explained(*boards), key=lambda p: (p.kind != "place", p.shows != "pair"))
    # All boards of a page are of one set; one without judgments has no language to show.
    spoken = asked[0].language if asked else ENGLISH
    generation = Prompt(
        "dialogue generation", spoken.prompts_digest("generation"), [spoken.text("generation")]
    )
    generated = [generation] if any(board.human_lengths for board in boards) else []
    return [*generated, *(Prompt(p.short or p.title, p.digest, p.texts) for p in asked if p.texts)]


class _TableCell(NamedTuple):
    text: str
    full: str
    """The whole name, where ``text`` is not."""
    kind: str
    """CSS class."""
    below: str
    """A word on the number, in small type: its interval, or what it is made of."""
    href: str
    """Where the dialogue that it names is read."""


def _shown(table: Table, links: Links | None = None) -> list[tuple[_TableCell, ...]]:
    """Rows as people read them; reasons stand below the numbers that they explain."""
    written, columns = [*zip(*table.cells, strict=True)], []
    for column, full in zip(table.headline, written or [()] * len(table.headline), strict=True):
        if column.role == "reason":
            continue
        values = table.frame[column.key]
        low = values < LOW_COVERAGE if column.role == "coverage" else [False] * len(values)
        below = table.told_ends(column)
        if because := [c for c in table.columns if (c.role, c.of) == ("reason", column.key)]:
            below = ["" if pd.isna(said) else said for said in table.frame[because[0].key]]
        hrefs = [""] * len(full)
        if links and column.key == "seed_id":
            models = table.frame["model"]
            hrefs = [links.to(a=a, seed=s) for a, s in zip(models, full, strict=True)]
        columns.append([
            _TableCell(text, "" if text == name else name, "low" if bad else column.kind, *more)
            for text, name, bad, *more in zip(
                labels(full) if column.kind == "name" else full, full, low, below, hrefs,
                strict=True,
            )
        ])  # fmt: skip
    return [*zip(*columns, strict=True)]


def ranks(boards: Sequence[Board]) -> Table:
    """Rank of every contestant by every judge, and the number that it is by."""
    columns = [Column("model", "Model", "name", getter=str)]
    for i, board in enumerate(boards):
        main, key, heading = board.main, f"rank_{i}", f"Rank by {board.judge}"
        rank = main.column(role="rank")

        def of(column: Column, main: Table = main, **told: Any) -> Column:
            return replace(column, getter=main.values(column.key).get, **told)

        columns.append(of(rank, key=key, heading=heading, of=f"value_{i}"))
        for end in main.ends(rank.key) or ():
            said = f"{heading}, {end.role}"
            columns.append(of(end, key=f"{key}_{end.role}", heading=said, of=key))
        if rank.of:
            columns.append(of(main.column(rank.of), key=f"value_{i}"))
    return table(
        "judges-ranks",
        "Every contestant by every judge",
        columns,
        dict.fromkeys(name for board in boards for name in board.main.frame["model"]),
        [signature for board in boards for signature in board.main.signatures],
    )
