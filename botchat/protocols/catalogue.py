"""Every protocol: the built-in ones, and the user's criteria (``[protocols.NAME]``).

A new protocol is a prompt and its row of `prompts/sources.toml`, a value in a module of this room,
and its name in `BUILT_IN`, in README's table and in the help of `judge`.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import assert_never

from botchat.errors import ConfigError, did_you_mean, listed
from botchat.languages import ENGLISH, Language
from botchat.protocols.items import ANSWERS
from botchat.protocols.kinds import Answer, Detection, Pairwise, Report, Score
from botchat.protocols.mateval import DIAGNOSIS, MATEVAL
from botchat.protocols.protocol import Protocol
from botchat.protocols.scores import Scale
from botchat.workspace.criteria import CriterionSettings

UNIEVAL = Protocol(
    "unieval",
    "UniEval",
    Detection(),
    shows="one",
    question="one dialogue: AI-involved? from which utterance on?",
    prompts=("unieval", "unieval_examples"),
    explained="The judge reads one dialogue and names the first utterance that it takes for AI. "
    "Success at N: none among the first N.",
    leads=True,
    about_ai=True,
)

ARENA = Protocol(
    "arena",
    "BotChat Arena",
    Pairwise(),
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
"""Every pair of contestants, every seed whose human dialogue has at least 4 utterances, both
orders; both dialogues cut to N utterances (§4.2)."""

GTEVAL = Protocol(
    "gteval",
    "GTEval",
    Pairwise(),
    shows="human",
    question="a model's dialogue against the human one, both orders, cut to its length",
    prompts=("gteval",),
    explained="The model's dialogue against the human one of the same start, cut to its length. "
    "The judge is told that exactly one of them is AI-involved.",
    about_ai=True,
)
"""Both and Neither remain possible answers (ties)."""

VOTES = Protocol(
    "votes",
    "Votes",
    Pairwise(chosen_wins=True),
    shows="pair",
    question="two answers: which is better?",
    explained="Votes from a file: which of two is better, by humans or by models. From all of "
    "them: Bradley–Terry ratings with 95 % intervals, and Elo.",
    leads=True,
)
"""Votes of others; read by ``botchat rank``, asked of no judge."""


BUILT_IN = (UNIEVAL, ARENA, GTEVAL, DIAGNOSIS)

RANKING = (UNIEVAL, ARENA, GTEVAL)  # the paper's, which a leaderboard is made of

# Protocols of texts, answers and votes, which files hold
_OF_FILES = {protocol.name: protocol for protocol in (MATEVAL, ANSWERS, VOTES)}


class Catalogue:
    """Protocols by name, in the order in which boards and pages show them."""

    def __init__(
        self, protocols: Iterable[Protocol] = BUILT_IN, language: Language = ENGLISH
    ) -> None:
        """Take the built-in ones, in English, by default."""
        self.language = language
        self._by_name = {protocol.name: protocol.spoken(language) for protocol in protocols}

    def __iter__(self) -> Iterator[Protocol]:
        """Return the protocols that can be named on the command line."""
        return iter(self._by_name.values())

    def named(self, name: str) -> Protocol:
        """Return the protocol of that name on the command line; else raise `ConfigError`."""
        if name not in self._by_name:
            hint = did_you_mean(name, self._by_name)
            raise ConfigError(
                f"unknown protocol {name!r}{hint}; protocols: {listed(self._by_name)}"
            )
        return self._by_name[name]

    def find(self, stored: str) -> Protocol | None:
        """Return the protocol of a folder of judgments (``arena-n16``), if there is one."""
        name, _, n = stored.rpartition("-n")
        base = self._by_name.get(name)
        if base is not None and base.has_n and n.isdecimal():
            return base.at(int(n))
        return self._by_name.get(stored) or _OF_FILES.get(stored)

    def among(self, stored: Iterable[str]) -> dict[str, Protocol]:
        """Return the protocols of folders in the order to show: by protocol, then largest N."""
        order = list(self._by_name) + list(_OF_FILES)

        def place(protocol: Protocol) -> tuple[int, int]:
            return order.index(protocol.base), -(protocol.n or 0)

        protocols = [self.find(name) for name in stored]
        known = [protocol for protocol in protocols if protocol is not None]
        return {protocol.name: protocol for protocol in sorted(known, key=place)}


def catalogue(own: Mapping[str, CriterionSettings], language: Language = ENGLISH) -> Catalogue:
    """Return the built-in protocols and the user's, whose names are others."""
    criteria = [_criterion(name, settings) for name, settings in own.items()]
    return Catalogue(chain(BUILT_IN, criteria), language)


def _criterion(name: str, settings: CriterionSettings) -> Protocol:
    title = settings.title or name.replace("_", " ").capitalize()
    return Protocol(
        name,
        title,
        _answer(settings),
        "pair" if settings.shows == "pair" else "one",
        settings.question or title,
        template=settings.prompt,
    )


def _answer(settings: CriterionSettings) -> Answer:
    match settings.kind:
        case "detection":
            return Detection()
        case "pairwise":
            return Pairwise(settings.labels, chosen_wins=settings.named_is == "winner")
        case "score":
            lowest, highest = settings.scale or (0, 0)
            scale = Scale(lowest, highest, settings.scores)
            return Score(scale, n_texts=2 if settings.shows == "pair" else 1)
        case "report":
            return Report()
        case _ as unknown:
            assert_never(unknown)
