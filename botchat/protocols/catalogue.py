"""Every protocol there is: the built-in ones, and somebody's own (``[protocols.NAME]``).

Whoever needs to know what can be asked, or what a stage file's verdicts mean, asks here. A new
protocol is a prompt, a value in a file of its own, and one line in `BUILT_IN`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from botchat.errors import ConfigError
from botchat.protocols.arena import ARENA
from botchat.protocols.diagnosis import DIAGNOSIS
from botchat.protocols.gteval import GTEVAL
from botchat.protocols.kinds import LABELS, Protocol
from botchat.protocols.scores import Scale
from botchat.protocols.unieval import UNIEVAL
from botchat.workspace.criteria import CriterionSettings

BUILT_IN = (UNIEVAL, ARENA, GTEVAL, DIAGNOSIS)

RANKING = (UNIEVAL, ARENA, GTEVAL)
"""The paper's, which a leaderboard is made of."""

_AT_N = re.compile(r"(?P<base>.+)-n(?P<n>\d+)")


class Catalogue:
    """Protocols by name, in the order in which boards and pages show them."""

    def __init__(self, protocols: Iterable[Protocol] = BUILT_IN) -> None:
        """By default the built-in ones."""
        self._by_name = {protocol.name: protocol for protocol in protocols}

    def __iter__(self) -> Iterator[Protocol]:
        """Those that can be named on the command line."""
        return iter(self._by_name.values())

    def named(self, name: str) -> Protocol:
        """The protocol of that name on the command line.

        Raises:
            ConfigError: there is none; lists those that there are.
        """
        if name not in self._by_name:
            raise ConfigError(f"unknown protocol {name!r}; protocols: {', '.join(self._by_name)}")
        return self._by_name[name]

    def find(self, filed: str) -> Protocol | None:
        """The protocol that judgments are filed under (``arena-n16``); ``None``: no such one."""
        at_n = _AT_N.fullmatch(filed)
        base = self._by_name.get(at_n["base"]) if at_n else None
        if at_n and base is not None and base.shows == "pair":
            return base.at(int(at_n["n"]))
        found = self._by_name.get(filed)
        return None if found is None or found.shows == "pair" else found

    def among(self, filed: Iterable[str]) -> dict[str, Protocol]:
        """Those of some names that are filed, in the order to show: by protocol, then largest N."""
        found = {name: protocol for name in filed if (protocol := self.find(name)) is not None}
        place = {name: i for i, name in enumerate(self._by_name)}
        return dict(
            sorted(found.items(), key=lambda item: (place[item[1].base], -(item[1].n or 0)))
        )


def catalogue(own: Mapping[str, CriterionSettings]) -> Catalogue:
    """The built-in protocols and those of a ``botchat.toml``, their prompts read."""
    return Catalogue((*BUILT_IN, *(_own(name, settings) for name, settings in own.items())))


def _own(name: str, settings: CriterionSettings) -> Protocol:
    score = settings.kind == "score"
    return Protocol(
        name,
        settings.title or name,
        settings.kind,
        settings.shows,
        settings.question or f"your own {settings.kind} about {settings.shows}",
        template=settings.prompt,
        scale=Scale(settings.lowest or 0, settings.highest or 0, settings.numbers)
        if score
        else None,
        labels=settings.labels if settings.kind == "choice" else LABELS,
        chosen_wins=settings.chosen == "wins",
    )
