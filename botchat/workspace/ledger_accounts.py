"""What the calls of a ledger took: tokens, money and time, call by call or by model and stage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from botchat.workspace.ledger import Ledger


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
    cost_usd: float | None
    unpriced_calls: int
    latency_s: float
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bill:
    """What one call took; ``None`` where the endpoint did not count or the price is unknown."""

    tokens: int | None
    """Of prompt and completion."""
    cost_usd: float | None
    latency_s: float


def bills(ledger: Ledger, keys: Iterable[str]) -> dict[str, Bill]:
    """What each of the calls ``keys`` took, as far as they are in the ledger.

    A failed call of which the endpoint counted no tokens is taken to have cost nothing.
    """
    rows = ledger.select(
        "SELECT key, outcome IN ('ok', 'truncated'), prompt_tokens, completion_tokens,"
        " cost_usd, latency_s FROM calls WHERE key IN (SELECT value FROM json_each(?))",
        json.dumps(list(keys)),
    )
    found = {}
    for key, usable, prompt, completion, cost, latency in rows:
        if prompt is None and completion is None and not usable:
            found[key] = Bill(0, 0.0, latency)
        else:
            known = prompt is not None and completion is not None
            found[key] = Bill(prompt + completion if known else None, cost, latency)
    return found


def stats(ledger: Ledger) -> list[ModelStats]:
    """Calls, tokens, money and outcomes by model and stage, sorted by name."""
    failed = dict(ledger.select("SELECT model, count(*) FROM attempts GROUP BY model"))
    outcomes: dict[tuple[str, str], dict[str, int]] = {}
    for model, stage, outcome, n in ledger.select(
        "SELECT model, stage, outcome, count(*) FROM calls GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    ):
        outcomes.setdefault((model, stage), {})[outcome] = n
    rows = ledger.select(
        "SELECT model, stage, count(*), coalesce(sum(prompt_tokens), 0),"
        " coalesce(sum(completion_tokens), 0), coalesce(sum(cached_tokens), 0),"
        " sum(cost_usd), sum(cost_usd IS NULL), sum(latency_s)"
        " FROM calls GROUP BY 1, 2 ORDER BY 1, 2"
    )
    result = [
        ModelStats(
            model=model,
            stage=stage,
            calls=calls,
            # Attempts are counted by model; shown once, beside its first stage.
            failed_attempts=failed.pop(model, 0),
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=cached,
            cost_usd=cost,
            unpriced_calls=unpriced,
            latency_s=latency,
            outcomes=outcomes[model, stage],
        )
        for model, stage, calls, prompt, completion, cached, cost, unpriced, latency in rows
    ]
    result += [
        ModelStats(model, "", 0, n, 0, 0, 0, None, 0, 0.0, {})
        for model, n in sorted(failed.items())
    ]
    return result
