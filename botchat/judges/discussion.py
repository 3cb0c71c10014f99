"""Evaluators that discuss a question part by part (MATEval: Li et al. 2024, §3.4, Algorithm 1).

Strategies: one-by-one, SR (self-reflection), CoT (decomposition; only here agents are told to think
step by step), SR+CoT. SA is one agent that writes the report at once. All prompts are ours: the
paper shows its own only in a figure.

Of a statement that was examined again, only the second version is passed on in the history H. A
feedback that failed is left out; an agent whose reply failed takes no further part.

Deviation: the sub-questions come from one call before the first round, not from each agent during
the talk, so that all agents speak about the same part and the number of rounds is known; without a
numbered line in its reply every round is about the whole question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from botchat.interfaces import Case
from botchat.judges.talk import Agent, Talk, heard, history
from botchat.languages import ENGLISH, Language
from botchat.records import Remark

IN_PLACES = ("discussion_whole", "discussion_silence")
"""Words that stand in the prompts below; of English they are older than the digest."""

PROMPTS = (
    "discussion_parts",
    "discussion_statement",
    "discussion_reflection",
    "discussion_feedback",
    "discussion_report",
    "discussion_form",
    "discussion_answer",
    "discussion_instead",
    "discussion_single",
    "discussion_prose",
)

STEPS = "discussion_steps"
"""Stands in a statement where the question is decomposed (CoT), and nowhere else."""

_PART = re.compile(r"^[ \t>*_#-]*\(?\d{1,2}[.):\u3001](?!\d)[^\w\n]*(?P<part>\w.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Discussion:
    """Rounds of statements, feedback after each, and a report at the end."""

    agents: Sequence[Agent]
    """In the order in which they speak."""
    rounds: int
    """How many, or at most how many where the question is decomposed."""
    _: KW_ONLY
    reflect: bool
    """Self-reflection (SR)."""
    decompose: bool
    """One sub-question a round (CoT)."""
    decomposer: Agent
    feedback: Agent | None
    """``None``: nobody speaks between the rounds."""
    summarizer: Agent
    by_report: bool
    """The report is the one vote; else the agents' last statements are."""
    form: str = "discussion_form"
    """The prompt that says what a report looks like."""
    language: Language = ENGLISH
    """Of all that is said to the agents."""

    async def talk(self, case: Case) -> Talk:
        """Rounds × (agents + 1) + 2 calls; reflection doubles the agents', decomposing adds 1."""
        said: list[Remark] = []
        known: list[Remark] = []  # H of Algorithm 1
        last: dict[str, Remark] = {}
        parts: list[str] = []
        if self.decompose:
            asked = self.language.fill(
                "discussion_parts", question=case.prompt, rounds=str(self.rounds)
            )
            said.append(await self.decomposer.say(asked))
            found = _PART.finditer(said[0].text)
            parts = [match["part"].strip() for match in found][: self.rounds]
        parts = parts or [self.language.text("discussion_whole")] * self.rounds
        for number, part in enumerate(parts, 1):
            for agent in self.agents:
                if agent.name not in last or heard(last[agent.name]):
                    last[agent.name] = await self._statement(agent, case, part, known, said)
                    known += filter(heard, [last[agent.name]])
            if not any(map(heard, last.values())):
                return Talk(tuple(said), tuple(last.values()))
            if self.feedback is None:
                continue
            feedback = await self.feedback.say(
                self.language.fill(
                    "discussion_feedback",
                    question=case.prompt,
                    history=history(known),
                    round=str(number),
                    rounds=str(len(parts)),
                )
            )
            said.append(feedback)
            known += filter(heard, [feedback])
        form = _form(self.form, case, self.language)
        asked = self.language.fill(
            "discussion_report", question=case.prompt, history=history(known), form=form
        )
        report, prose = await _report(
            self.summarizer, asked, self.summarizer, case, said, self.language
        )
        votes = (report,) if self.by_report else tuple(last.values())
        return Talk(tuple(said), votes, prose)

    async def _statement(
        self, agent: Agent, case: Case, part: str, known: Sequence[Remark], said: list[Remark]
    ) -> Remark:
        values = {
            "question": case.prompt,
            "history": history(known) or self.language.text("discussion_silence"),
            "role_description": agent.role,
            "agent_name": agent.name,
            "part": part,
        }
        steps = f"{self.language.text(STEPS)}{self.language.joint}" if self.decompose else ""
        asked = self.language.fill("discussion_statement", **values, steps=steps)
        remark = await agent.say(asked, case)
        said.append(remark)
        if self.reflect and heard(remark):
            asked = self.language.fill(
                "discussion_reflection", **values, statement=remark.text.strip()
            )
            remark = await agent.say(asked, case)
            said.append(remark)
        return remark


@dataclass(frozen=True)
class SingleReport:
    """MATEval's SA: one agent, no talk, the same report."""

    agent: Agent
    summarizer: Agent
    """Puts the report into running text."""
    form: str = "discussion_form"
    language: Language = ENGLISH

    async def talk(self, case: Case) -> Talk:
        """Two calls."""
        said: list[Remark] = []
        form = _form(self.form, case, self.language)
        asked = self.language.fill("discussion_single", question=case.prompt, form=form)
        report, prose = await _report(self.agent, asked, self.summarizer, case, said, self.language)
        return Talk(tuple(said), (report,), prose)


def _form(form: str, case: Case, language: Language) -> str:
    """What the report looks like; the answer is asked for once, in the report or after it."""
    if form != "discussion_form":  # scores alone: the answer is the report
        return language.text(form)
    names = {
        "asked": ("discussion_answer",),
        "read": ("discussion_form", "discussion_instead"),
        "none": ("discussion_form", "discussion_answer"),
    }[case.report]
    return "\n".join(map(language.text, names))


async def _report(
    writer: Agent,
    prompt: str,
    editor: Agent,
    case: Case,
    said: list[Remark],
    language: Language,
) -> tuple[Remark, str]:
    """The report in questions and answers, and its text as prose (empty if that failed)."""
    report = await writer.say(prompt, case)
    said.append(report)
    if not heard(report):
        return report, ""
    prose = await editor.say(language.fill("discussion_prose", report=report.text.strip()))
    said.append(prose)
    return report, prose.text
