"""``botchat bench``: upstream's files in, a judge asked, the papers' tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``. The tables show every judge
that has judged what is in the files. With ``--table`` or ``--figure`` a paper's experiment is run
again: its judges asked K times, ours beside its numbers; so a judge in several runs, or a panel at
every point of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from pathlib import Path, PurePosixPath

import msgspec

from botchat.boards.judge_agreement import Findings
from botchat.boards.tables import Table
from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    Fell,
    LimitReached,
    MissingError,
    did_you_mean,
)
from botchat.interfaces import Row
from botchat.judges.cascade import outside_slice
from botchat.judges.panel import BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED
from botchat.judges.single import asked_once
from botchat.papers import card, experiments, tables
from botchat.papers.benchmarks import (
    Answered,
    Benchmark,
    ByProtocol,
    FairEval,
    Files,
    Judgments,
    TopicalChat,
)
from botchat.papers.experiments import SINGLE, Experiment, Way
from botchat.papers.mateval import MATEval
from botchat.papers.metrics import PEOPLE
from botchat.papers.requests import Benching
from botchat.papers.turing import Turing
from botchat.papers.turing_files import read as read_talks
from botchat.pipeline.agree import publish, signature, with_controls
from botchat.pipeline.run import ask
from botchat.pipeline.run.ask import Cases
from botchat.pipeline.run.contestants import full_name, panel_of
from botchat.requests.arguments import JudgeName, Spending
from botchat.requests.meter import Meter
from botchat.requests.results import Compared, Plan, Told
from botchat.workspace import files, panels
from botchat.workspace.folder import Workspace

BENCHMARKS: Mapping[str, type[Benchmark]] = {
    "faireval": FairEval,
    "mateval": MATEval,
    "topicalchat": TopicalChat,
    "turing": Turing,
}
"""Name -> the data set made of upstream's files."""

CONTROLS = (BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED)
"""Endings of the names of judges that no experiment has."""

Line = tuple[str, ...]
"""How a line of the table begins."""


def plan_bench(request: Benching, workspace: Workspace) -> Plan:
    """What `bench` would send."""
    if not (asked := _Bench.of(request, workspace).asked()):
        raise ConfigError("--plan needs a judge; name one with --judge")
    return ask.plan_all(asked, workspace)


def bench(
    request: Benching, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Compared | Told:
    """Let a judge answer a benchmark, or a model take part in a paper's experiment.

    Of ``botchat`` itself a figure is drawn from published numbers.

    What is asked already is not asked again. Raises `LimitReached`, with the comparison so far: a
    limit was reached; run it again.
    """
    if request.benchmark == "botchat":
        from botchat.papers.botchat_figures import bench_botchat  # which draws

        return bench_botchat(request, workspace)
    one = _Bench.of(request, workspace)
    if request.verify and (n := sum(p.calls for p in plan_bench(request, workspace))):
        raise Fell(f"--verify: up to {n:,} calls are not in the ledger; make them without it")
    try:
        if asked := one.asked():
            ask.ask_all(asked, workspace, spending, meter)
    except LimitReached as limit:
        limit.so_far = one.compared()
        raise
    if (compared := one.compared()) is None:
        so = "so " if one.experiment else ""
        raise MissingError(f"nobody has judged {one.name} {so}yet; name a judge with --judge")
    return one.with_card(compared) if request.card else compared


@dataclass(frozen=True)
class _Bench:
    """A data set, how its judges are asked, and what is shown of them."""

    request: Benching
    workspace: Workspace
    made: Benchmark
    experiment: Experiment | None
    """What a paper shows, runs, or a grid; ``None``: the benchmark as it is."""

    @classmethod
    def of(cls, request: Benching, workspace: Workspace) -> _Bench:
        """Refuse what does not go together before the data is read."""
        if request.benchmark == "botchat":
            raise ConfigError("bench botchat draws published numbers and asks nobody: no --plan")
        if request.size or request.bare:
            raise ConfigError("--size and --bare are of bench botchat's figures; leave them out")
        experiment = _experiment(request)
        carded = request.card and request.judge and not experiment
        if (request.card or request.verify) and not carded:
            raise ConfigError("--card is of one judge (--judge) on a benchmark; --verify is of it")
        if experiment and (request.control or request.from_recorded):
            raise ConfigError(
                "--recorded and --control do not go with --table, --figure, --runs and --grid"
            )
        if request.from_recorded and (request.benchmark != "mateval" or request.judge):
            raise ConfigError(
                "--recorded reads MATEval's recorded discussions and asks nobody: "
                "botchat bench mateval --data DIR --recorded"
            )
        if request.from_recorded and request.limit is not None:
            raise ConfigError(f"--limit {request.limit}: --recorded reads all; leave --limit out")
        if experiment and request.runs is not None and request.runs < 1:
            raise ConfigError(f"--runs {request.runs}: give a number from 1, or leave it out")
        if experiment and request.stands_for not in (None, *experiment.models):
            there = ", ".join(experiment.models) or "none: leave it out"
            raise ConfigError(f"--as {request.stands_for}: the paper's models are {there}")
        made = _read(experiment.benchmark if experiment else request.benchmark, request.data)
        if request.from_recorded and isinstance(made, MATEval):
            experiment = made.of_recordings()
        return cls(request, workspace, made, experiment)

    @property
    def name(self) -> str:
        """What the judgments are filed under."""
        of = self.experiment
        return f"bench-{of.benchmark if of else self.request.benchmark}"

    @property
    def judge(self) -> JudgeName | None:
        """Of a paper's experiment the model that takes the part of the paper's."""
        return self.request.judge_name if self.request.judge else None

    def cases(self, limit: int | None) -> Sequence[Cases]:
        """The first that ``limit`` allows of those that the columns are about."""
        items = self.made.among(self.experiment.columns) if self.experiment else None
        if limit is not None and limit < 1:
            raise ConfigError(f"--limit {limit}: at least one item is needed")
        if limit is None and items is None:
            return self.made.cases
        found = []
        for protocol, makes in self.made.cases:
            known = dict.fromkeys(make().seed_id for make in makes)
            among = {*[id_ for id_ in known if items is None or id_ in items][:limit]}
            found.append(Cases(protocol, [make for make in makes if make().seed_id in among]))
        return found

    def asked(self) -> list[ask.Asked]:
        """Every judge in every run, with all its cases."""
        if self.judge is None:
            return []
        of, cases = self.experiment, self.cases(self.request.limit)
        judges = [self.judge] if of is None else self._judges(of, self.judge)
        control = self.request.control
        return [ask.Asked(self.name, (), one, cases, control) for one in judges]

    @cached_property
    def judged(self) -> dict[str, Judgments]:
        """Protocol -> judge -> judgments of what the files hold, with controls."""
        found: dict[str, Judgments] = {}
        for protocol, makes in self.cases(self.request.limit):
            cases = (make() for make in makes)
            wanted = {(case.seed_id, case.contestants): case.digest for case in cases}
            folder = self.workspace.judgments_path(self.name, protocol.name, "").parent
            by_judge = {}
            for path in sorted(folder.glob("*.jsonl")):
                stored = self.workspace.judgments(path).items()
                kept = outside_slice([one for key, one in stored if wanted.get(key) == one.case])
                if kept:
                    by_judge[kept[0].judge] = kept
            found[protocol.name] = with_controls(self.workspace, by_judge, protocol)
        return found

    def with_card(self, compared: Compared) -> Compared:
        """The judge's card written, or held against the one that is there."""
        assert self.judge is not None  # see `of`
        name, model = self.judge.name, self.judge.model
        wanted = [name, full_name(name, self.workspace)]
        wanted += [f"{name}@{full_name(model, self.workspace)}"] if model else []
        known = dict.fromkeys(chain.from_iterable(self.judged.values()))
        judge = next((one for one in known if one in wanted), name)
        benchmark = self.name.removeprefix("bench-")
        made = card.of(self.workspace, judge, benchmark, self.judged, compared.whole)
        if self.request.verify:
            said = f"is what the ledger gives: {card.verify(self.workspace, made)}"
        else:
            said = f"written: {card.write(self.workspace, made, compared.tables)}"
        return replace(compared, lines=[*compared.lines, f"card {said}"])

    def compared(self) -> Compared | None:
        """Everybody who has judged, beside people or the paper; ``None``: nobody has."""
        out = self.request.out or self.workspace.out(self.name)
        if (of := self.experiment) is not None:
            return self._beside_paper(of, self.request.out or out / of.name)
        if not any(self.judged.values()) and not self.made.needs_nobody:
            return None
        formats = self.request.table_formats
        return self.made.compared(Answered(self.workspace, self.judged, formats, out))

    def _beside_paper(self, of: Experiment, out: Path) -> Compared | None:
        lines, remarks = self._lines(of)
        if not lines and not of.rows:
            return None
        what = {"benchmark": of.benchmark, "shows": of.name}
        signed = signature("bench", what, sorted(lines.items()), PEOPLE)
        limit = self.request.limit
        asked, whole = (sum(len(one.make) for one in self.cases(most)) for most in (limit, None))
        shown = experiments.table_of(
            of, lines, signed, remarks, limit if asked < whole else None, self.made.data
        )
        made, said = [shown], {"rows": shown.records, "signature": signed}
        if self.request.from_recorded and isinstance(self.made, MATEval):
            said["places"] = places = self.made.recorded_places()
            made += [tables.error_places(places, signed)] if places else []
        findings = Findings(subject=shown.title, truth=PEOPLE, signature=signed)
        compared = publish(findings, made, out, said, self.request.table_formats)
        if of.draws and lines:
            _write_figure(of, shown, out)
        return compared

    def _judges(self, of: Experiment, judge: JudgeName) -> Iterator[JudgeName]:
        is_panel = panel_of(self.workspace, judge.name) is not None
        if of.source and (judge.model is not None or is_panel):
            raise ConfigError(
                f"{of.name} asks panels of its own: name the model alone, with "
                f"--judge {judge.model or 'MODEL'}"
            )
        if of.source and judge.samples > 1:
            raise ConfigError(
                f"--samples {judge.samples}: {of.name} says how often a judge is "
                "asked; --runs asks several times"
            )
        if not of.source and not is_panel and any(one.grid for one in of.asked):
            raise ConfigError(f"--grid is for panels and {judge.name!r} is none; see models")
        points = dict.fromkeys(point for one in of.asked if one.asks for point in one.points)
        for run, name in product(range(1, (self.request.runs or 1) + 1), points):
            if name in self.made.given:
                continue
            if name == SINGLE or not of.source:
                yield replace(judge, name=judge.name if name == SINGLE else name, run=run)
            elif panel_of(self.workspace, name) is not None:  # else a metric of other languages
                yield JudgeName(name, judge.name, run=run)

    def _lines(self, of: Experiment) -> tuple[dict[Line, list[Row]], dict[Line, str]]:
        """What was measured in each run, and why something was not, by the line's beginning."""
        lines: dict[Line, list[Row]] = {}
        remarks: dict[Line, str] = {}
        whose: dict[Line, str] = {}
        mine = self.judge and full_name(self.judge.name, self.workspace)
        for asked, point in ((one, point) for one in of.asked for point in one.points):
            if point in self.made.given:
                row = self._row(asked, "", None)
                try:
                    lines[row] = [self.made.given[point](of.columns)]
                except (ConfigError, MissingError) as error:  # no package, no recording
                    remarks[row] = str(error)
                continue
            settings, found = panel_of(self.workspace, point), self._found(of, point)
            for model in sorted(found, key=lambda model: model != mine):
                stands_for = self.request.stands_for if model == mine else None
                row = self._row(asked, stands_for or of.known_as(model), settings)
                if whose.setdefault(row, model) != model:  # another model has the paper's name
                    row = self._row(asked, model, settings)
                runs = [found[model][run] for run in sorted(found[model])]
                lines[row] = [self.made.measured(self.workspace, one, of.columns) for one in runs]
        return lines, remarks

    def _found(self, of: Experiment, point: str) -> dict[str, dict[int, ByProtocol]]:
        """Model -> run -> judgments by protocol, of who was asked as ``point`` says."""
        found: dict[str, dict[int, ByProtocol]] = {}
        for judge in dict.fromkeys(chain.from_iterable(self.judged.values())):
            name, run = panels.run_of(judge)
            if name.endswith(CONTROLS) or run > (self.request.runs or run):
                continue
            sampled = of.source and asked_once(name) != name
            if point == SINGLE and not sampled and panel_of(self.workspace, name) is None:
                model = name
            elif name == point or name.startswith(f"{point}@"):
                model = name.partition("@")[2] or name
            else:
                continue
            said = {asked: by[judge] for asked, by in self.judged.items() if judge in by}
            found.setdefault(model, {})[run] = said
        return found

    def _row(self, asked: Way, model: str, settings: panels.PanelSettings | None) -> Line:
        model = asked.called.get(model, model)
        said = {"model": model, "data": self.made.data, "judge": model}
        if settings is not None:
            given = msgspec.structs.asdict(settings) | {"roles": len(settings.members)}
            said |= {key: str(value).lower() for key, value in given.items() if key != "model"}
            said["turns"] = said.get("rounds", "")
            said["judge"] = f"{asked.judge}@{model}"
        return tuple(one.format_map(said) for one in asked.row)


def _write_figure(experiment: Experiment, shown: Table, out: Path) -> None:
    from botchat.papers import figures
    from botchat.report.figures import pictures

    if (chart := figures.draw(experiment, shown)) is not None:
        for form in ("svg", "png", "pdf"):
            drawn = pictures.written(chart.sheet(), form)
            files.write_atomic(out / f"{chart.name}.{form}", drawn)


def _experiment(request: Benching) -> Experiment | None:
    """What is to be shown; ``None``: the benchmark as it is."""
    table, figure, name = request.table, request.figure, request.benchmark
    if table and figure:
        raise ConfigError(f"--table {table} --figure {figure}: give one of the two")
    grid = grid_of(request.grid)
    if shown := f"table {table}" if table else f"figure {figure}" if figure else "":
        of_paper = experiments.experiment(name, shown)
        if not grid:
            return of_paper
        panel = of_paper.asked[-1]
        if unsaid := [key for key in grid if f"{{{key}}}" not in panel.row]:
            raise ConfigError(
                f"--grid {unsaid[0]}: {of_paper.name} has no column that says it; give the "
                f"grid to bench {of_paper.benchmark} with a panel as --judge"
            )
        panel = msgspec.structs.replace(panel, grid=grid)
        return msgspec.structs.replace(of_paper, asked=(panel,))
    is_paper = name in experiments.papers() and name not in BENCHMARKS
    if request.runs is not None or grid:
        if name not in BENCHMARKS:
            paper = f"{name} is a paper: give --table N or --figure N too; " * is_paper
            raise ConfigError(f"{paper}--runs and --grid alone are of {', '.join(BENCHMARKS)}")
        if grid and not request.judge:
            raise ConfigError("--grid changes a panel's settings: name the panel with --judge")
        row = ("{model}" if grid else "{judge}", *(f"{{{key}}}" for key in grid))
        return Experiment(
            title=f"{name}: agreement with people",
            benchmark=name,
            heads=("Judge", *(key.replace("_", " ").capitalize() for key in grid)),
            columns=BENCHMARKS[name].columns,
            asked=(Way(judge=request.judge or SINGLE, row=row, grid=grid),),
            draws="sweep" if grid else "",
            name="grid" if grid else "runs",
        )
    if is_paper:
        there = ", ".join(experiments.papers()[name])
        raise ConfigError(f"{name} is a paper: give --table N or --figure N of {there}")
    if request.stands_for is not None:
        raise ConfigError("--as is for a paper's experiment: add --table N or --figure N")
    return None


def grid_of(given: Sequence[str]) -> dict[str, tuple[str | int | bool, ...]]:
    """What ``--grid roles=1,2 rounds=2`` says; `ConfigError` for anything else."""
    found: dict[str, tuple[str | int | bool, ...]] = {}
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


def _read(benchmark: str, data: Path) -> Benchmark:
    """A benchmark made of upstream's files; raises `ConfigError` for one that is unknown."""
    if benchmark not in BENCHMARKS:
        known = dict.fromkeys((*BENCHMARKS, *experiments.papers(), "botchat"))
        raise ConfigError(
            f"unknown benchmark {benchmark!r}{did_you_mean(benchmark, known)}; "
            f"benchmarks: {', '.join(known)}"
        )
    if benchmark == "turing":
        return Turing(read_talks(data))
    if not data.is_dir():
        raise MissingError(f"no folder {data}; name the one with upstream's files with --data")
    try:
        held = {
            path.relative_to(data).as_posix(): path.read_bytes()
            for path in sorted(data.rglob("*"))
            if path.suffix.lower() in (".csv", ".json", ".jsonl", ".txt") and path.is_file()
        }
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from None
    read = BENCHMARKS[benchmark]
    if len(sets := _sets(held, read)) > 1:
        raise ConfigError(
            f"--data {data} holds {len(sets)} data sets, {', '.join(sets)}: give a folder that "
            "holds one of them"
        )
    return read(held)


def _sets(held: Files, read: Callable[[Files], object]) -> list[str]:
    """Folders and files that are each a data set of its own, none within another."""
    parts: dict[str, dict[str, bytes]] = {}
    for name, content in held.items():
        for part in (name, *map(str, PurePosixPath(name).parents)):
            parts.setdefault(part, {})[name] = content

    def complete(part: Files) -> bool:
        try:
            read(part)
        except BotChatError:
            return False
        return True

    whole = {frozenset(part): name for name, part in parts.items() if complete(part)}
    return [name for part, name in whole.items() if not any(other < part for other in whole)]
