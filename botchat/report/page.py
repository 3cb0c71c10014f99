"""The page: one HTML file a judge, with its table, its figures, all dialogues and all verdicts.

Tables and figures are complete without a script; it only sorts, and reads dialogues from the chunks
in the page's folder (`botchat.report.archive`). Its Content-Security-Policy forbids all else.

A new part of the page is in ``page.html``, with a script and a style sheet next to it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined, Template

from botchat.boards.board import Board
from botchat.boards.headline import Headline, headline
from botchat.boards.judge_checks import NO_ANSWER, JudgeTrust, judge_trust
from botchat.estimates import Estimate
from botchat.interfaces import Row
from botchat.languages import ENGLISH
from botchat.protocols.protocol import Protocol
from botchat.records import VERSION
from botchat.report.first_screen import (
    Links,
    check_lines,
    main_checks,
    main_table,
    success_curve,
)

if TYPE_CHECKING:
    from botchat.report.archive import Archive
    from botchat.report.figures import Chart

SCRIPTS = ("core.js", "board.js", "dialogues.js", "pair.js", "reader.js")
STYLES = ("paper.css", "page.css", "reader.css")
"""Files in the order in which they build on each other."""

STAMPS = {
    "trust": "✓ Trust",
    "use with care": "! Use with care",
    "not tested": "? Not tested",
    "do not trust": "✕ Do not trust",
    "not usable": "✕ Not usable",
    NO_ANSWER: "✕ No answer within its limit",
}
"""Trust level of a judge -> its stamp."""

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle "
    "cx='8' cy='8' r='6' fill='none' stroke='%23a83c0e' stroke-width='2.5' "
    "stroke-dasharray='3 2'/%3E%3C/svg%3E"
)


@dataclass(frozen=True)
class View:
    """A board with its headline, its judge's trust level and its figures."""

    board: Board
    headline: Headline
    trust: JudgeTrust
    charts: Sequence[Chart] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    """Contestant -> USD of a dialogue, where known."""

    @classmethod
    def of(
        cls,
        board: Board,
        label_kappa: Estimate | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> View:
        """Make the view of a board; ``label_kappa``: of its judge to human labels, if any."""
        from botchat.report.figures import board_charts

        trust = judge_trust(board, label_kappa)
        return cls(board, headline(board, trust), trust, [*board_charts(board, costs)], costs or {})


@dataclass(frozen=True)
class JudgeComparison:
    """Agreement of several judges in one protocol, as `botchat agree` has it."""

    subject: str
    sentences: Sequence[str]
    rows: Sequence[Row]  # a judge each, as they are printed
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Prompt:
    """A prompt in full, with its title."""

    title: str
    digest: str
    texts: Sequence[str]


def page_name(place: int) -> str:
    """Return the file name of a judge's page, by its place."""
    return f"judge-{place + 1}.html" if place else "index.html"


def files(
    views: Sequence[View],
    archive: Archive | None = None,
    compared: Sequence[JudgeComparison] = (),
    talks: Sequence[Prompt] = (),
    usd: float | None = None,
) -> dict[str, str]:
    """Return a page a judge and all that they load: path -> content; same input, same bytes.

    ``views``: of at least one judge, all on one seed set. ``archive``: the dialogues, and the
    verdicts of these judges in this order and perhaps of others; without one nothing can be read.
    ``compared``: a protocol each. ``talks``: roles and prompts of judges that are panels. ``usd``:
    the cost of everything.
    """
    judges = [(page_name(i), view.board.judge, view) for i, view in enumerate(views)]
    shared = {
        "judges": judges,
        "checks": [check_lines(view.trust) for view in views],
        "compared": compared,
        "STAMPS": STAMPS,
        "NO_ANSWER": NO_ANSWER,
        "icon": ICON,
        "style": join_files(STYLES),
        "script": join_files(SCRIPTS),
        "policy": policy(join_files(SCRIPTS), "img-src data:", chunks=True),
        "version": VERSION,
    }
    about = {"folder": "", **(archive.about if archive else {}), "pages": [j[0] for j in judges]}
    pages = {}
    for i, view in enumerate(views):
        own = _view_values(view, {**about, "judge": i}, talks, usd)
        pages[page_name(i)] = template("page.html").render(
            **shared, **own, files=[t.name for t in view.board.every_table] if i == 0 else []
        )
    return {**(archive.files if archive else {}), **pages}


def _view_values(
    view: View, about: dict[str, Any], talks: Sequence[Prompt], usd: float | None
) -> dict[str, Any]:
    """Return what the template needs of one view; ``about`` is for the scripts of the page."""
    board, links = view.board, Links(about.get("view", ""))
    protocols = list({part.protocol.base: part.protocol for part in board.parts}.values())
    about = {
        **about,
        "order": list(board.main.frame["model"]),
        "lang": next((protocol.language for protocol in protocols), ENGLISH).code,
        "invented": board.invented,
    }
    reasons = {check.reason for check in view.trust.checks}
    heads, lines = main_table(board, links, view.costs, ranked=not view.trust.failed)
    days = sorted(row.last[:10] for row in board.provenance if row.last)
    done = [view.headline.scope.rstrip(".")]
    done += [] if usd is None else [f"USD\u00a0{usd:,.2f}"]
    done += [f"{day.day}\u00a0{day:%b\u00a0%Y}" for day in map(date.fromisoformat, days[-1:])]
    return {
        "view": view,
        "board": board,
        "title": _title(view.headline),
        "gist": re.split(r"(\d+ of 100|(?<=humans pass in )\d+)", view.headline.lead),
        "done": ", ".join(done),
        "heads": heads,
        "lines": lines,
        "curve": success_curve(board, view.headline.leader, ranked=not view.trust.failed),
        "links": links,
        "main_checks": main_checks(check_lines(view.trust)),
        "other_reasons": [text for text in view.trust.reasons if text not in reasons],
        "explained": protocols,
        # Without the version that last asked otherwise: the page names one version.
        "signatures": list(
            dict.fromkeys(s.partition("|")[2] for t in board.tables for s in t.signatures)
        ),
        "prompts": [*_prompts(board, protocols), *talks],
        "about_json": inert(about),
    }


def _title(headline: Headline) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return the pieces of the sentence up to its bracket, and those from there on."""
    head: list[tuple[str, bool]] = []
    for i, (text, is_name) in enumerate(headline.pieces):
        before, bracket, after = ("", "", "") if is_name else text.partition(" (")
        if bracket:
            rest = [(f"({after}", False), *headline.pieces[i + 1 :]]
            return [*head, (f"{before} ", False)], rest
        head.append((text, is_name))
    return head, []


def text(name: str, package: str = "botchat.report") -> str:
    """Return the text of a file in a package's folder."""
    return resources.files(package).joinpath(name).read_text("utf-8")


def join_files(names: Iterable[str]) -> str:
    """Return the texts of some of our files, one after the other."""
    return "\n".join(map(text, names))


@cache
def template(name: str, package: str = "botchat.report") -> Template:
    """Return a page to fill in; what is filled in is shown as text."""
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(text(name, package))


def policy(script: str, *also: str, chunks: bool = False) -> str:
    """Return the Content-Security-Policy of a page: its inline script and ``also``, nothing else.

    ``chunks``: scripts in its folder, too.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"script-src 'sha256-{digest}'" + (" 'self'" if chunks else "")
    ours = ("default-src 'none'", scripts, "style-src 'unsafe-inline'")
    return "; ".join((*ours, *also, "base-uri 'none'", "form-action 'none'"))


def inert(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _prompts(board: Board, protocols: Sequence[Protocol]) -> list[Prompt]:
    """Return all prompts, in full."""
    asked = [Prompt(p.short or p.title, p.digest, p.texts) for p in protocols if p.texts]
    if not board.human_lengths:
        return asked
    language = protocols[0].language if protocols else ENGLISH
    digest, text = language.prompts_digest("generation"), language.text("generation")
    return [Prompt("dialogue generation", digest, [text]), *asked]
