"""Pairwise judgments of a large set read into columns, by other processes where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from botchat.interfaces import dialogue_digest, digests_of_pairs
from botchat.protocols.pairs import Collected, Flags, Verdicts
from botchat.ratings.comparisons import distinct
from botchat.records import Dialogue, PairVerdict
from botchat.workspace import files as store

Dialogues = Mapping[str, Mapping[str, Dialogue]]
"""Contestant -> seed id -> dialogue."""

Counted = tuple[dict[str, Verdicts], int]
"""Protocol -> verdicts on the dialogues as they are, and how many are on others."""


def begin_reading(files: Mapping[str, Path], executor: Executor) -> Callable[[Dialogues], Counted]:
    """Begin to read one judge's pairwise judgments.

    Args:
        files: protocol -> its stage file.
        executor: what reads them.

    Returns:
        A function of the dialogues as they are now, ``human`` among them: it waits, and tells
        verdicts on them from those on others. Verdicts on a contestant or seed that is not there
        any more are not counted at all. It raises `DataError` for a line that is no judgment, or a
        verdict that the protocol does not offer.
    """
    begun = {protocol: executor.submit(_read, path) for protocol, path in files.items()}

    def finish(dialogues: Dialogues) -> Counted:
        current, stale = {}, 0
        for protocol, read in begun.items():
            known = _known(read.result(), dialogues)
            current[protocol] = known.only(_is_current(protocol, known, dialogues))
            stale += len(known) - len(current[protocol])
        return current, stale

    return finish


def _read(path: Path) -> Verdicts:
    collected = Collected()
    for block in store.blocks(path, PairVerdict):
        collected.add(block)
    return collected.verdicts()


def _known(verdicts: Verdicts, dialogues: Dialogues) -> Verdicts:
    """Those on dialogues that are still there."""
    there = np.array(
        [
            [seed_id in dialogues.get(name, {}) for seed_id in verdicts.seed_ids]
            for name in verdicts.contestants
        ],
        dtype=bool,
    ).reshape(len(verdicts.contestants), len(verdicts.seed_ids))
    seed = verdicts.seed
    known = there[verdicts.first, seed] & there[verdicts.second, seed]
    return verdicts if known.all() else verdicts.only(known)


def _is_current(protocol: str, verdicts: Verdicts, dialogues: Dialogues) -> Flags:
    """Whether each is on the dialogues as they are; what is shown of one is digested once."""
    n, longest = len(verdicts.seed_ids), int(verdicts.shown.max(initial=0)) + 1
    shown = np.concatenate([verdicts.first, verdicts.second]) * n + np.tile(verdicts.seed, 2)
    keys, place = distinct(shown * longest + np.tile(verdicts.shown, 2))
    digests = []
    for key in keys.tolist():
        dialogue, end = divmod(key, longest)
        contestant, seed = divmod(dialogue, n)
        whole = dialogues[verdicts.contestants[contestant]][verdicts.seed_ids[seed]]
        digests.append(dialogue_digest(whole.utterances[:end]))
    first, second = place.reshape(2, -1).tolist()
    now = np.frombuffer(digests_of_pairs(protocol, digests, first, second), dtype=">u8")
    return np.asarray(verdicts.case == now)
