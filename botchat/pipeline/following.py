"""What a set looks like while a run goes on, read from its files without any lock."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from botchat.errors import MissingError
from botchat.pipeline.ledger import stats_rows
from botchat.protocols import diagnosis, gteval, unieval
from botchat.protocols.arena import eligible
from botchat.records import Dialogue, Judgment
from botchat.report.live import Calls, Progress, State
from botchat.workspace.folder import Workspace

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
    n_dialogues, n_models, n_cases = sum(made[p] for p in said), len(said), len(eligible(seeds))
    most = {
        unieval.PROTOCOL: n_dialogues + len(seeds),
        diagnosis.PROTOCOL: n_dialogues + len(seeds),
        gteval.PROTOCOL: 2 * n_models * n_cases,
    }
    verdicts = []
    for path, newest in ruled.items():
        protocol = newest[0].protocol
        total = most.get(protocol, 2 * comb(n_models, 2) * n_cases)
        name = f"{protocol} by {newest[0].judge}"
        verdicts.append(Progress(name, made[path], max(total, made[path]), at_most=True))
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
        if len(found) == _OF_A_FILE:
            break
        try:
            found.append(msgspec.json.decode(line, type=kind))
        except msgspec.MsgspecError:
            continue  # being written just now, or cut at the window's edge
    return found


def _calls(workspace: Workspace) -> list[Calls]:
    try:
        rows = stats_rows(workspace)
    except MissingError:
        return []
    return [
        Calls(
            row["model"],
            row["stage"],
            row["calls"],
            row["prompt_tokens"] + row["completion_tokens"],
            row["cost_usd"] or 0.0,
            row["unpriced_calls"],
            ", ".join(f"{number:,} {what}" for what, number in row["outcomes"].items()),
        )
        for row in rows
    ]


def _lines(path: Path) -> int:
    return sum(block.count(b"\n") for block in _blocks(path))


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
