"""The first sentence of a board: who leads and who is not ruled out, or why there is no ranking.

The leader is the model with the highest rating; another model is not ruled out if it may be the
best of the models (`ProtocolResult.may_be_best`). Bots and humans are no models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_checks import WORDS, JudgeTrust, no_ranking
from botchat.boards.protocols import DetectionResult, ProtocolResult
from botchat.boards.tables import LABEL_COLUMNS, is_floor_bot, shorten
from botchat.errors import listed
from botchat.metrics.statistics import LEAST
from botchat.protocols.catalogue import VOTES
from botchat.ratings.comparisons import LEAST_CLUSTERS
from botchat.records import HUMAN

_NAMED = 4
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
    said = _outcome(board, trust, contestants)
    begin = _pieces(said.begin, contestants)
    title = ""
    for text, is_name in begin:
        if is_name:
            title += shorten(text, LABEL_COLUMNS)
        else:
            title += text
    return Headline(
        begin,
        _pieces(said.rest, contestants),
        f"{board.seed_set}: {title.rstrip(' .')}",
        _second(board, trust),
        _scope(board, contestants),
        next(iter(said.leaders), None),
    )


def _pieces(text: str, names: Sequence[str]) -> Pieces:
    """Return a text in pieces, with the names in it marked; the longest first, as whole words."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    pieces = re.split(rf"(?<!\w)({'|'.join(longest) or '(?!)'})(?!\w)", text)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece]


class _Outcome(NamedTuple):
    """A sentence up to its bracket, and from there on."""

    begin: str
    rest: str = ""
    leaders: Sequence[str] = ()
    """The models that lead, where any do."""


def _outcome(board: Board, trust: JudgeTrust, contestants: Sequence[str]) -> _Outcome:
    """Say who leads, or why nobody does."""
    part = board.rated
    if not board.parts:
        return _Outcome("Nothing was judged yet.")
    if trust.failed:
        return _Outcome(no_ranking(trust.checks))
    if len(contestants) == 1:
        kind = "bot" if is_floor_bot(contestants[0]) else "model"
        return _Outcome(f"One {kind}, nothing to rank: {contestants[0]}.")
    if part is None:
        return _Outcome("No comparison was judged: there is no ranking.")
    order = list(part.ranks.index)
    if part.n_dialogues < LEAST:
        kind = "dialogues"
        if part.protocol == VOTES:
            kind = "independent votes"
        return _Outcome(f"Too few {kind} to rank: {part.n_dialogues} of {LEAST}.")
    if not order:
        return _Outcome(f"Too few topics to rank: below {LEAST_CLUSTERS}.")
    models = [name for name in order if not is_floor_bot(name)]
    if not models:
        return _Outcome(f"{order[0]} leads the bots; no model takes part.")
    if len(models) == 1:
        return _Outcome(f"{models[0]} is the only model.", leaders=models)
    leaders = board.leaders
    if len(leaders) > 1:
        return _Outcome(f"No difference: {listed(leaders, _NAMED)}.", leaders=leaders)
    return _leads(part, models)


def _leads(part: ProtocolResult, models: Sequence[str]) -> _Outcome:
    """Say that the first of some models leads, and who is not ruled out."""
    leader = models[0]
    rivals = list(compress(models[1:], part.may_be_best(models)[1:]))
    rival = next(iter(rivals), models[1])
    against = ""
    if len(rivals) > 1:
        against = f" against {rival}"
    elif rivals:
        against = " against it"
    record = ""
    if isinstance(part, Arena):
        record = part.record(leader, rival, against)
    if not rivals:
        if record:
            record = f", {record}"
        return _Outcome(f"{leader} leads clearly ", f"(next: {rival}{record}).", [leader])
    begin = f"{leader} leads; {rival} is not ruled out"
    if len(rivals) > _NAMED:
        begin = f"{leader} leads; {listed(rivals, _NAMED - 1)} are not ruled out"
    elif len(rivals) > 1:
        begin = f"{leader} leads; {listed(rivals[:-1])} and {rivals[-1]} are not ruled out"
    if record:
        return _Outcome(f"{begin} ", f"({record}).", [leader])
    return _Outcome(f"{begin}.", leaders=[leader])


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
            shuffled = f"; shuffled ones it picks out in {100 * check.cases.good:.0f} %"
    return WORDS.second[trust.leader.word].format(
        leader=leader,
        right=100 * cases.good,
        wrong=100 * cases.bad,
        n=cases.n_seeds,
        shuffled=shuffled,
    )


def _at_human_length(board: Board, name: str) -> str:
    """Return how often a contestant and people pass, both at the human dialogue's length."""
    passed = {}
    for part in board.of(DetectionResult):
        if part.protocol.about_ai:
            passed = part.table.values("success_human_length")
    if math.isnan(passed.get(name, math.nan)):
        return ""
    people = ""
    if not math.isnan(passed.get(HUMAN, math.nan)):
        people = f", people in {100 * passed[HUMAN]:.0f}"
    return (
        f"Cut to the human dialogue's length {name} passes in {100 * passed[name]:.0f} of 100 "
        f"dialogues{people}."
    )


def _scope(board: Board, contestants: Sequence[str]) -> str:
    """Return the numbers of dialogues and contestants, and the judge, in one line."""
    part = board.rated
    bots = sum(is_floor_bot(each) for each in contestants)
    counts = {"model": len(contestants) - bots, "bot": bots}
    who = [f"{n:,} {kind}{'' if n == 1 else 's'}" for kind, n in counts.items() if n]
    if isinstance(part, Arena) and part.protocol == VOTES:
        return f"{part.counts.judged:,} votes of {board.seed_set}, {', '.join(who)}."
    n = max(board.main.frame["complete"], default=0)
    kind = "invented dialogues" if board.invented else "dialogues"
    return f"{n:,} {kind} of {board.seed_set}, {', '.join(who)}, judge {board.judge}."
