"""Usage from the ledger: calls, tokens and cost by model, the cost of calls, who answered.

`record_provenance` keeps it in ``measured/<set>.jsonl``: a line for each model that was asked.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from botchat.frames import of_kind, package_text, read_json
from botchat.interfaces import Identity, settings_digest
from botchat.records import Dialogue, Dialogues, Judged, Judgment
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


def bills(ledger: Ledger, calls: Collection[str]) -> dict[str, Bill]:
    """Return call -> its usage, of the calls that the ledger has.

    A failed call for which the endpoint counted no tokens is taken to have cost nothing.
    """
    keys = sorted(calls)
    known = {}
    rows = ledger.select(package_text("workspace/bills.sql"), json.dumps(keys))
    for place, *figures in rows:
        known[keys[place]] = Bill._make(figures)
    return known


def share(ledger: Ledger, calls: Collection[str], n: float) -> Bill:
    """Return the usage of several calls in sum, over n; None what is not known of each."""
    known = bills(ledger, calls)
    if len(known) < len(calls):
        return Bill(None, None, None)
    figures = zip(Bill(0, 0.0, 0.0), *known.values(), strict=True)
    return Bill._make(_sum(each, n) for each in figures)


def _sum(figures: Iterable[float | None], n: float) -> float | None:
    """Return a sum over n, None if a figure is not known."""
    figures = list(figures)
    if None in figures:
        return None
    return math.fsum(each or 0.0 for each in figures) / n


def judged_calls(judgments: Iterable[Judgment]) -> set[str]:
    """Return the ledger keys of the calls that some judgments rest on."""
    return set(chain.from_iterable(judgment.calls for judgment in judgments))


def calls_of(dialogues: Iterable[Dialogue]) -> list[str]:
    """Return the ledger key of every generated utterance; of an imported one it is empty."""
    facts = chain.from_iterable(dialogue.facts for dialogue in dialogues)
    return [fact.call for fact in facts]


class CallCosts(NamedTuple):
    """USD of the calls that dialogues and judgments rest on."""

    per_dialogue: dict[str, float]
    """Contestant -> cost of its calls, over its dialogues; none where it is not known of each, or
    there are no calls. 0 is free."""
    by_judge: dict[str, float | None]
    """Judge -> cost of its judgments and all dialogues; None where it is not known of each."""
    lost: set[str]
    """Keys of calls that the ledger does not have; empty without a ledger."""


def call_costs(ledger: Ledger, dialogues: Dialogues, judged: Judged) -> CallCosts:
    """Look up the calls of each contestant, and of each judge, in the ledger, all once."""
    spoken = {name: set(calls_of(by_seed.values())) for name, by_seed in dialogues.items()}
    asked = {judge: judged_calls(judgments) for judge, judgments in judged.items()}
    usd: dict[str, float | None] = {}
    for calls in [*spoken.values(), *asked.values()]:  # not together, for the memory's sake
        usd |= {key: bill.cost_usd for key, bill in bills(ledger, calls).items()}
    per_dialogue = {}
    for name, calls in spoken.items():
        if calls:
            cost = _sum(map(usd.get, calls), len(dialogues[name]))
            if cost is not None:
                per_dialogue[name] = cost
    every = set().union(*spoken.values()) - {""}  # an imported utterance has no call
    by_judge = {judge: _sum(map(usd.get, every | calls), 1) for judge, calls in asked.items()}
    lost = set()
    if ledger.path is not None:
        lost = every.union(*asked.values()) - usd.keys()
    return CallCosts(per_dialogue, by_judge, lost)


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
