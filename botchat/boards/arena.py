"""BotChat Arena at one N: comparisons counted, rated by Bradley-Terry and by Elo, tabled."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from botchat.boards.protocols import (
    COUNTS,
    MODEL,
    RANK,
    ProtocolResult,
    ProtocolVerdicts,
    rank_columns,
    results,
    with_missing,
)
from botchat.boards.tables import COLUMNS, Table, table, with_ends
from botchat.estimates import Flags, Floats
from botchat.frames import fill
from botchat.metrics.lengths import log_words
from botchat.protocols.protocol import Protocol
from botchat.ratings.bradley_terry import BradleyTerryResult, fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloResult, EloSettings, bootstrap_elo

MOST_ELO = 40
"""Contestants up to which Elo is played: of more it takes most of the time, and orders them as
Bradley-Terry does."""

MOST_LISTED = 300
"""Models up to which pairs are listed both ways, and pairs that were never compared too."""

# Lengths of votes
_UNKNOWN = np.zeros(0)

# Decimals in which the ratings of models that did the same are equal
_DIGITS = 6


class ComparisonCounts(NamedTuple):
    """Numbers of a protocol's comparisons, readable or not: judged, and expected."""

    judged: int
    of_each: pd.Series
    """Contestant -> comparisons that are expected of it."""
    is_planned: bool = True
    """Whether all that are expected can be judged; votes have no plan."""

    @property
    def expected(self) -> int:
        """Comparisons that are expected of all together."""
        return int(self.of_each.sum()) // 2

    @property
    def full(self) -> bool:
        """Whether every comparison was made."""
        return not self.is_planned or self.judged >= self.expected

    @property
    def signature(self) -> str:
        """``data:full``, or the share that was made: ``data:31.2%``."""
        if not self.is_planned:
            return f"data:{self.judged}-votes"
        if self.full:
            return "data:full"
        return f"data:{100 * self.judged / self.expected:.1f}%"


@dataclass(frozen=True)
class Arena(ProtocolResult):
    """A protocol about pairs at one N (none where not known), its table sorted by rating."""

    has_elo: bool
    comparisons: Comparisons
    counts: ComparisonCounts
    fitted: BradleyTerryResult
    controlled: BradleyTerryResult | None
    """Ratings at equal length; None where lengths are not known."""

    @cached_property
    def results(self) -> pd.DataFrame:
        """The `results` of each ordered pair that was compared."""
        return results(self.comparisons, of_pairs=True)

    @cached_property
    def pairs(self) -> Table:
        """One row an ordered pair; its csv is such a table of rates as `rank` reads."""
        order = self.table.models
        listed = list(permutations(order, 2))
        if len(order) > MOST_LISTED:
            compared = set(self.results.index)
            listed = [pair for pair in combinations(order, 2) if pair in compared]
        met = with_missing(self.results, listed, 0)
        met.columns = met.columns.str.replace(
            "^(win|win_or_tie)(|_low|_high)$", r"\1_rate\2", regex=True
        )
        return table(
            f"{self.protocol.name}-pairs",
            f"{self.table.title}, pair by pair",
            COLUMNS.meetings,
            met,
            self.table.signatures,
        )

    def pair(self, a: str, b: str) -> list[int]:
        """Return the wins, ties and losses of one contestant against another, in both orders."""
        row = self.results.reindex([(a, b)]).fillna(0).iloc[0]
        return [round(row[key] * row["n"]) for key in ("win", "tie", "lose")]

    def record(self, a: str, b: str, n_rivals: int) -> str:
        """Say how the leader a did against b, one of ``n_rivals`` that are not ruled out."""
        return fill(
            "boards/record.txt",
            arena=self,
            counts=self.pair(a, b),
            win=self.results["win"].get((a, b)),
            rival=b,
            n_rivals=n_rivals,
        )

    @property
    def n_dialogues(self) -> int:
        """ChatSEEDs, or comparisons a pair where these are not known."""
        if self.fitted.n_seeds is not None:
            return self.fitted.n_seeds
        pairs = max(1, math.comb(len(self.fitted.models), 2))
        if self.counts.is_planned:
            pairs *= 2  # both orders
        return self.counts.judged // pairs

    def above(self, names: Sequence[str], level: float) -> Flags:
        """Compare contestants by their ratings; see `ProtocolResult.above`."""
        return self.fitted.above(names, level)


def rate(part: ProtocolVerdicts, elo: EloSettings | None) -> Arena:
    """Rate a protocol about pairs at one N, which has a readable verdict."""
    # A contestant that only unreadable verdicts name is a contestant too.
    contestants = part.verdicts.judged_contestants
    each = pd.Series(part.expected_pairs(contestants).sum(axis=0), contestants)
    counts = ComparisonCounts(len(part.eligible), each)
    length = _length_differences(part)
    return rated(part.protocol, part.comparisons, counts, part.signature, elo, length)


def _length_differences(part: ProtocolVerdicts) -> Floats:
    """Return log length of the first less the second of each comparison, nan where not known."""
    comparisons = part.comparisons
    readable = part.eligible.only(part.eligible.readable)
    turns = part.protocol.n
    words = {name: log_words(part.dialogues.get(name, {}), turns) for name in comparisons.models}
    length = pd.DataFrame(words, index=list(readable.items), dtype=np.float64).to_numpy()
    first = length[readable.item, comparisons.first]
    second = length[readable.item, comparisons.second]
    return np.where(readable.shown == turns, first - second, np.nan)


def rated(
    protocol: Protocol,
    comparisons: Comparisons,
    counts: ComparisonCounts,
    signature: str,
    elo: EloSettings | None = None,
    length: Floats = _UNKNOWN,
) -> Arena:
    """Rate the contestants and make the tables.

    ``signature``: names the comparisons. ``length``: as `fit` takes it, nan where not known.
    """
    title = protocol.title
    if protocol.n:
        title += f" at N = {protocol.n}"
    fitted = fit(comparisons)
    ratings = [_bradley_terry(fitted, "bt")]
    controlled = None
    known = np.isfinite(length)
    if known.any():
        controlled = fit(comparisons.select(known), length[known])
        ratings.append(_bradley_terry(controlled, "bt_length_controlled"))
    has_elo = comparisons.is_hard and (len(comparisons.models) <= MOST_ELO or elo is not None)
    if has_elo:
        played = bootstrap_elo(comparisons, elo)
        ratings.append(_elo(played, fitted))
        signature += f"|{played.settings.signature}"
    errors = "by-seed" if fitted.n_clusters else "independent"
    signature += f"|{counts.signature}|bt:ties0.5,95%,{errors}"
    rows = with_missing(results(comparisons), list(counts.of_each.index), counts.of_each)
    ranks = rank_columns(ratings[0], fitted.above)
    standing = table(
        protocol.name,
        title,
        [RANK, MODEL, *COLUMNS.ratings, *COLUMNS.pairwise, *COUNTS],
        pd.concat([rows, ranks, *ratings], axis=1).rename_axis("model"),
        [signature],
        "Rates in percent of the comparisons with all others; brackets are 95 % intervals. Ranked "
        "by Bradley–Terry; ranks are simultaneous 95 % rank intervals.",
        ["bt"],
    ).filled()
    return Arena(
        protocol,
        standing,
        has_elo,
        comparisons,
        counts,
        fitted,
        controlled,
        keys=["bt"],
    )


def _bradley_terry(fitted: BradleyTerryResult, key: str) -> pd.DataFrame:
    """Return ratings and the ends of their intervals, by model."""
    # To the digits in which models that did the same are equal.
    columns = with_ends(key, fitted.rating.round(_DIGITS), fitted.low, fitted.high)
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
    columns = with_ends("elo", rating, rating - reach, rating + reach)
    columns["elo_run_std"] = spread
    return pd.DataFrame(columns, index=list(played.models))
