"""A board from votes of humans or models on pairs, without seeds or dialogues; pure."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena, ComparisonCounts, rated
from botchat.boards.board import Board, lengths_table, main_table
from botchat.boards.judge_table import JudgeFacts, judge_table, pair_facts
from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.tables import COLUMNS, Column, table
from botchat.estimates import Indices
from botchat.frames import fill_lines
from botchat.metrics.lengths import Lengths
from botchat.metrics.statistics import distinct
from botchat.metrics.verdicts import PairVerdicts
from botchat.protocols.catalogue import VOTES
from botchat.ratings.comparisons import Comparisons, comparisons_of
from botchat.records import SIGNED


def votes_board(votes: PairVerdicts, name: str) -> Board:
    """Count, rate and rank votes of a file, or files, called ``name``; all judges together.

    Raises:
        MissingDataError: there is no readable vote.
    """
    comparisons = vote_comparisons(votes)
    comparisons.require_any()
    signature = f"{SIGNED}|votes|set:{name}|data:{votes_digest(votes)}"
    sides = np.concatenate([votes.first, votes.second])
    named = pd.Series(np.bincount(sides, minlength=len(votes.contestants)), votes.contestants)
    of_each = named[list(comparisons.models)]
    counts = ComparisonCounts(len(comparisons), of_each, is_planned=False)
    judges = [votes.judges[i] for i in distinct(votes.judge)[0].tolist()]
    judge = judges[0]
    row_name = judge
    if len(judges) > 1:
        judge = f"{len(judges):,} judges"
        row_name = f"all {judge}"
    facts = _judge_facts(votes)
    judges_table = table(
        "judge",
        "The judges",
        [Column("judge", "Judge", "name"), *COLUMNS.facts_on_pairs],
        [{"judge": row_name, **facts.row}],
        [signature],
        "In percent, with 95 % intervals clustered by what was asked. Consistency: pairs with the "
        "same verdict in both orders. First preferred: decided votes for the first; 50: no bias.",
    )
    unit = "question"
    if clusters(votes, len(votes.contestants)) is votes.judge:
        unit = "judge"
    board = _board(rated(VOTES, comparisons, counts, signature), name, judge, unit)
    board = replace(board, judge_table=judges_table)
    # Only both orders tell what being named first is worth, and who is better.
    if facts.rate("consistency").is_known:
        signed = ProtocolVerdicts(VOTES, (), replace(votes, known_signatures=(signature,)))
        board = replace(board, verdicts={VOTES.name: signed}, judge_facts={VOTES.name: facts})
    return board


def rates_board(comparisons: Comparisons, name: str, per_pair: int) -> Board:
    """Make the board of a table of rates, ``per_pair`` comparisons of each pair; no judges."""
    signature = f"{SIGNED}|votes|set:{name}|per_pair:{per_pair}"
    models = list(comparisons.models)
    of_each = pd.Series(per_pair * (len(models) - 1), models)
    counts = ComparisonCounts(len(comparisons), of_each)
    return _board(rated(VOTES, comparisons, counts, signature), name, "rates", "")


def vote_comparisons(votes: PairVerdicts) -> Comparisons:
    """Readable votes, contestants sorted by name."""
    # Fewer clusters than there are contestants cannot separate them.
    cluster = clusters(votes, len(votes.contestants))
    if cluster is not None:
        cluster = cluster[votes.readable]
    return comparisons_of(votes.only(votes.readable), cluster)


def clusters(votes: PairVerdicts, least: int) -> Indices | None:
    """Return the cluster of each vote; None if votes are independent.

    Items; judges where votes share no item, or where only judges are more than ``least``.
    """
    for numbers, most in ((votes.item, least), (votes.judge, least), (votes.item, 1)):
        if numbers.min() >= 0 and most < len(distinct(numbers)[0]) < len(votes):
            return numbers
    return None


def _board(part: Arena, name: str, judge: str, unit: str) -> Board:
    """The board of one Arena; its main table has the numbers that most readers want, best first.

    ``unit``: what clusters are, in a word.
    """
    quoted = [(part, ["bt", "elo", "win", "win_or_tie", "n"])]
    nothing = Lengths("words", {})
    return Board(
        seed_set=name,
        judge=judge,
        main=main_table(part.fitted.models, quoted, {}, ()),
        parts=[part],
        lengths=lengths_table(nothing, name),
        judge_table=judge_table((), ()),
        utterance_lengths=nothing,
        notes=fill_lines("boards/notes_on_votes.txt", arena=part, unit=unit),
        verdicts={},
    )


def votes_digest(votes: PairVerdicts) -> str:
    """8 hex digits that change with any vote, whatever the order of rows."""
    models = np.array(votes.contestants, dtype=object)
    names = {
        "first": models[votes.first],
        "second": models[votes.second],
        "judge": np.array(votes.judges, dtype=object)[votes.judge],
        "item": np.array([*votes.items, ""], dtype=object)[votes.item],
    }
    frame = pd.DataFrame(names, dtype="category")
    frame.insert(2, "result", votes.result)
    if (votes.weight != 1).any():
        frame["weight"] = votes.weight
    hashed = pd.util.hash_pandas_object(frame, index=False)
    return sha256(np.sort(hashed.to_numpy()).tobytes()).hexdigest()[:8]


def _judge_facts(votes: PairVerdicts) -> JudgeFacts:
    """Return the facts of all judges of the votes together."""
    cluster = clusters(votes, 1)
    if cluster is None:
        cluster = distinct(votes.cases * max(1, len(votes.judges)) + votes.judge)[1]
    return pair_facts(votes, cluster, cluster, VOTES.name)
