"""What a run would send and cost, from the real seeds, dialogues and ledger, before it is sent.

The stage itself is run, with every call that the ledger cannot answer given an answer of the
length to be expected and counted instead of sent. So panels, cross-play, truncation and what is
already paid for are all in the plan, whatever the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from botchat.arguments import Spending
from botchat.interfaces import ChatModel, Decoding, Message, Reply, Row, Usage
from botchat.languages import ENGLISH, Language
from botchat.measures import lengths
from botchat.models.limits import Prices
from botchat.models.recorded import spoken
from botchat.models.self_chat import Length, prompt_tokens
from botchat.pipeline.run.session import Session
from botchat.pipeline.run.work import Meter, run_now
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
    # A story of five sentences, or of 200 words, said again with notes on its errors.
    "inject": (120, 250, 600),
}
"""Tokens of a reply: low, expected, high, where the ledger knows none of the model's."""

ENOUGH_CALLS = 20
"""Replies of a model in the ledger from which its own lengths are taken."""

RECENT_CALLS = 300
"""Replies that are looked at for that."""


Place: TypeAlias = tuple[str, tuple[str, ...]]
"""What a call is about: the step (``generate``, or a protocol) and the contestants."""


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
    parts: Mapping[Place, tuple[int, float | None]] = field(default_factory=dict)
    """Calls and USD by what they are about; together those above."""

    @property
    def shown(self) -> Row:
        """As a row, without the parts."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "parts"}


class Plan(list[Planned]):
    """What a request would send: each model at each level."""

    by_steps = False
    """Shown by what is done, not by model."""
    note = ""
    """How it is to be read."""

    @property
    def rows(self) -> list[Row]:
        """A model at a level each, or a step each."""
        return by_step(self) if self.by_steps else [one.shown for one in self]

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""
        return {"rows": self.rows, "contestants": by_contestant(self)}

    @property
    def shown(self) -> list[str | list[Row]]:
        """Tables of it, and how they are to be read."""
        about = by_contestant(self)
        beside: list[str | list[Row]] = ["", priced(about)]
        several = beside if self.by_steps or len(about) > 1 else []
        return [priced(self.rows), *several, *([self.note] if self.note else [])]


def priced(rows: Sequence[Row]) -> list[Row]:
    """Rows with their dollars as people read them."""

    def cell(key: str, value: Any) -> Any:
        if not key.startswith("cost_usd"):
            return value
        return "unknown price" if value is None else f"${value:,.4f}"

    return [{key: cell(key, value) for key, value in row.items()} for row in rows]


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
    about: Callable[[], Place]
    """What a call that is made now is about."""
    asked: dict[str, int] = field(default_factory=dict)
    """Key of a call -> tokens of its prompt, as we count."""
    answered: list[str] = field(default_factory=list)
    """Keys of the calls that the ledger answered, in order."""
    places: dict[str, Place] = field(default_factory=dict)
    """Key of a call -> what it is about."""
    parallel = 1

    def planned(self, level: str) -> Planned:
        """What was counted, as it would be billed."""
        by_place: dict[Place, list[int]] = {}
        for key, place in self.places.items():
            by_place.setdefault(place, []).append(self.asked[key])
        parts = {place: (len(n), self._billed(n)[2]) for place, n in by_place.items()}
        billed = self._billed(self.asked.values())
        return Planned(self.name, level, len(self.asked), *billed, parts)

    def _billed(self, prompts: Collection[int]) -> tuple[int, int, float | None]:
        """Tokens of prompts and replies, and USD, of calls with prompts of so many tokens."""
        prompt = round(sum(prompts) * self.prompt_factor)
        completion = round(len(prompts) * self.completion)
        return prompt, completion, self.prices.cost(Usage(prompt, completion))

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """The stored reply, or a made-up one that is counted."""
        key = request_key(request_json(self.identity, messages, decoding))
        stored = self.ledger.get(key)
        if stored is not None:
            self.answered.append(key)
            return spoken(stored)
        if key not in self.asked:
            self.asked[key] = prompt_tokens(messages, self.count)
            self.places[key] = self.about()
        return Reply("ok", text=_made_up(key, self.said), key=key)


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
                lambda: self.about,
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
) -> Plan:
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
    return Plan(
        model.planned(level)
        for models in by_model
        for model, level in zip(models, LEVELS, strict=True)
    )


def by_contestant(planned: Sequence[Planned]) -> list[Row]:
    """Calls and USD about each contestant, expected; of a call about two, each has a half."""
    found: dict[str, tuple[float, float | None]] = {}
    for one in planned:
        for (_, contestants), (calls, usd) in one.parts.items():
            if one.level == "expected":
                for name in contestants:
                    before, paid = found.get(name, (0.0, 0.0))
                    share = len(contestants)
                    spent = None if paid is None or usd is None else paid + usd / share
                    found[name] = (before + calls / share, spent)
    return [{"contestant": c, "calls": n, "cost_usd": usd} for c, (n, usd) in found.items()]


def by_step(planned: Sequence[Planned]) -> list[Row]:
    """Calls and USD of each step, then of all: expected, and the least and most to be expected."""
    steps = dict.fromkeys(step for one in planned for step, _ in one.parts)
    generated = sorted(steps, key=lambda step: step != "generate")
    return [_step_row(planned, step) for step in (*generated, None)]


def _step_row(planned: Sequence[Planned], step: str | None) -> Row:
    """``step``: ``None`` for all of them."""
    calls: dict[str, int] = dict.fromkeys(LEVELS, 0)
    dollars: dict[str, float | None] = dict.fromkeys(LEVELS, 0.0)
    for one in planned:
        for (of, _), (n, usd) in one.parts.items():
            if step in (None, of):
                before = dollars[one.level]
                calls[one.level] += n
                dollars[one.level] = None if before is None or usd is None else before + usd
    return {
        "step": step or "all",
        "calls": calls["expected"],
        "cost_usd": dollars["expected"],
        "cost_usd_low": dollars["low"],
        "cost_usd_high": dollars["high"],
    }


def text_length() -> Length:
    """How texts are counted: cl100k tokens, or a cautious guess where it cannot be had."""
    counter = lengths.counter()
    exact = counter.unit == "tokens"
    return Length(
        tokens=counter.count if exact else None,
        # Three bytes a token is more than English, code or Chinese need on average.
        size=counter.count if exact else lambda text: len(text.encode()) // 3 + 1,
    )
