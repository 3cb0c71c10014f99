"""UniEval (BotChat §3.2, §4.2): the first AI utterance of a dialogue, and success rates at N."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from botchat.metrics.annotations import NOT_SAID, UNTOLD, accused_index
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import Rate
from botchat.records import HUMAN, N_SEED, Dialogue, Seed, Verdict, eligible_seeds

UNIEVAL = Protocol(
    "unieval",
    "UniEval",
    kind="place",
    shows="one",
    question="one dialogue: AI-involved? from which utterance on?",
    prompts=("unieval", "unieval_examples"),
    explained="The judge reads one dialogue and names the first utterance that it takes for AI. "
    "Success at N: none among the first N.",
    leads=True,
    about_ai=True,
)

PASS_AT = (4, 8, 12, 16)
"""N of the success rates (BotChat §4.2, Figure 4)."""


def passes(dialogue: Dialogue, verdict: Verdict | None, turns: int) -> bool | None:
    """Return whether a dialogue passes at N = ``turns``: "No", or an AI utterance above N.

    None (unknown) where the verdict is unreadable or undecided, where a generated dialogue is
    shorter than N and has no AI utterance (a human one is complete at its own length), and where it
    is longer than N and the verdict has no index. Raises `DataError` for a verdict that UniEval
    does not offer.
    """
    if verdict is None:
        return None
    index = accused_index(verdict, "a UniEval judgment")
    if index == UNTOLD:
        return None
    if index == NOT_SAID and turns > N_SEED:
        return None if turns < len(dialogue.utterances) else False
    if 0 < index <= turns:
        return False
    return True if dialogue.model == HUMAN or len(dialogue.utterances) >= turns else None


def success(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Dialogue],
    verdicts: Mapping[str, Verdict | None],
    turns: int | None,
) -> Rate:
    """Return the success rate of one contestant at N = ``turns`` over all seeds of the set.

    ``turns`` None: N is the length of each human dialogue, of at least 4 utterances (Figure 7).
    ``dialogues`` are the contestant's and ``verdicts`` the judge's, by seed id; a seed without
    either, or without a readable verdict, is missing.
    """
    results = [
        passes(dialogues[seed.id], verdicts.get(seed.id), turns or len(seed.utterances))
        if seed.id in dialogues
        else None
        for seed in (seeds if turns else eligible_seeds(seeds))
        if turns or len(seed.utterances) > N_SEED
    ]
    missing = results.count(None)
    return Rate(results.count(True), len(results) - missing, missing)
