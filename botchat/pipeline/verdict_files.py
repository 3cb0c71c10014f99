"""Pairwise judgments of a large set read into columns, by other processes where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from botchat import store
from botchat.interfaces import dialogue_digest, joint_digest
from botchat.protocols.verdicts import Collected, Indices, Verdicts
from botchat.ratings.comparisons import distinct
from botchat.records import Dialogue, PairVerdict

Dialogues = Mapping[str, Mapping[str, Dialogue]]
"""Contestant -> seed id -> dialogue."""

Counted = tuple[dict[str, Verdicts], int]
"""Protocol -> verdicts on the dialogues as they are, and how many are on others."""

_CHUNK = 120_000
"""Verdicts that are compared with the dialogues in one go."""


def begin_reading(files: Mapping[str, Path], executor: Executor) -> Callable[[Dialogues], Counted]:
    """Begin to read one judge's pairwise judgments.

    Args:
        files: protocol -> its stage file.
        executor: what reads them.

    Returns:
        A function of the dialogues as they are now, ``human`` among them, that waits. Verdicts on a
        contestant or seed that is not there any more are not counted at all. It raises `DataError`
        for a line that is no judgment, or a verdict that the protocol does not offer.
    """
    begun = {protocol: executor.submit(_read, path) for protocol, path in files.items()}

    def finish(dialogues: Dialogues) -> Counted:
        checks = {
            protocol: _begin_check(protocol, _known(read.result(), dialogues), dialogues, executor)
            for protocol, read in begun.items()
        }
        checked = {protocol: check() for protocol, check in checks.items()}
        current = {protocol: verdicts for protocol, (verdicts, _) in checked.items()}
        return current, sum(stale for _, stale in checked.values())

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


def _begin_check(
    protocol: str, verdicts: Verdicts, dialogues: Dialogues, executor: Executor
) -> Callable[[], tuple[Verdicts, int]]:
    """Begin to tell verdicts on the dialogues as they are from those on others, which are counted.

    What is shown of a dialogue is digested once, here, each case of two elsewhere.
    """
    n, longest = len(verdicts.seed_ids), int(verdicts.shown.max(initial=0)) + 1
    shown = np.concatenate([verdicts.first, verdicts.second]) * n + np.tile(verdicts.seed, 2)
    keys, place = distinct(shown * longest + np.tile(verdicts.shown, 2))
    digests = []
    for key in keys.tolist():
        dialogue, end = divmod(key, longest)
        contestant, seed = divmod(dialogue, n)
        whole = dialogues[verdicts.contestants[contestant]][verdicts.seed_ids[seed]]
        digests.append(dialogue_digest(whole.utterances[:end]))
    first, second = place.reshape(2, -1)
    begun = [
        executor.submit(
            _digests, protocol, digests, first[at : at + _CHUNK], second[at : at + _CHUNK]
        )
        for at in range(0, len(verdicts), _CHUNK)
    ]

    def finish() -> tuple[Verdicts, int]:
        now = [part.result() for part in begun]
        current = verdicts.case == np.concatenate([*now, np.empty(0, np.uint64)])
        return verdicts.only(current), len(current) - int(current.sum())

    return finish


def _digests(
    protocol: str, digests: Sequence[bytes], first: Indices, second: Indices
) -> npt.NDArray[np.uint64]:
    """Digests of the cases that show some dialogues beside each other, as numbers."""
    begin = protocol.encode()
    joined = b"".join(
        joint_digest(begin, digests[i], digests[j])
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    )
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64)
