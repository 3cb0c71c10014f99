"""Agents that argue before they vote (ChatEval: Chan et al. 2023, arXiv 2308.07201, Appendix C).

Who hears what, with H the history that stands in an agent's prompt:

- one-by-one (Algorithm 1): agents speak in order; H is everything said before, in earlier rounds
  and in this one. (The algorithm's index range, taken literally, would leave agent 1 deaf for
  ever; the text and the authors' code let everyone hear everyone before them.)
- simultaneous-talk (Algorithm 2): all speak at the same time; H is what was said in rounds before.
- simultaneous-talk-with-summarizer (Algorithm 3): as before, but after every round a summariser
  sums up all messages so far, and H is that summary alone ("we replace the chat history slots of
  all debater agents with this summarization"). A summary that failed leaves H the messages
  themselves.

Everyone hears itself too, and no consensus is asked for: the votes are those of the last remark. An
agent whose reply failed takes no further part; with nobody left the talk ends.

The question comes first in every prompt and the history only grows, so that endpoints which cache
prompts bill most of it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from botchat import prompts
from botchat.interfaces import Case, ChatModel, Decoding, Message
from botchat.parallel import together
from botchat.records import Remark

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
        """Agents × turns calls, and one a remark for the summariser, if nothing fails."""
        said: list[Remark] = []
        messages: list[Remark] = []
        heads: list[Remark] = []  # what every agent finds as its history
        last: dict[str, Remark] = {}
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
            last.update((remark.speaker, remark) for remark in spoken)
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


def _prompt(agent: Agent, case: Case, heads: Sequence[Remark]) -> str:
    return prompts.fill(
        "debate",
        question=case.prompt,
        chat_history=history(heads),
        role_description=agent.role,
        agent_name=agent.name,
        closing=prompts.text("debate_closing"),
    )


SWAPPED = " (swapped)"
"""Ends a speaker's name where it was shown the case in the other order."""

_MARK = re.compile(r"^([ \t>*_#-]*)\[([^\]\n]{1,80})\]([*_ \t]*):", re.MULTILINE)


@dataclass(frozen=True)
class Agent:
    """A member of a panel: a model that plays a role, known to the others by a name."""

    name: str
    role: str
    """Role description, empty for none."""
    model: ChatModel
    decoding: Decoding
    structured: bool = False
    """Hold it to the case's JSON schema, where it has one, when it votes."""

    async def say(self, prompt: str, case: Case | None = None) -> Remark:
        """Its answer to one prompt, as a remark; with ``case`` also what it votes for.

        The prompt is sent whole or not at all: nothing is cut away to make it fit, an overflow is
        the remark's outcome like any other failure, and the remark's text is then empty.
        """
        schema = case.schema if case is not None and self.structured else None
        decoding = replace(self.decoding, schema=schema)
        reply = await self.model.chat([Message(role="user", content=prompt)], decoding)
        if not reply.usable:
            return Remark(self.name, "", reply.key, reply.outcome)
        vote = case.read(reply.text)[0] if case is not None else None
        if case is not None and vote not in case.choices:
            vote = None
        return Remark(self.name, reply.text, reply.key, reply.outcome, vote)


@dataclass(frozen=True)
class Talk:
    """Everything that was said about a case, and the turns whose votes count."""

    turns: tuple[Remark, ...]
    votes: tuple[Remark, ...]
    """One for each voter: its last remark, whether or not a vote can be read from it."""
    digest: str = ""
    """A text that sums the talk up, where the strategy makes one."""


class Talking(Protocol):
    """A way for agents to work on a case."""

    async def talk(self, case: Case) -> Talk:
        """Let them; raises only what `ChatModel.chat` raises."""
        ...


def heard(remark: Remark) -> bool:
    """Whether a remark was said at all; a failed reply is never passed on as a message."""
    return remark.outcome in ("ok", "truncated")


def history(turns: Iterable[Remark]) -> str:
    """Messages as the others see them: ``[name]: text``, one after the other (ChatEval's code).

    A line inside a message that looks like the head of another message loses its brackets and
    colon, so that nobody can speak in another's name.
    """
    return "\n".join(f"[{remark.speaker}]: {_defused(remark)}" for remark in turns if heard(remark))


def _defused(remark: Remark) -> str:
    own = f"[{remark.speaker}]:"
    return _MARK.sub(r"\1(\2)\3 -", remark.text.strip().removeprefix(own).strip())
