"""Stage 3 on a workspace: judgments -> tables, a page, and figures chosen by name."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import MissingDataError, NotWritten, UsageError, did_you_mean, listed
from botchat.frames import fill_lines
from botchat.interfaces import Row, settings_digest
from botchat.pipeline.ledger import call_texts
from botchat.pipeline.load import SeedSetData, judged_by, judged_files, load, only_judge
from botchat.pipeline.spending import Meter
from botchat.records import JudgeId, Seeds, Texts
from botchat.results import Piece, Result
from botchat.workspace.folder import PORTABLE, Workspace
from botchat.workspace.jsonl import write_all

if TYPE_CHECKING:
    from botchat.boards.judge_agreement import AgreementReport
    from botchat.report.figures import Chart
    from botchat.report.page import Prompt, View

MOST_IN_READER = 200, 200, 300
"""MB of judgments, MB of dialogues and contestants up to which a page has its reader. 14 models in
all protocols are 50 MB; each pair's results on every seed are 120 MB for 1,000 contestants."""

KEPT = ("leaderboard.json", "leaderboard.md")
"""Files of a board that is kept by name."""

ENDING = r".*\.(csv|html|js|json|jsonl|md|parquet|png|svg|tex|txt)"
"""Name of what is in a board's folder; no board is kept under such a name."""


def leaderboard(
    workspace: Workspace,
    seed_set: str,
    judges: Texts,
    meter: Meter,
    *,
    out: Path | None = None,
    formats: Texts = (),
    opens: bool = False,
    keep: str | None = None,
    seeds: Seeds | None = None,
) -> Result:
    """Rank a set's contestants by one judge's verdicts; write csv, md, json, svg and a page.

    The page has every judge that is named; tables are the first one's. ``opens`` the page in a
    browser; a board that is kept by a name stays there, `KEPT` of it. ``seeds``: the set, if it
    was read.
    """
    folder = out or workspace.out(seed_set)
    kept = None
    if keep is not None:
        kept = _kept_folder(folder, keep)
    if seeds is None:
        seeds = workspace.seeds(seed_set)
    by_judge = judged_files(workspace, seed_set)
    paged = [judged_by(judge, by_judge) for judge in dict.fromkeys(judges)]
    if not paged:
        paged = [only_judge(workspace, seed_set, by_judge)]
    # A judge is checked with all judges of the set, on the page or not, if they are not too much.
    loaded = paged + list(by_judge)
    sizes = _sizes(workspace, seed_set, by_judge.values())
    if sizes[0] > MOST_IN_READER[0]:
        loaded = paged
        sizes = _sizes(workspace, seed_set, [by_judge.get(judge, {}) for judge in paged])
    large = any(size > most for size, most in zip(sizes, MOST_IN_READER, strict=True))
    data = load(workspace, seed_set, loaded, large=large, seeds=seeds, files=by_judge)
    from botchat.boards import files as board_files
    from botchat.report.figures import svg_files

    views, reports = _views(data, meter, paged)
    view = views[0]
    content = board_files.as_json(view.board, view.headline, view.trust)
    content |= board_files.by_seed(view.board, data.dialogues)
    content["protocols"] = view.agreement
    texts = board_files.board_files(view.board, view.headline, view.trust, formats, content)
    judgments = data.judgments_of(paged[0])
    lines = fill_lines(
        "pipeline/board_lines.txt",
        view=view,
        is_large=large,
        sizes=sizes,
        most=MOST_IN_READER,
        seeds=seeds,
        n_judged=len(judgments),
        n_unreadable=sum(judgment.verdict is None for judgment in judgments),
        meter=meter,
    )
    page: Path | None = folder / "index.html"
    try:
        write_all(folder, texts)
        if kept is not None:
            write_all(kept, {name: texts[name] for name in KEPT})
            lines.append(f"Kept as {seed_set}/{keep}. Stored: nothing was sent.")
        write_all(folder, svg_files(view.charts))
        _write_page(data, views, reports, folder, meter)
    except NotWritten as error:
        page = None
        lines.append(f"Files are not written: {error}.")
    if opens and page is not None:
        webbrowser.open(page.absolute().as_uri())
    return board_result(view, content, lines, page)


def _sizes(
    workspace: Workspace, seed_set: str, judged: Iterable[Mapping[str, Path]]
) -> tuple[int, int, int]:
    """Return MB of judgments, MB of dialogues and number of contestants, as `MOST_IN_READER`."""
    dialogues = workspace.dialogue_files(seed_set)
    judgments = chain.from_iterable(by_protocol.values() for by_protocol in judged)
    return _megabytes(judgments), _megabytes(dialogues), len(dialogues)


def _megabytes(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths) // 1_000_000


def _kept_folder(folder: Path, name: str) -> Path:
    """Return where a board is kept; raises `ConfigError`."""
    from botchat.report.archive import FOLDER

    kept = folder / name
    if re.fullmatch(r"\w[\w.-]*", name):
        is_free = not kept.exists() and not re.fullmatch(ENDING, name) and name != FOLDER
        if (kept / KEPT[0]).is_file() or (is_free and re.fullmatch(PORTABLE + ".*", name)):
            return kept
    raise UsageError(
        f"--keep {name}: a board is kept in a folder of {folder}, so it is named with letters, "
        "digits, . _ and -, such as main or 2026-w47, and by no name that is there for other things"
    )


def board_result(
    view: View, content: Row, lines: Texts, page: Path | None, **more: object
) -> Result:
    """Return a board: its main numbers, headline, judge, and where its page is, if written."""
    from botchat.report.first_screen import printed_rows

    pieces: list[Piece] = [printed_rows(view.board, view.costs), view.headline.sentence]
    if view.trust.failed:
        pieces.reverse()
    if view.headline.lead:
        pieces.append(view.headline.lead)
    if not view.board.is_of_votes:
        pieces.append(view.trust.sentence(view.board.judge))
    pieces += lines
    data = {**content, "out": None, "page": None, "notes": lines, **more}
    if page is not None:
        pieces.append(f"Page: {page}")
        data.update(out=str(page.parent), page=str(page))
    return Result(data, pieces, table=view.board.main)


def _views(
    data: SeedSetData, meter: Meter, judges: Texts
) -> tuple[list[View], Mapping[str, AgreementReport]]:
    """Return the page's view of some judges, and the agreement of all by protocol."""
    from botchat.boards.judge_checks import label_checks
    from botchat.pipeline.agree import set_reports
    from botchat.report.page import View

    meter.begin("count and rate", len(judges))
    reports = set_reports(data)
    labelled = label_checks(reports, data.catalogue)
    views = []
    for judge in judges:
        usd = None
        if not data.large:  # else not all of its calls are known
            usd = data.costs.by_judge[judge]
        views.append(View.of(data.board(judge), labelled.get(judge), data.costs.per_dialogue, usd))
        meter.done += 1
    return views, reports


def _write_page(
    data: SeedSetData,
    views: Sequence[View],
    reports: Mapping[str, AgreementReport],
    folder: Path,
    meter: Meter,
) -> None:
    """Write a page a judge with all that it loads.

    The page of a large set has no reader.
    """
    from botchat.report import archive
    from botchat.report import page as pages
    from botchat.report.figures import judge_charts

    judges = [view.board.judge for view in views]
    prompts = []
    for judge in judges:
        prompts += _panel_prompts(data, judge)
    chunks = None
    if not data.large:
        meter.begin("write the page", 0)
        people = [name for name in data.judgments if JudgeId.parse(name).is_annotator()]
        chunks = archive.build(
            data.seeds,
            data.dialogues,
            {name: data.judgments[name] for name in [*judges, *people]},
            data.catalogue,
            partial(call_texts, data.workspace),
        )
    compared = []
    for name, each in reports.items():
        compared.append(pages.JudgeComparison(name, each, list(judge_charts(each))))
    compared.sort(key=lambda one: not one.report.labels)  # those with human labels first
    files = pages.files(views, chunks, compared, prompts)
    listed = folder / archive.FOLDER / "files.txt"
    earlier = []
    if listed.is_file():
        earlier = listed.read_text("utf-8").splitlines()
    write_all(folder, {**files, f"{archive.FOLDER}/files.txt": "\n".join(sorted(files))})
    for pattern in (f"{archive.FOLDER}/*.js", "judge-*.html"):
        for path in sorted(folder.glob(pattern)):
            name = path.relative_to(folder).as_posix()
            if name in earlier and name not in files:  # what others wrote stays
                path.unlink(missing_ok=True)


def _panel_prompts(data: SeedSetData, judge: str) -> list[Prompt]:
    """Return roles and prompts of a judge that is a panel, as its settings are now."""
    from botchat.judges.panel import wording
    from botchat.pipeline.contestants import panel_of
    from botchat.report import page as pages

    settings = panel_of(data.workspace, judge)
    if settings is None:
        return []
    protocols = data.catalogue.among(data.verdicts[judge]).values()
    subjects = sorted({protocol.subject for protocol in protocols})
    texts = wording(settings, data.catalogue.language, subjects)
    if not texts:
        return []
    shown = [f"{title}\n\n{text}" for title, text in texts.items()]
    return [pages.Prompt(f"panel {judge}", settings_digest(texts), shown)]


def charts_of(workspace: Workspace, seed_set: str, name: str, judge: str | None) -> list[Chart]:
    """Return a figure by its name, or all of a board; raises as `botchat.plot`."""
    from botchat.pipeline.agree import set_reports
    from botchat.report.figures import judge_charts

    why = ""
    if judge is None and name.startswith(("cost-agreement", "judge-agreement")):
        charts = []
        for protocol, report in set_reports(load(workspace, seed_set)).items():
            for chart in judge_charts(report):
                charts.append(replace(chart, name=f"{chart.name}-{protocol}"))
    else:
        files = judged_files(workspace, seed_set)
        judge = only_judge(workspace, seed_set, files, judge)
        people = [name for name in files if JudgeId.parse(name).is_annotator()]
        data = load(workspace, seed_set, [judge, *people], files=files)
        [view], _ = _views(data, Meter(), [judge])
        charts = list(view.charts)
        if view.trust.failed:  # as its page, it has no figure that ranks
            why = f" ({view.headline.sentence})"
    matches = [chart for chart in charts if name in ("", chart.name)]
    if not matches:
        names = [chart.name for chart in charts]
        known = listed(names) or "none, since fewer than two judges have judged the same"
        raise MissingDataError(
            f"no figure {name!r} of {seed_set}{did_you_mean(name, names)}; some are: {known}{why}"
        )
    return matches
