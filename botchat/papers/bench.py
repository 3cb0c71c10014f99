"""``botchat bench``: a benchmark's files or an own one in, a judge asked, tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``. The tables show every judge
that has judged what is in the files, beside the numbers that the papers print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from botchat.boards.judge_agreement import HUMAN_LABELS, AgreementReport
from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    LimitReached,
    MissingDataError,
    did_you_mean,
)
from botchat.papers import chateval
from botchat.papers.benchmarks import (
    Answered,
    AnswerPairs,
    Benchmark,
    Files,
    Judgments,
    OwnFile,
    topical_chat,
)
from botchat.papers.printed import tables_of
from botchat.papers.requests import Benching
from botchat.papers.stories import mateval, recorded
from botchat.pipeline.agree import publish
from botchat.pipeline.run import ask
from botchat.pipeline.run.ask import Cases
from botchat.pipeline.run.contestants import with_controls
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.plan import Plan
from botchat.pipeline.run.spending import JudgeName, Spending
from botchat.results import Result
from botchat.workspace import panels
from botchat.workspace.folder import Workspace

BENCHMARKS: Mapping[str, Callable[[Files], Benchmark]] = {
    "faireval": lambda files: AnswerPairs("FairEval", chateval.faireval(files)),
    "mateval": mateval,
    "topicalchat": topical_chat,
}
"""Name -> the data set made of upstream's files."""


def judge_name(name: str, model: str | None, workspace: Workspace) -> JudgeName:
    """Return a judge of several, where only panels have agents that ask ``model``."""
    is_panel = panels.find(name.removeprefix(panels.CONTROL), workspace.config.panels) is not None
    return JudgeName(name, model if is_panel else None)


def plan_bench(request: Benching, workspace: Workspace) -> Plan:
    """What `bench` would send."""
    asked = _asked(request, _cases(request, _read(request)[0]))
    if not asked:
        raise ConfigError("--plan needs a judge; name one with --judge")
    return ask.plan_all(asked, workspace)


def bench(
    request: Benching, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Result:
    """Let a judge answer a benchmark; of ``botchat`` itself draw the published numbers.

    What is asked already is not asked again. Raises `LimitReached`, with the comparison so far: a
    limit was reached; run it again.
    """
    if request.benchmark == "botchat":
        from botchat.papers.botchat_figures import bench_botchat  # which draws

        return bench_botchat(request, workspace)
    benchmark, files = _read(request)
    out = request.out or workspace.out(_seed_set(request))
    if request.published:
        return recorded(files, Answered(workspace, {}, request.formats, out))
    cases = _cases(request, benchmark)
    try:
        if asked := _asked(request, cases):
            ask.ask_all(asked, workspace, spending, meter)
    except LimitReached as limit:
        limit.partial_result = _compared(request, workspace, benchmark, cases, out)
        raise
    return _compared(request, workspace, benchmark, cases, out)


def _seed_set(request: Benching) -> str:
    """What the judgments are filed under."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", Path(request.benchmark).stem).strip("-.")[:40]
    return f"bench-{name or 'file'}"


def _asked(request: Benching, cases: list[Cases]) -> list[ask.Asked]:
    """The judge, if one is named, with all its cases."""
    return [ask.Asked(_seed_set(request), (), judge, cases) for judge in request.judges]


def _cases(request: Benching, benchmark: Benchmark) -> list[Cases]:
    """The first that the limit allows."""
    limit = request.limit
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit}: at least one item is needed")
    found = []
    for protocol, makes in benchmark.cases:
        ids = {*[*dict.fromkeys(make().seed_id for make in makes)][:limit]}
        found.append(Cases(protocol, [make for make in makes if make().seed_id in ids]))
    return found


def _compared(
    request: Benching, workspace: Workspace, benchmark: Benchmark, cases: list[Cases], out: Path
) -> Result:
    """Everybody who has judged what the files hold, beside people and what the papers print."""
    name, judged = _seed_set(request), dict[str, Judgments]()
    for protocol, makes in cases:
        asked = (make() for make in makes)
        wanted = {(case.seed_id, case.contestants): case.digest for case in asked}
        by_judge = {}
        for path in sorted(
            workspace.judgments_path(name, protocol.name, "").parent.glob("*.jsonl")
        ):
            stored = workspace.judgments(path)
            known = ((stored.get(key), digest) for key, digest in wanted.items())
            if kept := [one for one, digest in known if one and one.case == digest]:
                by_judge[kept[0].judge] = kept
        judged[protocol.name] = with_controls(workspace, by_judge, protocol)
    if any(judged.values()):
        return benchmark.compared(Answered(workspace, judged, request.formats, out))
    missing = f"Nobody has judged {name} yet; name a judge with --judge."
    if not (printed := tables_of(request.benchmark)):
        raise MissingDataError(missing)
    report = AgreementReport(
        subject=printed[0].title,
        labels=HUMAN_LABELS,
        signature=printed[0].signature,
        notes=[missing],
    )
    return publish(report, printed, out, formats=request.formats)


def _read(request: Benching) -> tuple[Benchmark, Files]:
    """A benchmark and upstream's files; refuses what does not go together before reading."""
    name, data, limit = request.benchmark, request.data, request.limit
    if name == "botchat":
        raise ConfigError("bench botchat draws published numbers and asks nobody: no --plan")
    if request.published and (name != "mateval" or request.judges):
        raise ConfigError(
            "--published reads MATEval's recorded discussions and asks nobody: "
            "botchat bench mateval --data DIR --published"
        )
    if request.published and limit is not None:
        raise ConfigError(f"--limit {limit}: --published reads all; leave --limit out")
    if name not in BENCHMARKS:
        if (file := Path(name)).exists():
            return OwnFile(file), {}
        known = [*BENCHMARKS, "botchat"]
        hint = did_you_mean(name, known)
        raise ConfigError(
            f"unknown benchmark {name!r}{hint}; benchmarks: {', '.join(known)}, or a file of texts"
        )
    if data is None or not data.is_dir():
        where = "--data is missing" if data is None else f"no folder {data}"
        raise MissingDataError(f"{where}; name the folder with upstream's files with --data")
    try:
        files = {
            path.relative_to(data).as_posix(): path.read_bytes()
            for path in sorted(data.rglob("*"))
            if path.suffix.lower() in (".csv", ".json", ".jsonl", ".txt") and path.is_file()
        }
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from None
    if len(sets := _sets(files, BENCHMARKS[name])) > 1:
        raise ConfigError(
            f"--data {data} holds {len(sets)} data sets, {', '.join(sets)}: give a folder that "
            "holds one of them"
        )
    return BENCHMARKS[name](files), files


def _sets(files: Files, read: Callable[[Files], object]) -> list[str]:
    """Folders and files that are each a data set of its own, none within another."""
    parts: dict[str, dict[str, bytes]] = {}
    for name, content in files.items():
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
