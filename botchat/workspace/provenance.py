"""Provenance: a line of ``measured/<set>.jsonl`` for each model that was asked, from the ledger."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from urllib.parse import urlsplit

from botchat.records import VERSION, Provenance
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.usage import call_facts

_DAY_S = 86_400


def note(
    workspace: Workspace,
    ledger: Ledger,
    seed_set: str,
    stage: str,
    calls: Mapping[str, Collection[str]],
    changed: Collection[str],
) -> None:
    """Record the calls of a stage, by contestant or judge; ``changed``: those with new ones."""
    known = workspace.measured(seed_set)
    recorded = {name for of, name, _ in known if of == stage}
    new = {name: keys for name, keys in calls.items() if name in changed or name not in recorded}
    rows = [row for name, keys in new.items() for row in _of(ledger, stage, name, keys)]
    kept = [row for row in known.values() if row.stage != stage or row.name not in new]
    if rows or len(kept) < len(known):
        path = workspace.measured_path(seed_set)
        jsonl.finish(path, [*kept, *rows], lambda row: (row.stage, row.name, row.model))


def _of(ledger: Ledger, stage: str, name: str, keys: Collection[str]) -> Iterator[Provenance]:
    rows = ledger.select(
        "SELECT model, at, rowid, coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0),"
        " cost_usd FROM calls WHERE key IN (SELECT value FROM json_each(?)) ORDER BY model, at",
        json.dumps(sorted({*keys} - {""})),
    )
    for model, of_model in groupby(rows, lambda row: row[0]):
        calls = list(of_model)
        days = [list(day) for _, day in groupby(calls, lambda row: row[1] // _DAY_S)]
        ends = [call_facts(ledger, "rowid=?", row[2]) for day in days for row in (day[0], day[-1])]
        settings = ends[-1].settings
        if "bot" in settings or not settings:
            continue
        where = str(settings.get("base_url", ""))
        costs = [row[4] for row in calls]
        yield Provenance(
            stage=stage,
            name=name,
            model=model,
            asked=str(settings.get("model")),
            answered=tuple(sorted({end.answered_by for end in ends} - {""})),
            host=urlsplit(where).netloc or where,
            temperature=settings.get("temperature"),
            system_prompt=settings["system_prompt"],
            revision=settings.get("revision"),
            first=_day(calls[0][1]),
            last=_day(calls[-1][1]),
            botchat=VERSION,
            calls=len(calls),
            tokens=sum(row[3] for row in calls),
            cost_usd=None if None in costs else round(math.fsum(costs), 9),
        )


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
