"""A board from votes: what people or models said of pairs, without seeds or dialogues; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType

import numpy as np
import pandas as pd

from botchat.boards import arena
from botchat.boards.arena import Arena
from botchat.boards.board import Board, lengths_table
from botchat.boards.judge_table import PAIR_COLUMNS, pair_rates
from botchat.boards.protocols import MODEL, ProtocolVerdicts
from botchat.boards.tables import Column, Table, rank_by, table
from botchat.metrics.intervals import proportion_ci
from botchat.metrics.lengths import Lengths, words
from botchat.metrics.statistics import distinct
from botchat.metrics.vote_arrays import Votes
from botchat.protocols.catalogue import VOTES
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings
from botchat.records import SIGNED
from botchat.verdicts import ABSENT, TIE, Floats, Verdicts


def build(votes: Votes, name: str, elo: EloSettings | None = None) -> Board:
    """Count, rate and rank votes of a file, or files, called ``name``; all judges together.

    Raises:
        MissingDataError: there is no readable vote.
    """
    comparisons, shared, differences = compared(votes)
    comparisons.require_any()
    signature = f"{SIGNED}|votes|set:{name}|data:{digest(votes)}"
    part = arena.of_votes(
        comparisons,
        signature,
        elo,
        unit=shared or "votes",
        unreadable=_unreadable(votes),
        length=differences,
    )
    said = verdicts(votes, signature)
    # Only both orders tell what being named first is worth, and who is better.
    both = (said.both_orders().results < ABSENT).all(1).any()
    evidence = {VOTES.name: ProtocolVerdicts(VOTES, (), said)} if both else {}
    there = np.unique(votes.judge)
    whose = votes.judges[there[0]] if len(there) == 1 else f"{len(there):,} judges"
    judges = judge_table(votes, whose if len(there) == 1 else f"all {whose}", signature)
    return _board(part, name, whose, signature, judges, evidence)


def of_rates(
    comparisons: Comparisons, name: str, per_pair: int, elo: EloSettings | None = None
) -> Board:
    """The same of a table of rates, ``per_pair`` comparisons of each pair, which has no judges."""
    signature = f"{SIGNED}|votes|set:{name}|per_pair:{per_pair}"
    part = arena.of_votes(comparisons, signature, elo, per_pair=per_pair)
    return _board(part, name, "rates", part.table.signature)


def compared(votes: Votes) -> tuple[Comparisons, str, Floats | None]:
    """Readable votes, what their clusters are called, and differences of length.

    Contestants are sorted by name. The differences: first less second, nan where not
    known; ``None`` without texts.
    """
    # Fewer than there are contestants cannot tell them apart.
    shared = votes.clusters(len(votes.contestants))
    place = np.argsort(np.argsort(np.array(votes.contestants, dtype=object), kind="stable"))
    read = np.flatnonzero(votes.readable)
    first, second = votes.first[read], votes.second[read]
    seen = np.bincount(np.concatenate([first, second]), minlength=len(place))
    kept = np.zeros(len(place), np.intp)
    kept[place[seen > 0]] = 1
    number = (np.cumsum(kept) - 1)[place]
    cluster, unit = shared or (None, "")
    made = Comparisons(
        tuple(sorted(name for name, n in zip(votes.contestants, seen, strict=True) if n)),
        number[first],
        number[second],
        votes.result[read],
        None if cluster is None else cluster[read],
    )
    longer = _longer(votes)
    return made, unit, None if longer is None else longer[read]


def _longer(votes: Votes) -> Floats | None:
    """How much longer the first is than the second, as `log_words` has it; nan where not known."""
    if votes.texts is None:
        return None
    found = np.full(len(votes), np.nan)
    for i, (a, b) in enumerate(zip(*votes.texts, strict=True)):
        if a and b:
            one, two = (sum(map(words, side)) / len(side) for side in (a, b))
            found[i] = np.log1p(one) - np.log1p(two)
    return found if np.isfinite(found).any() else None


def _board(
    part: Arena,
    name: str,
    judge: str,
    signature: str,
    judges: Table | None = None,
    evidence: Mapping[str, ProtocolVerdicts] = MappingProxyType({}),
) -> Board:
    """The board of one Arena; its main table has the numbers that most people want, best first."""
    measured, shown = Lengths("words", {}), part.table
    rates = (shown.column(key) for key in ("win", "win_or_tie"))
    others = [one for rate in rates for one in (rate, *(shown.ends(rate.key) or ()))]
    others.append(shown.column("n"))
    main = table(
        "leaderboard",
        "Leaderboard",
        [
            rank_by("bt"),
            *part.places,
            MODEL,
            *map(part.quote, part.rated),
            *part.quoted_with_ends(),
            *map(part.quote, others),
        ],
        shown.frame["model"].tolist(),
        shown.signatures,
        "Ranks are simultaneous 95 % rank intervals; brackets are 95 % CIs. Rates in percent.",
        ["bt"],
    )
    return Board(
        seed_set=name,
        judge=judge,
        main=main,
        parts=(part,),
        lengths=lengths_table(measured, name),
        judge_table=judges,
        utterance_lengths=measured,
        seeds_signature=signature,
        notes=(f"Bradley–Terry: {part.fitted.warning}.",) if part.fitted.warning else (),
        verdicts=evidence,
    )


def digest(votes: Votes) -> str:
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
        pd.DataFrame({key: pd.Categorical(column) if column.dtype == object else column
                      for key, column in columns.items()}), index=False
    )  # fmt: skip
    return sha256(np.sort(hashed.to_numpy()).tobytes()).hexdigest()[:8]


def _unreadable(votes: Votes) -> dict[tuple[str, str], int]:
    """Pair, in the order of names -> votes without a result."""
    gone = ~votes.readable
    named = zip(votes.first[gone].tolist(), votes.second[gone].tolist(), strict=True)
    pairs = (sorted((votes.contestants[a], votes.contestants[b])) for a, b in named)
    return dict(Counter((low, high) for low, high in pairs))


def verdicts(votes: Votes, signature: str) -> Verdicts:
    """Votes as the verdicts of one judge; a case is what each of the judges was asked."""
    n = len(votes)
    case = distinct(votes.cases * max(1, len(votes.judges)) + votes.judge)[1]
    return Verdicts(
        tuple(map(str, range(int(case.max(initial=-1)) + 1))),
        votes.contestants,
        (signature,),
        case,
        votes.first,
        votes.second,
        votes.result,
        np.zeros(n, np.intp),
        np.zeros(n, np.intp),
        np.zeros(n, np.uint64),
    )


def judge_table(votes: Votes, name: str, signature: str) -> Table:
    """What the votes say about those who gave them, all together."""
    made = verdicts(votes, "")
    readable = made.readable
    cluster, _ = votes.clusters(1) or (made.seed, "")
    first = np.unique(made.seed, return_index=True)[1]
    row = {
        "judge": name,
        **pair_rates(made, cluster[first]),
        **proportion_ci((made.result == TIE)[readable], cluster[readable], "ties"),
        **proportion_ci(~readable, cluster, "unreadable_rate"),
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
