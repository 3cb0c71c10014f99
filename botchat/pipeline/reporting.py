"""The page of a workspace's set: boards of one or several judges, figures, transcripts, chunks."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from botchat import leaderboards, store
from botchat.errors import ConfigError, MissingError
from botchat.generation import human_dialogue
from botchat.interfaces import case_digest
from botchat.leaderboards import Board
from botchat.measures.flagged import Survey
from botchat.pipeline.running import Meter
from botchat.pipeline.surveying import survey
from botchat.pipeline.verdict_files import read_columns
from botchat.pipeline.workspace import Workspace
from botchat.protocols.verdicts import Verdicts
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogue, Judgment, Seed

if TYPE_CHECKING:
    from botchat.plots import Chart

MOST_TOLD_MB = 200
"""Judgments that `botchat leaderboard` packs beside its page; `botchat report` packs any number.
14 models in all protocols are 50 MB."""

Judgments = Mapping[str, Sequence[Judgment]]
"""Protocol -> judgments."""


@dataclass(frozen=True)
class Read:
    """A set as it is on disk, without judgments of dialogues that have changed since."""

    seed_set: str
    seeds: list[Seed]
    dialogues: dict[str, dict[str, Dialogue]]
    """Contestant -> seed id -> dialogue; of ``human`` too."""
    judged: dict[str, dict[str, list[Judgment]]]
    """Judge -> protocol -> judgments, in the order asked for, else who has judged most first."""
    columns: dict[str, dict[str, Verdicts]]
    """Judge -> protocol -> verdicts on pairs, of a set too large for them to be in ``judged``."""
    stale: dict[str, int]
    """Judge -> judgments that are about dialogues that have changed."""

    @cached_property
    def surveyed(self) -> Survey:
        """What the dialogues show without a judge."""
        protocols = {protocol for judged in self.judged.values() for protocol in judged}
        protocols |= {protocol for columns in self.columns.values() for protocol in columns}
        return survey(self.seeds, self.dialogues, leaderboards.turns_judged(protocols))

    def board(self, judge: str, elo: EloSettings | None = None) -> Board:
        """One judge's numbers."""
        board = leaderboards.build(
            self.seeds,
            self.dialogues,
            {**self.judged[judge], **self.columns.get(judge, {})},
            seed_set=self.seed_set,
            judge=judge,
            elo=elo,
            surveyed=self.surveyed,
        )
        if not self.stale[judge]:
            return board
        note = (
            f"{self.stale[judge]} judgments are about dialogues that have changed since and do "
            "not count; run the judge again."
        )
        return replace(board, notes=(*board.notes, note))


def read(
    workspace: Workspace, seed_set: str, judges: Sequence[str] = (), *, in_columns: bool = False
) -> Read:
    """A set with the judgments of some judges, by default of all.

    Args:
        workspace: where they are.
        seed_set: name of the set.
        judges: their names.
        in_columns: read those on pairs into columns: a tenth of the memory, and no reasons.

    Raises:
        MissingError: no judgments, or none by a judge that is named.
    """
    gc.disable()  # records do not refer in circles, and looking for that takes longer than reading
    try:
        return _read(workspace, seed_set, judges, in_columns)
    finally:
        gc.freeze()
        gc.enable()


def _read(workspace: Workspace, seed_set: str, judges: Sequence[str], in_columns: bool) -> Read:
    seeds = workspace.seeds(seed_set)
    files = workspace.judgment_files(seed_set)
    if not files:
        raise MissingError(
            f"no judgments in {workspace.root / 'judgments' / seed_set}; make some with: "
            f"botchat judge arena --seeds {seed_set} --judge rules"
        )
    for judge in judges:
        if judge not in files:
            raise MissingError(
                f"{judge!r} has not judged {seed_set}; judges who have: {', '.join(sorted(files))}"
            )
    dialogues = {
        HUMAN: {seed.id: human_dialogue(seed) for seed in seeds},
        **workspace.all_dialogues(seed_set),
    }
    found = Read(seed_set, seeds, dialogues, {}, {}, {})
    for judge in dict.fromkeys(judges) or sorted(files):
        of_pairs = {
            protocol: path
            for protocol, path in files[judge].items()
            if in_columns and leaderboards.compares_pairs(protocol)
        }
        made = {
            protocol: list(workspace.judgments(path).values())
            for protocol, path in files[judge].items()
            if protocol not in of_pairs
        }
        found.judged[judge], found.stale[judge] = _current(made, dialogues)
        if of_pairs:
            found.columns[judge], stale = read_columns(of_pairs, dialogues)
            found.stale[judge] += stale
    if judges:
        return found
    # Who has judged most says most; it is what the page opens with.
    by_number = sorted(found.judged.items(), key=lambda one: -sum(map(len, one[1].values())))
    return replace(found, judged=dict(by_number))


def only_judge(workspace: Workspace, seed_set: str, judge: str | None) -> str | None:
    """The judge to take where a command takes one.

    Raises:
        ConfigError: none is named and several have judged.
    """
    known = sorted(workspace.judgment_files(seed_set)) if judge is None else [judge]
    if len(known) > 1:
        raise ConfigError(
            f"several judges have judged {seed_set}: name one with --judge: {', '.join(known)}"
        )
    return known[0] if known else None


def too_much_for_a_page(workspace: Workspace, seed_set: str, judge: str | None) -> int:
    """Megabytes of a judge's judgments, where they are more than a quick page tells; else 0."""
    files = workspace.judgment_files(seed_set).get(judge or "", {})
    megabytes = sum(path.stat().st_size for path in files.values()) // 1_000_000
    return megabytes if megabytes > MOST_TOLD_MB else 0


def report(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    out: Path | None = None,
    elo: EloSettings | None = None,
    meter: Meter | None = None,
) -> Path:
    """Write the page alone, of some judges (default: all); its path.

    Args:
        workspace: where the judgments are.
        seed_set: name of the set.
        judges: whose verdicts; the first is shown first.
        out: folder to write to; default ``leaderboards/<set>``.
        elo: how the Arena is rated; default: the paper's way.
        meter: told of the progress.
    """
    from botchat import plots

    meter = meter or Meter()
    found = read(workspace, seed_set, judges)
    meter.begin("count and rate", len(found.judged))
    shown = []
    for judge in found.judged:
        board = found.board(judge, elo)
        shown.append((board, plots.draw(board)))
        meter.done += 1
    return write_page(found, shown, workspace.out(seed_set) if out is None else out, meter)


def write_page(
    found: Read, shown: Sequence[tuple[Board, Sequence[Chart]]], folder: Path, meter: Meter
) -> Path:
    """Write the page of some boards with their figures, and its chunks; the page's path.

    What is in columns has no reasons to tell: such a page has samples only.
    """
    from botchat import report as pages
    from botchat.report import archive, comparison, transcripts

    views = [
        pages.View(
            board,
            charts,
            pages.by_contestant(
                board,
                transcripts.pick(found.dialogues, found.judged[board.judge].get("unieval", ())),
            ),
        )
        for board, charts in shown
    ]
    judged = {board.judge: found.judged[board.judge] for board, _ in shown}
    chunks = None
    if not found.columns:
        meter.begin("pack transcripts", 0)
        chunks = archive.build(found.seeds, found.dialogues, judged)
        for name, text in chunks.files.items():
            store.write_atomic(folder / name, text.encode())
        for path in _left_over(folder, chunks.files):
            path.unlink(missing_ok=True)
    boards = [board for board, _ in shown]
    compared = comparison.compare(boards, judged) if len(boards) > 1 else []
    page = folder / "index.html"
    store.write_atomic(page, pages.render(views, chunks, compared).encode())
    return page


def plot(
    workspace: Workspace,
    seed_set: str,
    name: str,
    out: Path,
    judge: str | None = None,
    elo: EloSettings | None = None,
) -> Path:
    """Write one figure, as svg or png by the ending of ``out``; its path.

    Raises:
        ConfigError: an ending that is neither, or several judges and none named.
        MissingError: no such figure of these judgments; says which there are.
    """
    from botchat import plots

    kind = out.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError(f"--out {out}: a figure is written as .svg or .png")
    chosen = only_judge(workspace, seed_set, judge)
    found = read(workspace, seed_set, [chosen] if chosen else [])
    charts = {chart.name: chart for chart in plots.draw(found.board(next(iter(found.judged)), elo))}
    if name not in charts:
        raise MissingError(f"no figure {name!r} of {seed_set}; there are: {', '.join(charts)}")
    chart = charts[name]
    store.write_atomic(out, chart.svg.encode() if kind == ".svg" else chart.png)
    return out


def _left_over(folder: Path, files: Mapping[str, str]) -> Iterator[Path]:
    """Chunks of an earlier, larger page."""
    known = {folder / name for name in files}
    for parent in {path.parent for path in known}:
        yield from (path for path in sorted(parent.glob("*.js")) if path not in known)


def _current(
    judged: Judgments, dialogues: Mapping[str, Mapping[str, Dialogue]]
) -> tuple[dict[str, list[Judgment]], int]:
    """The judgments of the dialogues as they are now, and how many are of others.

    Judgments of a contestant or seed that is not there any more are neither.
    """
    kept: dict[str, list[Judgment]] = {}
    stale = 0
    for protocol, judgments in judged.items():
        kept[protocol] = []
        for judgment in judgments:
            found = [dialogues.get(name, {}).get(judgment.seed_id) for name in judgment.contestants]
            # UniEval shows the whole dialogue, the others as much as both have.
            end = judgment.shown if len(found) > 1 else None
            shown = [d.utterances[:end] for d in found if d is not None]
            if len(shown) < len(found):
                continue
            if case_digest(protocol, *shown) == judgment.case:
                kept[protocol].append(judgment)
            else:
                stale += 1
    return kept, stale
