"""The first sentence of a board: who leads and who is not ruled out, or why there is no ranking.

The leader is the model with the highest rating; another model is not ruled out if it may be the
best of the models (`ProtocolResult.may_be_best`). Bots and humans are no models.
"""

import re
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_checks import JudgeTrust, no_ranking
from botchat.boards.tables import LABEL_COLUMNS, models_of, shorten
from botchat.frames import fill_lines
from botchat.metrics.statistics import LEAST
from botchat.ratings.comparisons import LEAST_CLUSTERS
from botchat.records import HUMAN, Texts

# Most contestants that a sentence names
_NAMED = 4


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
    leader: str | None

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return "".join(text for text, _ in [*self.begin, *self.rest])


def headline(board: Board, trust: JudgeTrust) -> Headline:
    """Make the headline of a board; ``trust`` is that of its judge."""
    contestants = [name for name in board.main.models if name != HUMAN]
    models = models_of(contestants)
    part = board.rated
    ranked: list[str] = []
    leaders: list[str] = []
    if part is not None and len(contestants) > 1 and not trust.failed:
        ranked = list(part.ranks.index)
        leaders = board.leaders
    rivals: list[str] = []
    rival = ""
    record = ""
    if part is not None and len(leaders) == 1 < len(models):
        in_order = models_of(ranked)
        rivals = list(compress(in_order[1:], part.may_be_best(in_order)[1:]))
        rival = [*rivals, in_order[1]][0]
        if isinstance(part, Arena):
            record = part.record(leaders[0], rival, len(rivals))
    first, rest, scope, lead = fill_lines(
        "boards/headline.txt",
        board=board,
        trust=trust,
        no_ranking=no_ranking(trust.checks),
        models=models,
        bots=[name for name in contestants if name not in models],
        ranked=ranked,
        leaders=leaders,
        rivals=rivals,
        rival=rival,
        record=record,
        n=max(board.frame.get("complete", ()), default=0),
        least=LEAST,
        least_topics=LEAST_CLUSTERS,
        human=HUMAN,
    )
    begin = _pieces(first, contestants)
    title = ""
    for piece, is_name in begin:
        if is_name:
            title += shorten(piece, LABEL_COLUMNS)
        else:
            title += piece
    return Headline(
        begin,
        _pieces(rest, contestants),
        f"{board.seed_set}: {title.rstrip(' .')}",
        lead,
        scope,
        next(iter(leaders), None),
    )


def _pieces(text: str, names: Texts) -> Pieces:
    """Return a text in pieces, with the names in it marked; the longest first, as whole words."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    pieces = re.split(rf"(?<!\w)({'|'.join(longest) or '(?!)'})(?!\w)", text)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece]
