"""What a run would send and cost, from the real seeds, dialogues and ledger, before it is sent.

The stage itself is run, with every call that the ledger cannot answer given an answer of the
length to be expected and counted instead of sent. So panels, cross-play, truncation and what is
already paid for are all in the plan, whatever the settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

from botchat.interfaces import ChatModel, Decoding, Message, Reply, Row
from botchat.languages import ENGLISH, Language
from botchat.metrics import lengths
from botchat.models.limits import Prices
from botchat.models.self_chat import TokenCounter, prompt_tokens, strip_reasoning
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.session import Session
from botchat.pipeline.run.spending import Spending
from botchat.pipeline.run.work import run_now
from botchat.records import Seed
from botchat.results import Result
from botchat.workspace.config import ModelName
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger, request_json, request_key
from botchat.workspace.secrets import public

LEVELS = ("expected", "high")

Place: TypeAlias = tuple[str, tuple[str, ...]]
"""What a call is about: the step (``generate``, or a protocol) and the contestants."""

Cost: TypeAlias = tuple[int, float | None]
"""Calls and USD; None: the price of a call is unknown."""

REPLY_TOKENS: Mapping[str, tuple[int, int]] = {
    # BotChat Table 1: median and greatest mean length of 14 models' utterances.
    "generate": (41, 199),
    # A verdict with a few sentences, a page of reasoning.
    "judge": (80, 400),
}
"""Tokens of a reply, at each level, where the ledger knows none of the model's."""

ENOUGH_CALLS = 20
"""Replies of a model in the ledger from which its own lengths are taken."""

ROUGH = (
    "This plan is rough: the vocabulary of tokens is not here, so they are guessed from bytes "
    "(docs/install.md)."
)

UNPRICED = (
    "The price of {} is not known: tell it by price_input and price_output, USD per million "
    "tokens, in a [models.NAME] of botchat.toml, and name NAME (docs/settings.md)."
)

RECENT_CALLS = 300
"""Replies that are looked at for that."""


class PlannedModel:
    """A model whose calls are answered by the ledger or counted, never sent."""

    parallel = 1

    def __init__(
        self, session: PlanningSession, model: ChatModel, stage: str, prices: Prices, limited: bool
    ) -> None:
        """``limited``: whether limits of a run count its calls."""
        self.name, self.identity = model.name, model.identity
        self.quirks = session.ledger.quirks(model.identity)
        self.context_window = model.context_window or self.quirks.get("context_window")
        self._session, self._prices, self._limited = session, prices, limited
        self._said, self.completion, self.prompt_factor = session.expected(model.name, stage)
        self.asked: dict[str, int] = {}
        """Key of a call -> tokens of its prompt, as we count."""
        self._places: dict[str, Place] = {}
        """Key of a call -> what it is about."""

    def planned(self, level: str) -> Planned:
        """What was counted, as it would be billed."""
        by_place: dict[Place, list[int]] = {}
        for key, place in self._places.items():
            by_place.setdefault(place, []).append(self.asked[key])
        parts = {place: (len(n), self._billed(n)[1]) for place, n in by_place.items()}
        billed = self._billed(self.asked.values())
        return Planned(self.name, level, len(self.asked), *billed, parts, self._limited)

    def _billed(self, prompts: Collection[int]) -> tuple[int, float | None]:
        """Tokens of prompts and replies together, and USD, of calls with such prompts."""
        prompt = round(sum(prompts) * self.prompt_factor)
        completion = round(len(prompts) * self.completion)
        return prompt + completion, self._prices.cost(prompt, completion)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """The stored reply, or a made-up one that is counted."""
        key = request_key(request_json(self.identity, messages, decoding))
        stored = self._session.ledger.get(key)
        if stored is not None:
            return strip_reasoning(stored)
        if key not in self.asked:
            self.asked[key] = prompt_tokens(messages, self._session.count)
            self._places[key] = self._session.about
        return Reply("ok", text=_made_up(key, self._said), key=key)


def _made_up(key: str, tokens: int) -> str:
    """A reply of about so many tokens, and no verdict; that to another call has other words, of 2.

    Were two the same, so would be what is asked about them: it would be counted as one call.
    """
    number = f"{int(key[:16], 16) % 10**12:012}"
    own = [f"word{number[at : at + 3]}" for at in range(0, 12, 3)][: max(1, tokens // 2)]
    return " ".join([*own, *["word"] * (tokens - 2 * len(own))])


class PlanningSession(Session):
    """A session that sends nothing."""

    def __init__(
        self,
        workspace: Workspace,
        seeds: Sequence[Seed],
        ledger: Ledger,
        level: int,
        count: Callable[[str], int],
        language: Language = ENGLISH,
    ) -> None:
        """``level``: index into `LEVELS`."""
        super().__init__(workspace, seeds, ledger, Spending(), Meter(), language)
        self.planned: dict[tuple[str, str], PlannedModel] = {}
        self.level = level
        self.about: Place = ("", ())
        """Set by who walks through a stage, before what it asks."""
        self.count = count

    def _model(self, resolved: ModelName, stage: str, _max_tokens: int | None) -> ChatModel:
        model, limiter, prices = self._uncached(resolved)
        place = (stage, model.name)
        if place not in self.planned:
            self.planned[place] = PlannedModel(self, model, stage, prices, limiter is not None)
        return self.planned[place]

    def expected(self, model: str, stage: str) -> tuple[int, float, float]:
        """Tokens of a reply as we count, and as billed; prompt tokens as billed / as we count."""
        recent = self.ledger.recent(model, stage, RECENT_CALLS)
        if len(recent) < ENOUGH_CALLS:
            tokens = REPLY_TOKENS[stage][self.level]
            return tokens, tokens, 1.0
        factor = (1.0, 2.0)[self.level]
        said = sum(self.count(reply.text) for _, reply in recent) / len(recent)
        billed = sum(reply.usage.completion_tokens or 0 for _, reply in recent) / len(recent)
        counted = sum(prompt_tokens(messages, self.count) for messages, _ in recent)
        prompts = sum(reply.usage.prompt_tokens or 0 for _, reply in recent)
        return max(1, round(factor * said)), factor * billed, prompts / counted


@dataclass(frozen=True)
class Planned:
    """What one model would be asked, at one of `LEVELS`."""

    model: str
    level: str
    calls: int
    tokens: int
    """Prompts and replies."""
    cost_usd: float | None
    """None: the price is unknown."""
    parts: Mapping[Place, Cost]
    """Calls and USD by what they are about; together those above."""
    limited: bool
    """Whether limits of a run count it: bots they do not."""


@dataclass(frozen=True)
class Plan:
    """What a run would send: each model at each level."""

    planned: Sequence[Planned]
    notes: Sequence[str]

    @property
    def rows(self) -> list[Row]:
        """A step each, then all: calls, USD, and the most USD to be expected; None is unknown."""
        names = dict.fromkeys(step for each in self.planned for step, _ in each.parts)
        rows = []
        for name in [*sorted(names, key=lambda step: step != "generate"), "total"]:
            (calls, usd), (_, high) = (self._cost(level, name) for level in LEVELS)
            rows.append({"step": name, "calls": calls, "cost_usd": usd, "cost_usd_high": high})
        return rows

    def _cost(self, level: str, step: str) -> Cost:
        parts = [
            cost
            for each in self.planned
            for (name, _), cost in each.parts.items()
            if each.level == level and step in (name, "total")
        ]
        prices = [usd for _, usd in parts]
        return sum(n for n, _ in parts), None if None in prices else math.fsum(filter(None, prices))

    def result(self, title: str, spending: Spending) -> Result:
        """Return the plan as people read it; ``title``: what it is of."""
        lines = [f"Plan: {public(title)}", f"  {'step':<14}{'calls':>10}{'USD':>10}"]
        for row in self.rows:
            usd = "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:,.2f}"
            lines.append(f"  {row['step']:<14}{row['calls']:>10,}{usd:>10}")
        if (high := self.rows[-1]["cost_usd_high"]) is not None:
            lines[-1] += f"   at most {high:,.2f}"
        if spending.max_usd is not None:
            lines[-1] += f"; stops at {spending.max_usd:,.2f} (max_usd)"
        return Result({"rows": self.rows, "notes": self.notes}, [*lines, *self.notes])


def plan(
    workspace: Workspace,
    seeds: Sequence[Seed],
    walk: Callable[[PlanningSession, TokenCounter], Coroutine[Any, Any, None]],
    language: Language = ENGLISH,
) -> Plan:
    """What a stage would send, for each model at each level; nothing is written.

    ``seeds``: the whole set; ``walk`` runs the stage with a session's models, storing nothing.
    """
    counter = token_counter()
    planned = []
    with closing(workspace.ledger(readonly=True)) as ledger:
        for level, name in enumerate(LEVELS):
            session = PlanningSession(workspace, seeds, ledger, level, counter.estimate, language)
            run_now(walk(session, counter))
            planned += [model.planned(name) for model in session.planned.values()]
    unknown = dict.fromkeys(each.model for each in planned if each.calls and each.cost_usd is None)
    notes = [UNPRICED.format(" and ".join(unknown))] if unknown else []
    return Plan(planned, notes if counter.exact else [*notes, ROUGH])


def token_counter() -> TokenCounter:
    """How texts are counted: cl100k tokens, or a cautious guess where it cannot be had."""
    counter = lengths.counter()
    exact = counter.unit == "tokens"
    return TokenCounter(
        exact=counter.count if exact else None,
        # Three bytes a token is more than English, code or Chinese need on average.
        estimate=counter.count if exact else lambda text: len(text.encode()) // 3 + 1,
    )
