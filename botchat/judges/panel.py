"""A panel as a judge: it lets its agents work on a case and counts their votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Literal

import msgspec

from botchat import prompts
from botchat.errors import ConfigError
from botchat.interfaces import Answer, Case, ChatModel, Decoding, Judge, settings_digest
from botchat.judges import discussion, talk
from botchat.judges.cascade import Cascade
from botchat.judges.single import SingleJudge
from botchat.judges.talk import SWAPPED, Agent, Talk, Talking, heard
from botchat.judges.voting import aggregate, mirrored
from botchat.parallel import together
from botchat.records import Outcome, Remark, Verdict
from botchat.workspace import panels
from botchat.workspace.panels import AgentSettings, PanelSettings


class Panel:
    """Agents that give one verdict."""

    def __init__(
        self,
        name: str,
        talking: Talking,
        parallel: int,
        digest: str,
        *,
        scores: Literal["mean", "majority"] = "mean",
        both_orders: bool = False,
    ) -> None:
        """Put a way of working behind a name.

        Args:
            name: what the judgments are filed under.
            talking: how the agents work on a case.
            parallel: cases worth having in flight.
            digest: changes with whatever decides its verdicts.
            scores: see `botchat.judges.voting.aggregate`.
            both_orders: position calibration: a second talk about the mirrored case, its votes
                mirrored back and counted with the first's.
        """
        self._name = name
        self._talking = talking
        self._parallel = parallel
        self._digest = digest
        self._scores = scores
        self._both_orders = both_orders

    @property
    def name(self) -> str:
        """The name its judgments are filed under."""
        return self._name

    @property
    def parallel(self) -> int:
        """Cases worth having in flight."""
        return self._parallel

    @property
    def digest(self) -> str:
        """Of its settings, its models and the wording of its prompts."""
        return self._digest

    async def answer(self, case: Case) -> Answer:
        """Let them talk, then count.

        Failed agents are absent, and the reason says so. With no verdict at all the outcome is the
        failures' own, ``transport`` before any other, so that the case is asked again.
        """
        shown = [case]
        if self._both_orders and case.mirror is not None:
            shown.append(case.mirror())
        talks = await together(self._talking.talk(one) for one in shown)
        # From here on everything is about the order of `case`.
        votes = [*talks[0].votes, *(_turned(remark) for talk in talks[1:] for remark in talk.votes)]
        verdict = aggregate((remark.verdict for remark in votes), case.choices, self._scores)
        return Answer(
            verdict,
            _reason(case, verdict, votes, talks[0]),
            outcome="ok" if verdict is not None else _outcome(votes),
            transcript=(*talks[0].turns, *(_marked(t) for talk in talks[1:] for t in talk.turns)),
            calls=tuple(remark.call for talk in talks for remark in talk.turns if remark.call),
        )


def build_panel(
    name: str,
    settings: PanelSettings,
    model_of: Callable[[str], ChatModel],
    default_model: str | None,
    judge_of: Callable[[str], Judge] | None = None,
) -> Judge:
    """The judge that ``settings`` describe.

    Args:
        name: of the ``[panels]`` entry or preset. Where ``default_model`` is used the judgments
            are filed under ``name@model``.
        settings: with role texts read (`botchat.workspace.panels.with_texts`).
        model_of: a model by its name; asked once for each.
        default_model: model of agents that name none (``--judge-model``).
        judge_of: a judge by its name, for the two of a cascade; by default single models.

    Raises:
        ConfigError: agents without a model, a default that nobody takes, a role text not read.
    """
    model_of = cache(model_of)
    if settings.strategy == "cascade":
        _refuse_default(name, default_model)
        judge_of = judge_of or (lambda other: SingleJudge(other, model_of(other), Decoding()))
        cheap, strong = (judge_of(str(other)) for other in (settings.cheap, settings.strong))
        return Cascade(name, cheap, strong, calibration=settings.calibration or 0.0)
    if all(member.model for member in settings.members):
        _refuse_default(name, default_model)
    elif default_model is None:
        raise ConfigError(
            f"panel {name}: its agents have no model; name one with --judge-model MODEL, or as "
            f"model = … in [panels.{name}]"
        )
    else:
        name = f"{name}@{model_of(default_model).name}"
    agents = tuple(_agents(name, settings, model_of, default_model))
    served = model_of(settings.summarizer) if settings.summarizer else agents[0].model
    return Panel(
        name,
        _talking(settings, agents, served),
        max(agent.model.parallel for agent in agents),
        _digest(settings, agents, served),
        scores="majority" if settings.decides == "majority" else "mean",
        both_orders=settings.position_calibration,
    )


def wording(settings: PanelSettings) -> dict[str, str]:
    """What a panel's agents are told, beside the question: title -> text.

    Empty for a cascade, whose judges have words of their own.
    """
    if settings.strategy == "cascade":
        return {}
    roles = {f"role of {member.name}": _role(member) for member in settings.members}
    spoken = {name.replace("_", " "): prompts.text(name) for name in _prompts(settings)}
    return {title: text for title, text in {**roles, **spoken}.items() if text}


def _digest(settings: PanelSettings, agents: Sequence[Agent], served: ChatModel) -> str:
    """Of everything that decides a panel's verdicts: models by what they are, not by name."""
    how = msgspec.structs.replace(
        settings,
        agents=(),
        model=None,
        summarizer=None,
        turns=settings.rounds,
        aggregation=settings.decides,
    )
    who = [(a.name, a.role, dict(a.model.identity), a.decoding.settings) for a in agents]
    return settings_digest(how, who, dict(served.identity), prompts.digest(*_prompts(settings)))


def _prompts(settings: PanelSettings) -> tuple[str, ...]:
    if settings.is_debate:
        return talk.PROMPTS
    return discussion.PROMPTS if settings.is_discussion else _EVIDENCE


def _role(member: AgentSettings) -> str:
    return (prompts.text(f"roles/{member.role}") if member.role else member.text or "").strip()


def _agents(
    panel: str,
    settings: PanelSettings,
    model_of: Callable[[str], ChatModel],
    default_model: str | None,
) -> Iterator[Agent]:
    for member in settings.members:
        if member.file is not None:
            raise ConfigError(f"panel {panel}: the role text {member.file} has not been read")
        model = model_of(member.model or default_model or "")
        for sample in range(settings.samples):
            yield Agent(
                f"{member.name} #{sample + 1}" if settings.samples > 1 else f"{member.name}",
                _role(member),
                model,
                Decoding(settings.temperature, settings.max_tokens, sample),
            )


def _talking(settings: PanelSettings, agents: Sequence[Agent], served: ChatModel) -> Talking:
    decoding = Decoding(settings.temperature, settings.max_tokens)
    decomposer, feedback, summarizer = (
        Agent(speaker, "", served, decoding)
        for speaker in (panels.DECOMPOSER, panels.FEEDBACK, panels.SUMMARIZER)
    )
    if settings.strategy == "ensemble":
        return Ensemble(agents, evidence=settings.evidence)
    if settings.is_debate:
        return talk.Debate(
            agents,
            settings.rounds,
            simultaneous=settings.strategy != "one-by-one",
            summarizer=summarizer if settings.strategy.endswith("summarizer") else None,
        )
    if settings.strategy == "discussion-sa":
        return discussion.SingleReport(agents[0], summarizer)
    return discussion.Discussion(
        agents,
        settings.rounds,
        reflect="sr" in settings.strategy.split("-"),
        decompose="cot" in settings.strategy.split("-"),
        decomposer=decomposer,
        feedback=feedback,
        summarizer=summarizer,
        by_report=settings.decides == "summary",
    )


def _refuse_default(name: str, default_model: str | None) -> None:
    if default_model is not None:
        raise ConfigError(f"panel {name} names all its models itself; leave out --judge-model")


def _turned(remark: Remark) -> Remark:
    """A vote on the swapped order as a vote on the order before."""
    return msgspec.structs.replace(_marked(remark), verdict=mirrored(remark.verdict))


def _marked(remark: Remark) -> Remark:
    return msgspec.structs.replace(remark, speaker=f"{remark.speaker}{SWAPPED}")


def _outcome(votes: Sequence[Remark]) -> Outcome:
    """Why nobody's vote counts; failures that another run can heal come first."""
    failures = [remark.outcome for remark in votes if not heard(remark)]
    for first in ("transport", "malformed"):
        if first in failures:
            return first
    return failures[0] if failures else "ok"


def _reason(case: Case, verdict: Verdict | None, votes: Sequence[Remark], talk: Talk) -> str:
    """On how many votes the verdict rests, who gave none, and why it is what it is."""
    cast = Counter(remark.verdict for remark in votes if remark.verdict is not None)
    said = ", ".join(f"{vote} ×{n}" for vote, n in sorted(cast.items(), key=lambda i: (-i[1], i)))
    absent = [
        f"{remark.speaker} ({'unreadable' if heard(remark) else remark.outcome})"
        for remark in votes
        if remark.verdict is None
    ]
    parts = [f"{cast.total()} of {len(votes)} votes{': ' if said else ''}{said}"]
    if cast and verdict is None:
        parts.append("an even split that is no tie here")
    if absent:
        parts.append(f"no vote: {', '.join(absent)}")
    first = next((remark for remark in talk.votes if remark.verdict == verdict is not None), None)
    why = talk.digest or (case.read(first.text)[1] if first else "")
    return f"{'; '.join(parts)}. {' '.join(why.split())}".strip()


_EVIDENCE = ("ensemble_evidence",)


class Ensemble:
    """Every agent answers by itself, all at the same time."""

    def __init__(self, agents: Sequence[Agent], *, evidence: bool = False) -> None:
        """``evidence``: ask for the evidence before the verdict (FairEval's MEC)."""
        self._agents = tuple(agents)
        self._closing = prompts.text("ensemble_evidence") if evidence else ""

    async def talk(self, case: Case) -> Talk:
        """One remark an agent."""
        turns = await together(agent.say(self._prompt(agent, case), case) for agent in self._agents)
        return Talk(tuple(turns), tuple(turns))

    def _prompt(self, agent: Agent, case: Case) -> str:
        return "\n\n".join(filter(None, (case.prompt, agent.role, self._closing)))
