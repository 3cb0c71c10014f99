"""Figures of a board, and the stages of a set as data frames: of commands and of notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from botchat.cli.flags import Here, set_named, workspace_at
from botchat.errors import UsageError
from botchat.pipeline.load import judged_files, load, only_judge
from botchat.records import Dialogue, Judgment, Seed
from botchat.results import Result
from botchat.workspace.jsonl import write_all, write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from botchat.boards.board import Board
    from botchat.report.figures import Chart
    from botchat.workspace.folder import Workspace


@dataclass(frozen=True)
class Run:
    """A seed set for notebooks, every stage as a data frame, read when it is first asked for.

    Columns are the fields of `botchat.records`, as in the files.
    """

    workspace: Workspace
    seed_set: str

    @cached_property
    def seeds(self) -> DataFrame:
        """A human dialogue a row."""
        return _frame(self.workspace.seeds(self.seed_set), Seed)

    @cached_property
    def generations(self) -> DataFrame:
        """One row a generated dialogue that begins with a ChatSEED of the set as it is now."""
        dialogues = self.workspace.all_dialogues(self.seed_set, unanswered=True)
        by_contestant = (by_seed.values() for by_seed in dialogues.values())
        return _frame(chain.from_iterable(by_contestant), Dialogue)

    @cached_property
    def judgments(self) -> DataFrame:
        """One row a judgment on the dialogues as they are now."""
        judgments = []
        files = self.workspace.judgment_files(self.seed_set)
        if files:
            data = load(self.workspace, self.seed_set, files=files)
            for judge in data.judgments:
                judgments += data.judgments_of(judge)
        return _frame(judgments, Judgment)

    def board(self, judge: str | None = None) -> Board:
        """Return one judge's board; ``judge`` may be left out where only one has judged."""
        files = judged_files(self.workspace, self.seed_set)
        judge = only_judge(self.workspace, self.seed_set, files, judge)
        return load(self.workspace, self.seed_set, [judge], files=files).board(judge)

    def __repr__(self) -> str:
        """Name set and folder, in one line."""
        return f"<Run on {self.seed_set} in {self.workspace.root}>"


def _frame(records: Iterable[msgspec.Struct], kind: type[msgspec.Struct]) -> DataFrame:
    """A row a record and a column a field, as in a stage file; what is not known is missing."""
    from pandas import DataFrame  # which no run needs

    rows = msgspec.to_builtins(list(records))
    return DataFrame(rows, columns=list(kind.__struct_fields__))


def write_figures(
    charts: Sequence[Chart], out: Path, *, form: str | None, size: str, titled: bool
) -> Result:
    """Write figures, several of them with their captions; return the paths.

    ``out``: a folder, or for one figure a file. ``form``: by default that of the file's ending, or
    svg. The same arguments give the same bytes.
    """
    from botchat.report.figures import FORMATS, captions, read_size

    width, height = read_size(size)
    ending = out.suffix.removeprefix(".")
    if ending not in FORMATS:
        ending = ""
    elif len(charts) > 1:
        raise UsageError(f"--out {out}: several figures need a folder; name one, such as ratings")
    elif form not in (None, ending):
        raise UsageError(f"--format {form}, but --out {out} ends with .{ending}; leave one out")
    form = form or ending or "svg"
    if form not in FORMATS:
        raise UsageError(f"--format {form}: a figure is written as {', '.join(FORMATS)}")
    paths = [out / f"{chart.name}.{form}" for chart in charts]
    if ending:
        paths = [out]
    for chart, path in zip(charts, paths, strict=True):
        write_atomic(path, replace(chart, titled=titled).render(form, width, height))
    if len(charts) > 1:
        write_all(out, captions(charts, form))
    lines = [str(path) for path in paths]
    return Result({"rows": [{"figure": line} for line in lines]}, lines)


def plot(
    name: str,
    *,
    seeds: str = "",
    judge: str | None = None,
    size: tuple[float, float | None] | None = None,
    workspace: Here = None,
) -> Figure:
    """Return one of a board's figures as a figure of matplotlib, for a notebook.

    Neither the caller's ``rcParams`` nor the backend change.

    Args:
        name: such as ratings; those that compare judges end with the protocol
        seeds: seed set ([run] seeds, or the only one)
        judge: judge to show (needed if several have judged)
        size: width and height in inches (a paper's page); a height of None is as high as needed
        workspace: a folder (the current one)

    Raises:
        ConfigError: several judges and none named, or a size that cannot be.
        MissingDataError: no such figure of these judgments; names those available.
    """
    from botchat.pipeline.leaderboard import charts_of
    from botchat.report.figures import WIDTH

    place = workspace_at(workspace)
    width, height = size or (WIDTH, None)
    return charts_of(place, set_named(place, seeds), name, judge)[0].figure(width, height)


def read(workspace: Here = None, seeds: str = "") -> Run:
    """Return the run on a set: ``.seeds``, ``.generations``, ``.judgments``, ``.board(judge)``.

    Args:
        workspace: a folder (the current one)
        seeds: seed set ([run] seeds, or the only one)

    Raises:
        MissingDataError: there is no such set.
    """
    place = workspace_at(workspace)
    run_read = Run(place, set_named(place, seeds))
    place.seeds(run_read.seed_set)
    return run_read
