"""The first sentence of a board: who leads and who is not ruled out, or why there is no ranking.

The leader is the model with the highest rating; another model is not ruled out if it may be the
best of the models (`ProtocolResult.may_be_best`). Bots and humans are no models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_checks import WORDS, JudgeTrust, no_ranking
from botchat.boards.protocols import DetectionResult, ProtocolResult
from botchat.boards.tables import LABEL_COLUMNS, is_floor_bot, shorten
from botchat.metrics.statistics import LEAST
from botchat.protocols.catalogue import VOTES
from botchat.ratings.comparisons import LEAST_CLUSTERS
from botchat.records import HUMAN

_NAMED = 3
"""Most contestants that a sentence names."""


Pieces: TypeAlias = Sequence[tuple[str, bool]]
"""A sentence in pieces, each with whether it is the name of a contestant."""


class Headline(NamedTuple):
    """The sentence that a board begins with, and facts to go with it."""

    begin: Pieces
    """The sentence up to its bracket."""
    rest: Pieces
    """The bracket, if there is one, and what follows."""
    title: str
    """The result in a few words, for the title of a page."""
    lead: str
    """A sentence on how far the leader is from human; empty if that was not judged."""
    scope: str
    """Dialogues, models and judge, in one line."""
    leader: str | None = None

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return "".join(text for text, _ in [*self.begin, *self.rest])


def headline(board: Board, trust: JudgeTrust) -> Headline:
    """Make the headline of a board; ``trust`` is that of its judge."""
    contestants = [name for name in board.main.frame["model"] if name != HUMAN]
    part = board.rated
    leaders, words = _outcome(board, trust, part, contestants)
    begin = []
    rest: list[tuple[str, bool]] = []
    title = ""
    for text in words:
        is_name = text in contestants
        before, bracket, after = text.partition(" (")
        if rest:
            rest.append((text, is_name))
        elif bracket and not is_name:
            begin.append((f"{before} ", False))
            rest.append((f"({after}", False))
            title += before
        else:
            begin.append((text, is_name))
            if is_name:
                before = shorten(text, LABEL_COLUMNS)
            title += before
    return Headline(
        begin,
        rest,
        f"{board.seed_set}: {title.rstrip('.')}",
        _second(board, trust),
        _scope(board, part, contestants),
        next(iter(leaders), None),
    )


def _outcome(
    board: Board, trust: JudgeTrust, part: ProtocolResult | None, contestants: Sequence[str]
) -> tuple[Sequence[str], list[str]]:
    """Return the leaders, if there are any, and the sentence in pieces."""
    if not board.parts:
        return [], ["Nothing was judged yet."]
    if trust.failed:
        return [], [no_ranking(trust.checks)]
    if len(contestants) == 1:
        kind = "bot" if is_floor_bot(contestants[0]) else "model"
        return [], [f"One {kind}, nothing to rank: ", contestants[0], "."]
    if part is None:
        return [], ["No comparison was judged: there is no ranking."]
    order = list(part.ranks.index)
    if part.n_dialogues < LEAST:
        kind = "dialogues"
        if part.protocol == VOTES:
            kind = "independent votes"
        return [], [f"Too few {kind} to rank: {part.n_dialogues} of {LEAST}."]
    if not order:
        return [], [f"Too few topics to rank: below {LEAST_CLUSTERS}."]
    models = [name for name in order if not is_floor_bot(name)]
    if not models:
        return [], [order[0], " leads the bots; no model takes part."]
    if len(models) == 1:
        return models, [models[0], " is the only model."]
    leaders = board.leaders
    if len(leaders) > 1:
        return leaders, ["No difference: ", *_join_names(leaders, ", "), "."]
    return leaders, _leads(part, models)


def _leads(part: ProtocolResult, models: Sequence[str]) -> list[str]:
    """Return the sentence on the first of some models, and who is not ruled out, in pieces."""
    leader = models[0]
    rivals = list(compress(models[1:], part.may_be_best(models)[1:]))
    rival = next(iter(rivals), models[1])
    verb = "is"
    against = ""
    if len(rivals) > 1:
        verb = "are"
        against = f" against {rival}"
    elif rivals:
        against = " against it"
    record = ""
    if isinstance(part, Arena):
        record = part.record(leader, rival, against)
    if not rivals:
        if record:
            record = f", {record}"
        return [leader, " leads clearly (next: ", rival, f"{record})."]
    if record:
        record = f" ({record})"
    return [leader, " leads; ", *_join_names(rivals), f" {verb} not ruled out{record}."]


def _join_names(names: Sequence[str], last: str = " and ") -> list[str]:
    """Return names with commas between, ``last`` the last; beyond `_NAMED` they are counted."""
    n = len(names)
    if n > _NAMED + 1:
        n = _NAMED
    pieces = []
    for name in names[:n]:
        pieces += [", ", name]
    if n < len(names):
        pieces.append(f" and {len(names) - n} more")
    elif n > 1:
        pieces[-2] = last
    return pieces[1:]


def _second(board: Board, trust: JudgeTrust) -> str:
    """Return how the judge tells the leader from people; empty if that was not asked."""
    leader = trust.leader.name
    if leader is None or trust.failed:
        return ""
    cases = trust.leader.cases
    if not len(cases.values):
        return _at_human_length(board, leader)
    shuffled = ""
    for check in trust.checks:
        if check.key == "skill" and check.n and check.protocol.against_human:
            shuffled = f"; shuffled ones it picks out in {100 * check.good:.0f} %"
    return WORDS.second[trust.leader.word].format(
        leader=leader,
        right=100 * cases.good,
        wrong=100 * cases.bad,
        n=cases.n_seeds,
        shuffled=shuffled,
    )


def _at_human_length(board: Board, name: str) -> str:
    """Return how often a contestant and people pass, both at the human dialogue's length."""
    part = next((part for part in board.of(DetectionResult) if part.protocol.about_ai), None)
    if part is None:
        return ""
    known = part.table.values("success_human_length")
    passed = known.get(name, math.nan)
    if math.isnan(passed):
        return ""
    people = ""
    if not math.isnan(known.get(HUMAN, math.nan)):
        people = f", people in {100 * known[HUMAN]:.0f}"
    return (
        f"Cut to the human dialogue's length {name} passes in {100 * passed:.0f} of 100 "
        f"dialogues{people}."
    )


def _scope(board: Board, part: ProtocolResult | None, contestants: Sequence[str]) -> str:
    """Return the numbers of dialogues and contestants, and the judge, in one line."""
    bots = sum(is_floor_bot(each) for each in contestants)
    counts = {"model": len(contestants) - bots, "bot": bots}
    who = [f"{n:,} {kind}{'' if n == 1 else 's'}" for kind, n in counts.items() if n]
    if isinstance(part, Arena) and part.protocol == VOTES:
        return f"{part.counts.judged:,} votes of {board.seed_set}, {', '.join(who)}."
    n = max(board.main.frame["complete"], default=0)
    kind = "invented dialogues" if board.invented else "dialogues"
    return f"{n:,} {kind} of {board.seed_set}, {', '.join(who)}, judge {board.judge}."
