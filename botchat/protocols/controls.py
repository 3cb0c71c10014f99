"""Shuffled dialogues: what a judge that reads must notice.

A shuffled dialogue is the first half of a human one, then the utterances at the same places of
another one. Its form is human and its length equal; its content does not fit. It is a control and
no contestant: judges are asked about it, and it stands in no table. docs/judges.md has the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from botchat.estimates import Floats, Indices
from botchat.interfaces import MakeCase
from botchat.metrics.lengths import words
from botchat.protocols.protocol import Protocol
from botchat.records import (
    HUMAN,
    MIN_HUMAN,
    N_SEED,
    SHUFFLED,
    Dialogue,
    Seed,
    Seeds,
    Utterances,
    human_dialogue,
)

_CLOSING = tuple(".?!…。？！")
_SPACED_MARK = re.compile(r"\s[.,?!']")


def n_kept(n: int) -> int:
    """Return how many of n utterances a shuffled dialogue keeps."""
    return max(N_SEED, n // 2)


def shuffled_dialogues(seeds: Seeds, most: int) -> dict[str, Dialogue]:
    """Return the shuffled dialogues of the first ``most`` seeds that have one, by seed id.

    The other dialogue shares no utterance and no topic, and its part is nearest to the replaced one
    in words and in habits of typing. The same set gives the same dialogues.
    """
    lenders = _Lenders.of(seeds)
    shuffled: dict[str, Dialogue] = {}
    for host, seed in enumerate(seeds):
        if len(shuffled) >= most:
            break
        part = lenders.nearest(host)
        if part:
            texts = (*seed.utterances[: n_kept(len(seed.utterances))], *part)
            shuffled[seed.id] = Dialogue(seed.id, SHUFFLED, texts, N_SEED, (), "complete", "")
    return shuffled


def control_cases(
    protocol: Protocol, seeds: Seeds, shuffled: Mapping[str, Dialogue]
) -> Iterator[MakeCase]:
    """Return the cases on shuffled dialogues and on the human ones of their seeds."""
    tested = [seed for seed in seeds if seed.id in shuffled]
    human = {seed.id: human_dialogue(seed) for seed in tested}
    return protocol.cases(tested, {HUMAN: human, SHUFFLED: shuffled})


def _measured(utterance: str) -> list[float]:
    """Return the words of an utterance, and whether it has each of four habits of typing."""
    return [
        words(utterance),
        utterance[:1].isupper(),
        utterance.rstrip().endswith(_CLOSING),
        _SPACED_MARK.search(utterance) is not None,
        utterance != utterance.lower(),
    ]


@dataclass(frozen=True)
class _Lenders:
    """Dialogues of a set, measured so that parts of all of them compare at once."""

    seeds: Seeds
    length: Indices  # utterances of each dialogue
    begin: Indices  # row of ``total`` that each dialogue begins with
    total: Floats  # sums of `_measured` before each utterance of the set, and at its end

    @classmethod
    def of(cls, seeds: Seeds) -> _Lenders:
        length = np.array([len(seed.utterances) for seed in seeds], np.intp)
        measures = [_measured("")]  # before the first
        for seed in seeds:
            measures += [_measured(utterance) for utterance in seed.utterances]
        return cls(seeds, length, np.cumsum(length) - length, np.cumsum(measures, axis=0))

    def nearest(self, host: int) -> Utterances:
        """Return the part that is put in the place of the host's; empty if there is none."""
        mine = self.seeds[host].utterances
        n = len(mine)
        k = n_kept(n)
        if n < MIN_HUMAN:
            return ()
        others = np.flatnonzero(self.length >= n)
        distance = self._distance(host, others, k)
        nearest = np.inf
        parts = {}
        for at in np.argsort(distance, kind="stable").tolist():
            if distance[at] > nearest:
                break
            other = self.seeds[int(others[at])]
            if self._may_lend(host, other):
                nearest = distance[at]
                part = other.utterances[k:n]
                parts[sha256("\0".join([*mine, "", *part]).encode()).digest()] = part
        if not parts:
            return ()
        return parts[min(parts)]

    def _distance(self, host: int, others: Indices, k: int) -> Floats:
        """Return how far each part of ``others`` is from the host's, which is one of them.

        Parts are behind the first k utterances.
        """
        n = self.length[host]
        begin = self.begin[others]
        parts = self.total[begin + n] - self.total[begin + k]
        own = parts[others == host]
        apart = np.abs(parts - own)
        size = apart[:, 0] / np.maximum(own[:, 0], 1)
        return np.asarray((size + apart[:, 1:].sum(1) / (n - k)).round(9))

    def _may_lend(self, host: int, other: Seed) -> bool:
        seed = self.seeds[host]
        if seed.topic and seed.topic == other.topic:
            return False
        return set(seed.utterances).isdisjoint(other.utterances[: len(seed.utterances)])
