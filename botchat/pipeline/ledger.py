"""Commands on the ledger: calls and their cost, and forgetting calls."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import closing
from datetime import date
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from botchat.errors import MissingDataError, UsageError, did_you_mean, listed
from botchat.estimates import VerdictPrice
from botchat.interfaces import Cells
from botchat.models.stored import rough_tokens, visible_reply
from botchat.pipeline.contestants import stored_name
from botchat.pipeline.session import Session
from botchat.records import (
    VERSION,
    Dialogue,
    Judged,
    Judgment,
    Names,
    Provenance,
    Texts,
)
from botchat.report.contract import PageCall, PageMessage
from botchat.results import Piece, Result
from botchat.workspace import jsonl, usage
from botchat.workspace.folder import Workspace, read_dialogues, settle
from botchat.workspace.ledger import Ledger

T = TypeVar("T", Dialogue, Judgment)


def stats(workspace: Workspace) -> Result:
    """Return calls, tokens and money, a row a model and stage; note what lost its calls."""
    dialogues: list[Dialogue] = []
    for name in workspace.seed_sets():
        for by_seed in workspace.all_dialogues(name).values():
            dialogues += by_seed.values()
    judgments: list[Judgment] = []
    for path in sorted(workspace.root.glob("judgments/*/*/*.jsonl")):
        judgments += workspace.judgments(path).values()
    with closing(_open(workspace)) as ledger:
        rows = [row._asdict() for row in usage.stats(ledger)]
        lost = ledger.missing({*usage.calls_of(dialogues), *usage.judged_calls(judgments)})
    notes = lost_calls_note(lost, dialogues, judgments)
    printed = [dict(row) for row in rows]
    if not any(row["superseded"] for row in rows):
        for row in printed:
            del row["superseded"]
    return Result({"rows": rows, "notes": notes}, [printed, *notes])


def lost_calls_note(
    lost: Set[str], dialogues: Iterable[Dialogue], judgments: Iterable[Judgment]
) -> list[str]:
    """Return a note if utterances or verdicts rest on calls that the ledger does not have.

    ``lost``: the keys of these calls.
    """
    if not lost:
        return []
    n_utterances = sum(key in lost for key in usage.calls_of(dialogues))
    n_verdicts = sum(not lost.isdisjoint(judgment.calls) for judgment in judgments)
    return [
        f"{n_utterances} utterances and {n_verdicts} verdicts rest on calls "
        "that the ledger no longer has; copy the ledger back from a backup"
    ]


def forget(workspace: Workspace, outcomes: Texts, models: Texts) -> Result:
    """Let calls be asked again: of these ``outcomes`` and ``models``, empty for all.

    Dialogues and judgments that rest on them are taken out too; the commands that made them make
    them again. Raises `ConfigError` without outcomes and models, `MissingDataError` if a model has
    no call.
    """
    if not (outcomes or models):
        raise UsageError("say which calls to forget: --outcome OUTCOME or --model MODEL")
    with workspace.locked(), closing(_open(workspace, readonly=False)) as ledger:
        keys, failed = _chosen(workspace, ledger, outcomes, models)
        # Files first: what a kill leaves between the two is made again from the ledger.
        n_dialogues = _leave_out(
            workspace.root.glob("generations/*/*.jsonl"),
            read_dialogues,
            partial(_rests, keys, failed),
        )
        n_judgments = _leave_out(
            workspace.root.glob("judgments/*/*/*.jsonl"),
            workspace.judgments,
            lambda judgment: not keys.isdisjoint(judgment.calls),
        )
        n_calls = ledger.forget(keys)
    counts: Cells = {"calls": n_calls, "dialogues": n_dialogues, "judgments": n_judgments}
    pieces: list[Piece] = [[counts]]
    if n_calls:
        pieces.append("the commands that made them ask these calls again, and replay all others")
    return Result(counts, pieces)


def _chosen(
    workspace: Workspace, ledger: Ledger, outcomes: Texts, models: Texts
) -> tuple[set[str], set[Names]]:
    """Return keys of the calls to forget and, of unusable ones, model and messages."""
    known = {name for (name,) in ledger.select("SELECT DISTINCT model FROM calls")}
    names = {name: stored_name(name, workspace) for name in models}
    for name, full in names.items():
        if known.isdisjoint((name, full)):
            raise MissingDataError(
                f"the ledger has no call of {name!r}{did_you_mean(name, known)} "
                f"(there are: {listed(sorted(known))})"
            )
    chosen = {*names, *names.values()} or known
    keys = set()
    failed = set()
    for call in ledger.calls(
        "WHERE model IN (SELECT value FROM json_each(?))", json.dumps(list(chosen))
    ):
        # One that was nothing but reasoning is empty.
        reply = visible_reply(call.reply(), None, rough_tokens)
        if not outcomes or reply.outcome in outcomes:
            keys.add(call.key)
            if not reply.usable:
                messages = json.loads(bytes(call.request))["messages"][1:]
                failed.add((call.model, *(message["content"] for message in messages)))
    return keys, failed


def _rests(keys: Collection[str], failed: Collection[Names], dialogue: Dialogue) -> bool:
    """Return whether a dialogue rests on one of the calls ``keys``.

    It holds the keys of the calls that gave its utterances. Calls that gave none, because they
    stopped it or because the prompt was too long, are ``failed``: (model, the utterances it saw).
    """
    if any(fact.call in keys for fact in dialogue.facts):
        return True
    speakers = (dialogue.model, dialogue.partner or dialogue.model)
    utterances = dialogue.utterances
    # Utterances dropped before each one, and before the one that a stopped dialogue lacks.
    dropped = [fact.dropped for fact in dialogue.facts]
    if not dialogue.complete:
        dropped.append(len(utterances))
    return any(
        (speakers[i % 2], *utterances[begin : dialogue.n_seed + i]) in failed
        for i, most in enumerate(dropped)
        for begin in range(most)
    )


def _leave_out(
    paths: Iterable[Path],
    read: Callable[[Path], Mapping[Any, T]],
    is_out: Callable[[T], bool],
) -> int:
    """Remove records from stage files; return how many. All are read before any is written."""
    removed = 0
    changed = {}
    for path in sorted(paths):
        records = read(path).values()
        kept = [record for record in records if not is_out(record)]
        removed += len(records) - len(kept)
        if len(kept) < len(records):
            changed[path] = kept
    for path, kept in changed.items():
        settle(path, kept)
    return removed


def _open(workspace: Workspace, *, readonly: bool = True) -> Ledger:
    if not workspace.ledger_path.exists():
        raise MissingDataError(
            f"no ledger in {workspace.root}: no model has been called in this workspace yet"
        )
    return Ledger(workspace.ledger_path, readonly=readonly)


def cost_per_verdict(
    workspace: Workspace, judged: Judged, n_together: int = 1
) -> dict[str, VerdictPrice]:
    """Return judge -> the price of one verdict, or of several that belong together.

    A call that several verdicts rest on counts once.
    """
    prices = {}
    with closing(workspace.ledger(readonly=True)) as ledger:
        for name, judgments in judged.items():
            n = len(judgments) / n_together
            keys = usage.judged_calls(judgments)
            bill = usage.share(ledger, keys, n)
            prices[name] = VerdictPrice(len(keys) / n, bill.tokens, bill.cost_usd, bill.latency_s)
    return prices


def call_texts(workspace: Workspace, keys: Texts) -> dict[str, PageCall]:
    """Return the calls ``keys`` that the ledger has."""
    calls = {}
    with closing(workspace.ledger(readonly=True)) as ledger:
        for call in ledger.calls("WHERE key IN (SELECT value FROM json_each(?))", json.dumps(keys)):
            sent = json.loads(bytes(call.request))["messages"]
            calls[call.key] = PageCall(
                messages=[PageMessage(message["role"], message["content"]) for message in sent],
                reply=call.text or call.detail,
                tokens=call.reply().usage.total,
                usd=call.cost_usd,
            )
    return calls


def record_provenance(
    session: Session, stage: str, calls: Mapping[str, Collection[str]], changed: Collection[str]
) -> None:
    """Record the calls of a stage, by contestant or judge; ``changed`` have new calls."""
    workspace = session.run.workspace
    seed_set = session.run.seed_set.name
    known = workspace.measured(seed_set)
    recorded = {row.name for row in known if row.stage == stage}
    new = {name: keys for name, keys in calls.items() if name in changed or name not in recorded}
    rows: list[Provenance] = []
    for name, keys in new.items():
        rows += _provenance(session.ledger, stage, name, keys)
    kept = [row for row in known if row.stage != stage or row.name not in new]
    if rows or len(kept) < len(known):
        jsonl.finish(
            workspace.measured_path(seed_set), kept + rows, attrgetter("stage", "name", "model")
        )


_AMOUNTS = (
    "SELECT model, count(*), CAST(total(coalesce(prompt_tokens, 0)"
    " + coalesce(completion_tokens, 0)) AS INTEGER),"
    " CASE WHEN count(cost_usd) = count(*) THEN round(sum(cost_usd), 9) END,"
    " coalesce(date(min(at), 'unixepoch'), '1970-01-01'),"
    " coalesce(date(max(at), 'unixepoch'), '1970-01-01')"
    " FROM calls WHERE key IN (SELECT value FROM json_each(?)) GROUP BY model"
)
_ENDS_OF_DAYS = (  # the first and the last call of every day
    "WHERE rowid IN (WITH of_model AS (SELECT rowid AS id, at, CAST(at / 86400 AS INTEGER) AS day"
    " FROM calls WHERE model = ? AND key IN (SELECT value FROM json_each(?)))"
    " SELECT id FROM (SELECT id, min(at) FROM of_model GROUP BY day"
    " UNION SELECT id, max(at) FROM of_model GROUP BY day)) ORDER BY at"
)


def _provenance(
    ledger: Ledger, stage: str, name: str, keys: Collection[str]
) -> Iterator[Provenance]:
    listed = json.dumps(sorted(set(keys) - {""}))
    for model, n_calls, tokens, cost_usd, first, last in ledger.select(_AMOUNTS, listed):
        ends = [usage.call_facts(call) for call in ledger.calls(_ENDS_OF_DAYS, model, listed)]
        identity = ends[-1].identity
        settings = ends[-1].settings
        if "bot" in identity or not identity:
            continue
        revision = identity.get("revision")
        where = str(identity.get("base_url", ""))
        yield Provenance(
            stage=stage,
            name=name,
            model=model,
            asked=str(identity.get("model")),
            answered=tuple(sorted({end.answered_by for end in ends} - {""})),
            host=where.partition("//")[2].partition("/")[0] or where,
            temperature=settings["temperature"],
            system_prompt=settings["system_prompt"],
            revision=None if revision is None else str(revision),
            first=date.fromisoformat(first),
            last=date.fromisoformat(last),
            botchat=VERSION,
            calls=n_calls,
            tokens=tokens,
            cost_usd=cost_usd,
        )
