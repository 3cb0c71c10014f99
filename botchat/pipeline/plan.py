"""Calls and cost of a run before it is sent, from the real seeds, dialogues and ledger.

The stage itself is run, with every call that the ledger cannot answer given an answer of the
length to be expected and counted instead of sent. So panels, cross-play, truncation and what is
already paid for are all in the plan, whatever the settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from botchat.interfaces import ChatModel, Decoding, Message, Reply, Row
from botchat.languages import ENGLISH, Language
from botchat.metrics import lengths
from botchat.models.attempts import Sender
from botchat.models.limits import Prices
from botchat.models.self_chat import TokenCounter, prompt_tokens
from botchat.models.stored import rough_tokens, visible_reply, wants_more_room
from botchat.pipeline.session import Session, run_sync
from botchat.pipeline.spending import Meter, Spending
from botchat.records import Seed
from botchat.results import Result
from botchat.workspace.config import ModelName
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger, request_json, request_key
from botchat.workspace.secrets import public

LEVELS = ("expected", "high")

REPLY_TOKENS: Mapping[str, tuple[int, int]] = {
    # BotChat Table 1: median and greatest mean length of 14 models' utterances.
    "generate": (41, 199),
    # A verdict with a few sentences, a page of reasoning.
    "judge": (80, 400),
}
"""Tokens of a reply, at each level, where the ledger knows none of the model's."""

ENOUGH_CALLS, RECENT_CALLS = 20, 300
"""Replies of a model in the ledger from which its own lengths are taken, and the most that are."""

_ABOUT = {
    "generate": "a call an utterance",
    "unieval": "each dialogue alone, human ones too",
    "arena": "pairs, both orders",
    "gteval": "against the human dialogue, both orders",
}

ROUGH = (
    "This plan is rough: the vocabulary of tokens is not here, so they are guessed from bytes "
    "(docs/install.md)."
)

UNPRICED = (
    "The price of {} is not known: tell it by price_input and price_output, USD per million "
    "tokens, in a [models.NAME] of botchat.toml, and name NAME (docs/settings.md)."
)


@dataclass(frozen=True)
class PlannedCalls:
    """Calls of one model in one step, at one of `LEVELS`."""

    model: str
    step: str
    """``generate``, or a protocol."""
    level: str
    calls: int
    tokens: int
    """Prompts and replies."""
    cost_usd: float | None
    """None: the price is unknown."""
    limited: bool
    """Whether limits of a run count these calls; calls of bots do not count."""


class DryRunModel:
    """A model whose calls are answered by the ledger or counted, never sent."""

    parallel = 1

    def __init__(
        self, session: DryRunSession, model: Sender, stage: str, prices: Prices, limited: bool
    ) -> None:
        self.name, self.identity = model.name, model.identity
        self.quirks, self.context_window = model.quirks, model.context_window
        self.room, self._most_room = model.room, model.most_room
        self._session, self._prices, self._limited = session, prices, limited
        self._words, self._completion, self._prompt_factor = session.expected(model.name, stage)
        self._calls: dict[str, tuple[str, int]] = {}
        """Key of a call -> its step and the tokens of its prompt, as we count."""

    def planned(self) -> list[PlannedCalls]:
        """Return what was counted, as it would be billed."""
        by_step: dict[str, list[int]] = {}
        for step, tokens in self._calls.values():
            by_step.setdefault(step, []).append(tokens)
        level, rows = LEVELS[self._session.level], []
        for step, prompts in by_step.items():
            prompt = round(sum(prompts) * self._prompt_factor)
            completion = round(len(prompts) * self._completion)
            usd, tokens = self._prices.cost(prompt, completion), prompt + completion
            rows.append(
                PlannedCalls(self.name, step, level, len(prompts), tokens, usd, self._limited)
            )
        return rows

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Return the stored reply, or a made-up one that is counted."""
        key = request_key(request_json(self.identity, messages, decoding))
        stored = self._session.ledger.get(key)
        if stored is not None and not wants_more_room(stored, self._most_room):
            return visible_reply(stored, decoding.max_tokens, self._session.counter.estimate)
        if key not in self._calls:
            tokens = prompt_tokens(messages, self._session.counter.estimate)
            self._calls[key] = self._session.step, tokens
        return Reply("ok", text=_made_up(key, self._words), key=key)


def _made_up(key: str, tokens: int) -> str:
    """Return a reply of about ``tokens`` tokens without a verdict, different for each call.

    Two equal replies would lead to equal later calls, which would be counted once.
    """
    number = f"{int(key[:16], 16) % 10**12:012}"
    own = [f"word{number[at : at + 3]}" for at in range(0, 12, 3)][: max(1, tokens // 2)]
    return " ".join([*own, *["word"] * (tokens - 2 * len(own))])


class DryRunSession(Session):
    """A session that sends nothing."""

    def __init__(
        self,
        workspace: Workspace,
        seeds: Sequence[Seed],
        ledger: Ledger,
        level: int,
        counter: TokenCounter,
        language: Language = ENGLISH,
    ) -> None:
        """Send nothing; ``level`` is an index into `LEVELS`."""
        super().__init__(workspace, seeds, ledger, Spending(), Meter(), language)
        self.models: dict[tuple[str, str], DryRunModel] = {}
        self.level, self.counter = level, counter
        self.step = ""
        """Set by who walks through a stage, before its calls."""

    def _model(self, resolved: ModelName, stage: str, _max_tokens: int | None) -> ChatModel:
        model, limiter, prices = self._uncached(resolved)
        place = (stage, model.name)
        if place not in self.models:
            self.models[place] = DryRunModel(self, model, stage, prices, limiter is not None)
        return self.models[place]

    def expected(self, model: str, stage: str) -> tuple[int, float, float]:
        """Return tokens of a reply, ours and billed, and the ratio billed / ours of prompts."""
        recent = self.ledger.recent(model, stage, RECENT_CALLS)
        if len(recent) < ENOUGH_CALLS:
            tokens = REPLY_TOKENS[stage][self.level]
            return tokens, tokens, 1.0
        factor, count = (1.0, 2.0)[self.level], self.counter.estimate
        counted = sum(count(reply.text) for _, reply in recent) / len(recent)
        billed = sum(reply.usage.completion_tokens or 0 for _, reply in recent) / len(recent)
        prompts = sum(prompt_tokens(messages, count) for messages, _ in recent)
        billed_prompts = sum(reply.usage.prompt_tokens or 0 for _, reply in recent)
        return max(1, round(factor * counted)), factor * billed, billed_prompts / prompts


@dataclass(frozen=True)
class Plan:
    """Calls that a run would send, by model, step and level."""

    calls: Sequence[PlannedCalls]
    notes: Sequence[str]

    @property
    def rows(self) -> list[Row]:
        """Rows of steps, then the total: calls, USD, and the most USD expected (None: unknown)."""
        steps = sorted(
            {each.step: None for each in self.calls}, key=lambda step: step != "generate"
        )
        rows = []
        for step in [*steps, "total"]:
            (calls, usd), (_, high) = (self._cost(level, step) for level in LEVELS)
            rows.append({"step": step, "calls": calls, "cost_usd": usd, "cost_usd_high": high})
        return rows

    def _cost(self, level: str, step: str) -> tuple[int, float | None]:
        calls = [
            each for each in self.calls if each.level == level and step in (each.step, "total")
        ]
        prices = [each.cost_usd for each in calls]
        usd = None if None in prices else math.fsum(filter(None, prices))
        return sum(each.calls for each in calls), usd

    def result(self, title: str, spending: Spending) -> Result:
        """Return the plan as text, with its subject ``title``."""
        lines = [f"Plan: {public(title)}", f"  {'step':<14}{'calls':>10}{'USD':>10}"]
        for row in self.rows:
            usd = "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:,.2f}"
            about = _ABOUT.get(row["step"].partition("-n")[0], "")
            lines.append(f"  {row['step']:<14}{row['calls']:>10,}{usd:>10}   {about}".rstrip())
        if (high := self.rows[-1]["cost_usd_high"]) is not None:
            lines[-1] += f"   at most {high:,.2f}"
        if spending.max_usd is not None:
            lines[-1] += f"; stops at {spending.max_usd:,.2f} (max_usd)"
        return Result({"rows": self.rows, "notes": self.notes}, [*lines, *self.notes])


def plan(
    workspace: Workspace,
    seeds: Sequence[Seed],
    walk: Callable[[DryRunSession], Coroutine[Any, Any, Any]],
    language: Language = ENGLISH,
) -> Plan:
    """Return what a stage would send, for each model at each level; nothing is written.

    ``seeds``: the whole set; ``walk`` runs the stage with a session's models, storing nothing.
    """
    counter = token_counter()
    calls: list[PlannedCalls] = []
    with closing(workspace.ledger(readonly=True)) as ledger:
        for level in range(len(LEVELS)):
            session = DryRunSession(workspace, seeds, ledger, level, counter, language)
            run_sync(walk(session))
            calls += [each for model in session.models.values() for each in model.planned()]
        notes = _minutes(ledger, sum(each.calls for each in calls if each.level == LEVELS[0]))
    unknown = dict.fromkeys(each.model for each in calls if each.cost_usd is None)
    notes += [UNPRICED.format(" and ".join(unknown))] if unknown else []
    return Plan(calls, notes if counter.exact else [*notes, ROUGH])


def _minutes(ledger: Ledger, calls: int) -> list[str]:
    """Return about how long the calls take, if the ledger has a last run."""
    sql = "SELECT at FROM calls WHERE latency_s > 0 ORDER BY at DESC LIMIT ?"
    gaps = [a - b for (a,), (b,) in pairwise(ledger.select(sql, RECENT_CALLS))]
    n = next((i for i, gap in enumerate(gaps) if gap > 60), len(gaps))  # another run ends there
    minutes = max(1, round(calls * sum(gaps[:n]) / max(1, n) / 60))
    known = calls > 0 and n >= ENOUGH_CALLS
    return [f"About {minutes:,} min at the rate of the last run."] * known


def token_counter() -> TokenCounter:
    """Return how texts are counted: cl100k tokens, or a cautious guess where it cannot be had."""
    counter = lengths.counter()
    exact = counter.unit == "tokens"
    return TokenCounter(
        exact=counter.count if exact else None,
        estimate=counter.count if exact else rough_tokens,
    )
