"""Stage 3 on a workspace: judgments -> tables, figures and a page."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import ConfigError
from botchat.interfaces import Row, settings_digest
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.read_set import MOST_HELD_MB, Read, dialogue_megabytes, only_judge, read
from botchat.ratings.elo import EloSettings
from botchat.results import Piece, Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from botchat.workspace.jsonl import write_all

if TYPE_CHECKING:
    from botchat.boards.judge_agreement import AgreementReport
    from botchat.report import Beside, Prompt, View
    from botchat.report.figures import Chart

_UNTOLD = (
    "The page has no reader of dialogues: here are {:,} MB of judgments, {:,} MB of dialogues and "
    "{:,} contestants, and it takes at most {:,}, {:,} and {:,}."
)

MOST_READ = 300
"""Contestants up to which a page has its reader: a list of each pair's results on every seed takes
120 MB of 1,000."""

MOST_TOLD_MB = 200
"""Size of the judgments up to which they are packed beside the page; of dialogues: `MOST_HELD_MB`.
14 models in all protocols are 50 MB."""

KEPT = ("leaderboard.json", "leaderboard.md")
"""Files of a board that is kept by name."""


def leaderboard(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    *,
    out: Path | None = None,
    formats: Sequence[str] = (),
    opens: bool = False,
    keep: str | None = None,
    elo: EloSettings | None = None,
    meter: Meter | None = None,
) -> Result:
    """Rank a set's contestants by one judge's verdicts; write csv, md, json, svg and a page.

    The page has every judge that is named; tables are the first one's. ``opens`` the page in a
    browser; a board that is kept by a name stays there, `KEPT` of it.
    """
    # `botchat.boards` and `botchat.report` are imported while workers read: see `read`.
    meter = meter or Meter()
    folder = out or workspace.out(seed_set)
    beside = _beside(folder, keep) if keep is not None else None
    by_judge = workspace.judgment_files(seed_set)
    paged = [*dict.fromkeys(judges)] or only_judge(workspace, seed_set, None)
    files = [by_judge.get(name, {}) for name in paged]
    megabytes = sum(path.stat().st_size for by in files for path in by.values()) // 1_000_000
    spoken = int(dialogue_megabytes(workspace, seed_set))
    many = len(workspace.dialogue_files(seed_set))
    too_much = megabytes > MOST_TOLD_MB or spoken > MOST_HELD_MB or many > MOST_READ
    untold = _UNTOLD.format(megabytes, spoken, many, MOST_TOLD_MB, MOST_HELD_MB, MOST_READ)
    # A judge is checked beside all who judged, whoever is on the page.
    known = paged if too_much else [*paged, *by_judge]
    found = read(workspace, seed_set, known, in_columns=too_much)
    from botchat.boards import files as board_files
    from botchat.pipeline.ledger import total_cost

    views, reports = _views(workspace, found, elo, meter, paged)
    view = views[0]
    data = board_files.as_json(view.board, view.headline, view.trust)
    data |= board_files.by_seed(view.board, found.dialogues)
    texts = board_files.board_files(view.board, view.headline, view.trust, formats, data)
    write_all(folder, texts)
    if beside is not None:
        write_all(beside, {name: texts[name] for name in KEPT})
    write_charts(folder, view.charts)
    page = write_page(workspace, found, views, reports, folder, meter)
    if opens:
        webbrowser.open(page.absolute().as_uri())
    lines = [*view.board.notes, *[untold] * too_much]
    n = int(view.board.main.frame["complete"].max())
    done = f"{n:,} of {len(workspace.seeds(seed_set)):,} dialogues"
    if judged := [each for by in found.judged[view.board.judge].values() for each in by]:
        unreadable = sum(each.verdict is None for each in judged)
        done += f"; {unreadable:,} of {len(judged):,} verdicts unreadable"
        price = total_cost(workspace, found.dialogues, judged)
        done += "" if price is None else f". ${price:,.2f}"
    lines.append(done)
    return published(view, data, lines, page)


def published(view: View, data: Row, lines: Sequence[str], page: Path, **more: object) -> Result:
    """Return a board as written: its main numbers, what leads, the judge, and where its page is."""
    where = {"out": str(page.parent), "page": str(page), "notes": lines}
    shown: list[Piece] = [main_numbers(view), view.headline.sentence]
    if view.trust.level in ("do not trust", "not usable"):
        shown.reverse()
    shown += [view.trust.sentence(view.board.judge), *lines, f"Page: {page}"]
    return Result({**data, **where, **more}, shown, table=view.board.main)


def main_numbers(view: View) -> list[Row]:
    """Return a row a contestant: rank, the number of each protocol with its interval, and USD."""
    from botchat.report.main_table import numbers, protocol_columns, words

    main = view.board.main
    rows: list[Row] = [
        {"rank": place, "model": name}
        for place, name in zip(main.written("rank"), main.frame["model"], strict=True)
    ]
    for part in protocol_columns(view.board):
        heading = f"{words(part, part.ranking[0])[0].lower()} (95 % CI)"
        values, digits = numbers(part)
        for row in rows:
            known = [f"{value:.{digits}f}" for value in values.get(row["model"], ())]
            row[heading] = "{} ({}–{})".format(*known) if known else "–"
    if any(view.costs.values()):
        for row in rows:
            usd = view.costs.get(row["model"])
            row["USD/dialogue"] = "–" if usd is None else f"{usd:.4f}"
    return rows


def _beside(folder: Path, name: str) -> Path:
    """Where a board is kept; raises `ConfigError`."""
    beside = folder / name
    if re.fullmatch(r"\w[\w.-]*", name) and (not beside.exists() or (beside / KEPT[0]).is_file()):
        return beside
    raise ConfigError(
        f"--keep {name}: a board is kept in a folder of {folder}, so it is named with letters, "
        "digits, . _ and -, such as main or 2026-w47, and by no name that is there for other things"
    )


def write_charts(folder: Path, charts: Sequence[Chart]) -> None:
    """Write figures as svg; `botchat figure` draws them in other forms."""
    for chart in charts:
        jsonl.write_atomic(folder / f"{chart.name}.svg", chart.render("svg"))


def _views(
    workspace: Workspace,
    found: Read,
    elo: EloSettings | None,
    meter: Meter,
    judges: Sequence[str],
) -> tuple[list[View], Mapping[str, AgreementReport]]:
    """What the page shows of some judges, and of all who were read, by protocol."""
    from botchat.pipeline.ledger import conversation_costs
    from botchat.report import View

    meter.begin("count and rate", len(judges))
    reports: Mapping[str, AgreementReport] = {}
    if len(found.judged) > 1:
        from botchat.pipeline.agree import set_reports

        reports = set_reports(workspace, found)
    costs, views = conversation_costs(workspace, found.dialogues), []
    for judge in judges:
        views.append(View.of(found.board(judge, elo), label_row(judge, reports), costs))
        meter.done += 1
    return views, reports


def label_row(judge: str, reports: Mapping[str, AgreementReport]) -> Row | None:
    """The judge's row beside human labels, if there are any."""
    from botchat.boards.judge_agreement import HUMAN_LABELS

    labelled = (report for report in reports.values() if report.labels == HUMAN_LABELS)
    rows = (row for report in labelled for row in report.judges)
    return next((row for row in rows if row["judge"] == judge), None)


def write_page(
    workspace: Workspace,
    found: Read,
    views: Sequence[View],
    reports: Mapping[str, AgreementReport],
    folder: Path,
    meter: Meter,
) -> Path:
    """Write the page of some boards with their figures, and its chunks; the page's path.

    What is in columns has no reasons to tell: such a page has no reader.
    """
    from botchat import report as pages
    from botchat.report import archive

    compared = _compared(reports) if len(views) > 1 else []
    talks = [part for one in views for part in _panel_prompts(workspace, one.board.judge, found)]
    judged = {one.board.judge: found.judged[one.board.judge] for one in views}
    chunks = None
    if not any(found.columns.values()) and len(found.dialogues) <= MOST_READ + 1:  # and people
        meter.begin("pack transcripts", 0)
        chunks = archive.build(found.seeds, found.dialogues, judged, found.catalogue)
    written = pages.files(views, chunks, compared, talks)
    write_all(folder, written)
    for path in {*(folder / archive.FOLDER).glob("*.js")} - {folder / name for name in written}:
        path.unlink(missing_ok=True)  # of an earlier, larger page
    return folder / "index.html"


def _compared(reports: Mapping[str, AgreementReport]) -> list[Beside]:
    """What the judges say beside each other, a protocol each."""
    from botchat import report as pages
    from botchat.boards import judge_agreement
    from botchat.report.figures import judge_charts

    return [
        pages.Beside(
            report.subject,
            [*report.sentences, *report.notes],
            [part for part in judge_agreement.tables(report) if part.name != "rankings"],
            judge_charts(report),
        )
        for report in sorted(reports.values(), key=lambda report: not report.labels)
    ]


def _panel_prompts(workspace: Workspace, judge: str, found: Read) -> list[Prompt]:
    """Roles and prompts of a judge that is a panel, as its settings are now."""
    from botchat import report as pages
    from botchat.judges.panel import wording
    from botchat.pipeline.run.contestants import panel_of

    settings = panel_of(workspace, judge)
    judged = found.catalogue.among(found.judged[judge]).values()
    subjects = sorted({protocol.subject for protocol in judged})
    told = wording(settings, found.catalogue.language, subjects) if settings else {}
    texts = [f"{title}\n\n{text}" for title, text in told.items()]
    return [pages.Prompt(f"panel {judge}", settings_digest(told), texts)] if told else []
