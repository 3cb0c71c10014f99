"""The page: one HTML file a judge, with its table, its figures, all dialogues and all verdicts.

Tables and figures are complete without a script; it only sorts, and reads dialogues from the chunks
in the page's folder (`botchat.report.archive`). Its Content-Security-Policy forbids all else.

A new part of the page is in ``page.html``, with a script and a style sheet next to it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from botchat.boards.board import Board
from botchat.boards.headline import Headline, headline
from botchat.boards.judge_checks import Check, JudgeTrust, judge_trust
from botchat.frames import fill, package_text
from botchat.languages import ENGLISH, Language
from botchat.metrics.statistics import rank_correlations
from botchat.protocols.protocol import Protocol
from botchat.records import VERSION, Texts
from botchat.report.archive import FOLDER, Archive
from botchat.report.contract import PageAbout
from botchat.report.first_screen import (
    Bar,
    Costs,
    Line,
    Links,
    main_table,
    percent,
    success_curve,
)
from botchat.report.remarks import (
    judge_remarks,
    more_dialogues,
    protocol_agreement,
    stopped_remarks,
)

if TYPE_CHECKING:
    from botchat.boards.judge_agreement import AgreementReport
    from botchat.report.figures import Chart

SCRIPTS = ("core.js", "board.js", "dialogues.js", "pair.js", "reader.js")
STYLES = ("paper.css", "page.css", "reader.css")
"""Files in the order in which they build on each other."""

MARKS = {"no fault found": "✓", "use with care": "!", "not tested": "?", "do not trust": "✕"}
"""Trust level of a judge -> its mark."""

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle "
    "cx='8' cy='8' r='6' fill='none' stroke='%23a83c0e' stroke-width='2.5' "
    "stroke-dasharray='3 2'/%3E%3C/svg%3E"
)


class View(NamedTuple):
    """A board with its headline, its judge's trust level and its figures."""

    board: Board
    headline: Headline
    trust: JudgeTrust
    charts: Sequence[Chart]
    more: str
    """See `more_dialogues`."""
    remarks: list[str]
    """See `judge_remarks` and `stopped_remarks`."""
    agreement: str
    """See `protocol_agreement`."""
    costs: Costs
    usd: float | None
    """Cost of everything, where known."""

    @classmethod
    def of(
        cls,
        board: Board,
        labelled: Check | None = None,
        costs: Costs | None = None,
        usd: float | None = None,
    ) -> View:
        """Make the view of a board; ``labelled``: `label_check` of its judge, if any."""
        from botchat.report.figures import board_charts

        trust = judge_trust(board, labelled)
        begin = headline(board, trust)
        if trust.failed:
            board = board.unranked()
        return cls(
            board,
            begin,
            trust,
            list(board_charts(board, costs)),
            more_dialogues(board, begin.leader, usd),
            judge_remarks(board, begin.leader) + stopped_remarks(board),
            protocol_agreement(board),
            costs or {},
            usd,
        )


class JudgeComparison(NamedTuple):
    """Agreement of several judges in one protocol, as `botchat agree` has it, with its figures."""

    protocol: str
    report: AgreementReport
    charts: Sequence[Chart]


class Ranking(NamedTuple):
    """A judge's ranking beside that of the page's judge."""

    judge: str
    lines: Sequence[Line]
    tau: float
    """See `_tau`."""


class Prompt(NamedTuple):
    """A prompt in full, with its title."""

    title: str
    digest: str
    texts: Texts


def files(
    views: Sequence[View],
    archive: Archive | None = None,
    compared: Sequence[JudgeComparison] = (),
    talks: Sequence[Prompt] = (),
) -> dict[str, str]:
    """Return a page a judge and all that they load: path -> content; same input, same bytes.

    ``views``: of at least one judge, all on one seed set. ``archive``: the dialogues, and the
    verdicts of these judges in this order and perhaps of others; without one nothing can be read.
    ``compared``: a protocol each. ``talks``: roles and prompts of judges that are panels.
    """
    archive = archive or Archive()
    pages = dict(archive.files)
    judges = {}
    for place, view in enumerate(views):
        judges[f"judge-{place + 1}.html" if place else "index.html"] = view
    for page in judges:
        pages[page] = _page(page, judges, archive, compared, talks)
    return pages


def _page(
    page: str,
    judges: Mapping[str, View],
    archive: Archive,
    compared: Sequence[JudgeComparison],
    talks: Sequence[Prompt],
) -> str:
    """Return a page; ``judges``: the view of each page by its file."""
    view = judges[page]
    board = view.board
    protocols = list({part.protocol.base: part.protocol for part in board.parts}.values())
    language = protocols[0].language if protocols else ENGLISH
    links = Links(archive.view)
    heads, lines = main_table(board, links, view.costs, ranked=not view.trust.failed)
    about = PageAbout(
        folder=FOLDER,
        view=links.view,
        protocols=archive.protocols,
        pages=list(judges),
        judge=list(judges).index(page),
        order=board.main.models,
        lang=language.code,
        invented=board.invented,
    )
    rankings = []
    for each in judges.values():
        if not each.trust.failed:
            _, rows = main_table(each.board, Links(), {})
            rankings.append(Ranking(each.board.judge, rows, _tau(board, each.board)))
    checks: dict[str, Check] = {}
    for each in judges.values():
        for check in each.trust.checks:
            checks.setdefault(check.name, check)
    signatures = chain.from_iterable(table.signatures for table in board.tables)
    script = join_files(SCRIPTS)
    filled = fill(
        "report/page.html",
        LEVEL_MARKS=MARKS,
        icon=ICON,
        style=join_files(STYLES),
        script=script,
        policy=policy(script, scripts=" 'self'", images="img-src data:; "),
        version=VERSION,
        view=view,
        gist=re.split(r"(\d+ of 100|(?<=people in )\d+|\d+ %)", view.headline.lead),
        heads=heads,
        lines=lines,
        curve=success_curve(board, view.headline.leader, ranked=not view.trust.failed),
        links=links,
        checks=checks,
        Bar=Bar,
        percent=percent,
        explained=protocols,
        # Without the version that last asked otherwise: the page names one version.
        signatures=list(dict.fromkeys(text.partition("|")[2] for text in signatures)),
        prompts=_prompts(board, protocols, language) + list(talks),
        about_json=inert(about),
        judges=judges,
        compared=compared,
        rankings=rankings,
        log10=math.log10,
    )
    return filled.rstrip()


def _tau(board: Board, other: Board) -> float:
    """Return Kendall's tau of two boards' rankings; nan where they rank nothing in common."""
    ranks = board.main.by_model[["rank"]].join(other.main.by_model["rank"].rename("other"))
    own, others = ranks.dropna().to_numpy(float).T
    return float(rank_correlations(own, others)[1])


def text(name: str) -> str:
    """Return the text of a file in this folder."""
    return package_text(f"report/{name}")


def join_files(names: Iterable[str]) -> str:
    """Return the texts of some of our files, one after the other."""
    return "\n".join(map(text, names))


def policy(script: str, scripts: str = "", images: str = "") -> str:
    """Return the Content-Security-Policy of a page: its inline script, and nothing else.

    ``scripts``: where others may come from; ``images``: the directive of images.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'{scripts}; style-src 'unsafe-inline'; "
        f"{images}base-uri 'none'; form-action 'none'"
    )


def inert(value: object) -> str:
    """Return JSON that cannot end the script element it stands in."""
    plain = msgspec.to_builtins(value)
    text = json.dumps(plain, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _prompts(board: Board, protocols: Sequence[Protocol], language: Language) -> list[Prompt]:
    prompts = [Prompt(p.short or p.title, p.digest, p.texts) for p in protocols if p.texts]
    if board.human_lengths:
        digest = language.prompts_digest("generation")
        prompts.insert(0, Prompt("dialogue generation", digest, [language.text("generation")]))
    return prompts
