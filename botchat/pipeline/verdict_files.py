"""Pairwise judgments of a large set read into columns: a process a file, a block at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from botchat import store
from botchat.interfaces import case_digest
from botchat.pipeline.spreading import spread
from botchat.protocols.verdicts import Collected, Verdicts
from botchat.records import Dialogue, Verdict

Dialogues = Mapping[str, Mapping[str, Dialogue]]
"""Contestant -> seed id -> dialogue."""


class _Line(msgspec.Struct, frozen=True, gc=False):
    """What a board needs of a `botchat.records.Judgment` of a pair."""

    seed_id: str
    contestants: tuple[str, str]
    verdict: Verdict | None
    shown: int
    case: str
    signature: str
    chosen: str = ""


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
    collected, stale = Collected(), 0
    for block in store.blocks(path, _Line):
        for line in block:
            first, second = line.contestants
            one = dialogues.get(first, _NOTHING).get(line.seed_id)
            other = dialogues.get(second, _NOTHING).get(line.seed_id)
            if one is None or other is None:
                continue
            end = line.shown
            shown = one.utterances[:end], other.utterances[:end]
            if case_digest(protocol, *shown) == line.case:
                collected.add(
                    line.seed_id, line.contestants, line.verdict, end, line.chosen, line.signature
                )
            else:
                stale += 1
    return collected.verdicts(), stale


_NOTHING: Mapping[str, Dialogue] = {}
