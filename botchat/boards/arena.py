"""BotChat Arena at one N: comparisons counted, rated by Bradley-Terry and by Elo, tabled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from botchat.boards.protocols import (
    MODEL,
    PAIRWISE,
    RANK,
    ProtocolResult,
    ProtocolVerdicts,
    model_results,
    pair_results,
    rank_columns,
    with_missing,
)
from botchat.boards.tables import COLUMNS, Table, table
from botchat.estimates import Flags, Floats
from botchat.metrics.lengths import log_words
from botchat.metrics.verdicts import PairVerdicts
from botchat.protocols.catalogue import VOTES
from botchat.protocols.protocol import Protocol
from botchat.ratings.bradley_terry import BradleyTerryResult, fit
from botchat.ratings.comparisons import Comparisons, comparisons_of
from botchat.ratings.elo import EloResult, EloSettings, bootstrap_elo
from botchat.records import Dialogues

MOST_ELO = 100
"""Contestants up to which Elo is played: of more it takes most of the time, and orders them as
Bradley-Terry does."""

MOST_LISTED = 300
"""Models up to which pairs are listed both ways, and pairs that were never compared too."""

_DIGITS = 6
"""Decimals in which the ratings of models that did the same are equal."""


class ComparisonCounts(NamedTuple):
    """Numbers of a protocol's comparisons, readable or not: judged, and expected."""

    judged: int
    expected: int | None
    """None for votes, which have no plan."""

    @property
    def full(self) -> bool:
        """Whether every comparison was made."""
        return self.expected is None or self.judged >= self.expected

    @property
    def signature(self) -> str:
        """``data:full``, or the share that was made: ``data:31.2%``."""
        if self.expected is None:
            return f"data:{self.judged}-votes"
        if self.full:
            return "data:full"
        return f"data:{100 * self.judged / self.expected:.1f}%"


@dataclass(frozen=True)
class Arena(ProtocolResult):
    """A protocol about pairs at one N (none where not known), its table sorted by rating."""

    pairs: Table
    """One row an ordered pair; its csv is such a table of rates as `rank` reads."""
    results: pd.DataFrame
    """The table that `pair_results` returns."""
    has_elo: bool
    is_hard: bool
    """See `Comparisons.is_hard`."""
    counts: ComparisonCounts
    fitted: BradleyTerryResult
    controlled: BradleyTerryResult | None
    """Ratings at equal length; None where lengths are not known."""

    def pair(self, a: str, b: str) -> list[int]:
        """Return the wins, ties and losses of one contestant against another, in both orders."""
        row = self.results.reindex([(a, b)]).fillna(0).iloc[0]
        return [round(row[key] * row["n"]) for key in ("win", "tie", "lose")]

    def record(self, a: str, b: str, end: str) -> str:
        """Say how one contestant did against another, with ``end`` where they met."""
        if (a, b) not in self.results.index:
            return "met only through others"
        wins, ties, losses = self.pair(a, b)
        if self.is_hard:
            return f"won {wins}, tied {ties}, lost {losses}{end}"
        return f"win rate {100 * self.results['win'][a, b]:.0f} %{end}"

    @property
    def n_dialogues(self) -> int:
        """ChatSEEDs, or comparisons a pair where these are not known."""
        if self.fitted.n_seeds is not None:
            return self.fitted.n_seeds
        pairs = max(1, math.comb(len(self.fitted.models), 2))
        if self.counts.expected is not None:
            pairs *= 2  # both orders
        return self.counts.judged // pairs

    @property
    def separates(self) -> bool:
        """Whether any contestant is significantly better than another."""
        return bool(self.fitted.significantly_better.any())

    def above(self, names: Sequence[str], level: float) -> Flags:
        """Compare contestants by their ratings; see `ProtocolResult.above`."""
        return self.fitted.above(names, level)

    def matrix(self, key: str) -> pd.DataFrame:
        """Return a rate of `results`, row against column; NaN where nothing was compared."""
        order = self.table.frame["model"].tolist()
        return self.results[key].unstack().reindex(index=order, columns=order)


def rate(
    judged: Iterable[ProtocolVerdicts],
    seed_ids: Sequence[str],
    elo: EloSettings | None,
    dialogues: Dialogues,
) -> list[Arena]:
    """Rate every protocol about pairs, at each N that has a readable verdict.

    ``seed_ids``: the seeds that count, each once.
    """
    results = []
    for part in judged:
        verdicts = part.verdicts.on(seed_ids)
        readable = verdicts.only(verdicts.readable)
        if not len(readable):
            continue
        comparisons = comparisons_of(readable, part.cluster[readable.item], readable.item)
        # A contestant that only unreadable verdicts name is a contestant too.
        contestants = part.verdicts.judged_contestants
        expected = part.expected_pairs(contestants, seed_ids)
        rows = with_missing(model_results(comparisons), contestants, expected.sum(axis=0))
        counts = ComparisonCounts(len(verdicts), int(expected.sum()) // 2)
        length = _length_differences(readable, comparisons, dialogues, part.protocol.n)
        results.append(
            _arena(part.protocol, rows, comparisons, counts, part.signature, elo, length)
        )
    return results


def rate_votes(
    comparisons: Comparisons,
    signature: str,
    *,
    per_pair: int | None = None,
    unreadable: Mapping[str, int],
) -> Arena:
    """Make the Arena's tables from comparisons without judgments: votes, or a table of rates.

    ``signature``: names the comparisons. ``per_pair``: comparisons that every pair should have,
    None for votes. ``unreadable``: contestant -> votes on it without a result.
    """
    models = comparisons.models
    rows = with_missing(model_results(comparisons), models, (per_pair or 0) * (len(models) - 1))
    rows["missing"] += [unreadable.get(name, 0) for name in models]
    expected = None if per_pair is None else per_pair * math.comb(len(models), 2)
    counts = ComparisonCounts(len(comparisons), expected)
    not_known = np.full(len(comparisons), np.nan)
    return _arena(VOTES, rows, comparisons, counts, signature, None, not_known)


def _length_differences(
    readable: PairVerdicts, comparisons: Comparisons, dialogues: Dialogues, turns: int | None
) -> Floats:
    """Return log length of the first less the second of each comparison, nan where not known."""
    words = {name: log_words(dialogues.get(name, {}), turns) for name in comparisons.models}
    length = pd.DataFrame(words, index=list(readable.items), dtype=np.float64).to_numpy()
    first = length[readable.item, comparisons.first]
    second = length[readable.item, comparisons.second]
    return np.where(readable.shown == turns, first - second, np.nan)


def _arena(
    protocol: Protocol,
    rows: pd.DataFrame,
    comparisons: Comparisons,
    counts: ComparisonCounts,
    signature: str,
    elo: EloSettings | None,
    length: Floats,
) -> Arena:
    """Rate the contestants and make the tables from ``rows``, the results of all of them."""
    title = f"{protocol.title} at N = {protocol.n}" if protocol.n else protocol.title
    fitted = fit(comparisons)
    ratings = [_bradley_terry(fitted, "bt")]
    known = np.isfinite(length)
    controlled = None
    if known.any():
        controlled = fit(comparisons.select(known), length[known])
        ratings.append(_bradley_terry(controlled, "bt_length_controlled"))
    is_hard = comparisons.is_hard
    has_elo = is_hard and (len(comparisons.models) <= MOST_ELO or elo is not None)
    if has_elo:
        played = bootstrap_elo(comparisons, elo)
        ratings.append(_elo(played, fitted))
        signature += f"|{played.settings.signature}"
    errors = "by-seed" if fitted.n_clusters else "independent"
    signature += f"|{counts.signature}|bt:ties0.5,95%,{errors}"
    ranks = rank_columns(ratings[0], fitted.above)
    standing = table(
        protocol.name,
        title,
        [RANK, MODEL, *COLUMNS.ratings, *PAIRWISE],
        pd.concat([rows, ranks, *ratings], axis=1).rename_axis("model").reset_index(),
        [signature],
        "Rates in percent of the comparisons with all others; brackets are 95 % intervals. Ranked "
        "by Bradley–Terry; ranks are simultaneous 95 % rank intervals.",
        ["bt"],
    ).filled()
    results = pair_results(comparisons)
    order = standing.frame["model"].tolist()
    listed = list(permutations(order, 2))
    if len(order) > MOST_LISTED:
        compared = set(results.index)
        listed = [pair for pair in combinations(order, 2) if pair in compared]
    rows = with_missing(results, listed, 0).rename_axis(["model_a", "model_b"])
    columns = rows.columns.str
    rows.columns = columns.replace("^(win|win_or_tie)(|_low|_high)$", r"\1_rate\2", regex=True)
    pairs = table(
        f"{protocol.name}-pairs",
        f"{title}, pair by pair",
        COLUMNS.meetings,
        rows.reset_index(),
        [signature],
    )
    return Arena(
        protocol,
        standing,
        pairs,
        results,
        has_elo,
        is_hard,
        counts,
        fitted,
        controlled,
        keys=["bt"],
    )


def _bradley_terry(fitted: BradleyTerryResult, key: str) -> pd.DataFrame:
    """Return ratings and the ends of their intervals, by model."""
    # To the digits in which models that did the same are equal.
    columns = {
        key: fitted.rating.round(_DIGITS),
        f"{key}_low": fitted.low,
        f"{key}_high": fitted.high,
    }
    return pd.DataFrame(columns, index=list(fitted.models))


def _elo(played: EloResult, fitted: BradleyTerryResult) -> pd.DataFrame:
    """Return Elo, the spread of its runs and the ends of its interval, by model.

    Elo's mean over shuffles follows the same comparisons as Bradley-Terry, so its error is taken to
    be Bradley-Terry's, in quadrature with the error of the mean over runs.
    """
    rating = played.rating
    spread = played.run_std
    error = np.hypot(fitted.std_error, np.nan_to_num(spread) / played.settings.runs**0.5)
    reach = fitted.reach() * error
    columns = {
        "elo": rating,
        "elo_low": rating - reach,
        "elo_high": rating + reach,
        "elo_run_std": spread,
    }
    return pd.DataFrame(columns, index=list(played.models))
