"""Benchmarks of judges: upstream's files in, a judge asked, the papers' tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``. The tables show every judge
that has judged what is in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from botchat.boards import judge_agreement
from botchat.boards.judge_agreement import Findings
from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    LimitReached,
    MissingError,
    did_you_mean,
)
from botchat.interfaces import Row
from botchat.judges.cascade import outside_slice
from botchat.measures import lengths, mateval_records
from botchat.measures.correlation import Rating, compare_scores
from botchat.measures.mateval_records import ERROR_TYPES
from botchat.pipeline import plan
from botchat.pipeline.agree import (
    Compared,
    Options,
    compare_judges,
    expenses,
    method,
    own_name,
    publish,
    signature,
    with_controls,
)
from botchat.pipeline.judge import Asked, Cases
from botchat.pipeline.run import Meter
from botchat.pipeline.session import JudgeName, Spending
from botchat.prompts.languages import built_in
from botchat.protocols import answers, scores, stories
from botchat.protocols.kinds import Protocol
from botchat.protocols.preferences import preferences
from botchat.records import Judgment
from botchat.workspace.folder import Workspace

PEOPLE = "human labels"
"""What upstream's labels are filed under; no judge has such a name."""

Files = Mapping[str, bytes]
Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""


@dataclass(frozen=True)
class Benching:
    """The request of ``botchat bench``: let a judge answer a benchmark, compare it with people."""

    benchmark: str
    """One of `BENCHMARKS`."""
    data: Path
    """Folder with upstream's files."""
    judge: JudgeName | None = None
    """``None``: only show who has judged."""
    from_recorded: bool = False
    """MATEval: read upstream's recorded discussions and ask nobody."""
    control: bool = False
    """Beside a panel, let a single judge vote that is asked as often."""
    out: Path | None = None
    """Folder to write to; default ``leaderboards/bench-<benchmark>``, none for recorded ones."""
    options: Options = field(default_factory=Options)
    limit: int | None = None
    """Only the first so many items, for everybody who has judged."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        if self.judge is None:
            raise ConfigError("--plan needs a judge; name one with --judge")
        cases = self._first(_made(self.benchmark, self.data).cases)
        return Asked(self._set, (), self.judge, cases, self.control).plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Compared:
        """Ask what is not judged yet, and compare everybody who has judged with people.

        Raises `LimitReached`, with the comparison so far: a limit was reached; run it again.
        """
        if self.from_recorded:
            if self.benchmark != "mateval" or self.judge is not None:
                raise ConfigError(
                    "--recorded reads MATEval's recorded discussions and asks nobody: "
                    "botchat bench mateval --data DIR --recorded"
                )
            files = _one_set(self.data, _files(self.data), mateval_records.mateval)
            return _recorded(files, self.options, self.out)
        made = _made(self.benchmark, self.data)
        cases, stopped = self._first(made.cases), None
        if self.judge is not None:
            try:
                asked = Asked(self._set, (), self.judge, cases, self.control)
                asked.run(workspace, spending, meter)
            except LimitReached as limit:
                stopped = limit
        judged = {c.protocol.name: judgments_of(workspace, self._set, c) for c in cases}
        if any(judged.values()):
            out = self.out or workspace.out(self._set)
            compared = made.compared(_Answered(workspace, judged, self.options, out))
            if stopped is None:
                return compared
            stopped.so_far = compared
        raise stopped or MissingError(
            f"nobody has judged {self._set} yet; name a judge with --judge"
        )

    def _first(self, cases: Sequence[Cases]) -> Sequence[Cases]:
        """The cases of the first items that ``limit`` allows."""
        if self.limit is None:
            return cases
        if self.limit < 1:
            raise ConfigError(f"--limit {self.limit}: at least one item is needed")
        items = {make().seed_id: None for one in cases for make in one.make}
        among = {*[*items][: self.limit]}
        return [
            Cases(protocol, [make for make in makes if make().seed_id in among])
            for protocol, makes in cases
        ]

    @property
    def _set(self) -> str:
        return f"bench-{self.benchmark}"


@dataclass(frozen=True)
class _Answered:
    """What judges have said about a benchmark."""

    workspace: Workspace
    judged: Mapping[str, Judgments]
    """By name of the protocol; with controls."""
    options: Options
    out: Path

    def all(self, protocol: Protocol) -> list[Judgment]:
        return [judgment for each in self.judged[protocol.name].values() for judgment in each]

    def costs(self, protocol: Protocol) -> dict[str, Row]:
        return expenses(self.workspace, self.judged[protocol.name])


@dataclass(frozen=True)
class _Benchmark:
    cases: Sequence[Cases]
    compared: Callable[[_Answered], Compared]


def _faireval(files: Files) -> _Benchmark:
    pairs = answers.faireval(files)

    def compared(answered: _Answered) -> Compared:
        workspace, options = answered.workspace, answered.options
        everything = answered.all(answers.ANSWERS)
        people = answers.labels(pairs, PEOPLE)
        selves = {name: own_name(workspace, name) for name in answered.judged[answers.ANSWERS.name]}
        calibrated = [*people, *answers.calibrated(everything)]
        found = compare_judges(calibrated, PEOPLE, options, selves=selves)
        in_order = compare_judges(
            [*people, *preferences(everything, answers.ANSWERS)],
            PEOPLE,
            options,
            lengths={
                (pair.id, name): lengths.words(text)
                for pair in pairs
                for name, text in zip(pair.contestants, pair.answers, strict=True)
            },
            selves=selves,
        )
        costs = answered.costs(answers.ANSWERS)
        rows = []
        for row, one_order in zip(found.rows, in_order.rows, strict=True):
            evaluator, how = method(workspace, row["judge"])
            taken = {
                f"{key}{end}": one_order[f"{key}{end}"]
                for key in _IN_ORDER
                for end in ("", "_low", "_high")
            }
            apart = {f"{key}_one_order": one_order[key] for key in ("accuracy", "kappa")}
            head = {"judge": row["judge"], "evaluator": evaluator, "method": how}
            rows.append({**head, **row, **taken, **apart, **costs[row["judge"]]})
        data = [(a.item, a.first, a.second, a.judge, a.verdict) for a in calibrated]
        findings = Findings(
            **vars(replace(found, rows=rows, annotators=())),
            subject="FairEval",
            truth="people's majority",
            signature=signature("bench", {"benchmark": "faireval"}, data, PEOPLE, options),
        )
        first = judge_agreement.chateval_1(rows, findings.signature)
        others = [part for part in judge_agreement.tables(findings) if part.name != "judges"]
        return publish(findings, [first, *others], answered.out, formats=options.formats)

    cases = Cases(answers.ANSWERS, list(answers.cases(pairs)))
    return _Benchmark([cases], compared)


def _topicalchat(files: Files) -> _Benchmark:
    responses = answers.topical_chat(files)

    def compared(answered: _Answered) -> Compared:
        def ratings(aspect: str, judged: Sequence[Judgment]) -> list[Rating]:
            return [*answers.aspect_labels(responses, aspect, PEOPLE), *scores.ratings(judged)]

        data, rows, pairs = _by_part(answered, "aspect", answers.ASPECTS, ratings)
        return _correlated("topicalchat", data, rows, answered.options, answered.out, pairs=pairs)

    cases = [
        Cases(protocol, [partial(answers.aspect_case, each, aspect) for each in responses])
        for aspect, protocol in answers.ASPECTS.items()
    ]
    return _Benchmark(cases, compared)


def _mateval(files: Files) -> _Benchmark:
    told = stories.stories(files)
    protocol = stories.asked_in(built_in()[mateval_records.language(files)])

    def compared(answered: _Answered) -> Compared:
        def ratings(code: str, judged: Sequence[Judgment]) -> list[Rating]:
            return [*stories.labels(told, code, PEOPLE), *stories.ratings(judged, code)]

        parts = dict.fromkeys(ERROR_TYPES, protocol)
        data, rows, pairs = _by_part(answered, "error_type", parts, ratings)
        judges = list(answered.judged[protocol.name])
        rows.sort(key=lambda row: judges.index(row["judge"]))
        rows = [{"strategy": row["judge"], **row} for row in rows]
        return _correlated("mateval", data, rows, answered.options, answered.out, pairs=pairs)

    cases = Cases(protocol, [partial(stories.case, story, protocol) for story in told])
    return _Benchmark([cases], compared)


BENCHMARKS: Mapping[str, Callable[[Files], _Benchmark]] = {
    "faireval": _faireval,
    "mateval": _mateval,
    "topicalchat": _topicalchat,
}
"""Name -> from upstream's files what is asked, and how the replies are compared with people."""

_IN_ORDER = ("consistency", "position_preference", "length_preference", "self_preference")
"""Figures of FairEval that only verdicts in one order have, or that need both orders."""


def _by_part(
    answered: _Answered,
    key: str,
    protocols: Mapping[str, Protocol],
    ratings: Callable[[str, Sequence[Judgment]], list[Rating]],
) -> tuple[list[Any], list[Row], list[Row]]:
    """Ratings, and rows and pairs of `compare_scores`, of every part, its name under ``key``."""
    data: list[Any] = []
    rows: list[Row] = []
    pairs: list[Row] = []
    for part, protocol in protocols.items():
        rated, costs = ratings(part, answered.all(protocol)), answered.costs(protocol)
        found = compare_scores(rated, PEOPLE)
        data += [[part, asdict(rating)] for rating in rated]
        rows += [{key: part, **row, **costs[row["judge"]]} for row in found.rows]
        pairs += [{key: part, **row} for row in found.pairs]
    return data, rows, pairs


def _correlated(
    benchmark: str, data: Any, rows: list[Row], options: Options, out: Path | None, **more: Any
) -> Compared:
    """One table of correlations, which has no figures; ``more`` goes to the JSON."""
    signed = signature("bench", {"benchmark": benchmark}, data, PEOPLE, options)
    shown = judge_agreement.scored(benchmark.removesuffix("-recorded"), rows, signed)
    findings = Findings(subject=shown.title, truth=PEOPLE, signature=signed)
    whole = {"rows": rows, **more, "signature": signed}
    return publish(findings, [shown], out, whole, options.formats)


def _recorded(files: Files, options: Options, out: Path | None) -> Compared:
    """MATEval's recorded reports, taken as the paper did and as they are written."""
    rows, tables = [], []
    for reading in get_args(mateval_records.Reading):
        found = mateval_records.mateval(files, reading)
        rows += [{"reading": reading, **row} for row in found]
        signed = signature("bench", {"benchmark": "mateval-recorded"}, found, PEOPLE, options)
        tables.append(judge_agreement.recorded(reading, found, signed))
    signed = tables[0].signature
    findings = Findings(subject="Recorded discussions", truth=PEOPLE, signature=signed)
    return publish(findings, tables, out, {"rows": rows, "signature": signed}, options.formats)


def _made(benchmark: str, data: Path) -> _Benchmark:
    if benchmark not in BENCHMARKS:
        raise ConfigError(
            f"unknown benchmark {benchmark!r}{did_you_mean(benchmark, BENCHMARKS)}; "
            f"benchmarks: {', '.join(BENCHMARKS)}"
        )
    read = BENCHMARKS[benchmark]
    return read(_one_set(data, _files(data), read))


def _one_set(data: Path, files: Files, read: Callable[[Files], object]) -> Files:
    """The files; `ConfigError` where several folders or files are each a data set of its own."""

    def complete(part: Files) -> bool:
        try:
            read(part)
        except BotChatError:
            return False
        return True

    within = {name: PurePosixPath(name).parents for name in files}
    folders = {
        folder: {name: files[name] for name in files if folder in within[name]}
        for folder in dict.fromkeys(folder for parents in within.values() for folder in parents)
    }
    whole = [folder for folder, part in folders.items() if complete(part)]
    sets = [one for one in whole if not any(one in other.parents for other in whole)]
    if len(sets) > 1:
        places = ", ".join(str(data / one) for one in sets)
        raise ConfigError(f"--data {data} holds {len(sets)} data sets; give one of {places}")
    alone = [name for name in files if complete({name: files[name]})]
    if len(alone) > 1:
        raise ConfigError(
            f"--data {data} holds {len(alone)} data sets, {', '.join(alone)}: put each into a "
            "folder of its own and give one"
        )
    return files


def _files(data: Path) -> dict[str, bytes]:
    """Name -> content of every text file in a folder, at any depth."""
    if not data.is_dir():
        raise MissingError(f"no folder {data}; name the one with upstream's files with --data")
    try:
        return {
            path.relative_to(data).as_posix(): path.read_bytes()
            for path in sorted(data.rglob("*"))
            if path.suffix.lower() in (".csv", ".json", ".jsonl", ".txt") and path.is_file()
        }
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from None


def judgments_of(workspace: Workspace, name: str, cases: Cases) -> Judgments:
    """Judgments of what the files hold, with controls; those of other files are passed over."""
    wanted = {
        (case.seed_id, case.contestants): case.digest for case in (make() for make in cases.make)
    }
    found = {}
    folder = workspace.judgments_path(name, cases.protocol.name, "").parent
    for path in sorted(folder.glob("*.jsonl")):
        kept = outside_slice(
            [
                judgment
                for key, judgment in workspace.judgments(path).items()
                if wanted.get(key) == judgment.case
            ]
        )
        if kept:
            found[kept[0].judge] = kept
    return with_controls(workspace, found, cases.protocol)
