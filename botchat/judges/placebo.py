"""Debates whose members hear something else: what of a message moves them, its verdict or its case?

Two rounds of simultaneous talk (ChatEval's Algorithm 2). In the second every member hears of the
others not what they said, but

- ``another-question``: what they opened with on the case of the next seed, which is asked for (in a
  set where everything is judged it is there already);
- ``swapped-verdicts``: their own messages with the two sides of the verdict exchanged, every
  argument kept. A message in which that cannot be done is not heard.

The transcript has the messages as they were told, by speakers whose names end with `TOLD`;
`botchat.boards.debates` has what they come to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from msgspec.structs import replace as replaced

from botchat.errors import ConfigError
from botchat.interfaces import Case
from botchat.judges.talk import Agent, Debate, Talk, heard
from botchat.judges.voting import TOLD, mirrored
from botchat.parallel import together
from botchat.records import Remark
from botchat.workspace.panels import DebateSettings

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_MOST = 200
"""Ways to exchange a verdict's numbers that are tried."""


@dataclass(frozen=True)
class Placebo(Debate):
    """A debate of two rounds, with other messages in the second."""

    settings: DebateSettings
    after: Mapping[tuple[str, tuple[str, ...]], Callable[[], Case]] = field(default_factory=dict)
    """Seed and contestants of a case -> the one whose messages are heard in its place."""

    def among(self, cases: Sequence[tuple[Case, Callable[[], Case]]]) -> Placebo:
        """The same where these are all cases: the next one is about the same contestants."""
        rings: dict[tuple[str, ...], dict[str, Callable[[], Case]]] = defaultdict(dict)
        for case, make in cases:
            rings[case.contestants][case.seed_id] = make
            if case.mirror is not None:
                rings[case.contestants[::-1]].setdefault(case.seed_id, case.mirror)
        after = {
            (seed, who): following
            for who, ring in rings.items()
            for seed, following in zip(ring, [*ring.values(), *ring.values()][1:], strict=False)
            if len(ring) > 1
        }
        return replace(self, after=after)

    async def talk(self, case: Case) -> Talk:
        """Agents × 2 calls, and as many again as open on the other case where nobody did yet."""
        other = self._other(case)
        first = await self._opened(case)
        if other is None:
            told = {one.speaker: one for said in first for one in _swapped(case, said)}
        else:
            told = {one.speaker: one for one in await self._opened(other) if heard(one)}

        def known(agent: Agent) -> list[Remark]:
            # In the order of speaking: its own message as it was.
            own = {one.speaker: one for one in first if one.speaker == agent.name}
            return [found for one in first if (found := (told | own).get(one.speaker))]

        present = [a for a, one in zip(self.cast.agents, first, strict=True) if heard(one)]
        second = await together(a.say(self._prompt(a, case, known(a)), case) for a in present)
        last = {one.speaker: one for one in (*first, *second)}
        shown = [replaced(one, speaker=f"{one.speaker}{TOLD}") for one in told.values()]
        return Talk((*first, *shown, *second), tuple(last.values()))

    async def _opened(self, case: Case) -> list[Remark]:
        return await together(a.say(self._prompt(a, case, []), case) for a in self.cast.agents)

    def _other(self, case: Case) -> Case | None:
        """The case whose messages are heard; ``None``: this one's."""
        if self.settings.hears == "swapped-verdicts":
            if case.mirror is None:
                raise ConfigError(
                    f"hears = swapped-verdicts: {case.protocol} shows one dialogue, so a verdict "
                    "has no two sides; give another-question"
                )
            return None
        make = self.after.get((case.seed_id, case.contestants))
        if make is None:
            raise ConfigError(
                f"hears = another-question: there is no other question on "
                f"{', '.join(case.contestants)} than seed {case.seed_id}; judge two ChatSEEDs or "
                "more, and neither adaptively nor in a cascade"
            )
        return make()


def _swapped(case: Case, said: Remark) -> Iterator[Remark]:
    """The message with its verdict on the other side; nothing where that cannot be done."""
    turned = mirrored(said.verdict)
    if turned is None:
        return
    for text in [said.text] if turned == said.verdict else _reworded(said.text, said.verdict or ""):
        if case.read(text)[0] == turned:
            yield replaced(said, text=text, call="", verdict=turned)
            return


def _reworded(text: str, verdict: str) -> Iterator[str]:
    """The text with one number 1 or 2 as the other, or a verdict's two numbers exchanged."""
    found = list(_NUMBER.finditer(text))
    # A verdict's numbers are rounded to one decimal.
    sides = [[m for m in found if abs(float(m[0]) - float(s)) < 0.06] for s in verdict.split()]
    for spans in islice(product(*sides), _MOST):
        new = [one[0] for one in spans][::-1] if len(spans) > 1 else [mirrored(verdict) or ""]
        parts, at = [], 0
        for (start, end), number in sorted(zip((m.span() for m in spans), new, strict=True)):
            parts += [text[at:start], number]
            at = end
        yield "".join([*parts, text[at:]])
