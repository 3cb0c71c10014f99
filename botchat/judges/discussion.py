"""Evaluators that discuss a question part by part (MATEval: Li et al. 2024, §3.4, Algorithm 1).

    H = {}
    for each sub-question Q_i:                  (the whole question where it is not decomposed)
        for each agent:
            P = statement on Q_i, given H
            R = P examined again, given H       (self-reflection; else R = P)
            H = H + R                           (P itself is heard by nobody)
        H = H + feedback on the discussion so far
    report = summary of H, in questions and answers; and the report again as running text

Strategies: one-by-one (neither), SR (self-reflection), CoT (decomposition), SR+CoT (both). SA is
one agent that writes the report at once. All prompts are ours: the paper's own are in a figure.

Deviations: the sub-questions come from one call before the first round, not from each agent as it
goes along, so that all speak about the same part and the rounds can be counted; if that call fails
or holds no numbered line, every round is about the whole question. A feedback that failed is
missing. An agent whose reply failed takes no further part.

The verdict is read from the report (it is the common answer), or, if the panel aggregates votes,
from each agent's last statement; every statement closes with the agent's present answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from botchat import prompts
from botchat.interfaces import Case
from botchat.judges.talk import Agent, Talk, heard, history
from botchat.records import Remark

PROMPTS = (
    "discussion_parts",
    "discussion_statement",
    "discussion_reflection",
    "discussion_feedback",
    "discussion_report",
    "discussion_form",
    "discussion_single",
    "discussion_prose",
)

_PART = re.compile(r"^[ \t>*_#-]*\(?\d{1,2}[.):\u3001](?!\d)[^\w\n]*(?P<part>\w.*)$", re.MULTILINE)
_NOTHING = "(nothing yet)"
_WHOLE = "the whole question"


class Discussion:
    """Rounds of statements, feedback after each, and a report at the end."""

    def __init__(
        self,
        agents: Sequence[Agent],
        rounds: int,
        *,
        reflect: bool,
        decompose: bool,
        decomposer: Agent,
        feedback: Agent,
        summarizer: Agent,
        by_report: bool,
    ) -> None:
        """Choose the strategy.

        Args:
            agents: the evaluators, in the order in which they speak.
            rounds: how many, or at most how many where the question is decomposed.
            reflect: self-reflection (SR).
            decompose: one sub-question a round (CoT).
            decomposer: breaks the question down.
            feedback: ends every round.
            summarizer: writes the report.
            by_report: the report is the one vote; else the agents' last statements are.
        """
        self._agents = tuple(agents)
        self._rounds = rounds
        self._reflect = reflect
        self._decompose = decompose
        self._decomposer = decomposer
        self._feedback = feedback
        self._summarizer = summarizer
        self._by_report = by_report

    async def talk(self, case: Case) -> Talk:
        """Rounds × (agents + 1) + 2 calls; reflection doubles the agents', decomposing adds 1."""
        said: list[Remark] = []
        known: list[Remark] = []  # H of Algorithm 1
        last: dict[str, Remark] = {}
        parts = await self._parts(case, said) if self._decompose else []
        parts = parts or [_WHOLE] * self._rounds
        for number, part in enumerate(parts, 1):
            for agent in self._agents:
                if agent.name not in last or heard(last[agent.name]):
                    last[agent.name] = await self._statement(agent, case, part, known, said)
                    known += filter(heard, [last[agent.name]])
            if not any(map(heard, last.values())):
                return Talk(tuple(said), tuple(last.values()))
            feedback = await self._feedback.say(
                prompts.fill(
                    "discussion_feedback",
                    question=case.prompt,
                    history=history(known),
                    round=str(number),
                    rounds=str(len(parts)),
                )
            )
            said.append(feedback)
            known += filter(heard, [feedback])
        form = prompts.text("discussion_form")
        asked = prompts.fill(
            "discussion_report", question=case.prompt, history=history(known), form=form
        )
        report, prose = await _report(self._summarizer, asked, self._summarizer, case, said)
        votes = (report,) if self._by_report else tuple(last.values())
        return Talk(tuple(said), votes, prose)

    async def _parts(self, case: Case, said: list[Remark]) -> list[str]:
        asked = prompts.fill("discussion_parts", question=case.prompt, rounds=str(self._rounds))
        remark = await self._decomposer.say(asked)
        said.append(remark)
        return [match["part"].strip() for match in _PART.finditer(remark.text)][: self._rounds]

    async def _statement(
        self, agent: Agent, case: Case, part: str, known: Sequence[Remark], said: list[Remark]
    ) -> Remark:
        values = {
            "question": case.prompt,
            "history": history(known) or _NOTHING,
            "role_description": agent.role,
            "agent_name": agent.name,
            "part": part,
        }
        remark = await agent.say(prompts.fill("discussion_statement", **values), case)
        said.append(remark)
        if self._reflect and heard(remark):
            asked = prompts.fill("discussion_reflection", **values, statement=remark.text.strip())
            remark = await agent.say(asked, case)
            said.append(remark)
        return remark


class SingleReport:
    """MATEval's SA: one agent, no talk, the same report."""

    def __init__(self, agent: Agent, summarizer: Agent) -> None:
        """``summarizer`` puts the report of ``agent`` into running text."""
        self._agent = agent
        self._summarizer = summarizer

    async def talk(self, case: Case) -> Talk:
        """Two calls."""
        said: list[Remark] = []
        form = prompts.text("discussion_form")
        asked = prompts.fill("discussion_single", question=case.prompt, form=form)
        report, prose = await _report(self._agent, asked, self._summarizer, case, said)
        return Talk(tuple(said), (report,), prose)


async def _report(
    writer: Agent, prompt: str, editor: Agent, case: Case, said: list[Remark]
) -> tuple[Remark, str]:
    """The report in questions and answers, and its text as prose (empty if that failed)."""
    report = await writer.say(prompt, case)
    said.append(report)
    if not heard(report):
        return report, ""
    prose = await editor.say(prompts.fill("discussion_prose", report=report.text.strip()))
    said.append(prose)
    return report, prose.text
