"""Where rooms meet: a protocol asks (`Case`), a judge answers (`Answer`), a model speaks (`Reply`).

Protocols and judges know only this module, never each other. Everything that costs money is
behind `ChatModel`; everything that decides is behind `Judge`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import msgspec

from botchat.records import UNANSWERED, Outcome, Remark, Verdict

Row: TypeAlias = dict[str, Any]
"""One line of a table, JSON-ready: column key -> value, ``None`` (or absent) where it is missing.
A figure ``x`` with an interval stands beside ``x_low`` and ``x_high``."""


Kind: TypeAlias = Literal["place", "choice", "score", "report"]
"""What a judge answers with; see `botchat.protocols.kinds`."""


class Message(TypedDict):
    """One chat message in the OpenAI layout."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Decoding:
    """How a reply is drawn. The defaults are the papers' (temperature 0).

    ``sample`` numbers independent draws of the same request, so that each has its own ledger key.
    """

    temperature: float | None = 0.0
    max_tokens: int | None = None
    sample: int = 0
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply is to follow; what cannot hold a model to it leaves it out."""
    logprobs: int | None = None
    """Ask for the log-probability of every token, and of so many alternatives to each."""

    @property
    def settings(self) -> dict[str, Any]:
        """All of it, JSON-ready, for keys and digests.

        ``schema`` and ``logprobs`` are there only where they are asked for, so that every other
        call keeps the key it had before they could be.
        """
        asked = {"schema": self.schema, "logprobs": self.logprobs}
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "sample": self.sample,
            **{name: value for name, value in asked.items() if value is not None},
        }


@dataclass(frozen=True)
class Usage:
    """Tokens as the endpoint billed them; ``None`` where it did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True)
class Reply:
    """One model call's result. ``text`` is an answer only where ``usable``."""

    outcome: Outcome
    text: str = ""
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    latency_s: float = 0.0
    cost_usd: float | None = None
    """``None``: price unknown (never 0 for unknown)."""
    detail: str = ""
    """One line that explains any outcome but ``ok``."""
    raw: str = ""
    """The endpoint's body, whole."""
    sent: Mapping[str, Any] = field(default_factory=dict)
    """What was changed on the way to please the endpoint (layout, dropped parameters)."""
    retry_after_s: float | None = None
    """Not ``None``: trying again may help, after at least so many seconds (0 = at once)."""
    status: int | None = None
    """HTTP status, where there was one."""
    adapted: bool = False
    """The endpoint refused a layout or a parameter; the next attempt leaves it out."""
    key: str = ""
    """Ledger key; empty until recorded."""
    tokens: tuple[tuple[bytes, float], ...] = ()
    """Every token and its log-probability, thoughts included; empty where that was not asked for,
    or not told."""

    @property
    def usable(self) -> bool:
        """Whether ``text`` is something the model said and may be used."""
        return self.outcome in ("ok", "truncated")

    @property
    def answered(self) -> bool:
        """Whether the endpoint has answered this request for good, so it is never sent again."""
        return self.outcome not in UNANSWERED


class ChatModel(Protocol):
    """Anything that can continue a chat."""

    @property
    def name(self) -> str:
        """The name users call it by."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its answers besides the request (model id, endpoint, fixed parameters).

        Part of the ledger key: two models with equal identities share replies. JSON-ready and
        free of secrets.
        """
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together, or ``None`` if unknown."""
        ...

    @property
    def parallel(self) -> int:
        """Calls worth having in flight at once."""
        ...

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Answer ``messages`` (system first, then alternating roles, the last one ``user``).

        One attempt; trying again is `botchat.models.recorded`'s business. Raises only
        `FatalModelError` and `LimitReached`; every other failure is an outcome.
        """
        ...


def settings_digest(*settings: Any) -> str:
    """8 hex digits of any JSON-ready settings, for signatures."""
    return hashlib.sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest()[:8]


@dataclass(frozen=True)
class Shown:
    """A dialogue as a case shows it: who spoke, what was said, how many utterances are the seed."""

    contestant: str
    utterances: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One question to a judge, complete in itself.

    ``choices`` is the set of verdicts the question offers; ``read`` finds the verdict in a
    judge's text, ``None`` if there is no readable one in the set.
    """

    protocol: str
    seed_id: str
    dialogues: tuple[Shown, ...]
    prompt: str
    """The whole question in the papers' wording, dialogues included."""
    choices: Set[Verdict]
    read: Callable[[str], tuple[Verdict | None, str]] = field(repr=False)
    """``text -> (verdict, reason)``."""
    schema: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    """JSON schema of a reply that ``read`` understands as well; ``None``: there is none."""
    words: Callable[[str], Sequence[tuple[int, int]]] | None = field(
        default=None, repr=False, compare=False
    )
    """``text -> (start, end)`` of the words that make the verdict which ``read`` finds; empty where
    there is none. ``None``: it cannot be told of this kind of question."""
    mirror: Callable[[], Case] | None = field(default=None, repr=False, compare=False)
    """Makes the same question with the two dialogues (or answers) in the other order. ``None``
    where there is no order to swap, as in UniEval. Its verdicts are about the swapped order."""
    kind: Kind | None = None
    """Of the answer that is asked for."""
    about_ai: bool = False
    """Whether it asks what tells machines from people, which is what the rules judge knows."""

    @property
    def contestants(self) -> tuple[str, ...]:
        """Names in the order shown."""
        return tuple(shown.contestant for shown in self.dialogues)

    @property
    def digest(self) -> str:
        """16 hex digits that change with what is judged; the wording is in the signature."""
        return case_digest(self.protocol, *(shown.utterances for shown in self.dialogues))


def case_digest(protocol: str, *dialogues: tuple[str, ...]) -> str:
    """Digest of a case that shows these utterances, in this order."""
    joined = b"\0".join([protocol.encode(), *map(dialogue_digest, dialogues)])
    return hashlib.sha256(joined).digest()[:8].hex()


def digests_of_pairs(
    protocol: str, digests: Sequence[bytes], first: Iterable[int], second: Iterable[int]
) -> bytes:
    """Digests of many cases of two dialogues each, 8 bytes a case.

    Args:
        protocol: theirs.
        digests: `dialogue_digest` of each dialogue.
        first: the number of the one that is shown first, for each case.
        second: likewise.
    """
    sha256 = hashlib.sha256
    begins = [b"%b\0%b\0" % (protocol.encode(), digest) for digest in digests]
    cases = zip(map(begins.__getitem__, first), map(digests.__getitem__, second), strict=True)
    return b"".join([sha256(begin + end).digest()[:8] for begin, end in cases])


@lru_cache(maxsize=1 << 15)
def dialogue_digest(utterances: tuple[str, ...]) -> bytes:
    """Digest of what is shown of one dialogue; cached, as it meets every opponent twice."""
    joined = "".join([f"{len(text)}:{text}" for text in utterances])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest().encode()


@dataclass(frozen=True)
class Answer:
    """A judge's answer to a case, with everything it rests on."""

    verdict: Verdict | None
    reason: str = ""
    outcome: Outcome = "ok"
    transcript: tuple[Remark, ...] = ()
    calls: tuple[str, ...] = ()
    confidence: float | None = None
    """Probability of the verdict's words in the judge's reply, where it is known."""


class Judge(Protocol):
    """Anything that answers a `Case`: a single model, a panel, rules, a person."""

    @property
    def name(self) -> str:
        """The name its judgments are filed under."""
        ...

    @property
    def parallel(self) -> int:
        """Cases worth having in flight at once."""
        ...

    @property
    def digest(self) -> str:
        """8 hex digits that change with anything that decides its verdicts besides the case."""
        ...

    async def answer(self, case: Case) -> Answer:
        """Answer one case. Raises only `FatalModelError` and `LimitReached`."""
        ...
