"""UniEval (BotChat §3.2): one dialogue; is it AI-involved, and from which utterance on?"""

from __future__ import annotations

from botchat.protocols.kinds import Protocol

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
