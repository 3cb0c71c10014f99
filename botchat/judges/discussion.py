"""Agents that discuss a question part by part (MATEval: Li et al. 2024, §3.4, Algorithm 1).

Strategies: one-by-one, SR (self-reflection), CoT (each round answers one sub-problem; only here
agents are told to think step by step), SR+CoT. SA is one agent that writes the report at once. All
prompts are ours: the paper shows its own only in a figure.

Of a remark that was examined again, only the second version is passed on in the history H. A
feedback that failed is left out; an agent whose reply failed takes no further part.

Deviation: the sub-questions come from one call before the first round, not from each agent, so that
all agents speak about the same part; without a numbered line every round is about the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from botchat.interfaces import Case
from botchat.judges.debate import Agent, DebateResult, PanelAgents, format_transcript, is_usable
from botchat.languages import Language
from botchat.prompts import fill_text
from botchat.records import Remark
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER, PanelSettings

_IN_PLACES = ("discussion_whole", "discussion_silence")
"""Words that stand in the prompts below; of English they are older than the digest."""

_PROMPTS = tuple(
    f"discussion_{name}"
    for name in (
        *("parts", "statement", "reflection", "feedback", "report"),
        *("form", "answer", "instead", "single", "prose"),
    )
)

_STEPS = "discussion_steps"
"""Stands in a statement where the question is decomposed (CoT), and nowhere else."""

_SUBQUESTION = "discussion_subquestion"
"""The last line of a statement about one sub-problem (CoT), in place of the whole question."""

_SCORES = "discussion_scores"
"""The form of a report of scores alone."""

_PART = re.compile(r"^[ \t>*_#-]*\(?\d{1,2}[.):\u3001](?!\d)[^\w\n]*(?P<part>\w.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Discussion:
    """Rounds of statements, feedback after each, and a report at the end."""

    settings: PanelSettings
    cast: PanelAgents

    async def talk(self, case: Case) -> DebateResult:
        """Rounds × (agents + 1) + 2 calls; reflection doubles the agents', decomposing adds 1."""
        spoken: list[Remark] = []
        known: list[Remark] = []  # H of Algorithm 1
        last: dict[str, Remark] = {}
        parts: list[str] = []
        rounds, language, serving = self.settings.n_rounds, self.cast.language, self.cast.non_voting
        if self.settings.decomposes:
            asked = language.fill("discussion_parts", question=case.prompt, rounds=str(rounds))
            spoken.append(await serving[DECOMPOSER].respond(asked))
            numbered = _PART.finditer(spoken[0].text)
            parts = [match["part"].strip() for match in numbered][:rounds]
        is_decomposed = bool(parts)
        parts = parts or [language.text("discussion_whole")] * rounds
        for number, part in enumerate(parts, 1):
            # The agents' votes, where they decide, are on the whole question.
            is_last = number == len(parts) and self.settings.decides != "summary"
            closing = _SUBQUESTION if is_decomposed and not is_last else ""
            for agent in self.cast.agents:
                if agent.name not in last or is_usable(last[agent.name]):
                    last[agent.name] = await self._statement(
                        agent, case, part, closing, known, spoken
                    )
                    known += filter(is_usable, [last[agent.name]])
            if not any(map(is_usable, last.values())):
                return DebateResult(tuple(spoken), tuple(last.values()))
            if not self.settings.feedback:
                continue
            asked = language.fill(
                "discussion_feedback",
                question=case.prompt,
                history=format_transcript(known),
                round=str(number),
                rounds=str(len(parts)),
            )
            feedback = await serving[FEEDBACK].respond(asked)
            spoken.append(feedback)
            known += filter(is_usable, [feedback])
        ended = await _report(
            self, serving[SUMMARIZER], case, "discussion_report", format_transcript(known)
        )
        votes = ended.votes if self.settings.decides == "summary" else tuple(last.values())
        return DebateResult((*spoken, *ended.remarks), votes, ended.digest)

    async def _statement(
        self,
        agent: Agent,
        case: Case,
        part: str,
        closing: str,
        known: Sequence[Remark],
        spoken: list[Remark],
    ) -> Remark:
        language = self.cast.language
        values = {
            "question": case.prompt,
            "history": format_transcript(known) or language.text("discussion_silence"),
            "role_description": agent.role,
            "agent_name": agent.name,
            "part": part,
        }
        decomposes = self.settings.decomposes
        steps = f"{language.text(_STEPS)}{language.joint}" if decomposes else ""
        asked = _filled(language, "discussion_statement", closing, steps=steps, **values)
        remark = await agent.respond(asked, case)
        spoken.append(remark)
        if self.settings.reflects and is_usable(remark):
            values["statement"] = remark.text.strip()
            asked = _filled(language, "discussion_reflection", closing, **values)
            remark = await agent.respond(asked, case)
            spoken.append(remark)
        return remark


@dataclass(frozen=True)
class SingleAgent:
    """MATEval's SA: one agent, no talk, the same report."""

    settings: PanelSettings
    cast: PanelAgents

    async def talk(self, case: Case) -> DebateResult:
        """Two calls."""
        return await _report(self, self.cast.agents[0], case, "discussion_single")


def prompts(settings: PanelSettings, language: Language) -> tuple[str, ...]:
    """Everything that is said to the agents; what is not said a pack may lack."""
    return (
        *_PROMPTS,
        *([_STEPS, _SUBQUESTION] if settings.decomposes else []),
        *([_SCORES] if settings.report == "score" else []),
        *(() if language.english else _IN_PLACES),
    )


def _filled(language: Language, name: str, closing: str, **values: str) -> str:
    """Return a prompt; ``closing``: the prompt that takes the place of its last line, if any."""
    text = language.text(name)
    if closing:
        text = f"{text.rpartition(chr(10))[0]}\n{language.text(closing)}"
    return fill_text(text, name, **values)


async def _report(
    panel: Discussion | SingleAgent, writer: Agent, case: Case, prompt: str, known: str = ""
) -> DebateResult:
    """The report in questions and answers, and its text as prose (empty if that failed).

    The answer is asked for once, in the report or after it; of scores alone the report is it.
    """
    language = panel.cast.language
    names: tuple[str, ...] = (_SCORES,)
    if panel.settings.report == "qa":
        names = {
            "asked": ("discussion_answer",),
            "read": ("discussion_form", "discussion_instead"),
            "none": ("discussion_form", "discussion_answer"),
        }[case.report]
    values = {"question": case.prompt, "form": "\n".join(map(language.text, names))}
    if known:
        values["history"] = known
    report = await writer.respond(language.fill(prompt, **values), case)
    if not is_usable(report):
        return DebateResult((report,), (report,))
    asked = language.fill("discussion_prose", report=report.text.strip())
    prose = await panel.cast.non_voting[SUMMARIZER].respond(asked)
    return DebateResult((report, prose), (report,), prose.text)
