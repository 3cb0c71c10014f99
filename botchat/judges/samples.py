"""One judge asked several times: the majority's verdict, and how steady the judge is.

The votes are counted as an ensemble's are (FairEval's MEC: k samples of a judge, temperature 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from botchat.interfaces import ChatModel, Decoding, settings_digest
from botchat.judges.panel import Ensemble, Panel
from botchat.judges.talk import SWAPPED, Agent
from botchat.records import Remark, Verdict

TEMPERATURE = 1.0
"""Of samples where nobody names another: FairEval's."""

_SAMPLED = re.compile(r" \(\d+ samples\)$")
_SAMPLE = re.compile(rf"(?P<agent>.+) #\d+(?P<swapped>{re.escape(SWAPPED)})?")


def sampled(
    name: str, model: ChatModel, decoding: Decoding, n_samples: int, *, structured: bool = False
) -> Panel:
    """The single judge of that name, asked ``n_samples`` times a case; its votes are counted.

    Args:
        name: of the judge that is asked once.
        model: who is asked.
        decoding: how each answer is drawn; they differ in ``sample``.
        n_samples: answers to a case.
        structured: as of `botchat.judges.single.SingleJudge`.
    """
    agents = [
        Agent(f"{name} #{n + 1}", "", model, replace(decoding, sample=n), structured=structured)
        for n in range(n_samples)
    ]
    form = ("structured",) if structured else ()
    return Panel(
        f"{name} ({n_samples} samples)",
        Ensemble(agents),
        model.parallel,
        settings_digest(model.identity, decoding.settings, n_samples, *form),
    )


def asked_once(name: str) -> str:
    """The judge that ``name`` samples; of any other judge ``name`` itself."""
    return _SAMPLED.sub("", name)


@dataclass(frozen=True)
class Stability:
    """How far independent answers of one judge to the same question agree."""

    n: int
    """Questions with at least two readable answers."""
    unanimous: float
    """Share of them to which all answers are the same, 0 to 1."""
    agreement: float
    """Mean over them of the share of pairs of answers that are the same: the chance that a judge
    asked again says the same again, 0 to 1."""

    def __str__(self) -> str:
        """In words."""
        return (
            f"the samples of {100 * self.unanimous:.1f} % of {self.n} cases all agree; two samples "
            f"of a case agree with a chance of {100 * self.agreement:.1f} %"
        )


def stability(transcripts: Iterable[Sequence[Remark]]) -> Stability | None:
    """Of all agents that were sampled, each order of showing by itself; ``None`` if none was.

    Args:
        transcripts: of a judge's judgments.
    """
    alike = []
    for transcript in transcripts:
        answers: dict[tuple[str, bool], list[Verdict]] = {}
        for remark in transcript:
            match = _SAMPLE.fullmatch(remark.speaker)
            if match and remark.verdict is not None:
                key = (match["agent"], match["swapped"] is not None)
                answers.setdefault(key, []).append(remark.verdict)
        alike += [
            [one == other for one, other in combinations(given, 2)]
            for given in answers.values()
            if len(given) > 1
        ]
    if not alike:
        return None
    return Stability(
        n=len(alike),
        unanimous=sum(map(all, alike)) / len(alike),
        agreement=sum(sum(same) / len(same) for same in alike) / len(alike),
    )
