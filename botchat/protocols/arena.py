"""Questions about two dialogues: BotChat Arena and GTEval (BotChat §3.3, §3.4), and votes."""

from __future__ import annotations

from botchat.protocols.protocol import Protocol

ARENA = Protocol(
    "arena",
    "BotChat Arena",
    kind="choice",
    shows="pair",
    question="two dialogues from one ChatSEED, both orders, cut to N",
    prompts=("arena",),
    short="Arena",
    explained="Two models continue the same start; the judge says which dialogue is AI-involved. "
    "From all such comparisons, in both orders: Bradley–Terry ratings with 95 % intervals, and Elo "
    "as in the paper.",
    leads=True,
    about_ai=True,
)
"""Every pair of contestants, every seed whose human dialogue has at least 4 utterances, both
orders; both dialogues cut to N utterances (§4.2)."""

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
"""Both and Neither remain possible answers (ties)."""

VOTES = Protocol(
    "votes",
    "Votes",
    kind="choice",
    shows="pair",
    question="two answers: which is better?",
    explained="Votes from a file: which of two is better, said by people or by models. From all of "
    "them: Bradley–Terry ratings with 95 % intervals, and Elo.",
    chosen_wins=True,
    leads=True,
)
"""Votes of others; read by ``botchat rank``, asked of no judge."""
