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
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from botchat.boards.board import Board
from botchat.boards.names import elided, labels
from botchat.boards.tables import Column, Table, table
from botchat.languages import ENGLISH
from botchat.protocols.catalogue import VOTES
from botchat.protocols.kinds import Protocol
from botchat.records import SOMEWHERE, VERSION, Dialogues, Judgment, natural_key
from botchat.report.first_screen import Facts as Facts
from botchat.report.first_screen import Sample as Sample
from botchat.report.first_screen import screen
from botchat.report.main_table import Cell, Links, address, main_table

if TYPE_CHECKING:
    from botchat.report.archive import Archive
    from botchat.report.figures import Chart

LONGEST = 2000
"""Characters shown of an utterance."""

LOW_COVERAGE = 0.95
"""Below this a coverage is marked."""

SCRIPTS = ("core.js", "frame.js", "board.js", "dialogues.js", "pair.js", "reader.js")
STYLES = ("paper.css", "page.css", "board.css", "reader.css")
"""In the order they build on each other."""

BADGE = "badge.svg"
"""Beside the page: its result in a line, for a README."""

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

PICTURE = "og.png"
"""The picture of the first screen, beside the page, for previews of links."""


@dataclass(frozen=True)
class View:
    """What one judge's verdicts say."""

    board: Board
    charts: Sequence[Chart] = ()
    """In the order to show (`botchat.report.figures.draw`)."""
    samples: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    """By contestant, for readers without JavaScript (`pick`)."""
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
    picture: str = "",
    others: dict[int, dict[str, str]] | None = None,
) -> str:
    """The page as HTML text; the same arguments give the same bytes.

    ``views``: of at least one judge, all on one seed set. ``archive``: its judges in the order of
    ``views``; without one there are samples only, and no labelling. ``compared``: a protocol each.
    ``talks``: roles and prompts of judges that are panels. ``picture``: address of the picture for
    previews of links. ``others``: takes the parts of the judges after the first, which are else on
    the page: place of the judge -> view -> its HTML.
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
        "votes": others is not None and bool(_votes(boards[0])),
        "picture": PICTURE if picture else "",
        **(archive.about if archive else {}),
    }
    opens = about.get("view", "")
    links = [Links(board.judge if i else "", opens) for i, board in enumerate(boards)]
    screens = [
        screen(view.board, view.facts, to, view.samples)
        for view, to in zip(views, links, strict=True)
    ]
    good = [i for i, one in enumerate(views) if one.facts.verdict.word != "do not trust"]

    def instead(judge: int) -> tuple[str, str] | None:
        """Another judge of the page, who is not to be distrusted, and where that is."""
        found = next((i for i in good if i != judge), None)
        if found is None:
            return None
        return views[found].board.judge, address(views[found].board.judge if found else "")

    about["orders"] = [[line.name for line in one.table.lines] for one in screens]

    def apart(judge: int, where: str, part: Markup) -> str:
        """A part of the page of one judge, where it stands."""
        if others is None or not judge:
            return part
        if where != "read" or archive is None:  # beside an archive nobody sees its samples
            others.setdefault(judge, {})[where] = str(part)
        return ""

    return template("page.html").render(
        shown=_shown,
        inline=inline,
        apart=apart,
        instead=instead,
        elided=elided,
        longest=LONGEST,
        boards=boards,
        people="invented people" if boards[0].invented else "people",
        screens=screens,
        picture=picture,
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
    url: str = "",
) -> dict[str, str | bytes]:
    """The page and all that it loads: path -> content; arguments as of `render`.

    ``url``: where the folder will be served, for previews of links. The parts of the judges after
    the first are chunks, too.
    """
    from botchat.report.archive import FOLDER, script
    from botchat.report.figures import share

    others: dict[int, dict[str, str]] = {}
    picture = f"{url.rstrip('/')}/{PICTURE}" if url else PICTURE
    page = render(views, archive, compared, talks, picture, others)
    named: dict[str, Any] = {f"judge-{judge}": told for judge, told in others.items()}
    if cast := _votes(views[0].board):
        named["votes"] = cast
    chunks = {f"{FOLDER}/{name}.js": script(name, told) for name, told in named.items()}
    said = archive.files if archive else {}
    facts = views[0].facts
    badge = share.badge(facts.headline.title, STAMPS[facts.verdict.word])
    return {**said, **chunks, PICTURE: preview(views[0]), BADGE: badge, "index.html": page}


def _votes(board: Board) -> dict[str, list[int]]:
    """Of a file of votes: two places in the table -> votes won, tied and lost by the first."""
    if not board.arenas or board.arenas[0].protocol != VOTES:
        return {}
    place = {name: i for i, name in enumerate(board.main.frame["model"])}
    found = {}
    told = ["model_a", "model_b", "win_rate", "win_or_tie_rate", "readable"]
    for a, b, won, kept, n in board.arenas[0].pairs.frame[told].itertuples(index=False):
        if n and place[a] < place[b]:
            found[f"{place[a]},{place[b]}"] = [
                round(won * n), round((kept - won) * n), round((1 - kept) * n)
            ]  # fmt: skip
    return found


def preview(view: View) -> bytes:
    """The picture for previews of links, a PNG of 1200 by 630: the ranked column of the table."""
    from botchat.report.figures import share

    facts = view.facts
    told = main_table(view.board, Links())
    by = view.board.main.column(role="rank").of
    rated = told.heads[1].label if len(told.heads) > 1 and told.heads[1].key == by else ""
    rows = [
        (line.name, cell.text, cell.bar)
        for line in told.lines
        if (cell := line.cells[1] if rated else Cell("")).bar and not line.is_human
    ]
    if facts.verdict.word == "do not trust":
        rows = []  # a picture of an order would be one
    stamp = STAMPS[facts.verdict.word]
    sentence, scope = facts.headline.sentence, facts.headline.scope
    return share.preview(sentence, scope, stamp, rows, rated.capitalize())


_ABOUT = re.compile(r'<script type="application/json" id="about">(.*?)</script>', re.DOTALL)


def judges_of(page: str, seed_set: str) -> list[str]:
    """The judges of a page that `render` made of this set; none of anything else."""
    try:
        about = json.loads(found[1]) if (found := _ABOUT.search(page)) else {}
        judges = list(about["judges"]) if about["set"] == seed_set else []
    except (ValueError, KeyError, TypeError):
        return []
    return [name for name in judges if isinstance(name, str)]


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


def pick(
    names: Iterable[str], dialogues: Dialogues, judgments: Iterable[Judgment]
) -> dict[str, list[Sample]]:
    """Up to three dialogues of each contestant, in the order of ``names``.

    The earliest accused, the median of the others that are, and the first that is not.
    ``judgments`` are UniEval's, of one judge; those on other dialogues are left out.
    """
    readable: dict[str, list[Judgment]] = {}
    for one in judgments:
        contestant = one.contestants[0]
        if one.verdict and one.seed_id in dialogues.get(contestant, ()):
            readable.setdefault(contestant, []).append(one)
    found = {}
    for name in names:
        said = sorted(readable.get(name, ()), key=lambda one: natural_key(one.seed_id))
        passed = [(one, 0) for one in said if one.verdict == "No"]
        told = [one for one in said if one.verdict not in ("No", SOMEWHERE)]
        accused = sorted(((one, int(one.verdict or 0)) for one in told), key=lambda one: one[1])
        telling = [*accused[:1], *accused[1:][(len(accused) - 1) // 2 :][:1], *passed[:1]]
        if telling:
            found[name] = [Sample(dialogues[name][one.seed_id], at, one.reason)
                           for one, at in telling]  # fmt: skip
    return found


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


def inline(chart: Chart) -> Markup:
    """A figure as an element of the page."""
    return Markup(chart.inline)  # its own SVG: names in it are escaped


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
