"""Settings of ``[panels.NAME]``: a panel's strategy, its agents, and how their votes are counted.

A new preset is a table of ``presets.toml``, a new role a name in `ROLES` and its three prompts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Literal

import msgspec

from botchat.interfaces import Subject
from botchat.workspace.model_settings import Positive, Price

CHATEVAL = ("general-public", "critic", "news-author", "psychologist", "scientist")
"""ChatEval's roles. Their text asks which of two responses is the better one; other subjects have
texts of their own."""

ROLES = (*CHATEVAL, "annotator", "evaluator")
"""Roles with a text in ``botchat/prompts/roles``; the first five are ChatEval's (Appendix A)."""

DECOMPOSER = "Decomposer"
FEEDBACK = "Feedback"
SUMMARIZER = "Summarizer"
"""Speakers that take part in a debate but have no vote."""

CONTROL = "control:"
"""Prefix of a panel's name: single judges asked as often as it makes calls."""

Strategy = Literal[
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

_KEYS: Mapping[str, tuple[str, ...]] = {
    "ensemble": ("samples", "evidence", "steps"),
    "debate": ("rounds", "summarizer", "summary"),
    "discussion": ("rounds", "summarizer", "report", "feedback"),
}
"""Kind of strategy -> keys that other kinds lack."""


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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


class PanelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[panels.NAME]`` entry. The order of the fields is part of digests."""

    strategy: Strategy
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
        unused = {key for keys in _KEYS.values() for key in keys} - {*_KEYS[self.kind]}
        unused |= {"rounds"} if self.strategy == "discussion-sa" else set()
        unused |= {"summarizer"} if self.kind == "debate" and not self.is_summarized else set()
        for field in msgspec.structs.fields(type(self)):
            if field.name in unused and getattr(self, field.name) != field.default:
                raise ValueError(f"{field.name}: the strategy {self.strategy} has none")
        if self.aggregation == "summary" and self.kind != "discussion":
            raise ValueError("aggregation: summary belongs to discussion; give mean or majority")
        if self.steps and self.evidence:
            raise ValueError("steps: give one of steps and evidence")
        names = [str(agent.name) for agent in self.members]
        if self.kind == "discussion" and (self.strategy == "discussion-sa") != (len(names) == 1):
            needed = "1 agent" if self.strategy == "discussion-sa" else "at least 2"
            raise ValueError(f"agents: the strategy {self.strategy} needs {needed}")
        if len(set(names)) < len(names):
            raise ValueError(f"agents: two have the same name; names: {', '.join(names)}")

    @property
    def kind(self) -> Literal["ensemble", "debate", "discussion"]:
        """Kind of strategy: agents vote alone, read each other, or write a report together."""
        if self.strategy.startswith("discussion"):
            return "discussion"
        return "ensemble" if self.strategy == "ensemble" else "debate"

    @property
    def n_rounds(self) -> int:
        """Number of rounds, 1 where the strategy has none."""
        usual = {"ensemble": 1, "debate": 2, "discussion": 3}[self.kind]
        return self.rounds or (1 if self.strategy == "discussion-sa" else usual)

    @property
    def is_summarized(self) -> bool:
        """Whether a summariser speaks after every round (ChatEval Appendix C, Algorithm 3)."""
        return self.strategy == "simultaneous-talk-with-summarizer"

    @property
    def reflects(self) -> bool:
        """Whether every agent examines its statement again (MATEval §4.3)."""
        return self.strategy in ("discussion-sr", "discussion-sr-cot")

    @property
    def decomposes(self) -> bool:
        """Whether the question is broken down, one part a round (MATEval §4.3)."""
        return self.strategy in ("discussion-cot", "discussion-sr-cot")

    @property
    def decides(self) -> str:
        """The aggregation, ``auto`` resolved."""
        auto = "summary" if self.kind == "discussion" else "mean"
        return auto if self.aggregation == "auto" else self.aggregation

    @property
    def members(self) -> tuple[AgentSettings, ...]:
        """The agents with distinct names, and with role and model filled in where known."""
        usual: tuple[AgentSettings | str, ...] = ("general-public", "critic")
        if self.kind == "discussion":
            usual = (AgentSettings(),) * (1 if self.strategy == "discussion-sa" else 2)
        agents = [AgentSettings(role=a) if isinstance(a, str) else a for a in self.agents or usual]
        # ChatEval §4.1: the control without diverse roles has annotators.
        role = {"ensemble": None, "debate": "annotator", "discussion": "evaluator"}[self.kind]
        nameless = "evaluator" if self.kind == "discussion" else "referee"
        names = [a.name or (a.role or nameless).replace("-", " ").title() for a in agents]
        return tuple(
            msgspec.structs.replace(
                agent,
                name=name if names.count(name) == 1 else f"{name} {names[:n].count(name)}",
                role=agent.role or (role if agent.text is None else None),
                model=agent.model or self.model,
            )
            for n, (agent, name) in enumerate(zip(agents, names, strict=True), 1)
        )


def role_prompt(role: str, subject: Subject) -> str:
    """Return the prompt with a role's text, for a question about ``subject``."""
    has_texts = subject != "answers" and role in CHATEVAL
    return f"roles/{subject}/{role}" if has_texts else f"roles/{role}"


PRESETS: Mapping[str, PanelSettings] = {
    name: msgspec.convert(table, PanelSettings)
    for name, table in tomllib.loads(
        resources.files(__package__).joinpath("presets.toml").read_text("utf-8")
    )["panels"].items()
}
"""The panels of the papers; their agents take the model of ``--judge-model``."""


def find(name: str, own: Mapping[str, PanelSettings]) -> PanelSettings | None:
    """Return the panel of that name, a user's own or a preset; None if there is none."""
    return own.get(name) or PRESETS.get(name)
