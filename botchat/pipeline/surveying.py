"""What dialogues show without a judge, measured on every core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from botchat.measures.dialogue_flags import Thresholds, fit_thresholds
from botchat.measures.flagged import Measured, Survey, measure_all
from botchat.processes import spread
from botchat.records import Dialogue, Seed

MOST = 9_000
"""Dialogues that are measured. Of more, a part: the same seeds of every contestant, spread evenly;
of 48 contestants 187 each, which gives a share to within 4 points."""

_WORTH_PROCESSES = 500
"""Dialogues below which starting processes costs more than it saves."""


def survey(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Mapping[str, Dialogue]],
    turns: Collection[int],
) -> Survey:
    """Measure every contestant's dialogues, of a large set those on some of its seeds.

    Args:
        seeds: the set.
        dialogues: contestant -> seed id -> dialogue, ``human`` among them.
        turns: each N that the Arena was judged at.
    """
    n = min(len(seeds), max(1, MOST // max(1, len(dialogues))))
    chosen = {seeds[i * len(seeds) // n].id for i in range(n)}
    thresholds = fit_thresholds(seed.utterances for seed in seeds)
    texts = {
        name: {seed_id: d.utterances for seed_id, d in by_seed.items() if seed_id in chosen}
        for name, by_seed in dialogues.items()
    }
    shared = _Shared(texts, thresholds, tuple(turns))
    if sum(map(len, texts.values())) < _WORTH_PROCESSES:
        measured = [_measure(shared, name) for name in texts]
    else:
        measured = spread(_measure, list(texts), shared)
    return Survey(thresholds, n, dict(zip(texts, measured, strict=True)))


@dataclass(frozen=True)
class _Shared:
    texts: Mapping[str, Mapping[str, tuple[str, ...]]]
    thresholds: Thresholds
    turns: tuple[int, ...]


def _measure(shared: _Shared, name: str) -> Measured:
    return measure_all(shared.texts[name], shared.thresholds, shared.turns)
