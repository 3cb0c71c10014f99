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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template

from botchat.boards.board import Board
from botchat.boards.headline import Headline, headline
from botchat.boards.judge_checks import JudgeTrust, judge_trust
from botchat.boards.tables import Column, Table, labels, shorten, table
from botchat.interfaces import Row
from botchat.languages import ENGLISH
from botchat.protocols.catalogue import VOTES
from botchat.protocols.protocol import Protocol
from botchat.records import VERSION
from botchat.report.main_table import Links, address, check_lines, main_table

if TYPE_CHECKING:
    from botchat.report.archive import Archive
    from botchat.report.figures import Chart

SCRIPTS = ("core.js", "frame.js", "board.js", "dialogues.js", "pair.js", "reader.js")
STYLES = ("paper.css", "page.css", "board.css", "reader.css")
"""In the order they build on each other."""

STAMPS = {
    "trust": "✓ Trust",
    "use with care": "! Use with care",
    "not tested": "? Not tested",
    "do not trust": "✕ Do not trust",
    "not usable": "✕ Not usable",
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
    headline: Headline
    trust: JudgeTrust
    charts: Sequence[Chart] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    """Contestant -> USD of a dialogue, where known."""

    @classmethod
    def of(
        cls, board: Board, labels: Row | None = None, costs: Mapping[str, float] | None = None
    ) -> View:
        """Make the view of a board; ``labels``: its judge beside human labels, if there are any."""
        from botchat.report.figures import board_charts

        trust = judge_trust(board, labels)
        return cls(board, headline(board, trust), trust, board_charts(board, costs), costs or {})


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
    tables = [main_table(v.board, to, v.costs) for v, to in zip(views, links, strict=True)]
    good = [i for i, v in enumerate(views) if v.trust.level not in ("do not trust", "not usable")]

    def instead(judge: int) -> tuple[str, str] | None:
        """Another judge of the page, who is not to be distrusted, and where that is."""
        found = next((i for i in good if i != judge), None)
        if found is None:
            return None
        return views[found].board.judge, address(views[found].board.judge if found else "")

    about["orders"] = [[line.name for line in table.lines] for table in tables]

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
        shorten=shorten,
        boards=boards,
        people="invented people" if boards[0].invented else "people",
        tables=tables,
        checks=[check_lines(view.trust) for view in views],
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
    """Its interval, in small type."""


def _shown(table: Table) -> list[tuple[_TableCell, ...]]:
    """Rows as people read them."""
    columns = []
    for column in table.headline:
        full = table.written(column.key)
        texts = labels(full) if column.kind == "name" else full
        parts = zip(texts, full, table.intervals(column.key), strict=True)
        columns.append(
            [_TableCell(t, "" if t == name else name, column.kind, end) for t, name, end in parts]
        )
    return [*zip(*columns, strict=True)]


def ranks(boards: Sequence[Board]) -> Table:
    """Rank of every contestant by every judge, and the number that it is by."""
    columns = [Column("model", "Model", "name")]
    rows: dict[str, Row] = {}
    for i, board in enumerate(boards):
        columns.append(Column(f"rank_{i}", f"Rank by {board.judge}", "rank", interval=True))
        keys = dict(zip(("rank", "rank_low", "rank_high"), columns[-1].keys, strict=True))
        if part := board.ranked_by:
            value = part.quote(part.ranking[0])
            columns.append(replace(value, key=f"value_{i}", interval=False))
            keys[value.key] = f"value_{i}"
        for row in board.main.rows:
            own = rows.setdefault(row["model"], {"model": row["model"]})
            own |= {new: row[key] for key, new in keys.items()}
    return table(
        "judges-ranks",
        "Every contestant by every judge",
        columns,
        rows.values(),
        [signature for board in boards for signature in board.main.signatures],
    )
