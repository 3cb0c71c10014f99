"""The ledger's accounts: what models cost, what calls took, who has answered."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from botchat.workspace.calls import COUNTS
from botchat.workspace.ledger import TABLE_OF, Ledger


@dataclass(frozen=True)
class ModelStats:
    """What one model has cost so far in one stage. ``cost_usd`` counts known prices only."""

    model: str
    stage: str
    calls: int
    failed_attempts: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    unpriced_calls: int
    latency_s: float
    superseded: bool
    """These calls were forgotten: paid for, and asked again."""
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bill:
    """What one call took; ``None`` where the endpoint did not count or the price is unknown."""

    tokens: int | None
    """Prompt and completion together."""
    cost_usd: float | None
    latency_s: float


def bills(ledger: Ledger, keys: Iterable[str]) -> dict[str, Bill]:
    """What each of the calls ``keys`` took, as far as the ledger knows.

    A failed call for which the endpoint counted no tokens is taken to have cost nothing.
    """
    asked = json.dumps(list(keys))
    rows = ledger.select(
        "SELECT key, tokens, cost_usd, latency_s, false FROM bills"
        " WHERE key IN (SELECT value FROM json_each(?))",
        asked,
    ) + ledger.select(
        "SELECT key, prompt_tokens + completion_tokens, cost_usd, latency_s,"
        " coalesce(prompt_tokens, completion_tokens) IS NULL"
        " AND outcome NOT IN ('ok', 'truncated')"
        " FROM calls WHERE key IN (SELECT value FROM json_each(?))",
        asked,
    )
    return {
        key: Bill(0, 0.0, latency) if free else Bill(tokens, cost, latency)
        for key, tokens, cost, latency, free in rows
    }


def stats(ledger: Ledger) -> list[ModelStats]:
    """Calls, tokens, money and outcomes by model and stage, superseded calls apart; by name."""
    failed = dict(ledger.select("SELECT model, count(*) FROM attempts GROUP BY model"))
    # total() of absurd counts that an older version stored does not overflow, as sum() does.
    sums = ", ".join(f"CAST(total({name}) AS INTEGER)" for name in COUNTS)
    rows = ledger.select(
        " UNION ALL ".join(
            f"SELECT model, stage, count(*), 0, {sums}, sum(cost_usd), sum(cost_usd IS NULL),"
            f" sum(latency_s), {int(superseded)} AS apart, json_group_array(outcome)"
            f" FROM {table} GROUP BY 1, 2"
            for superseded, table in TABLE_OF.items()
        )
        + " ORDER BY 1, 2, apart"
    )
    # Failed attempts are counted by model; they are shown once, beside its first stage.
    result = [
        replace(
            ModelStats(*row),
            failed_attempts=failed.pop(row[0], 0),
            superseded=bool(row[-2]),
            outcomes=dict(Counter(sorted(json.loads(row[-1])))),
        )
        for row in rows
    ]
    never = (
        (name, "", 0, n, 0, 0, 0, 0, None, 0, 0.0, False) for name, n in sorted(failed.items())
    )
    return [*result, *(ModelStats(*row, {}) for row in never)]


def askers(ledger: Ledger) -> dict[str, tuple[dict[str, Any], int]]:
    """Model -> who answered its latest call (`ChatModel.identity`), and its number of calls."""
    sql = "SELECT model, max(rowid), count(*) FROM calls GROUP BY model"
    found = {}
    for model, row, n in ledger.select(sql):
        ((request,),) = ledger.select("SELECT request FROM calls WHERE rowid=?", row)
        with suppress(zlib.error, ValueError, KeyError):  # it is damaged
            found[model] = (json.loads(zlib.decompress(request))["identity"], n)
    return found
