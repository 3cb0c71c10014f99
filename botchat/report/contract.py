"""The page's contract: everything that its scripts load, by name.

Each struct is read by a function of ``core.js``, which has its name and its fields. Large lists
are of rows, without names. ``judge``, ``protocol`` and ``contestants`` are places in lists of the
index.
"""

from collections.abc import Mapping, Sequence

import msgspec

from botchat.protocols import kinds
from botchat.records import N_SEED, Texts, Verdict


class _Row(msgspec.Struct, array_like=True):
    """A struct without the names of its fields."""


class PageMessage(_Row):
    """A message of a prompt."""

    role: str
    text: str


class PageCall(_Row):
    """A call as the ledger has it; None: unknown."""

    messages: Sequence[PageMessage]
    reply: str
    tokens: int | None
    usd: float | None


class PageRemark(_Row):
    """A remark of a member of a panel."""

    speaker: str
    text: str
    verdict: Verdict | None
    outcome: str


class PageError(_Row):
    """An error that a report names; ``utterance``: None or 0 where it names none."""

    type: str
    utterance: int | None
    quote: str
    evidence: str
    explanation: str


class PageSpeaker(_Row):
    """A speaker of a report with the errors that it names."""

    name: str
    errors: Sequence[PageError]


class PageVerdict(_Row):
    """A verdict; ``contestants`` in the order shown, ``shown`` utterances of each."""

    judge: int
    protocol: int
    contestants: Sequence[int]
    verdict: Verdict | None
    reason: str
    shown: int
    outcome: str
    remarks: Sequence[PageRemark]
    speakers: Sequence[PageSpeaker] | None
    """Members of the panel that reported, or the judge; None: the verdict is no report."""


class PageDialogue(msgspec.Struct, omit_defaults=True):
    """A dialogue; ``dropped`` and ``outcomes`` by utterance, from 1."""

    utterances: Texts
    begun: int = N_SEED
    dropped: Mapping[int, int] = {}
    outcomes: Mapping[int, str] = {}
    stopped: str = ""


class PageSeed(msgspec.Struct):
    """Dialogues on a seed, in the order of the contestants, and all verdicts on them."""

    dialogues: list[PageDialogue | None]
    verdicts: list[PageVerdict] = []


class PageOpening(_Row):
    """A seed in a list."""

    id: str
    text: str


class PageScore(_Row):
    """Score of the contestant of the smaller number with its 95 % interval, and what it counts."""

    score: float
    low: float
    high: float
    won: int
    tied: int
    lost: int
    seeds: int


class PageAnswer(msgspec.Struct):
    """A choice; ``result``: 1, ½ or 0 for the contestant shown first."""

    verdict: str
    label: str
    result: float | None


class PageProtocol(msgspec.Struct, omit_defaults=True):
    """A protocol; ``fields``: the numbers that are asked for."""

    name: str
    base: str
    title: str
    kind: str
    shows: str
    n: int | None
    about_ai: bool
    question: str
    answers: Sequence[PageAnswer] = ()
    numbers: Texts = ()
    fields: Texts = ()
    scale: Sequence[float] = ()


class PageJudge(msgspec.Struct):
    """A judge's verdicts by protocol and contestants, as lists and filters need them."""

    name: str
    single: dict[str, dict[str, list[kinds.PageCode | None]]] = {}
    """Contestant -> a code a seed; -2 or None: not judged."""
    pairs: dict[str, dict[str, str]] = {}
    """Contestants in the order shown -> a letter a seed."""
    scores: dict[str, dict[str, PageScore]] = {}
    """Contestants, the smaller number first -> score."""


class PageIndex(msgspec.Struct):
    """Facts that lists and filters need; ``human``: -1 where there is none."""

    seeds: Sequence[PageOpening]
    contestants: Texts
    human: int
    has_dialogue: Sequence[Sequence[int]]
    """1 where a contestant, the row, has a dialogue on a seed, else 0."""
    judges: Sequence[PageJudge]
    about: Sequence[PageProtocol]
    error_types: Mapping[str, str]
    per_chunk: int
    calls: bool


class PageAbout(msgspec.Struct):
    """Facts that the scripts of a page need at once; see `botchat.report.archive.Archive`."""

    folder: str
    view: str
    protocols: Mapping[str, str]
    pages: Texts
    judge: int
    order: Texts
    """Contestants as the table has them."""
    lang: str
    invented: bool
