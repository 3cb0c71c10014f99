"""Benchmarks of judges: upstream's files in, a judge asked, the papers' tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``: its judgments are stage files
of the workspace and every call is in the ledger, so a run that was killed goes on where it was. The
tables show every judge that has judged what is in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from botchat.boards import judge_agreement
from botchat.boards.judge_agreement import Findings
from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Row
from botchat.measures import lengths, mateval_records
from botchat.measures.mateval_records import ERROR_TYPES
from botchat.measures.scores import Rating, compare_scores
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
from botchat.protocols import answers, scores, stories
from botchat.records import Judgment
from botchat.workspace.folder import Workspace

PEOPLE = "human labels"
"""What upstream's labels are filed under; no judge has such a name."""

Files = Mapping[str, bytes]
Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""

_READ = (".csv", ".json", ".jsonl", ".txt")


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
    """Folder to write to; default ``leaderboards/bench-<benchmark>``, and none for recorded
    discussions."""
    options: Options = field(default_factory=Options)

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        if self.judge is None:
            raise ConfigError("--plan needs a judge; name one with --judge")
        made = _made(self.benchmark, self.data)
        return Asked(made.name, (), self.judge, made.cases, self.control).plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Compared:
        """Ask what is not judged yet, and compare everybody who has judged with people."""
        if self.from_recorded:
            if self.benchmark != "mateval" or self.judge is not None:
                raise ConfigError(
                    "--recorded reads MATEval's recorded discussions and asks nobody: "
                    "botchat bench mateval --data DIR --recorded"
                )
            return _recorded(_files(self.data), self.options, self.out)
        made = _made(self.benchmark, self.data)
        if self.judge is not None:
            asked = Asked(made.name, (), self.judge, made.cases, self.control)
            asked.run(workspace, spending, meter)
        judged = {c.protocol.name: _judged(workspace, made.name, c) for c in made.cases}
        if not any(judged.values()):
            raise MissingError(f"nobody has judged {made.name} yet; name a judge with --judge")
        return made.compared(workspace, judged, self.options, self.out or workspace.out(made.name))


@dataclass(frozen=True)
class _Benchmark:
    name: str
    """Of its judgments' folder."""
    cases: Sequence[Cases]
    compared: Callable[[Workspace, Mapping[str, Judgments], Options, Path], Compared]


def _faireval(files: Files) -> _Benchmark:
    pairs = answers.faireval(files)
    made = list(answers.cases(pairs))
    asked = Cases(answers.ANSWERS, made)

    def compared(
        workspace: Workspace, judged: Mapping[str, Judgments], options: Options, out: Path
    ) -> Compared:
        shown = with_controls(
            workspace, judged[answers.ANSWERS.name], answers.ANSWERS.reading().choices
        )
        everything = [judgment for each in shown.values() for judgment in each]
        people = answers.labels(pairs, PEOPLE)
        selves = {judge: own_name(workspace, judge) for judge in shown}
        calibrated = [*people, *answers.calibrated(everything)]
        found = compare_judges(calibrated, PEOPLE, options, selves=selves)
        in_order = compare_judges(
            [*people, *answers.preferences(everything)],
            PEOPLE,
            options,
            lengths={
                (pair.id, name): lengths.words(text)
                for pair in pairs
                for name, text in zip(pair.contestants, pair.answers, strict=True)
            },
            selves=selves,
        )
        costs = expenses(workspace, shown)
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
            subject="FairEval",
            truth="people's majority",
            rows=tuple(rows),
            annotators=(),
            pairs=found.pairs,
            groups=found.groups,
            rankings=found.rankings,
            controls=tuple(judge_agreement.controls(found.pairs)),
            signature=signature("bench", {"benchmark": "faireval"}, data, PEOPLE, options),
        )
        first = judge_agreement.chateval_1(rows, findings.signature)
        others = [part for part in judge_agreement.tables(findings) if part.name != "judges"]
        return publish(findings, [first, *others], judge_agreement.as_json(findings), out)

    return _Benchmark("bench-faireval", [asked], compared)


def _topicalchat(files: Files) -> _Benchmark:
    responses = answers.topical_chat(files)
    asked = [
        Cases(protocol, list(answers.aspect_cases(responses, aspect)))
        for aspect, protocol in answers.ASPECTS.items()
    ]

    def compared(
        workspace: Workspace, judged: Mapping[str, Judgments], options: Options, out: Path
    ) -> Compared:
        ratings, costs = {}, {}
        for aspect, protocol in answers.ASPECTS.items():
            choices = protocol.reading().choices
            shown = with_controls(workspace, judged[protocol.name], choices)
            costs[aspect] = expenses(workspace, shown)
            ratings[aspect] = [
                *answers.aspect_labels(responses, aspect, PEOPLE),
                *scores.ratings(judgment for each in shown.values() for judgment in each),
            ]
        found = _Scored.of(ratings, "aspect", options)
        rows = [row | costs[row["aspect"]][row["judge"]] for row in found.rows]
        made = signature("bench", {"benchmark": "topicalchat"}, found.data, PEOPLE, options)
        return found.published(rows, judge_agreement.chateval_2(rows, made), made, out)

    return _Benchmark("bench-topicalchat", asked, compared)


def _mateval(files: Files) -> _Benchmark:
    told = stories.stories(files)
    made = list(stories.cases(told))
    asked = Cases(stories.STORIES, made)

    def compared(
        workspace: Workspace, judged: Mapping[str, Judgments], options: Options, out: Path
    ) -> Compared:
        shown = with_controls(
            workspace, judged[stories.STORIES.name], stories.STORIES.reading().choices
        )
        everything = [judgment for each in shown.values() for judgment in each]
        ratings = {
            code: [*stories.labels(told, code, PEOPLE), *stories.ratings(everything, code)]
            for code in ERROR_TYPES
        }
        found = _Scored.of(ratings, "error_type", options)
        costs = expenses(workspace, shown)
        rows = [{"strategy": row["judge"], **row, **costs[row["judge"]]} for row in found.rows]
        rows.sort(key=lambda row: list(shown).index(row["judge"]))
        made_by = signature("bench", {"benchmark": "mateval"}, found.data, PEOPLE, options)
        return found.published(
            rows, judge_agreement.mateval_1(rows, "strategy", made_by), made_by, out
        )

    return _Benchmark("bench-mateval", [asked], compared)


BENCHMARKS: Mapping[str, Callable[[Files], _Benchmark]] = {
    "faireval": _faireval,
    "mateval": _mateval,
    "topicalchat": _topicalchat,
}
"""Name -> from upstream's files what is asked, and how the replies are compared with people."""

_IN_ORDER = ("consistency", "position_preference", "length_preference", "self_preference")
"""Figures of FairEval that only verdicts in one order have, or that need both orders."""


@dataclass(frozen=True)
class _Scored:
    """Scores of texts compared with people's, for each part of a benchmark."""

    rows: Sequence[Row]
    pairs: Sequence[Row]
    data: Sequence[Any]

    @classmethod
    def of(cls, ratings: Mapping[str, Sequence[Rating]], key: str, options: Options) -> _Scored:
        rows: list[Row] = []
        pairs: list[Row] = []
        for part, given in ratings.items():
            found = compare_scores(given, PEOPLE, resamples=options.resamples, seed=options.seed)
            rows += [{key: part, **row} for row in found.rows]
            pairs += [{key: part, **row} for row in found.pairs]
        return cls(rows, pairs, [[part, asdict(r)] for part in ratings for r in ratings[part]])

    def published(self, rows: Sequence[Row], shown: Any, made_by: str, out: Path) -> Compared:
        findings = Findings(shown.title, PEOPLE, (), (), (), (), (), (), made_by)
        whole = {"rows": list(rows), "pairs": list(self.pairs), "signature": made_by}
        return publish(findings, [shown], whole, out)


def _recorded(files: Files, options: Options, out: Path | None) -> Compared:
    rows = mateval_records.mateval(files, resamples=options.resamples, seed=options.seed)
    made_by = signature("bench", {"benchmark": "mateval-recorded"}, rows, PEOPLE, options)
    shown = judge_agreement.mateval_1(rows, "strategy", made_by)
    findings = Findings(shown.title, PEOPLE, (), (), (), (), (), (), made_by)
    return publish(findings, [shown], {"rows": rows, "signature": made_by}, out)


def _made(benchmark: str, data: Path) -> _Benchmark:
    if benchmark not in BENCHMARKS:
        raise ConfigError(f"unknown benchmark {benchmark!r}; benchmarks: {', '.join(BENCHMARKS)}")
    return BENCHMARKS[benchmark](_files(data))


def _files(data: Path) -> dict[str, bytes]:
    """Name -> content of every text file in a folder, at any depth."""
    if not data.is_dir():
        raise MissingError(f"no folder {data}; name the one with upstream's files with --data")
    try:
        return {
            path.relative_to(data).as_posix(): path.read_bytes()
            for path in sorted(data.rglob("*"))
            if path.suffix.lower() in _READ and path.is_file()
        }
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from None


def _judged(workspace: Workspace, name: str, cases: Cases) -> dict[str, list[Judgment]]:
    """Judgments of what the files hold, by judge; those of other files are passed over."""
    wanted = {
        (case.seed_id, case.contestants): case.digest for case in (make() for make in cases.make)
    }
    found = {}
    folder = workspace.judgments_path(name, cases.protocol.name, "").parent
    for path in sorted(folder.glob("*.jsonl")):
        kept = [
            judgment
            for key, judgment in workspace.judgments(path).items()
            if wanted.get(key) == judgment.case
        ]
        if kept:
            found[kept[0].judge] = kept
    return found
