"""Every protocol there is: the built-in ones, and somebody's own (``[protocols.NAME]``).

A new protocol is a prompt and its row of `prompts/sources.toml`, a value here, and its name in
`BUILT_IN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from botchat.errors import ConfigError, did_you_mean
from botchat.languages import ENGLISH, Language
from botchat.protocols.items import ANSWERS
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import LABELS
from botchat.protocols.scores import Scale
from botchat.protocols.texts import MATEVAL
from botchat.workspace.criteria import CriterionSettings

UNIEVAL = Protocol(
    "unieval",
    "UniEval",
    kind="place",
    shows="one",
    question="one dialogue: AI-involved? from which utterance on?",
    prompts=("unieval", "unieval_examples"),
    explained="The judge reads one dialogue and names the first utterance that it takes for AI. "
    "Success at N: none among the first N.",
    leads=True,
    about_ai=True,
)
"""BotChat §3.2."""

ARENA = Protocol(
    "arena",
    "BotChat Arena",
    kind="choice",
    shows="pair",
    question="two dialogues from one ChatSEED, both orders, cut to N",
    prompts=("arena",),
    short="Arena",
    explained="Two models continue the same start; the judge says which dialogue is AI-involved. "
    "From all such comparisons, in both orders: Bradley–Terry ratings with 95 % intervals, and Elo "
    "as in the paper.",
    leads=True,
    about_ai=True,
)
"""BotChat §3.3, §4.2: every pair of contestants, every seed whose human dialogue has at least 4
utterances, both orders; both dialogues cut to N utterances."""

GTEVAL = Protocol(
    "gteval",
    "GTEval",
    kind="choice",
    shows="human",
    question="a model's dialogue beside the human one, both orders, cut to its length",
    prompts=("gteval",),
    explained="The model's dialogue beside the human one of the same start, cut to its length. The "
    "judge is told that exactly one of them is AI-involved.",
    about_ai=True,
)
"""BotChat §3.4. Both and Neither remain possible answers (ties)."""

DIAGNOSIS = Protocol(
    "diagnosis",
    "Diagnosis",
    kind="report",
    shows="one",
    question="one dialogue: which errors, where, with which words?",
    prompts=("diagnosis",),
    about_ai=True,
)
"""Ten questions about one dialogue, an error type each, with place and evidence: MATEval (Li et al.
2024, §3.2, §4.2) with the bad cases of BotChat (Appendix C); see `botchat.protocols.reports`."""

VOTES = Protocol(
    "votes",
    "Votes",
    kind="choice",
    shows="pair",
    question="two answers: which is better?",
    explained="Votes from a file: which of two is better, said by people or by models. From all of "
    "them: Bradley–Terry ratings with 95 % intervals, and Elo.",
    chosen_wins=True,
    leads=True,
)
"""What others asked; read by ``botchat rank``, asked of nobody."""

BUILT_IN = (UNIEVAL, ARENA, GTEVAL, DIAGNOSIS)

RANKING = (UNIEVAL, ARENA, GTEVAL)
"""The paper's, which a leaderboard is made of."""

_OF_SETS = {protocol.name: protocol for protocol in (MATEVAL, ANSWERS, VOTES)}
"""What is asked about texts, answers and votes: `botchat evaluate` and `rank` make sets of them."""


class Catalogue:
    """Protocols by name, in the order in which boards and pages show them."""

    def __init__(
        self, protocols: Iterable[Protocol] = BUILT_IN, language: Language = ENGLISH
    ) -> None:
        """By default the built-in ones, in English."""
        self.language = language
        self._by_name = {protocol.name: protocol.spoken(language) for protocol in protocols}

    def __iter__(self) -> Iterator[Protocol]:
        """Those that can be named on the command line."""
        return iter(self._by_name.values())

    def named(self, name: str) -> Protocol:
        """The protocol of that name on the command line; raises `ConfigError` if there is none."""
        if name not in self._by_name:
            hint = did_you_mean(name, self._by_name)
            known = ", ".join(self._by_name)
            raise ConfigError(f"unknown protocol {name!r}{hint}; protocols: {known}")
        return self._by_name[name]

    def find(self, filed: str) -> Protocol | None:
        """The protocol that judgments are filed under (``arena-n16``); ``None``: no such one."""
        name, _, n = filed.rpartition("-n")
        base = self._by_name.get(name)
        if base is not None and base.has_n and n.isdecimal():
            return base.at(int(n))
        return self._by_name.get(filed) or _OF_SETS.get(filed)

    def among(self, filed: Iterable[str]) -> dict[str, Protocol]:
        """Those of some names that are filed, in the order to show: by protocol, then largest N."""
        found = {name: protocol for name in filed if (protocol := self.find(name)) is not None}
        place = {name: i for i, name in enumerate((*self._by_name, *_OF_SETS))}
        return dict(
            sorted(found.items(), key=lambda item: (place[item[1].base], -(item[1].n or 0)))
        )


def catalogue(own: Mapping[str, CriterionSettings], language: Language = ENGLISH) -> Catalogue:
    """The built-in protocols and somebody's own; raises `ConfigError` if both have one name."""
    mine = []
    for name, settings in own.items():
        if name in {protocol.name for protocol in BUILT_IN}:
            raise ConfigError(
                f"botchat.toml: protocols.{name}: BotChat has a protocol of that name; choose "
                "another"
            )
        title = settings.title or name.replace("_", " ").capitalize()
        scale = Scale(settings.lowest or 0, settings.highest or 0, settings.numbers)
        made = Protocol(
            name,
            title,
            settings.kind,
            settings.shows,
            settings.question or title,
            template=settings.prompt,
            scale=scale if settings.kind == "score" else None,
            labels=settings.labels if settings.kind == "choice" else LABELS,
            chosen_wins=settings.chosen == "wins",
        )
        mine.append(made)
    return Catalogue((*BUILT_IN, *mine), language)
