"""Settings of ``[panels.NAME]``: a panel's strategy, its agents, and how their votes are counted.

A new preset is a table of ``presets.toml``, a new role a name in `ROLES` and its three prompts.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from botchat.frames import TomlTable, package_toml
from botchat.records import Names
from botchat.workspace.model_settings import Positive, Price, changed

CHATEVAL = ("general-public", "critic", "news-author", "psychologist", "scientist")
"""ChatEval's roles. Their text asks which of two responses is the better one; other subjects have
texts of their own."""

ROLES = (*CHATEVAL, "annotator", "evaluator")
"""Roles with a text in ``botchat/prompts/roles``; the first five are ChatEval's (Appendix A)."""

DECOMPOSER = "Decomposer"
FEEDBACK = "Feedback"
SUMMARIZER = "Summarizer"
"""Speakers that take part in a debate but have no vote."""

StrategyName: TypeAlias = Literal[
    "ensemble",
    "one-by-one",
    "simultaneous-talk",
    "simultaneous-talk-with-summarizer",
    "discussion-sa",
    "discussion-one-by-one",
    "discussion-sr",
    "discussion-cot",
    "discussion-sr-cot",
]


class AgentSettings(TomlTable, frozen=True, kw_only=True):
    """One member of a panel; without role and text it has no role description of its own."""

    role: str | None = None
    """One of `ROLES`."""
    text: str | None = None
    """A role description in the user's own words."""
    name: str | None = None
    """Name that the other agents see (default: that of the role)."""
    model: str | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown role, two role descriptions, and a reserved name."""
        if self.role is not None and self.role not in ROLES:
            raise ValueError(f"role: {self.role!r} is unknown; roles: {', '.join(ROLES)}, or text")
        if self.role is not None and self.text is not None:
            raise ValueError("role: give one of role and text")
        if self.name in (DECOMPOSER, FEEDBACK, SUMMARIZER):
            raise ValueError(f"name: {self.name!r} is the name of a speaker without a vote")


class Strategy(TomlTable, frozen=True, kw_only=True):
    """Way in which the agents of a panel work together: a table of ``strategies.toml``."""

    kind: Literal["ensemble", "debate", "discussion"]
    """Agents vote alone, read each other, or write a report together."""
    keys: Names
    """Keys of a panel that it takes beside those that all take."""
    agents: tuple[AgentSettings | str, ...]
    """Members of a panel that names none."""
    role: str | None = None
    """Role of an agent that has neither role nor text."""
    called: str
    """Name of an agent without a role."""
    rounds: int = 1
    aggregation: Literal["mean", "summary"] = "mean"
    in_turn: bool = False
    """Whether agents hear what was said before them in the same round."""
    is_summarized: bool = False
    """Whether a summariser speaks after every round."""
    reflects: bool = False
    """Whether every agent examines its statement again."""
    decomposes: bool = False
    """Whether the question is broken down, one part a round."""


STRATEGIES = package_toml("workspace/strategies.toml", dict[StrategyName, Strategy])
# Keys of a panel that not every strategy takes
_OWN_KEYS = frozenset().union(*[strategy.keys for strategy in STRATEGIES.values()])


class PanelSettings(TomlTable, frozen=True, kw_only=True):
    """One ``[panels.NAME]`` entry. The order of the fields is part of digests."""

    strategy: StrategyName
    agents: tuple[AgentSettings | str, ...] = ()
    """Members, or names of roles. None: General Public and Critic (ChatEval §3.2), but in a
    discussion 2 evaluators, or 1 in ``discussion-sa`` (MATEval)."""
    model: str | None = None
    """Model of every agent that names none (default: ``--judge-model``)."""
    aggregation: Literal["auto", "mean", "majority", "summary"] = "auto"
    """Rule from votes to verdict: ``mean`` of scores (labels by majority), ``majority`` of scores
    too, or ``summary``, a discussion's report. ``auto`` is ``summary`` for discussions, else
    ``mean`` (ChatEval Appendix B)."""
    position_calibration: bool = False
    """Ask in both orders and pool the votes (FairEval's BPC)."""
    temperature: Price | None = 0.0
    """Papers: 0; ``"none"`` leaves it out of the request."""
    max_tokens: Positive | None = 1024
    samples: Positive = 1
    """Independent draws of every agent of an ensemble (FairEval's MEC: 3)."""
    evidence: bool = False
    """Ask for the evidence before the verdict (FairEval's MEC)."""
    steps: bool = False
    """Have evaluation steps written first, once a question, for every draw (G-EVAL)."""
    rounds: Positive | None = None
    """Rounds of a debate (ChatEval §3.2: 2) or discussion (MATEval authors' runs: 3)."""
    summarizer: str | None = None
    """Model of summariser, feedback and decomposer (default: the first agent's)."""
    summary: Literal["replace", "concatenate"] = "replace"
    """Summaries that agents see: the last (ChatEval v2, Appendix C) or all (v1, §2)."""
    report: Literal["qa", "score"] = "qa"
    """Form of a discussion's report (``score``: MATEval Table 3, −QA)."""
    feedback: bool = True
    """Whether a feedback agent speaks after every round (without: MATEval Table 3, −fb)."""

    def __post_init__(self) -> None:
        """Refuse keys of other strategies, too few or many agents, and equal names."""
        unused = _OWN_KEYS.difference(self.how.keys)
        for name in changed(self):
            if name in unused:
                raise ValueError(f"{name}: the strategy {self.strategy} has none")
        is_discussion = self.how.kind == "discussion"
        if self.aggregation == "summary" and not is_discussion:
            raise ValueError("aggregation: summary belongs to discussion; give mean or majority")
        if self.steps and self.evidence:
            raise ValueError("steps: give one of steps and evidence")
        names = [str(agent.name) for agent in self.members]
        is_alone = len(self.how.agents) == 1
        if is_discussion and is_alone != (len(names) == 1):
            needed = "at least 2"
            if is_alone:
                needed = "1 agent"
            raise ValueError(f"agents: the strategy {self.strategy} needs {needed}")
        if len(set(names)) < len(names):
            raise ValueError(f"agents: two have the same name; names: {', '.join(names)}")

    @property
    def how(self) -> Strategy:
        """The strategy."""
        return STRATEGIES[self.strategy]

    @property
    def n_rounds(self) -> int:
        """Number of rounds, 1 where the strategy has none."""
        return self.rounds or self.how.rounds

    @property
    def decides(self) -> Literal["mean", "majority", "summary"]:
        """The aggregation, ``auto`` resolved."""
        if self.aggregation == "auto":
            return self.how.aggregation
        return self.aggregation

    @property
    def members(self) -> tuple[AgentSettings, ...]:
        """The agents with distinct names, and with role and model filled in where known."""
        agents = []
        for agent in self.agents or self.how.agents:
            if isinstance(agent, str):
                agent = AgentSettings(role=agent)
            name = agent.name or (agent.role or self.how.called).replace("-", " ").title()
            role = agent.role
            if agent.text is None:
                role = role or self.how.role
            model = agent.model or self.model
            agents.append(AgentSettings(role=role, text=agent.text, name=name, model=model))
        names = [agent.name for agent in agents]
        for n, agent in enumerate(agents):
            if names.count(agent.name) > 1:
                number = names[:n].count(agent.name) + 1
                agents[n] = msgspec.structs.replace(agent, name=f"{agent.name} {number}")
        return tuple(agents)


PRESETS = package_toml("workspace/presets.toml", dict[Literal["panels"], dict[str, PanelSettings]])[
    "panels"
]
"""The panels of the papers; their agents take the model of ``--judge-model``."""


def find(name: str, own: Mapping[str, PanelSettings]) -> PanelSettings | None:
    """Return the panel of that name, a user's own or a preset; None if there is none."""
    return own.get(name) or PRESETS.get(name)
