"""Agents that talk before they vote (ChatEval: Chan et al. 2023, arXiv 2308.07201, Appendix C).

What each agent finds in its prompt as the history H:

- one-by-one (Algorithm 1): agents speak in order; H is everything said before, also in this round,
  as in the authors' code. (By the algorithm's index range agent 1 would never hear anybody.)
- simultaneous-talk (Algorithm 2): all speak at the same time; H is what was said in earlier rounds.
- simultaneous-talk-with-summarizer (Algorithm 3): as Algorithm 2, but H is the summary that a
  summariser makes of all remarks after every round (in the paper's first version all summaries, one
  after the other). If a summary fails, H is the remarks.

An agent's own remarks are in H too. The votes are those in each agent's last remark. An agent whose
reply failed takes no further part. The question comes first in every prompt and H only grows, for
the endpoints' prompt caches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from botchat.interfaces import Case, ChatModel, Decoding, Message
from botchat.languages import ENGLISH, Language
from botchat.parallel import together
from botchat.records import Remark
from botchat.workspace.panels import SUMMARIZER, PanelSettings

PROMPTS = ("debate", "debate_closing", "debate_summary")


@dataclass(frozen=True)
class Debate:
    """Rounds in which every agent speaks once; the module says what each agent hears."""

    settings: PanelSettings
    cast: PanelAgents

    async def talk(self, case: Case) -> DebateResult:
        """Agents × rounds calls, and one a round for the summariser, if nothing fails."""
        transcript: list[Remark] = []
        messages: list[Remark] = []
        known: list[Remark] = []  # H of the algorithms
        summaries: list[Remark] = []
        last: dict[str, Remark] = {}
        digest = ""
        agents, language = self.cast.agents, self.cast.language
        summarized = self.settings.is_summarized
        for _ in range(self.settings.n_rounds):
            present = [a for a in agents if a.name not in last or is_usable(last[a.name])]
            spoken: list[Remark] = []
            if self.settings.strategy != "one-by-one":
                spoken = await together(
                    a.respond(self._prompt(a, case, known), case) for a in present
                )
            else:
                for agent in present:
                    prompt = self._prompt(agent, case, [*known, *spoken])
                    spoken.append(await agent.respond(prompt, case))
            transcript += spoken
            last |= {remark.speaker: remark for remark in spoken}
            messages += filter(is_usable, spoken)
            known = list(messages)
            if summarized and any(map(is_usable, spoken)):
                asked = language.fill("debate_summary", messages=format_transcript(messages))
                summary = await self.cast.non_voting[SUMMARIZER].respond(asked)
                transcript.append(summary)
                if is_usable(summary):
                    digest = summary.text
                    # ChatEval v1 keeps all summaries, v2 the last one alone.
                    keeps = self.settings.summary == "concatenate"
                    known = summaries = [*summaries, summary] if keeps else [summary]
        return DebateResult(tuple(transcript), tuple(last[agent.name] for agent in agents), digest)

    def _prompt(self, agent: Agent, case: Case, known: Sequence[Remark]) -> str:
        return self.cast.language.fill(
            "debate",
            question=case.prompt,
            chat_history=format_transcript(known),
            role_description=agent.role,
            agent_name=agent.name,
            closing=self.cast.language.text("debate_closing"),
        )


SWAPPED = " (swapped)"
"""Ends the name of a speaker that was shown the case in the other order."""

_LEAD = r"[ \t>*_#-]*"
_MARK = re.compile(rf"^({_LEAD})\[([^\]\n]{{1,80}})\]([*_ \t]*):", re.MULTILINE)

_HEADING = re.compile(r"^\[[^\]\n]{2,80}\][ \t]*$", re.MULTILINE)
"""Such as "[Question]"."""


@dataclass(frozen=True)
class Agent:
    """A model with a name that the others know, and perhaps a role."""

    name: str
    role: str
    """Role description, empty for none."""
    model: ChatModel
    decoding: Decoding
    others: tuple[str, ...] = ()
    """Names of those whose messages it sees."""

    async def respond(self, prompt: str, case: Case | None = None) -> Remark:
        """Its answer to one prompt, empty if that failed; with ``case`` also its vote."""
        reply = await self.model.chat([Message(role="user", content=prompt)], self.decoding)
        if not reply.usable:
            return Remark(self.name, "", reply.key, reply.outcome)
        text = strip_other_speakers(reply.text, self.others, prompt)
        vote = None
        if case is not None and (verdict := case.read(text)[0]) in case.choices:
            vote = verdict
        cut = len(reply.text) - len(text) or msgspec.UNSET
        return Remark(self.name, text, reply.key, reply.outcome, vote, cut)


@dataclass(frozen=True)
class PanelAgents:
    """Who takes part in a talk."""

    agents: Sequence[Agent]
    """In the order in which they speak."""
    non_voting: Mapping[str, Agent] = field(default_factory=dict)
    """Speakers without a vote by name: decomposer, feedback, summariser."""
    language: Language = ENGLISH
    """Of all that is said to the agents."""


@dataclass(frozen=True)
class DebateResult:
    """Everything that was said about a case, and the remarks whose votes count."""

    remarks: tuple[Remark, ...]
    votes: tuple[Remark, ...]
    """The last remark of each voter, whether or not a vote can be read from it."""
    digest: str = ""
    """A summary of the talk, where the strategy makes one."""


class CommunicationStrategy(Protocol):
    """A way for agents to work on a case."""

    async def talk(self, case: Case) -> DebateResult:
        """Raises only what `ChatModel.chat` raises."""
        ...


def strip_other_speakers(reply: str, others: Iterable[str], prompt: str) -> str:
    """A reply up to the first line that begins as a message of ``others`` or a heading of a prompt.

    "[NAME]" begins one anywhere; "NAME:" and "@NAME:" may open a reply, as an address.
    """
    names = "|".join(map(re.escape, others))
    if not names:
        return reply
    headings = "|".join(re.escape(line.strip()) for line in _HEADING.findall(prompt)) or "(?!)"
    goes_on = re.compile(
        rf"^{_LEAD}(?:\[(?:{names})\]|(?:{headings})[ \t]*$|(?P<named>@?(?:{names})[*_ \t]*:))",
        re.MULTILINE | re.IGNORECASE,
    )
    for match in goes_on.finditer(reply):
        if match["named"] is None or reply[: match.start()].strip():
            return reply[: match.start()]
    return reply


def is_usable(remark: Remark) -> bool:
    """Whether the reply was usable; a failed one is never passed on as a message."""
    return remark.outcome in ("ok", "truncated")


def format_transcript(remarks: Iterable[Remark]) -> str:
    """Messages as agents see them (ChatEval's code), the beginnings of others in them defused."""
    return "\n".join(f"[{r.speaker}]: {_defused(r)}" for r in remarks if is_usable(r))


def _defused(remark: Remark) -> str:
    own = f"[{remark.speaker}]:"
    return _MARK.sub(r"\1(\2)\3 -", remark.text.strip().removeprefix(own).strip())
