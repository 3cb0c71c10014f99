"""``botchat bench``: upstream's files in, a judge asked, the papers' tables out.

A benchmark is judged like a seed set of its own, ``bench-faireval``. The tables show every judge
that has judged what is in the files, beside the numbers that the papers print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from botchat.boards.judge_agreement import Findings
from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    LimitReached,
    MissingDataError,
    did_you_mean,
)
from botchat.papers.benchmarks import (
    PEOPLE,
    Answered,
    Benchmark,
    FairEval,
    Files,
    Judgments,
    TopicalChat,
)
from botchat.papers.mateval import MATEval
from botchat.papers.printed import table_of
from botchat.papers.requests import Benching
from botchat.pipeline.agree import publish, with_controls
from botchat.pipeline.run import ask
from botchat.pipeline.run.ask import Cases
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter
from botchat.requests.results import Compared, Plan, Told
from botchat.workspace.folder import Workspace

BENCHMARKS: Mapping[str, type[Benchmark]] = {
    "faireval": FairEval,
    "mateval": MATEval,
    "topicalchat": TopicalChat,
}
"""Name -> the data set made of upstream's files."""


def plan_bench(request: Benching, workspace: Workspace) -> Plan:
    """What `bench` would send."""
    if not (asked := _Bench.of(request, workspace).asked()):
        raise ConfigError("--plan needs a judge; name one with --judge")
    return ask.plan_all(asked, workspace)


def bench(
    request: Benching, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Compared | Told:
    """Let a judge answer a benchmark; of ``botchat`` itself draw the published numbers.

    What is asked already is not asked again. Raises `LimitReached`, with the comparison so far: a
    limit was reached; run it again.
    """
    if request.benchmark == "botchat":
        from botchat.papers.botchat_figures import bench_botchat  # which draws

        return bench_botchat(request, workspace)
    one = _Bench.of(request, workspace)
    try:
        if asked := one.asked():
            ask.ask_all(asked, workspace, spending, meter)
    except LimitReached as limit:
        limit.partial_result = one.compared()
        raise
    return one.compared()


@dataclass(frozen=True)
class _Bench:
    """A data set, how its judges are asked, and what is shown of them."""

    request: Benching
    workspace: Workspace
    made: Benchmark

    @classmethod
    def of(cls, request: Benching, workspace: Workspace) -> _Bench:
        """Refuse what does not go together before the data is read."""
        if request.benchmark == "botchat":
            raise ConfigError("bench botchat draws published numbers and asks nobody: no --plan")
        if request.from_recorded and (request.benchmark != "mateval" or request.judge):
            raise ConfigError(
                "--recorded reads MATEval's recorded discussions and asks nobody: "
                "botchat bench mateval --data DIR --recorded"
            )
        if request.from_recorded and request.limit is not None:
            raise ConfigError(f"--limit {request.limit}: --recorded reads all; leave --limit out")
        return cls(request, workspace, _read(request.benchmark, request.data))

    @property
    def name(self) -> str:
        """What the judgments are filed under."""
        return f"bench-{self.request.benchmark}"

    @property
    def cases(self) -> Sequence[Cases]:
        """The first that the limit allows."""
        limit = self.request.limit
        if limit is None:
            return self.made.cases
        if limit < 1:
            raise ConfigError(f"--limit {limit}: at least one item is needed")
        found = []
        for protocol, makes in self.made.cases:
            among = {*[*dict.fromkeys(make().seed_id for make in makes)][:limit]}
            found.append(Cases(protocol, [make for make in makes if make().seed_id in among]))
        return found

    def asked(self) -> list[ask.Asked]:
        """The judge, with all its cases."""
        if not self.request.judge:
            return []
        return [ask.Asked(self.name, (), self.request.judge_name, self.cases)]

    def judged(self) -> dict[str, Judgments]:
        """Protocol -> judge -> judgments of what the files hold, with controls."""
        found: dict[str, Judgments] = {}
        for protocol, makes in self.cases:
            cases = (make() for make in makes)
            wanted = {(case.seed_id, case.contestants): case.digest for case in cases}
            folder = self.workspace.judgments_path(self.name, protocol.name, "").parent
            by_judge = {}
            for path in sorted(folder.glob("*.jsonl")):
                stored = self.workspace.judgments(path).items()
                kept = [one for key, one in stored if wanted.get(key) == one.case]
                if kept:
                    by_judge[kept[0].judge] = kept
            found[protocol.name] = with_controls(self.workspace, by_judge, protocol)
        return found

    def compared(self) -> Compared:
        """Everybody who has judged, beside people and what the papers print."""
        out = self.request.out or self.workspace.out(self.name)
        formats = self.request.table_formats
        if self.request.from_recorded and isinstance(self.made, MATEval):
            return self.made.recorded(formats, out)
        judged = self.judged()
        if any(judged.values()):
            return self.made.compared(Answered(self.workspace, judged, formats, out))
        printed = table_of(self.request.benchmark)
        note = f"Nobody has judged {self.name} yet; name a judge with --judge."
        signed = printed.signatures[0]
        found = Findings(subject=printed.title, truth=PEOPLE, signature=signed, notes=[note])
        return publish(found, [printed], out, {"rows": [], "signature": signed}, formats)


def _read(benchmark: str, data: Path) -> Benchmark:
    """A benchmark made of upstream's files; raises `ConfigError` for one that is unknown."""
    if benchmark not in BENCHMARKS:
        known = [*BENCHMARKS, "botchat"]
        raise ConfigError(
            f"unknown benchmark {benchmark!r}{did_you_mean(benchmark, known)}; "
            f"benchmarks: {', '.join(known)}"
        )
    if not data.is_dir():
        raise MissingDataError(f"no folder {data}; name the one with upstream's files with --data")
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
