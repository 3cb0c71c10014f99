"""What a board says first: a sentence in chats of 100, what was done, and how sure it is.

The sentence is about the number that the board ranks by. A model is called best only where its
interval of ranks, which holds for all at once, is one place wide among models; people and scripts
(floor bots) are no models. Fewer than 20 conversations make no claim, and a judge not to be trusted
makes no ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_verdict import JudgeVerdict, is_copy
from botchat.boards.names import LABEL_COLUMNS, elided, is_floor_bot
from botchat.boards.protocols import Part, Place
from botchat.boards.tables import Column, triple
from botchat.interfaces import Row
from botchat.metrics.annotations import is_person
from botchat.metrics.intervals import LEAST
from botchat.protocols.catalogue import VOTES
from botchat.ratings.places import EQUAL
from botchat.records import HUMAN
from botchat.verdicts import Flags

_NAMED = 3
"""Most contestants that a sentence names."""

_COUNTED = "No One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve".split()  # noqa: SIM905


@dataclass(frozen=True)
class Headline:
    """What a board says first."""

    pieces: Sequence[tuple[str, bool]]
    """The sentence in pieces, each with whether it is the name of a contestant."""
    done: Sequence[tuple[str, bool]]
    """What was done, in pieces, each with whether it is what a reader looks for."""
    sure: str
    """How sure that is; empty where it says that itself."""
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

    @property
    def scope(self) -> str:
        """The same of what was done."""
        return "".join(text for text, _ in self.done)


class _Lead(NamedTuple):
    """The sentence in pieces, the title without the set, and as of `Headline`."""

    words: Sequence[str]
    title: str
    best: str | None = None
    sure: Sequence[str] = ()


def of(board: Board, others: Sequence[Board] = (), verdict: JudgeVerdict | None = None) -> Headline:
    """The headline of a board.

    ``others``: the boards of other judges. ``verdict``: on its judge, where one was asked for.
    """
    contestants = [name for name in board.main.frame["model"] if name != HUMAN]
    models = [name for name in contestants if not is_floor_bot(name)]
    part = board.leading or _ranking(board)
    distrusted = board.parts and verdict is not None and verdict.word == "do not trust"
    if not board.parts:
        said = _Lead(["Nothing was judged yet."], "nothing judged yet")
    elif verdict is not None and distrusted:
        refused = f"No ranking: this judge {_fault(verdict, part)}"
        said = _Lead([f"{refused}."], refused)
    elif len(contestants) == 1:
        what = "one script" if is_floor_bot(contestants[0]) else "one model"
        told = _passes(board).get(contestants[0], " was judged too little to say more")
        words = [f"{what.capitalize()}, nothing to rank: ", contestants[0], f"{told}."]
        said = _Lead(words, f"{what}, nothing to rank")
    elif part is None:
        said = _Lead(["Nobody was compared with anybody: there is no order."], "no order")
    else:
        said = _ranked(board, part, models, others)
    if unfinished(board) and not distrusted:
        first, *rest = said.words
        first = first if first in contestants else f"{first[:1].lower()}{first[1:]}"
        said = said._replace(words=["So far ", first, *rest], title=f"so far, {said.title}")
    pieces = tuple((text, text in contestants) for text in said.words if text)
    done = _done(board, part, len(models), len(contestants) - len(models))
    n = part.protocol.n if isinstance(part, Arena) else None
    sure = " ".join(said.sure)
    return Headline(pieces, done, sure, f"{board.seed_set}: {said.title}", said.best, n)


def _fault(verdict: JudgeVerdict, part: Part | None) -> str:
    """What a judge that is not to be trusted does, after "this judge"."""
    if isinstance(part, Arena) and part.separates:
        fitted = part.strengths.fitted
        if any(is_floor_bot(fitted.models[i]) for i in np.flatnonzero(fitted.places[0] == 1)):
            return "puts scripts that understand nothing first"
    return verdict.fault


def _ranking(board: Board) -> Part | None:
    """The part whose number the board is ranked by; ``None``: it is not."""
    key = board.main.column(role="rank").of
    return next(
        (one for one in board.parts for column in one.ranking if one.quote(column).key == key), None
    )


def unfinished(board: Board) -> bool:
    """Whether cases that the sentence is from can be judged and are not judged yet."""
    part = board.leading or _ranking(board)
    if board.coverage is None or part is None:
        return False
    frame = board.coverage.frame
    return bool((frame["not_judged"][frame["protocol"] == part.protocol.name] > 0).any())


def _ranked(board: Board, part: Part, models: Sequence[str], others: Sequence[Board]) -> _Lead:
    """Who is first by what the board is ranked by, and who is level with it."""
    arena, column = part if isinstance(part, Arena) else None, part.ranking[0]
    rows = [row for row in part.table.records if row["model"] != HUMAN and _known(part, row)]
    order = [row["model"] for row in rows]
    if not order or (arena is not None and arena.few):
        few = f"Fewer than {LEAST} chats of each were judged"
        if arena is not None:
            unit = arena.strengths.design.unit.replace("ChatSEEDs", "conversations")
            few = f"Fewer than {LEAST} {unit} were compared"
        return _Lead([f"{few}: too few to say who is best."], "too few to say who is best")
    values = [row[column.key] for row in rows]
    if arena is not None and not arena.separates and max(values) - min(values) < 2 * EQUAL:
        return _Lead(["Nobody leads: every comparison came out even."], "nobody leads")
    better, n = part.better(order), column.n if arena is None else part.protocol.n
    rated = [name for name in order if name in models]
    ahead = _ahead(better, order, rated)
    level = [name for name in _ahead(better, order, order) if is_floor_bot(name)]
    sure = []
    if (most := max((one.protocol.n or 0 for one in board.arenas), default=0)) > (n or most):
        sure.append(f"At {most} lines nobody is told apart: this is of the first {n}.")
    if not rated:
        title, verb = "scripts, none ahead", " are scripts, none clearly ahead"
        if len(level) == 1:
            title = f"{elided(level[0], LABEL_COLUMNS)} leads the scripts"
            verb = " is ahead of the other scripts"
        return _Lead([*_listed(level), f"{verb}; no model takes part."], title, None, sure)
    over = [order.index(name) for name in rated]
    beaten = any(better[order.index(name), over].all() for name in level)
    floor = _floor(level, beaten)
    if missing := len(models) - len(rated):
        sure.append(f"{missing} more {'was' if missing == 1 else 'were'} judged too little.")
    rates, best = _passes(board, n), ahead[0]
    if len(rated) == 1 or (len(ahead) == 1 and missing and arena is None):
        told = rates.get(best, " is the only model")
        return _Lead([best, f"{told}.", *floor], "one model judged enough", None, sure)
    if len(ahead) == 1:
        told = rates.get(best) or _by(part, column, next(r for r in rows if r["model"] == best))
        title = "a script leads" if beaten else f"{elided(best, LABEL_COLUMNS)}{told}"
        sure = [f"{best} is first with 95 % confidence over all places at once.",
                *sure, *_agree(board, best, others), *_whole(arena)]  # fmt: skip
        return _Lead([best, f"{told}. No other model is level with it.", *floor], title, best, sure)
    share = f"{_count(len(ahead))} of {len(rated)} models share first place"
    if len(ahead) == len(rated):
        all_of = "Both models" if len(rated) == 2 else f"All {len(rated)} models"
        share = f"{all_of} share first place"
    words = [f"{share}; ", best, f" has the highest {_measure(part, column)}."]
    if passing := next((told for name, told in rates.items() if name in ahead), ""):
        words = [f"{share}. At best they{passing.replace('passes', 'pass')}."]
    sure = [_left_open(part, ahead, rated, better, order), *sure, *_whole(arena)]
    return _Lead([*words, *floor], f"{share[:1].lower()}{share[1:]}", None, sure)


def _known(part: Part, row: Row) -> bool:
    """Whether a row has a number that is from enough dialogues."""
    column = part.ranking[0]
    if row[column.key] is None or isinstance(part, Arena):
        return row[column.key] is not None
    of = column.key if column.n else ""
    return int(row[part.table.column(role="readable", of=of).key]) >= LEAST


def chance(rating: float) -> float:
    """How often a rating is preferred to an average one (1000 points), 0 to 1."""
    return float(1 / (1 + 10 ** ((1000 - rating) / 400)))


def _measure(part: Part, column: Column) -> str:
    return "rating" if isinstance(part, Arena) else part.quote(column).heading


def _by(part: Part, column: Column, row: Row) -> str:
    """What the first is first by, where it is not how often it passes."""
    if isinstance(part, Arena):
        verb = "preferred to" if part.protocol == VOTES else "called more human than"
        return f" is {verb} an average model {100 * chance(row[column.key]):.0f} times in 100"
    form = "{:.0%} ({:.0%}–{:.0%})" if column.kind == "rate" else "{:.2f} ({:.2f}–{:.2f})"
    number = form.format(*triple(row, column.key)).replace("%", " %")
    return f" has the highest {_measure(part, column)}: {number}"


def _ahead(better: Flags, order: Sequence[str], names: Sequence[str]) -> list[str]:
    """Those of some contestants that none of them is clearly better than, in their order.

    ``better``: of all in ``order``.
    """
    among = [order.index(name) for name in names]
    inside = better[np.ix_(among, among)]
    return [name for i, name in enumerate(names) if not inside[:, i].any()]


def _floor(level: Sequence[str], beaten: bool) -> list[str]:
    """That scripts are in the first group, though no models; ``beaten``: above all models."""
    if not level:
        return []
    what = ("The script ", " is") if len(level) == 1 else ("The scripts ", " are")
    where = "clearly ahead of every model." if beaten else "level with the best."
    return [f" {what[0]}", *_listed(level), f"{what[1]} {where}"]


def _left_open(
    part: Part, ahead: Sequence[str], rated: Sequence[str], better: Flags, order: Sequence[str]
) -> str:
    """What is left open where several share first place."""
    if part.protocol == VOTES and isinstance(part, Arena):
        a_model = round(2 * part.strengths.fitted.n_comparisons / len(order))
        first, last = part.strengths.fitted.places
        half = int(np.median(last - first + 1))
        places = "place" if half == 1 else "places"
        return f"{a_model:,} votes a model, and half of the models have {half} {places} open."
    any_of = f"Any of {len(ahead)} models may be first"
    rest = [name for name in rated if name not in ahead]
    if not rest:
        return f"{any_of}."
    of = int(better[[order.index(name) for name in ahead], order.index(rest[0])].sum())
    whom = "all" if of == len(ahead) else _count(of).lower()
    following = elided(rest[0], LABEL_COLUMNS)
    return f"{any_of}; the next, {following}, is clearly behind {whom} of them."


def _whole(arena: Arena | None) -> list[str]:
    """What the comparisons do not say."""
    if arena is None or arena.strengths.design.expected is None:
        return []
    design = arena.strengths.design
    if arena.protocol == VOTES and arena.strengths.fitted.n_clusters is None:
        return ["Rates do not say which chat they are of: real intervals are wider."]
    n, whole = arena.comparisons.win.n, (design.expected or 0) * len(design.made)
    return [f"{n:,} of {whole:,} comparisons are judged."] if n < whole else []


def _agree(board: Board, best: str, others: Sequence[Board]) -> list[str]:
    """How many other judges, copies left out, put the same model first."""
    firsts = []
    for other in others:
        table = other.main if other.leading is None else other.leading.table
        names = [one for one in table.frame["model"] if one != HUMAN and not is_floor_bot(one)]
        firsts += [] if is_copy(board, other) else names[:1]
    same = firsts.count(best)
    if len(firsts) == 1:
        return [f"The other judge {'also puts it' if same else 'puts another'} first."]
    return [f"{same} of {len(firsts)} other judges also put it first."] if firsts else []


def _passes(board: Board, n: int | None = None) -> dict[str, str]:
    """Contestant -> `` passes for human in 62 of 100 chats of 16 lines``, the highest rate first.

    ``n``: lines, default the most that there are. Without those of too few dialogues.
    """
    part = next((part for part in board.of(Place) if part.protocol.about_ai), None)
    by_n = {} if part is None else part.table.by_n()
    n = n or next(iter(by_n), None)
    if part is None or n not in by_n:
        return {}
    key, read = by_n[n].key, part.table.column(role="readable", of=by_n[n].key).key
    known = [row for row in part.table.records if row[key] is not None and row[read] >= LEAST]
    return {row["model"]: f" passes for human in {100 * row[key]:.0f} of 100 chats of {n} lines"
            for row in sorted(known, key=lambda row: -row[key])}  # fmt: skip


def _count(n: int) -> str:
    return _COUNTED[n] if n < len(_COUNTED) else f"{n:,}"


def _listed(names: Sequence[str]) -> list[str]:
    """Names with commas between; those beyond `_NAMED` are counted."""
    shown = names[:_NAMED] if len(names) > _NAMED + 1 else names
    more = len(names) - len(shown)
    between = [", "] * (len(shown) - 1) + ["" if not more else f" and {more} more"]
    if not more and len(shown) > 1:
        between[-2] = " and "
    return [text for both in zip(shown, between, strict=True) for text in both]


def _done(board: Board, part: Part | None, models: int, bots: int) -> list[tuple[str, bool]]:
    """What was done, in two sentences."""
    counted = [f"{n} {what}{'' if n == 1 else 's'}" for n, what in
               ((models, "chat model"), (bots, "script")) if n]  # fmt: skip
    who, judge = " and ".join(counted), board.judge
    if isinstance(part, Arena) and part.protocol == VOTES:
        made, unit = part.strengths.fitted, part.strengths.design.unit
        on = f", on {made.n_clusters:,} {unit}" if made.n_clusters else ""
        said = f" said {made.n_comparisons:,} times which of two is better{on}. Each of "
        each = round(2 * made.n_comparisons / max(1, len(made.models)))
        said += f"{models + bots:,} models was compared about {each:,} times."
        judge = "published rates" if judge == "rates" else judge
        return [(f"{judge[:1].upper()}{judge[1:]}", True), (said, False)]
    chats = f"{int(board.main.frame['dialogues'].max()):,} "
    chats += f"{'invented' if board.invented else 'real'} conversations"
    began = f" got the first two lines of {chats} and went on alone, speaking both parts. "
    if not board.human_lengths or any(one.imported for one in board.evidence.values()):
        began = f" {'was' if models + bots == 1 else 'were'} judged on {chats}. "
    asked = [one.protocol for one in board.evidence.values()]
    about = [one for one in asked if one.about_ai or one.leads] or asked
    one = min(about, key=lambda one: (one.kind != "place", one.shows != "pair"), default=None)
    how = "" if one is None else " was asked: " + one.question
    if one is not None and one.about_ai and one.kind == "place":
        how = " read each one: people, or a machine, and from which line on?"
    elif one is not None and one.about_ai and one.kind == "choice":
        beside = "each beside the real one" if one.shows == "human" else "two at a time"
        how = f" saw {beside}: which is the machine?"
    person = "A person" if is_person(judge, HUMAN) else "A judge"
    return [(who, True), (began, False), (f"{person}, {judge},", True), (how, False)]
