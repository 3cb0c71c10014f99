"""How far a run and a set are, what they cost, and the newest of them, for `botchat view`.

A run tells its plan, its limits and what it has done (`botchat.pipeline.run.progress`); what a set
holds is read from stage files, what that cost from the ledger. Nothing is written.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from botchat.errors import BotChatError
from botchat.measures.intervals import share
from botchat.pipeline.run import progress
from botchat.pipeline.run.session import catalogue_of
from botchat.pipeline.run.work import UNREADABLE
from botchat.protocols.catalogue import Catalogue
from botchat.records import SOMEWHERE, Dialogue, Judgment, Utterance
from botchat.report.live import News, Standings, State, StepRow
from botchat.workspace.accounts import ModelStats, bills, stats
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.progress import Progress, StepProgress

Record = TypeVar("Record", Dialogue, Judgment)
T = TypeVar("T")

_NEWEST = 4
"""Dialogues that are shown."""

_NEWS = 9
"""Verdicts that are shown, and failures."""

_ENOUGH = 20
"""Verdicts on a contestant that is shown among the standings so far."""

_FILES = 6
"""Stage files looked at for the newest: those that were written last."""

_TAIL = 1 << 18
"""Bytes at the end of a file that are looked at for the newest."""

_OF_A_FILE = 60
"""Records of them."""

_ATTEMPTS = (
    "SELECT at, model, outcome, detail FROM attempts AS tried "
    "WHERE NOT EXISTS (SELECT 1 FROM calls WHERE calls.key = tried.key) ORDER BY rowid DESC LIMIT ?"
)
"""Tries of calls that have no answer yet."""

ACCOUNTS_S = 5.0
"""How old the sums of the whole ledger may be."""


class _Paid(msgspec.Struct, frozen=True):
    """The part of a line of a stage file that says which calls it rests on."""

    facts: tuple[Utterance, ...] = ()
    calls: tuple[str, ...] = ()
    verdict: str | None = ""
    status: str = "complete"


class Live:
    """Looks at one set of a workspace, again and again; may be asked by several threads."""

    def __init__(self, workspace: Workspace, seed_set: str, *, talk: str = "") -> None:
        """``talk``: address of the room to talk in, if there is one."""
        self._workspace, self._seed_set, self._talk = workspace, seed_set, talk
        self._lock = threading.Lock()
        self._known: dict[tuple[Path, str], tuple[tuple[int, int], object]] = {}
        self._sums: tuple[float, list[ModelStats]] = (0.0, [])

    def state(self) -> State:
        """How everything is now. Raises `BotChatError`, `OSError`: a file that cannot be read."""
        with self._lock:
            try:
                return self._state()
            except FileNotFoundError:  # a run has just put another file in its place
                return self._state()

    def _state(self) -> State:
        workspace, seed_set, now = self._workspace, self._seed_set, time.time()
        catalogue, seeds = catalogue_of(workspace, seed_set), workspace.seeds(seed_set)
        running, told = workspace.writer() or "", progress.read(workspace)
        run = _run(told, running) if told else None
        said = _by_age(workspace.root / "generations" / seed_set, "*.jsonl")
        ruled = _by_age(workspace.root / "judgments" / seed_set, "*/*.jsonl")
        # Protocol and judge, or no protocol and the contestant, of what a run is filling.
        filling = told.steps if told and told.state == "running" and running else ()
        busy = {(step.protocol, step.by) for step in filling if step.seed_set == seed_set}
        with closing(workspace.ledger(readonly=True)) as ledger:
            filed = partial(self._filed, ledger=ledger, catalogue=catalogue, busy=busy)
            talks = (filed(path, Dialogue, lambda _: len(seeds)) for path in said)
            dialogues = [one for one in talks if one]
            n_dialogues = sum(one.done for one in dialogues)

            def most(protocol: str) -> int | None:
                found = catalogue.find(protocol)
                return found.most_cases(seeds, len(dialogues), n_dialogues) if found else None

            verdicts = [one for path in ruled if (one := filed(path, Judgment, most))]
            page = workspace.out(seed_set) / "index.html"
            href = f"/{quote(seed_set)}/" if workspace.made_here(page) else ""
            newest = _newest(ruled, Judgment, _OF_A_FILE)
            times = _times(ledger, newest)
            if not 0 <= now - self._sums[0] < ACCOUNTS_S:
                self._sums = (now, stats(ledger))
            news = [(one, _worded(one, catalogue, href, times.get(one.calls))) for one in newest]
            failed = [
                News([(model, True)], f"{outcome}, tried again", why, at=at)
                for at, model, outcome, why in ledger.select(_ATTEMPTS, _NEWS)
            ]
            failed += [told for one, told in news if one.verdict is None]
            read = [told for one, told in news if one.verdict is not None]
            return State(
                seed_set,
                running=running,
                page=href,
                talk=self._talk,
                now=now,
                run=run,
                run_steps=[_step(one, run.state, catalogue) for one in run.steps] if run else [],
                steps=sorted(
                    [*dialogues, *verdicts],
                    key=lambda step: (step.name != "Dialogues", step.name, step.by),
                ),
                standings=next(
                    filter(None, (self._standings(path, catalogue) for path in ruled)), None
                ),
                calls=self._sums[1],
                said=_newest(said, Dialogue, 1)[:_NEWEST],
                verdicts=_latest(read),
                failed=_latest(failed),
            )

    def _filed(
        self,
        path: Path,
        kind: type[Record],
        most: Callable[[str], int | None],
        ledger: Ledger,
        catalogue: Catalogue,
        busy: set[tuple[str, str]],
    ) -> StepRow | None:
        """How far a stage file is, and what it cost; ``None``: it has no record."""
        first = self._of(path, "name", lambda: _first(path, kind))
        if first is None:
            return None
        done = self._of(path, "lines", lambda: _lines(path))
        protocol, by = _whose(first)
        talks = not protocol
        calls, cost, unpriced, failed = self._account(path, ledger, (protocol, by) in busy)
        planned = max(most(protocol) or 0, done)
        return StepRow(
            _title(catalogue, protocol),
            by,
            done,
            planned,
            "dialogues" if talks else "verdicts",
            calls,
            cost,
            unpriced,
            f"{failed:,} {'stopped' if talks else UNREADABLE}" if failed else "",
            "failed" if failed else "waiting" if talks and done < planned else "done",
            at_most=not talks,
        )

    def _standings(self, path: Path, catalogue: Catalogue) -> Standings | None:
        """What a judge has said, of those judged often enough; ``None``: of nobody."""
        first = self._of(path, "name", lambda: _first(path, Judgment))
        protocol = catalogue.find(first.protocol) if first else None
        if first is None or protocol is None:
            return None

        def count() -> dict[str, list[tuple[float, str]]]:
            decoder, given = msgspec.json.Decoder(Judgment), dict[str, list[tuple[float, str]]]()
            for line in path.read_bytes().splitlines():
                with suppress(msgspec.MsgspecError, BotChatError):
                    one = decoder.decode(line)
                    for name, value in protocol.values(one):
                        given.setdefault(name, []).append((value, one.seed_id))
            return given

        rows = []
        for name, told in self._of(path, "given", count).items():
            if len(told) >= _ENOUGH:
                found = share([value for value, _ in told], [seed for _, seed in told], "share")
                ends = found["share"], found["share_low"], found["share_high"]
                rows.append((name, len(told), *ends))
        about = f"{_title(catalogue, first.protocol)}, by {first.judge}"
        return Standings(about, sorted(rows, key=lambda row: (-row[2], row[0]))) if rows else None

    def _account(
        self, path: Path, ledger: Ledger, busy: bool
    ) -> tuple[int | None, float | None, int, int]:
        """Calls, cost, calls of unknown price and failures behind a stage file.

        While a run fills it these are not known: the run has told them.
        """

        def count() -> tuple[int, float, int, int]:
            decoder, keys, failed = msgspec.json.Decoder(_Paid), set[str](), 0
            with path.open("rb") as file:
                for line in file:
                    with suppress(msgspec.MsgspecError):
                        one = decoder.decode(line)
                        keys.update(one.calls, (fact.call for fact in one.facts if fact.call))
                        failed += one.verdict is None or one.status != "complete"
            found = bills(ledger, keys).values()
            known = [bill.cost_usd for bill in found if bill.cost_usd is not None]
            return len(found), sum(known), len(found) - len(known), failed

        return (None, None, 0, 0) if busy else self._of(path, "account", count)

    def _of(self, path: Path, what: str, find: Callable[[], T]) -> T:
        """What was found in a file, found again only when the file has changed."""
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._known.get((path, what))
        if known is None or known[0] != stamp:
            known = self._known[path, what] = (stamp, find())
        return known[1]  # type: ignore[return-value]


# ------------------------------------------------------------------------------------ the run


def _run(told: Progress, running: str) -> Progress:
    """A run as people follow it. ``running``: who writes to the workspace now."""
    alive = running.startswith(f"process {told.process} on {told.host}:")
    state = "killed" if told.state == "running" and not alive else told.state
    command = re.sub(r" --(dir|out|data)[= ]\S+| --json\b", "", told.command)
    return msgspec.structs.replace(told, state=state, command=command)


def _step(step: StepProgress, state: str, catalogue: Catalogue) -> StepRow:
    planned = None if step.left is None else step.counted + step.left
    by_calls = planned != 0
    whole = step.items is not None and step.done >= step.items
    lost = {"transport", "malformed"} & step.failures.keys()
    going = state == "running" and step.begun and not whole
    return StepRow(
        _title(catalogue, step.protocol),
        step.by,
        step.counted if by_calls else step.done,
        planned if by_calls else step.items,
        "calls" if by_calls else "verdicts" if step.protocol else "dialogues",
        step.calls,
        step.cost_usd,
        step.unpriced,
        ", ".join(f"{n:,} {kind}" for kind, (n, _) in step.failures.items()),
        "running" if going else "failed" if lost else "done" if whole else "waiting",
    )


def _title(catalogue: Catalogue, protocol: str) -> str:
    """What a step is called; without a protocol it makes dialogues."""
    found = catalogue.find(protocol)
    if found is None:
        return protocol or "Dialogues"
    return (found.short or found.title) + (f", {found.n} utterances" if found.n else "")


# ------------------------------------------------------------------------------- stage files


def _by_age(folder: Path, pattern: str) -> list[Path]:
    """Stage files, those written last first."""
    return sorted(folder.glob(pattern), key=lambda path: (-path.stat().st_mtime_ns, path))


def _newest(files: Sequence[Path], kind: type[Record], of_each: int) -> list[Record]:
    """Those of the files that were written last."""
    return [record for path in files[:_FILES] for record in _last(path, kind, of_each)]


def _whose(one: Dialogue | Judgment) -> tuple[str, str]:
    """Protocol and judge, or no protocol and the contestant."""
    return ("", one.contestant) if isinstance(one, Dialogue) else (one.protocol, one.judge)


def _first(path: Path, kind: type[Record]) -> Record | None:
    found = _last(path, kind, 1)
    return found[0] if found else None


def _last(path: Path, kind: type[Record], most: int) -> list[Record]:
    """The last whole records of a file, newest first, as far as they are near its end."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        lines = file.read().splitlines()
    found: list[Record] = []
    for line in reversed(lines):
        with suppress(msgspec.MsgspecError):  # it is being written, or cut at the window's edge
            found.append(msgspec.json.decode(line, type=kind))
        if len(found) == most:
            break
    return found


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))


def _times(ledger: Ledger, judgments: Sequence[Judgment]) -> dict[tuple[str, ...], float]:
    """Calls of a judgment -> when the last of them was answered."""
    keys = {one.calls[-1]: one.calls for one in judgments if one.calls}
    rows = ledger.select(
        "SELECT key, at FROM calls WHERE key IN (SELECT value FROM json_each(?))",
        msgspec.json.encode(list(keys)).decode(),
    )
    return {keys[key]: at for key, at in rows}


def _worded(one: Judgment, catalogue: Catalogue, page: str, at: float | None) -> News:
    """A verdict in words, with names."""
    protocol, names, verdict = catalogue.find(one.protocol), one.contestants, one.verdict
    pair = len(names) == 2
    result = protocol.result(verdict) if protocol and pair else None
    better = "is more human than" if protocol and protocol.about_ai else "beats"
    said: list[tuple[str, bool]]
    if verdict is None or protocol is None:
        said = [part for name in names for part in ((name, True), (", ", False))][:-1]
        if verdict is not None:
            said.append((f": {verdict}", False))
    elif pair and result is not None:
        tie = {"both": "Both machines: ", "neither": "Neither a machine: "}.get(verdict, "A tie: ")
        first, second = names if result >= 0.5 else names[::-1]
        said = [(first, True), (f" {better} ", False), (second, True)]
        if result == 0.5:
            said = [(tie, False), (first, True), (", ", False), (second, True)]
    elif protocol.kind == "place" and (verdict := protocol.whole(verdict)) is not None:
        place = "somewhere" if verdict == SOMEWHERE else f"from utterance {verdict} on"
        found = "nothing accused" if verdict == "No" else f"a machine {place}"
        said = [(names[0], True), (f": {found}", False)]
    else:
        said = [(names[0], True), (f": {(one.verdict or '')[:80]}", False)]
    where = {"view": "pair", "protocol": one.protocol} if pair else {"view": one.protocol}
    about = where | dict(zip("ab", names, strict=False)) | {"seed": one.seed_id, "judge": one.judge}
    text = one.transcript[-1].text if verdict is None and one.transcript else one.reason
    address = f"{page}#{urlencode(about)}" if page else ""
    return News(said, f"{one.seed_id} · {one.judge}", text, address, at)


def _latest(news: Sequence[News]) -> list[News]:
    """The newest; what has no time comes last, in the order of its file."""
    return sorted(news, key=lambda one: -(one.at or 0.0))[:_NEWS]
