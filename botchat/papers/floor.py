"""Polarity: whether a panel's roles pull against the question, by cases whose truth is plain.

The question is GTEval's (BotChat §3.4), about a floor bot's dialogue beside the human one of the
same ChatSEED, in both orders: whoever understands it names the bot's. A role that is told to find
the *better* one, as ChatEval's are (Appendix A), names the person's.
"""

from __future__ import annotations

from dataclasses import replace

from botchat.languages import Language
from botchat.protocols.catalogue import GTEVAL

POLARITY = replace(GTEVAL, name="probe/polarity", title="Polarity")
"""A folder deeper than the judgments that rank: no stage takes one for one of them."""


def floor(language: Language) -> str:
    """The bot that nobody takes for a person; the one that says that it is an AI speaks English."""
    return "verbose" if language.english else "retrieval"
