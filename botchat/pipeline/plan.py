"""What a run would send and cost, from the real seeds, dialogues and ledger, before it is sent.

The stage itself is run, with every call that the ledger cannot answer given an answer of the
length to be expected and counted instead of sent. So panels, cross-play, truncation and what is
already paid for are all in the plan, whatever the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from botchat.interfaces import ChatModel, Decoding, Message, Reply, Usage
from botchat.languages import ENGLISH, Language
from botchat.measures import lengths
from botchat.models.limits import Prices
from botchat.models.recorded import spoken
from botchat.models.roles import prompt_tokens
from botchat.models.self_chat import Length
from botchat.pipeline.run import Meter, run_now
from botchat.pipeline.session import Session, Spending
from botchat.records import Seed
from botchat.workspace.config import ModelName
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger, request_json, request_key

LEVELS = ("low", "expected", "high")

REPLY_TOKENS: Mapping[str, tuple[int, int, int]] = {
    # BotChat Table 1: least, median and greatest mean length of 14 models' utterances.
    "generate": (20, 41, 199),
    # A verdict with a sentence, a few sentences, a page of reasoning.
    "judge": (20, 80, 400),
}
"""Tokens of a reply: low, expected, high, where the ledger knows none of the model's."""

ENOUGH_CALLS = 20
"""Replies of a model in the ledger from which its own lengths are taken."""

RECENT_CALLS = 300
"""Replies that are looked at for that."""


@dataclass(frozen=True)
class Planned:
    """What one model would be asked, at one of `LEVELS`."""

    model: str
    level: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """``None``: the price is unknown."""


@dataclass
class PlannedModel:
    """A model whose calls are answered by the ledger or counted, never sent."""

    name: str
    identity: Mapping[str, Any]
    context_window: int | None
    ledger: Ledger
    prices: Prices
    said: int
    """Tokens of a reply's text to be expected, as we count."""
    completion: float
    """Tokens of a reply to be expected, as billed, thoughts included."""
    prompt_factor: float
    """Prompt tokens as billed / as we count: another tokenizer, another template."""
    count: Callable[[str], int]
    """Tokens of a text."""
    quirks: Mapping[str, Any]
    asked: dict[str, int] = field(default_factory=dict)
    """Key of a call -> tokens of its prompt, as we count."""
    parallel = 1

    def planned(self, level: str) -> Planned:
        """What was counted, as it would be billed."""
        prompt = round(sum(self.asked.values()) * self.prompt_factor)
        completion = round(len(self.asked) * self.completion)
        cost = self.prices.cost(Usage(prompt, completion))
        return Planned(self.name, level, len(self.asked), prompt, completion, cost)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """The stored reply, or a made-up one that is counted."""
        key = request_key(request_json(self.identity, messages, decoding))
        stored = self.ledger.get(key)
        if stored is not None:
            return spoken(stored)
        if key not in self.asked:
            self.asked[key] = prompt_tokens(messages, self.count)
        # Not all the same, since a call about another reply is another call; no verdict either.
        first = f"word{int(key[:8], 16) % 1000}"
        return Reply("ok", text=" ".join([first, *["word"] * (self.said - 2)]), key=key)


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
        self._count = count

    def _model(self, resolved: ModelName, stage: str, _max_tokens: int | None) -> ChatModel:
        model, _, prices, _ = self._unrecorded(resolved)
        place = (stage, model.name)
        if place not in self.planned:
            self.planned[place] = PlannedModel(
                model.name,
                model.identity,
                model.context_window,
                self._ledger,
                prices,
                *self._expected(model.name, stage),
                self._count,
                self._ledger.quirks(model.identity),
            )
        return self.planned[place]

    def tokens(self, calls: Iterable[str]) -> float | None:
        """Those of the ledger, and those to be expected."""
        keys, expected = set(calls), 0.0
        for model in self.planned.values():
            for key in keys & model.asked.keys():
                expected += model.prompt_factor * model.asked[key] + model.completion
            keys -= model.asked.keys()
        stored = super().tokens(keys)
        return None if stored is None else stored + expected

    def _expected(self, model: str, stage: str) -> tuple[int, float, float]:
        """``said``, ``completion`` and ``prompt_factor`` of `PlannedModel`."""
        recent = self._ledger.recent(model, stage, RECENT_CALLS)
        if len(recent) < ENOUGH_CALLS:
            tokens = REPLY_TOKENS[stage][self.level]
            return tokens, tokens, 1.0
        factor = (0.5, 1.0, 2.0)[self.level]
        said = sum(self._count(reply.text) for _, reply in recent) / len(recent)
        billed = sum(reply.usage.completion_tokens or 0 for _, reply in recent) / len(recent)
        counted = sum(prompt_tokens(messages, self._count) for messages, _ in recent)
        prompts = sum(reply.usage.prompt_tokens or 0 for _, reply in recent)
        return max(1, round(factor * said)), factor * billed, prompts / counted


def plan(
    workspace: Workspace,
    seeds: Sequence[Seed],
    walk: Callable[[PlanningSession, Length], Coroutine[Any, Any, None]],
    language: Language = ENGLISH,
) -> list[Planned]:
    """What a stage would send, for each model at each level; nothing is written.

    ``seeds``: the whole set; ``walk`` runs the stage with a session's models, storing nothing.
    """
    length = text_length()
    path = workspace.ledger_path
    sessions = []
    with closing(Ledger(path, readonly=True) if path.exists() else Ledger(None)) as ledger:
        for level in range(len(LEVELS)):
            session = PlanningSession(workspace, seeds, ledger, level, length.size, language)
            run_now(walk(session, length))
            sessions.append(session)
    by_model = zip(*(session.planned.values() for session in sessions), strict=True)
    return [
        model.planned(level)
        for models in by_model
        for model, level in zip(models, LEVELS, strict=True)
    ]


def text_length() -> Length:
    """How texts are counted: cl100k tokens, or a cautious guess where it cannot be had."""
    counter = lengths.counter()
    exact = counter.unit == "tokens"
    return Length(
        tokens=counter.count if exact else None,
        # Three bytes a token is more than English, code or Chinese need on average.
        size=counter.count if exact else lambda text: len(text.encode()) // 3 + 1,
    )
