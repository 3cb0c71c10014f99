"""Agents that are asked once each and never talk (ChatEval §3.2: EN; FairEval: MEC).

The prompt is the protocol's question, then the role: ChatEval's template without the slots of a
discussion. An agent without a role is asked just as the single judge is and shares its replies in
the ledger. Several samples of one agent are several agents whose `Sampling.sample` differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from botchat import prompts
from botchat.concurrency import together
from botchat.interfaces import Case
from botchat.judges.agents import Agent, Talk

PROMPTS = ("ensemble_evidence",)


class Ensemble:
    """Every agent answers by itself, all at the same time."""

    def __init__(self, agents: Sequence[Agent], *, evidence: bool = False) -> None:
        """``evidence``: ask for the evidence before the verdict (FairEval's MEC)."""
        self._agents = tuple(agents)
        self._closing = prompts.text("ensemble_evidence") if evidence else ""

    async def talk(self, case: Case) -> Talk:
        """One turn an agent."""
        turns = await together(agent.say(self._prompt(agent, case), case) for agent in self._agents)
        return Talk(tuple(turns), tuple(turns))

    def _prompt(self, agent: Agent, case: Case) -> str:
        return "\n\n".join(filter(None, (case.prompt, agent.role, self._closing)))
