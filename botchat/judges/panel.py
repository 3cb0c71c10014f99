"""A panel as a judge: its agents work on a case, and their votes are counted.

A new strategy of a kind is a table of ``strategies.toml``. A new kind is a `CommunicationStrategy`
in a file of this room, a case in `_strategy`, which the type checker names, and its prompts in
``prompts.toml``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple, assert_never

import msgspec

from botchat.errors import ConfigError
from botchat.frames import TomlTable, fill_text, package_toml
from botchat.interfaces import (
    Case,
    ChatModel,
    Decoding,
    Judge,
    JudgeAnswer,
    Subject,
    settings_digest,
)
from botchat.judges.debate import (
    SWAPPED,
    Agent,
    CommunicationStrategy,
    DebateResult,
    Deliberation,
    PanelAgents,
    hold_debate,
    is_usable,
    sampled_agents,
)
from botchat.judges.discussion import discuss
from botchat.judges.voting import Rule, aggregate, swap_sides
from botchat.languages import ENGLISH, Language
from botchat.parallel import together
from botchat.records import UNANSWERED, JudgeId, Names, Outcome, Remark, Verdict
from botchat.workspace.model_settings import changed
from botchat.workspace.panels import (
    CHATEVAL,
    DECOMPOSER,
    FEEDBACK,
    SUMMARIZER,
    AgentSettings,
    PanelSettings,
)


class _Prompts(TomlTable, frozen=True):
    """Names of prompts that a panel's digest signs, by what it is set to; ``prompts.toml``."""

    debate: Names
    discussion: Names
    decomposed: Names
    score: Names
    steps: Names
    evidence: Names
    discussion_translated: Names


_PROMPTS = package_toml("judges/prompts.toml", _Prompts)


class Panel(NamedTuple):
    """Agents that give one verdict."""

    name: str
    deliberate: Callable[[Case], Deliberation]
    models: Sequence[ChatModel]
    digest: str
    rule: Rule = "mean"
    """See `botchat.judges.voting.aggregate`."""
    both_orders: bool = False
    """Position calibration: a second talk about the swapped case, whose votes count as well."""

    @property
    def parallel(self) -> int:
        """Cases worth having in flight."""
        return max(model.parallel for model in self.models)

    async def answer(self, case: Case) -> JudgeAnswer:
        """Let the agents talk, then count their votes; without any verdict the outcome is why."""
        cases = [case]
        if self.both_orders and case.mirror is not None:
            cases.append(case.mirror())
        first, *swapped = await together(self.deliberate(each) for each in cases)
        votes = list(first.votes)
        remarks = list(first.remarks)
        for talk in swapped:  # its votes count as about the order of `case`
            votes += [_swapped(vote, swap_sides(vote.verdict)) for vote in talk.votes]
            remarks += [_swapped(remark, remark.verdict) for remark in talk.remarks]
        verdict = aggregate((vote.verdict for vote in votes), case.choices, self.rule)
        outcome: Outcome = "ok"
        if verdict is None:
            outcome = _outcome(votes)
        return JudgeAnswer(
            verdict,
            _reason(case, verdict, votes, first),
            outcome,
            transcript=tuple(remarks),
            calls=tuple(remark.call for remark in remarks),
        )


async def vote_alone(settings: PanelSettings, panel: PanelAgents, case: Case) -> DebateResult:
    """Ask all agents at the same time, after one call for the steps if there are any."""
    language = panel.language
    planned = []
    closing = ""
    if settings.evidence:
        closing = language.text("ensemble_evidence")
    if settings.steps:
        # What stands before the text is the task and its criteria: the same for every text.
        asked = language.fill("ensemble_steps", question=case.task)
        planned = [await panel.non_voting[DECOMPOSER].respond(asked)]
        if not is_usable(planned[0]):
            return DebateResult(planned, planned)
        closing = language.fill("ensemble_form", steps=planned[0].text.strip())

    def prompt(agent: Agent) -> str:
        return "\n\n".join([part for part in (case.prompt, agent.role, closing) if part])

    votes = await together(agent.respond(prompt(agent), case) for agent in panel.agents)
    return DebateResult(planned + votes, votes)


def _strategy(settings: PanelSettings) -> tuple[CommunicationStrategy, Names]:
    """Return how the agents of a panel work, and the prompts that all of its kind have."""
    match settings.how.kind:
        case "ensemble":
            return vote_alone, ()
        case "debate":
            return hold_debate, _PROMPTS.debate
        case "discussion":
            return discuss, _PROMPTS.discussion
        case _ as unknown:
            assert_never(unknown)


def _prompts(settings: PanelSettings, language: Language) -> Names:
    """Return the names of a panel's prompts, which its digest signs."""
    kind = settings.how.kind
    names = _strategy(settings)[1]
    if settings.how.decomposes:
        names += _PROMPTS.decomposed
    if settings.report == "score":
        names += _PROMPTS.score
    if settings.steps:
        names += _PROMPTS.steps
    # Of English it is older than the digest.
    elif settings.evidence or (kind == "ensemble" and language.english):
        names += _PROMPTS.evidence
    if kind == "discussion" and not language.english:
        names += _PROMPTS.discussion_translated
    return names


def build_panel(
    name: str,
    settings: PanelSettings,
    model_of: Callable[[str], ChatModel],
    default_model: str | None,
    language: Language = ENGLISH,
    subject: Subject = "answers",
) -> Judge:
    """Build the judge that ``settings`` describe.

    ``default_model`` (``--judge-model``): of agents that name none; its judgments are filed under
    ``name@model``. ``subject``: of the question, which decides the texts of roles. Raises
    `ConfigError`: agents without a model, a default that none needs, a language without prompts.
    """
    model_of = cache(model_of)
    has_models = all(member.model for member in settings.members)
    if has_models and default_model is not None:
        raise ConfigError(f"panel {name} names all its models itself; leave out --judge-model")
    if not has_models and default_model is None:
        raise ConfigError(
            f"panel {name}: its agents have no model; name one with --judge-model MODEL, or as "
            f"model = … in [panels.{name}]"
        )
    decoding = Decoding(settings.temperature, settings.max_tokens)
    agents = []
    for member in settings.members:
        model = model_of(member.model or default_model or "")
        role = _role(member, language, subject)
        agents += sampled_agents(Agent(str(member.name), role, model, decoding), settings.samples)
    names = tuple([agent.name for agent in agents])
    agents = [agent._replace(others=names) for agent in agents]
    summarizer = agents[0].model
    if settings.summarizer:
        summarizer = model_of(settings.summarizer)
    non_voting = {
        who: Agent(who, "", summarizer, decoding) for who in (DECOMPOSER, FEEDBACK, SUMMARIZER)
    }
    if default_model is not None:
        name = str(JudgeId(name).of_model(model_of(default_model).name))
    models = [agent.model for agent in agents]
    models.append(summarizer)
    return Panel(
        name,
        partial(_strategy(settings)[0], settings, PanelAgents(agents, non_voting, language)),
        models,
        _digest(settings, agents, summarizer, language),
        rule=settings.decides,
        both_orders=settings.position_calibration,
    )


def wording(
    settings: PanelSettings,
    language: Language,
    subjects: Sequence[Subject],
) -> dict[str, str]:
    """Return the texts that agents read with questions about ``subjects``: title -> text."""
    texts = {}
    for member in settings.members:
        roles = dict.fromkeys(_role(member, language, subject) for subject in subjects)
        texts[f"role of {member.name}"] = "\n\n".join(roles)
    for name in _prompts(settings, language):
        texts[name.replace("_", " ")] = language.text(name)
    return {title: text for title, text in texts.items() if text}


# Keys that every digest has, in this order
_SIGNED = (
    "strategy",
    "agents",
    "model",
    "turns",
    "summarizer",
    "aggregation",
    "position_calibration",
    "samples",
    "evidence",
    "temperature",
    "max_tokens",
    "cheap",
    "strong",
    "calibration",
)


def _digest(
    settings: PanelSettings, agents: Sequence[Agent], summarizer: ChatModel, language: Language
) -> str:
    """Return the digest of all that decides a panel's verdicts: models by identity, not name.

    Published judgments have it, so `_SIGNED` keeps its order and what is empty in it.
    """
    values = msgspec.structs.asdict(settings)
    how = {name: values.get(name) for name in _SIGNED}
    # A key that is newer than those judgments is signed where it is not the default.
    how |= changed(settings)
    how |= {"agents": (), "model": None, "turns": settings.n_rounds, "summarizer": None}
    how |= {"aggregation": settings.decides}
    how.pop("rounds", None)
    in_order = msgspec.Raw(msgspec.json.encode(how))
    who = [(a.name, a.role, dict(a.model.identity), a.decoding.settings) for a in agents]
    wording = language.prompts_digest(*_prompts(settings, language))
    return settings_digest(in_order, who, dict(summarizer.identity), wording)


def _role(member: AgentSettings, language: Language, subject: Subject) -> str:
    if member.role is None:
        return (member.text or "").strip()
    name = f"roles/{member.role}"
    if subject != "answers" and member.role in CHATEVAL:
        name = f"roles/{subject}/{member.role}"
    return language.text(name).strip()


def _swapped(remark: Remark, verdict: Verdict | None) -> Remark:
    return msgspec.structs.replace(remark, speaker=remark.speaker + SWAPPED, verdict=verdict)


def _outcome(votes: Sequence[Remark]) -> Outcome:
    """Return why there is no vote; a failure that may pass in another run comes first."""
    failures = [remark.outcome for remark in votes if not is_usable(remark)]
    for outcome in UNANSWERED:
        if outcome in failures:
            return outcome
    return next(iter(failures), "ok")


def _reason(
    case: Case, verdict: Verdict | None, votes: Sequence[Remark], talk: DebateResult
) -> str:
    """Return the votes, the speakers without one, and the summary or the winning side's reason."""
    tally = Counter(sorted([vote.verdict for vote in votes if vote.verdict is not None]))
    why = talk.digest
    for remark in talk.votes:
        if not why and remark.verdict == verdict is not None:
            why = case.read(remark.text)[1]
    return fill_text("judges/reason.txt", tally=tally, votes=votes, verdict=verdict, why=why)


def calls(settings: PanelSettings) -> int:
    """Return the calls about one case in one order, if none of them fails."""
    how = settings.how
    members = len(settings.members)
    each_round = members * settings.samples * (1 + how.reflects) + how.is_summarized
    at_the_end = 0
    if how.kind == "discussion":
        at_the_end = 2
        each_round += settings.feedback
        if members == 1:
            return at_the_end
    return settings.steps + how.decomposes + settings.n_rounds * each_round + at_the_end
