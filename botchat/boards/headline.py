"""The first sentence of a board: who is best, as far as the comparisons say.

The sentence is about the number that the board ranks by. A model is called best only where its
interval of ranks, which holds for all at once, is one place wide among models; people and floor
bots are no models. Fewer than 20 ChatSEEDs make no claim, nor does a judge not to be trusted.

``headline.of(board, others, verdict)`` gives a `Headline`; ``others``: the boards of other judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_verdict import JudgeVerdict
from botchat.boards.names import LABEL_COLUMNS, elided, is_floor_bot
from botchat.boards.protocols import Part, Place
from botchat.boards.second_opinion import is_copy
from botchat.boards.tables import Column
from botchat.interfaces import Row
from botchat.measures.intervals import LEAST
from botchat.ratings.bradley_terry import BradleyTerryResult
from botchat.ratings.places import EQUAL
from botchat.records import HUMAN

_NAMED = 3
"""Most contestants that a sentence names."""


@dataclass(frozen=True)
class Headline:
    """What a board says first."""

    pieces: Sequence[tuple[str, bool]]
    """The sentence in pieces, each with whether it is the name of a contestant."""
    scope: str
    """What it is from, a line."""
    title: str
    """The result in a few words, for the title of a page."""
    best: str | None = None
    """The model that is named best."""
    n: int | None = None
    """N of the Arena that it is from."""

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return "".join(text for text, _ in self.pieces)


def of(board: Board, others: Sequence[Board] = (), verdict: JudgeVerdict | None = None) -> Headline:
    """The headline of a board; ``verdict``: on its judge, where one was asked for."""
    contestants = [name for name in board.main.frame["model"] if name != HUMAN]
    models = [name for name in contestants if not is_floor_bot(name)]
    part = _ranking(board)
    arena = board.leading or (part if isinstance(part, Arena) else None)
    if not board.parts:
        said = _Lead(["Nothing was judged yet"], "nothing judged yet")
    elif len(contestants) == 1:
        said = _one(board, contestants[0])
    elif arena is not None and len(arena.strengths.ties.half.models) > 1:
        said = _by_rating(board, arena, models, others)
    else:
        said = _by_number(part, contestants)
    if unfinished(board):
        said = _after("So far ", said, contestants, f"so far, {said.title}", said.best)
    if verdict is not None and verdict.word == "do not trust":
        said = _after("Do not trust: ", said, contestants, "a judge not to be trusted")
    pieces = tuple((text, text in contestants) for text in (*said.words, ".") if text)
    scope = _scope(board, len(models), len(contestants) - len(models))
    n = None if arena is None else arena.protocol.n
    return Headline(pieces, scope, f"{board.seed_set}: {said.title}", said.best, n)


def _ranking(board: Board) -> Part | None:
    """The part whose number the board is ranked by; ``None``: it is not."""
    key = board.main.column(role="rank").of
    return next(
        (one for one in board.parts for column in one.ranking if one.quote(column).key == key), None
    )


def _after(
    before: str, said: _Lead, contestants: Sequence[str], title: str, best: str | None = None
) -> _Lead:
    """What is said, after some words."""
    first, *rest = (word for word in said.words if word)
    if first not in contestants and not first.startswith("N ="):
        first = f"{first[:1].lower()}{first[1:]}"
    return _Lead([before, first, *rest], title, best)


@dataclass(frozen=True)
class _Lead:
    words: Sequence[str]
    title: str
    best: str | None = None


def unfinished(board: Board) -> bool:
    """Whether cases that the sentence is from can be judged and are not judged yet.

    An adaptive Arena leaves some out.
    """
    part = board.leading or _ranking(board)
    if board.coverage is None or part is None:
        return False
    if isinstance(part, Arena) and part.strengths.design.chosen:
        return False
    frame = board.coverage.frame
    return bool((frame["not_judged"][frame["protocol"] == part.protocol.name] > 0).any())


def _by_rating(board: Board, arena: Arena, models: Sequence[str], others: Sequence[Board]) -> _Lead:
    fitted, n = arena.strengths.ties.half, arena.protocol.n
    at, unit = f" at N = {n}" if n else "", arena.strengths.design.unit
    apart = f"N = {n} does" if n else "the votes do"
    largest = next(one for one in board.arenas if one.protocol.base == arena.protocol.base)
    if arena.few:
        few = f"Fewer than {LEAST} {unit} were compared{at}: too few to say who is best"
        return _Lead([few], "too few to say who is best")
    if not arena.separates:
        tied = (fitted.rating.max() - fitted.rating.min()) < 2 * EQUAL
        why = "every comparison came out even" if tied else f"{apart} not separate them"
        return _Lead([f"Nobody leads: {why}"], "nobody leads")
    before = "" if largest is arena else f"N = {largest.protocol.n} does not separate them; "
    order = [fitted.models[i] for i in np.argsort(-fitted.rating, kind="stable")]
    rated = [name for name in order if name in models]
    level = [name for name in order if is_floor_bot(name) and name in _ahead(fitted, order)]
    ahead = _ahead(fitted, rated)
    if not rated:
        alone = len(level) == 1
        verb = "is ahead of the other floor bots" if alone else "are floor bots, none clearly ahead"
        title = f"{_short(level[0])} leads the floor bots" if alone else "floor bots, none ahead"
        return _Lead([before, *_listed(level), f" {verb}{at}; no model takes part"], title)
    beaten = _beaten(fitted, level, rated)
    floor = _floor(level, beaten)
    if missing := len(models) - len(rated):
        floor.append(f"; {missing} more {'was' if missing == 1 else 'were'} not compared")
    if len(rated) == 1:
        return _Lead([before, rated[0], " is the only model", *floor], "one model and floor bots")
    if len(ahead) == 1:
        whom = "the other model" if len(rated) == 2 else f"all {len(rated) - 1} other models"
        verb = f" is clearly better than {whom}{at}"
        agree = _agree(ahead[0], [other for other in others if not is_copy(board, other)])
        title = "a floor bot leads" if beaten else f"{_short(ahead[0])} leads"
        return _Lead([before, ahead[0], verb, agree, *floor], title, ahead[0])
    if len(ahead) == len(rated):
        whom = "the two models" if len(rated) == 2 else f"the {len(rated)} models"
        words = f"{apart[:1].upper()}{apart[1:]} not separate {whom}: each may be the best"
        return _Lead([words, *floor], "no model leads")
    each = f" cannot be separated{at}: each of the {len(ahead)} may be the best model"
    title = f"{len(ahead)} of {len(rated)} models may be best"
    return _Lead([before, *_listed(ahead), each, *floor], title)


def _ahead(fitted: BradleyTerryResult, names: Sequence[str]) -> list[str]:
    """Those of some contestants that none of them is clearly better than, in their order."""
    place = {name: i for i, name in enumerate(fitted.models)}
    among = [place[name] for name in names]
    better = fitted.clearly_better[np.ix_(among, among)]
    return [name for i, name in enumerate(names) if not better[:, i].any()]


def _beaten(fitted: BradleyTerryResult, level: Sequence[str], models: Sequence[str]) -> bool:
    """Whether one of some bots is clearly better than every model."""
    place = {name: i for i, name in enumerate(fitted.models)}
    among = [place[name] for name in models]
    return any(fitted.clearly_better[place[name], among].all() for name in level)


def _floor(level: Sequence[str], beaten: bool) -> list[str]:
    """That floor bots are in the first group, though no models; ``beaten``: above all models."""
    if not level:
        return []
    what = ("floor bot ", " is") if len(level) == 1 else ("floor bots ", " are")
    where = "clearly better than every model" if beaten else "not clearly behind anybody"
    return [f"; {what[0]}", *_listed(level), f"{what[1]} {where}"]


def _agree(best: str, others: Sequence[Board]) -> str:
    """How many other judges put the same first."""
    firsts = [first for other in others if (first := _first(other)) is not None]
    same = sum(first == best for first in firsts)
    if len(firsts) == 1:
        return f"; the other judge {'also puts it' if same else 'puts another'} first"
    return f"; {same} of {len(firsts)} other judges also put it first" if firsts else ""


def _first(board: Board) -> str | None:
    """The model that a judge puts first, by what the board is ranked by."""
    names = [name for name in board.main.frame["model"] if name != HUMAN]
    arena = board.leading
    if arena is not None:
        names = [name for name in arena.table.frame["model"] if name != HUMAN]
    return next((name for name in names if not is_floor_bot(name)), None)


def _one(board: Board, name: str) -> _Lead:
    """One contestant has no rank, but it survives."""
    what = "One floor bot" if is_floor_bot(name) else "One model"
    title = f"one {'floor bot' if is_floor_bot(name) else 'model'}, nothing to rank"
    row = next(
        (row for part in _places(board) for row in part.table.records if row["model"] == name), None
    )
    part = next(iter(_places(board)), None)
    if row is None or part is None:
        return _Lead([f"{what}, nothing to rank: ", name], title)
    n, column = next(iter(part.table.by_n().items()))
    read = row[part.table.column(role="readable", of=column.key).key]
    if read < LEAST or row[column.key] is None:
        return _Lead([f"{what}, nothing to rank: ", name, f", {read} dialogues judged"], title)
    return _Lead([f"{what}, nothing to rank: ", name, f" passes {_share(row, column.key)} for {n} "
                  "utterances"], title)  # fmt: skip


def _low(row: Row, column: Column) -> float:
    return float(row[f"{column.key}_low"])


def _high(row: Row, column: Column) -> float:
    return float(row[f"{column.key}_high"])


def _by_number(part: Part | None, contestants: Sequence[str]) -> _Lead:
    """Who is first by a rate or a mean, named only where its interval is above all others'."""
    if part is None:
        return _Lead(["Nobody was compared with anybody: there is no order"], "no order")
    column = part.ranking[0]
    passes = isinstance(part, Place) and part.protocol.about_ai
    what = "passes most often" if passes else f"is first by {part.quote(column).heading}"
    readable = part.table.column(role="readable", of=column.key if passes else "").key
    rows = [row for row in part.table.records if row["model"] in contestants]
    rows = [row for row in rows if row[column.key] is not None and row[readable] >= LEAST]
    models = [row for row in rows if not is_floor_bot(row["model"])]
    # People read who is best among models; bots are said beside them.
    order = sorted(models or rows, key=lambda row: -row[column.key])
    if not order:
        return _Lead([f"Fewer than {LEAST} dialogues of each were judged: too few to say who "
                      f"{what}"], "too few to say who is best")  # fmt: skip
    first, *rest = order
    name = first["model"]
    bots = [row for row in rows if row not in models and models]
    level = [row["model"] for row in bots if _high(row, column) >= _low(first, column)]
    floor = _floor(level, any(_low(row, column) > _high(first, column) for row in bots))
    near = [row["model"] for row in order if _high(row, column) >= _low(first, column)]
    if len(near) > 1:
        by = f"how often they pass {column.n} utterances" if passes else part.quote(column).heading
        title = f"{len(near)} of {len(order)} may be best"
        return _Lead([*_listed(near), f" cannot be separated by {by}", *floor], title)
    said = (
        f"{_share(first, column.key)} for {column.n} utterances" if passes else _told(column, first)
    )
    every = {one for one in contestants if not is_floor_bot(one) or not models}
    if not rest or len(order) < len(every):
        words = [name, f" {'passes' if passes else 'has'} {said}", *floor]
        return _Lead(words, "one model judged often enough")
    best = None if is_floor_bot(name) else name
    return _Lead([name, f" {what}: {said}", *floor], f"{_short(name)} {what}", best)


def _told(column: Column, row: Row) -> str:
    """``4.20 (3.91–4.45)``; a share in percent."""
    found = row[column.key], _low(row, column), _high(row, column)
    if column.kind == "rate":
        return "{:.0%} ({:.0%}–{:.0%})".format(*found).replace("%", " %")
    return "{:.2f} ({:.2f}–{:.2f})".format(*found)


def _places(board: Board) -> list[Place]:
    return [part for part in board.of(Place) if part.protocol.about_ai]


def _short(name: str) -> str:
    return elided(name, LABEL_COLUMNS)


def _share(row: Row, key: str) -> str:
    """``62 % of its dialogues (51–72 %)``."""
    value, low, high = (100 * row[f"{key}{end}"] for end in ("", "_low", "_high"))
    return f"{value:.0f} % of its dialogues ({low:.0f}–{high:.0f} %)"


def _listed(names: Sequence[str]) -> list[str]:
    """Names with commas between; those beyond `_NAMED` are counted."""
    shown = list(names[:_NAMED] if len(names) > _NAMED + 1 else names)
    more = len(names) - len(shown)
    found: list[str] = []
    for i, name in enumerate(shown):
        last = i == len(shown) - 1 and not more
        found += ["" if i == 0 else " and " if last else ", ", name]
    return [*found, f" and {more} more"] if more else found


def _scope(board: Board, models: int, bots: int) -> str:
    """What the sentence is from: the judge, contestants, ChatSEEDs, comparisons."""
    parts = [f"by {board.judge} on {board.seed_set}"]
    counted = [f"{n} {what}{'' if n == 1 else 's'}" for n, what in
               ((models, "model"), (bots, "floor bot")) if n]  # fmt: skip
    parts.append(" and ".join(counted))
    arena = board.leading
    if arena is not None:
        made = arena.strengths
        seeds = made.ties.half.n_clusters
        parts.append(f"{seeds:,} {made.design.unit}" if seeds else "")
        n, of_all = arena.comparisons.n, (made.design.expected or 0) * len(made.design.made)
        whole = f"{n:,} of {of_all:,} comparisons" if n < of_all else f"{n:,} comparisons"
        parts.append(f"{whole} at N = {arena.protocol.n}" if arena.protocol.n else whole)
    elif part := next(iter(_places(board)), None):
        column = next(iter(part.table.by_n().values()))
        read = part.table.column(role="readable", of=column.key).key
        parts.append(f"{sum(row[read] for row in part.table.records):,} dialogues judged")
    return "; ".join(filter(None, parts))
