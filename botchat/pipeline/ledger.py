"""The ledger's accounts: what was asked, what it cost, moving it to another machine, forgetting."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from botchat.errors import BotChatError, ConfigError, MissingDataError, did_you_mean
from botchat.models.cached import strip_reasoning
from botchat.pipeline.run.contestants import full_name
from botchat.records import HUMAN, UNANSWERED, Dialogue, Dialogues
from botchat.requests import (
    Accounting,
    ExportingCalls,
    Forgetting,
    ImportingCalls,
)
from botchat.requests.results import Told
from botchat.workspace import jsonl, usage
from botchat.workspace import ledger as stored
from botchat.workspace.folder import Workspace, dialogue_order, judgment_order, read_dialogues

T = TypeVar("T", bound=msgspec.Struct)


def stats(_: Accounting, workspace: Workspace) -> Told:
    """Calls, tokens and money, a row a model and stage."""
    with closing(_existing(workspace)) as ledger:
        rows = [asdict(one) for one in usage.stats(ledger)]
    never = set() if any(row["superseded"] for row in rows) else {"superseded"}
    return Told({"rows": rows}, [[{k: row[k] for k in row if k not in never} for row in rows]])


def export(request: ExportingCalls, workspace: Workspace) -> Told:
    """Write all calls, or those since a time, as JSON lines, gzip for ``.gz``."""
    path, since = request.path, request.since
    first = -math.inf if since is None else _moment(since)
    with closing(_existing(workspace)) as ledger:
        return Told({"path": path, "calls": ledger.export(path, first)})


def _moment(text: str) -> float:
    """Seconds of the epoch of an ISO 8601 time, UTC where it does not say."""
    try:
        said = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"--since {text[:40]!r}: write a time like 2026-11-22 or 2026-11-22T12:00Z"
        ) from None
    return (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()


def import_(request: ImportingCalls, workspace: Workspace) -> Told:
    """Add the calls of an exported ledger; ``known``: those that were here already."""
    path = request.path
    if not path.exists():
        raise MissingDataError(f"no file {path}; make it with: botchat ledger export {path}")
    with workspace.locked(), closing(workspace.ledger()) as ledger:
        added, known = ledger.import_calls(path)
    return Told({"path": path, "added": added, "known": known})


def forget(request: Forgetting, workspace: Workspace) -> Told:
    """Let calls be asked again: of these ``outcomes``, ``models`` and ``stage``, empty for all.

    Dialogues and judgments that rest on them are taken out too; the commands that made them make
    them again. Raises `ConfigError` if nothing says which, `MissingDataError`: no call of a model.
    """
    outcomes, models, stage = request.outcomes, request.models, request.stage
    if not (outcomes or models):
        raise ConfigError("say which calls to forget: --outcome OUTCOME or --model MODEL")
    with workspace.locked(), closing(_existing(workspace, readonly=False)) as ledger:
        known = {name for (name,) in ledger.select("SELECT DISTINCT model FROM calls")}
        for name in models:
            if known.isdisjoint((name, full_name(name, workspace))):
                raise MissingDataError(
                    f"the ledger has no call of {name!r}{did_you_mean(name, known)} "
                    f"(there are: {', '.join(sorted(known))})"
                )
        chosen = {
            # A reply that was nothing but thoughts is empty, and stored as it was said.
            "outcome": {*outcomes, *(("ok", "truncated") if "empty" in outcomes else ())},
            "model": {*models, *(full_name(name, workspace) for name in models)},
            "stage": {stage} - {None},
        }
        asked = {name: json.dumps([*these]) for name, these in chosen.items() if these}
        which = " AND ".join(f"{name} IN (SELECT value FROM json_each(?))" for name in asked)
        keys, failed = set(), set()
        for call in ledger.calls(f"WHERE {which}", *asked.values()):
            reply = strip_reasoning(call.reply())
            if outcomes and reply.outcome not in outcomes:
                continue
            keys.add(call.key)
            if not reply.usable:
                said = json.loads(bytes(call.request))["messages"][1:]
                failed.add((call.model, *(message["content"] for message in said)))
        # Files first: what a kill leaves between the two is made again from the ledger.
        dialogues = leave_out(
            workspace.root.glob("generations/*/*.jsonl"),
            read_dialogues,
            lambda dialogue: _rests(dialogue, keys, failed),
            dialogue_order,
        )
        judgments = leave_out(
            workspace.root.glob("judgments/*/*/*.jsonl"),
            workspace.judgments,
            lambda judgment: not keys.isdisjoint(judgment.calls),
            judgment_order,
        )
        whole = {"calls": ledger.forget(keys), "dialogues": dialogues, "judgments": judgments}
    again = "the commands that made them ask these calls again, and replay all others"
    return Told(whole, [[whole], *([again] if whole["calls"] else [])])


def _rests(dialogue: Dialogue, keys: Collection[str], failed: Collection[tuple[str, ...]]) -> bool:
    """Whether a dialogue rests on one of the calls ``keys``.

    It holds the keys of the calls that gave its utterances. Those that gave none, because they
    stopped it or because the prompt was too long, are ``failed``: (model, the utterances it saw).
    """
    if any(fact.call in keys for fact in dialogue.facts):
        return True
    speakers = (dialogue.model, dialogue.partner or dialogue.model)
    said, facts = dialogue.utterances, dialogue.facts
    # Of each utterance, and of the one that a stopped dialogue lacks, how many were dropped.
    dropped = [fact.dropped for fact in facts] + ([] if dialogue.complete else [len(said)])
    return any(
        (speakers[i % 2], *said[begin : dialogue.n_seed + i]) in failed
        for i, most in enumerate(dropped)
        for begin in range(most)
    )


def leave_out(
    paths: Iterable[Path],
    read: Callable[[Path], Mapping[Any, T]],
    those: Callable[[T], bool],
    order: Callable[[T], Any],
) -> int:
    """Remove records from stage files; how many. Nothing is written if a file cannot be read."""
    removed, changed = 0, {}
    for path in sorted(paths):
        records = read(path).values()
        kept = [record for record in records if not those(record)]
        removed += len(records) - len(kept)
        if len(kept) < len(records):
            changed[path] = kept
    for path, kept in changed.items():
        if kept:
            jsonl.finish(path, kept, order)
        else:
            delete(path)
    return removed


def delete(path: Path) -> None:
    """Remove a stage file, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BotChatError(f"cannot delete {path}: {error.strerror}") from None


def _existing(workspace: Workspace, *, readonly: bool = True) -> stored.Ledger:
    if not workspace.ledger_path.exists():
        raise MissingDataError(
            f"no ledger in {workspace.root}: no model has been called in this workspace yet"
        )
    return stored.Ledger(workspace.ledger_path, readonly=readonly)


MOST_CALLS = 100_000
"""Calls that the costs of conversations are counted of; of more, those of some seeds."""


def conversation_costs(workspace: Workspace, dialogues: Dialogues) -> dict[str, float]:
    """Contestant -> dollars of one conversation: what its calls cost, over its dialogues.

    0 is free; a contestant of which a call is not in the ledger, or has no known price, is left
    out, and so is `HUMAN`. Of a large set the dialogues on some seeds are counted.
    """
    made = {name: by for name, by in dialogues.items() if name != HUMAN}
    calls = sum(len(dialogue.facts) for by in made.values() for dialogue in by.values())
    step = -(-calls // MOST_CALLS) or 1
    keys = {
        name: [
            [fact.call for fact in one.facts if fact.outcome not in UNANSWERED]
            for one in islice(by.values(), 0, None, step)
        ]
        for name, by in made.items()
    }
    asked = {key for by in keys.values() for of_dialogue in by for key in of_dialogue}
    with closing(workspace.ledger(readonly=True)) as ledger:
        paid = usage.bills(ledger, asked)
    found = {}
    for name, by in keys.items():
        usd = usage.total(paid, [key for each in by for key in each], "cost_usd")
        if by and usd is not None:
            found[name] = usd / len(by)
    return found
