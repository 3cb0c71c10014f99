"""Benchmarks of judges: upstream's files in, a judge asked, the papers' tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``. The tables show every judge
that has judged what is in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from botchat.arguments import JudgeName, Spending
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
from botchat.languages import built_in
from botchat.measures import lengths
from botchat.measures.correlation import Rating, compare_scores
from botchat.papers import bench_stories, mateval_records, stories, tables
from botchat.papers.metrics import PEOPLE, correlated, ends_of, of_parts, of_topical_chat
from botchat.papers.tables import beside_paper, error_places
from botchat.pipeline.agree import (
    Compared,
    Options,
    compare_judges,
    expenses,
    publish,
    signature,
    with_controls,
)
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.contestants import method, own_name
from botchat.pipeline.run.work import Meter
from botchat.protocols import answers, scores
from botchat.protocols.kinds import Protocol
from botchat.protocols.preferences import preferences
from botchat.protocols.texts import ERROR_TYPES
from botchat.records import Judgment
from botchat.workspace.folder import Workspace

Files = Mapping[str, bytes]
ByProtocol = Mapping[str, Sequence[Judgment]]
"""Of one judge, by name of the protocol."""

Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""


@dataclass(frozen=True)
class Answering:
    """A judge's answers to a benchmark, compared with people."""

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

    def plan(self, workspace: Workspace) -> plan.Plan:
        """What `run` would send; errors as there."""
        if self.judge is None:
            raise ConfigError("--plan needs a judge; name one with --judge")
        cases = first_of(made_of(self.benchmark, self.data).cases, self.limit)
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
            if self.limit is not None:
                raise ConfigError(f"--limit {self.limit}: --recorded reads all; leave --limit out")
            files = _one_set(self.data, _files(self.data), mateval_records.mateval)
            return _recorded(files, self.options, self.out)
        made = made_of(self.benchmark, self.data)
        cases, stopped = first_of(made.cases, self.limit), None
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

    @property
    def _set(self) -> str:
        return set_of(self.benchmark)


def set_of(benchmark: str) -> str:
    """What the judgments of a benchmark are filed under."""
    return f"bench-{benchmark}"


def first_of(
    cases: Sequence[Cases], limit: int | None, items: Collection[str] | None = None
) -> Sequence[Cases]:
    """The cases of ``items``, default all, and of these the first that ``limit`` allows."""
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit}: at least one item is needed")
    if limit is None and items is None:
        return cases
    known = dict.fromkeys(make().seed_id for one in cases for make in one.make)
    among = {*[id_ for id_ in known if items is None or id_ in items][:limit]}
    return [
        Cases(protocol, [make for make in makes if make().seed_id in among])
        for protocol, makes in cases
    ]


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
class Benchmark:
    """One data set: what is asked, and what the replies are worth."""

    cases: Sequence[Cases]
    compared: Callable[[_Answered], Compared]
    measured: Callable[[Workspace, ByProtocol, Sequence[str], Options], Row]
    """(workspace, one judge's judgments, keys of columns, options) -> their numbers, with the ends
    of intervals, ``n`` and ``unreadable``; see `botchat.papers.experiments`."""
    given: Mapping[str, Callable[[Sequence[str]], Row]] = field(default_factory=dict)
    """The same of what needs no judge: metrics, upstream's recordings; keys -> numbers."""
    data: str = ""
    """What papers call it, where one of several was given."""
    among: Callable[[Sequence[str]], Collection[str] | None] = lambda _: None
    """Keys of columns -> the items that they are about; ``None``: all."""


def _faireval(files: Files) -> Benchmark:
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
        first = tables.chateval_1(rows, findings.signature)
        others = [part for part in judge_agreement.tables(findings) if part.name != "judges"]
        return publish(findings, [first, *others], answered.out, formats=options.formats)

    def measured(
        workspace: Workspace, said: ByProtocol, keys: Sequence[str], options: Options
    ) -> Row:
        made = said[answers.ANSWERS.name]
        calibrated = answers.calibrated(made)
        costs = expenses(workspace, {PEOPLE: made})[PEOPLE]
        row: Row = {"usd": costs["usd"], "minutes": costs["seconds"]}
        row = {key: None if each is None else each * len(made) for key, each in row.items()}
        row["minutes"] = None if row["minutes"] is None else row["minutes"] / 60
        row["n"] = sum(one.verdict is not None for one in calibrated)
        row["unreadable"] = len(calibrated) - row["n"]
        for category in {key.rpartition("_")[0] for key in keys}:
            ids = {pair.id for pair in pairs if category in ("", pair.category)}
            asked = [one for one in calibrated if one.item in ids]
            people = [one for one in answers.labels(pairs, PEOPLE) if one.item in ids]
            if asked and people:
                (found,) = compare_judges([*people, *asked], PEOPLE, options).rows
                begin = f"{category}_" if category else ""
                row |= ends_of(found, ("accuracy", "kappa"), begin)
        return row

    def among(keys: Sequence[str]) -> Collection[str] | None:
        categories = {key.rpartition("_")[0] for key in keys}
        if "" in categories:
            return None
        return {pair.id for pair in pairs if pair.category in categories}

    cases = Cases(answers.ANSWERS, list(answers.cases(pairs)))
    return Benchmark([cases], compared, measured, among=among)


def _topicalchat(files: Files) -> Benchmark:
    responses = answers.topical_chat(files)

    def ratings(aspect: str, judged: Sequence[Judgment]) -> list[Rating]:
        return [*answers.aspect_labels(responses, aspect, PEOPLE), *scores.ratings(judged)]

    def compared(answered: _Answered) -> Compared:
        data, rows, pairs = _by_part(answered, "aspect", answers.ASPECTS, ratings)
        return _correlated("topicalchat", data, rows, answered.options, answered.out, pairs=pairs)

    cases = [
        Cases(protocol, [partial(answers.aspect_case, each, aspect) for each in responses])
        for aspect, protocol in answers.ASPECTS.items()
    ]
    measured = _correlations(answers.ASPECTS, ratings)
    return Benchmark(cases, compared, measured, of_topical_chat(responses))


def _mateval(files: Files) -> Benchmark:
    told = stories.stories(files)
    protocol = stories.asked_in(built_in()[mateval_records.language(files)])
    parts = dict.fromkeys(ERROR_TYPES, protocol)

    def ratings(code: str, judged: Sequence[Judgment]) -> list[Rating]:
        return [*stories.labels(told, code, PEOPLE), *stories.ratings(judged, code)]

    def compared(answered: _Answered) -> Compared:
        data, rows, pairs = _by_part(answered, "error_type", parts, ratings)
        judges = list(answered.judged[protocol.name])
        rows.sort(key=lambda row: judges.index(row["judge"]))
        rows = [{"strategy": row["judge"], **row} for row in rows]
        judged = answered.judged[protocol.name]
        places = bench_stories.live_locations(answered.workspace, files, told, judged)
        return _correlated(
            "mateval", data, rows, answered.options, answered.out, pairs=pairs, places=places
        )

    cases = Cases(protocol, [partial(stories.case, story, protocol) for story in told])
    return Benchmark(
        [cases],
        compared,
        _correlations(parts, ratings),
        bench_stories.of_stories(files, told),
        mateval_records.dataset(files) or "own",
    )


BENCHMARKS: Mapping[str, Callable[[Files], Benchmark]] = {
    "faireval": _faireval,
    "mateval": _mateval,
    "topicalchat": _topicalchat,
}
"""Name -> from upstream's files what is asked, and how the replies are compared with people."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "faireval": ("accuracy", "kappa"),
    "mateval": of_parts(ERROR_TYPES),
    "topicalchat": of_parts(answers.ASPECTS),
}
"""What a table of a benchmark shows where no paper says it; see `Benchmark.measured`."""

_IN_ORDER = (
    "consistency", "same_winner", "first_preferred", "length_preference", "self_preference",
)  # fmt: skip
"""Figures of FairEval that only verdicts in one order have, or that need both orders."""


def _correlations(
    protocols: Mapping[str, Protocol],
    ratings: Callable[[str, Sequence[Judgment]], list[Rating]],
) -> Callable[[Workspace, ByProtocol, Sequence[str], Options], Row]:
    """``measured`` of a benchmark of scores: correlations of each part, and their mean."""

    def measured(_: Workspace, said: ByProtocol, __: Sequence[str], ___: Options) -> Row:
        return correlated(
            {part: ratings(part, said.get(of.name, ())) for part, of in protocols.items()}
        )

    return measured


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
    """A table of correlations, and one of places where there are any; ``more`` goes to the JSON."""
    signed = signature("bench", {"benchmark": benchmark}, data, PEOPLE, options)
    shown = [tables.scored(benchmark, rows, signed)]
    if places := more.get("places"):
        shown.append(error_places(places, signed))
    findings = Findings(subject=shown[0].title, truth=PEOPLE, signature=signed)
    whole = {"rows": rows, **more, "signature": signed}
    return publish(findings, shown, out, whole, options.formats)


def _recorded(files: Files, options: Options, out: Path | None) -> Compared:
    """MATEval's recorded reports, taken as the paper did and as they are written."""
    rows, shown = [], []
    for reading in get_args(mateval_records.Reading):
        found = mateval_records.mateval(files, reading)
        found = beside_paper(found, mateval_records.dataset(files))
        rows += [{"reading": reading, **row} for row in found]
        signed = signature("bench", {"benchmark": "mateval-recorded"}, found, PEOPLE, options)
        shown.append(tables.recorded(reading, found, signed))
    signed = shown[0].signature
    if places := bench_stories.recorded_locations(files):
        shown.append(error_places(places, signed))
    findings = Findings(subject="Recorded discussions", truth=PEOPLE, signature=signed)
    whole = {"rows": rows, "places": places, "signature": signed}
    return publish(findings, shown, out, whole, options.formats)


def made_of(benchmark: str, data: Path) -> Benchmark:
    """A benchmark made of upstream's files; raises `ConfigError` for one that is unknown."""
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
