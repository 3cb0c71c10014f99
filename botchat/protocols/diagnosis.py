"""Diagnosis: ten questions about one dialogue, an error type each, with place and evidence.

After MATEval (Li et al. 2024, §3.2, §4.2) with the bad cases of BotChat (Appendix C); what a judge
answers is read by `botchat.protocols.reports`.
"""

from __future__ import annotations

from botchat.protocols.kinds import Protocol

DIAGNOSIS = Protocol(
    "diagnosis",
    "Diagnosis",
    kind="report",
    shows="one",
    question="one dialogue: which errors, where, with which words?",
    prompts=("diagnosis",),
    about_ai=True,
)
