"""A board from votes of humans or models on pairs, without seeds or dialogues; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType

import numpy as np
import pandas as pd

from botchat.boards import arena
from botchat.boards.arena import Arena
from botchat.boards.board import Board, lengths_table, main_table
from botchat.boards.judge_table import PAIR_COLUMNS, pair_rates
from botchat.boards.pairs import comparisons_of
from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.tables import Column, Table, table
from botchat.estimates import Indices
from botchat.metrics.lengths import Lengths
from botchat.metrics.statistics import distinct, proportion
from botchat.metrics.verdicts import TIE, PairOutcome, PairVerdicts
from botchat.protocols.catalogue import VOTES
from botchat.ratings.comparisons import Comparisons
from botchat.records import SIGNED


def votes_board(votes: PairVerdicts, name: str) -> Board:
    """Count, rate and rank votes of a file, or files, called ``name``; all judges together.

    Raises:
        MissingDataError: there is no readable vote.
    """
    comparisons = vote_comparisons(votes)
    comparisons.require_any()
    signature = f"{SIGNED}|votes|set:{name}|data:{votes_digest(votes)}"
    lost = np.concatenate([votes.first[~votes.readable], votes.second[~votes.readable]])
    unreadable = Counter(votes.contestants[i] for i in lost.tolist())
    part = arena.rate_votes(comparisons, signature, unreadable=unreadable)
    # Only both orders tell what being named first is worth, and who is better.
    _, outcomes = votes.both_orders()
    evidence = {}
    if (outcomes < PairOutcome.ABSENT).all(1).any():
        signed = replace(votes, known_signatures=(signature,))
        evidence = {VOTES.name: ProtocolVerdicts(VOTES, (), signed)}
    judges = [votes.judges[i] for i in np.unique(votes.judge).tolist()]
    judge = judges[0] if len(judges) == 1 else f"{len(judges):,} judges"
    row_name = judge if len(judges) == 1 else f"all {judge}"
    return _board(part, name, judge, signature, _judge_table(votes, row_name, signature), evidence)


def rates_board(comparisons: Comparisons, name: str, per_pair: int) -> Board:
    """Make the board of a table of rates, ``per_pair`` comparisons of each pair; no judges."""
    signature = f"{SIGNED}|votes|set:{name}|per_pair:{per_pair}"
    part = arena.rate_votes(comparisons, signature, per_pair=per_pair)
    return _board(part, name, "rates", part.table.signature)


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
        if most < len(np.unique(numbers)) < len(votes) and numbers.min() >= 0:
            return numbers
    return None


def _board(
    part: Arena,
    name: str,
    judge: str,
    signature: str,
    judges: Table | None = None,
    evidence: Mapping[str, ProtocolVerdicts] = MappingProxyType({}),
) -> Board:
    """The board of one Arena; its main table has the numbers that most readers want, best first."""
    keys = ["bt", "win", "win_or_tie", "n"]
    if part.has_elo:
        keys.insert(1, "elo")
    return Board(
        seed_set=name,
        judge=judge,
        main=main_table(
            part.fitted.models, [part], [(part, key) for key in keys], {}, part.table.signatures
        ),
        parts=(part,),
        lengths=lengths_table(Lengths("words", {}), name),
        judge_table=judges,
        utterance_lengths=Lengths("words", {}),
        seeds_signature=signature,
        notes=(f"Bradley–Terry: {part.fitted.warning}.",) if part.fitted.warning else (),
        verdicts=evidence,
    )


def votes_digest(votes: PairVerdicts) -> str:
    """8 hex digits that change with any vote, whatever the order of rows."""
    models = np.array(votes.contestants, dtype=object)
    columns = {
        "first": models[votes.first],
        "second": models[votes.second],
        "result": votes.result,
        "judge": np.array(votes.judges, dtype=object)[votes.judge],
        "item": np.array([*votes.items, ""], dtype=object)[votes.item],
    }
    hashed = pd.util.hash_pandas_object(
        pd.DataFrame(
            {
                key: pd.Categorical(column) if column.dtype == object else column
                for key, column in columns.items()
            }
        ),
        index=False,
    )
    return sha256(np.sort(hashed.to_numpy()).tobytes()).hexdigest()[:8]


def _judge_table(votes: PairVerdicts, name: str, signature: str) -> Table:
    """Make the table of all judges of the votes together."""
    cluster = clusters(votes, 1)
    if cluster is None:
        cluster = distinct(votes.cases * max(1, len(votes.judges)) + votes.judge)[1]
    readable = votes.readable
    row = {
        "judge": name,
        **pair_rates(votes, cluster),
        "ties": proportion((votes.result == TIE)[readable], cluster[readable]),
        "unreadable_rate": proportion(~readable, cluster),
    }
    return table(
        "judge",
        "The judges",
        [Column("judge", "Judge", "name"), *PAIR_COLUMNS],
        [row],
        [signature],
        "In percent, with 95 % intervals clustered by what was asked. Consistency: pairs with the "
        "same verdict in both orders. First preferred: decided votes for the first; 50: no bias.",
    )
