"""One judge asked several times about each case: one verdict, and how stable the answers are.

The votes are counted as an ensemble's are (FairEval's MEC: k samples of a judge, temperature 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from botchat.interfaces import ChatModel, Decoding, settings_digest
from botchat.judges.panel import Ensemble, Panel
from botchat.judges.talk import SWAPPED, Agent, Cast
from botchat.records import Remark, Verdict
from botchat.workspace.panels import EnsembleSettings

TEMPERATURE = 1.0
"""Default temperature of samples (FairEval)."""

_SAMPLED = re.compile(r" \(\d+ samples\)$")
_SAMPLE = re.compile(rf"(.+) #\d+({re.escape(SWAPPED)})?")


def sampled(
    name: str, model: ChatModel, decoding: Decoding, n_samples: int, *, structured: bool = False
) -> Panel:
    """A `SingleJudge` asked ``n_samples`` times a case, its votes counted.

    ``decoding``: of the first sample; the others have the numbers after it.
    """
    draws = [replace(decoding, sample=decoding.sample + n) for n in range(n_samples)]
    agents = [
        Agent(f"{name} #{n + 1}", "", model, draws[n], structured=structured)
        for n in range(n_samples)
    ]
    form = ("structured",) if structured else ()
    return Panel(
        f"{name} ({n_samples} samples)",
        Ensemble(EnsembleSettings(), Cast(agents)),
        (model,),
        settings_digest(model.identity, decoding.settings, n_samples, *form),
    )


def asked_once(name: str) -> str:
    """The name without the number of samples, where it has one."""
    return _SAMPLED.sub("", name)


@dataclass(frozen=True)
class Stability:
    """Agreement of independent answers of one judge to the same question."""

    n: int
    """Questions with at least two readable answers, each order of showing by itself."""
    unanimous: float
    """Share of them with all answers the same, 0 to 1."""
    agreement: float
    """Mean over them of the share of equal pairs of answers, 0 to 1."""

    def __str__(self) -> str:
        """In words."""
        return (
            f"the samples of {100 * self.unanimous:.1f} % of {self.n} cases all agree; two samples "
            f"of a case agree with a chance of {100 * self.agreement:.1f} %"
        )


def stability(transcripts: Iterable[Sequence[Remark]]) -> Stability | None:
    """Of the transcripts of a judge's judgments; ``None`` if no agent was sampled."""
    alike = []
    for transcript in transcripts:
        answers: dict[tuple[str, ...], list[Verdict]] = {}
        for remark in transcript:
            match = _SAMPLE.fullmatch(remark.speaker)
            if match and remark.verdict is not None:
                answers.setdefault(match.groups(), []).append(remark.verdict)
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
