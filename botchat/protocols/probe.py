"""Probes: one known fault at a known utterance of a human dialogue; does the judge find it, where?

Every probe differs from its dialogue in one utterance (two where their order is swapped), so the
truth needs no human label. Faults are planted behind the ChatSEED by rules of
`botchat.protocols.planting`. Judged as UniEval asks (BotChat §3.2): an index at the planted
utterance localises the fault. What a rule can plant is not what models do wrong: a judge that finds
all of them is not thereby good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from botchat.interfaces import Case, Row
from botchat.languages import ENGLISH, Language
from botchat.measures.annotations import accused_index
from botchat.measures.intervals import Items, entries, figures, of_share
from botchat.protocols.catalogue import UNIEVAL
from botchat.protocols.planting import Planter, planter
from botchat.records import HUMAN, N_SEED, Seed, Verdict

PROBE = replace(UNIEVAL, name=f"probe/{UNIEVAL.name}", title="Probe")
"""A folder deeper than the judgments that rank: no stage takes a probe for one of them."""

_FEWEST_WORDS = 5
"""An utterance that is repeated, or taken from elsewhere, has at least so many: people do repeat
shorter ones, and many of them fit anywhere."""

_TRIES = 50

Strangers = Sequence[tuple[str, str]]
"""(seed id, utterance) of all dialogues of the set, from which strange utterances are taken."""


@dataclass(frozen=True)
class Probe:
    """A human dialogue with one fault planted."""

    seed_id: str
    fault: str
    """A key of `FAULTS`."""
    index: int
    """1-based utterance in which the fault first shows."""
    utterances: tuple[str, ...]


def probes(
    seeds: Iterable[Seed], strangers: Strangers, rng_seed: int = 0, language: Language = ENGLISH
) -> Iterator[Probe]:
    """Every fault planted once in every dialogue in which it can be."""
    for seed in seeds:
        found = (plant(seed, fault, strangers, rng_seed, language) for fault in FAULTS)
        yield from filter(None, found)


def plant(
    seed: Seed, fault: str, strangers: Strangers, rng_seed: int = 0, language: Language = ENGLISH
) -> Probe | None:
    """``seed`` with ``fault`` at a random utterance behind the ChatSEED that lends itself to it."""
    rng = Random(f"{rng_seed}|{fault}|{seed.id}")
    said = seed.utterances
    for index in rng.sample(range(N_SEED + 1, len(said) + 1), len(said) - N_SEED):
        planted = FAULTS[fault](_Spot(seed, index, strangers, rng, planter(language)))
        before, behind = said[: index - 1], said[index - 1 + len(planted) :]
        if planted and (whole := (*before, *planted, *behind)) != said:
            return Probe(seed.id, fault, index, whole)
    return None


def strangers_of(seeds: Iterable[Seed], language: Language = ENGLISH) -> Strangers:
    """Utterances long enough to be out of place in another dialogue."""
    return [
        (seed.id, text)
        for seed in seeds
        for text in seed.utterances
        if planter(language).n_words(text) >= _FEWEST_WORDS
    ]


def cases(
    seeds: Iterable[Seed], planted: Iterable[Probe], language: Language = ENGLISH
) -> Iterator[Callable[[], Case]]:
    """A maker of a UniEval case for dialogues as they are and, by name of the fault, for probes."""
    asked = PROBE.spoken(language)
    for seed in seeds:
        yield partial(asked.one, seed.id, HUMAN, seed.utterances)
    for probe in planted:
        yield partial(asked.one, probe.seed_id, probe.fault, probe.utterances)


def detection(
    planted: Sequence[Probe], verdicts: Mapping[tuple[str, str], Verdict | None]
) -> list[dict[str, Any]]:
    """How well each fault is found, one row a fault.

    ``verdicts``: (seed id, fault, or ``human`` for the dialogue as it is) -> UniEval verdict. A row
    has ``planted``; ``n`` probes with a readable verdict, of which ``detected`` are accused at all,
    ``within_1`` at most one utterance off, ``localised`` at the very utterance; ``n_untouched`` of
    the same dialogues without the fault, of which ``false_alarms`` are accused. Shares from 0 to 1,
    each with its Wilson interval in ``…_low`` and ``…_high``; ``None`` where n is 0. ``found``:
    detected less accused without the fault, of the dialogues with a verdict on both, with the
    interval of the pairs. ``chance_localised``, ``chance_within_1``: what a judge gets that accuses
    a random utterance behind the ChatSEED of each probe.
    """
    rows = []
    for fault in FAULTS:
        of_fault = [probe for probe in planted if probe.fault == fault]
        said = [(probe, verdicts.get((probe.seed_id, fault))) for probe in of_fault]
        readable = [(probe, verdict) for probe, verdict in said if verdict is not None]
        of, n = [probe for probe, _ in readable], len(readable)
        away = [
            math.inf if verdict == "No" else abs(accused_index(verdict, "a probe") - probe.index)
            for probe, verdict in readable
        ]
        more = [
            float(verdict != "No") - (untold != "No")
            for probe, verdict in readable
            if (untold := verdicts.get((probe.seed_id, HUMAN))) is not None
        ]
        rows.append(
            {
                "fault": fault,
                "planted": len(of_fault),
                "n": n,
                **_share("detected", sum(off < math.inf for off in away), n),
                **_share("localised", away.count(0), n),
                **_share("within_1", sum(off <= 1 for off in away), n),
                "chance_localised": fmean(_by_chance(one, 0) for one in of) if of else None,
                "chance_within_1": fmean(_by_chance(one, 1) for one in of) if of else None,
                **_paired("found", more),
                **untouched((probe.seed_id for probe in of_fault), verdicts),
            }
        )
    return rows


def untouched(
    seed_ids: Iterable[str], verdicts: Mapping[tuple[str, str], Verdict | None]
) -> dict[str, Any]:
    """How many of these dialogues are accused as they are: ``n_untouched``, ``false_alarms``."""
    said = [verdicts.get((seed_id, HUMAN)) for seed_id in seed_ids]
    readable = [verdict for verdict in said if verdict is not None]
    accused = sum(verdict != "No" for verdict in readable)
    return {"n_untouched": len(readable), **_share("false_alarms", accused, len(readable))}


@dataclass(frozen=True)
class _Spot:
    """Where a fault is to be planted, and all that the planting may look at."""

    seed: Seed
    index: int
    strangers: Strangers
    rng: Random
    rules: Planter

    @property
    def text(self) -> str:
        return self.seed.utterances[self.index - 1]

    @property
    def own(self) -> list[str]:
        """What the speaker said before, of some length, in random order."""
        own = self.seed.utterances[(self.index - 1) % 2 : self.index - 1 : 2]
        long = [text for text in own if self.rules.n_words(text) >= _FEWEST_WORDS]
        return self.rng.sample(long, len(long))


Planted = tuple[str, ...]
"""What stands at the place and behind it instead; empty: nothing can."""


def _foreign(place: _Spot) -> Planted:
    for _ in range(_TRIES if place.strangers else 0):
        seed_id, text = place.rng.choice(place.strangers)
        if seed_id != place.seed.id and text not in place.seed.utterances:
            return (text,)
    return ()


def _contradiction(place: _Spot) -> Planted:
    said = next(filter(None, map(place.rules.contradiction, place.own)), None)
    return () if said is None else (f"{place.text} {said}",)


def _wrong_fact(place: _Spot) -> Planted:
    earlier = place.seed.utterances[: place.index - 1]
    text = place.rules.wrong_fact(place.text, earlier, place.rng)
    return () if text is None else (text,)


FAULTS: Mapping[str, Callable[[_Spot], Planted]] = {
    # The utterance gives way to an earlier one of the same speaker, word for word ...
    "repetition": lambda place: tuple(place.own[:1]),
    # ... or with an opener and a tag added.
    "near_repetition": lambda place: tuple(
        place.rules.near_repetition(text, place.rng) for text in place.own[:1]
    ),
    # A sentence that gives the speaker away as a program stands before the utterance.
    "ai_phrase": lambda place: (place.rules.ai(place.text, place.rng),),
    # The utterance goes on and on.
    "overlong": lambda place: (place.rules.overlong(place.text, place.rng),),
    # The utterance reads like a letter.
    "formal": lambda place: (place.rules.formal(place.text, place.rng),),
    # The utterance gives way to one of another dialogue of the set.
    "foreign": _foreign,
    # The utterance and the next one change places.
    "swapped": lambda place: place.seed.utterances[place.index - 1 : place.index + 1][::-1],
    # The speaker goes on to deny something that it said before, in the words that it said it with,
    # so that a judge of mere form may take it for a repetition.
    "contradiction": _contradiction,
    # A number, time, weekday or month that was mentioned before is another one now.
    "wrong_fact": _wrong_fact,
}
"""What can be planted."""


def _share(name: str, hits: int, n: int) -> dict[str, float | None]:
    return entries(name, hits / n if n else math.nan, *of_share(hits, n))


def _by_chance(probe: Probe, off: int) -> float:
    """The chance that a random utterance behind the ChatSEED is at most ``off`` from the fault."""
    behind = range(N_SEED + 1, len(probe.utterances) + 1)
    return sum(abs(place - probe.index) <= off for place in behind) / len(behind)


def _paired(name: str, differences: Sequence[float]) -> Row:
    """The mean difference of pairs of verdicts, one a dialogue."""
    if not differences:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    n = len(differences)
    of = Items(n, np.arange(n))
    return figures({name: of.difference(np.array(differences), np.ones(n, dtype=bool))})
