"""Agents that talk before they vote (ChatEval: Chan et al. 2023, arXiv 2308.07201, Appendix C).

What each agent finds in its prompt as the history H:

- one-by-one (Algorithm 1): agents speak in order; H is everything said before, also in this round,
  as in the authors' code. (By the algorithm's index range agent 1 would never hear another.)
- simultaneous-talk (Algorithm 2): all speak at the same time; H is the remarks of earlier rounds.
- simultaneous-talk-with-summarizer (Algorithm 3): as Algorithm 2, but H is the summary that a
  summariser makes of all remarks after every round (in the paper's first version all summaries, one
  after the other). If a summary fails, H is the remarks.

An agent's own remarks are in H too. Each agent's vote is in its last remark. An agent whose
reply failed takes no further part. The question comes first in every prompt and H only grows, for
the endpoints' prompt caches.
"""

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import msgspec

from botchat.interfaces import Case, ChatModel, Decoding, Message
from botchat.languages import ENGLISH, Language
from botchat.parallel import together
from botchat.records import Names, Remark
from botchat.workspace.panels import SUMMARIZER, PanelSettings

SWAPPED = " (swapped)"
"""Ends the name of a speaker that was shown the case in the other order."""

_LEAD = r"[ \t>*_#-]*"
_MARK = re.compile(rf"(?m)^({_LEAD})\[([^\]\n]{{1,80}})\]([*_ \t]*):")
_HEADING = re.compile(r"(?m)^\[[^\]\n]{2,80}\][ \t]*$")


class Agent(NamedTuple):
    """A model with a name that the others know, and perhaps a role."""

    name: str
    role: str
    """Role description, empty for none."""
    model: ChatModel
    decoding: Decoding
    others: Names = ()
    """Names of those whose messages it sees; its own may be among them."""

    async def respond(self, prompt: str, case: Case | None = None) -> Remark:
        """Return its reply to a prompt, empty if that failed; with ``case`` also its vote."""
        reply = await self.model.chat([Message(role="user", content=prompt)], self.decoding)
        if not reply.usable:
            return Remark(self.name, "", reply.key, reply.outcome)
        others = [name for name in self.others if name != self.name]
        text = strip_other_speakers(reply.text, others, prompt)
        vote = None
        if case is not None:
            vote = case.read(text)[0]
        cut = len(reply.text) - len(text) or msgspec.UNSET
        return Remark(self.name, text, reply.key, reply.outcome, vote, cut)


def sampled_agents(agent: Agent, n: int) -> list[Agent]:
    """Return an agent that is asked the same ``n`` times; of several each has a name of its own."""
    if n == 1:
        return [agent]
    agents = []
    for sample in range(n):
        decoding = replace(agent.decoding, sample=sample)
        agents.append(agent._replace(name=f"{agent.name} #{sample + 1}", decoding=decoding))
    return agents


class PanelAgents(NamedTuple):
    """Agents of a panel."""

    agents: Sequence[Agent]
    """Agents in the order in which they speak."""
    non_voting: Mapping[str, Agent] = {}
    """Speakers without a vote by name: decomposer, feedback, summariser."""
    language: Language = ENGLISH


class DebateResult(NamedTuple):
    """The transcript about a case, and the remarks whose votes count."""

    remarks: Sequence[Remark]
    votes: Sequence[Remark]
    """The last remark of each voter, whether or not a vote can be read from it."""
    digest: str = ""
    """A summary of the talk, where the strategy makes one."""


Deliberation: TypeAlias = Coroutine[Any, Any, DebateResult]

CommunicationStrategy: TypeAlias = Callable[[PanelSettings, PanelAgents, Case], Deliberation]
"""A way for agents to work on a case; raises only what `ChatModel.chat` raises."""


async def hold_debate(settings: PanelSettings, panel: PanelAgents, case: Case) -> DebateResult:
    """Ask every agent once a round, then the summariser; see the module for what is heard."""
    language = panel.language
    transcript = []
    remarks = []
    known: list[Remark] = []  # H of the algorithms
    summaries: list[Remark] = []
    last: dict[str, Remark] = {}
    digest = ""

    async def speak(agent: Agent, known: Iterable[Remark]) -> Remark:
        prompt = language.fill(
            "debate",
            question=case.prompt,
            chat_history=format_transcript(known),
            role_description=agent.role,
            agent_name=agent.name,
            closing=language.text("debate_closing"),
        )
        last[agent.name] = await agent.respond(prompt, case)
        return last[agent.name]

    for _ in range(settings.n_rounds):
        present = present_agents(panel, last)
        spoken: list[Remark] = []
        if settings.how.in_turn:
            for agent in present:
                spoken.append(await speak(agent, known + spoken))
        else:
            spoken = await together(speak(each, known) for each in present)
        transcript += spoken
        remarks += spoken
        known = remarks
        if settings.how.is_summarized and present_agents(panel, last):
            asked = language.fill("debate_summary", messages=format_transcript(remarks))
            summary = await panel.non_voting[SUMMARIZER].respond(asked)
            transcript.append(summary)
            if is_usable(summary):
                # ChatEval v1 keeps all summaries, v2 the last one alone.
                if settings.summary != "concatenate":
                    summaries.clear()
                summaries.append(summary)
                known = summaries
                digest = summary.text
    return DebateResult(transcript, [last[agent.name] for agent in panel.agents], digest)


def strip_other_speakers(reply: str, others: Iterable[str], prompt: str) -> str:
    """Return a reply up to the first line that begins as another speaker or a prompt's heading.

    "[NAME]" begins one anywhere; "NAME:" and "@NAME:" may open a reply, as an address.
    """
    names = "|".join(re.escape(each) for each in others)
    if not names:
        return reply
    headings = "|".join(re.escape(line.strip()) for line in _HEADING.findall(prompt)) or "(?!)"
    goes_on = re.compile(
        rf"(?im)^{_LEAD}(?:\[(?:{names})\]|(?:{headings})[ \t]*$"
        rf"|(?P<named>@?(?:{names})[*_ \t]*:))"
    )
    for match in goes_on.finditer(reply):
        if match["named"] is None or reply[: match.start()].strip():
            return reply[: match.start()]
    return reply


def is_usable(remark: Remark) -> bool:
    """Return whether the reply was usable; a failed one is never passed on."""
    return remark.outcome in ("ok", "truncated")


def present_agents(panel: PanelAgents, last: Mapping[str, Remark]) -> list[Agent]:
    """Return the agents that take part: none does after a ``last`` reply that failed."""
    return [
        agent for agent in panel.agents if agent.name not in last or is_usable(last[agent.name])
    ]


def format_transcript(remarks: Iterable[Remark]) -> str:
    """Return remarks as agents see them (ChatEval's code), speaker marks in them defused."""
    return "\n".join(f"[{each.speaker}]: {_defused(each)}" for each in remarks if is_usable(each))


def _defused(remark: Remark) -> str:
    text = remark.text.strip().removeprefix(f"[{remark.speaker}]:")
    return _MARK.sub(r"\1(\2)\3 -", text.strip())
