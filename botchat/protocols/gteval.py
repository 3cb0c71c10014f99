"""GTEval (BotChat §3.4): a generated dialogue beside the human one; which is the generated?

The model's dialogue is cut to the human one's length; both orders; the judge is told that exactly
one of the two contains AI-generated utterances. Both and Neither remain possible answers (ties).
"""

from __future__ import annotations

from botchat.protocols.kinds import Protocol

GTEVAL = Protocol(
    "gteval",
    "GTEval",
    kind="choice",
    shows="human",
    question="a model's dialogue beside the human one, both orders, cut to its length",
    prompts=("gteval",),
    explained="The model's dialogue beside the human one of the same start, cut to its length. The "
    "judge is told that exactly one of them is AI-involved.",
    about_ai=True,
)
