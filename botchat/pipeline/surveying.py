"""What dialogues show without a judge, measured by other processes where there are any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor

from botchat.measures.flagged import Survey, measure_all
from botchat.measures.flags import fit_thresholds
from botchat.parallel import HERE
from botchat.records import Dialogue, Seed

MOST = 9_000
"""Dialogues up to which all are measured: a board of the paper's size is. Of more, a part."""

SAMPLE = 6_000
"""Dialogues of that part: the same seeds of every contestant, spread evenly; of 15 contestants 400
each and of 48 125, which give a share with a standard error below 2.5 and 4.5 points."""

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
    everything = sum(map(len, dialogues.values()))
    n = len(seeds) if everything <= MOST else min(len(seeds), max(1, SAMPLE // len(dialogues)))
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
