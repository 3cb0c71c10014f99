"""Sample dialogues of every contestant with their UniEval verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from botchat.records import Dialogue, Dialogues, Judgment, natural_key

LONGEST = 2000
"""Characters shown of an utterance."""


@dataclass(frozen=True)
class Sample:
    """A dialogue and its UniEval verdict."""

    dialogue: Dialogue
    accused: int
    """Number of the first utterance that the judge takes for AI; 0: it takes none for it."""
    reason: str

    @property
    def found(self) -> str:
        """The verdict in a few words."""
        n = self.accused
        return f"accused from utterance {n} on" if n else "taken for human"

    @property
    def stopped(self) -> str:
        """Why the dialogue stopped early; empty if it did not."""
        one = self.dialogue
        return "" if one.complete else f"{one.status}. {one.detail}".strip()


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
        Sample(dialogues[contestant][one.seed_id], _accused(one), one.reason)
        for contestant in sorted(readable)
        for one in _telling(readable[contestant], order)
    ]


def _telling(judgments: Iterable[Judgment], order: Mapping[str, int]) -> list[Judgment]:
    """The first accused, the median of the other accused, the first not accused."""
    ordered = sorted(judgments, key=lambda judgment: order[judgment.seed_id])
    passed = [judgment for judgment in ordered if judgment.verdict == "No"]
    accused = sorted((one for one in ordered if one.verdict != "No"), key=_accused)
    return [*accused[:1], *accused[1:][(len(accused) - 1) // 2 :][:1], *passed[:1]]


def _accused(judgment: Judgment) -> int:
    return 0 if judgment.verdict in (None, "No") else int(judgment.verdict)
