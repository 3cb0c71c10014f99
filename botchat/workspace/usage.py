"""Usage from the ledger: calls, tokens and cost by model, the cost of calls, who answered.

`record_provenance` keeps it in ``measured/<set>.jsonl``: a line for each model that was asked.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botchat.interfaces import Usage, settings_digest
from botchat.records import VERSION, Provenance
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger


@dataclass(frozen=True)
class ModelStats:
    """Usage of one model in one stage. ``cost_usd`` counts known prices only."""

    model: str
    stage: str
    calls: int
    failed_attempts: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost_usd: float | None
    unpriced_calls: int
    latency_s: float
    superseded: bool
    """These calls were forgotten: paid for, and asked again."""
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bill:
    """Usage of one call; None where the endpoint did not count or the price is unknown."""

    tokens: int | None
    """Prompt and completion together."""
    cost_usd: float | None
    latency_s: float


def bills(ledger: Ledger, keys: Iterable[str]) -> dict[str, Bill]:
    """Return the usage of the calls ``keys`` that the ledger has.

    A failed call for which the endpoint counted no tokens is taken to have cost nothing.
    """
    rows = ledger.select(
        "SELECT calls.key, prompt_tokens + completion_tokens, cost_usd, latency_s,"
        " coalesce(prompt_tokens, completion_tokens) IS NULL"
        " AND outcome NOT IN ('ok', 'truncated')"
        # Looked up one by one: IN would make a tree of the keys first.
        " FROM json_each(?) AS k CROSS JOIN calls ON calls.key = k.value",
        json.dumps(sorted(set(keys))),
    )
    return {
        key: Bill(0, 0.0, latency) if free else Bill(tokens, cost, latency)
        for key, tokens, cost, latency, free in rows
    }


def total(paid: Mapping[str, Bill], calls: Collection[str], figure: str) -> float | None:
    """Return the sum of a figure over calls; None if it is not known of each."""
    known = [getattr(paid[call], figure) for call in calls if call in paid]
    return math.fsum(known) if None not in known and len(known) == len(calls) else None


def stats(ledger: Ledger) -> list[ModelStats]:
    """Calls, tokens, money and outcomes by model and stage, superseded calls apart; by name."""
    failed = _failed(ledger)
    # total() of absurd counts that an older version stored does not overflow, as sum() does.
    sums = ", ".join(f"CAST(total({name}) AS INTEGER)" for name in Usage.__struct_fields__)
    rows = ledger.select(
        " UNION ALL ".join(
            f"SELECT model, stage, count(*), 0, {sums}, sum(cost_usd), sum(cost_usd IS NULL),"
            f" sum(latency_s), {superseded} AS apart, json_group_array(outcome)"
            f" FROM {table} GROUP BY 1, 2"
            for superseded, table in enumerate(("calls", "superseded"))
        )
        + " ORDER BY 1, 2, apart"
    )
    result = [
        replace(
            ModelStats(*row),
            failed_attempts=failed.pop(row[:2], 0),
            superseded=bool(row[-2]),
            outcomes=dict(Counter(sorted(json.loads(row[-1])))),
        )
        for row in rows
    ]
    never = ((*at, 0, n, 0, 0, 0, None, 0, 0.0, False) for at, n in sorted(failed.items()))
    return [*result, *(ModelStats(*row, {}) for row in never)]


class CallFacts(NamedTuple):
    """Identity and settings of a call, and who answered; all empty if there is no such call."""

    identity: dict[str, Any]
    settings: dict[str, Any]
    """Identity, decoding, and a digest of the system prompt."""
    answered_by: str


def call_facts(ledger: Ledger, which: str, *values: Any) -> CallFacts:
    """Return the facts of the first call that ``which``, the rest of a query, selects."""
    sql = f"SELECT request, raw FROM calls WHERE {which} LIMIT 1"
    for packed, raw in ledger.select(sql, *values):
        with suppress(zlib.error, ValueError, LookupError, TypeError):
            request = json.loads(zlib.decompress(packed))
            first, identity = request["messages"][0], request["identity"]
            digest = settings_digest(first["content"]) if first["role"] == "system" else None
            settings = {**identity, **request["sampling"], "system_prompt": digest}
            return CallFacts(identity, settings, answered_by(zlib.decompress(raw)))
    return CallFacts({}, {}, "")


def answered_by(raw: bytes | str) -> str:
    """Return model and snapshot as a reply's body names them; empty if it does not."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return ""
    names = [body.get(key) for key in ("model", "system_fingerprint")] * isinstance(body, dict)
    return " ".join(part[:100] for part in names if isinstance(part, str) and part)


CHECK = "check"
"""Stage of calls that only ask whether a model answers."""


def _failed(ledger: Ledger) -> Counter[tuple[str, str]]:
    """Failed attempts by model and the stage of the call; no stage if it was never answered."""
    sql = (
        "SELECT tried.model, coalesce(stage, ''), count(*) FROM attempts AS tried"
        " LEFT JOIN calls USING (key) GROUP BY 1, 2"
    )
    return Counter({(model, stage): n for model, stage, n in ledger.select(sql)})


_DAY_S = 86_400


def record_provenance(
    workspace: Workspace,
    ledger: Ledger,
    seed_set: str,
    stage: str,
    calls: Mapping[str, Collection[str]],
    changed: Collection[str],
) -> None:
    """Record the calls of a stage, by contestant or judge; ``changed`` have new calls."""
    known = workspace.measured(seed_set)
    recorded = {name for of_stage, name, _ in known if of_stage == stage}
    new = {name: keys for name, keys in calls.items() if name in changed or name not in recorded}
    rows = [row for name, keys in new.items() for row in _provenance(ledger, stage, name, keys)]
    kept = [row for row in known.values() if row.stage != stage or row.name not in new]
    if rows or len(kept) < len(known):
        path = workspace.measured_path(seed_set)
        jsonl.finish(path, [*kept, *rows], lambda row: (row.stage, row.name, row.model))


def _provenance(
    ledger: Ledger, stage: str, name: str, keys: Collection[str]
) -> Iterator[Provenance]:
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
