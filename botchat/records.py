"""Records on disk: one frozen, typed struct for each kind of line in the stage files.

``Seed`` (seeds/), ``Dialogue`` with its ``Utterance`` facts (generations/) and ``Judgment`` with
the ``Remark``s of its panel (judgments/). None holds a clock time, so a stage file made twice from
the same replies is the same to the byte; times, tokens and cost are in the ledger, and in sum in
``Provenance`` (measured/).

No struct leaves out default values: msgspec compares default strings by identity, which differs in
a replay. ``gc=False``: records never form cycles, and sets are read 1.5 times as fast.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

VERSION = "0.4.0"
SIGNED = "botchat:0.1.0"
"""Begins every signature: the last version that asked otherwise."""

HUMAN = "human"
"""Name of the contestant whose dialogues are the seed set's own."""

SHUFFLED = "shuffled"
"""Name that controls are judged under: dialogues of two halves that do not belong together."""

N_SEED = 2
"""Utterances of a human dialogue that make a ChatSEED (BotChat §3.1)."""

MIN_HUMAN = 4
"""Fewest utterances a human dialogue needs for Arena and GTEval (BotChat §3.4, §4.2)."""

Outcome = Literal[
    "ok", "truncated", "refused", "filtered", "empty", "malformed", "overflow", "transport"
]
"""End of one model call. Only ``ok`` and ``truncated`` carry a usable text."""

Outcomes: TypeAlias = tuple[Outcome, ...]

UNANSWERED: Outcomes = ("transport", "malformed")
"""The endpoint gave no answer: the next run asks again."""

LOOKED_UP_AGAIN: Outcomes = (*UNANSWERED, "empty")
"""The next run looks again. A reply that showed nothing comes from the ledger, at no cost, unless
its model now has more room for it."""

NO_ROOM: Outcomes = ("truncated", "empty")
"""The reply ended before it gave a verdict: cut at its limit, or nothing of it was visible."""

Utterances: TypeAlias = tuple[str, ...]
"""Texts of a dialogue, the oldest first."""

Texts: TypeAlias = Sequence[str]
"""Names, lines or sentences, in order."""

Names: TypeAlias = tuple[str, ...]
"""Names or keys in an order that counts: as shown, or as indices are into them."""

Verdict = str
"""``"1" | "2" | "both" | "neither"`` (which dialogue is AI-involved); of UniEval ``"No"``, the
1-based index of the first AI utterance as a decimal string, or `UNKNOWN_INDEX`."""

UNKNOWN_INDEX: Verdict = "Yes"
"""UniEval: AI-involved, somewhere behind the ChatSEED."""

UNDECIDED: Verdict = "Undecided"
"""An annotator cannot tell."""

BLIND_PAGE = "prompt:blind-page"
"""Part of the signature of human labels: people read the page."""

MISSING = "?"
"""Stands in a verdict of several words for a missing one."""

RULES = "rules"
"""Name of the offline judge."""

CONTROL = "control:"
"""Begins the name that a panel's control is asked by: single judges with as many calls."""

JudgeRole = Literal["judge", "votes_before_debate", "equal_calls", "annotator", "rules"]

# Role of a panel's control -> what ends its name
_ENDINGS: Mapping[JudgeRole, str] = {
    "votes_before_debate": " (before debate)",
    "equal_calls": " (control)",
}

# Ends the name of a single judge that is asked several times a case
_SAMPLES = re.compile(r" \(\d+ samples\)$")


class StageRecord(msgspec.Struct, frozen=True, gc=False):
    """A line of a stage file, or a part of one."""


class Seed(StageRecord, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A human dialogue; its first two utterances are the ChatSEED. A text has no utterances."""

    id: str
    utterances: Utterances
    topic: str = ""
    """Subject that several dialogues share; empty where the file has none."""

    def __post_init__(self) -> None:
        """Refuse what no stage could use."""
        if not self.id.strip():
            raise ValueError("seed id is empty")
        if 0 < len(self.utterances) < N_SEED:
            raise ValueError(f"seed {self.id} has 1 utterance, needs at least {N_SEED}")
        for n, text in enumerate(self.utterances, 1):
            if not text.strip():
                raise ValueError(f"seed {self.id}: utterance {n} is empty")


class Utterance(StageRecord, frozen=True):
    """Facts about one generated utterance; `Dialogue.facts` has one for each of them."""

    outcome: Outcome = "ok"
    dropped: int = 0
    """Oldest utterances left out of the prompt to fit the context window."""
    tokens: int | None = None
    """cl100k_base tokens; None if the encoding was not available."""
    call: str = ""
    """Key of the reply in the ledger."""


class Dialogue(StageRecord, frozen=True):
    """A ChatSEED extended by a model, or by two (cross-play)."""

    seed_id: str
    model: str
    utterances: Utterances
    n_seed: int
    facts: tuple[Utterance, ...]
    status: str
    """``complete`` or ``stopped:<outcome>`` (see `Outcome`)."""
    signature: str
    partner: str | None = None
    """Second speaker in cross-play; utterances then alternate model, partner, model, ..."""
    detail: str = ""
    """Reason why a stopped dialogue stopped, in one line."""

    @property
    def contestant(self) -> str:
        """Name on a board: the model, or ``model + partner`` in cross-play."""
        if self.partner is None:
            return self.model
        return f"{self.model} + {self.partner}"

    @property
    def outcome(self) -> str:
        """End of the call that stopped it; of a complete one ``complete``."""
        return self.status.removeprefix("stopped:")

    @property
    def answered(self) -> bool:
        """Whether it is final; if not, the next run asks again where it stopped."""
        return self.outcome not in UNANSWERED

    def cut(self, n: int) -> Dialogue:
        """Return its first n utterances, as a complete dialogue."""
        return msgspec.structs.replace(
            self,
            utterances=self.utterances[:n],
            facts=self.facts[: max(0, n - self.n_seed)],
            status="complete",
        )

    @property
    def complete(self) -> bool:
        """Whether it reached the length that was asked for."""
        return self.status == "complete"


Seeds: TypeAlias = Sequence[Seed]
"""Seeds in the order of their set."""

Dialogues: TypeAlias = Mapping[str, Mapping[str, Dialogue]]
"""Contestant -> seed id -> dialogue."""


class Remark(StageRecord, frozen=True):
    """One contribution to a panel's talk; ``text`` is empty where the reply failed."""

    speaker: str
    text: str
    call: str = ""
    outcome: Outcome = "ok"
    verdict: Verdict | None = None
    """The speaker's own verdict on the case as shown; None if unreadable or absent (summariser)."""
    cut: int | msgspec.UnsetType = msgspec.UNSET
    """Characters behind ``text`` in which the reply spoke for another speaker; absent if 0."""


Shown: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65_536)]
"""Utterances shown of each dialogue; no dialogue is longer."""


class Judgment(StageRecord, frozen=True):
    """Verdict of one judge on one case."""

    protocol: str
    seed_id: str
    contestants: Names
    """Names in the order shown: one for UniEval, two for Arena and GTEval."""
    judge: str
    verdict: Verdict | None
    """Verdict, or None if unreadable; never a tie or a loss instead."""
    reason: str
    shown: Shown
    case: str
    """Digest of the dialogues as shown; a judgment of other ones is stale and is made again."""
    signature: str
    outcome: Outcome = "ok"
    """End of the judge's call; if not ``ok``, it explains a missing verdict."""
    transcript: tuple[Remark, ...] = ()
    calls: Names = ()
    """Ledger keys of every call the verdict rests on."""


Judged: TypeAlias = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments in one protocol."""


class RemarkEnd(StageRecord, frozen=True):
    """The part of a `Remark` that tells why a vote is missing."""

    outcome: Outcome = "ok"
    verdict: Verdict | None = None


class PairJudgment(StageRecord, frozen=True):
    """The part of a `Judgment` of two dialogues that a board needs, read from the same line."""

    seed_id: str
    contestants: tuple[str, str]
    verdict: Verdict | None
    shown: Shown
    case: str
    signature: str
    outcome: Outcome = "ok"
    transcript: tuple[RemarkEnd, ...] = ()


class Provenance(StageRecord, frozen=True):
    """Calls of one model that a contestant's dialogues or a judge's verdicts rest on, in sum."""

    stage: str
    """``generate``, or the protocol that was judged."""
    name: str
    """The contestant or the judge."""
    model: str
    """Name of the model: cross-play and panels have several."""
    asked: str
    """Model id at the endpoint."""
    answered: Names
    """`model` and `system_fingerprint` of the first and the last reply of every day."""
    host: str
    """Host without login, path and query; what ``identity`` says in its place."""
    temperature: float | None
    system_prompt: str | None
    """Digest of the model's system prompt."""
    revision: str | None
    first: date
    """Day (UTC) of the first call."""
    last: date
    botchat: str
    """Version that recorded this."""
    calls: int
    tokens: int
    """Prompt and completion together, as far as the endpoint counted."""
    cost_usd: float | None
    """Cost in USD; None if the price of a call is unknown."""


class JudgeId(NamedTuple):
    """Identity of a judge. Text of it stands only in records, in names of files and on screens."""

    name: str
    """Name without what a control's role adds: ``PANEL@MODEL``, or any other judge."""
    role: JudgeRole = "judge"

    @classmethod
    def parse(cls, text: str) -> JudgeId:
        """Read the name that verdicts are filed under; a function's is like any judge's."""
        if text == RULES:
            return cls(text, "rules")
        if cls(text).is_annotator():
            return cls(text, "annotator")
        for role, ending in _ENDINGS.items():
            if text.endswith(ending):
                return cls(text.removesuffix(ending), role)
        return cls(text)

    @classmethod
    def asked(cls, text: str) -> JudgeId:
        """Read the name that a judge is asked by: ``control:PANEL``, or any other."""
        if text.startswith(CONTROL):
            return cls(text.removeprefix(CONTROL), "equal_calls")
        return cls(text)

    def of_model(self, model: str) -> JudgeId:
        """Return the same with the model of a panel's agents that name none."""
        return self._replace(name=f"{self.name}@{model}")

    def sampled(self, n: int) -> JudgeId:
        """Return the same, asked ``n`` times a case."""
        return self._replace(name=f"{self.name} ({n} samples)")

    @property
    def asked_once(self) -> str:
        """Name without the number of samples, where it has one."""
        return _SAMPLES.sub("", self.name)

    def __str__(self) -> str:
        """Return the name that verdicts are filed under."""
        return self.name + _ENDINGS.get(self.role, "")

    @property
    def panel(self) -> str:
        """Name before the model: of a panel, or of any other judge."""
        return self.name.partition("@")[0]

    @property
    def model(self) -> str:
        """Model of a panel's agents that name none; empty where there is none."""
        return self.name.partition("@")[2]

    @property
    def is_control(self) -> bool:
        """Whether it shows what a panel's debate adds, or its calls."""
        return self.role in _ENDINGS

    def is_annotator(self, truth: str | None = HUMAN) -> bool:
        """Return whether it is called ``truth`` or ``truth:…``; None: nobody is."""
        return truth is not None and f"{self}:".startswith(f"{truth}:")


def slug(name: str) -> str:
    """Return a file name for any model or judge: a readable part and 8 hex digits of the name.

    Distinct names give distinct slugs, also on case-insensitive file systems; at most 73 characters
    of ``[a-z0-9._-]``, never a reserved or hidden name.
    """
    readable = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:64].rstrip("-.") or "x"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{readable}-{digest}"


@lru_cache(maxsize=1 << 15)
def natural_sort_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts ``MT-2`` before ``MT-10``; total for any strings."""
    parts = []
    for number, other in re.findall(r"([0-9]+)|([^0-9]+)", text):
        if number:
            # A number by its length and digits: Python reads none of more than 4,300.
            digits = number.lstrip("0")
            parts.append((0, len(digits), f"{digits} {number}"))
        else:
            parts.append((1, 0, other))
    return tuple(parts)


def human_dialogue(seed: Seed) -> Dialogue:
    """Return a seed's human dialogue as the contestant ``human``, without generated utterances."""
    return Dialogue(seed.id, HUMAN, seed.utterances, N_SEED, (), "complete", "")


def is_bare(seeds: Seeds) -> bool:
    """Return whether a set has ChatSEEDs alone, as one of a model's dialogues; none is human."""
    return all(len(seed.utterances) <= N_SEED for seed in seeds)


def eligible_seeds(seeds: Seeds) -> Seeds:
    """Return seeds with a human dialogue of at least 4 utterances (BotChat §4.2: 222 of MuTual's).

    Of a set of ChatSEEDs alone, all of them.
    """
    if is_bare(seeds):
        return seeds
    return [seed for seed in seeds if len(seed.utterances) >= MIN_HUMAN]
