"""Agents that discuss a question part by part (MATEval: Li et al. 2024, §3.4, Algorithm 1).

Strategies: one-by-one, SR (self-reflection), CoT (each round answers one sub-problem; only here
agents are told to think step by step), SR+CoT. SA is one agent that writes the report at once. All
prompts are ours: the paper shows its own only in a figure.

Of a remark that was examined again, only the second version is passed on in the history H. A
feedback that failed is left out; an agent whose reply failed takes no further part.

Deviation: the sub-questions come from one call before the first round, not from each agent, so that
all agents speak about the same part; without a numbered line every round is about the whole.
"""

import re
from collections.abc import Mapping, Sequence

from botchat.interfaces import Case
from botchat.judges.debate import (
    Agent,
    DebateResult,
    PanelAgents,
    format_transcript,
    is_usable,
    present_agents,
)
from botchat.languages import Language
from botchat.prompts import fill
from botchat.records import Remark
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER, PanelSettings

_PART = re.compile(r"(?m)^[ \t>*_#-]*\(?\d{1,2}[.):\u3001](?!\d)[^\w\n]*(?P<part>\w.*)$")


async def discuss(settings: PanelSettings, panel: PanelAgents, case: Case) -> DebateResult:
    """Hold rounds of statements with feedback after each, and ask for a report at the end.

    Rounds × (agents + 1) + 2 calls; reflection doubles the agents', decomposing adds 1.
    """
    if len(panel.agents) == 1:  # MATEval's SA is asked for the same report
        return await _report(settings, panel, panel.agents[0], case, "discussion_single", {})
    spoken = []
    known: list[Remark] = []  # H of Algorithm 1
    last: dict[str, Remark] = {}
    parts = []
    language = panel.language
    non_voting = panel.non_voting
    if settings.how.decomposes:
        asked = language.fill(
            "discussion_parts", question=case.prompt, rounds=str(settings.n_rounds)
        )
        spoken.append(await non_voting[DECOMPOSER].respond(asked))
        parts = parts_in(spoken[0].text)
    is_decomposed = bool(parts)
    if not is_decomposed:
        parts = [language.text("discussion_whole") for _ in range(settings.n_rounds)]
    parts = parts[: settings.n_rounds]
    for number, part in enumerate(parts, 1):
        # The agents' votes, where they decide, are on the whole question.
        is_last = number == len(parts) and settings.decides != "summary"
        closing = ""
        if is_decomposed and not is_last:
            closing = "discussion_subquestion"
        for agent in present_agents(panel, last):
            remarks = await _state(settings, language, agent, case, part, closing, known)
            spoken += remarks
            last[agent.name] = remarks[-1]
            known += remarks[-1:]
        if not present_agents(panel, last):
            return DebateResult(spoken, list(last.values()))
        if settings.feedback:
            asked = language.fill(
                "discussion_feedback",
                question=case.prompt,
                history=format_transcript(known),
                round=str(number),
                rounds=str(len(parts)),
            )
            spoken.append(await non_voting[FEEDBACK].respond(asked))
            known += spoken[-1:]
    values = {"history": format_transcript(known)}
    report = await _report(
        settings, panel, non_voting[SUMMARIZER], case, "discussion_report", values
    )
    spoken += report.remarks
    if settings.decides == "summary":
        return report._replace(remarks=spoken)
    return DebateResult(spoken, list(last.values()), report.digest)


async def _state(
    settings: PanelSettings,
    language: Language,
    agent: Agent,
    case: Case,
    part: str,
    closing: str,
    known: Sequence[Remark],
) -> list[Remark]:
    """Return an agent's remark, and the second version of it where agents reflect."""
    values = {
        "question": case.prompt,
        "history": format_transcript(known) or language.text("discussion_silence"),
        "role_description": agent.role,
        "agent_name": agent.name,
        "part": part,
    }
    steps = ""
    if settings.how.decomposes:
        steps = language.text("discussion_steps")
        if language.spaced:
            steps += " "
    asked = _filled(language, "discussion_statement", closing, values | {"steps": steps})
    remarks = [await agent.respond(asked, case)]
    if settings.how.reflects and is_usable(remarks[0]):
        values["statement"] = remarks[0].text.strip()
        asked = _filled(language, "discussion_reflection", closing, values)
        remarks.append(await agent.respond(asked, case))
    return remarks


def _filled(language: Language, name: str, closing: str, values: Mapping[str, str]) -> str:
    """Return a prompt, with the prompt ``closing``, if given, in place of its last line."""
    text = language.text(name)
    if closing:
        text = f"{text.rpartition(chr(10))[0]}\n{language.text(closing)}"
    return fill(text, values)


async def _report(
    settings: PanelSettings,
    panel: PanelAgents,
    writer: Agent,
    case: Case,
    prompt: str,
    values: dict[str, str],
) -> DebateResult:
    """Ask for the report in questions and answers, then for its text (empty if that failed).

    The answer is asked for once, in the report or after it; of scores alone the report is it.
    """
    language = panel.language
    names = ["discussion_scores"]
    if settings.report == "qa":
        names = {
            "asked": ["discussion_answer"],
            "read": ["discussion_form", "discussion_instead"],
            "none": ["discussion_form", "discussion_answer"],
        }[case.report]
    form = "\n".join([language.text(name) for name in names])
    asked = fill(language.text(prompt), values | {"question": case.prompt, "form": form})
    report = await writer.respond(asked, case)
    if not is_usable(report):
        return DebateResult([report], [report])
    asked = language.fill("discussion_prose", report=report.text.strip())
    prose = await panel.non_voting[SUMMARIZER].respond(asked)
    return DebateResult([report, prose], [report], prose.text)


def parts_in(text: str) -> list[str]:
    """Return the parts of a question as a decomposer's reply lists them; empty for none."""
    return [match["part"].strip() for match in _PART.finditer(text)]


def is_undivided(transcript: Sequence[Remark]) -> bool:
    """Return whether a decomposed question was discussed whole: its parts could not be read."""
    return any(each.speaker == DECOMPOSER and not parts_in(each.text) for each in transcript)
