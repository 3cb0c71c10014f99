"""A paper's experiment run again: its judges asked K times, its table with ours beside its numbers.

The same for a benchmark alone: a judge in several runs, or a panel at every point of a grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from botchat.arguments import JudgeName, Spending
from botchat.boards.judge_agreement import Findings
from botchat.boards.tables import Table
from botchat.errors import ConfigError, LimitReached, MissingError, did_you_mean
from botchat.interfaces import Row
from botchat.judges.controls import BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED
from botchat.judges.samples import asked_once
from botchat.models.self_chat import Length
from botchat.papers import experiments
from botchat.papers.bench import (
    BENCHMARKS,
    COLUMNS,
    Answering,
    Benchmark,
    ByProtocol,
    first_of,
    judgments_of,
    made_of,
    set_of,
)
from botchat.papers.experiments import SINGLE, Asked, Experiment
from botchat.papers.metrics import PEOPLE
from botchat.papers.requests import Benching
from botchat.pipeline.agree import Compared, Options, publish, signature
from botchat.pipeline.run import ask as stage
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Cases, StageResult
from botchat.pipeline.run.contestants import full_name, panel_of
from botchat.pipeline.run.plan import PlanningSession
from botchat.pipeline.run.session import Session, in_session
from botchat.pipeline.run.work import Meter, Stops
from botchat.records import Judgment
from botchat.workspace import files, panels
from botchat.workspace.folder import Workspace

CONTROLS = (BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED)
"""Endings of the names of judges that no experiment has."""

Line = tuple[str, ...]
"""How a line of the table begins."""

Grid = Mapping[str, tuple[str, ...]]
"""Setting of a panel -> its values, as words."""


@dataclass(frozen=True)
class Reproducing:
    """A paper's table or figure, asked again; also several runs, and panels over a grid."""

    experiment: Experiment
    data: Path
    """Folder with upstream's files."""
    judge: JudgeName | None = None
    """The model that takes the part of the paper's; ``None``: only show who has judged."""
    runs: int | None = None
    """How many independent runs; default: 1, and all that there are in the table."""
    stands_for: str | None = None
    """The paper's model whose numbers stand beside the judge's; default: by its name."""
    limit: int | None = None
    """Only the first so many items."""
    out: Path | None = None
    """Folder to write to; default ``leaderboards/bench-<benchmark>/<experiment>``."""
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        """Refuse fewer than one run."""
        if self.runs is not None and self.runs < 1:
            raise ConfigError(f"--runs {self.runs}: give a number from 1, or leave it out")
        known = self.experiment.models
        if self.stands_for is not None and self.stands_for not in known:
            there = ", ".join(known) or "none: leave it out"
            raise ConfigError(f"--as {self.stands_for}: the paper's models are {there}")

    def plan(self, workspace: Workspace) -> plan.Plan:
        """What `run` would send; errors as there."""
        asked = self._asked(made_of(self.experiment.benchmark, self.data), workspace)
        if not asked:
            raise ConfigError("--plan needs a judge; name one with --judge")

        async def walk(session: PlanningSession, _length: Length) -> None:
            for one in asked:
                await one.walk(workspace, session)

        return plan.plan(workspace, (), walk, asked[0].language)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Compared:
        """Ask what is not asked yet, and show ours beside the paper's.

        Raises `LimitReached`, with the table so far: a limit was reached; run it again.
        """
        made, stopped = made_of(self.experiment.benchmark, self.data), None
        if asked := self._asked(made, workspace):

            async def ask(session: Session, stops: Stops) -> list[StageResult]:
                for one in asked:
                    one.judges(session)  # before any is paid for
                found = []
                for one in asked:
                    found += await one.ask(workspace, session, stops)
                    stops.raise_first()
                return found

            try:
                in_session(workspace, (), spending, meter, ask, asked[0].language)
            except LimitReached as limit:
                stopped = limit
        compared = self._compared(made, workspace)
        if stopped is None:
            return compared
        stopped.so_far = compared
        raise stopped

    def _cases(self, made: Benchmark) -> Sequence[Cases]:
        return first_of(made.cases, self.limit, made.among(self.experiment.columns))

    def _asked(self, made: Benchmark, workspace: Workspace) -> list[stage.Asked]:
        """Every judge in every run, with all its cases."""
        if self.judge is None:
            return []
        cases = self._cases(made)
        return [
            stage.Asked(set_of(self.experiment.benchmark), (), one, cases)
            for one in self._judges(made, workspace, self.judge)
        ]

    def _judges(
        self, made: Benchmark, workspace: Workspace, judge: JudgeName
    ) -> Iterator[JudgeName]:
        own = not self.experiment.source
        if not own and (judge.model is not None or panel_of(workspace, judge.name) is not None):
            raise ConfigError(
                f"{self.experiment.name} asks panels of its own: name the model alone, with "
                f"--judge {judge.model or 'MODEL'}"
            )
        if not own and judge.samples > 1:
            raise ConfigError(
                f"--samples {judge.samples}: {self.experiment.name} says how often a judge is "
                "asked; --runs asks several times"
            )
        if (
            any(one.grid for one in self.experiment.asked)
            and own
            and (panel_of(workspace, judge.name) is None)
        ):
            raise ConfigError(f"--grid is for panels and {judge.name!r} is none; see models")
        for run in range(1, (self.runs or 1) + 1):
            for name in dict.fromkeys(
                point for one in self.experiment.asked if one.asks for point in one.points
            ):
                known = own or name == SINGLE or panel_of(workspace, name) is not None
                if name in made.given or not known:  # a metric, perhaps of other languages alone
                    continue
                if own or name == SINGLE:
                    yield replace(judge, name=judge.name if name == SINGLE else name, run=run)
                else:
                    yield JudgeName(name, judge.name, run=run)

    def _compared(self, made: Benchmark, workspace: Workspace) -> Compared:
        name = set_of(self.experiment.benchmark)
        lines, remarks = self._lines(made, workspace)
        if not lines and not self.experiment.rows:
            raise MissingError(f"nobody has judged {name} so yet; name a judge with --judge")
        of = {"benchmark": self.experiment.benchmark, "shows": self.experiment.name}
        signed = signature("bench", of, sorted(lines.items()), PEOPLE, self.options)
        asked, whole = self._cases(made), replace(self, limit=None)._cases(made)
        is_cut = sum(len(one.make) for one in asked) < sum(len(one.make) for one in whole)
        limit = self.limit if is_cut else None
        shown = experiments.table_of(self.experiment, lines, signed, remarks, limit, made.data)
        findings = Findings(subject=shown.title, truth=PEOPLE, signature=signed)
        said = {"rows": shown.records, "signature": signed}
        out = self.out or workspace.out(name) / self.experiment.name
        compared = publish(findings, [shown], out, said, self.options.formats)
        if self.experiment.draws and lines:
            _write_figure(self.experiment, shown, out)
        return compared

    def _lines(
        self, made: Benchmark, workspace: Workspace
    ) -> tuple[dict[Line, list[Row]], dict[Line, str]]:
        """What was measured in each run, and why something was not, by the line's beginning."""
        filed: dict[str, dict[str, Sequence[Judgment]]] = {}
        for one in self._cases(made):
            name = set_of(self.experiment.benchmark)
            for judge, said in judgments_of(workspace, name, one).items():
                filed.setdefault(judge, {})[one.protocol.name] = said
        keys = self.experiment.columns
        lines: dict[Line, list[Row]] = {}
        remarks: dict[Line, str] = {}
        of: dict[Line, str] = {}
        for asked, point in ((one, point) for one in self.experiment.asked for point in one.points):
            if point in made.given:
                row = self._row(asked, made, "", None)
                try:
                    lines[row] = [made.given[point](keys)]
                except (ConfigError, MissingError) as error:  # no package, no recording
                    remarks[row] = str(error)
                continue
            settings = panel_of(workspace, point)
            found = self._found(workspace, point, filed)
            for model in sorted(found, key=lambda model: not self._mine(workspace, model)):
                row = self._row(asked, made, self._known_as(workspace, model), settings)
                if of.setdefault(row, model) != model:  # another model has the paper's name
                    row = self._row(asked, made, model, settings)
                runs = [found[model][run] for run in sorted(found[model])]
                lines[row] = [made.measured(workspace, one, keys, self.options) for one in runs]
        return lines, remarks

    def _found(
        self, workspace: Workspace, point: str, filed: Mapping[str, ByProtocol]
    ) -> dict[str, dict[int, ByProtocol]]:
        """Model -> run -> judgments by protocol, of who was asked as ``point`` says."""
        found: dict[str, dict[int, ByProtocol]] = {}
        for judge, said in filed.items():
            name, run = panels.run_of(judge)
            if name.endswith(CONTROLS) or (self.runs is not None and run > self.runs):
                continue
            sampled = self.experiment.source and asked_once(name) != name
            if point == SINGLE and not sampled and panel_of(workspace, name) is None:
                found.setdefault(name, {})[run] = said
            elif name == point or name.startswith(f"{point}@"):
                found.setdefault(name.partition("@")[2] or name, {})[run] = said
        return found

    def _known_as(self, workspace: Workspace, model: str) -> str:
        if self.stands_for is not None and self._mine(workspace, model):
            return self.stands_for
        return self.experiment.known_as(model)

    def _mine(self, workspace: Workspace, model: str) -> bool:
        """Whether it is the model of ``--judge``."""
        return self.judge is not None and model == full_name(self.judge.name, workspace)

    def _row(
        self,
        asked: Asked,
        made: Benchmark,
        model: str,
        settings: panels.PanelSettings | None,
    ) -> tuple[str, ...]:
        model = asked.called.get(model, model)
        said = {"model": model, "data": made.data, "judge": model}
        if settings is not None:
            given = msgspec.structs.asdict(settings) | {"roles": len(settings.members)}
            said |= {key: str(value).lower() for key, value in given.items() if key != "model"}
            said["turns"] = said.get("rounds", "")
            said["judge"] = f"{asked.judge}@{model}"
        return tuple(one.format_map(said) for one in asked.row)


def _write_figure(experiment: Experiment, shown: Table, out: Path) -> None:
    from botchat.papers import figures
    from botchat.report.figures import formats

    if (chart := figures.draw(experiment, shown)) is not None:
        for form in ("svg", "png", "pdf"):
            drawn = formats.written(chart.figure, form)
            files.write_atomic(out / f"{chart.name}.{form}", drawn)


def in_runs(benchmark: str, judge: JudgeName | None, grid: Grid) -> Experiment:
    """The experiment that is no paper's: a judge in several runs, a panel at points of a grid."""
    if benchmark not in COLUMNS:
        paper = f"{benchmark} is a paper: give --table N or --figure N too; " * (
            benchmark in experiments.papers()
        )
        raise ConfigError(f"{paper}--runs and --grid alone are of {', '.join(COLUMNS)}")
    if grid and judge is None:
        raise ConfigError("--grid changes a panel's settings: name the panel with --judge")
    heads = ("Judge", *(key.replace("_", " ").capitalize() for key in grid))
    row = ("{model}" if grid else "{judge}", *(f"{{{key}}}" for key in grid))
    asked = Asked(judge=SINGLE if judge is None else judge.name, row=row, grid=dict(grid))
    return Experiment(
        title=f"{benchmark}: agreement with people",
        benchmark=benchmark,
        heads=heads,
        columns=COLUMNS[benchmark],
        asked=(asked,),
        draws="sweep" if grid else "",
        name="grid" if grid else "runs",
    )


def grid_of(given: Sequence[str]) -> Grid:
    """What ``--grid roles=1,2 rounds=2`` says; `ConfigError` for anything else."""
    found: dict[str, tuple[str, ...]] = {}
    for one in given:
        key, _, values = one.partition("=")
        if not key or not all(said := values.split(",")) or key in found:
            raise ConfigError(f"--grid {one}: give each setting once, as in roles=1,2,3")
        if key not in (*panels.SETTINGS, "turns"):
            raise ConfigError(
                f"--grid {one}: panels have no such setting{did_you_mean(key, panels.SETTINGS)}; "
                f"settings: {', '.join(panels.SETTINGS)}"
            )
        found[key] = tuple(dict.fromkeys(said))
    return found


def plan_bench(request: Benching, workspace: Workspace) -> plan.Plan:
    """What `bench` would send."""
    return _asked_by(request).plan(workspace)


def bench(
    request: Benching, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Compared:
    """Let a judge answer a benchmark, or a model take part in a paper's experiment."""
    return _asked_by(request).run(workspace, spending, meter)


def _asked_by(request: Benching) -> Reproducing | Answering:
    """A paper's experiment, or the benchmark as it is."""
    judge = request.judge_name if request.judge else None
    options = request.options or Options()
    if (formats := request.table_formats) is not None:
        options = replace(options, formats=formats)
    experiment = _experiment(request, judge)
    if experiment is None:
        return Answering(
            request.benchmark,
            request.data,
            judge,
            request.from_recorded,
            request.control,
            request.out,
            options,
            request.limit,
        )
    if request.from_recorded or request.control:
        raise ConfigError(
            "--recorded and --control do not go with --table, --figure, --runs and --grid"
        )
    return Reproducing(
        experiment,
        request.data,
        judge,
        request.runs,
        request.stands_for,
        request.limit,
        request.out,
        options,
    )


def _experiment(request: Benching, judge: JudgeName | None) -> Experiment | None:
    """What is to be shown; ``None``: the benchmark as it is."""
    table, figure, benchmark = request.table, request.figure, request.benchmark
    if table and figure:
        raise ConfigError(f"--table {table} --figure {figure}: give one of the two")
    over = grid_of(request.grid)
    if shown := f"table {table}" if table else f"figure {figure}" if figure else "":
        of_paper = experiments.experiment(benchmark, shown)
        if over:
            panel = of_paper.asked[-1]
            if unsaid := [key for key in over if f"{{{key}}}" not in panel.row]:
                raise ConfigError(
                    f"--grid {unsaid[0]}: {of_paper.name} has no column that says it; give the "
                    f"grid to bench {of_paper.benchmark} with a panel as --judge"
                )
            panel = msgspec.structs.replace(panel, grid=dict(over))
            of_paper = msgspec.structs.replace(of_paper, asked=(panel,))
    elif request.runs is not None or over:
        of_paper = in_runs(benchmark, judge, over)
    elif benchmark in experiments.papers() and benchmark not in BENCHMARKS:
        there = ", ".join(experiments.papers()[benchmark])
        raise ConfigError(f"{benchmark} is a paper: give --table N or --figure N of {there}")
    elif request.stands_for is not None:
        raise ConfigError("--as is for a paper's experiment: add --table N or --figure N")
    else:
        return None
    return of_paper
