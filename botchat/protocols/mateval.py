"""MATEval (Li et al. 2024, §3.2): a report on any text, five questions with their answers.

The verdict is five scores, from 0, one point off for each error (``"0 -1 0 0 -2"``); the reason is
the report in canonical form. A score that the reply lacks is ``?``; a No is a 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from botchat import prompts
from botchat.interfaces import Case, ShownDialogue
from botchat.protocols import scores
from botchat.protocols.frame import neutralise_template
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import KINDS, as_text, parse_text
from botchat.protocols.scores import Scale
from botchat.records import Verdict

MATEVAL = Protocol(
    "mateval",
    "MATEval",
    kind="score",
    shows="one",
    question="one text: which errors of five kinds, where, why, points off",
    prompts=("mateval",),
    scale=Scale(-99, 0, KINDS, points_off=True),  # the paper has no floor
)

TEXT = "text"
"""Name of the one contestant."""

_FRAME_LIKE = re.compile(r"^([ \t>*_#-]*(?:question|answer|score))[ \t]*:", re.I | re.MULTILINE)


@dataclass(frozen=True)
class OwnText:
    """A text, and human scores of it where they are known."""

    id: str
    text: str
    labels: Mapping[str, float] = field(default_factory=dict)
    """Scores by plain name of the number; ``""``: of the whole text."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The text as a dialogue: its lines, for questions about dialogues."""
        return tuple(line.strip() for line in self.text.splitlines() if line.strip())


def text_case(text: OwnText) -> Case:
    """Make the question about one text."""
    quoted = scores.neutralise_labels(text.text.replace("\0", ""), MATEVAL.asked_scale)
    prompt = prompts.fill("mateval", text=_FRAME_LIKE.sub(r"\1 -", neutralise_template(quoted)))
    case = MATEVAL.asked(text.id, (ShownDialogue(TEXT, text.lines),), prompt)
    return replace(case, read=partial(read_report, text=text.text), report="asked")


def read_report(reply: str, text: str) -> tuple[Verdict | None, str]:
    """Return (five scores, the report in canonical form)."""
    report = parse_text(reply, text)
    by_type = {result.type: result.score for result in report.results}
    verdict = scores.encode_scores(map(by_type.get, KINDS), MATEVAL.asked_scale)
    return verdict, as_text(report) if report.results else " ".join(reply.split())
