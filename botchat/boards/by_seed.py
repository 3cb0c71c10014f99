"""What each ChatSEED says about each number of a board: for differences from a later board.

Two boards of the same ChatSEEDs rise and fall together, so that their difference is surer than of
two strangers; how much says the correlation over seeds (`botchat.measures.changes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.protocols import BesideHuman, Evidence, Part, Place, Scored
from botchat.boards.results import Sides, comparisons_of
from botchat.interfaces import settings_digest
from botchat.measures.annotations import NOT_SAID, accused_index
from botchat.ratings.bradley_terry import influence
from botchat.records import HUMAN, MIN_HUMAN, N_SEED, Dialogues, Seed, Unread
from botchat.verdicts import LOSS, Floats

DIGITS = 4
"""Significant ones of a value."""

Values = Mapping[str, Mapping[str, Sequence[float | None]]]
"""Key of a number -> model -> its value by seed; ``None``: the seed says nothing."""


SURVIVED = "survived_n"
"""Begins the key of the utterances, the first two of them people's, that pass before one is accused
of being a machine's; at most the largest N, after which it ends. An accusation whose place is not
said counts half way: it is somewhere behind the ChatSEED."""


def by_seed(board: Board, seeds: Sequence[Seed], dialogues: Dialogues) -> dict[str, object]:
    """``seeds``, a digest of each, ``values`` and ``dialogues``, JSON-ready; people have none.

    A rate has a dialogue's result, a mean its score; of a rating, which is no mean, the part of it
    that the seed's comparisons make, in points. ``dialogues``: a digest of each model's, except of
    a set too large to be held.
    """
    values: dict[str, dict[str, list[float | None]]] = {}
    for part in board.parts:
        for key, model, found in _values(part, board.evidence[part.protocol.name], seeds):
            if model != HUMAN:
                values.setdefault(key, {})[model] = [_short(one) for one in found.tolist()]
    said = {
        name: settings_digest(*((at, one.utterances) for at, one in sorted(by.items())))
        for name, by in dialogues.items()
        if name != HUMAN and not isinstance(by, Unread)
    }
    digests = [settings_digest(one.id, one.utterances) for one in seeds]
    return {"seeds": digests, "values": values, "dialogues": said}


def _values(
    part: Part, judged: Evidence, seeds: Sequence[Seed]
) -> Iterator[tuple[str, str, Floats]]:
    """(key on the main table, contestant, value of every seed; nan where it says nothing)."""
    place = {seed.id: i for i, seed in enumerate(seeds)}
    if isinstance(part, Place):
        lengths = [n if (n := len(s.utterances)) >= MIN_HUMAN else 0 for s in seeds]
        for column in part.quoted:
            found: dict[str, Floats] = {}
            for one in judged.judgments:
                at = place[one.seed_id]
                row = found.setdefault(one.contestants[0], np.full(len(seeds), math.nan))
                if (n := column.n or lengths[at]) and one.verdict is not None:
                    accused = accused_index(one.verdict, one.seed_id) or math.inf
                    untold = accused == NOT_SAID
                    hit = N_SEED < one.shown <= n if untold else accused <= n
                    row[at] = 0 if hit else 1 if one.shown >= n and not untold else math.nan
            yield from ((part.quote(column).key, name, row) for name, row in found.items())
        yield from _survived(part, judged, place)
    elif isinstance(part, Scored):
        for i, column in enumerate(part.quoted):
            given: dict[str, Floats] = {}
            for one in judged.judgments:
                said = part.protocol.numbers(one.verdict)
                row = given.setdefault(one.contestants[0], np.full(len(seeds), math.nan))
                row[place[one.seed_id]] = math.nan if said is None else said[i]
            yield from ((part.quote(column).key, name, row) for name, row in given.items())
    elif isinstance(part, Arena | BesideHuman):
        readable = judged.verdicts.only(judged.verdicts.readable)
        made = comparisons_of(readable)
        where = np.array([place[name] for name in readable.seed_ids], dtype=np.intp)
        if isinstance(part, Arena):
            (column,) = part.ranking
            labels, moves = influence(made, part.strengths.fitted)
            for i, name in enumerate(made.models):
                row = np.full(len(seeds), math.nan)
                row[where[labels]] = moves[:, i] if len(labels) else []
                yield part.quote(column).key, name, row
            return
        (column,) = part.quoted
        sides = Sides.of(made)
        assert sides.seed is not None
        for i, name in enumerate(made.models):
            mine = (sides.side == i) & (made.models[i] != HUMAN)
            at = where[sides.seed[mine]]
            cases = np.bincount(at, minlength=len(seeds))
            hits = np.bincount(at, sides.result[mine] != LOSS, len(seeds))
            with np.errstate(invalid="ignore"):
                yield part.quote(column).key, name, hits / cases


def _survived(
    part: Place, judged: Evidence, place: Mapping[str, int]
) -> Iterator[tuple[str, str, Floats]]:
    """As `_values`, of `SURVIVED`; a dialogue that ends before N, unaccused, says nothing."""
    most = max(part.table.by_n(), default=0)
    found: dict[str, Floats] = {}
    for one in judged.judgments if most and part.protocol.leads else ():
        row = found.setdefault(one.contestants[0], np.full(len(place), math.nan))
        if one.verdict is not None:
            accused = accused_index(one.verdict, one.seed_id)
            passed: float = most if one.shown >= most else math.nan
            if accused == NOT_SAID:
                passed = (N_SEED + min(one.shown - 1, most)) / 2
            elif accused:
                passed = min(accused - 1, most)
            row[place[one.seed_id]] = passed
    yield from ((f"{SURVIVED}{most}", name, row) for name, row in found.items())


def _short(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
