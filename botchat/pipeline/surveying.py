"""What dialogues show without a judge, measured by other processes where there are any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor

from botchat.measures.dialogue_flags import fit_thresholds
from botchat.measures.flagged import Survey, measure_all
from botchat.processes import HERE
from botchat.records import Dialogue, Seed

MOST = 9_000
"""Dialogues that are measured. Of more, a part: the same seeds of every contestant, spread evenly;
of 48 contestants 187 each, which gives a share to within 4 points."""

_WORTH_PROCESSES = 500
"""Dialogues below which sending them costs more than it saves."""


def begin_survey(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Mapping[str, Dialogue]],
    turns: Collection[int],
    executor: Executor,
) -> Callable[[], Survey]:
    """Begin to measure every contestant's dialogues, of a large set those on some of its seeds.

    Args:
        seeds: the set.
        dialogues: contestant -> seed id -> dialogue, ``human`` among them.
        turns: each N that the Arena was judged at.
        executor: what measures.

    Returns:
        A function that waits for the result.
    """
    n = min(len(seeds), max(1, MOST // max(1, len(dialogues))))
    chosen = {seeds[i * len(seeds) // n].id for i in range(n)}
    thresholds = fit_thresholds(seed.utterances for seed in seeds)
    texts = {
        name: {seed_id: d.utterances for seed_id, d in by_seed.items() if seed_id in chosen}
        for name, by_seed in dialogues.items()
    }
    if sum(map(len, texts.values())) < _WORTH_PROCESSES:
        executor = HERE
    begun = {
        name: executor.submit(measure_all, by_seed, thresholds, tuple(turns))
        for name, by_seed in texts.items()
    }
    return lambda: Survey(thresholds, n, {name: part.result() for name, part in begun.items()})
