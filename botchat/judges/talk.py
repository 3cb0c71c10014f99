"""Agents that argue before they vote (ChatEval: Chan et al. 2023, arXiv 2308.07201, Appendix C).

Who hears what, with H the history that stands in an agent's prompt:

- one-by-one (Algorithm 1): agents speak in order; H is everything said before, in earlier turns and
  in this one. (The algorithm's index range, taken literally, would leave agent 1 deaf for ever; the
  text and the authors' code let everyone hear everyone before them.)
- simultaneous-talk (Algorithm 2): all speak at the same time; H is what was said in earlier turns.
- simultaneous-talk-with-summarizer (Algorithm 3): as before, but after every turn a summariser sums
  up all messages so far, and H is that summary alone ("we replace the chat history slots of all
  debater agents with this summarization"). A summary that failed leaves H the messages themselves.

Everyone hears itself too, and no consensus is asked for: the votes are those of the last turn. An
agent whose reply failed takes no further part; with nobody left the talk ends.

The question comes first in every prompt and the history only grows, so that endpoints which cache
prompts bill most of it once.
"""

from __future__ import annotations

from collections.abc import Sequence

from botchat import prompts
from botchat.concurrency import together
from botchat.interfaces import Case
from botchat.judges.agents import Agent, Talk, heard, history
from botchat.records import Turn

PROMPTS = ("debate", "debate_closing", "debate_summary")


class Debate:
    """T turns in which every agent speaks once; see the module for who hears what."""

    def __init__(
        self,
        agents: Sequence[Agent],
        turns: int,
        *,
        simultaneous: bool,
        summarizer: Agent | None = None,
    ) -> None:
        """``summarizer`` makes a simultaneous talk the one of Algorithm 3."""
        self._agents = tuple(agents)
        self._turns = turns
        self._simultaneous = simultaneous
        self._summarizer = summarizer

    async def talk(self, case: Case) -> Talk:
        """Agents × turns calls, and one a turn for the summariser, if nothing fails."""
        said: list[Turn] = []
        messages: list[Turn] = []
        heads: list[Turn] = []  # what every agent finds as its history
        last: dict[str, Turn] = {}
        digest = ""
        for _ in range(self._turns):
            present = [a for a in self._agents if a.name not in last or heard(last[a.name])]
            if not present:
                break
            if self._simultaneous:
                asked = (agent.say(_prompt(agent, case, heads), case) for agent in present)
                spoken = await together(asked)
            else:
                spoken = []
                for agent in present:
                    prompt = _prompt(agent, case, [*heads, *spoken])
                    spoken.append(await agent.say(prompt, case))
            said += spoken
            last.update((turn.speaker, turn) for turn in spoken)
            messages += filter(heard, spoken)
            heads = list(messages)
            if self._summarizer is not None and any(map(heard, spoken)):
                summary = await self._summarizer.say(
                    prompts.fill("debate_summary", messages=history(messages))
                )
                said.append(summary)
                if heard(summary):
                    heads, digest = [summary], summary.text
        return Talk(tuple(said), tuple(last[agent.name] for agent in self._agents), digest)


def _prompt(agent: Agent, case: Case, heads: Sequence[Turn]) -> str:
    return prompts.fill(
        "debate",
        question=case.prompt,
        chat_history=history(heads),
        role_description=agent.role,
        agent_name=agent.name,
        closing=prompts.text("debate_closing"),
    )
