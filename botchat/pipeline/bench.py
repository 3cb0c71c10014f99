"""Benchmarks of judges: upstream's files in, a judge asked, the papers' tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``: its judgments are stage files
of the workspace and every call is in the ledger, so a run that was killed goes on where it was. The
tables show every judge that has judged what is in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from botchat import prompts
from botchat.boards import judge_agreement
from botchat.boards.judge_agreement import Findings
from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Case, Row
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
from botchat.pipeline.judge import Questions, ask, plan_ask
from botchat.pipeline.run import Meter
from botchat.pipeline.session import Limits, Named
from botchat.protocols import answers, stories
from botchat.records import Judgment
from botchat.workspace.folder import Workspace

PEOPLE = "human labels"
"""What upstream's labels are filed under; no judge has such a name."""

Files = Mapping[str, bytes]
Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""

_READ = (".csv", ".json", ".jsonl", ".txt")


def bench(
    workspace: Workspace,
    benchmark: str,
    data: Path,
    judge_name: str | None = None,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    from_recorded: bool = False,
    control: bool = False,
    out: Path | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Compared:
    """Let a judge answer a benchmark and compare it with people.

    Args:
        workspace: where the judgments go.
        benchmark: one of `BENCHMARKS`.
        data: folder with upstream's files.
        judge_name: as of `botchat.pipeline.judge.judge`; ``None``: only show who has judged.
        judge_model: model of a panel's agents that name none.
        samples: how often a single judge is asked about each case; the majority decides.
        from_recorded: MATEval: read upstream's recorded discussions and ask nobody.
        control: beside a panel, let a single judge vote that is asked as often.
        out: folder to write to; default ``leaderboards/bench-<benchmark>``, and none for recorded
            discussions.
        options: of the bootstrap.
        limits: what the run may cost.
        batch: send every call through its endpoint's Batch API.
        meter: told of the progress.
    """
    options = options or Options()
    if from_recorded:
        if benchmark != "mateval" or judge_name is not None:
            raise ConfigError(
                "--recorded reads MATEval's recorded discussions and asks nobody: "
                "botchat bench mateval --data DIR --recorded"
            )
        return _recorded(_files(data), options, out)
    made = _made(benchmark, data)
    if judge_name is not None:
        named = Named(judge_name, judge_model, samples)
        ask(
            workspace,
            made.name,
            (),
            named,
            made.questions,
            control=control,
            limits=limits,
            batch=batch,
            meter=meter,
        )
    judged = {asked.protocol: _judged(workspace, made.name, asked) for asked in made.questions}
    if not any(judged.values()):
        raise MissingError(f"nobody has judged {made.name} yet; name a judge with --judge")
    return made.compared(workspace, judged, options, out or workspace.out(made.name))


def plan_bench(
    workspace: Workspace,
    benchmark: str,
    data: Path,
    judge_name: str | None,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    control: bool = False,
) -> list[plan.Planned]:
    """What `bench` with these arguments would send. Arguments and errors as there."""
    if judge_name is None:
        raise ConfigError("--plan needs a judge; name one with --judge")
    made = _made(benchmark, data)
    named = Named(judge_name, judge_model, samples)
    return plan_ask(workspace, made.name, (), named, made.questions, control=control)


@dataclass(frozen=True)
class _Benchmark:
    name: str
    """Of its judgments' folder."""
    questions: Sequence[Questions]
    compared: Callable[[Workspace, Mapping[str, Judgments], Options, Path], Compared]


def _faireval(files: Files) -> _Benchmark:
    pairs = answers.faireval(files)
    made = list(answers.cases(pairs))
    asked = Questions(answers.PROTOCOL, made, prompts.digest(*answers.PROMPTS), 2)

    def compared(
        workspace: Workspace, judged: Mapping[str, Judgments], options: Options, out: Path
    ) -> Compared:
        shown = with_controls(workspace, judged[answers.PROTOCOL], lambda _: made[0]().choices)
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
        Questions(
            answers.aspect_protocol(aspect),
            list(answers.aspect_cases(responses, aspect)),
            prompts.digest(*answers.aspect_prompts(aspect)),
            1,
        )
        for aspect in answers.ASPECTS
    ]

    def compared(
        workspace: Workspace, judged: Mapping[str, Judgments], options: Options, out: Path
    ) -> Compared:
        choices = {questions.protocol: questions.make[0]().choices for questions in asked}
        ratings, costs = {}, {}
        for aspect, questions in zip(answers.ASPECTS, asked, strict=True):
            shown = with_controls(
                workspace, judged[questions.protocol], lambda one: choices[one.protocol]
            )
            costs[aspect] = expenses(workspace, shown)
            ratings[aspect] = [
                *answers.aspect_labels(responses, aspect, PEOPLE),
                *answers.ratings(judgment for each in shown.values() for judgment in each),
            ]
        found = _Scored.of(ratings, "aspect", options)
        rows = [row | costs[row["aspect"]][row["judge"]] for row in found.rows]
        made = signature("bench", {"benchmark": "topicalchat"}, found.data, PEOPLE, options)
        return found.published(rows, judge_agreement.chateval_2(rows, made), made, out)

    return _Benchmark("bench-topicalchat", asked, compared)


def _mateval(files: Files) -> _Benchmark:
    told = stories.stories(files)
    made = list(stories.cases(told))
    asked = Questions(stories.PROTOCOL, made, prompts.digest(*stories.PROMPTS), 1)

    def compared(
        workspace: Workspace, judged: Mapping[str, Judgments], options: Options, out: Path
    ) -> Compared:
        shown = with_controls(workspace, judged[stories.PROTOCOL], lambda _: made[0]().choices)
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


def _judged(workspace: Workspace, name: str, asked: Questions) -> dict[str, list[Judgment]]:
    """Judgments of what the files hold, by judge; those of other files are passed over."""
    wanted = {(case.seed_id, case.contestants): case.digest for case in _cases(asked)}
    found = {}
    folder = workspace.judgments_path(name, asked.protocol, "").parent
    for path in sorted(folder.glob("*.jsonl")):
        kept = [
            judgment
            for key, judgment in workspace.judgments(path).items()
            if wanted.get(key) == judgment.case
        ]
        if kept:
            found[kept[0].judge] = kept
    return found


def _cases(asked: Questions) -> Iterator[Case]:
    for make in asked.make:
        yield make()
