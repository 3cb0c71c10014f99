"""How far each model came on each ChatSEED: what `compare` pairs a later board with."""

from __future__ import annotations

from collections.abc import Sequence

from botchat.boards.board import Board
from botchat.boards.protocols import Place
from botchat.interfaces import settings_digest
from botchat.metrics.annotations import NOT_SAID, UNTOLD, accused_index
from botchat.records import HUMAN, N_SEED, Dialogues, Judgment, Seed, Unread

SURVIVED = "survived_n"
"""Begins the key of the utterances, the first two of them people's, that pass before one is accused
of being a machine's; at most the largest N, after which it ends. An accusation whose place is not
said counts half way: it is somewhere behind the ChatSEED."""


def by_seed(board: Board, seeds: Sequence[Seed], dialogues: Dialogues) -> dict[str, object]:
    """``seeds``, a digest of each, ``values`` and ``dialogues``, JSON-ready; people have none.

    ``values``: key -> model -> `SURVIVED` by seed. ``dialogues``: a digest of each model's, except
    of a set too large to be held.
    """
    place = {seed.id: i for i, seed in enumerate(seeds)}
    values: dict[str, dict[str, list[float | None]]] = {}
    for part in board.parts:
        leads = isinstance(part, Place) and part.protocol.leads
        most = max(part.table.by_n(), default=0) if leads else 0
        for one in board.evidence[part.protocol.name].judgments if most else ():
            if (name := one.contestants[0]) != HUMAN:
                found = values.setdefault(f"{SURVIVED}{most}", {})
                row = found.setdefault(name, [None] * len(seeds))
                row[place[one.seed_id]] = _survived(one, most)
    said = {
        name: settings_digest(*((at, one.utterances) for at, one in sorted(by.items())))
        for name, by in dialogues.items()
        if name != HUMAN and not isinstance(by, Unread)
    }
    digests = [settings_digest(one.id, one.utterances) for one in seeds]
    return {"seeds": digests, "values": values, "dialogues": said}


def _survived(judgment: Judgment, most: int) -> float | None:
    """`SURVIVED` of one dialogue; one that ends before N, unaccused, says nothing."""
    if judgment.verdict is None:
        return None
    accused = accused_index(judgment.verdict, judgment.seed_id)
    if accused == UNTOLD:
        return None
    if accused == NOT_SAID:
        return (N_SEED + min(judgment.shown - 1, most)) / 2
    if accused:
        return float(min(accused - 1, most))
    return float(most) if judgment.shown >= most else None
