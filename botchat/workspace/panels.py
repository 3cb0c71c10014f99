"""Settings of ``[panels.NAME]``: a panel's strategy, its agents, and how their votes are counted.

`PanelSettings` is a union with one struct for each set of keys; ``strategy`` says which struct a
table is (`KINDS`). A struct has only the keys of its own strategies, so any other key is refused.

A new preset is a table of ``presets.toml``, a new role a name in `ROLES` and its three prompts.
``presets.toml`` and ``docs/settings.md`` have examples.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal, TypeAlias, get_args, get_type_hints

import msgspec

from botchat.interfaces import Subject

ROLES = (
    "general-public",
    "critic",
    "news-author",
    "psychologist",
    "scientist",
    "annotator",
    "evaluator",
)
"""Roles with a text in ``botchat/prompts/roles``; the first five are ChatEval's (Appendix A)."""

CHATEVAL = ROLES[:5]
"""ChatEval's, in the order of its Appendix A. Their text there asks which of two responses is the
better one: another subject has texts of its own."""

DECOMPOSER, FEEDBACK, SUMMARIZER = "Decomposer", "Feedback", "Summarizer"
"""Speakers that take part in a talk but have no vote."""

Positive = Annotated[int, msgspec.Meta(ge=1)]

CONTROL = "control:"
"""Before the name of a panel: single judges asked as often as it makes calls."""


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One member of a panel. Without role and text it has no role description of its own."""

    role: str | None = None
    """One of `ROLES`."""
    text: str | None = None
    """A role description in the user's own words."""
    file: str | None = None
    """A text file with one, relative to ``botchat.toml``; see `with_texts`."""
    name: str | None = None
    """How the other agents know it; default: the name of the role or file."""
    model: str | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown role, two role descriptions, and reserved or empty names."""
        if self.role is not None and self.role not in ROLES:
            raise ValueError(
                f"role: {self.role!r} is unknown; roles: {', '.join(ROLES)}; for a role of your "
                "own give text or file"
            )
        if sum(given is not None for given in (self.role, self.text, self.file)) > 1:
            raise ValueError("role: give one of role, text and file")
        if self.name is not None and not self.name.strip():
            raise ValueError("name: it is empty")
        if self.name in (DECOMPOSER, FEEDBACK, SUMMARIZER):
            raise ValueError(f"name: {self.name!r} is the name of a speaker without a vote")

    @property
    def default_name(self) -> str | None:
        """The name that comes with the role or the file."""
        if self.role:
            return self.role.replace("-", " ").title()
        return PurePath(self.file).stem if self.file else None


class _AgentsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of every strategy."""

    strategy: str
    agents: tuple[AgentSettings | str, ...] = ()
    """Members, or names of roles. Empty: General Public and Critic, as in the ChatEval authors'
    runs with 2 agents (§3.2); in a discussion 2 evaluators, or 1 in ``discussion-sa`` (MATEval)."""
    roles: Positive | None = None
    """In place of ``agents``, how many there are: the first so many of ChatEval's five roles
    (§4.3), in a discussion as many evaluators."""
    model: str | None = None
    """Model of every agent that names none; default: the one of ``--judge-model``."""
    aggregation: str = "auto"
    """How votes become the verdict. ``mean``: scores are averaged; labels, which have no mean, are
    decided by majority, and UniEval's indices as `botchat.judges.voting` says. ``majority``: scores
    too. ``summary``: the report of a discussion decides. ``auto``: ``summary`` for discussions,
    ``mean`` for all others (ChatEval Appendix B)."""
    role_set: Literal["auto", "answers", "dialogues", "texts"] = "auto"
    """Whose texts the roles have: ``answers``: ChatEval's own, about the better of two responses;
    ``dialogues``: about who is a machine; ``texts``: about one text. ``auto``: as the question is
    (`botchat.interfaces.Subject`)."""
    position_calibration: bool = False
    """Ask in both orders and pool the votes (FairEval's BPC); no effect where there is no order."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = 0.0
    """Papers: 0; ``"none"`` leaves it out of the request."""
    max_tokens: Positive | None = 1024

    # What a strategy makes of keys that are left out, and how many agents it needs.
    _auto: ClassVar[str] = "mean"
    _agents: ClassVar[tuple[AgentSettings | str, ...]] = ("general-public", "critic")
    _role: ClassVar[str | None] = None  # None: asked the bare question
    _name: ClassVar[str] = "Referee"
    _fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Refuse too few agents and equal names."""
        if self.roles is not None and self.agents:
            raise ValueError("roles: agents says who they are; give one of the two")
        if self.roles is not None and self.roles > (most := len(self._of(self.roles))):
            raise ValueError(f"roles: {self.roles}, but there are {most}; name more with agents")
        try:
            names = [str(agent.name) for agent in self.members]
        except ValueError as error:
            raise ValueError(f"agents: {error}") from None
        if len(names) < self._fewest:
            raise ValueError(f"agents: the strategy {self.strategy} needs at least {self._fewest}")
        if len(set(names)) < len(names):
            raise ValueError(f"agents: two have the same name; names: {', '.join(names)}")

    def role_prompt(self, role: str, subject: Subject) -> str:
        """The prompt with a role's text, for a question about ``subject``."""
        of = subject if self.role_set == "auto" else self.role_set
        own = of != "answers" and role in CHATEVAL
        return f"roles/{of}/{role}" if own else f"roles/{role}"

    @property
    def decides(self) -> str:
        """The aggregation, ``auto`` resolved."""
        return self._auto if self.aggregation == "auto" else self.aggregation

    def _of(self, n: int) -> tuple[AgentSettings | str, ...]:
        """The first ``n`` agents that ``roles`` takes, or as many as there are."""
        return CHATEVAL[:n]

    @property
    def members(self) -> tuple[AgentSettings, ...]:
        """The agents with distinct names, and with role and model filled in where known."""
        given = self.agents or (self._of(self.roles) if self.roles else self._agents)
        agents = [AgentSettings(role=one) if isinstance(one, str) else one for one in given]
        names = [agent.name or agent.default_name or self._name for agent in agents]
        filled = []
        for at, (agent, name) in enumerate(zip(agents, names, strict=True), 1):
            if names.count(name) > 1:
                name = f"{name} {names[:at].count(name)}"
            role = self._role if agent.text is None and agent.file is None else None
            model = agent.model or self.model
            filled.append(
                msgspec.structs.replace(agent, name=name, role=agent.role or role, model=model)
            )
        return tuple(filled)


class EnsembleSettings(_AgentsSettings, frozen=True, kw_only=True):
    """Every agent answers by itself."""

    strategy: Literal["ensemble"] = "ensemble"
    aggregation: Literal["auto", "mean", "majority"] = "auto"
    samples: Positive = 1
    """Independent draws of every agent (FairEval's MEC: 3)."""
    evidence: bool = False
    """Ask for the evidence before the verdict (FairEval's MEC)."""
    steps: bool = False
    """Have evaluation steps written first, once a question, that every draw follows (G-EVAL)."""

    _fewest = 1

    def __post_init__(self) -> None:
        """Refuse two instructions on how to answer."""
        super().__post_init__()
        if self.steps and self.evidence:
            raise ValueError("steps: evidence says how to answer too; give one of the two")


class _DebatingSettings(_AgentsSettings, frozen=True, kw_only=True):
    aggregation: Literal["auto", "mean", "majority"] = "auto"
    rounds: Positive = msgspec.field(name="turns", default=2)
    """How often every agent speaks (ChatEval §3.2: 2)."""

    _role = "annotator"  # ChatEval §4.1: the control without diverse roles
    _fewest = 1  # ChatEval Figure 4 begins with one role


class DebateSettings(_DebatingSettings, frozen=True, kw_only=True):
    """ChatEval Appendix C, Algorithms 1 and 2."""

    strategy: Literal["one-by-one", "simultaneous-talk"]


class SummarizedDebateSettings(_DebatingSettings, frozen=True, kw_only=True):
    """ChatEval Appendix C, Algorithm 3."""

    strategy: Literal["simultaneous-talk-with-summarizer"] = "simultaneous-talk-with-summarizer"
    summarizer: str | None = None
    """Model of the summariser; default: the first agent's."""
    summary: Literal["replace", "concatenate"] = "replace"
    """What agents hear: the last summary in place of all before it (ChatEval v2, Appendix C), or
    all summaries, one after the other (v1, §2)."""


class _DiscussingSettings(_AgentsSettings, frozen=True, kw_only=True):
    aggregation: Literal["auto", "mean", "majority", "summary"] = "auto"
    summarizer: str | None = None
    """Model of summariser, feedback and decomposer; default: the first agent's."""
    report: Literal["qa", "score"] = "qa"
    """Form of the report: questions and answers with place and reason, or scores only (MATEval
    Table 3, −QA)."""

    _auto = "summary"
    _agents: ClassVar[tuple[AgentSettings | str, ...]] = (AgentSettings(), AgentSettings())
    _role = "evaluator"
    _name = "Evaluator"

    def _of(self, n: int) -> tuple[AgentSettings | str, ...]:
        return (AgentSettings(),) * n


class DiscussionSettings(_DiscussingSettings, frozen=True, kw_only=True):
    """MATEval §4.3: no strategy, self-reflection (SR), chain of thought (CoT), both."""

    strategy: Literal[
        "discussion-one-by-one", "discussion-sr", "discussion-cot", "discussion-sr-cot"
    ]
    rounds: Positive = msgspec.field(name="turns", default=3)
    """Most rounds of a discussion (3 in the MATEval authors' recorded runs)."""
    feedback: bool = True
    """Whether a feedback agent speaks after every round (without: MATEval Table 3, −fb)."""

    @property
    def reflects(self) -> bool:
        """Whether every agent examines its statement again."""
        return self.strategy in ("discussion-sr", "discussion-sr-cot")

    @property
    def decomposes(self) -> bool:
        """Whether the question is broken down, one part a round."""
        return self.strategy in ("discussion-cot", "discussion-sr-cot")


class SingleReportSettings(_DiscussingSettings, frozen=True, kw_only=True):
    """MATEval §4.3, single agent (SA)."""

    strategy: Literal["discussion-sa"] = "discussion-sa"

    _agents = (AgentSettings(),)
    _fewest = 1

    def __post_init__(self) -> None:
        """Refuse more than one agent."""
        super().__post_init__()
        if len(self.members) != 1:
            raise ValueError(f"agents: discussion-sa has 1 agent, not {len(self.members)}")


PanelSettings: TypeAlias = (
    EnsembleSettings
    | DebateSettings
    | SummarizedDebateSettings
    | DiscussionSettings
    | SingleReportSettings
)
"""One ``[panels.NAME]`` entry."""

KINDS: Mapping[str, type[PanelSettings]] = {
    strategy: kind
    for kind in get_args(PanelSettings)
    for strategy in get_args(get_type_hints(kind)["strategy"])
}
"""Strategy -> its struct."""


def with_texts(settings: PanelSettings, read: Callable[[str], str]) -> PanelSettings:
    """The panel with every agent's ``file`` replaced by the text that ``read`` finds there.

    ``read``: path as in ``botchat.toml`` -> content. What it raises is passed on.
    """

    def told(agent: AgentSettings | str) -> AgentSettings | str:
        if isinstance(agent, str) or not agent.file:
            return agent
        text, name = read(agent.file).strip(), agent.name or agent.default_name
        return msgspec.structs.replace(agent, text=text, file=None, name=name)

    return msgspec.structs.replace(settings, agents=tuple(map(told, settings.agents)))


PRESETS: Mapping[str, PanelSettings] = {
    name: msgspec.convert(table, KINDS[table["strategy"]])
    for name, table in tomllib.loads(
        resources.files(__package__).joinpath("presets.toml").read_text("utf-8")
    )["panels"].items()
}
"""The panels of the papers; their agents take the model of ``--judge-model``."""


def find(name: str, own: Mapping[str, PanelSettings]) -> PanelSettings | None:
    """Return the panel of that name, a user's own or a preset; None if there is none."""
    return own.get(name) or PRESETS.get(name)
