"""Pairwise judgments of a large set read into columns: a process a file, a block at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from botchat import store
from botchat.interfaces import dialogue_digest, joint_digest
from botchat.processes import spread
from botchat.protocols.verdicts import Collected, Verdicts
from botchat.records import Dialogue, PairVerdict

Dialogues = Mapping[str, Mapping[str, Dialogue]]
"""Contestant -> seed id -> dialogue."""


def read_columns(
    files: Mapping[str, Path], dialogues: Dialogues
) -> tuple[dict[str, Verdicts], int]:
    """One judge's pairwise judgments of the dialogues as they are now, and how many are of others.

    Judgments of a contestant or seed that is not there any more are neither.

    Args:
        files: protocol -> its stage file.
        dialogues: contestant -> seed id -> dialogue, ``human`` among them.

    Raises:
        DataError: a line that is no judgment, or a verdict that the protocol does not offer.
    """
    found = spread(_read, list(files.items()), dialogues)
    stale = sum(n for _, n in found)
    return dict(zip(files, (verdicts for verdicts, _ in found), strict=True)), stale


def _read(dialogues: Dialogues, file: tuple[str, Path]) -> tuple[Verdicts, int]:
    protocol, path = file
    digests, collected = _Digests(dialogues), Collected()
    for block in store.blocks(path, PairVerdict):
        known, current = [], []
        for line in block:
            first, second = line.contestants
            one = digests[first, line.seed_id, line.shown]
            other = digests[second, line.seed_id, line.shown]
            if one is not None and other is not None:
                known.append(line)
                current.append(joint_digest(protocol, one, other) == line.case)
        collected.add(known, current)
    return collected.verdicts()


class _Digests(dict[tuple[str, str, int], str | None]):
    """Contestant, seed id and utterances shown -> digest of that dialogue, if it is there."""

    def __init__(self, dialogues: Dialogues) -> None:
        super().__init__()
        self._dialogues = dialogues

    def __missing__(self, key: tuple[str, str, int]) -> str | None:
        contestant, seed_id, end = key
        dialogue = self._dialogues.get(contestant, {}).get(seed_id)
        self[key] = None if dialogue is None else dialogue_digest(dialogue.utterances[:end])
        return self[key]
