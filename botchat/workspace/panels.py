"""Typed settings of ``[panels.NAME]``: who judges together, in which form, and how votes count.

    [panels.three]
    strategy = "simultaneous-talk-with-summarizer"
    turns = 2
    model = "gpt-4"                      # of every agent that names none
    agents = [
        "general-public",                # a role of the paper
        { role = "critic", model = "claude" },
        { name = "Teacher", text = "You are Teacher, …" },    # or: file = "teacher.txt"
    ]

    [panels.thrifty]
    strategy = "cascade"
    cheap = "gpt-3.5"                    # a model, a [judges] or a [panels] entry
    strong = "three"
    calibration = 0.1                    # share of the cheap judge's verdicts that strong checks

`PRESETS` are the panels of the papers by name; their agents take the model of ``--judge-model``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated

import msgspec

DEBATES = ("one-by-one", "simultaneous-talk", "simultaneous-talk-with-summarizer")
"""ChatEval Appendix C, Algorithms 1 to 3."""

DISCUSSIONS = (
    "discussion-sa",
    "discussion-one-by-one",
    "discussion-sr",
    "discussion-cot",
    "discussion-sr-cot",
)
"""MATEval §4.3: single agent, no strategy, self-reflection, chain of thought, both."""

STRATEGIES = ("ensemble", *DEBATES, *DISCUSSIONS, "cascade")

AGGREGATIONS = ("auto", "mean", "majority", "summary")

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

DECOMPOSER, FEEDBACK, SUMMARIZER = "Decomposer", "Feedback", "Summarizer"
"""Speakers who serve a talk and have no vote."""

Positive = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One member of a panel. Without role and text it is a plain referee."""

    role: str | None = None
    """One of `ROLES`."""
    text: str | None = None
    """A role description in one's own words."""
    file: str | None = None
    """A text file with it, relative to ``botchat.toml``; see `with_texts`."""
    name: str | None = None
    """How the others know it; by default the role's name."""
    model: str | None = None

    def __post_init__(self) -> None:
        """Refuse a role nobody knows, two at once, and names that belong to others."""
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


class PanelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[panels.NAME]`` entry."""

    strategy: str
    """One of `STRATEGIES`."""
    agents: tuple[AgentSettings | str, ...] = ()
    """Members, or names of roles. Empty: the paper's (ChatEval §3.2: 2 agents, here General Public
    and Critic as in the authors' runs; MATEval: 2 evaluators without roles, or 1 for SA)."""
    model: str | None = None
    """Model of every agent that names none; by default the one of ``--judge-model``."""
    turns: Positive | None = None
    """Turns of a debate (default 2: ChatEval §3.2), or most rounds of a discussion (default 3: the
    authors' recorded runs)."""
    summarizer: str | None = None
    """Model of the speakers without a vote: summariser, feedback, decomposer."""
    aggregation: str = "auto"
    """How votes become the verdict, one of `AGGREGATIONS`. ``mean``: scores are averaged; labels,
    which have no mean, are decided by majority, and UniEval's indices as `botchat.judges.voting`
    says. ``majority``: scores too. ``summary``: the report of a discussion decides. ``auto``:
    ``summary`` for discussions, ``mean`` for all others (ChatEval Appendix B)."""
    position_calibration: bool = False
    """Ask in both orders and pool the votes (FairEval's BPC); no effect where there is no order."""
    samples: Positive = 1
    """Ensemble: independent draws of every agent (FairEval's MEC: 3)."""
    evidence: bool = False
    """Ensemble: evidence is asked for before the verdict (FairEval's MEC)."""
    temperature: float | None = 0.0
    """Papers: 0; ``"none"`` leaves it out of the request."""
    max_tokens: Positive | None = 1024
    cheap: str | None = None
    """Cascade: the judge that is asked first, in both orders."""
    strong: str | None = None
    """Cascade: the judge that is asked where the first disagrees with itself or sees a tie."""
    calibration: Share | None = None
    """Cascade: share of the verdicts of ``cheap`` that ``strong`` is asked for all the same, so
    that one knows how far they can be trusted; 0 goes without."""

    def __post_init__(self) -> None:
        """Refuse what does not fit the strategy; each message begins with the key."""
        if self.strategy not in STRATEGIES:
            raise ValueError(
                f"strategy: {self.strategy!r} is unknown; strategies: {', '.join(STRATEGIES)}"
            )
        if self.aggregation not in AGGREGATIONS:
            raise ValueError(
                f"aggregation: {self.aggregation!r} is unknown; known: {', '.join(AGGREGATIONS)}"
            )
        if self.strategy == "cascade":
            self._check_cascade()
        else:
            self._check_talk()

    @property
    def is_debate(self) -> bool:
        """Whether agents talk as in ChatEval."""
        return self.strategy in DEBATES

    @property
    def is_discussion(self) -> bool:
        """Whether agents talk as in MATEval."""
        return self.strategy in DISCUSSIONS

    @property
    def rounds(self) -> int:
        """How often every agent speaks, or the most rounds of a discussion."""
        if self.strategy in ("ensemble", "discussion-sa"):
            return 1
        return self.turns or (3 if self.is_discussion else 2)

    @property
    def decides(self) -> str:
        """The aggregation, ``auto`` resolved."""
        if self.aggregation == "auto":
            return "summary" if self.is_discussion else "mean"
        return self.aggregation

    @property
    def members(self) -> tuple[AgentSettings, ...]:
        """The agents with everything filled in but the model: distinct names, and a role.

        Where a role is missing, a debater is ChatEval's Annotator (§4.1: the control without
        diverse roles), a discussant a plain evaluator, and an ensemble asks the bare question.
        """
        if self.strategy == "cascade":
            return ()
        default = "evaluator" if self.is_discussion else "annotator" if self.is_debate else None
        given = [AgentSettings(role=a) if isinstance(a, str) else a for a in self._agents()]
        named = [(agent, agent.name or self._name(agent)) for agent in given]
        count, seen, filled = Counter(name for _, name in named), Counter[str](), []
        for agent, name in named:
            seen[name] += 1
            bare = agent.text is None and agent.file is None
            filled.append(
                msgspec.structs.replace(
                    agent,
                    name=f"{name} {seen[name]}" if count[name] > 1 else name,
                    role=agent.role or (default if bare else None),
                    model=agent.model or self.model,
                )
            )
        return tuple(filled)

    def _agents(self) -> tuple[AgentSettings | str, ...]:
        if self.agents:
            return self.agents
        if self.is_discussion:
            return (AgentSettings(),) * (1 if self.strategy == "discussion-sa" else 2)
        return ("general-public", "critic")

    def _name(self, agent: AgentSettings) -> str:
        if agent.role:
            return agent.role.replace("-", " ").title()
        if agent.file:
            return PurePath(agent.file).stem
        return "Evaluator" if self.is_discussion else "Referee"

    def _check_talk(self) -> None:
        for key in ("cheap", "strong", "calibration"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: it belongs to the strategy cascade")
        if self.turns is not None and self.rounds != self.turns:
            raise ValueError(f"turns: the strategy {self.strategy} has one")
        if self.strategy != "ensemble" and (self.samples > 1 or self.evidence):
            key = "evidence" if self.evidence else "samples"
            raise ValueError(f"{key}: it belongs to the strategy ensemble")
        if self.aggregation == "summary" and not self.is_discussion:
            raise ValueError("aggregation: summary belongs to the discussion strategies")
        if self.summarizer and not (self.is_discussion or self.strategy == DEBATES[2]):
            raise ValueError(f"summarizer: the strategy {self.strategy} has none")
        try:
            names = [str(agent.name) for agent in self.members]
        except ValueError as error:
            raise ValueError(f"agents: {error}") from None
        if self.strategy == "discussion-sa" and len(names) != 1:
            raise ValueError(f"agents: discussion-sa has 1 agent, not {len(names)}")
        if (self.is_debate or self.strategy in DISCUSSIONS[1:]) and len(names) < 2:
            raise ValueError(f"agents: the strategy {self.strategy} needs at least 2")
        if len(set(names)) < len(names):
            raise ValueError(f"agents: two have the same name; names: {', '.join(names)}")

    def _check_cascade(self) -> None:
        if not self.cheap or not self.strong:
            key = "strong" if self.cheap else "cheap"
            raise ValueError(f"{key}: a cascade needs cheap and strong, names of two judges")
        if self.cheap == self.strong:
            raise ValueError("strong: it is the same judge as cheap")
        if self.calibration is None:
            raise ValueError(
                "calibration: without a calibration slice nobody knows how good the verdicts of "
                f"{self.cheap} are; give the share of them that {self.strong} checks, such as "
                "calibration = 0.1, or calibration = 0 to go without"
            )
        own = {"strategy", "cheap", "strong", "calibration"}
        for key, default in _DEFAULTS.items():
            if key not in own and getattr(self, key) != default:
                raise ValueError(f"{key}: a cascade has no agents of its own; leave it out")


_DEFAULTS: Mapping[str, object] = {
    field.name: field.default for field in msgspec.structs.fields(PanelSettings)
}


def with_texts(settings: PanelSettings, read: Callable[[str], str]) -> PanelSettings:
    """The panel with every agent's ``file`` replaced by the text that ``read`` finds there.

    Args:
        settings: as in ``botchat.toml``.
        read: path as given -> content; raises what it likes.
    """
    agents: list[AgentSettings | str] = []
    for agent in settings.agents:
        if isinstance(agent, AgentSettings) and agent.file:
            name = agent.name or PurePath(agent.file).stem
            text = read(agent.file).strip()
            agent = msgspec.structs.replace(agent, text=text, file=None, name=name)
        agents.append(agent)
    return msgspec.structs.replace(settings, agents=tuple(agents))


def circle(panels: Mapping[str, PanelSettings]) -> tuple[str, ...]:
    """The names of cascades that lead back to themselves, in order; empty if there are none."""
    for start in panels:
        paths: list[tuple[str, ...]] = [(start,)]
        while paths:
            path = paths.pop()
            settings = panels.get(path[-1])
            for name in (settings.cheap, settings.strong) if settings else ():
                if name == start:
                    return (*path, start)
                if name is not None and name not in path:
                    paths.append((*path, name))
    return ()


_THREE = ("general-public", "critic", "news-author")
"""ChatEval §4.1, footnote 3: the group of its default setting with three roles."""

PRESETS: Mapping[str, PanelSettings] = MappingProxyType(
    {
        # ChatEval §3.2: one-by-one, 2 agents, 2 turns, position calibration.
        "chateval-default": PanelSettings(strategy="one-by-one", position_calibration=True),
        # §4.1, Table 3: the same without diverse roles.
        "chateval-same-role": PanelSettings(
            strategy="one-by-one", agents=("annotator",) * 2, position_calibration=True
        ),
        # §4.2, Figure 4: three roles under each communication strategy.
        "chateval-3-roles": PanelSettings(
            strategy="one-by-one", agents=_THREE, position_calibration=True
        ),
        "chateval-3-roles-simultaneous": PanelSettings(
            strategy="simultaneous-talk", agents=_THREE, position_calibration=True
        ),
        "chateval-3-roles-summarizer": PanelSettings(
            strategy="simultaneous-talk-with-summarizer", agents=_THREE, position_calibration=True
        ),
        # Table 1 (EN). The paper does not say how many roles; by its Table 6 EN cost 3 × SA.
        "chateval-ensemble": PanelSettings(
            strategy="ensemble", agents=_THREE, position_calibration=True
        ),
        # FairEval: k = 3 at temperature 1, as in the run script the authors published.
        "faireval-mec-bpc": PanelSettings(
            strategy="ensemble",
            agents=(AgentSettings(),),
            samples=3,
            evidence=True,
            temperature=1.0,
            position_calibration=True,
        ),
        # MATEval §4.3.
        "mateval-sa": PanelSettings(strategy="discussion-sa"),
        "mateval-one-by-one": PanelSettings(strategy="discussion-one-by-one"),
        "mateval-sr": PanelSettings(strategy="discussion-sr"),
        "mateval-cot": PanelSettings(strategy="discussion-cot"),
        "mateval-sr-cot": PanelSettings(strategy="discussion-sr-cot"),
    }
)
"""The panels of the papers, usable as ``--judge NAME --judge-model M``."""
