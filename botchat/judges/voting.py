"""How votes become one verdict. The order of the votes never matters.

*Labels* (Arena, GTEval, answer comparison): the most frequent one, as ChatEval decides direct
comparisons (Appendix B). The paper says nothing of ties; averaging its scores ends an even split
in a tie between the two texts, and so does this: where the question asks which of two dialogues is
AI-involved, each dialogue is then voted on by itself and is accused only if more than half accuse
it ("both" accuses both, "neither" none); where it offers ``tie``, that is the verdict; else there
is none.

*Index questions* (UniEval: ``No`` or the first accused utterance): the smallest N by which more
than half of the voters have accused the dialogue, ``No`` if there is none. So at every N the panel
passes the dialogue exactly if at least half of its members do: Pass@N of the panel is the majority
of the members' Pass@N. It is the upper median of the votes, with ``No`` behind every index.

*Scores*: the mean (ChatEval Appendix B). A score is a number, or several with a space between them
(``"8 6"``: answer 1 and answer 2), which are averaged each for itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import Literal

from botchat.judges.talk import SWAPPED
from botchat.records import Remark, Verdict
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER

_ACCUSED = {"1": (1, 0), "2": (0, 1), "both": (1, 1), "neither": (0, 0)}
_VERDICT = {accused: verdict for verdict, accused in _ACCUSED.items()}
_NUMBERS = re.compile(r"-?\d+(\.\d+)?( -?\d+(\.\d+)?)*")


def aggregate(
    votes: Iterable[Verdict | None],
    choices: Collection[Verdict],
    scores: Literal["mean", "majority"] = "mean",
) -> Verdict | None:
    """The verdict of a group; ``None`` if nobody voted, or an even split cannot be a tie.

    Args:
        votes: one a voter, ``None`` for no vote.
        choices: what the question offers; decides of which kind it is.
        scores: ``majority`` votes on scores as if they were labels. A mean is rounded to 4
            decimals and need not be one of ``choices``.
    """
    cast = [vote for vote in votes if vote is not None]
    if not cast:
        return None
    if "No" in choices:
        ordered = sorted(cast, key=lambda vote: (vote == "No", 0 if vote == "No" else int(vote)))
        return ordered[len(ordered) // 2]
    if scores == "mean" and _are_scores(choices):
        columns = zip(*(map(Fraction, vote.split()) for vote in cast), strict=True)
        return " ".join(_decimal(sum(column, Fraction()) / len(cast)) for column in columns)
    return _majority(cast, choices)


def mirrored(verdict: Verdict | None) -> Verdict | None:
    """What a verdict about the swapped order says about the order before the swap."""
    if verdict in ("1", "2"):
        return "2" if verdict == "1" else "1"
    if verdict is not None and _NUMBERS.fullmatch(verdict):
        return " ".join(reversed(verdict.split()))
    return verdict


def is_tie(verdict: Verdict) -> bool:
    """Whether a verdict on two texts prefers neither."""
    numbers = verdict.split()
    equal = len(numbers) == 2 and bool(_NUMBERS.fullmatch(verdict)) and len({*numbers}) == 1
    return equal or verdict in ("both", "neither", "tie")


def opening_votes(transcript: Sequence[Remark]) -> tuple[Verdict | None, ...]:
    """What each member of an ensemble, debate or discussion voted the first time it spoke.

    The control of every debate. Where members speak at the same time these are votes before any
    talk; one by one, only the first member has heard nobody (the call-matched control is then an
    ensemble of the same members). Votes on the swapped order are mirrored back.
    """
    first: dict[str, Verdict | None] = {}
    for remark in transcript:
        name = remark.speaker.removesuffix(SWAPPED)
        if name not in (DECOMPOSER, FEEDBACK, SUMMARIZER) and remark.speaker not in first:
            first[remark.speaker] = (
                remark.verdict if name == remark.speaker else mirrored(remark.verdict)
            )
    return tuple(first.values())


def _majority(cast: Sequence[Verdict], choices: Collection[Verdict]) -> Verdict | None:
    counts = Counter(cast)
    most = max(counts.values())
    leaders = [verdict for verdict, n in counts.items() if n == most]
    if len(leaders) == 1:
        return leaders[0]
    if set(choices) >= set(_ACCUSED):
        accusers = [sum(column) for column in zip(*(_ACCUSED[v] for v in cast), strict=True)]
        one, two = (int(2 * n > len(cast)) for n in accusers)
        return _VERDICT[one, two]
    return "tie" if "tie" in choices else None


def _are_scores(choices: Collection[Verdict]) -> bool:
    """Numbers only, and a scale: "1" and "2" alone are labels of two texts."""
    return len(choices) > 2 and all(_NUMBERS.fullmatch(choice) for choice in choices)


def _decimal(value: Fraction) -> str:
    return f"{float(round(value, 4)):.4f}".rstrip("0").rstrip(".")
