"""Interfaces: a protocol asks a `Case`, a judge gives a `JudgeAnswer`, a model a `Reply`.

Protocols and judges import this module, never each other. What costs money is behind `ChatModel`,
what decides is behind `Judge`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypedDict

import msgspec

from botchat.records import (
    N_SEED,
    UNANSWERED,
    Dialogue,
    Names,
    Outcome,
    Remark,
    Utterances,
    Verdict,
)

CountTokens: TypeAlias = Callable[[str], int]
"""Counts the tokens of a text."""

Row: TypeAlias = dict[str, Any]
"""One row of a table, JSON-ready: column key -> value; a missing value is ``None`` or absent.
The interval of a number ``x`` is in ``x_low`` and ``x_high``."""


Kind: TypeAlias = Literal["place", "choice", "score", "report"]
"""Kind of a judge's answer; see `botchat.protocols.protocol`."""

Subject: TypeAlias = Literal["answers", "dialogues", "texts"]
"""Subject of the roles of a panel, which must fit the question: which of two answers is better,
who is a model, or anything else, such as one text by itself."""

Report: TypeAlias = Literal["none", "read", "asked"]
"""Use of a report in questions and answers (MATEval §3.2): not understood, read in place of the
answer, or the answer that is asked for."""


Cells: TypeAlias = dict[str, object]
"""Cells of one row of a table by the keys of its columns; a missing value is None or absent."""


class Message(TypedDict):
    """One chat message in the OpenAI layout."""

    role: Literal["system", "user", "assistant"]
    content: str


class Identity(TypedDict, total=False):
    """Settings that decide a model's answers besides the request: no secrets, part of ledger keys.

    An endpoint's model has the first eight, the last two where they are set; a bot the others.
    """

    model: str
    base_url: str
    temperature: bool
    """Whether it is sent."""
    layout: str
    system: str
    extra: dict[str, Any]
    revision: str
    headers: dict[str, str]
    bot: str
    version: int
    corpus: str
    language: str


@dataclass(frozen=True)
class Decoding:
    """Sampling of a reply. The defaults are the papers' (temperature 0)."""

    temperature: float | None = 0.0
    max_tokens: int | None = None
    sample: int = 0
    """Number of the draw: asking the same request again has a ledger key of its own."""

    @property
    def settings(self) -> dict[str, Any]:
        """All of it, JSON-ready, for keys and digests."""
        return {**vars(self)}


MOST_TOKENS = 1_000_000_000
"""A call with more was miscounted."""


# Unicode's categories of control, format and combining characters, of halves and of blanks
_UNSEEN = ("Cc", "Cf", "Cs", "Mn", "Me", "Zs", "Zl", "Zp")
# Letters and a symbol without ink: Hangul fillers, and Braille's blank
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"


def visible(text: str) -> bool:
    """Return whether a text shows anything: not only blanks, zero-width or control characters.

    What this Python's Unicode does not know yet, such as new emoji and scripts, is visible.
    """
    if text[:1].isalnum() and text.isascii():  # as most texts
        return True
    return any(c not in _FILLERS and unicodedata.category(c) not in _UNSEEN for c in text)


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the endpoint billed them; None if it did not report them."""

    prompt_tokens: int | None = None
    """Tokens of the whole prompt, what came from the cache included."""
    completion_tokens: int | None = None
    """Everything that was generated, reasoning included."""
    cached_tokens: int | None = None
    """Part of the prompt that was read from the provider's cache."""

    @property
    def total(self) -> int | None:
        """Tokens of prompt and reply; None if one is unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


Layout: TypeAlias = Literal["natural", "merge-leading", "placeholder-user"]
"""Order of messages that a chat template takes; see `botchat.models.endpoint.apply_layout`."""

SystemRole: TypeAlias = Literal["system", "system-in-user"]
"""Place of the system prompt."""


class Quirks(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that an endpoint has refused of a model's requests, or told about the model.

    It only grows, and has one owner: the ledger.
    """

    context_window: int | msgspec.UnsetType | None = msgspec.UNSET
    """Tokens of prompt and reply; None: the endpoint does not tell; unset: it was never asked."""
    parameters: dict[str, str | None] = {}
    """Parameters that are refused -> the one to send instead; None: it is left out."""
    layout: Layout | None = None
    system: SystemRole | None = None
    thinks: bool = False
    """Whether the model spends tokens on reasoning before its visible text."""

    @property
    def window(self) -> int | None:
        """Tokens of prompt and reply; None if unknown."""
        return self.context_window or None

    @property
    def changes(self) -> list[str]:
        """Changes of a request in words; empty where it means the same."""
        words = [
            f"without {name}"
            for name, new_name in sorted(self.parameters.items())
            if new_name is None and name != "stream"
        ]
        for word in (self.layout, self.system):
            if word not in (None, "natural", "system"):
                words.append(str(word))
        return words


class Sent(Quirks, frozen=True, omit_defaults=True):
    """The quirks that a request was sent with."""

    room: int = 0
    """Tokens for reasoning, beyond those of the visible text."""


class Reply(msgspec.Struct, frozen=True):
    """End of one model call. ``text`` is something the model said only where ``usable``."""

    outcome: Outcome
    text: str = ""
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency_s: float = 0.0
    cost_usd: float | None = None
    """Cost in USD; None if the price is unknown, never 0."""
    detail: str = ""
    """One line that explains any outcome but ``ok``."""
    raw: str = ""
    """The endpoint's whole body."""
    sent: Sent = Sent()
    model: str = ""
    """Model that answered, as the endpoint names it; empty from the ledger."""
    key: str = ""
    """Ledger key; empty until recorded."""

    @property
    def usable(self) -> bool:
        """Whether ``text`` may be used as what the model said."""
        return self.outcome in ("ok", "truncated")

    @property
    def answered(self) -> bool:
        """Whether the endpoint gave an answer, if only a refusal."""
        return self.outcome not in UNANSWERED


class ModelFacts(Protocol):
    """Facts of a model that callers need before they ask it."""

    @property
    def name(self) -> str:
        """The name users call it by."""

    @property
    def identity(self) -> Identity:
        """All that decides its answers besides the request; equal ones share replies."""

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together; None if unknown."""

    @property
    def quirks(self) -> Quirks:
        """Refusals of its endpoint, as far as they are known; none of a model of our own."""

    @property
    def room(self) -> int:
        """Tokens of a reply that are for reasoning, beyond those of its visible text."""

    @property
    def parallel(self) -> int:
        """Calls worth having in flight at once."""


class ChatModel(ModelFacts, Protocol):
    """Anything that can continue a chat."""

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Answer ``messages`` (system first, then alternating roles, the last one ``user``).

        Raises only `FatalModelError`, `LimitReached` and, where a limit could not be kept,
        `ConfigError` before anything is sent.
        """


OWN_PART = 4
"""Part of the window in a model's entry that a reply may take: a quarter."""
LEARNT_PART = 2
"""Part of a window learnt from the endpoint: a half."""


def reply_tokens(model: ModelFacts, max_tokens: int) -> int:
    """Return the most tokens of a reply, reasoning included; its text has a part of the window."""
    window = model.context_window
    if window is not None:
        part = OWN_PART
        if model.quirks.window == window:
            part = LEARNT_PART
        max_tokens = max(16, min(max_tokens, window // part))
    return max_tokens + model.room


def quirks_suffix(models: Iterable[ChatModel]) -> str:
    """Return the end of a signature: how requests to these models are asked otherwise."""
    changes: set[str] = set()
    for model in models:
        changes.update(f"{model.name} {change}" for change in model.quirks.changes)
    if changes:
        return f"|adapted:{', '.join(sorted(changes))}"
    return ""


def settings_digest(*settings: Any) -> str:
    """Return 8 hex digits of any JSON-ready settings, for signatures."""
    return hashlib.sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest()[:8]


def round_floats(value: Any) -> Any:
    """Round a JSON-ready value's numbers to 12 digits: further ones differ between processors."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list | tuple):
        return [round_floats(each) for each in value]
    if isinstance(value, Mapping):
        return {key: round_floats(each) for key, each in value.items()}
    return value


@dataclass(frozen=True)
class ShownDialogue:
    """A dialogue as a case shows it."""

    contestant: str
    utterances: Utterances
    n_seed: int = N_SEED
    """First utterances that are not the contestant's."""

    @classmethod
    def of(cls, dialogue: Dialogue, end: int | None = None) -> ShownDialogue:
        """Return a dialogue, cut to its first ``end`` utterances."""
        return cls(dialogue.contestant, dialogue.utterances[:end], dialogue.n_seed)

    @cached_property
    def digest(self) -> bytes:
        """64 hex digits of the utterances."""
        return _digest(self.utterances)


ShownDialogues: TypeAlias = tuple[ShownDialogue, ...]
"""Dialogues of a case, in the order shown."""

VerdictReason: TypeAlias = tuple[Verdict | None, str]
"""Content of a reply: (verdict, reason); the verdict is None if it is unreadable."""


class KnownCase:
    """Identity of a case, also where its question is not made."""

    __slots__ = ()
    protocol: str
    seed_id: str
    dialogues: ShownDialogues

    @property
    def contestants(self) -> Names:
        """Names in the order shown."""
        return tuple([dialogue.contestant for dialogue in self.dialogues])

    @property
    def digest(self) -> str:
        """16 hex digits of protocol and dialogues; the wording is in the signature instead."""
        return case_digest(self.protocol, *self.dialogues)


@dataclass(frozen=True)
class Case(KnownCase):
    """One question to a judge, complete in itself."""

    protocol: str
    seed_id: str
    dialogues: ShownDialogues
    wording: str | Callable[[], str] = field(repr=False)
    """The prompt, or what words it: not every judge reads it."""
    choices: Set[Verdict]
    """The verdicts that the question offers."""
    read: Callable[[str], VerdictReason] = field(repr=False)
    """Reads a reply; the verdict is None if the text has none of ``choices``."""
    mirror: MakeCase | None = field(default=None, repr=False, compare=False)
    """Makes the case with its two dialogues (or answers) swapped; None if it has only one."""
    kind: Kind | None = None
    """Kind of the answer."""
    about_ai: bool = False
    """Whether it asks what tells models from humans, which is what the rules judge knows."""
    report: Report = "none"
    """Role of a report in questions and answers."""

    @cached_property
    def prompt(self) -> str:
        """The whole question in the papers' wording, dialogues included."""
        if isinstance(self.wording, str):
            return self.wording
        return self.wording()

    @property
    def task(self) -> str:
        """The prompt as far as its first dialogue."""
        first = self.dialogues[0].utterances[0]
        return self.prompt[: max(0, self.prompt.find(first))].strip() or self.prompt


MakeCase: TypeAlias = Callable[[], Case]


class CaseRef(KnownCase, msgspec.Struct, frozen=True, gc=False):
    """Identifies a case and builds its prompt on demand, so judged cases never build one."""

    protocol: str
    seed_id: str
    dialogues: ShownDialogues
    about: Callable[..., Case]

    def __call__(self) -> Case:
        """Return the case."""
        return self.about(self.seed_id, *self.dialogues)


def case_ref(make: MakeCase) -> KnownCase:
    """Return ``make`` if it is a `CaseRef`, else the case that it builds."""
    if isinstance(make, CaseRef):
        return make
    return make()


def case_digest(protocol: str, *dialogues: ShownDialogue) -> str:
    """Return the digest of a case that shows these, in this order."""
    joined = b"\0".join([protocol.encode(), *[dialogue.digest for dialogue in dialogues]])
    return hashlib.sha256(joined).hexdigest()[:16]


@lru_cache(maxsize=1 << 15)
def _digest(utterances: Utterances) -> bytes:
    """Return a digest, cached because a dialogue meets each opponent twice."""
    joined = "".join([f"{len(text)}:{text}" for text in utterances])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest().encode()


class JudgeAnswer(NamedTuple):
    """A judge's answer to a case, with everything it rests on; see `botchat.records.Judgment`."""

    verdict: Verdict | None
    reason: str = ""
    outcome: Outcome = "ok"
    transcript: tuple[Remark, ...] = ()
    calls: Names = ()


class Judge(Protocol):
    """Anything that answers a `Case`: a single model, a panel, rules, a person."""

    @property
    def name(self) -> str:
        """The name its judgments are filed under."""

    @property
    def parallel(self) -> int:
        """Cases worth having in flight at once."""

    @property
    def digest(self) -> str:
        """8 hex digits of everything that decides its verdicts besides the case."""

    @property
    def models(self) -> Sequence[ChatModel]:
        """Models that it asks; empty if it decides by itself."""

    async def answer(self, case: Case) -> JudgeAnswer:
        """Answer one case. Raises only `FatalModelError` and `LimitReached`."""
