"""``botchat bench``: a benchmark's files or an own one in, judges asked, tables out.

Judged like a seed set of its own, ``bench-faireval``; the papers' numbers stand below. A new one is
a function from `Files` to a `Benchmark` in a module here, and its name in `BENCHMARKS`.
"""

import gzip
import re
import zlib
from collections.abc import Sequence
from functools import partial
from glob import glob
from pathlib import Path

from botchat.boards.judge_agreement import HUMAN_LABELS, AgreementReport
from botchat.errors import DataError, LimitReached, MissingDataError, UsageError, did_you_mean
from botchat.frames import TomlTable, package_toml
from botchat.judges.function import JudgeFunction
from botchat.languages import ENGLISH
from botchat.papers.benchmarks import Answered, Benchmark, own_file, tables_of
from botchat.papers.chateval import faireval, topical_chat
from botchat.papers.stories import mateval, recorded
from botchat.papers.turing import turing
from botchat.pipeline.agree import publish
from botchat.pipeline.contestants import with_controls
from botchat.pipeline.judge import JudgingJob, ProtocolCases, ask_jobs, walk_jobs
from botchat.pipeline.plan import plan
from botchat.pipeline.resolved import ResolvedRun, SeedSet
from botchat.pipeline.session import run_session
from botchat.pipeline.spending import JudgeName, Meter, Spending
from botchat.records import Judged, JudgeId, Texts
from botchat.results import Result
from botchat.workspace import jsonl, panels
from botchat.workspace.folder import Workspace

BENCHMARKS = {
    "faireval": faireval,
    "mateval": mateval,
    "topicalchat": topical_chat,
    "turing": turing,
}
"""Name -> the benchmark in upstream's files."""


class _Source(TomlTable, frozen=True):
    """Entry of ``sources.toml``."""

    files: list[str]
    address: str


_SOURCES = package_toml("papers/sources.toml", dict[str, _Source])


def judge_name(name: str | JudgeFunction, model: str | None, workspace: Workspace) -> JudgeName:
    """Return a judge of several; only panels have agents that ask ``model``.

    ``single`` is ``model``, or the judge of ``[run]``, alone.
    """
    if not isinstance(name, str):
        return JudgeName(name)
    config = workspace.config
    if name == "single" and name not in config.models and name not in config.judges:
        name = model or config.run.judge_model or config.run.judge or name
    if panels.find(JudgeId.asked(name).name, config.panels) is None:
        return JudgeName(name)
    return JudgeName(name, model)


def bench(
    workspace: Workspace,
    name: str,
    judges: Sequence[JudgeName],
    spending: Spending,
    meter: Meter,
    *,
    data: Path | None,
    published: bool,
    limit: int | None,
    out: Path | None,
    formats: Texts,
) -> Result:
    """Let judges answer a benchmark; of ``botchat`` itself draw the published numbers.

    What is asked already is not asked again. ``data``: folder with upstream's files.
    ``published``: MATEval's recorded discussions take the judges' place. ``limit``: only the first
    items. Raises `LimitReached`, with the comparison so far: a limit was reached; run it again.
    """
    _refuse_questions(name, published, any((judges, limit is not None, spending.plan)))
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", Path(name).stem).strip("-.")[:40]
    seed_set = f"bench-{plain or 'file'}"
    out = out or workspace.out(seed_set)
    if name == "botchat":
        from botchat.papers.botchat_figures import bench_botchat  # which draws

        return bench_botchat(data, out)
    benchmark = _read(name, data, published)
    cases = [_first(each, limit) for each in benchmark.cases]
    jobs = [JudgingJob(judge, cases) for judge in judges]
    language = next((each.protocol.language for each in cases), ENGLISH)
    run = ResolvedRun(workspace, SeedSet(seed_set, (), language), spending)
    if spending.plan:
        return _plan(name, jobs, run)
    stop = None
    try:
        if jobs:
            run_session(run, meter, partial(ask_jobs, jobs))
    except LimitReached as limit_reached:
        stop = limit_reached
    answered = Answered(workspace, _judged(workspace, seed_set, cases))
    if benchmark.needs_judges and not any(answered.judged.values()):
        result = _only_printed(name, seed_set, out, formats)
    else:
        report, tables, content = benchmark.compare(answered)
        result = publish(report, list(tables) + tables_of(name), out, formats, content)
    if stop is not None:
        stop.partial_result = result
        raise stop
    return result


def _plan(name: str, jobs: Sequence[JudgingJob], run: ResolvedRun) -> Result:
    if not jobs:
        raise UsageError("--plan needs a judge; name one with --judge")
    judges = ", ".join([job.judge.text for job in jobs])
    return plan(run, partial(walk_jobs, jobs)).result(f"{name}, judges {judges}", run.limits)


def _refuse_questions(name: str, published: bool, asks: bool) -> None:
    """Raise `UsageError` where published numbers are asked for of what has none, or of judges."""
    if (published and name != "mateval") or (asks and (published or name == "botchat")):
        raise UsageError(
            "only bench botchat and bench mateval --published show published numbers; they ask "
            "nobody; leave out --judge, --limit and --plan"
        )


def _only_printed(name: str, seed_set: str, out: Path, formats: Texts) -> Result:
    """Return what the papers print of a benchmark that nobody has judged."""
    printed = tables_of(name)
    note = f"Nobody has judged {seed_set} yet; name a judge with --judge."
    if not printed:
        raise MissingDataError(note)
    report = AgreementReport(
        subject=printed[0].title,
        labels=HUMAN_LABELS,
        signature=printed[0].signature,
        notes=[note],
    )
    return publish(report, printed, out, formats)


def _first(cases: ProtocolCases, limit: int | None) -> ProtocolCases:
    """Return the cases of the first ``limit`` items."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: at least one item is needed")
    items = set(list(dict.fromkeys(make().seed_id for make in cases.make))[:limit])
    return ProtocolCases(cases.protocol, [make for make in cases.make if make().seed_id in items])


def _judged(
    workspace: Workspace, seed_set: str, cases: Sequence[ProtocolCases]
) -> dict[str, Judged]:
    """Return the stored judgments of the cases as they are now, by name of the protocol."""
    judged = {}
    for protocol, makes, _ in cases:
        wanted = {}
        for make in makes:
            case = make()
            wanted[case.seed_id, case.contestants] = case.digest
        by_judge = {}
        folder = workspace.judgments_path(seed_set, protocol.name, "").parent
        for path in sorted(folder.glob("*.jsonl")):
            stored = workspace.judgments(path)
            kept = [
                stored[key]
                for key, digest in wanted.items()
                if key in stored and stored[key].case == digest
            ]
            if kept:
                by_judge[kept[0].judge] = kept
        judged[protocol.name] = with_controls(workspace, by_judge, protocol)
    return judged


def _read(name: str, data: Path | None, published: bool) -> Benchmark:
    """Read a benchmark from upstream's files, or a file of one's own."""
    if name in BENCHMARKS:
        source = _SOURCES[name]
        read = BENCHMARKS[name]
        if published:
            read = recorded
        try:
            return read(_files(source, data))
        except MissingDataError as error:
            raise MissingDataError(f"{error}; get them from {source.address}") from None
    file = Path(name)
    if file.exists():
        return own_file(file)
    known = [*BENCHMARKS, "botchat"]
    raise UsageError(
        f"unknown benchmark {name!r}{did_you_mean(name, known)}; "
        f"benchmarks: {', '.join(known)}, or a file of texts"
    )


def _files(source: _Source, data: Path | None) -> dict[str, bytes]:
    """Return the content of a benchmark's files by their names in the folder, or one below."""
    if data is None or not data.is_dir():
        where = "--data is missing"
        if data is not None:
            where = f"no folder {data}"
        raise MissingDataError(
            f"{where}; name the folder with {', '.join(source.files)} with --data"
        )
    names = set()
    for pattern in source.files:
        # Not of `Path`, whose glob dies of a folder that it may not list, or that goes.
        for place in (pattern, f"*/{pattern}"):
            names.update(glob(place, root_dir=data))  # noqa: PTH207
    files = {}
    for name in sorted(names):
        content = jsonl.content(data / name)
        if name.endswith(".gz"):
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"{data / name} is no gzip file ({error}); get it again") from None
        files[name] = content
    return files
