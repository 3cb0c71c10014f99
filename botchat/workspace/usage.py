"""Usage from the ledger: calls, tokens and cost by model, the cost of calls, who answered.

`record_provenance` keeps it in ``measured/<set>.jsonl``: a line for each model that was asked.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from botchat.frames import of_kind, package_text, read_json
from botchat.interfaces import Identity, settings_digest
from botchat.workspace.ledger import Ledger, StoredCall


class ModelStats(NamedTuple):
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


class Bill(NamedTuple):
    """Usage of calls; None where the endpoint did not count or the price is unknown."""

    tokens: float | None
    """Prompt and completion together."""
    cost_usd: float | None
    latency_s: float | None


PACE = "SELECT CAST(value AS REAL) AS pace FROM meta WHERE name = 'pace'"
"""Query for the seconds that a call of the last run took, in all, if there was one."""


def keep_pace(ledger: Ledger, started: float) -> None:
    """Keep the pace of a run that began at ``started``, if it asked endpoints enough calls."""
    ledger.select(
        "INSERT OR REPLACE INTO meta SELECT 'pace', ? / count(*) FROM calls"
        " WHERE latency_s > 0 AND at >= ? HAVING count(*) >= 20",
        time.time() - started,
        started,
    )


def share(ledger: Ledger, calls: Collection[str], n: float) -> Bill:
    """Return the usage of several calls in sum, over n; None what is not known of each.

    A failed call for which the endpoint counted no tokens is taken to have cost nothing.
    """
    keys = set(calls)
    rows = ledger.select(package_text("workspace/bills.sql"), json.dumps(sorted(keys)))
    if len(rows) < len(keys):
        return Bill(None, None, None)
    shares = []
    for figures in zip(Bill(0, 0.0, 0.0), *rows, strict=True):
        is_known = None not in figures
        shares.append(math.fsum(each or 0.0 for each in figures) / n if is_known else None)
    return Bill._make(shares)


def stats(ledger: Ledger) -> list[ModelStats]:
    """Calls, tokens, money and outcomes by model and stage, superseded calls apart; by name.

    Failed attempts of calls that were never answered come last.
    """
    result = []
    for *counts, old, ends in ledger.select(package_text("workspace/stats.sql")):
        outcomes = dict(Counter(sorted(json.loads(ends))))
        result.append(ModelStats._make([*counts, bool(old), outcomes]))
    return result


class CallFacts(NamedTuple):
    """Identity and settings of a call, and who answered."""

    identity: Identity
    settings: dict[str, Any]
    """Identity, decoding, and a digest of the system prompt."""
    answered_by: str
    """Model and snapshot as the reply's body names them; empty if it does not."""


def call_facts(call: StoredCall) -> CallFacts:
    """Return the facts of a call."""
    request = json.loads(bytes(call.request))
    first = request["messages"][0]
    # Of an identity, ``temperature`` is whether it is sent.
    settings = {**request["identity"], "temperature": None, **request["sampling"]}
    settings["system_prompt"] = None
    if first["role"] == "system":
        settings["system_prompt"] = settings_digest(first["content"])
    body = read_json(call.raw)
    names = [of_kind(str, body, "model"), of_kind(str, body, "system_fingerprint")]
    answered_by = " ".join(name[:100] for name in names if name)
    return CallFacts(request["identity"], settings, answered_by)


CHECK = "check"
"""Stage of calls that only ask whether a model answers."""
