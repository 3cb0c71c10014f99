"""How far a set is, what it cost, and the newest of it, for the page that follows a run."""

from __future__ import annotations

from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from botchat.pipeline.session import catalogue_of
from botchat.records import Dialogue, Judgment
from botchat.report.live import Calls, Progress, State
from botchat.workspace.accounts import stats
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger

Record = TypeVar("Record", Dialogue, Judgment)

_NEWEST = 4
"""Dialogues that are shown, and verdicts."""

_OF_A_FILE = 2
"""Of one file, so that several models at work are all seen."""

_TAIL = 1 << 18
"""Bytes at the end of a file that are looked at for the newest."""


def state(workspace: Workspace, seed_set: str) -> State:
    """How far everything is, what it cost, and the newest of it."""
    said = _files(workspace.root / "generations" / seed_set, "*.jsonl", Dialogue)
    ruled = _files(workspace.root / "judgments" / seed_set, "*/*.jsonl", Judgment)
    seeds = workspace.seeds(seed_set)
    made = {path: _lines(path) for path in (*said, *ruled)}
    n_dialogues, n_models = sum(made[path] for path in said), len(said)
    catalogue = catalogue_of(workspace)
    verdicts = []
    for path, newest in ruled.items():
        protocol = catalogue.find(newest[0].protocol)
        most = protocol.most_cases(seeds, n_models, n_dialogues) if protocol else 0
        name = f"{newest[0].protocol} by {newest[0].judge}"
        verdicts.append(Progress(name, made[path], max(most, made[path]), at_most=True))
    page = workspace.out(seed_set) / "index.html"
    return State(
        seed_set,
        running=workspace.writer() or "",
        page=f"/{quote(seed_set)}/" if page.exists() else "",
        dialogues=[
            Progress(newest[0].contestant, made[path], max(len(seeds), made[path]))
            for path, newest in said.items()
        ],
        verdicts=verdicts,
        calls=_calls(workspace),
        said=_newest(said),
        ruled=_newest(ruled),
    )


def _files(folder: Path, pattern: str, kind: type[Record]) -> dict[Path, list[Record]]:
    """Every stage file with its newest records, newest first; files without any are left out."""
    found = {path: _last(path, kind) for path in sorted(folder.glob(pattern))}
    return {path: records for path, records in found.items() if records}


def _newest(files: dict[Path, list[Record]]) -> list[Record]:
    """Those of the files that were written last."""
    by_age = sorted(files, key=lambda path: -path.stat().st_mtime)
    return [record for path in by_age for record in files[path]][:_NEWEST]


def _last(path: Path, kind: type[Record]) -> list[Record]:
    """The last whole records of a file, newest first, as far as they are near its end."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        lines = file.read().splitlines()
    found: list[Record] = []
    for line in reversed(lines):
        with suppress(msgspec.MsgspecError):  # it is being written, or cut at the window's edge
            found.append(msgspec.json.decode(line, type=kind))
        if len(found) == _OF_A_FILE:
            break
    return found


def _calls(workspace: Workspace) -> list[Calls]:
    if not workspace.ledger_path.exists():
        return []
    with closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        return [
            Calls(
                of.model,
                f"{of.stage}, superseded" if of.superseded else of.stage,
                of.calls,
                of.prompt_tokens + of.completion_tokens,
                of.cost_usd or 0.0,
                of.unpriced_calls,
                ", ".join(f"{number:,} {what}" for what, number in of.outcomes.items()),
            )
            for of in stats(ledger)
        ]


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))
