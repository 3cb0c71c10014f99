"""Sample dialogues of every contestant with their UniEval verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from botchat.records import Dialogue, Dialogues, Judgment, natural_key

LONGEST = 2000
"""Characters shown of an utterance."""


@dataclass(frozen=True)
class Line:
    """One utterance as the page shows it."""

    speaker: str
    """``A`` or ``B``."""
    text: str
    left_out: int
    """Characters that are not shown."""
    seed: bool
    """Whether it belongs to the ChatSEED."""
    accused: bool
    """Whether it is the first utterance that the judge takes for AI."""


@dataclass(frozen=True)
class Sample:
    """A dialogue and its UniEval verdict."""

    contestant: str
    seed_id: str
    found: str
    """The verdict in a few words."""
    reason: str
    lines: tuple[Line, ...]
    stopped: str
    """Why the dialogue stopped early; empty if it did not."""


def pick(dialogues: Dialogues, judgments: Iterable[Judgment]) -> list[Sample]:
    """Up to three dialogues a contestant: the earliest accused, the median, and one not accused.

    ``judgments`` are UniEval's, of one judge; those on other dialogues are left out.
    """
    readable: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        contestant = judgment.contestants[0]
        if judgment.verdict and judgment.seed_id in dialogues.get(contestant, ()):
            readable.setdefault(contestant, []).append(judgment)
    seed_ids = {judgment.seed_id for made in readable.values() for judgment in made}
    order = {seed_id: i for i, seed_id in enumerate(sorted(seed_ids, key=natural_key))}
    return [
        _sample(dialogues[contestant][judgment.seed_id], judgment)
        for contestant in sorted(readable)
        for judgment in _telling(readable[contestant], order)
    ]


def _telling(judgments: Iterable[Judgment], order: Mapping[str, int]) -> list[Judgment]:
    """The first accused, the median of the other accused, the first not accused."""
    ordered = sorted(judgments, key=lambda judgment: order[judgment.seed_id])
    passed = [judgment for judgment in ordered if judgment.verdict == "No"]
    accused = [judgment for judgment in ordered if judgment.verdict != "No"]
    accused.sort(key=lambda judgment: int(judgment.verdict or 0))
    return [*accused[:1], *accused[1:][(len(accused) - 1) // 2 :][:1], *passed[:1]]


def _sample(dialogue: Dialogue, judgment: Judgment) -> Sample:
    index = 0 if judgment.verdict in (None, "No") else int(judgment.verdict)
    return Sample(
        contestant=dialogue.contestant,
        seed_id=dialogue.seed_id,
        found=f"accused from utterance {index} on" if index else "taken for human",
        reason=judgment.reason,
        lines=tuple(
            Line(
                speaker="AB"[i % 2],
                text=text[:LONGEST],
                left_out=max(0, len(text) - LONGEST),
                seed=i < dialogue.n_seed,
                accused=i + 1 == index,
            )
            for i, text in enumerate(dialogue.utterances)
        ),
        stopped="" if dialogue.complete else f"{dialogue.status}. {dialogue.detail}".strip(),
    )
