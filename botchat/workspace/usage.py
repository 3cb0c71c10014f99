"""The ledger's accounts: what models cost, what calls took, who has answered."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from botchat.interfaces import Usage, settings_digest
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
    cost_usd: float | None
    unpriced_calls: int
    latency_s: float
    superseded: bool
    """These calls were forgotten: paid for, and asked again."""
    outcomes: Mapping[str, int]

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


ASKED = "FROM json_each(?) AS asked CROSS JOIN"
"""What each of many keys has, looked up one by one: ``IN`` would make a tree of them first."""


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
    rows = ledger.select(
        "SELECT told.key, prompt_tokens + completion_tokens, cost_usd, latency_s,"
        " coalesce(prompt_tokens, completion_tokens) IS NULL"
        f" AND outcome NOT IN ('ok', 'truncated') {ASKED} calls AS told ON told.key = asked.value",
        json.dumps(sorted(set(keys))),
    )
    return {
        key: Bill(0, 0.0, latency) if free else Bill(tokens, cost, latency)
        for key, tokens, cost, latency, free in rows
    }


def total(paid: Mapping[str, Bill], calls: Collection[str], figure: str) -> float | None:
    """Sum of a figure over calls; ``None``: it is not known of each. Calls are in no order."""
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
            f" sum(latency_s), {int(superseded)} AS apart, json_group_array(outcome)"
            f" FROM {table} GROUP BY 1, 2"
            for superseded, table in TABLE_OF.items()
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
    """Who was asked in a call, how, and who answered; empty: there is no such call."""

    identity: dict[str, Any]
    """See `botchat.interfaces.ChatModel`."""
    settings: dict[str, Any]
    """Identity, decoding, and a digest of the system prompt."""
    answered_by: str
    """See `answered_by`."""


def asked(ledger: Ledger, which: str, *values: Any) -> CallFacts:
    """Of the first call that ``which``, the rest of a query, selects; empty: there is none."""
    sql = f"SELECT request, raw FROM calls WHERE {which} LIMIT 1"
    for packed, raw in ledger.select(sql, *values):
        with suppress(zlib.error, ValueError, LookupError, TypeError):
            request = json.loads(zlib.decompress(packed))
            first, identity = request["messages"][0], request["identity"]
            told = settings_digest(first["content"]) if first["role"] == "system" else None
            settings = {**identity, **request["sampling"], "system_prompt": told}
            return CallFacts(identity, settings, answered_by(zlib.decompress(raw)))
    return CallFacts({}, {}, "")


def answered_by(raw: bytes | str) -> str:
    """Who answered, as a reply's body says: model and snapshot; empty: it does not."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return ""
    said = [body.get(key) for key in ("model", "system_fingerprint")] * isinstance(body, dict)
    return " ".join(part[:100] for part in said if isinstance(part, str) and part)


CHECK = "check"
"""Stage of calls that only ask whether a model answers."""


def _failed(ledger: Ledger) -> Counter[tuple[str, str]]:
    """Failed attempts by model and stage: that of the call, or the one the model was in by then."""
    began: dict[str, list[tuple[float, str]]] = {}
    for model, stage, at in ledger.select("SELECT model, stage, min(at) FROM calls GROUP BY 1, 2"):
        began.setdefault(model, []).append((at, stage))
    found: Counter[tuple[str, str]] = Counter()
    tried = "SELECT tried.model, tried.at, stage FROM attempts AS tried LEFT JOIN calls USING (key)"
    for model, at, stage in ledger.select(tried):
        stages = sorted(began.get(model, [(at, "")]))
        partial_result = [name for first, name in stages if first <= at] or [stages[0][1]]
        found[model, stage or partial_result[-1]] += 1
    return found
