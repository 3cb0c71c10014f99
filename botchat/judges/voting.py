"""Votes become one verdict. The order of the votes never matters.

*Labels* (Arena, GTEval, answers): the most frequent one, as ChatEval decides direct comparisons
(Appendix B). The paper does not mention ties. Ours: where the question asks which of two dialogues
is AI-involved, each is then voted on separately: AI-involved if more than half say so; else there
is no verdict.

*Index questions* (UniEval: ``No`` or the first AI utterance): the upper median of the votes, with
``No`` after every index. So at every N the panel passes the dialogue if at least half of its
members do. Where a vote without an index decides, nor has the verdict one.

*Scores*: the mean (ChatEval Appendix B) of each number by itself, of the votes that gave it; ``?``
where none did.
"""

import math
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from itertools import islice
from statistics import mean, median_high, median_low, multimode
from typing import Literal, TypeAlias

import msgspec

from botchat.judges.debate import SWAPPED
from botchat.records import MISSING, UNKNOWN_INDEX, Remark, Verdict
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER

Rule: TypeAlias = Literal["mean", "majority", "summary"]
"""Rule from votes to a verdict; a summary is the only vote."""

VERDICTS = {
    (True, False): "1",
    (False, True): "2",
    (True, True): "both",
    (False, False): "neither",
}
"""Whether each of two dialogues is AI-involved -> the verdict on them."""
_AI_SIDES = {verdict: sides for sides, verdict in VERDICTS.items()}
_NUMBERS = re.compile(r"-?\d+(\.\d+)?( -?\d+(\.\d+)?)*")


def aggregate(
    votes: Iterable[Verdict | None],
    choices: Collection[Verdict],
    rule: Rule = "mean",
) -> Verdict | None:
    """Return the verdict of a group; None without votes, or where an even split decides nothing.

    ``rule``: ``majority`` treats scores as labels; a mean has 4 decimals and need not be one of
    ``choices``.
    """
    readable = [vote for vote in votes if vote is not None]
    if not readable:
        return None
    if "No" in choices:
        return _upper_median(readable)
    # Two choices, "1" and "2", are labels of two texts. Three tell: a scale of several numbers may
    # have a million.
    some = list(islice(choices, 3))
    are_scores = len(some) > 2 and all(_NUMBERS.fullmatch(each) for each in some)
    if are_scores and rule != "majority":
        columns = zip(*(vote.split() for vote in readable), strict=True)
        return " ".join(_mean(each) for each in columns)
    return _majority(readable, choices)


def _upper_median(votes: Sequence[Verdict]) -> Verdict:
    """Return the upper median of indices; it has none where a vote without an index decides."""
    medians = set()
    # A vote without an index is as early as can be, or as late as can be.
    for unknown in (0.5, sys.float_info.max):
        places = {"No": math.inf, UNKNOWN_INDEX: unknown}
        median = median_high([(places.get(vote) or float(vote), vote) for vote in votes])
        medians.add(median[1])
    if len(medians) == 1:
        return medians.pop()
    return UNKNOWN_INDEX


def swap_sides(verdict: Verdict | None) -> Verdict | None:
    """Map a verdict on the swapped pair back to the original order."""
    if verdict == "1":
        return "2"
    if verdict == "2":
        return "1"
    if verdict is not None and _NUMBERS.fullmatch(verdict):
        return " ".join(reversed(verdict.split()))
    return verdict


def first_remarks(transcript: Iterable[Remark]) -> list[Remark]:
    """Return each agent's first remark, each order by itself; verdicts as of the original order."""
    first: dict[str, Remark] = {}
    for remark in transcript:
        if is_vote(remark):
            if remark.speaker.endswith(SWAPPED):
                remark = msgspec.structs.replace(remark, verdict=swap_sides(remark.verdict))
            first.setdefault(remark.speaker, remark)
    return list(first.values())


def is_vote(remark: Remark) -> bool:
    """Return whether it is an agent's own remark, not a summary, feedback or decomposition."""
    return remark.speaker.removesuffix(SWAPPED) not in (DECOMPOSER, FEEDBACK, SUMMARIZER)


def _majority(readable: Sequence[Verdict], choices: Collection[Verdict]) -> Verdict | None:
    leaders = multimode(readable)
    if len(leaders) == 1:
        return leaders[0]
    if all(verdict in choices for verdict in _AI_SIDES):
        columns = zip(*(_AI_SIDES[vote] for vote in readable), strict=True)
        # The lower median: half of the votes is not more than half.
        first, second = (median_low(column) for column in columns)
        return VERDICTS[first, second]
    return None


def _mean(column: Iterable[str]) -> str:
    numbers = [Fraction(number) for number in column if number != MISSING]
    if not numbers:
        return MISSING
    rounded = float(round(mean(numbers), 4))
    return f"{rounded:.4f}".rstrip("0").rstrip(".")
